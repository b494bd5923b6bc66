/**
 * One command with its tree, as real processes: what becomes of those that it leaves, how its limit
 * ends them, and which signals come through. What a fence makes of it is in e2e/fence*.test.ts.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import type { OperationPlan } from "../fixtures/operates.ts";
import {
  findAnywhere,
  findByCommand,
  python,
  readLines,
  readStatusLine,
  waitForCommand,
} from "../support/processes.ts";
import { FIXTURES, killQuietly, openScene, rootTest } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 60_000;
const SIGTERM = 15;
const NAMESPACE = ["unshare", "-pf", "--mount-proc", "--kill-child"];

const start = (...plans: OperationPlan[]) => startUnder([], ...plans);

function startUnder(around: readonly string[], ...plans: OperationPlan[]) {
  const texts = plans.map((plan) => JSON.stringify(plan));
  const words = [process.execPath, `${FIXTURES}/operates.ts`, ...texts];
  const { pid, kill, ended } = scene.startProgram([...around, ...words]);
  return { pid, kill, ended: ended.then(({ stdout }) => JSON.parse(stdout.toString())) };
}

/** Leaves an orphan and a child in a session of its own, neither of which has the pipe. */
function leaving(mark: string, how: string): string[] {
  const [orphan, child] = [`sleep ${mark}1`, `sleep ${mark}2`];
  const both = `(setsid ${orphan} <&- >&- 2>&- &); setsid ${child} <&- >&- 2>&- &`;
  const isThere = `pgrep -fx '${orphan}' && pgrep -fx '${child}'`;
  return ["sh", "-c", `${both} until ${isThere}; do sleep 0.02; done >&2; ${how}`];
}

/** Sent, and not yet heard by any thread. */
function isPending(pid: number): boolean {
  return /[^0]/.test(readStatusLine(pid, "ShdPnd") ?? "");
}

function leftOf(mark: string): number[] {
  return [...findAnywhere(`sleep ${mark}1`), ...findAnywhere(`sleep ${mark}2`)];
}

describe("what is left when the command has ended by itself", () => {
  test("is killed until nobody is left, where that was asked for", async () => {
    const command = leaving("9531", "exit 7");
    const ended = await start({ command, leftovers: "end" }).ended;
    expect(ended).toEqual({
      kind: "ended",
      end: { kind: "exited", code: 7 },
      isTimedOut: false,
      signals: [],
      unended: [],
      left: [],
      bugs: [],
    });
    expect(leftOf("9531")).toEqual([]);
  });

  test("has the time to end by itself, where that was asked for", async () => {
    const file = scene.path("awaited");
    const command = ["sh", "-c", `(sleep 0.5; echo done >${file}) & exit 7`];
    const ended = await start({ command, leftovers: "await", timeoutMs: 40_000 }).ended;
    expect([ended.end.code, ended.isTimedOut, ended.left]).toEqual([7, false, []]);
    // It has waited for it: the file is there at once.
    expect(readLines(file)).toEqual(["done"]);
  });

  test("and has no end is ended at the limit, which is none of the command", async () => {
    const command = leaving("9536", "exit 7");
    const ended = await start({ command, leftovers: "await", timeoutMs: 700 }).ended;
    expect([ended.end, ended.isTimedOut]).toEqual([{ kind: "exited", code: 7 }, false]);
    expect([ended.left, ended.unended, leftOf("9536")]).toEqual([[], [], []]);
    const deaf = ["sh", "-c", "(trap '' TERM; while :; do sleep 0.1; done) & exit 0"];
    const plan = { command: deaf, leftovers: "await", timeoutMs: 300, graceMs: 200 } as const;
    expect((await start(plan).ended).end).toEqual({ kind: "exited", code: 0 });
  });

  test("goes on and is named, where it was not", async () => {
    const command = leaving("9532", "exit 7");
    const { left, end } = await start({ command }).ended;
    const found = leftOf("9532");
    expect([found.length, end.code]).toEqual([2, 7]);
    expect(left.map((one: { command: string }) => one.command).sort()).toEqual([
      "sleep 95321",
      "sleep 95322",
    ]);
    for (const pid of found) killQuietly(pid);
  });

  test(
    "may ignore TERM, and is gone long before any grace would be over",
    async () => {
      const inner = "trap '' TERM; while :; do sleep 95333; done";
      const command = ["sh", "-c", `setsid sh -c "${inner}" <&- >&- 2>&- & exit 0`];
      const began = performance.now();
      const { end } = await start({ command, leftovers: "end", timeoutMs: 40_000 }).ended;
      expect([end, performance.now() - began < 5_000]).toEqual([{ kind: "exited", code: 0 }, true]);
      expect(findAnywhere("sleep 95333")).toEqual([]);
    },
    LIMIT_MS,
  );

  test("is asked first where that was wished for, and may end its work", async () => {
    const note = scene.path("asked.note");
    const trap = `trap 'echo asked >${note}; exit' TERM`;
    const asked = `${trap}; touch ${note}; while :; do sleep 0.05; done`;
    const isThere = `until [ -e ${note} ]; do sleep 0.02; done`;
    const command = ["sh", "-c", `setsid sh -c "${asked}" <&- >&- 2>&- & ${isThere}; exit 3`];
    const { end, left } = await start({ command, leftovers: "ask", graceMs: 30_000 }).ended;
    expect([end, left, readLines(note)]).toEqual([{ kind: "exited", code: 3 }, [], ["asked"]]);
  });

  test("that was asked, and ignores it, gets KILL when the grace is over", async () => {
    const inner = "trap '' TERM; while :; do sleep 95338; done";
    const isThere = "until pgrep -fx 'sleep 95338' >&2; do sleep 0.02; done";
    const command = ["sh", "-c", `setsid sh -c "${inner}" <&- >&- 2>&- & ${isThere}; exit 3`];
    const began = performance.now();
    const { end } = await start({ command, leftovers: "ask", graceMs: 400 }).ended;
    const isLate = performance.now() - began >= 500; // what settles by itself has 100 ms
    expect([end, isLate]).toEqual([{ kind: "exited", code: 3 }, true]);
    expect(findAnywhere("sleep 95338")).toEqual([]);
  });

  test("is nobody where nobody is left", async () => {
    const ended = await start({ command: ["true"], leftovers: "end" }).ended;
    expect([ended.end, ended.left]).toEqual([{ kind: "exited", code: 0 }, []]);
  });
});

