/**
 * watchdog as the first process of a pid namespace, as in a container: every orphan is its child,
 * and no signal has a default action for it.
 */
import { describe, expect } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import {
  openScene,
  readCommandLine,
  RELEASE,
  ROUNDS,
  rootTest,
  type Started,
} from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const NAMESPACE = ["unshare", "-pf", "--mount-proc", "--kill-child", RELEASE, "run"] as const;
const LOGS = [["off"], ["auto"], ["on"]] as const;

function startAsProcessOne(words: readonly string[]): Started {
  return scene.startProgram([...NAMESPACE, ...words]);
}

/** The pid of watchdog as seen from outside of its namespace. */
async function findProcessOne(run: Started): Promise<number> {
  const isWatchdog = (pid: number) => readCommandLine(pid).startsWith(`${RELEASE} run`);
  const children = () => readFileSync(`/proc/${run.pid}/task/${run.pid}/children`, "latin1");
  return waitFor(() => children().split(" ").map(Number).find(isWatchdog), "watchdog as process 1");
}

function countOf(commandLine: string): number {
  return scene.findProcesses().filter((pid) => readCommandLine(pid) === commandLine).length;
}

describe("A-97: as process 1", () => {
  for (const [log] of LOGS) {
    rootTest(`collects every orphan and passes the status on (--log ${log})`, async () => {
      const orphan = `setsid sh -c 'echo >>"$0"; exit 3' "$0" an-orphan`;
      const orphans = `for i in $(seq ${ROUNDS}); do (${orphan} &); done`;
      // All have been there, and none is left: whoever was not collected stays a zombie.
      const left = `ps ax -o stat=,args= | grep -c -e "^Z" -e "an-orphan$"`;
      const areOver = `[ "$(wc -l <"$0")" = ${ROUNDS} ] && [ "$(${left})" = 0 ]`;
      const look = `until ${areOver}; do sleep 0.02; done`;
      const script = `echo $PPID; ${orphans}; (setsid sleep 96401 &); ${look}; exit 7`;
      const run = startAsProcessOne([
        ...scene.recordTo(`orphans-${log}`),
        "--log",
        log,
        "--",
        "sh",
        "-c",
        script,
        scene.path(`orphans-${log}.began`),
      ]);
      const ended = await run.ended;
      expect(ended.stdout.toString()).toBe("1\n");
      expect(ended.status).toBe(7);
      expect(ended.stderr).toMatch(
        /^watchdog: ended 1 process left by the command: \d+ sleep 96401; hint: [^\n]+\n$/,
      );
      expect(scene.readRecord(`orphans-${log}`)).toMatchObject({
        pid: 1,
        outcome: "failed",
        exit_code: 7,
        leftovers: [{ command: "sleep 96401", ended_by: "TERM" }],
      });
      expect(countOf("sleep 96401")).toBe(0);
    });

    rootTest(`TERM ends the job and then itself (--log ${log})`, async () => {
      const run = startAsProcessOne([
        ...scene.recordTo(`term-${log}`),
        "--log",
        log,
        "--",
        "sleep",
        "96402",
      ]);
      await waitFor(() => countOf("sleep 96402") === 1, "the sleeper");
      process.kill(await findProcessOne(run), "SIGTERM");
      const ended = await run.ended;
      expect([ended.code, ended.stderr]).toEqual([143, ""]);
      expect(scene.readRecord(`term-${log}`)).toMatchObject({
        outcome: "stopped",
        because: "terminated",
        exit_status: 143,
        signal: "TERM",
      });
    });
  }

  for (const [name, number] of [
    ["TERM", 15],
    ["KILL", 9],
    ["SEGV", 11],
    ["HUP", 1],
    ["RTMIN", 34],
  ] as const) {
    rootTest(`exits with 128 + ${number} when the command died of ${name}`, async () => {
      const script = `ulimit -c 0; kill -${number} $$`;
      const ended = await startAsProcessOne(["--log", "off", "--", "sh", "-c", script]).ended;
      expect([ended.code, ended.signal]).toEqual([128 + number, null]);
      expect(ended.stderr).toBe("");
    });
  }

  rootTest("a second TERM kills what ignores the first", async () => {
    const script = `trap "" TERM; setsid sleep 96403 & sleep 96404`;
    const run = startAsProcessOne(["--log", "off", "--", "sh", "-c", script]);
    await waitFor(() => countOf("sleep 96403") + countOf("sleep 96404") === 2, "both sleepers");
    const pid = await findProcessOne(run);
    process.kill(pid, "SIGTERM");
    process.kill(pid, "SIGTERM");
    // Two that come at once may be one: a third does no harm.
    await waitFor(() => !existsSync(`/proc/${pid}`) || killAgain(pid), "the end of process 1");
    expect((await run.ended).status).toBe(137);
  });

  rootTest(
    "asks what is left before it ends, though the kernel would kill it without a word",
    async () => {
      const file = scene.path("asked");
      const trap = `trap "echo asked >${file}; exit" TERM`;
      const child = `${trap}; echo ready >${file}.ready; while :; do sleep 0.05; done`;
      const script = `setsid sh -c '${child}' & until [ -e ${file}.ready ]; do sleep 0.02; done`;
      const ended = await startAsProcessOne(["--log", "off", "--", "sh", "-c", script]).ended;
      expect(ended.status).toBe(0);
      expect(readFileSync(file, "latin1")).toBe("asked\n");
    },
  );

  rootTest(
    "meets a limit with a tree that ignores TERM and lives in sessions of its own",
    async () => {
      const script = `trap "" TERM; setsid sleep 96405 & setsid setsid sleep 96406 & sleep 96407`;
      const words = ["--log", "off", "--timeout", "500ms", "--kill-after", "300ms", "--"];
      const run = startAsProcessOne([...scene.recordTo("limit"), ...words, "sh", "-c", script]);
      expect((await run.ended).status).toBe(124);
      expect(scene.readRecord("limit")).toMatchObject({
        pid: 1,
        outcome: "timeout",
        unsignalable: [],
      });
    },
  );
});

function killAgain(pid: number): false {
  try {
    process.kill(pid, "SIGTERM");
  } catch {
    // ESRCH: it has ended since we looked, which is what we wait for.
  }
  return false;
}
