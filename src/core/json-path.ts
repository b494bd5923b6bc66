/**
 * The path of `--probe-expect-json PATH=VALUE`: `status.checks[0].state`, with or without the `$.`
 * of RFC 9535 in front; a name that is no plain word stands in brackets and quotes: `["a.b"]`.
 * Pure.
 *
 * Always: a path names one place and has no wildcard, and looking for it takes as many steps as it
 * has.
 */

/** Names of fields and places in lists; empty: the document itself. */
export type JsonPath = readonly (string | number)[];

const LONGEST_PATH = 1024;
const STEP = /\.?([A-Za-z_][A-Za-z0-9_-]*)|\[(0|[1-9][0-9]{0,8})\]|\[("(?:[^"\\]|\\.)*")\]/y;

/** Undefined: it is no path. */
export function parseJsonPath(text: string): JsonPath | undefined {
  if (text === "" || text.length > LONGEST_PATH) return undefined;
  const start = text.startsWith("$") ? 1 : 0;
  const steps: (string | number)[] = [];
  const step = new RegExp(STEP);
  for (step.lastIndex = start; step.lastIndex < text.length;) {
    const isFirst = step.lastIndex === 0;
    const begin = text[step.lastIndex];
    // A dot stands between a step and a name, and nowhere else.
    if (isFirst ? begin === "." : begin !== "." && begin !== "[") return undefined;
    const match = step.exec(text);
    const found = match === null ? undefined : readStep(match);
    if (found === undefined) return undefined;
    steps.push(found);
  }
  return steps;
}

function readStep([, name, index, quoted]: RegExpExecArray): string | number | undefined {
  if (name !== undefined) return name;
  if (index !== undefined) return Number(index);
  try {
    const text: unknown = JSON.parse(quoted ?? "");
    return typeof text === "string" ? text : undefined;
  } catch {
    return undefined; // SyntaxError: an escape that JSON does not have
  }
}

/** `PATH=VALUE`, cut at the first `=` outside of quotes; undefined: it is no such thing. */
export function parseJsonExpectation(
  text: string,
): { readonly path: string; readonly value: string } | undefined {
  const path = /^(?:[^="]|"(?:[^"\\]|\\.)*")*(?==)/.exec(text)?.[0];
  if (path === undefined || parseJsonPath(path) === undefined) return undefined;
  return { path, value: text.slice(path.length + 1) };
}

/** What is there; undefined: nothing. Only what a document holds itself counts. */
export function findInJson(document: unknown, path: JsonPath): unknown {
  let place = document;
  for (const step of path) {
    if (typeof place !== "object" || place === null) return undefined;
    if (Array.isArray(place) !== (typeof step === "number")) return undefined;
    if (!Object.hasOwn(place, step)) return undefined;
    place = (place as Readonly<Record<string | number, unknown>>)[step];
  }
  return place;
}

/**
 * Whether a value is the one that was asked for: a text is itself, everything else as JSON writes
 * it, so that `true` fits true and "true".
 */
export function fitsJson(found: unknown, wanted: string): boolean {
  if (typeof found === "string") return found === wanted || JSON.stringify(found) === wanted;
  return JSON.stringify(found) === wanted;
}