describe("at the limit", () => {
  test("everything gets KILL when the grace that was given is over", async () => {
    const command = ["sh", "-c", "trap '' TERM; setsid sleep 95341 & sleep 95342; wait"];
    const began = performance.now();
    const { isTimedOut, end } = await start({ command, timeoutMs: 2_000, graceMs: 400 }).ended;
    const spentMs = performance.now() - began;
    expect([isTimedOut, end]).toEqual([true, { kind: "signaled", signal: 9 }]);
    expect([spentMs >= 2_390, spentMs < 20_000]).toEqual([true, true]);
    expect(["sleep 95341", "sleep 95342"].flatMap(findAnywhere)).toEqual([]);
  });

  test("without any grace KILL follows at once", async () => {
    const command = ["sh", "-c", "trap '' TERM; while :; do sleep 95343; done"];
    const began = performance.now();
    const { isTimedOut, end } = await start({ command, timeoutMs: 2_000, graceMs: 0 }).ended;
    expect([isTimedOut, end]).toEqual([true, { kind: "signaled", signal: 9 }]);
    expect(performance.now() - began).toBeLessThan(20_000);
  });

  test("leftovers that are to be ended are ended as the rest", async () => {
    const command = leaving("9535", "sleep 95353");
    const ended = await start({ command, leftovers: "end", timeoutMs: 700 }).ended;
    expect([ended.isTimedOut, ended.end]).toEqual([true, { kind: "signaled", signal: 15 }]);
    expect([...leftOf("9535"), ...findAnywhere("sleep 95353")]).toEqual([]);
  });
});

describe("a signal", () => {
  test("is passed on and told of, each once", async () => {
    const notes = scene.path("passed.notes");
    const operation = start({ command: python("notes-signals.py", notes, "main", "USR1,TERM") });
    await waitFor(() => readLines(notes).includes("main ready"), "a command that hears");
    for (const count of [1, 2]) {
      operation.kill("SIGUSR1");
      const look = () => readLines(notes).filter((line) => line === "main USR1").length === count;
      await waitFor(look, "the signal");
    }
    operation.kill("SIGTERM");
    const { signals, end } = await operation.ended;
    expect([signals, end.code]).toEqual([[10, 15], 5]);
  });

  test("between two operations is for the next one", async () => {
    const after = scene.path("second");
    const second = { command: ["sleep", "20"], after };
    const operation = start({ command: ["true"] }, second);
    await waitFor(() => existsSync(`${after}.waits`), "the first to have ended");
    operation.kill("SIGTERM");
    await waitFor(() => !isPending(operation.pid), "the signal to have been taken");
    writeFileSync(after, "");
    const [first, next] = await operation.ended;
    expect([first.signals, next.signals, next.end]).toEqual([
      [],
      [SIGTERM],
      { kind: "signaled", signal: SIGTERM },
    ]);
  });

  test("comes to a command in a session of its own, too", async () => {
    const operation = start({ command: ["sleep", "95361"], group: "own-session" });
    const [sleeper = 0] = await waitForCommand(scene, "sleep 95361");
    expect(readStatusLine(sleeper, "NSsid")).toBe(String(sleeper));
    operation.kill("SIGINT");
    const { end } = await operation.ended;
    expect([end, findByCommand(scene, "sleep 95361")]).toEqual([
      { kind: "signaled", signal: 2 },
      [],
    ]);
  });
});

