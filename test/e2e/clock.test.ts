/**
 * Clocks that are wrong: the wall clock an hour off or decades off, a machine that was suspended,
 * beats from the future. Spans, ages and verdicts stand on CLOCK_MONOTONIC and must not care; who
 * may run is the kernel's word alone.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { ask, askJson, askLines } from "../support/ask.ts";
import {
  holdJob,
  type Holder,
  newcomer,
  placeOf,
  readLease,
  readSlot,
  RELEASED,
  type SeenPlace,
  shiftSlot,
  waitForBeat,
  waitForBurial,
  waitForJournal,
} from "../support/lease-seen.ts";
import { findByCommand, readStatusLine, waitForCommand } from "../support/processes.ts";
import { FAULTS, FIXTURES, openScene, RELEASE, type RunOptions } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LOCKED = 75;
const TIMEOUT = 124;
const LIMIT_MS = 180_000;
/** Often, and not old as soon as a busy machine lets one wait. */
const BEATS = ["--heartbeat-interval", "200ms", "--stale-after", "30s"];
const HOUR_S = 3600;
const HOUR_MS = HOUR_S * 1000;
const YEAR_S = 31_557_600;
const YEAR_MS = YEAR_S * 1000;

const compiler = Bun.which("cc");
if (compiler === null) console.error("needs cc, not run here: a wall clock that is stepped");
const clockTest = test.skipIf(compiler === null);

let stepper: string | undefined;

/** An environment whose wall clock is ahead by what the file says, and the way to step it. */
async function steppedClock(name: string): Promise<{
  env: Record<string, string>;
  step(seconds: number): void;
}> {
  const [library, file] = [scene.path("steps-wall-clock.so"), scene.path(`${name}.step`)];
  if (stepper === undefined) {
    const words = [compiler ?? "cc", "-shared", "-fPIC", "-o", library];
    const made = scene.startProgram([...words, `${FIXTURES}/steps-wall-clock.c`, "-ldl"]);
    expect((await made.ended).status).toBe(0);
    stepper = library;
  }
  const step = (seconds: number): void => {
    // Replaced as a whole: a reader never finds half a number.
    writeFileSync(`${file}.new`, String(seconds));
    renameSync(`${file}.new`, file);
  };
  step(0);
  return { env: { LD_PRELOAD: library, STEPS_WALL_CLOCK: file }, step };
}

/** Statuses of the runs of a job, oldest first, as the history has them. */
async function historyOf(name: string): Promise<{ outcome: string; durationMs: number }[]> {
  const { runs } = await askJson(scene, ["history", name]);
  type Row = { outcome: string; duration_ms: number };
  return runs
    .map(({ outcome, duration_ms: durationMs }: Row) => ({ outcome, durationMs }))
    .toReversed();
}

async function statusOf(name: string, options: RunOptions = {}) {
  const ended = await ask(scene, ["status", name, "--json"], options);
  expect([ended.status, ended.stderr]).toEqual([0, ""]);
  return JSON.parse(ended.stdout.toString()).leases[0];
}

describe("A-58: a wall clock that is stepped during a run by", () => {
  for (const [title, seconds] of [
    ["an hour forward", HOUR_S],
    ["an hour back", -HOUR_S],
  ] as const) {
    clockTest(
      `${title} changes no limit, no verdict and no order`,
      async () => {
        const name = seconds > 0 ? "forward" : "back";
        const { env, step } = await steppedClock(name);
        const words = ["--name", name, "--log", "off", ...BEATS, "--kill-after", "1s"];
        const place = placeOf(scene.stateDirectory, name);
        const run = scene.start(
          [...words, "--timeout", "12s", ...scene.recordTo(name), "--", "sleep", "91058"],
          { env },
        );
        const before = await waitForBeat(place, 3);
        await waitForJournal(scene.stateDirectory, name);
        step(seconds);
        const after = await waitFor(() => {
          const slot = readSlot(place.slot(1));
          return slot !== undefined && Math.abs(slot.wallMs - before.wallMs) > HOUR_MS / 2 && slot;
        }, "a beat that shows the step");
        expect(Math.abs(after.monotonicMs - before.monotonicMs)).toBeLessThan(HOUR_MS / 2);

        const second = await newcomer(scene, name, [], { env });
        expect([second.status, second.stdout.toString(), second.stderr]).toEqual([LOCKED, "", ""]);
        expect(await statusOf(name, { env })).toMatchObject({
          verdict: "held",
          because: "beat-fresh",
        });

        const ended = await run.ended;
        expect(ended.status).toBe(TIMEOUT);
        expect(ended.stderr).toBe("watchdog: ended by --timeout: sent TERM to the whole tree\n");
        const record = scene.readRecord(name);
        expect(record).toMatchObject({ outcome: "timeout", suspended_ms: 0 });
        expect(record["duration_ms"]).toBeGreaterThanOrEqual(11_900);
        expect(record["duration_ms"]).toBeLessThan(60_000);
        // The step did come about: for people the run lasted an hour more or less.
        const shownMs = Date.parse(record["ended_at"]) - Date.parse(record["started_at"]);
        expect(Math.abs(shownMs - seconds * 1000)).toBeLessThan(60_000);

        const next = await newcomer(scene, name, [], { env });
        expect([next.status, next.stdout.toString(), next.stderr]).toEqual([0, "STOLEN\n", ""]);
        step(0);
        expect((await newcomer(scene, name, [], { env })).status).toBe(0);
        const history = await historyOf(name);
        expect(history.map(({ outcome }) => outcome)).toEqual(["timeout", "locked", "ok", "ok"]);
        expect(history.every(({ durationMs }) => durationMs >= 0)).toBe(true);
        expect(readLease(place)).toMatchObject({ generation: 3, state: "released" });
      },
      LIMIT_MS,
    );
  }
});

