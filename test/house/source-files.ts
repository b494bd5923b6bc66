/**
 * What the house tests read: the project's own files, their imports, and their code without
 * comments. Refuses to know any rule. Always holds: paths are relative to the project's root,
 * sorted; what is built or installed (`dist`, `node_modules`) is never among them.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

export const ROOT = join(import.meta.dir, "..", "..");

const NOT_OURS = new Set([".git", "dist", "node_modules"]);

export interface Import {
  readonly from: string;
  /** A path relative to the root, or the name of a package or a built-in module. */
  readonly to: string;
  readonly kind: "static" | "type" | "dynamic";
}

export function topLevelNames(): string[] {
  return readdirSync(ROOT)
    .filter((name) => !NOT_OURS.has(name))
    .toSorted();
}

/** All files below the given names, or of the whole project. */
export function listFiles(...names: readonly string[]): string[] {
  const starts = names.length === 0 ? topLevelNames() : names;
  return starts.flatMap(listBelow).toSorted();
}

function listBelow(path: string): string[] {
  const entries = readEntries(path);
  if (entries === undefined) return [path];
  return entries
    .filter((name) => !NOT_OURS.has(name))
    .flatMap((name) => listBelow(`${path}/${name}`));
}

function readEntries(path: string): string[] | undefined {
  try {
    return readdirSync(join(ROOT, path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOTDIR") return undefined;
    throw error;
  }
}

export function listTypeScript(...names: readonly string[]): string[] {
  return listFiles(...names).filter((path) => path.endsWith(".ts"));
}

export function readSource(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

const FROM = /(?:^|\n)\s*(?:import|export)\s+(type\s)?(?:[^;"'`]*?)\bfrom\s+"([^"]+)"/g;
const FOR_EFFECT = /(?:^|\n)\s*import\s+"([^"]+)"/g;
const DYNAMIC = /\bimport\(\s*"([^"]+)"\s*\)/g;

/** Every import of a source text: type-only, re-exports, for effect and `import()` too. */
export function parseImports(from: string, source: string): Import[] {
  const found: Import[] = [];
  for (const match of source.matchAll(FROM)) {
    const kind = match[1] === undefined ? "static" : "type";
    found.push({ from, to: resolveTarget(from, match[2] ?? ""), kind });
  }
  for (const match of source.matchAll(FOR_EFFECT)) {
    found.push({ from, to: resolveTarget(from, match[1] ?? ""), kind: "static" });
  }
  for (const match of source.matchAll(DYNAMIC)) {
    found.push({ from, to: resolveTarget(from, match[1] ?? ""), kind: "dynamic" });
  }
  return found;
}

function resolveTarget(from: string, specifier: string): string {
  if (!specifier.startsWith(".")) return specifier;
  return normalize(join(dirname(from), specifier));
}

export function readImports(...names: readonly string[]): Import[] {
  return listTypeScript(...names).flatMap((path) => parseImports(path, readSource(path)));
}

const transpiler = new Bun.Transpiler({ loader: "ts", target: "bun" });

/** The code alone: what a comment says about a banned call is no call. */
export function withoutComments(source: string): string {
  return transpiler.transformSync(source);
}
