/**
 * Output that cannot be written: a success whose output is lost is none, a failure stays the
 * failure that it is, and without a copy of the output nothing differs from a run without watchdog.
 */
import { expect, test } from "bun:test";
import { closeSync, mkdirSync, openSync, statSync, truncateSync } from "node:fs";
import { findProgram, runPrepared } from "../support/outside.ts";
import { type Ended, openScene, RELEASE, rootTest } from "../support/scene.ts";

const scene = openScene(import.meta.file);

/** Ways in which the output is copied. */
const COPIED: readonly (readonly string[])[] = [
  [],
  ["--log", "on"],
  ["--log", "off", "--idle-timeout", "1h"],
];
const SUCCESS = [findProgram("sh"), "-c", "echo hi"];
const FAILURE = [findProgram("sh"), "-c", "echo hi; exit 3"];

/** A standard output that takes nothing, and what it says. */
interface Sink {
  readonly reason: string;
  run(argv: readonly string[]): Promise<Ended>;
}

function sinkOf(path: string, flags: "w" | "r", reason: string): Sink {
  return {
    reason,
    run: (argv) => {
      const fd = openSync(path, flags);
      return scene.startProgram(argv, { stdout: fd }).ended.finally(() => closeSync(fd));
    },
  };
}

/** More than the files of watchdog's own ever are here: a smaller limit would be theirs, too. */
const LARGEST_BYTES = 64 * 1024 * 1024;

/** A file that is as large as the process's limit lets it be. */
const GROWN: Sink = {
  reason: "EFBIG",
  run: async ([name = "", ...words]) => {
    await Bun.write(scene.path("grown"), "");
    truncateSync(scene.path("grown"), LARGEST_BYTES);
    const fd = openSync(scene.path("grown"), "a");
    const limits = { FSIZE: [LARGEST_BYTES, LARGEST_BYTES], CORE: [0, 0] } as const;
    const ended = await runPrepared(scene, { limits }, [name, ...words], { stdout: fd });
    closeSync(fd);
    expect(statSync(scene.path("grown")).size).toBe(LARGEST_BYTES);
    return ended;
  },
};

const SINKS: readonly Sink[] = [
  sinkOf("/dev/full", "w", "ENOSPC"),
  sinkOf("/dev/null", "r", "EBADF"),
  GROWN,
];

function wrap(options: readonly string[], command: readonly string[]): string[] {
  return [RELEASE, "run", ...options, ...scene.recordTo(), "--", ...command];
}

function expectOneLine({ stderr }: Ended, reason: string): void {
  const [line = "", ...more] = stderr.split("\n");
  expect(line).toStartWith("watchdog: stdout could not be written: ");
  expect(line).toContain(reason);
  expect(more).toEqual([""]);
}

for (const sink of SINKS) {
  test(`${sink.reason}: a success whose output is lost is a wrapper_error with 125`, async () => {
    for (const options of COPIED) {
      const ended = await sink.run(wrap(options, SUCCESS));
      expect([options, ended.code]).toEqual([options, 125]);
      expectOneLine(ended, sink.reason);
      const record = scene.readRecord();
      expect(record).toMatchObject({
        outcome: "wrapper_error",
        because: "output-not-written",
        exit_status: 125,
        status_of: "watchdog",
        exit_code: 0,
        output: { stdout_bytes: 3, is_copied: true },
      });
      expect(record.output.write_error).toContain(sink.reason);
    }
  }, 180_000);

  test(`${sink.reason}: a command that fails itself keeps its status and outcome`, async () => {
    for (const options of COPIED) {
      const ended = await sink.run(wrap(options, FAILURE));
      expect([options, ended.code]).toEqual([options, 3]);
      expectOneLine(ended, sink.reason);
      const record = scene.readRecord();
      expect(record).toMatchObject({ outcome: "failed", because: "exited", status_of: "command" });
      expect(record.output.write_error).toContain(sink.reason);
    }
  }, 180_000);

  test(`${sink.reason}: --log off is as without watchdog`, async () => {
    for (const argv of [SUCCESS, FAILURE, [findProgram("head"), "-c", "9", "/dev/zero"]]) {
      const without = await sink.run(argv);
      const wrapped = await sink.run(wrap(["--log", "off"], argv));
      expect([argv, wrapped.code, wrapped.signal, wrapped.stderr]).toEqual([
        argv,
        without.code,
        without.signal,
        without.stderr,
      ]);
      expect(scene.readRecord().output).toMatchObject({ is_copied: false, write_error: null });
    }
  }, 180_000);
}

test("a code of --success-exit-codes is a success whose output must arrive too", async () => {
  const options = ["--success-exit-codes", "3"];
  const ended = await (SINKS[0] as Sink).run(wrap(options, FAILURE));
  expect(ended.code).toBe(125);
  expect(scene.readRecord()).toMatchObject({ because: "output-not-written", exit_code: 3 });
});

