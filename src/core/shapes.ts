/**
 * Whether a value that was read from JSON has the shape that it should have. Pure; for records on
 * the path of `watchdog run`, which loads no library for it.
 */

export type Fields = Readonly<Record<string, unknown>>;
export type Shape = (value: unknown) => boolean;

export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A whole number from 0 on that is exact. */
export function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

export function isPositive(value: unknown): value is number {
  return isCount(value) && value >= 1;
}

/** Of whatever clock. */
export function isInstant(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

export function isSpan(value: unknown): value is number {
  return isInstant(value) && value >= 0;
}

export function isText(value: unknown): value is string {
  return typeof value === "string";
}

export function isWord(value: unknown): value is string {
  return isText(value) && value !== "";
}

export function orNull(shape: Shape): Shape {
  return (value) => value === null || shape(value);
}

/** With at least these fields; others are passed by. */
export function object(shapes: Readonly<Record<string, Shape>>): Shape {
  const all = Object.entries(shapes);
  return (value) => isObject(value) && all.every(([name, fits]) => fits(value[name]));
}
