/**
 * Little CPU time, few descriptors, few processes: the limits of whoever calls watchdog. The
 * command has them as it would without watchdog, and watchdog either runs it to the right end or
 * refuses before it has started it; never anything between the two.
 */
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
} from "node:fs";
import {
  isDead,
  python,
  readLines,
  readStatusLine,
  startWithoutTerminal,
} from "../support/processes.ts";
import { inRounds, limitOf } from "../support/rounds.ts";
import { type Ended, openScene, RELEASE, rootTest, ROUNDS } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = limitOf(ROUNDS, 220);
/** Of this file alone: how many processes a user may have is counted over all of them. */
const NOBODY = 54_404;
const XCPU_STATUS = 128 + 24;

/** Ends by 3 once watchdog, its parent, has used 2.5 s of CPU time; by 4 if that is gone. */
const KEEPS_WATCHDOG_BUSY = `used=0 round=0
  while [ $used -lt 250 ] && [ $round -lt 3000 ]; do
    head -c 20000000 /dev/zero
    read -r line 2>/dev/null </proc/$PPID/stat || exit 4
    set -- $line
    used=$(($14 + $15)) round=$((round + 1))
  done 2>/dev/null
  set -- $line
  [ $(($14 + $15)) -ge 250 ] && exit 3`.replaceAll(/\$(1[45])/g, (_, number) => `\${${number}}`);

function withCpuLimit(args: readonly string[], options: { stdout?: "ignore" } = {}) {
  const script = 'ulimit -c 0; ulimit -S -t 1; exec "$0" run "$@"';
  return scene.startProgram(["setsid", "sh", "-c", script, RELEASE, ...args], options);
}

describe("a soft limit of CPU time", () => {
  test(
    "is the command's, and watchdog outlives its own use of more",
    async () => {
      const args = ["--log", "on", ...scene.recordTo("busy"), "--", "sh", "-c"];
      const ended = await withCpuLimit([...args, KEEPS_WATCHDOG_BUSY], { stdout: "ignore" }).ended;
      expect([ended.status, ended.signal]).toEqual([3, null]);
      // So much output may be too much for the log of a slow disk; nothing else may be said.
      expect(ended.stderr).toMatch(/^(watchdog: \d+ bytes are missing in the log: .*\n)?$/);
      expect(scene.readRecord("busy")).toMatchObject({ state: "ended", exit_code: 3, signals: [] });
    },
    LIMIT_MS,
  );

  test(
    "ends a command that uses more, by XCPU, and the status is that",
    async () => {
      const script = "ulimit -S -t; while :; do :; done";
      const args = ["--log", "off", ...scene.recordTo("over"), "--", "sh", "-c", script];
      const ended = await withCpuLimit(args).ended;
      expect([ended.status, ended.stdout.toString()]).toEqual([XCPU_STATUS, "1\n"]);
      expect(scene.readRecord("over")).toMatchObject({ signal: "XCPU", outcome: "signaled" });
    },
    LIMIT_MS,
  );

  test(
    "that is told to watchdog by XCPU changes nothing, and the command does not hear of it",
    async () => {
      const heard = scene.path("xcpu.heard");
      const run = startWithoutTerminal(
        scene,
        [
          ["--log", "off", ...scene.recordTo("xcpu")],
          ["--", ...python("notes-signals.py", heard, "main", "XCPU,USR1,TERM")],
        ].flat(),
      );
      const hears = (line: string) => waitFor(() => readLines(heard).includes(line), line);
      await hears("main ready");
      run.kill("SIGXCPU");
      run.kill("SIGXCPU");
      run.kill("SIGUSR1");
      await hears("main USR1");
      run.kill("SIGXCPU");
      run.kill("SIGTERM");
      expect((await run.ended).status).toBe(5);
      expect(readLines(heard)).toEqual(["main ready", "main USR1", "main TERM"]);
      const sent = scene.readRecord("xcpu")["signals"];
      expect(sent.map((one: { signal: string }) => one.signal)).toEqual(["USR1", "TERM"]);
    },
    LIMIT_MS,
  );
});