describe("of two at the same time", () => {
  test("the limit of one ends its own tree and nobody of the other", async () => {
    const limited = ["sh", "-c", "trap '' TERM; sleep 95371 & sleep 95372; wait"];
    const isThere = "pgrep -fx 'sleep 95371' >&2";
    const waits = (until: string) => `until ${until}; do sleep 0.05; done;`;
    const outlives = `${waits(isThere)} ${waits(`! ${isThere}`)} sleep 0.2; exit 6`;
    const other = ["sh", "-c", outlives];
    const [first, second] = await start(
      { command: limited, timeoutMs: 1_500, graceMs: 100, leftovers: "end" },
      { command: other, timeoutMs: 60_000, leftovers: "end" },
    ).ended;
    expect([first.isTimedOut, first.end]).toEqual([true, { kind: "signaled", signal: 9 }]);
    expect([second.isTimedOut, second.end]).toEqual([false, { kind: "exited", code: 6 }]);
    expect(["sleep 95371", "sleep 95372"].flatMap(findAnywhere)).toEqual([]);
  });

  test("the leftovers of one are ended while the other goes on", async () => {
    const begun = scene.path("quick.begun");
    const quick = ["sh", "-c", `sleep 95374 & touch ${begun}; exit 4`];
    const isOver = `[ -e ${begun} ] && ! pgrep -fx 'sleep 95374' >&2`;
    const slow = ["sh", "-c", `until ${isOver}; do sleep 0.05; done; exit 5`];
    const ends = await start(
      { command: slow, leftovers: "end" },
      { command: quick, leftovers: "end" },
    ).ended;
    const codes = ends.map((one: { end: { code: number } }) => one.end.code);
    expect([codes, findAnywhere("sleep 95374")]).toEqual([[5, 4], []]);
  });

  rootTest("a pid that was the first one's is not spared by the other one's end", async () => {
    const [note, isReused] = [scene.path("first.pid"), scene.path("is.reused")];
    const asked = scene.path("first.asked");
    const stays = `trap 'touch ${asked}' TERM; while :; do sleep 0.05; done`;
    const first = ["sh", "-c", `sh -c "${stays}" & echo $$ >${note}.new; mv ${note}.new ${note}`];
    // ns_last_pid (proc(5)): the next process gets the number after it.
    const second = `until [ -e ${note} ]; do sleep 0.02; done; wanted=$(cat ${note})
      until [ ! -e /proc/$wanted ] && [ -e ${asked} ]; do sleep 0.02; done
      while :; do
        echo $((wanted - 1)) >/proc/sys/kernel/ns_last_pid; sleep 95376 & found=$!
        [ $found = $wanted ] && break
        kill -9 $found; wait $found
      done; touch ${isReused}; exit 6`;
    const { ended } = startUnder(
      NAMESPACE,
      { command: first, leftovers: "ask", graceMs: 100_000 },
      { command: ["sh", "-c", second], leftovers: "end" },
    );
    await waitFor(() => existsSync(isReused), "the pid to be used again");
    // Long before the first one's grace would be over.
    const isEnded = () => findAnywhere("sleep 95376").length === 0;
    await waitFor(isEnded, "the end of who has it now", { limitMs: 30_000 });
    expect((await ended).map((one: { end: object }) => one.end)).toEqual([
      { kind: "exited", code: 0 },
      { kind: "exited", code: 6 },
    ]);
  });

  test("each hears of a signal", async () => {
    const notes = ["one", "two"].map((name) => scene.path(`${name}.notes`));
    const plans = notes.map((path) => ({
      command: python("notes-signals.py", path, "main", "TERM"),
    }));
    const both = start(...plans);
    const hear = () => notes.every((path) => readLines(path).includes("main ready"));
    await waitFor(hear, "two commands that hear");
    both.kill("SIGTERM");
    const ends = await both.ended;
    expect(ends.map((one: { signals: number[] }) => one.signals)).toEqual([[15], [15]]);
    expect(notes.map((path) => readLines(path).includes("main TERM"))).toEqual([true, true]);
  });
});

test("a program that is not there is refused with its reason", async () => {
  const { kind, because } = await start({ command: ["/no/such"] }).ended;
  expect([kind, because]).toEqual(["refused", "not-found"]);
});