clockTest("a clock that starts in 1970 or in 2100 stops no run and no grant", async () => {
  const { env, step } = await steppedClock("decades");
  const nowS = Math.floor(Date.now() / 1000);
  const place = placeOf(scene.stateDirectory, "decades");
  const clocks = [0, 100 - nowS, 0, 130 * YEAR_S - nowS, 0];
  for (const [index, seconds] of clocks.entries()) {
    step(seconds);
    const ended = await newcomer(scene, "decades", [], { env });
    expect([seconds, ended.status, ended.stderr]).toEqual([seconds, 0, ""]);
    expect(readLease(place)).toMatchObject({ generation: index + 1, state: "released" });
  }
  const at = readLease(place)["acquired_at"];
  expect(Math.abs(Date.parse(at) - Date.now())).toBeLessThan(LIMIT_MS);
  expect((await historyOf("decades")).at(-1)?.outcome).toBe("ok");
});

/** A holder on the fault build, whose BOOTTIME and wall clock can be put ahead. */
async function holdSuspendable(name: string): Promise<Holder & { env: Record<string, string> }> {
  const clock = scene.path(`${name}.clock`);
  writeFileSync(clock, "0");
  const env = { WATCHDOG_FAULT_CLOCK: clock };
  const words = [...BEATS, "--timeout", "1h", ...scene.recordTo(name)];
  return { env, ...(await holdJob(scene, name, words, { binary: FAULTS, env })) };
}

const SUSPENDED_MS = 2 * HOUR_MS;

test("a suspend makes nobody stalled, neither for sleepers nor for newcomers", async () => {
  const { run, place, release, env } = await holdSuspendable("suspended");
  const before = await waitForBeat(place, 4);
  const gapOf = ({ boottimeMs, monotonicMs }: typeof before): number => boottimeMs - monotonicMs;
  writeFileSync(env["WATCHDOG_FAULT_CLOCK"] ?? "", String(SUSPENDED_MS));
  const after = await waitFor(() => {
    const slot = readSlot(place.slot(1));
    return slot !== undefined && gapOf(slot) > gapOf(before) + HOUR_MS && slot;
  }, "a beat after the suspend");
  expect(gapOf(after) - gapOf(before)).toBeGreaterThan(SUSPENDED_MS - 1000);
  expect(after.monotonicMs - before.monotonicMs).toBeLessThan(HOUR_MS);

  // One that came after the machine woke up has the same clocks; one without them the old ones.
  for (const options of [{ binary: FAULTS, env }, { binary: RELEASE }]) {
    const seen = await statusOf("suspended", options);
    expect(seen).toMatchObject({ verdict: "held", rule: "R2", because: "beat-fresh" });
    expect(seen.heartbeat_age_ms).toBeLessThan(20_000);
    const second = await newcomer(scene, "suspended", [], options);
    expect([second.status, second.stderr]).toEqual([LOCKED, ""]);
  }
  release();
  const ended = await run.ended;
  expect([ended.status, ended.stderr]).toEqual([RELEASED, ""]);
  const record = scene.readRecord("suspended");
  expect(record).toMatchObject({ outcome: "failed", signals: [], degraded: [] });
  expect(record["suspended_ms"]).toBeGreaterThan(SUSPENDED_MS - 1000);
  expect(record["duration_ms"]).toBeLessThan(HOUR_MS);
});