test("a low soft limit of open files binds the command alone: the output is copied", async () => {
  const run = `"$W" run --log on ${scene.recordTo("soft").join(" ")}`;
  const script = `ulimit -Sn 10; ${run} -- sh -c 'ulimit -n; echo out'; echo "status $?"`;
  const ended = await scene.startProgram(["sh", "-c", script], { env: { W: RELEASE } }).ended;
  expect([ended.stdout.toString(), ended.stderr]).toEqual(["10\nout\nstatus 0\n", ""]);
  expect(scene.readRecord("soft")["log"]).toMatchObject({ kept_bytes: 7, because: null });
});

/** It needs one descriptor besides its three. */
const MARKS = 'touch "$0"; echo out; exit 3';

/**
 * No room for the one helper of a run is said, and the run goes on without; so is a takeover from a
 * run before that was aborted.
 */
const BESIDES =
  /^watchdog: (no guard, so nobody ends .* if watchdog is killed|took over job:.*|journal): .*\n/gm;

/** Either the command ran and everything is as it should be, or it was refused. */
function judge(ended: Ended, mark: string, needsHint: boolean): string {
  const hasRun = existsSync(mark);
  rmSync(mark, { force: true });
  const lines = ended.stderr.replaceAll(BESIDES, "").split("\n").slice(0, -1);
  const isOurs = lines.every((line) => line.startsWith("watchdog: "));
  if (hasRun && ended.status === 3 && ended.stdout.toString() === "out\n" && isOurs) return "ran";
  const hasHint = lines[1]?.startsWith("watchdog: hint: ") ?? !needsHint;
  const isRefusal = isOurs && lines[0]?.startsWith("watchdog: error: ") && hasHint;
  if (!hasRun && ended.status === 125 && isRefusal) return "refused";
  const seen = ended.stderr.slice(0, 300);
  return `status ${ended.status}, ${hasRun ? "has run" : "not run"}, ${ended.stdout}: ${seen}`;
}

const GOOD = ["ran", "refused"];

describe.each(["on", "off"])("few descriptors, with --log %s", (mode) => {
  const runWith = async (count: number, round = 0): Promise<string> => {
    const mark = scene.path(`descriptors-${mode}-${round}`);
    const words = [RELEASE, "run", "--log", mode, "--", "sh", "-c", MARKS, mark];
    const run = scene.startProgram(["prlimit", `--nofile=${count}:${count}`, ...words]);
    return judge(await run.ended, mark, true);
  };

  test(
    "the command runs to its own end, or is refused in words and not started",
    async () => {
      await inRounds(Math.ceil(ROUNDS / 4), async (round) => {
        for (let count = 6; count <= 20; count += 1) {
          const found = await runWith(count, round);
          expect([count, GOOD.includes(found) ? "good" : found]).toEqual([count, "good"]);
        }
      });
    },
    LIMIT_MS,
  );

  test(
    "a few more are enough to run it, so these tests prove something",
    async () => {
      expect(await runWith(40)).toBe("ran");
    },
    LIMIT_MS,
  );
});

/** A directory that an ordinary user may use, and the binary where that user can reach it. */
function makeRoomForNobody(): { readonly room: string; readonly binary: string } {
  const room = scene.path("nobody");
  const binary = scene.path("reachable");
  mkdirSync(room);
  chownSync(room, NOBODY, NOBODY);
  chmodSync(scene.directory, 0o755);
  copyFileSync(RELEASE, binary);
  chmodSync(binary, 0o755);
  return { room, binary };
}

