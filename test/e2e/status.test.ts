/**
 * Exit statuses of `watchdog run`: every exit code and every deadly signal reaches the caller as
 * without watchdog, and the record tells apart what the number alone cannot.
 */
import { expect, test } from "bun:test";
import { waitForEach } from "../support/outside.ts";
import { openScene, RELEASE } from "../support/scene.ts";

const scene = openScene(import.meta.file);

/**
 * CHLD, CONT, STOP, TSTP, TTIN, TTOU, URG and WINCH end nothing; 32 and 33 are the C library's own.
 */
const ENDS_NOTHING = new Set([17, 18, 19, 20, 21, 22, 23, 28, 32, 33]);
const DEADLY = Array.from({ length: 64 }, (_, index) => index + 1).filter(
  (signal) => !ENDS_NOTHING.has(signal),
);
const CODES = Array.from({ length: 256 }, (_, code) => code);

/** No core, and `exec` so that one process is both the command and the one that dies. */
function dyingOf(signal: number): string[] {
  return ["/bin/sh", "-c", `ulimit -c 0; kill -${signal} $$; echo survived; exit 99`];
}

function wrapped(command: readonly string[], log = "off"): string[] {
  return [RELEASE, "run", "--log", log, "--", ...command];
}

test("A-32: every exit code from 0 to 255 passes through unchanged", async () => {
  const lines = CODES.map((code) => wrapped(["/bin/sh", "-c", `exit ${code}`]));
  expect(await waitForEach(scene, lines)).toEqual(CODES.map((code) => [code, null, false]));
}, 120_000);

test("A-32: exit codes pass through unchanged with the output copied", async () => {
  const codes = [0, 1, 2, 63, 64, 75, 100, 124, 125, 126, 127, 128, 129, 137, 143, 200, 254, 255];
  const lines = codes.map((code) => wrapped(["/bin/sh", "-c", `echo x; exit ${code}`], "on"));
  expect(await waitForEach(scene, lines)).toEqual(codes.map((code) => [code, null, false]));
}, 180_000);

test("A-31: watchdog dies of every signal that its command died of, without a core", async () => {
  expect(DEADLY.length).toBe(54);
  const plain = await waitForEach(scene, DEADLY.map(dyingOf));
  expect(plain).toEqual(DEADLY.map((signal) => [null, signal, false]));
  const lines = DEADLY.map((signal) => wrapped(dyingOf(signal)));
  expect(await waitForEach(scene, lines)).toEqual(plain);
}, 120_000);

test("A-31: deaths by signal are the same with the output copied", async () => {
  const signals = [1, 2, 3, 6, 9, 11, 13, 14, 15, 25, 34, 64];
  const lines = signals.map((signal) => wrapped(dyingOf(signal), "on"));
  expect(await waitForEach(scene, lines)).toEqual(
    signals.map((signal) => [null, signal, false] as const),
  );
}, 180_000);

test("A-31: a shell shows 128 + N, prints its own words, and watchdog adds none", async () => {
  const script = `
    for n in 1 2 3 6 9 11 13 14 15; do
      $PREFIX sh -c "ulimit -c 0; kill -$n \\$\\$; sleep 2"
      echo "$n $?"
    done`;
  const shown = async (prefix: string) =>
    (await scene.startProgram(["sh", "-c", script], { env: { PREFIX: prefix } }).ended).stdout;
  const plain = (await shown("")).toString();
  expect(plain).toContain("9 137\n");
  expect((await shown(`${RELEASE} run --log off --`)).toString()).toBe(plain);
}, 180_000);

test("A-32: the record tells an exit with 137 from a death by KILL", async () => {
  for (const [name, script, expected] of [
    ["exited", "exit 137", { outcome: "failed", exit_code: 137, signal: null }],
    ["killed", "kill -9 $$", { outcome: "signaled", exit_code: null, signal: "KILL" }],
  ] as const) {
    const ended = await scene.run([
      ...scene.recordTo(name),
      "--log",
      "off",
      "--",
      "sh",
      "-c",
      script,
    ]);
    expect(ended.status).toBe(137);
    const record = scene.readRecord(name);
    expect(record).toMatchObject({ ...expected, exit_status: 137, status_of: "command" });
  }
});

test("A-32: the record tells an exit with 124 from a limit of watchdog's own", async () => {
  const own = await scene.run([
    ...scene.recordTo("own"),
    "--log",
    "off",
    "--",
    "sh",
    "-c",
    "exit 124",
  ]);
  const limit = await scene.run([
    ...scene.recordTo("limit"),
    "--log",
    "off",
    "--timeout",
    "200ms",
    "--",
    "sleep",
    "91032",
  ]);
  expect([own.status, limit.status]).toEqual([124, 124]);
  expect(scene.readRecord("own")).toMatchObject({ outcome: "failed", status_of: "command" });
  expect(scene.readRecord("limit")).toMatchObject({ outcome: "timeout", status_of: "watchdog" });
}, 180_000);

test("A-31: each record names the signal, and none says success", async () => {
  const names = { 1: "HUP", 2: "INT", 6: "ABRT", 11: "SEGV", 13: "PIPE", 15: "TERM", 34: "RTMIN" };
  for (const [signal, name] of Object.entries(names)) {
    await scene.run([...scene.recordTo(), "--log", "off", "--", ...dyingOf(Number(signal))]);
    expect(scene.readRecord()).toMatchObject({
      outcome: "signaled",
      signal: name,
      exit_code: null,
    });
  }
}, 180_000);

test("--success-exit-codes widens what counts as ok, and leaves the number alone", async () => {
  for (const [code, outcome] of [
    [0, "ok"],
    [24, "ok"],
    [3, "ok"],
    [4, "failed"],
  ] as const) {
    const ended = await scene.run([
      ...scene.recordTo(),
      "--log",
      "off",
      "--success-exit-codes",
      "24,1-3",
      "--",
      "sh",
      "-c",
      `exit ${code}`,
    ]);
    expect([ended.code, ended.stderr]).toEqual([code, ""]);
    expect(scene.readRecord().outcome).toBe(outcome);
  }
}, 180_000);

test("A-35: a command that kills its whole process group does not kill watchdog", async () => {
  const script = "echo part; sleep 0.2; kill -9 0";
  const ended = await scene.startProgram([
    "setsid",
    "-w",
    RELEASE,
    "run",
    ...scene.recordTo("group"),
    "--log",
    "on",
    "--",
    "sh",
    "-c",
    script,
  ]).ended;
  expect(ended.stdout.toString()).toBe("part\n");
  expect(ended.status).toBe(137);
  expect(scene.readRecord("group")).toMatchObject({
    outcome: "signaled",
    signal: "KILL",
    output: { stdout_bytes: 5 },
  });
}, 180_000);
