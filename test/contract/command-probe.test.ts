/**
 * Probes by a command: what is answered, and that nothing of a command is left. Real processes; the
 * helper is run by Bun itself (fixtures/answers-for-a-command.ts).
 */
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  writeFileSync,
} from "node:fs";
import type { ProbeResult } from "../../src/core/probe-result.ts";
import { readInheritance } from "../../src/os/inheritance.ts";
import { F_SETFD, sys } from "../../src/os/sys.ts";
import {
  ANSWER_LIMIT_MS,
  CommandProbes,
  type CommandProbesRequest,
} from "../../src/run/dependencies/command-probe.ts";
import { isDead, python, readLines, waitForText } from "../support/processes.ts";
import { FIXTURES, openScene, readCommandLine } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const inherited = readInheritance();
/** Long beside what the command needs, on any machine. */
const AMPLE_MS = 60_000;
/** Short, and still some time after the command has begun. */
const SHORT_MS = 400;

const HELPER = program(
  "helper",
  `exec ${process.execPath} ${FIXTURES}/answers-for-a-command.ts "$@"`,
);

function program(name: string, line: string): string {
  const path = scene.path(`${name}.sh`);
  writeFileSync(path, `#!/bin/sh\n${line}\n`);
  chmodSync(path, 0o700);
  return path;
}

function environment(): Uint8Array[] {
  const entries = Object.entries(scene.env).map(([name, value]) => `${name}=${value}`);
  return entries.map((entry) => new TextEncoder().encode(entry));
}

function makeProbes(changes: Partial<CommandProbesRequest> = {}): CommandProbes {
  return new CommandProbes({ inherited, environment, program: HELPER, ...changes });
}

/** Nobody else collects here: the children of the test run are its own. */
async function collecting<T>(probes: CommandProbes, asked: Promise<T>): Promise<T> {
  const answer: { value?: T } = {};
  void asked.then((value) => (answer.value = value));
  await waitFor(() => {
    probes.collectOwn();
    return "value" in answer;
  }, "an answer");
  return asked;
}

async function untilGone(probes: CommandProbes): Promise<void> {
  await waitFor(() => {
    probes.collectOwn();
    return probes.pids.size === 0;
  }, "no helper left");
}

function ask(command: string, timeoutMs = AMPLE_MS): Promise<ProbeResult> {
  const probes = makeProbes();
  return collecting(probes, probes.probe(command, timeoutMs));
}

function verdict({ isGood, because, detail }: ProbeResult): [boolean, string, string] {
  return [isGood, because, detail];
}

/** Proves at once that the scene is empty: a helper has left only when its tree is gone. */
function expectNothingLeft(): void {
  expect(scene.findProcesses()).toEqual([]);
}

describe("a command", () => {
  test("that leaves with 0 is good, whatever it says", async () => {
    const result = await ask("echo all is well; echo but >&2");
    expect(verdict(result)).toEqual([true, "good", "status 0"]);
    expect(result.stages).toEqual([{ stage: "command", ms: expect.any(Number) }]);
    expect(result.stages[0]?.ms).toBeLessThan(AMPLE_MS);
  });

  test("that leaves with another status has failed, and what it said is told", async () => {
    const result = await ask("echo not; echo today >&2; printf 'no\\ttab \\033[1m'; exit 3");
    const said = "not today no tab [1m";
    expect(verdict(result)).toEqual([
      false,
      "command-failed",
      `status 3, expected status 0; it said: ${said}`,
    ]);
  });

  test("that dies of a signal has failed", async () => {
    const detail = "signal SEGV, expected status 0";
    expect(verdict(await ask("kill -SEGV $$"))).toEqual([false, "command-failed", detail]);
  });

  test("that the shell does not find has failed with its status", async () => {
    const result = await ask("no-such-program-here 2>/dev/null");
    expect(result.detail).toBe("status 127, expected status 0");
  });

  test("that signals its whole group hits itself and not its helper", async () => {
    const result = await ask("kill -KILL 0");
    expect(verdict(result)).toEqual([false, "command-failed", "signal KILL, expected status 0"]);
  });

  test("gets an empty input, a session of its own and what was handed in", async () => {
    const probes = makeProbes({ umask: 0o137 });
    const out = scene.path("surroundings");
    const lines = [
      "readlink /proc/self/fd/0",
      // Not into a pipe: the shell has an end of it open until the next command is started.
      "ls -m /proc/$$/fd",
      "umask",
      "pwd",
      "echo $WATCHDOG_TEST_COOKIE",
      "cut -d' ' -f6 /proc/$$/stat; echo $$",
      "cat; cut -d' ' -f7 /proc/$$/stat",
    ];
    const command = `{ ${lines.join("; ")}; } >${out}`;
    expect(await collecting(probes, probes.probe(command, AMPLE_MS))).toMatchObject({
      isGood: true,
    });
    const [input, descriptors, umask, cwd, cookie, session, pid, terminal] = readLines(out);
    expect(input).toBe("/dev/null");
    // 9: the text of the command. From 10 on: the shell's own copies.
    expect(descriptors?.split(", ").filter((fd) => Number(fd) < 10)).toEqual(["0", "1", "2", "9"]);
    expect([umask, cwd, cookie]).toEqual(["0137", process.cwd(), scene.cookie]);
    expect(session).toBe(String(pid));
    expect(terminal).toBe("0");
  });
});

