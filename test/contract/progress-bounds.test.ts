/** What a hostile or careless job can do to whoever counts its items: nothing without a bound. */
import { afterAll, expect, test } from "bun:test";
import { chmodSync, chownSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { resolve } from "node:path";
import { LineCounter } from "../../src/progress/line-counter.ts";
import {
  makeProgressFile,
  openProgress,
  progressPath,
  removeProgressFile,
  sweepProgress,
} from "../../src/progress/place.ts";

const STATE = mkdtempSync(`${tmpdir()}/watchdog-bounds-`);
chmodSync(STATE, 0o700);
afterAll(() => rmSync(STATE, { recursive: true, force: true }));
const NO_LIMITS = { maxFailRate: undefined, maxConsecutiveFails: undefined };
const isRoot = process.getuid?.() === 0;

function runId(number: number): string {
  return `01999999-0000-7000-9000-${String(number).padStart(12, "0")}`;
}

test("a line without an end takes no more memory than a line may be long", () => {
  const counter = new LineCounter(NO_LIMITS);
  const piece = new Uint8Array(65_536).fill(120);
  const before = process.memoryUsage.rss();
  for (let pieces = 0; pieces < 3_000; pieces += 1) counter.take(piece);
  expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 1024 ** 2);
  counter.take(Buffer.from("\nok\n"));
  expect(counter.counts).toMatchObject({ ok: 1, ignored: 1 });
}, 30_000);

test("a rate is judged with a good item, too, and not only once it is diluted", () => {
  const counter = new LineCounter({ ...NO_LIMITS, maxFailRate: 20 });
  counter.take(Buffer.from("fail 10\n"));
  expect(counter.failure).toBeUndefined();
  counter.take(Buffer.from("ok 10\nok 90\n"));
  counter.end();
  expect(counter.failure).toMatchObject({ because: "too-many-failed", failed: 10, done: 20 });
});

test("a pipe in the place of the file is not waited for", () => {
  const { path, fd } = makeProgressFile(STATE, runId(1));
  removeProgressFile({ path, fd });
  expect(Bun.spawnSync(["mkfifo", path]).exitCode).toBe(0);
  const module = resolve("src/progress/place.ts");
  const script = `const { openProgress } = await import("${module}");
    if (openProgress("${path}") !== undefined) throw new Error("a pipe was opened");`;
  const { exitCode } = Bun.spawnSync([process.execPath, "-e", script], { timeout: 20_000 });
  rmSync(path);
  expect(exitCode).toBe(0);
}, 30_000);

test.if(isRoot)("a file of another user in its place is not counted", () => {
  const { path, fd } = makeProgressFile(STATE, runId(2));
  removeProgressFile({ path, fd });
  writeFileSync(path, "ok 5\n", { mode: 0o600 });
  const own = openProgress(path);
  expect(own).toBeNumber();
  chownSync(path, 65_534, 65_534);
  expect(openProgress(path)).toBeUndefined();
  rmSync(path);
});

test("of many that died so many are cleared away at a time that nobody notices", () => {
  removeProgressFile(makeProgressFile(STATE, runId(99)));
  for (let number = 100; number < 350; number += 1) {
    writeFileSync(progressPath(STATE, runId(number)), "", { mode: 0o600 });
  }
  expect([sweepProgress(STATE), sweepProgress(STATE), sweepProgress(STATE)]).toEqual([200, 50, 0]);
  expect(readdirSync(`${STATE}/progress`)).toEqual([]);
});
