/** When the files that a job is expected to write last changed, seen while it runs: real files. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FileExpectation } from "../../src/core/expectations.ts";
import { lookAtFiles } from "../../src/run/checks/expected-files.ts";
import { FileWatch } from "../../src/run/progress/file-watch.ts";

const top = mkdtempSync(join(tmpdir(), "watchdog-watched-"));
afterAll(() => rmSync(top, { recursive: true, force: true }));
let count = 0;

function fresh(): string {
  const directory = join(top, `place-${(count += 1)}`);
  mkdirSync(directory);
  return directory;
}

function expecting(...targets: string[]): readonly FileExpectation[] {
  return targets.map((target) => ({ target, minBytes: 1, minRatio: undefined, isAnyAge: false }));
}

/** As a run does it: what is there before the start is no change. */
async function watch(directory: string, ...targets: string[]): Promise<FileWatch> {
  const expectations = expecting(...targets);
  const before = await lookAtFiles(directory, expectations, "start");
  return new FileWatch(directory, expectations, before);
}

async function look(files: FileWatch): Promise<number | undefined> {
  await files.look();
  return files.changedAt;
}

describe("a file that is expected", () => {
  test.each<[string, (path: string) => void]>([
    ["written", (path) => writeFileSync(path, "now")],
    [
      "put in its place",
      (path) => (writeFileSync(`${path}.new`, "was"), renameSync(`${path}.new`, path)),
    ],
    ["removed", (path) => rmSync(path)],
  ])("is not news as it was, and is when it is %s, once", async (_, change) => {
    const directory = fresh();
    const path = join(directory, "out");
    writeFileSync(path, "was");
    const files = await watch(directory, "out");
    expect(await look(files)).toBeUndefined();
    change(path);
    const at = (await look(files)) ?? 0;
    expect(at).toBeGreaterThan(0);
    expect(await look(files)).toBe(at);
    writeFileSync(path, "and again");
    expect(await look(files)).toBeGreaterThan(at);
  });

  test("is news where it comes up in a directory or for a pattern", async () => {
    for (const target of ["parts", "parts/*.csv"]) {
      const directory = fresh();
      mkdirSync(join(directory, "parts"));
      const files = await watch(directory, target);
      expect(await look(files)).toBeUndefined();
      writeFileSync(join(directory, "parts", "one.csv"), "1");
      expect(await look(files)).toBeGreaterThan(0);
    }
  });
});

describe("is looked at no more", () => {
  test("what cannot be read: of looks that hang each would take a thread", async () => {
    const directory = fresh();
    const path = join(directory, "out");
    const [files, other] = [await watch(directory, "out"), await watch(directory, "out")];
    symlinkSync("out", path); // ELOOP
    expect(await look(files)).toBeUndefined();
    rmSync(path);
    writeFileSync(path, "now");
    expect(await look(files)).toBeUndefined();
    expect(await look(other)).toBeGreaterThan(0);
  });

  test("what is many files", async () => {
    const [few, many] = [fresh(), fresh()];
    for (let at = 0; at < 1_001; at += 1) {
      writeFileSync(join(many, String(at)), "");
      if (at > 0) writeFileSync(join(few, String(at)), "");
    }
    const [watched, unwatched] = [await watch(few, few), await watch(many, many)];
    for (const directory of [few, many]) writeFileSync(join(directory, "1"), "now");
    expect(await look(watched)).toBeGreaterThan(0);
    expect(await look(unwatched)).toBeUndefined();
  });

  test("what is looked at already: the second look is over before the first", async () => {
    const files = await watch(fresh(), "out");
    const over: string[] = [];
    const first = files.look().then(() => over.push("first"));
    await files.look().then(() => over.push("second"));
    await first;
    expect(over).toEqual(["second", "first"]);
  });
});