/** What each leaves, having said so: a file, and a process that does not want to go. */
const TREES: readonly (readonly [string, string])[] = [
  ["ignores TERM", "trap '' TERM; echo >FILE; while :; do sleep 331; done"],
  ["has a child that ignores TERM", "sh -c \"trap '' TERM; echo >FILE; sleep 332 & wait\"; wait"],
  ["stops itself", "echo >FILE; kill -STOP $$"],
  ["has a child in another session", "setsid sh -c \"trap '' TERM; echo >FILE; sleep 333\""],
  [
    "has forked twice",
    `${python("daemonizes.py", "FILE").join(" ")} ` +
      "sh -c \"trap '' TERM; while :; do sleep 334; done\"; sleep 335",
  ],
  [
    "is held open by a child of another session",
    "setsid sh -c \"trap '' TERM; exec sleep 336\" & echo >FILE; wait",
  ],
];

describe("at its limit a command", () => {
  test.each(TREES)("that %s is ended with all that it has started", async (title, line) => {
    const file = scene.path(`begun-${title.replaceAll(" ", "-")}`);
    const probes = makeProbes();
    const began = performance.now();
    const asked = probes.probe(line.replaceAll("FILE", file), 2_000);
    const result = await collecting(probes, asked);
    expect(existsSync(file)).toBe(true);
    expect(result.because).toBe("command-timeout");
    expect(result.detail).toStartWith("the command had no end within 2 s");
    expect(performance.now() - began).toBeGreaterThan(2_000);
    expectNothingLeft();
  });

  test("hears of it first", async () => {
    const file = scene.path("told");
    const result = await ask(`trap 'echo TERM >${file}; exit 0' TERM; sleep 337 & wait`, SHORT_MS);
    expect(result.because).toBe("command-timeout");
    expect(readFileSync(file, "utf8")).toBe("TERM\n");
    expectNothingLeft();
  });
});

describe("when a command has ended, what it has left", () => {
  test.each([
    ["beside it", "sleep 341 &"],
    ["in another session, with its output open", "setsid sleep 342 &"],
    ["after two forks", `${python("daemonizes.py", "FILE").join(" ")} sleep 343`],
    [
      "ignoring TERM",
      "sh -c \"trap '' TERM; echo >FILE; exec sleep 344\" & until [ -s FILE ]; do :; done",
    ],
  ])("%s is ended, and the answer is the command's", async (title, line) => {
    const file = scene.path(`left-${title.replaceAll(/\W+/g, "-")}`);
    const began = performance.now();
    const result = await ask(`${line.replaceAll("FILE", file)}\nexit 5`);
    expect(result.detail).toBe("status 5, expected status 0");
    expect(performance.now() - began).toBeLessThan(AMPLE_MS);
    expectNothingLeft();
  });
});

