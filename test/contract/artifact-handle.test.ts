/** The Worker that looks at artifacts: each task has an answer, whatever becomes of the Worker. */
import { afterEach, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, truncateSync } from "node:fs";
import { join, resolve } from "node:path";
import { ArtifactHandle } from "../../src/job/artifact-handle.ts";
import type { ArtifactRecord } from "../../src/core/step-record.ts";
import { openPlaces, put } from "../support/artifact-places.ts";
import { openBelow } from "../support/open-files.ts";
import { waitFor } from "../support/wait-for.ts";

const makePlace = openPlaces();
const WORKER = new URL("../../src/job/artifact-worker.ts", import.meta.url);
const FIXTURE = resolve(import.meta.dir, "../fixtures/hashes-in-a-worker.ts");
const SLOW_FIXTURE = resolve(import.meta.dir, "../fixtures/waits-for-a-slow-worker.ts");

/** A Worker that answers each order with these statements; `order` is what it was sent. */
function workerThat(statements: string): string {
  const source = `self.onmessage = ({ data: order }) => { ${statements} };`;
  return URL.createObjectURL(new Blob([source], { type: "application/javascript" }));
}

const HANGS = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);";
const SAYS_PATH = `postMessage({ kind: "answer", answer: order.task.path });`;
/** Far beyond what a Worker needs to start on a machine that is busy. */
const STALL_MS = 3_000;

const opened: ArtifactHandle[] = [];
function open(url: string | URL, stallMs?: number): ArtifactHandle {
  const handle = new ArtifactHandle(url, stallMs);
  opened.push(handle);
  return handle;
}
afterEach(() => {
  for (const handle of opened.splice(0)) handle.close();
});

/** Of a hash: its kind or why there is none; whatever a made-up Worker says. */
async function say(asked: Promise<unknown>): Promise<unknown> {
  const answer = await asked;
  return typeof answer === "object" && answer !== null && "reason" in answer
    ? answer.reason
    : answer;
}

test("does in a thread of its own all that artifacts.ts does", async () => {
  const place = makePlace();
  const handle = open(WORKER);
  const specs = ["out", "none"].map((path) => ({ path, minBytes: 1, isAnyAge: false }));
  const before = await handle.look(place, specs);
  put(place, "out", "abc");
  const [verdict, missing] = await handle.check(place, specs, before);
  if (verdict?.kind !== "good") throw new Error("no artifact");
  expect(missing).toMatchObject({ because: "artifact-missing" });
  const record: ArtifactRecord = { step: "pack", ...verdict.artifact };
  expect(await handle.hash(place, "out")).toEqual({ kind: "hashed", artifact: verdict.artifact });
  expect(await handle.verify(place, [record])).toMatchObject([{ kind: "same" }]);
  expect(await handle.remove(place, ["out"])).toMatchObject([{ kind: "removed" }]);
  expect(await handle.verify(place, [record])).toMatchObject([{ kind: "missing" }]);
  const stale = await handle.look(place, specs);
  expect(await handle.check(place, specs, stale)).toMatchObject([
    { because: "artifact-missing" },
    { because: "artifact-missing" },
  ]);
});

test("answers thousands of tasks that are asked at once, in their order", async () => {
  const place = makePlace();
  put(place, "out", "abc");
  const handle = open(WORKER);
  const order: number[] = [];
  const asked = Array.from({ length: 2_000 }, async (_, at) => {
    const { kind } = await handle.hash(place, at % 2 === 0 ? "out" : "none");
    order.push(at);
    return kind;
  });
  const kinds = await Promise.all(asked);
  expect(kinds.filter((kind) => kind === "hashed")).toHaveLength(1_000);
  expect(order).toEqual(order.toSorted((one, other) => one - other));
});

test("leaves the thread that asks free while a gibibyte is read", async () => {
  const place = makePlace();
  put(place, "large", "");
  truncateSync(join(place, "large"), 1_073_741_824);
  const handle = open(WORKER);
  const hashing = handle.hash(place, "large");
  let turns = 0;
  for (let read: unknown; read === undefined; turns += 1) {
    read = await Promise.race([hashing, Bun.sleep(1)]);
  }
  expect((await hashing).kind).toBe("hashed");
  // It takes 300 ms where nothing else runs; one that blocked it would leave it a turn or two.
  expect(turns).toBeGreaterThan(20);
});

