/**
 * A small checker for JSON Schema (draft 7), written from the draft and not from any code of ours:
 * the keywords that z.toJSONSchema writes, and an error for any other one.
 */

type Schema = Readonly<Record<string, unknown>>;

const NOTES = ["$schema", "title", "description", "examples", "default"];

/** The paths of what does not fit; none: it does. */
export function misfitsOf(schema: Schema, value: unknown, path = "$"): string[] {
  return Object.entries(schema).flatMap(([keyword, wanted]) => {
    if (NOTES.includes(keyword)) return [];
    const check = CHECKS[keyword];
    if (check === undefined) throw new Error(`unknown keyword ${keyword} at ${path}`);
    return check({ wanted, value, path, schema });
  });
}

interface Asked {
  readonly wanted: unknown;
  readonly value: unknown;
  readonly path: string;
  readonly schema: Schema;
}

const CHECKS: Readonly<Record<string, (asked: Asked) => string[]>> = {
  type: ({ wanted, value, path }) => {
    const types = Array.isArray(wanted) ? wanted : [wanted];
    return types.some((type) => isOfType(value, String(type))) ? [] : [path];
  },
  enum: ({ wanted, value, path }) => ((wanted as unknown[]).includes(value) ? [] : [path]),
  anyOf: ({ wanted, value, path }) =>
    (wanted as Schema[]).some((each) => misfitsOf(each, value, path).length === 0) ? [] : [path],
  properties: ({ wanted, value, path }) =>
    tableOf(value).flatMap(([key, own]) => {
      const schema = (wanted as Record<string, Schema>)[key];
      return schema === undefined ? [] : misfitsOf(schema, own, `${path}.${key}`);
    }),
  required: ({ wanted, value, path }) => {
    const keys = new Set(tableOf(value).map(([key]) => key));
    const isTable = isOfType(value, "object");
    return (wanted as string[]).flatMap((key) =>
      isTable && !keys.has(key) ? [`${path}.${key}`] : [],
    );
  },
  additionalProperties: ({ wanted, value, path, schema }) => {
    const known = Object.keys((schema["properties"] ?? {}) as object);
    const others = tableOf(value).filter(([key]) => !known.includes(key));
    if (wanted === false) return others.map(([key]) => `${path}.${key}`);
    return others.flatMap(([key, own]) => misfitsOf(wanted as Schema, own, `${path}.${key}`));
  },
  propertyNames: ({ wanted, value, path }) =>
    tableOf(value).flatMap(([key]) => misfitsOf(wanted as Schema, key, `${path}.${key}`)),
  items: ({ wanted, value, path }) =>
    Array.isArray(value)
      ? value.flatMap((item, at) => misfitsOf(wanted as Schema, item, `${path}[${at}]`))
      : [],
  minItems: ({ wanted, value, path }) =>
    Array.isArray(value) && value.length < Number(wanted) ? [path] : [],
  minimum: ({ wanted, value, path }) =>
    typeof value === "number" && value < Number(wanted) ? [path] : [],
  maximum: ({ wanted, value, path }) =>
    typeof value === "number" && value > Number(wanted) ? [path] : [],
};

function isOfType(value: unknown, type: string): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "integer") return Number.isInteger(value);
  if (type === "object") {
    return typeof value === "object" && value !== null && !Array.isArray(value);
  }
  return typeof value === type;
}

function tableOf(value: unknown): [string, unknown][] {
  return isOfType(value, "object") ? Object.entries(value as object) : [];
}
