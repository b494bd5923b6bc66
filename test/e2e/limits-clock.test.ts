/**
 * Limits and the clocks that they are measured on: very long ones, times of the day in a time zone,
 * and a machine that was suspended meanwhile.
 */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { waitForText } from "../support/processes.ts";
import { FAULTS, openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;
const HOUR_MS = 3_600_000;

for (const [flag, span] of [
  ["--timeout", "30d"],
  ["--timeout", "365d"],
  ["--idle-timeout", "30d"],
  ["--kill-after", "30d"],
] as const) {
  test(
    `${flag} ${span} does not overflow into a short wait`,
    async () => {
      const name = `long${flag}-${span}`;
      const ended = await scene.run([
        "--log",
        "off",
        flag,
        span,
        ...scene.recordTo(name),
        "--",
        "sleep",
        "1.2",
      ]);
      expect(ended.status).toBe(0);
      expect(ended.stderr).toBe("");
      expect(scene.readRecord(name)).toMatchObject({ outcome: "ok", signals: [] });
      const atOnce = await scene.run([
        "--log",
        "off",
        flag,
        span,
        ...scene.recordTo(),
        "--",
        "true",
      ]);
      expect(atOnce.status).toBe(0);
      // Whoever ends is not held up by a limit that is far away.
      expect(scene.readRecord()["duration_ms"]).toBeLessThan(10_000);
    },
    LIMIT_MS,
  );
}

test(
  "a grace of 30 days is really given",
  async () => {
    const ready = scene.path("grace.ready");
    const script = `trap "" TERM; echo ready >${ready}; sleep 3; exit 0`;
    const ended = await scene.run(
      [
        ["--log", "off", "--timeout", "1s", "--kill-after", "30d", ...scene.recordTo("grace")],
        ["--", "sh", "-c", script],
      ].flat(),
    );
    expect(ended.status).toBe(124);
    expect(scene.readRecord("grace")).toMatchObject({ exit_code: 0, outcome: "timeout" });
    expect(scene.readRecord("grace")["signals"]).toHaveLength(1);
  },
  LIMIT_MS,
);

/** Zones without daylight saving, with their distance from UTC in hours. */
const ZONES: readonly (readonly [string, number])[] = [
  ["UTC", 0],
  ["Asia/Kolkata", 5.5],
  ["Asia/Tokyo", 9],
  ["America/Phoenix", -7],
];

for (const [zone, hours] of ZONES) {
  test(
    `--not-after is a time of the day in ${zone} when TZ says so`,
    async () => {
      const name = `zone-${hours}`;
      const localNow = Date.now() + hours * HOUR_MS;
      const textOf = (ms: number): string => new Date(ms).toISOString().slice(11, 19);
      const soon = await scene.run(
        [
          ["--log", "off", "--not-after", textOf(localNow + 2000), ...scene.recordTo(name)],
          ["--", "sleep", "92601"],
        ].flat(),
        { env: { TZ: zone } },
      );
      expect(soon.status).toBe(124);
      expect(scene.readRecord(name)).toMatchObject({ outcome: "timeout", because: "not-after" });
      // A time that has just gone by is tomorrow's.
      const past = await scene.run(
        ["--log", "off", "--not-after", textOf(localNow - 60_000), "--", "sleep", "1"],
        { env: { TZ: zone } },
      );
      expect(past.status).toBe(0);
    },
    LIMIT_MS,
  );
}

/** The command may be ready before watchdog has set its limits: a suspend then would be none. */
const WATCHING_MS = 300;

/** Runs a command during which the machine seems to be suspended for this long. */
async function runSuspended(name: string, limits: readonly string[], suspendedMs: number) {
  const [clock, ready] = [scene.path(`${name}.clock`), scene.path(`${name}.ready`)];
  writeFileSync(clock, "0");
  const run = scene.start(
    [
      ["--log", "off", ...limits, ...scene.recordTo(name)],
      ["--", "sh", "-c", `echo ready >${ready}; sleep 2.5; exit 3`],
    ].flat(),
    { binary: FAULTS, env: { WATCHDOG_FAULT_CLOCK: clock, TZ: "UTC" } },
  );
  await waitForText(ready);
  await Bun.sleep(WATCHING_MS);
  writeFileSync(clock, String(suspendedMs));
  const ended = await run.ended;
  return { ended, record: scene.readRecord(name) };
}

test(
  "a suspend of two hours lets no limit fire early, and the record tells it",
  async () => {
    const limits = ["--timeout", "1h", "--idle-timeout", "30m"];
    const { ended, record } = await runSuspended("suspended", limits, 2 * HOUR_MS);
    expect(ended.status).toBe(3);
    expect(ended.stderr).toBe("");
    expect(record).toMatchObject({ outcome: "failed", signals: [] });
    // The gap, less what real time may have added or the file's writing have cost.
    expect(record["suspended_ms"]).toBeGreaterThan(2 * HOUR_MS - 1000);
    expect(record["suspended_ms"]).toBeLessThan(2 * HOUR_MS + 60_000);
    expect(record["duration_ms"]).toBeLessThan(LIMIT_MS);
  },
  LIMIT_MS,
);

test(
  "a suspend counts for no span either where the clocks are looked at each second",
  async () => {
    const tonight = new Date(Date.now() + 12 * HOUR_MS).toISOString().slice(11, 19);
    const limits = ["--timeout", "1h", "--idle-timeout", "20s", "--not-after", tonight];
    const { ended, record } = await runSuspended("looked-at", limits, 2 * HOUR_MS);
    expect([ended.status, ended.stderr]).toEqual([3, ""]);
    expect(record).toMatchObject({ outcome: "failed", signals: [] });
  },
  LIMIT_MS,
);

test(
  "negative twin: without a suspend the record tells none",
  async () => {
    const { ended, record } = await runSuspended("awake", ["--timeout", "1h"], 0);
    expect(ended.status).toBe(3);
    expect(record["suspended_ms"]).toBe(0);
  },
  LIMIT_MS,
);

test(
  "a time of the day that went by in a suspend ends the run soon after it",
  async () => {
    const inAnHour = new Date(Date.now() + HOUR_MS).toISOString().slice(11, 19);
    const ready = scene.path("woken.ready");
    const clock = scene.path("woken.clock");
    writeFileSync(clock, "0");
    const run = scene.start(
      [
        ["--log", "off", "--not-after", inAnHour, ...scene.recordTo("woken")],
        ["--", "sh", "-c", `echo ready >${ready}; exec sleep 92602`],
      ].flat(),
      { binary: FAULTS, env: { WATCHDOG_FAULT_CLOCK: clock, TZ: "UTC" } },
    );
    await waitForText(ready);
    await Bun.sleep(WATCHING_MS);
    writeFileSync(clock, String(2 * HOUR_MS));
    const ended = await run.ended;
    expect(ended.status).toBe(124);
    expect(scene.readRecord("woken")).toMatchObject({ because: "not-after" });
    expect(scene.readRecord("woken")["duration_ms"]).toBeLessThan(10_000);
  },
  LIMIT_MS,
);