describe("a task whose file system does not answer", () => {
  const STUCK = `if (order.task.path === "stuck") { ${HANGS} } ${SAYS_PATH}`;

  test("is given up, and the next one has a new Worker", async () => {
    const handle = open(workerThat(STUCK), STALL_MS);
    const asked = ["one", "stuck", "two"].map((path) => say(handle.hash("/x", path)));
    expect(await Promise.all(asked)).toEqual(["one", "the file system did not answer", "two"]);
  }, 30_000);

  test("is not, however long it takes, as long as it comes further", async () => {
    const slow = `const count = new Int32Array(order.pulse);
      const still = new Int32Array(new SharedArrayBuffer(4));
      for (let at = 0; at < 40; at += 1) {
        Atomics.add(count, 0, 1);
        Atomics.wait(still, 0, 0, 100);
      }
      ${SAYS_PATH}`;
    expect(await say(open(workerThat(slow), STALL_MS).hash("/x", "slow"))).toBe("slow");
  }, 30_000);

  test("is not because the whole process was stopped for longer", async () => {
    const child = Bun.spawn([process.execPath, SLOW_FIXTURE], { stdout: "pipe" });
    const reader = child.stdout.getReader();
    let heard = "";
    const hear = async (): Promise<boolean> => {
      const { value, done } = await reader.read();
      heard += Buffer.from(value ?? []).toString();
      return !done;
    };
    while (!heard.includes("asked\n") && (await hear()));
    child.kill("SIGSTOP");
    // Longer than a stall: what is tested is that this span does not count.
    await Bun.sleep(4_000);
    child.kill("SIGCONT");
    while (await hear());
    expect(heard).toBe(`asked\n"answered"\n`);
    expect(await child.exited).toBe(0);
  }, 60_000);

  test("costs a thread each time, so that the fifth is not tried", async () => {
    const handle = open(workerThat(STUCK), 600);
    const stuck = Array.from({ length: 5 }, () => say(handle.hash("/x", "stuck")));
    const late = say(handle.hash("/x", "one"));
    expect((await Promise.all(stuck)).slice(0, 4)).toEqual(
      Array(4).fill("the file system did not answer"),
    );
    expect(await stuck[4]).toBe("there is no thread to read it with");
    expect(await late).toBe("there is no thread to read it with");
  }, 30_000);
});

describe("a Worker", () => {
  test("that dies leaves its task unreadable, and the next one has another", async () => {
    const url = workerThat(`if (order.task.path === "bad") throw new Error("dies"); ${SAYS_PATH}`);
    const handle = open(url, 60_000);
    const asked = ["bad", "good"].map((path) => say(handle.hash("/x", path)));
    expect(await Promise.all(asked)).toEqual(["the thread that reads it has ended", "good"]);
  }, 30_000);

  test("that cannot be loaded leaves all of them so", async () => {
    const handle = open(new URL("./no-such-worker.ts", import.meta.url), 60_000);
    const asked = ["one", "two"].map((path) => say(handle.hash("/x", path)));
    const lost = "the thread that reads it has ended";
    expect(await Promise.all(asked)).toEqual([lost, lost]);
  }, 30_000);

  test("that says what was wrong with it is believed", async () => {
    const handle = open(workerThat(`postMessage({ kind: "failed", reason: "no C library" });`));
    expect(await say(handle.hash("/x", "one"))).toBe("no C library");
  });
});

test("tells of each kind of task that nothing was found out and nothing removed", async () => {
  const place = makePlace();
  put(place, "out");
  const handle = open(workerThat(HANGS), 60_000);
  const [spec] = [{ path: "out", minBytes: 1, isAnyAge: false }];
  const record: ArtifactRecord = { step: "a", path: "out", kind: "file", bytes: 1, sha256: "" };
  const asked = [
    handle.hash(place, "out"),
    handle.verify(place, [record]),
    handle.look(place, [spec]),
    handle.check(place, [spec], []),
    handle.remove(place, ["out"]),
  ];
  handle.close();
  const reason = "looking at artifacts was ended";
  expect(await Promise.all<unknown>(asked)).toEqual([
    { kind: "unreadable", path: "out", reason },
    [{ step: "a", path: "out", kind: "unreadable", detail: reason }],
    [{ path: "out", sight: { kind: "unread", reason } }],
    [{ kind: "bad", path: "out", because: "artifact-unreadable", detail: `out: ${reason}` }],
    [{ path: "out", kind: "refused", reason }],
  ]);
  expect(await handle.hash(place, "out")).toMatchObject({ kind: "unreadable" });
});

test("ends in the middle of a file when it is closed", async () => {
  const place = makePlace();
  put(place, "large", "");
  truncateSync(join(place, "large"), 1_099_511_627_776);
  const before = listWorkers();
  const handle = open(WORKER);
  const hashing = handle.hash(place, "large");
  await waitFor(() => openBelow(place).length > 0, "the file to be read");
  const own = listWorkers().filter((thread) => !before.includes(thread));
  expect(own.length).toBeGreaterThan(0);
  handle.close();
  expect(await say(hashing)).toBe("looking at artifacts was ended");
  const isOwn = (thread: string): boolean => own.includes(thread);
  await waitFor(() => !listWorkers().some(isOwn), "the thread to end");
});

/** By the names that the threads of Workers have (proc(5), comm). */
function listWorkers(): string[] {
  return readdirSync("/proc/self/task").filter((thread) => {
    try {
      return readFileSync(`/proc/self/task/${thread}/comm`, "utf8") === "Worker\n";
    } catch {
      return false; // ENOENT: it has just ended
    }
  });
}

test("keeps a process alive as long as there is a task, and no longer", () => {
  const place = makePlace();
  mkdirSync(join(place, "out"));
  put(place, "out/file", "abc");
  const ended = Bun.spawnSync([process.execPath, FIXTURE, place, "out/file"], { timeout: 60_000 });
  expect([ended.exitCode, ended.stdout.toString()]).toEqual([0, "hashed\nhashed\n"]);
});