/** Bun aborts where it may not have a thread that it wants; the README names it. */
const ABORTED = 134;
const MOST_PROCESSES = 40;
const SOURCE_TEXT = /\$bunfs|function\(|=>|^\d+ \| /m;
/** Too few for the threads that copy: the command is told by its pipe, and the user in words. */
const TOLD = /^(watchdog: (stdout|stderr|the output) cannot be copied: .*\n)+$/;

/** The run before was aborted, and there is no room for the thread that looks for its processes. */
const UNSEEN = /^watchdog: not started: .* dead, and its processes could not be looked for\n/;
const AS_NOBODY = ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"];

interface Few {
  readonly room: string;
  readonly binary: string;
}

/** `nproc` processes at most, or as many as there may be. */
function runAsNobody({ room, binary }: Few, name: string, nproc?: number): Promise<Ended> {
  const limit = nproc === undefined ? [] : ["prlimit", `--nproc=${nproc}:${nproc}`];
  const script = `: >"$0"; echo out; exit 3`;
  const words = ["run", "--log", "on", "--name", name, "--", "sh", "-c", script, `${room}/mark`];
  return scene.startProgram([...AS_NOBODY, ...limit, binary, ...words], {
    cwd: room,
    env: { HOME: room, WATCHDOG_STATE_DIR: `${room}/state` },
  }).ended;
}

function judgeFew(ended: Ended, mark: string): string {
  // The README says so: Bun's engine aborts where it finds no room for a thread of its own.
  // The abort may come while watchdog leaves with the right status.
  const hasAborted = ended.status === ABORTED || /^=+\n(Bun v|$)/.test(ended.stderr);
  const isTold = !hasAborted && TOLD.test(ended.stderr.replaceAll(BESIDES, ""));
  const judged = judge(ended, mark, false);
  return hasAborted ? "aborted" : isTold ? "told" : judged;
}

rootTest(
  "few processes: the right end, a refusal, or output that is told to be lost; never source text",
  async () => {
    const few = makeRoomForNobody();
    const mark = `${few.room}/mark`;
    for (let count = 1; count <= MOST_PROCESSES; count += 1) {
      await waitUntilNobodyRuns();
      const first = await runAsNobody(few, `few-${count}`, count);
      expect([count, SOURCE_TEXT.test(first.stderr)]).toEqual([count, false]);
      const found = judgeFew(first, mark);
      expect([count, [...GOOD, "aborted", "told"].includes(found) ? "good" : found]).toEqual([
        count,
        "good",
      ]);
      if (count === MOST_PROCESSES) expect(found).toBe("ran");
      if (found === "aborted") await expectHandedOn(few, count);
    }
  },
  LIMIT_MS,
);

/** The guard of an aborted run may still be at work, and would be counted. */
async function waitUntilNobodyRuns(): Promise<void> {
  const isTheirs = (pid: number): boolean =>
    readStatusLine(pid, "Uid")?.startsWith(`${NOBODY}\t`) === true && !isDead(pid);
  const look = (): boolean =>
    !readdirSync("/proc").map(Number).filter(Number.isInteger).some(isTheirs);
  await waitFor(look, `no process of user ${NOBODY}`);
}

/** The next one under the same name ends well or is refused, and one with room enough runs. */
async function expectHandedOn(few: Few, count: number): Promise<void> {
  const mark = `${few.room}/mark`;
  const next = await runAsNobody(few, `few-${count}`, count);
  expect([count, SOURCE_TEXT.test(next.stderr)]).toEqual([count, false]);
  const isUnseen = next.status === 75 && UNSEEN.test(next.stderr) && !existsSync(mark);
  const judged = isUnseen ? "refused" : judgeFew(next, mark);
  expect([count, [...GOOD, "aborted", "told"].includes(judged) ? "good" : judged]).toEqual([
    count,
    "good",
  ]);
  const last = await runAsNobody(few, `few-${count}`);
  expect([count, judge(last, mark, false)]).toEqual([count, "ran"]);
}

test(
  "a descriptor above the soft limit of open files arrives, and the limit too",
  async () => {
    for (const mode of ["on", "off"]) {
      const inner = 'ulimit -n; cat /proc/self/fd/200; cat <&200; echo "$(ls /proc/self/fd)"';
      const script = `echo text >"$D/high"; exec 200<"$D/high"; ulimit -n 64
        exec $W bash -c '${inner}'`;
      const runAs = async (front: string): Promise<Ended> =>
        scene.startProgram(["bash", "-c", script.replace("$W", front)], {
          env: { D: scene.directory, W: RELEASE },
        }).ended;
      const [alone, wrapped] = [await runAs(""), await runAs(`"$W" run --log ${mode} --`)];
      expect(alone.stdout.toString()).toStartWith("64\ntext\ntext\n");
      expect([wrapped.status, wrapped.stderr]).toEqual([0, ""]);
      expect(wrapped.stdout.toString()).toBe(alone.stdout.toString());
      expect(wrapped.stdout.toString().split("\n")).toContain("200");
    }
  },
  LIMIT_MS,
);
