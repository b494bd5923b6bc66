/**
 * Limits and the time in which a run is paused: `--timeout` and `--idle-timeout` stand still, and
 * count with `--count-paused`. Judged by which end a run came to, and by its own numbers; the
 * dependency never comes back unless a test says so, and so a run that ends has not waited for it.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { openPausing, type PausingRun } from "../support/pausing.ts";
import { waitForText } from "../support/processes.ts";
import { waitFor } from "../support/wait-for.ts";

const { scene, start } = openPausing(import.meta.file);
const LIMIT_MS = 180_000;
/** Long enough to be paused before it is over, on a loaded machine. */
const LIMIT = { timeout: 7_000, idle_timeout: 6_000 } as const;
/** Timers may come a moment early against the clock of the record. */
const SLACK_MS = 20;

interface Case {
  readonly outcome: keyof typeof LIMIT;
  readonly flag: string;
  /** It says that it is ready, and goes on without an end. */
  readonly script: string;
}

const CASES: readonly Case[] = [
  {
    outcome: "timeout",
    flag: "--timeout",
    script: 'echo ready >"$0"; while :; do sleep 0.02; done',
  },
  { outcome: "idle_timeout", flag: "--idle-timeout", script: 'echo ready >"$0"; exec sleep 92401' },
];

async function startLimited(one: Case, name: string, more: readonly string[]): Promise<PausingRun> {
  const file = scene.path(name);
  const args = [one.flag, `${LIMIT[one.outcome]}ms`, ...more];
  const run = await start({ name, args, command: ["sh", "-c", one.script, file] });
  await waitForText(file);
  return run;
}

describe.each(CASES.map((one) => [one.flag, one] as const))("%s", (_, one) => {
  const limitMs = LIMIT[one.outcome];

  test(
    "stands still while the tree does, and ends the run after that",
    async () => {
      const run = await startLimited(one, `still-${one.outcome}`, []);
      await run.pause();
      const began = performance.now();
      await waitFor(() => performance.now() - began > limitMs + 300, "more than the limit");
      expect(run.record()["state"]).toBe("running");
      expect(run.stopped()).not.toEqual([]);
      await run.resume();
      expect((await run.started.ended).status).toBe(124);
      const record = run.record();
      expect(record["outcome"]).toBe(one.outcome);
      expect(record["paused_ms"]).toBeGreaterThan(limitMs);
      expect(record["duration_ms"] - record["paused_ms"]).toBeGreaterThan(limitMs - SLACK_MS);
    },
    LIMIT_MS,
  );

  test(
    "goes on with --count-paused, and ends the run in its pause",
    async () => {
      const run = await startLimited(one, `counted-${one.outcome}`, ["--count-paused"]);
      await run.pause();
      expect((await run.started.ended).status).toBe(124);
      const record = run.record();
      expect(record).toMatchObject({
        outcome: one.outcome,
        dependencies: [{ state: expect.stringMatching(/open/) }],
      });
      expect(record["paused_ms"]).toBeGreaterThan(0);
      expect(record["duration_ms"]).toBeGreaterThan(limitMs - SLACK_MS);
      expect(record["duration_ms"] - record["paused_ms"]).toBeLessThan(limitMs);
      await run.waitUntilGone();
    },
    LIMIT_MS,
  );
});

test(
  "who works before a long pause and after it was not idle in between",
  async () => {
    const gate = scene.path("busy.gate");
    const script = `until [ -e "$0" ]; do echo working; sleep 0.05; done`;
    const args = ["--idle-timeout", "2s"];
    const run = await start({ name: "busy", args, command: ["sh", "-c", script, gate] });
    await run.pause();
    const began = performance.now();
    await waitFor(() => performance.now() - began > 2_300, "more than the limit");
    await run.resume();
    // What it prints now is new: the limit would have come with the first look before it.
    const asked = run.dependency.asked;
    await waitFor(() => run.dependency.asked > asked + 2, "two periods more");
    expect(existsSync(gate)).toBe(false);
    writeFileSync(gate, "");
    const ended = await run.started.ended;
    expect([ended.status, run.record()["outcome"]]).toEqual([0, "ok"]);
    expect(run.record()["paused_ms"]).toBeGreaterThan(2_000);
  },
  LIMIT_MS,
);

test(
  "a run that is not paused has paused_ms 0, whatever its dependency does",
  async () => {
    const run = await start({
      name: "told",
      args: ["--on-open", "notify"],
      command: ["sh", "-c", 'until [ -e "$0" ]; do sleep 0.02; done', scene.path("told.gate")],
    });
    run.dependency.isUp = false;
    await waitFor(() => run.events("circuit_open").length > 0, "an open circuit");
    writeFileSync(scene.path("told.gate"), "");
    expect((await run.started.ended).status).toBe(0);
    expect(run.record()).toMatchObject({ outcome: "ok", paused_ms: 0 });
  },
  LIMIT_MS,
);