describe("what a command prints", () => {
  const MIB = 1_048_576;

  /** The most that the helper, its parent, has ever held. */
  const TELL_MEMORY = "grep VmHWM /proc/$PPID/status";

  function memoryIn(detail: string): number {
    return Number(/VmHWM: (\d+) kB/.exec(detail)?.[1]) * 1_024;
  }

  test("is kept from both ends and costs no memory, be it a gigabyte", async () => {
    const few = memoryIn((await ask(`${TELL_MEMORY}; exit 1`)).detail);
    const flood = "echo begin; head -c 1073741824 /dev/zero | tr '\\0' x";
    const { detail } = await ask(`${flood}; echo; ${TELL_MEMORY}; echo end; exit 1`);
    expect(detail).toStartWith("status 1, expected status 0; it said: begin xxx");
    expect(detail).toContain("x … x");
    expect(detail).toEndWith(" end");
    expect(detail.length).toBeLessThan(1_200);
    expect(memoryIn(detail) - few).toBeLessThan(32 * MIB);
  }, 120_000);

  test("without an end does not hold up the limit", async () => {
    const began = performance.now();
    const result = await ask("yes $(printf '\\303\\244%.0s' 1 2 3 4 5 6 7)", 1_000);
    expect(result.because).toBe("command-timeout");
    expect(performance.now() - began).toBeLessThan(1_000 + ANSWER_LIMIT_MS);
    expect(result.detail).not.toContain("\uFFFD");
    expectNothingLeft();
  });
});

describe("whoever has asked", () => {
  test("may stop it: he is answered at once, and all of it is gone soon", async () => {
    const file = scene.path("stopping");
    const probes = makeProbes();
    const stop = new AbortController();
    const asked = probes.probe(`trap '' TERM; echo >${file}; sleep 351`, AMPLE_MS, stop.signal);
    await waitForText(file);
    stop.abort();
    expect((await asked).because).toBe("stopped");
    expect(probes.pids.size).toBe(1);
    await untilGone(probes);
    expectNothingLeft();
  });

  test("may stop it, and all of it is gone though the command has stopped the helper", async () => {
    const file = scene.path("stopped-helper");
    const probes = makeProbes();
    const stop = new AbortController();
    const command = `kill -STOP $PPID; echo stopped >${file}; sleep 353`;
    const asked = probes.probe(command, AMPLE_MS, stop.signal);
    await waitForText(file);
    stop.abort();
    expect((await asked).because).toBe("stopped");
    await untilGone(probes);
    expectNothingLeft();
  });

  test("that has stopped before starts nothing", async () => {
    const probes = makeProbes();
    const result = await probes.probe("echo", AMPLE_MS, AbortSignal.abort());
    expect([result.because, probes.pids.size]).toEqual(["stopped", 0]);
  });

  test("may die: the helper and its command are gone long before the limit", async () => {
    const file = scene.path("orphaned");
    const command = `trap '' TERM; setsid sleep 352 & echo >${file}; wait`;
    const asker = Bun.spawn(
      [process.execPath, `${FIXTURES}/asks-a-command.ts`, HELPER, String(AMPLE_MS), command],
      { env: scene.env, stdout: "pipe" },
    );
    await waitForText(file);
    expect(scene.findProcesses().length).toBeGreaterThan(3);
    process.kill(asker.pid, "SIGKILL");
    await asker.exited;
    await waitFor(() => scene.findProcesses().length === 0, "nobody left", { limitMs: 20_000 });
  });

  test("and collects all children himself hears of the end by them", async () => {
    const asker = Bun.spawn(
      [process.execPath, `${FIXTURES}/asks-a-command.ts`, HELPER, String(AMPLE_MS), "exit 7"],
      { env: scene.env, stdout: "pipe" },
    );
    const [asked = "", answer = ""] = (await new Response(asker.stdout).text()).split("\n");
    expect(asked).toMatch(/^asked \d+$/);
    expect(JSON.parse(answer)).toMatchObject({ because: "command-failed" });
  });

  test("may have several at a time, each with its own answer", async () => {
    const probes = makeProbes();
    const codes = [1, 2, 3, 4];
    const all = codes.map((code) => probes.probe(`exit ${code}`, AMPLE_MS));
    expect(probes.pids.size).toBe(codes.length);
    const results = await collecting(probes, Promise.all(all));
    expect(results.map(({ detail }) => detail.split(",")[0])).toEqual(
      codes.map((code) => `status ${code}`),
    );
    expect(probes.pids.size).toBe(0);
  });

  test("hears nothing of children that are not his helpers", async () => {
    const probes = makeProbes();
    const asked = probes.probe("exit 6", AMPLE_MS);
    const [pid = 0] = probes.pids;
    probes.onEnded({ kind: "exited", pid: pid + 1, code: 0, usage: { cpuMs: 0 } });
    probes.onEnded({ kind: "stopped", pid, signal: 19 });
    expect(probes.pids.size).toBe(1);
    expect((await collecting(probes, asked)).because).toBe("command-failed");
  });
});

