/**
 * Whom a freeze touches, whom it does not, and what becomes of trouble with one of them. Real
 * processes, judged as in freeze.test.ts.
 */
import { describe, expect, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { readStat } from "../../src/os/proc.ts";
import { expectAllGoOn, openFreezing, statesBelow } from "../support/freezing.ts";
import { findMoving, listBelow, stateOf, waitForGrowth } from "../support/movement.ts";
import { python, waitForText } from "../support/processes.ts";
import { killQuietly, readCommandLine, RELEASE, rootTest } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const { scene, start, counter, forget } = openFreezing(import.meta.file);
const LIMIT_MS = 180_000;
/** Two users, neither of them root. */
const [STRANGER, NOBODY] = [54_423, 54_424];

/** A line of Python that becomes another user, and then this program. */
function asUser(uid: number, words: readonly string[]): string {
  return `import os; os.setuid(${uid}); os.execvp("python3", ${JSON.stringify(words)})`;
}

function isSessionLeader(pid: number): boolean {
  return readStat(pid)?.sessionId === pid;
}

describe("what is not of the job", () => {
  test(
    "helpers, and what is below them, go on",
    async () => {
      const file = scene.path("helper");
      const freezing = await start([
        "sh",
        "-c",
        `sh -c '${counter("helper").join(" ")} & wait' & wait`,
      ]);
      await waitForText(file);
      const [helper = 0] = listBelow(freezing.main);
      await freezing.tell(`help ${helper}`);
      await freezing.freeze();
      expect(freezing.told("frozen")).toMatchObject([{ frozen: 1 }]);
      await waitForGrowth([file]);
      await freezing.tell("thaw");
    },
    LIMIT_MS,
  );

  test(
    "one that turns out to be kept, and what is below it, is let go on at once",
    async () => {
      const file = scene.path("kept");
      const freezing = await start([
        "sh",
        "-c",
        `sh -c '${counter("kept").join(" ")} & wait' & wait`,
      ]);
      await waitForText(file);
      const [kept = 0] = listBelow(freezing.main);
      await freezing.freeze();
      expect(freezing.told("frozen")).toMatchObject([{ frozen: 3 }]);
      await freezing.tell(`keep ${kept}`);
      await waitForGrowth([file]);
      expect((await freezing.tell("list"))["list"]).toMatchObject([{ pid: freezing.main }]);
      await freezing.tell("thaw");
      const lists = freezing.told("listed").map(({ listed }) => (listed as unknown[]).length);
      expect(lists).toEqual([3, 1, 0]);
    },
    LIMIT_MS,
  );

  test(
    "children from before the run go on, and orphans of theirs",
    async () => {
      const [inborn, own] = [scene.path("inborn"), scene.path("own")];
      const freezing = await start(counter("own"), {
        wrapper: ["sh", "-c", `${counter("inborn").join(" ")} & exec "$@"`, "sh"],
      });
      for (const file of [inborn, own]) await waitForText(file);
      await freezing.freeze();
      expect(freezing.told("frozen")).toMatchObject([{ frozen: 1 }]);
      await waitForGrowth([inborn]);
      await freezing.tell("thaw");
      await waitForGrowth([own]);
    },
    LIMIT_MS,
  );
});

test(
  "a parent inside vfork counts as standing still, and goes on with its child",
  async () => {
    const fifo = scene.path("vfork.fifo");
    Bun.spawnSync(["mkfifo", fifo]);
    const freezing = await start(python("hangs-in-vfork.py", fifo));
    await waitFor(() => stateOf(freezing.main) === "D", "a parent inside vfork");
    await freezing.freeze();
    expect(Object.values(statesBelow(freezing)).toSorted()).toEqual(["D", "T"]);
    expect(await findMoving(freezing.pid)).toEqual([]);
    await freezing.tell("thaw");
    // The child waits for the FIFO again when it gets a core.
    const states = (): string => Object.values(statesBelow(freezing)).toSorted().join("");
    await waitFor(() => states() === "DS", "a child that waits again");
    writeFileSync(fifo, "");
    await waitFor(() => listBelow(freezing.pid).length === 0, "the end of both");
  },
  LIMIT_MS,
);

test(
  "a nested watchdog and its command stand still, its guard only waits, and all end as ever",
  async () => {
    const file = scene.path("nested");
    const script = `${counter("nested").join(" ")} & echo >$0.ready; wait; exit 7`;
    const inner = [RELEASE, "run", "--log", "off", ...scene.recordTo("nested"), "--"];
    const freezing = await start([...inner, "sh", "-c", script, file]);
    await waitForText(file);
    const told = await freezing.freeze();
    // The watchdog, its guard, the shell and its child.
    expect(told["frozen"]).toBe(4);
    expect(Object.values(statesBelow(freezing)).toSorted()).toEqual(["S", "T", "T", "T"]);
    expect(await findMoving(freezing.pid, [file])).toEqual([]);
    await freezing.tell("thaw");
    await waitForGrowth([file]);
    expectAllGoOn(freezing);
    for (const pid of listBelow(freezing.main)) {
      if (/^\S*python3 /.test(readCommandLine(pid))) process.kill(pid, "SIGTERM");
    }
    await waitFor(() => listBelow(freezing.pid).length === 0, "the end of the nested run");
    expect(scene.readRecord("nested")).toMatchObject({ outcome: "failed", exit_status: 7 });
  },
  LIMIT_MS,
);

rootTest("who may not be signalled is named, and the others stand still", async () => {
  const [mine, other] = [scene.path("mine"), scene.path("other")];
  writeFileSync(other, "");
  writeFileSync(mine, "");
  for (const file of [mine, other]) chmodSync(file, 0o666);
  chmodSync(scene.directory, 0o711);
  const script = 'python3 -c "$0" & exec python3 -c "$1"';
  const words = [asUser(STRANGER, counter("other")), asUser(NOBODY, counter("mine"))];
  const freezing = await start(["sh", "-c", script, ...words]);
  for (const file of [mine, other]) await waitForText(file);
  const stranger = listBelow(freezing.pid).find((pid) => pid !== freezing.main) ?? 0;
  await freezing.tell(`user ${NOBODY}`);
  await freezing.tell("freeze");
  const told = await waitFor(() => freezing.told("incomplete")[0], "who does not stand still");
  expect(told["incomplete"]).toEqual([stranger]);
  expect(stateOf(freezing.main)).toBe("T");
  expect(freezing.told("frozen")).toEqual([]);
  await waitForGrowth([other]);
  // It goes on being tried: once it ends, the rest stands still.
  process.kill(stranger, "SIGKILL");
  await freezing.waitForFrozen(1);
  expect(freezing.told("incomplete")).toHaveLength(1);
  await freezing.tell("thaw");
  await waitForGrowth([mine]);
  await freezing.tell("user 0");
});

describe("trouble of our own", () => {
  test.each([
    ["tree.freeze#2=throw", "freeze"],
    ["tree.thaw#2=throw", "thaw"],
    ["tree.signal#3=throw", "freeze"],
  ])(
    "with one of them (%s) is told, tried again, and costs nobody else the signal",
    async (fault) => {
      const faults = scene.path(`faults-${fault}`);
      const env = { WATCHDOG_FAULT: fault, WATCHDOG_FAULT_DIR: faults };
      const names = ["a", "b", "c"].map((one) => `${one}-${fault.split("=")[0]}`);
      const lines = names.map((name) => `${counter(name).join(" ")} &`);
      const freezing = await start(["sh", "-c", `${lines.join(" ")} wait`], { env });
      const files = names.map((name) => scene.path(name));
      for (const file of files) await waitForText(file);
      await freezing.freeze();
      expect(await findMoving(freezing.pid, files)).toEqual([]);
      await freezing.tell("thaw");
      await waitForGrowth(files);
      expectAllGoOn(freezing);
      expect(freezing.told("bug")).toMatchObject([{ bug: expect.stringContaining("fault") }]);
    },
    LIMIT_MS,
  );

  test(
    "with one of them that does not pass is told once, and so is who goes on moving for it",
    async () => {
      const names = ["spoilt", "sibling", "below"];
      const [spoilt = "", sibling = "", below = ""] = names.map((name) => counter(name).join(" "));
      const script = `sh -c '${spoilt} & ${below} & wait' & ${sibling} & wait`;
      const freezing = await start(["sh", "-c", script]);
      const files = names.map((name) => scene.path(name));
      for (const file of files) await waitForText(file);
      const shell = listBelow(freezing.main).find((pid) => listBelow(pid).length > 0) ?? 0;
      await freezing.tell(`spoil ${shell}`);
      await freezing.tell("freeze");
      const told = await waitFor(() => freezing.told("incomplete")[0], "who does not stand still");
      expect(told["incomplete"]).toEqual([shell]);
      // Those below it stand still, too, although it does not.
      const others = listBelow(freezing.pid).filter((pid) => pid !== shell);
      expect(others.map(stateOf)).toEqual(["T", "T", "T", "T"]);
      expect(freezing.told("bug")).toMatchObject([{ bug: expect.stringContaining("protected") }]);
      await freezing.tell("thaw");
      await waitForGrowth(files);
    },
    LIMIT_MS,
  );

  test(
    "ends with the process: whoever was about to be stopped was told before it was",
    async () => {
      const faults = scene.path("faults-killed");
      const env = { WATCHDOG_FAULT: "tree.freeze#3=kill", WATCHDOG_FAULT_DIR: faults };
      const below = `setsid sh -c '${counter("killed-at").join(" ")} & wait'`;
      const freezing = await start(["sh", "-c", `${below} & wait`], { env });
      await waitForText(scene.path("killed-at"));
      const pids = listBelow(freezing.pid);
      const [ownSession = 0] = listBelow(freezing.main).filter(isSessionLeader);
      forget(freezing);
      freezing.send("freeze");
      await waitFor(() => "XZ".includes(stateOf(freezing.pid)), "its death");
      try {
        const listed = freezing.told("listed")[0]?.["listed"] as { pid: number }[];
        const named = listed.map((one) => one.pid);
        expect(named.toSorted()).toEqual(pids.toSorted());
        // The other one that was stopped, in the session of the dead, got HUP and CONT from the
        // kernel: its group has nobody any more who could continue it (setpgid(2)). A signal is
        // acted on when the process gets a core.
        await waitFor(() => stateOf(ownSession) === "T", "one that stands still");
      } finally {
        for (const pid of pids) killQuietly(pid);
      }
    },
    LIMIT_MS,
  );
});
