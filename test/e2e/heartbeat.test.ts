/**
 * Heartbeats, read from the slot itself: they come from a thread of their own, so that neither a
 * blocked main loop nor a silent command stops them; and where they do stop, because watchdog was
 * stopped or gets no CPU, its lease is called `stalled` and is never taken.
 */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, setPriority } from "node:os";
import { askJson, askLines } from "../support/ask.ts";
import {
  holdJob,
  newcomer,
  placeOf,
  readLease,
  RELEASED,
  type SeenPlace,
  type SeenSlot,
  shiftSlot,
  waitForBeat,
  waitForJournal,
} from "../support/lease-seen.ts";
import { findByCommand, readLines, readStatusLine } from "../support/processes.ts";
import { FAULTS, openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LOCKED = 75;
const LIMIT_MS = 180_000;
const YEAR_MS = 31_557_600_000;
/** No clock of another kind or unit is so near. */
const LATE_MS = 20_000;

/** The lease of a job, as `status --json` shows it. */
async function statusOf(name: string): Promise<ReturnType<typeof JSON.parse>> {
  const { leases } = await askJson(scene, ["status", name]);
  expect(leases).toHaveLength(1);
  return leases[0];
}

/** A slot that is whole: a read may meet the writer. */
function slotOf(place: SeenPlace): Promise<SeenSlot> {
  return waitForBeat(place, 1);
}

async function waitForState(pid: number, states: RegExp): Promise<void> {
  await waitFor(() => states.test(readStatusLine(pid, "State") ?? ""), `${pid} in state ${states}`);
}

/** What the fault has left, once it is written as a whole. */
function readEvidence(directory: string): ReturnType<typeof JSON.parse> {
  const [file] = existsSync(directory) ? readdirSync(directory) : [];
  const text = file === undefined ? "" : readFileSync(`${directory}/${file}`, "utf8");
  return text.endsWith("}") && JSON.parse(text);
}

const INTERVAL_MS = 600;
const INTERVALS = 10;

test(
  "a main loop that is blocked for ten intervals stops no beat, and status says that it is blocked",
  async () => {
    const faults = scene.path("blocked.faults");
    const { run, place, release } = await holdJob(
      scene,
      "blocked",
      ["--heartbeat-interval", `${INTERVAL_MS}ms`, "--stale-after", "30s"],
      {
        binary: FAULTS,
        env: { WATCHDOG_FAULT: "main.count#2=hold", WATCHDOG_FAULT_DIR: faults },
      },
    );
    const evidence = await waitFor(() => readEvidence(faults), "the fault to fire");
    const first = await slotOf(place);
    expect(evidence).toMatchObject({ point: "main.count", nth: 2, act: "hold" });
    expect(evidence.state).toEqual({ sequence: first.mainLoopSequence });

    const last = await waitFor(async () => {
      const slot = await slotOf(place);
      return slot.monotonicMs >= first.monotonicMs + (INTERVALS - 0.5) * INTERVAL_MS && slot;
    }, "ten intervals of beats");
    expect(last.sequence - first.sequence).toBeGreaterThanOrEqual(INTERVALS - 1);
    expect([last.mainLoopSequence, last.mainLoopMs]).toEqual([
      first.mainLoopSequence,
      first.mainLoopMs,
    ]);

    const seen = await statusOf("blocked");
    expect(seen).toMatchObject({ verdict: "held", because: "beat-fresh" });
    expect(seen).toMatchObject({
      is_main_loop_blocked: true,
      main_loop_seq: first.mainLoopSequence,
    });
    expect(seen.main_loop_age_ms).toBeGreaterThan(INTERVALS * INTERVAL_MS - INTERVAL_MS);
    const lines = (await askLines(scene, ["status", "blocked"])).join("\n");
    expect(lines).toMatch(/\n {2}beat +\d+ ms ago; main loop blocked for \d+(\.\d)? s\n/);
    expect((await newcomer(scene, "blocked")).status).toBe(LOCKED);
    expect((await slotOf(place)).mainLoopSequence).toBe(first.mainLoopSequence);

    writeFileSync(`${faults}.go`, "");
    await waitFor(
      async () => (await slotOf(place)).mainLoopSequence > first.mainLoopSequence,
      "the main loop to count again",
    );
    expect((await statusOf("blocked")).is_main_loop_blocked).toBe(false);
    release();
    expect((await run.ended).status).toBe(RELEASED);
  },
  LIMIT_MS,
);

test("negative twin: without the fault the main loop counts while beats go on", async () => {
  const words = ["--heartbeat-interval", "200ms", "--stale-after", "30s"];
  const { run, place, release } = await holdJob(scene, "free", words);
  const first = await slotOf(place);
  const last = await waitForBeat(place, first.sequence + INTERVALS);
  expect(last.mainLoopSequence).toBeGreaterThan(first.mainLoopSequence);
  expect(last.mainLoopMs).toBeGreaterThan(first.mainLoopMs);
  expect(await statusOf("free")).toMatchObject({ verdict: "held", is_main_loop_blocked: false });
  expect((await askLines(scene, ["status", "free"])).join("\n")).not.toContain("blocked");
  release();
  expect((await run.ended).status).toBe(RELEASED);
});

test("the slot says which run beats, of which owner, on the clocks of this machine", async () => {
  const { run, place, release } = await holdJob(scene, "slot", ["--stale-after", "2s"]);
  const slot = await slotOf(place);
  const record = readLease(place);
  expect(slot).toMatchObject({
    format: 1,
    generation: 1,
    runId: record["run_id"],
    ownerPid: run.pid,
    lockInode: record["lock_inode"],
    bootId: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
    staleAfterMs: 2000,
  });
  const later = await waitForBeat(place, slot.sequence + 2);
  const uptimeMs = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1000;
  // /proc/uptime is BOOTTIME, cut to hundredths of a second.
  expect(Math.abs(uptimeMs - later.boottimeMs)).toBeLessThan(LATE_MS);
  expect(later.boottimeMs).toBeGreaterThanOrEqual(later.monotonicMs);
  expect(Math.abs(Date.now() - later.wallMs)).toBeLessThan(LATE_MS);
  expect(record["heartbeat_interval_ms"]).toBe(500);
  release();
  await run.ended;
});

test("A-60: a command that is silent for long is held and never stalled", async () => {
  const place = placeOf(scene.stateDirectory, "a60");
  const run = scene.start(
    [
      ["--name", "a60", "--heartbeat-interval", "200ms", "--stale-after", "4s", "--log", "on"],
      ["--", "sh", "-c", "sleep 93060; exit 6"],
    ].flat(),
  );
  let { sequence } = await waitForBeat(place, 3);
  await waitForJournal(scene.stateDirectory, "a60");
  for (let looks = 1; looks <= 3; looks += 1) {
    // Each look comes a whole stale-after later, by the beats themselves.
    ({ sequence } = await waitForBeat(place, sequence + 20));
    expect(await statusOf("a60")).toMatchObject({ verdict: "held", because: "beat-fresh" });
    const second = await newcomer(scene, "a60");
    expect([second.status, second.stdout.toString(), second.stderr]).toEqual([LOCKED, "", ""]);
  }
  for (const pid of findByCommand(scene, "sleep 93060")) process.kill(pid, "SIGTERM");
  const first = await run.ended;
  expect([first.status, first.stdout.toString()]).toEqual([6, ""]);
});

/**
 * A run that writes an A every 50 ms, to be stopped for longer than its beats may be silent. After
 * forty of them it waits until it is told to finish.
 */
function startWriter(name: string, words: readonly string[] = []) {
  const [log, gate] = [scene.path(`${name}.log`), scene.path(`${name}.finish`)];
  const writes = `for i in $(seq 40); do echo A >>'${log}'; sleep 0.05; done`;
  const script = `${writes}; until [ -e '${gate}' ]; do sleep 0.02; done; echo fin`;
  const run = scene.start(
    [
      ["--name", name, "--heartbeat-interval", "150ms", "--stale-after", "400ms", ...words],
      ["--log", "off", ...scene.recordTo(name), "--", "sh", "-c", script],
    ].flat(),
  );
  const finish = (): void => writeFileSync(gate, "");
  return { run, log, place: placeOf(scene.stateDirectory, name), finish };
}

async function stopUntilStalled(run: { pid: number; kill(signal: "SIGSTOP"): void }, name: string) {
  await waitForJournal(scene.stateDirectory, name);
  run.kill("SIGSTOP");
  await waitForState(run.pid, /^T/);
  await waitFor(async () => (await statusOf(name)).verdict === "stalled", `${name} to be stalled`);
}

test("A-61: a stopped watchdog is stalled, not robbed, and goes on alone", async () => {
  const { run, log, place, finish } = startWriter("a61");
  await waitForBeat(place, 4);
  await stopUntilStalled(run, "a61");
  const frozen = await slotOf(place);
  expect(await statusOf("a61")).toMatchObject({ rule: "R2", because: "beat-old", lock: "held" });

  const writesB = ["--", "sh", "-c", `echo B >>'${log}'`];
  const holder = `job:a61 is held by run ${frozen.runId} \\(pid ${run.pid}, [^)]*\\)`;
  for (const words of [[], ["--wait", "500ms"]]) {
    const second = await scene.run(["--name", "a61", "--log", "off", ...words, ...writesB]);
    expect([words, second.status]).toEqual([words, LOCKED]);
    // Unlike a healthy holder this one is told, with a command that tells more.
    expect(second.stderr).toMatch(
      new RegExp(`watchdog: not started: ${holder}, whose heartbeat is \\d+ s old\\n`),
    );
    expect(second.stderr).toContain("watchdog: hint: watchdog lease show job:a61\n");
  }
  expect((await slotOf(place)).sequence).toBe(frozen.sequence);

  run.kill("SIGCONT");
  await waitForBeat(place, frozen.sequence + 1);
  await waitFor(async () => (await statusOf("a61")).verdict === "held", "a61 to be held");
  finish();
  const first = await run.ended;
  expect([first.status, first.stderr]).toEqual([0, ""]);
  expect(new Set(readLines(log))).toEqual(new Set(["A"]));
  expect(readLease(place)).toMatchObject({ generation: 1, state: "released" });
});

test("A-55: a watchdog that slept longer than its beats may just goes on", async () => {
  const { run, place, finish } = startWriter("a55");
  await waitForBeat(place, 4);
  await stopUntilStalled(run, "a55");
  run.kill("SIGCONT");
  finish();
  const ended = await run.ended;
  expect([ended.status, ended.stdout.toString(), ended.stderr]).toEqual([0, "fin\n", ""]);
  const record = scene.readRecord("a55");
  expect(record).toMatchObject({ outcome: "ok", degraded: [] });
  // CONT is passed on, as any signal that says nothing of an end.
  expect(record["signals"].map(({ signal }: { signal: string }) => signal)).toEqual(["CONT"]);
  expect((await newcomer(scene, "a55")).stdout.toString()).toBe("STOLEN\n");
  expect(readLease(place)).toMatchObject({ generation: 2, state: "released" });
});

test("a waiter gets the key of a stopped watchdog when that one is over, not before", async () => {
  const { run, log, place, finish } = startWriter("waited");
  await waitForBeat(place, 4);
  await stopUntilStalled(run, "waited");
  const words = ["--name", "waited", "--log", "off", "--wait", "1m"];
  const waiter = scene.start([...words, "--", "sh", "-c", `echo B >>'${log}'`]);
  await waitFor(() => isWaiting(waiter.pid), "the waiter to wait in the kernel");
  run.kill("SIGCONT");
  finish();
  expect((await run.ended).status).toBe(0);
  expect((await waiter.ended).status).toBe(0);
  const lines = readLines(log);
  expect(lines.slice(-1)).toEqual(["B"]);
  expect(lines.slice(0, -1)).toEqual(Array(40).fill("A"));
});

/** Whether one of its threads is blocked in flock(2), as the kernel's list of locks tells. */
function isWaiting(pid: number): boolean {
  return readLines("/proc/locks").some((line) => new RegExp(`-> FLOCK.* ${pid} `).test(line));
}

test("A-57: a beat that looks a year old robs nobody, the next one is right", async () => {
  const words = ["--heartbeat-interval", "1s", "--stale-after", "30s"];
  const { run, place, release } = await holdJob(scene, "a57", words);
  const { sequence } = await slotOf(place);
  shiftSlot(place.slot(1), -YEAR_MS);
  const second = await newcomer(scene, "a57");
  expect([second.status, second.stdout.toString()]).toEqual([LOCKED, ""]);
  await waitForBeat(place, sequence + 1);
  expect(await statusOf("a57")).toMatchObject({ verdict: "held", because: "beat-fresh" });
  expect((await slotOf(place)).runId).toBe(readLease(place)["run_id"]);
  release();
  expect((await run.ended).status).toBe(RELEASED);
});

test(
  "A-59: a watchdog that gets hardly any CPU keeps its lease",
  async () => {
    const words = ["--stale-after", "2s", ...scene.recordTo("a59")];
    const { run, place, release } = await holdJob(scene, "a59", words);
    // Of all its threads: on Linux a nice value belongs to a thread.
    for (const thread of readdirSync(`/proc/${run.pid}/task`)) setPriority(Number(thread), 19);
    const spins = Array.from({ length: cpus().length * 4 }, () =>
      scene.startProgram(["timeout", "30", "sh", "-c", "while :; do :; done"]),
    );
    try {
      const before = await slotOf(place);
      for (let tries = 1; tries <= 5; tries += 1) {
        const second = await newcomer(scene, "a59");
        expect([second.status, second.stdout.toString()]).toEqual([LOCKED, ""]);
      }
      expect((await slotOf(place)).runId).toBe(before.runId);
    } finally {
      for (const spin of spins) spin.kill("SIGTERM");
      for (const spin of spins) await spin.ended;
    }
    release();
    const ended = await run.ended;
    expect([ended.status, ended.stderr]).toEqual([RELEASED, ""]);
    expect(scene.readRecord("a59")).toMatchObject({ outcome: "failed", signals: [] });
  },
  LIMIT_MS,
);
