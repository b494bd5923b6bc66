/**
 * The project as a whole: what lies at its top, what it depends on, how things are named, what it
 * speaks of.
 */
import { describe, expect, test } from "bun:test";
import { listFiles, readSource, topLevelNames } from "./source-files.ts";

const TOP_LEVEL = [
  ".ci",
  ".gitignore",
  ".oxlintrc.json",
  "LICENSE",
  "README.md",
  "build.ts",
  "bunfig.toml",
  "install.sh",
  "package-lock.json",
  "package.json",
  "src",
  "test",
  "tsconfig.json",
];

const RUNTIME_DEPENDENCIES = ["citty", "consola", "yaml", "zod"];
const BUILD_DEPENDENCIES = [
  "bun",
  "bun-types",
  "fast-check",
  "oxlint",
  "playwright-core",
  "typescript",
];

interface Described {
  readonly dependencies: Record<string, string>;
  readonly devDependencies: Record<string, string>;
}

interface Locked {
  readonly packages: Record<string, { integrity?: string; resolved?: string; version: string }>;
}

describe("the project", () => {
  test("has nothing at its top that is not listed here", () => {
    expect(topLevelNames().filter((name) => !TOP_LEVEL.includes(name))).toEqual([]);
  });

  test("depends on the named packages alone, each in one exact version", () => {
    const { dependencies, devDependencies } = JSON.parse(readSource("package.json")) as Described;
    expect(Object.keys(dependencies).toSorted()).toEqual(RUNTIME_DEPENDENCIES);
    expect(Object.keys(devDependencies).toSorted()).toEqual(BUILD_DEPENDENCIES);
    const versions = Object.values({ ...dependencies, ...devDependencies });
    expect(versions.filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  });

  test("locks every package by its hash and names no host to fetch it from", () => {
    const { packages } = JSON.parse(readSource("package-lock.json")) as Locked;
    const locked = Object.entries(packages).filter(([path]) => path !== "");
    expect(locked.length).toBeGreaterThan(BUILD_DEPENDENCIES.length);
    expect(locked.filter(([, { integrity }]) => integrity?.startsWith("sha512-") !== true)).toEqual(
      [],
    );
    expect(locked.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
    const { devDependencies } = JSON.parse(readSource("package.json")) as Described;
    expect(packages["node_modules/bun"]?.version).toBe(devDependencies["bun"] ?? "");
  });
});

describe("names", () => {
  const EMPTY_WORDS = /(^|[-./])(util|utils|helper|helpers|common|manager|misc)([-./]|$)/;
  const KEBAB = /^(\.?[a-z0-9]+(-[a-z0-9]+)*)(\.[a-z0-9]+)*$/;
  const paths = listFiles("src", "test");

  test("say what a file is: no utils, helpers, common or manager", () => {
    expect(EMPTY_WORDS.test("src/os/string-utils.ts")).toBe(true);
    expect(EMPTY_WORDS.test("test/helpers/a.ts")).toBe(true);
    expect(paths.length).toBeGreaterThan(10);
    expect(paths.filter((path) => EMPTY_WORDS.test(path))).toEqual([]);
  });

  test("of TypeScript files and their folders are kebab-case", () => {
    const isKebab = (path: string): boolean => path.split("/").every((part) => KEBAB.test(part));
    expect(isKebab("src/os/stringThings.ts")).toBe(false);
    expect(isKebab("src/os_things/a.ts")).toBe(false);
    expect(paths.filter((path) => path.endsWith(".ts") && !isKebab(path))).toEqual([]);
  });

  test("of unit tests mirror src/", () => {
    const units = listFiles("test/unit").filter((path) => path.endsWith(".test.ts"));
    const rooms = new Set(listFiles("src").map((path) => path.split("/")[1]));
    expect(units.length).toBeGreaterThan(0);
    expect(units.filter((path) => !rooms.has(path.split("/")[2]))).toEqual([]);
  });
});

describe("what the project speaks of", () => {
  /** Halves are joined here, so that this file does not find itself. */
  const join = (...halves: readonly string[]): string => halves.join("");
  const MACHINE_PATHS = new RegExp(`(?<![\\w$}*.-])/(${["work", "root"].join("|")})/`);
  const HOSTS = new RegExp(
    join(
      "npm",
      "js\\.(org|com)|",
      "://reg",
      "istry|",
      "reg",
      "istry\\.[\\w.-]+\\.(com|org|net|io|dev)",
    ),
    "i",
  );
  const MAKERS = new RegExp(
    [
      join("\\bcla", "ude"),
      join("anthr", "opic"),
      join("\\bopen", "ai\\b"),
      join("\\bchat", "gpt"),
      join("\\bco", "pilot\\b"),
      join("language", " model"),
      join("\\bai[- ]", "(generated|written|assisted)"),
      join("co-", "authored-by"),
      join("generated ", "(by|with) (an? )?(ai|agent|assistant)"),
    ].join("|"),
    "i",
  );
  /** Hashes in base64 contain any word sooner or later. */
  const paths = listFiles().filter((path) => path !== "package-lock.json");

  function found(pattern: RegExp): string[] {
    return paths.flatMap((path) => {
      const match = pattern.exec(readSource(path));
      return match === null ? [] : [`${path}: ${match[0]}`];
    });
  }

  test("is no path of the machine it was written on", () => {
    expect(MACHINE_PATHS.test(join("see /wo", "rk/main"))).toBe(true);
    expect(MACHINE_PATHS.test(join("cd /ro", "ot/x"))).toBe(true);
    expect(MACHINE_PATHS.test("/$bunfs/root/x")).toBe(false);
    expect(found(MACHINE_PATHS)).toEqual([]);
  });

  test("is no package host", () => {
    expect(HOSTS.test(join("https:/", "/registry", ".npm", "js.org/zod"))).toBe(true);
    expect(found(HOSTS)).toEqual([]);
    expect(HOSTS.test(readSource("package-lock.json"))).toBe(false);
  });

  test("is no author and no tool of the author's", () => {
    expect(MAKERS.test(join("Co-", "Authored-By: x"))).toBe(true);
    expect(found(MAKERS)).toEqual([]);
  });
});
