/** Patrols that go on for ever: again and again, and anew where the process is worn out. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isWornOut, patrolForEver } from "../../src/patrol/loop.ts";

const scratch = mkdtempSync(join(tmpdir(), "watchdog-loop-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

class Enough extends Error {}

test("go on after each other, and anew only where the process is worn out", async () => {
  const steps: string[] = [];
  const loop = patrolForEver({
    periodMs: 1,
    round: async () => {
      steps.push("round");
      if (steps.length > 5) throw new Enough();
    },
    isWorn: () => steps.length === 2,
    renew: () => void steps.push("anew"),
  });
  expect(await loop.catch((error: unknown) => error)).toBeInstanceOf(Enough);
  expect(steps).toEqual(["round", "round", "anew", "round", "round", "round"]);
});

test("begin a period after each other, however long each of them takes", async () => {
  const [periodMs, roundMs] = [200, 150];
  const begun: number[] = [];
  const ended: number[] = [];
  const loop = patrolForEver({
    periodMs,
    round: async () => {
      begun.push(performance.now());
      if (begun.length > 5) throw new Enough();
      await Bun.sleep(roundMs);
      ended.push(performance.now());
    },
    isWorn: () => false,
    renew: () => undefined,
  });
  expect(await loop.catch((error: unknown) => error)).toBeInstanceOf(Enough);
  const pauses = ended.map((at, index) => (begun[index + 1] ?? at) - at);
  const periods = begun.slice(1).map((at, index) => at - (begun[index] ?? at));
  // Never sooner; and not a whole period after the end, on a machine that is busy most of the time.
  expect(Math.min(...periods)).toBeGreaterThanOrEqual(periodMs - 1);
  expect(Math.min(...pauses)).toBeLessThan(periodMs);
});

test("are not worn out by their first rounds", () => {
  // The process of all tests may be larger than a patrol.
  const isLarge = process.memoryUsage.rss() > 160 * 1024 ** 2;
  expect(isWornOut()).toBe(isLarge);
});

test("begin anew as the same process, with the same words and environment", async () => {
  const file = join(scratch, "lines");
  const words = [process.execPath, join(import.meta.dir, "../fixtures/renews-itself.ts"), "a b"];
  const env = { ...process.env, RENEWED_FILE: file };
  const child = Bun.spawn(words, { env, stdout: "inherit", stderr: "inherit" });
  expect(await child.exited).toBe(0);
  const line = `${child.pid} a b`;
  expect(readFileSync(file, "utf8").trimEnd().split("\n")).toEqual([line, line, line]);
});
