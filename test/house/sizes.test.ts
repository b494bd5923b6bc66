/**
 * Sizes of files, lines and functions (the linter measures functions; that it does is tested here).
 */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listFiles, readSource, ROOT } from "./source-files.ts";

const MAX_FILE_LINES = 400;
const MAX_LINE_LENGTH = 100;
const MAX_FUNCTION_LINES = 60;
const MAX_DEPTH = 3;

const SCRIPTS = /\.(ts|sh|py)$|^\.ci\/run$/;
const paths = listFiles("src", "test", "build.ts", "install.sh", ".ci").filter((path) =>
  SCRIPTS.test(path),
);

function linesOf(source: string): string[] {
  return source.replace(/\n$/, "").split("\n");
}

function longLinesOf(path: string, source: string): string[] {
  return linesOf(source).flatMap((line, index) =>
    [...line].length > MAX_LINE_LENGTH ? [`${path}:${index + 1}`] : [],
  );
}

/** The linter's complaints about one source text, with the project's own rules. */
function lint(source: string): string {
  const directory = mkdtempSync(join(tmpdir(), "watchdog-lint-"));
  try {
    writeFileSync(join(directory, "planted.ts"), source);
    const words = ["--config", join(ROOT, ".oxlintrc.json"), "--deny-warnings", directory];
    const linter = join(ROOT, "node_modules/.bin/oxlint");
    const done = Bun.spawnSync([process.execPath, linter, ...words], { cwd: ROOT });
    return done.stdout.toString() + done.stderr.toString();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function functionOfLines(count: number): string {
  const body = Array.from({ length: count - 2 }, (_, index) => `  parts.push(${index});`);
  return ["export function planted(parts: number[]): void {", ...body, "}", ""].join("\n");
}

function functionOfDepth(depth: number): string {
  const open = Array.from({ length: depth }, (_, index) => `if (n > ${index}) {`).join(" ");
  return `export function planted(n: number): void { ${open} n.toFixed(); ${"}".repeat(depth)} }\n`;
}

describe("sizes", () => {
  test(`no file has more than ${MAX_FILE_LINES} lines`, () => {
    expect(paths.length).toBeGreaterThan(10);
    const sizes = paths.map((path) => ({ path, lines: linesOf(readSource(path)).length }));
    expect(sizes.filter(({ lines }) => lines > MAX_FILE_LINES)).toEqual([]);
  });

  test(`no line is longer than ${MAX_LINE_LENGTH}`, () => {
    expect(paths.flatMap((path) => longLinesOf(path, readSource(path)))).toEqual([]);
    expect(longLinesOf("planted", `short\n${"x".repeat(MAX_LINE_LENGTH + 1)}\n`)).toEqual([
      "planted:2",
    ]);
  });

  test(`the linter refuses a function of more than ${MAX_FUNCTION_LINES} lines`, () => {
    expect(lint(functionOfLines(MAX_FUNCTION_LINES + 1))).toContain("max-lines-per-function");
    expect(lint(functionOfLines(MAX_FUNCTION_LINES))).toContain("Found 0 warnings and 0 errors");
  });

  test(`the linter refuses blocks nested deeper than ${MAX_DEPTH}`, () => {
    expect(lint(functionOfDepth(MAX_DEPTH + 1))).toContain("max-depth");
    expect(lint(functionOfDepth(MAX_DEPTH))).toContain("Found 0 warnings and 0 errors");
  });

  test("the linter refuses an empty catch", () => {
    expect(lint("try { JSON.parse(''); } catch {}\n")).toContain("no-empty");
  });

  test("no source switches the linter off", () => {
    const switches = new RegExp(["oxlint", "eslint"].map((name) => `${name}-disable`).join("|"));
    const found = paths.filter((path) => switches.test(readSource(path)));
    expect(found).toEqual([]);
  });
});