test("standard error that cannot be written is no success either", async () => {
  const fd = openSync("/dev/full", "w");
  const args = [...scene.recordTo(), "--", "sh", "-c", "echo out; echo err >&2"];
  const ended = await scene.run(args, { stderr: fd }).finally(() => closeSync(fd));
  expect([ended.code, ended.stdout.toString()]).toEqual([125, "out\n"]);
  expect(scene.readRecord()).toMatchObject({ because: "output-not-written" });
  expect(scene.readRecord().output.write_error).toContain("ENOSPC");
});

test("a command that prints nothing has lost nothing", async () => {
  for (const sink of SINKS) {
    const ended = await sink.run(wrap([], ["true"]));
    expect([sink.reason, ended.code, ended.stderr]).toEqual([sink.reason, 0, ""]);
    expect(scene.readRecord().output.write_error).toBeNull();
  }
});

test("a reader who has had enough is no error of writing", async () => {
  const line = `"$0" run --result-file "$1" -- sh -c 'echo hi' | true; echo "\${PIPESTATUS[0]}"`;
  const [, record = ""] = scene.recordTo();
  const ended = await scene.startProgram(["bash", "-c", line, RELEASE, record]).ended;
  expect(ended.stderr).toBe("");
  expect(["0\n", "141\n"]).toContain(ended.stdout.toString());
  expect(scene.readRecord().output.write_error).toBeNull();
});

test("--quiet: what a failure cannot print is told, and its status stands", async () => {
  for (const sink of SINKS) {
    const ended = await sink.run(wrap(["--quiet"], FAILURE));
    expect([sink.reason, ended.code]).toEqual([sink.reason, 3]);
    expectOneLine(ended, sink.reason);
    expect(scene.readRecord().output.write_error).toContain(sink.reason);
  }
});

test("--quiet: a success that has nothing to print has lost nothing", async () => {
  for (const sink of SINKS) {
    const ended = await sink.run(wrap(["--quiet"], SUCCESS));
    expect([sink.reason, ended.code, ended.stderr]).toEqual([sink.reason, 0, ""]);
    expect(scene.readRecord()).toMatchObject({ outcome: "ok", output: { write_error: null } });
  }
});

/** All lines are watchdog's own, and one says why a quiet run is not. */
function expectTold({ stderr }: Ended): void {
  const lines = stderr.trimEnd().split("\n");
  for (const line of lines) expect(line).toStartWith("watchdog: ");
  const told = lines.filter((line) => line.includes("stdout could not be held back for --quiet"));
  expect(told).toHaveLength(1);
}

test("--quiet: a success is printed where no spool can be made, and it says why", async () => {
  await Bun.write(scene.path("file"), "");
  const state = ["--no-lease", "--state-dir", scene.path("file", "state"), "--log", "off"];
  const ended = await scene.run(["--quiet", ...state, ...scene.recordTo(), "--", ...SUCCESS]);
  expect([ended.code, ended.stdout.toString()]).toEqual([0, "hi\n"]);
  expectTold(ended);
  expect(scene.readRecord()).toMatchObject({ outcome: "ok", output: { write_error: null } });
  // Printed after all, it must arrive.
  const lost = await (SINKS[0] as Sink).run(wrap(["--quiet", ...state], SUCCESS));
  expect(lost.code).toBe(125);
  expect(scene.readRecord()).toMatchObject({ because: "output-not-written" });
});

rootTest("--quiet: a success is printed where the spool is full, and it says why", async () => {
  const state = scene.path("small");
  mkdirSync(state, { mode: 0o700 });
  const mount = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", state];
  await scene.startProgram(mount).ended;
  try {
    const args = ["--quiet", "--log", "off", "--state-dir", state, "--"];
    const ended = await scene.run([...args, "head", "-c", "1000000", "/dev/zero"]);
    expect([ended.code, ended.stdout.length]).toEqual([0, 1_000_000]);
    expectTold(ended);
  } finally {
    await scene.startProgram(["umount", state]).ended;
  }
});

test("an answer that cannot be written ends with 125, one that is cut off with 0", async () => {
  for (const words of [["--version"], ["--help"], ["help", "run"]]) {
    for (const sink of SINKS) {
      const ended = await sink.run([RELEASE, ...words]);
      expect([words, sink.reason, ended.code]).toEqual([words, sink.reason, 125]);
    }
    const line = `"$0" ${words.join(" ")} | true; echo "\${PIPESTATUS[0]}"`;
    const cut = await scene.startProgram(["bash", "-c", line, RELEASE]).ended;
    expect([words, cut.stdout.toString(), cut.stderr]).toEqual([words, "0\n", ""]);
  }
}, 180_000);