test("negative twin: without a suspend the record tells none", async () => {
  const { run, place, release } = await holdSuspendable("awake");
  const first = await waitForBeat(place, 3);
  const later = await waitForBeat(place, first.sequence + 3);
  const gaps = [first, later].map(({ boottimeMs, monotonicMs }) => boottimeMs - monotonicMs);
  expect(Math.abs((gaps[1] ?? 0) - (gaps[0] ?? 0))).toBeLessThan(1000);
  release();
  expect((await run.ended).status).toBe(RELEASED);
  expect(scene.readRecord("awake")["suspended_ms"]).toBe(0);
});

/** A run whose watchdog was killed and whose tree the guard has ended; its last slot stays. */
async function leaveDead(name: string): Promise<SeenPlace> {
  const place = placeOf(scene.stateDirectory, name);
  const run = scene.start(["--name", name, "--log", "off", "--", "sleep", "91056"]);
  await waitForCommand(scene, "sleep 91056");
  await waitForBeat(place, 3);
  run.kill("SIGKILL");
  await run.ended;
  await waitFor(() => findByCommand(scene, "sleep 91056").length === 0, "the guard to bury");
  await waitForBurial(scene.stateDirectory, name);
  return place;
}

describe("A-56: a beat from the future", () => {
  test("of a dead owner holds up nobody, and is mentioned as such", async () => {
    const place = await leaveDead("a56");
    shiftSlot(place.slot(1), 3 * YEAR_MS);
    expect(await statusOf("a56")).toMatchObject({ verdict: "dead", because: "tree-empty" });
    const next = await newcomer(scene, "a56");
    expect([next.status, next.stdout.toString()]).toEqual([0, "STOLEN\n"]);
    expect(next.stderr).toMatch(
      /^watchdog: took over job:a56 from run .*, last beat \d+ s in the future\), .*\n$/,
    );
    expect(readLease(place)).toMatchObject({ generation: 2, state: "released" });
  });

  test("negative twin: a beat of the past is told as one", async () => {
    const place = await leaveDead("a56-past");
    const next = await newcomer(scene, "a56-past");
    expect(next.stderr).toMatch(/, last beat \d+ s ago\)/);
    expect(next.stderr).not.toContain("future");
    expect(readLease(place)).toMatchObject({ generation: 2, state: "released" });
  });

  test("of a living owner is no age at all: held, not fresh for ever", async () => {
    const { run, place, release } = await holdJob(scene, "a56-alive", BEATS);
    run.kill("SIGSTOP");
    await waitFor(() => readStatusLine(run.pid, "State")?.startsWith("T"), "it to be stopped");
    const { sequence } = await waitForBeat(place, 1);
    shiftSlot(place.slot(1), 3 * YEAR_MS);
    expect(await statusOf("a56-alive")).toMatchObject({ verdict: "held", because: "beat-unread" });
    const lines = (await askLines(scene, ["status", "a56-alive"])).join("\n");
    expect(lines).toMatch(/\n {2}beat +\d+ d( \d+ h)? in the future\n/);
    const second = await newcomer(scene, "a56-alive");
    expect([second.status, second.stdout.toString()]).toEqual([LOCKED, ""]);
    run.kill("SIGCONT");
    await waitForBeat(place, sequence + 1);
    expect(await statusOf("a56-alive")).toMatchObject({ verdict: "held", because: "beat-fresh" });
    release();
    expect((await run.ended).status).toBe(RELEASED);
  });
});

test("A-57: instants of the record that are a year off rob nobody", async () => {
  for (const years of [-1, 3]) {
    const name = `a57-${years}`;
    const { run, place, release } = await holdJob(scene, name, ["--stale-after", "30s"]);
    const year = new Date().getUTCFullYear();
    const text = readFileSync(place.record, "utf8");
    writeFileSync(place.record, text.replaceAll(`"${year}-`, `"${year + years}-`));
    expect(readFileSync(place.record, "utf8")).not.toBe(text);
    const second = await newcomer(scene, name);
    expect([years, second.status, second.stdout.toString()]).toEqual([years, LOCKED, ""]);
    release();
    expect([years, (await run.ended).status]).toEqual([years, RELEASED]);
    expect(existsSync(place.lock)).toBe(true);
    expect((await newcomer(scene, name)).status).toBe(0);
  }
});
