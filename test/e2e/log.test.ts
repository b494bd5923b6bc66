/**
 * The kept log: what is in it, how large it may get, who may read it, what becomes of it when
 * watchdog is killed or the disk is full.
 */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { PYTHON, runPrepared, runShell } from "../support/outside.ts";
import { FIXTURES, openScene, RELEASE, rootTest } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const KIB = 1024;
/**
 * As many lines of ten bytes as may wait for the log's thread. Of a flood that is larger it drops
 * what a busy machine has no time for: that is promised (`log.dropped_bytes`), and not meant here.
 */
const LINES = 100_000;
/** The same for lines of two streams that come one by one. */
const SINGLE_LINES = 8_000;

let states = 0;

/** A state directory of its own for one test. */
function freshState(): string {
  return scene.path(`state-${(states += 1)}`);
}

/** Every file below a directory. */
function listFiles(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

function listLogs(state: string): string[] {
  return listFiles(join(state, "logs"));
}

test("the log holds both streams byte by byte, where the record says", async () => {
  const state = freshState();
  const bytes = Buffer.from([0, 0xff, 0xfe, 0x61, 0x0a, 0x80]);
  await Bun.write(scene.path("bytes"), bytes);
  const args = ["--state-dir", state, "--name", "keeper", ...scene.recordTo()];
  await scene.run([...args, "--", "sh", "-c", 'cat "$0"; echo err >&2', scene.path("bytes")]);
  const record = scene.readRecord();
  expect(record.log).toEqual({
    path: join(state, "logs", "keeper", `${record.run_id}.log`),
    kept_bytes: 10,
    omitted_bytes: 0,
    dropped_bytes: 0,
    because: null,
  });
  const kept = readFileSync(record.log.path);
  expect([...kept].sort()).toEqual([...bytes, ...Buffer.from("err\n")].sort());
  expect(listLogs(state)).toEqual([record.log.path]);
});

test("one file for both streams keeps their order, over thousands of lines", async () => {
  const script = `"$W" run --log on --result-file "$R" -- \\
    "$PYTHON" "$F/alternates-streams.py" ${SINGLE_LINES} >"$R.out" 2>&1`;
  await runShell(scene, script, { env: { R: scene.path("result.json"), F: FIXTURES, PYTHON } });
  const expected = Array.from({ length: SINGLE_LINES }, (_, index) => `${index}\n`).join("");
  expect(readFileSync(scene.readRecord().log.path, "utf8")).toBe(expected);
});

test("--log auto keeps a log where stdout is no terminal; --log off keeps none", async () => {
  const state = freshState();
  await scene.run(["--state-dir", state, "--log", "off", "--", "echo", "x"]);
  expect(listLogs(state)).toEqual([]);
  await scene.run(["--state-dir", state, "--", "echo", "x"]);
  expect(listLogs(state).length).toBe(1);
});

test("empty output keeps no log, and the record says that there is none", async () => {
  const state = freshState();
  const ended = await scene.run([
    "--state-dir",
    state,
    "--log",
    "on",
    ...scene.recordTo(),
    "--",
    "true",
  ]);
  expect([ended.code, ended.stderr]).toEqual([0, ""]);
  expect(listLogs(state)).toEqual([]);
  expect(scene.readRecord().log?.path ?? null).toBe(null);
});

test("a log beyond --log-max keeps beginning and end, and says what is missing", async () => {
  const state = freshState();
  const args = ["--state-dir", state, "--log", "on", "--log-max", "64KiB", ...scene.recordTo()];
  const ended = await scene.run([...args, "--", "seq", "-f", "%09g", "1", `${LINES}`]);
  expect(ended.stdout.length).toBe(10 * LINES);
  const { log, output } = scene.readRecord();
  const kept = readFileSync(log.path, "latin1");
  expect(kept).toStartWith("000000001\n000000002\n");
  expect(kept).toEndWith("000099999\n000100000\n");
  const marker = /\n?\[watchdog: (\d+) bytes omitted here\]\n/.exec(kept);
  expect(Number(marker?.[1])).toBe(log.omitted_bytes);
  expect(log.kept_bytes + log.omitted_bytes).toBe(output.stdout_bytes);
  expect(log.kept_bytes).toBeLessThanOrEqual(64 * KIB);
  expect(log.kept_bytes).toBeGreaterThan(40 * KIB);
  expect(kept.length).toBe(log.kept_bytes + (marker?.[0].length ?? 0));
  const head = kept.slice(0, marker?.index);
  const tail = kept.slice((marker?.index ?? 0) + (marker?.[0].length ?? 0));
  const whole = ended.stdout.toString("latin1");
  expect([whole.startsWith(head), whole.endsWith(tail)]).toEqual([true, true]);
  expect(head.length).toBe(32 * KIB);
  expect(listLogs(state)).toEqual([log.path]);
});

test("a log exactly as long as --log-max is whole", async () => {
  for (const bytes of [4_095, 4_096]) {
    const args = ["--log", "on", "--log-max", "4KiB", ...scene.recordTo()];
    const ended = await scene.run([...args, "--", "head", "-c", String(bytes), "/dev/urandom"]);
    const { log } = scene.readRecord();
    expect(readFileSync(log.path).equals(ended.stdout)).toBe(true);
    expect([log.kept_bytes, log.omitted_bytes]).toEqual([bytes, 0]);
  }
});

test("directories are 0700 and files 0600 whatever the umask", async () => {
  for (const umask of [0, 0o777, 0o027]) {
    const state = freshState();
    const wrapped = [
      RELEASE,
      "run",
      "--state-dir",
      state,
      "--log",
      "on",
      "--",
      "/bin/echo",
      "secret",
    ];
    const ended = await runPrepared(scene, { umask }, wrapped);
    expect([umask, ended.code, ended.stderr]).toEqual([umask, 0, ""]);
    const [file = ""] = listLogs(state);
    const mode = (path: string): string => (statSync(path).mode & 0o7777).toString(8);
    expect([mode(state), mode(join(state, "logs")), mode(join(file, ".."))]).toEqual([
      "700",
      "700",
      "700",
    ]);
    expect(mode(file)).toBe("600");
  }
});

test("the log is there when watchdog was killed: all that was printed until then", async () => {
  const state = freshState();
  const script = `echo before; echo more >&2; while :; do echo line; sleep 0.01; done`;
  const started = scene.start(["--state-dir", state, "--log", "on", "--", "sh", "-c", script]);
  const size = (): number => listLogs(state).reduce((sum, path) => sum + statSync(path).size, 0);
  await waitFor(() => size() > 200, "some lines in the log");
  const printed = size();
  started.kill("SIGKILL");
  const ended = await started.ended;
  expect(ended.signal).toBe("SIGKILL");
  const kept = listLogs(state)
    .map((path) => readFileSync(path, "latin1"))
    .join("");
  expect(kept.length).toBeGreaterThanOrEqual(printed);
  expect(kept).toMatch(/^(before\n|more\n|line\n)+$/);
  await waitFor(() => scene.findProcesses().length === 0, "the guard to have ended the command");
}, 180_000);

test("what a killed run left is bounded, and the next run makes one log of it", async () => {
  const state = freshState();
  const args = ["--state-dir", state, "--log", "on", "--log-max", "64KiB"];
  // Steadily, so that the log's thread can keep up and drops nothing.
  const numbers = "n=0; while seq -f %09g $((n + 1)) $((n += 1000)); do sleep 0.02; done";
  const started = scene.start([...args, "--", "bash", "-c", numbers], { stdout: "ignore" });
  const seen = new Set<string>();
  const hasDropped = (): boolean => {
    const now = listLogs(state);
    for (const path of now) seen.add(path);
    return now.length >= 3 && seen.size > now.length;
  };
  await waitFor(hasDropped, "a head, two parts of the tail, and one that has gone");
  started.kill("SIGKILL");
  await started.ended;
  const sizes = listLogs(state).map((path) => statSync(path).size);
  expect(sizes.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(64 * KIB);
  const head = listLogs(state).find((path) => path.endsWith(".log")) ?? "";
  await scene.run(["--state-dir", state, "--log", "on", "--name", "next", "--", "echo", "x"]);
  expect(listLogs(state).filter((path) => !path.includes("/next/"))).toEqual([head]);
  // Each number has ten bytes with its newline, so the place of the tail can be told.
  const [start = "", omitted, tail = ""] = readFileSync(head, "latin1").split(
    /\n\[watchdog: (\d+) bytes omitted here\]\n/,
  );
  expect([start.length, start.slice(0, 20)]).toEqual([32 * KIB, "000000001\n000000002\n"]);
  const offset = start.length + Number(omitted);
  const first = Math.ceil(offset / 10);
  expect(tail.slice(first * 10 - offset).slice(0, 10)).toBe(
    `${String(first + 1).padStart(9, "0")}\n`,
  );
}, 180_000);

test("--log-keep bounds all logs together, the oldest go first, and other files stay", async () => {
  const state = freshState();
  const keep = async (name: string, limit: string) => {
    const args = ["--state-dir", state, "--log", "on", "--log-keep", limit, "--name", name];
    await scene.run([...args, "--", "head", "-c", "20000", "/dev/zero"]);
  };
  for (const name of ["first", "second", "third", "fourth"]) await keep(name, "1GiB");
  expect(listLogs(state).length).toBe(4);
  await Bun.write(join(state, "logs", "second", "notes.txt"), "mine");
  await keep("fifth", "50KiB");
  const names = listLogs(state).map((path) => path.split("/").at(-2));
  expect(names.sort()).toEqual(["fifth", "fourth", "second"]);
  expect(readFileSync(join(state, "logs", "second", "notes.txt"), "utf8")).toBe("mine");
}, 180_000);

test("pruning leaves the log of a run that goes on alone", async () => {
  const state = freshState();
  const base = ["--state-dir", state, "--log", "on", "--log-keep", "1KiB"];
  const script = 'head -c 5000 /dev/zero; until [ -e "$0" ]; do sleep 0.02; done; echo end';
  const running = scene.start([
    ...base,
    "--name",
    "long",
    "--",
    "sh",
    "-c",
    script,
    scene.path("hold"),
  ]);
  await waitFor(
    () => listLogs(state).some((path) => statSync(path).size === 5_000),
    "the long log",
  );
  await scene.run([...base, "--name", "short", "--", "head", "-c", "5000", "/dev/zero"]);
  expect(listLogs(state).filter((path) => path.includes("/long/")).length).toBe(1);
  await Bun.write(scene.path("hold"), "go\n");
  expect((await running.ended).stdout.length).toBe(5_004);
}, 180_000);

/** One line says this; the journal, which has no room either, says so in lines of its own. */
function expectOneLine(stderr: string, expected: RegExp): void {
  const lines = stderr.split("\n").slice(0, -1);
  const others = lines.filter((line) => !line.startsWith("watchdog: journal: "));
  expect(others).toEqual([expect.stringMatching(expected)]);
  expect(lines.length - others.length).toBeLessThanOrEqual(2);
}

rootTest("a full disk loses bytes of the log only, and says so", async () => {
  const state = scene.path("small");
  mkdirSync(state, { mode: 0o700 });
  await scene.startProgram(["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "none", state])
    .ended;
  try {
    const args = ["--state-dir", state, "--log", "on", ...scene.recordTo("full")];
    const ended = await scene.run([...args, "--", "head", "-c", "2000000", "/dev/urandom"]);
    expect([ended.code, ended.stdout.length]).toEqual([0, 2_000_000]);
    const { log, outcome } = scene.readRecord("full");
    expect(outcome).toBe("ok");
    expect(log.dropped_bytes).toBeGreaterThan(1_000_000);
    expect(log.kept_bytes + log.dropped_bytes + log.omitted_bytes).toBe(2_000_000);
    expectOneLine(ended.stderr, /^watchdog: \d+ bytes are missing in the log: .*ENOSPC/);
    const command = ["--quiet", "--", "sh", "-c", "echo x; exit 3"];
    const quiet = await scene.run(["--state-dir", state, "--no-lease", ...command]);
    expect([quiet.code, quiet.stdout.toString()]).toEqual([3, "x\n"]);
    // Nothing excludes anybody where no lease can be written down.
    const leased = await scene.run(["--state-dir", state, "--name", "new", ...command]);
    expect([leased.code, leased.stdout.length]).toEqual([125, 0]);
    expect(leased.stderr).toMatch(
      /^(watchdog: journal: .*\n)*watchdog: error: .*ENOSPC.*\nwatchdog: hint: .* --no-lease .*\n$/,
    );
  } finally {
    await scene.startProgram(["umount", state]).ended;
  }
});

test("a limit on the size of files costs bytes of the log only", async () => {
  // In sh these are blocks of 512 bytes.
  const script = `ulimit -f 8
    "$W" run --log on --result-file "$R" -- head -c 100000 /dev/zero | wc -c`;
  const ended = await runShell(scene, script, { env: { R: scene.path("result.json") } });
  expect(Number(ended.stdout.toString())).toBe(100_000);
  expectOneLine(ended.stderr, /^watchdog: 95904 bytes are missing in the log: .*EFBIG/);
  expect(scene.readRecord().log).toMatchObject({ kept_bytes: 4_096, dropped_bytes: 95_904 });
});
