/** The rooms of `src/` and the floors they stand on: imports point down only. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { listTypeScript, parseImports, readImports, ROOT } from "./source-files.ts";
import type { Import } from "./source-files.ts";

/** From the ground up; rooms on one floor do not know each other. */
const FLOORS: readonly (readonly string[])[] = [
  ["core"],
  ["os"],
  ["lease", "tree", "output", "probe", "progress", "circuit", "journal", "notify"],
  ["run", "inspect", "fence", "retry", "repair", "patrol", "doctor", "job"],
  ["cli"],
  ["main"],
];

/** Each costs more than a whole empty start of the binary. */
const SLOW_PACKAGES = ["zod", "citty", "consola", "yaml"];

const PACKAGES = [...SLOW_PACKAGES];

/** The room of a path in `src/`; `src/main.ts` is a room of its own. */
function roomOf(path: string): string {
  return path.split("/")[1]?.replace(/\.ts$/, "") ?? "";
}

function floorOf(room: string): number {
  return FLOORS.findIndex((rooms) => rooms.includes(room));
}

function isOurs(edge: Import): boolean {
  return edge.to.includes("/") && !edge.to.includes(":") && !PACKAGES.includes(edge.to);
}

/** What is wrong with an edge between two of our files, or undefined. */
function violationOf(edge: Import): string | undefined {
  const [from, to] = [roomOf(edge.from), roomOf(edge.to)];
  const line = `${edge.from} -> ${edge.to}`;
  if (!edge.to.startsWith("src/")) return `${line}: leaves src/`;
  if (floorOf(from) === -1 || floorOf(to) === -1) return `${line}: a room without a floor`;
  if (from === to) return undefined;
  if (floorOf(to) === floorOf(from)) return `${line}: rooms on one floor`;
  return floorOf(to) < floorOf(from) ? undefined : `${line}: points up`;
}

function violationsOf(edges: readonly Import[]): string[] {
  return edges.filter(isOurs).flatMap((edge) => violationOf(edge) ?? []);
}

/** Everything that is loaded with `start`, before any `import()`. */
function reachedStatically(start: string, edges: readonly Import[]): Set<string> {
  const reached = new Set([start]);
  for (const path of reached) {
    for (const edge of edges) {
      if (edge.from === path && edge.kind === "static") reached.add(edge.to);
    }
  }
  return reached;
}

const edges = readImports("src");

describe("imports in src/", () => {
  test("point down only, type-only and dynamic ones too", () => {
    expect(edges.filter(isOurs).length).toBeGreaterThan(0);
    expect(edges.some((edge) => edge.kind === "type")).toBe(true);
    expect(violationsOf(edges)).toEqual([]);
  });

  test("name an existing file with its ending", () => {
    const missing = edges.filter(isOurs).filter((edge) => !existsSync(join(ROOT, edge.to)));
    expect(missing).toEqual([]);
  });

  test("come from known packages and built-in modules only", () => {
    const strange = edges.filter(
      (edge) => !isOurs(edge) && !/^(node|bun):/.test(edge.to) && !PACKAGES.includes(edge.to),
    );
    expect(strange).toEqual([]);
  });

  test("of core/ reach core/ alone: no clock, no I/O, no package", () => {
    const outward = edges.filter(
      (edge) => roomOf(edge.from) === "core" && !edge.to.startsWith("src/core/"),
    );
    expect(outward).toEqual([]);
  });

  test("keep slow packages off the way to the command's start", () => {
    const entryPoints = listTypeScript("src").filter((path) => /main\.ts$|-worker\.ts$/.test(path));
    expect(entryPoints).toContain("src/main.ts");
    for (const entryPoint of entryPoints) {
      const reached = reachedStatically(entryPoint, edges);
      expect([entryPoint, ...SLOW_PACKAGES.filter((name) => reached.has(name))]).toEqual([
        entryPoint,
      ]);
    }
  });

  test("into main.ts do not exist", () => {
    expect(edges.filter((edge) => edge.to === "src/main.ts")).toEqual([]);
  });
});

describe("the direction test itself", () => {
  test.each([
    [`import { a } from "../os/clock.ts";`, "points up"],
    [`import type { A } from "../os/clock.ts";`, "points up"],
    [`export { a } from "../run/run.ts";`, "points up"],
    [`import {\n  a,\n  b,\n} from "../cli/help.ts";`, "points up"],
    [`const a = await import("../cli/help.ts");`, "points up"],
    [`import "../main.ts";`, "points up"],
    [`import { a } from "../utilities/a.ts";`, "a room without a floor"],
    [`import { a } from "../../test/support/a.ts";`, "leaves src/"],
  ])("sees %j in core/", (source, complaint) => {
    const found = violationsOf(parseImports("src/core/planted.ts", source));
    expect(found).toHaveLength(1);
    expect(found[0]).toEndWith(complaint);
  });

  test("sees rooms on one floor that know each other", () => {
    const planted = parseImports("src/tree/planted.ts", `import { a } from "../output/copy.ts";`);
    expect(violationsOf(planted)).toEqual([
      "src/tree/planted.ts -> src/output/copy.ts: rooms on one floor",
    ]);
  });

  test("lets imports down and within a room pass", () => {
    const source = `import { a } from "../core/a.ts";\nimport { b } from "./b.ts";`;
    const planted = parseImports("src/tree/planted.ts", source);
    expect(planted).toHaveLength(2);
    expect(violationsOf(planted)).toEqual([]);
  });

  test("follows static imports, and neither types nor import()", () => {
    const planted = [
      ...parseImports("src/main.ts", `import { a } from "./cli/a.ts";`),
      ...parseImports("src/cli/a.ts", `import { z } from "zod";\nawait import("citty");`),
      ...parseImports("src/cli/a.ts", `import type { C } from "consola";`),
    ];
    expect([...reachedStatically("src/main.ts", planted)]).toEqual([
      "src/main.ts",
      "src/cli/a.ts",
      "zod",
    ]);
  });
});

describe("tests of the binary", () => {
  /** From `test/e2e` outwards over what it imports, so that a support file cannot smuggle it in. */
  test("import nothing from src/, not even through a support file", () => {
    const testEdges = readImports("test");
    const tests = listTypeScript("test/e2e");
    expect(tests.length).toBeGreaterThan(0);
    for (const path of tests) {
      const everyKind = testEdges.map((edge) => ({ ...edge, kind: "static" as const }));
      const reached = [...reachedStatically(path, everyKind)];
      expect([path, ...reached.filter((name) => name.startsWith("src/"))]).toEqual([path]);
    }
  });
});