test("under a small limit for files a command has failed all the same", async () => {
  const limited = readFileSync(HELPER, "utf8").split("\n")[1] ?? "";
  const probes = makeProbes({ program: program("limited", `ulimit -f 1; ${limited}`) });
  const command = "head -c 2000 /dev/zero | tr '\\0' x; exit 3";
  const result = await collecting(probes, probes.probe(command, AMPLE_MS));
  expect(verdict(result)).toEqual([false, "command-failed", "status 3, expected status 0"]);
});

describe("a helper", () => {
  async function askWith(line: string, timeoutMs = AMPLE_MS): Promise<ProbeResult> {
    const probes = makeProbes({ program: program(`broken-${crypto.randomUUID()}`, line) });
    const result = await collecting(probes, probes.probe("true", timeoutMs));
    await untilGone(probes);
    return result;
  }

  test.each([
    ["leaves without a line", "exit 3", "its helper left with status 3 and without an answer"],
    ["dies", "kill -KILL $$", "its helper died of KILL"],
    ["says something else", "echo well", "its helper left with status 0 and without an answer"],
    ["says half a line", "printf '{\"isGood\":true'", "status 0 and without an answer"],
  ])("that %s has not started the command", async (_, line, reason) => {
    const result = await askWith(line);
    expect(verdict(result)).toEqual([false, "command-not-started", expect.any(String)]);
    expect(result.detail).toEndWith(reason);
  });

  test("that is not there has not started it either", async () => {
    const probes = makeProbes({ program: scene.path("no-such-helper") });
    const result = await probes.probe("true", AMPLE_MS);
    expect(result.because).toBe("command-not-started");
    expect(result.detail).toContain("no such file or directory");
    expect(probes.pids.size).toBe(0);
  });

  test("that neither answers nor leaves is killed, and the command has had no end", async () => {
    const began = performance.now();
    const result = await askWith('echo $$ >"$(dirname "$0")/stuck"; exec sleep 361', 100);
    expect(result.because).toBe("command-timeout");
    expect(performance.now() - began).toBeGreaterThan(100 + ANSWER_LIMIT_MS);
    expect(isDead(Number(readFileSync(scene.path("stuck"), "utf8")))).toBe(true);
  }, 20_000);

  test("holds nothing of ours but its order and the place of its answer", async () => {
    const fd = openSync("/dev/null", "r");
    sys.fcntl(fd, F_SETFD, 0); // as Bun leaves the caller's number 3
    const probes = makeProbes({
      program: program("stays", "exec sleep 371"),
      inherited: { ...inherited, descriptors: [fd] },
    });
    const stop = new AbortController();
    const asked = probes.probe("true", AMPLE_MS, stop.signal);
    closeSync(fd);
    const [pid = 0] = probes.pids;
    await waitFor(() => readCommandLine(pid) === "sleep 371", "the helper");
    const held = readdirSync(`/proc/${pid}/fd`).map((name) => {
      return `${name} ${readlinkSync(`/proc/${pid}/fd/${name}`).split(/[: ]/, 2)[0]}`;
    });
    expect(held.sort()).toEqual(["0 pipe", "1 /memfd", "2 /dev/null", "7 /memfd"]);
    stop.abort();
    expect((await asked).because).toBe("stopped");
    await untilGone(probes);
  });
});
