/** The bounded log on a real disk: sizes, order, killed runs, bad disks, retention. */
import { ptr } from "bun:ffi";
import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { EAGAIN, LOCK_EX, LOCK_NB, sys } from "../../src/os/sys.ts";
import { BoundedLog } from "../../src/output/bounded-log.ts";
import { RING_BYTES } from "../../src/output/chunk-ring.ts";
import { pruneLogs } from "../../src/output/log-pruning.ts";
import { joinSegments } from "../../src/output/log-segments.ts";
import { LogState } from "../../src/output/shared-state.ts";
import {
  makePipe,
  openForWriting,
  openOutputScene,
  readAllLogs,
  runInto,
  WORKERS,
  write,
} from "../support/output-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openOutputScene();
const isRoot = process.getuid?.() === 0;

/** Text in which every position can be recognized. */
function numbered(length: number): string {
  let text = "";
  for (let i = 0; text.length < length; i += 1) text += `${i} `;
  return text.slice(0, length);
}

/** What must be kept of a text, by slicing the whole: the code under test never has the whole. */
function expectedLog(text: string, maxBytes: number): string {
  const segment = Math.floor(maxBytes / 4);
  const head = maxBytes - 2 * segment;
  const tail = text.slice(head);
  if (tail.length <= 2 * segment) return text;
  const count = Math.ceil(tail.length / segment);
  const kept = tail.slice((count - 2) * segment);
  const omitted = tail.length - kept.length;
  return `${text.slice(0, head)}\n[watchdog: ${omitted} bytes omitted here]\n${kept}`;
}

function openLog(maxBytes: number) {
  const directory = mkdtempSync(scene.path("log-"));
  const state = new LogState();
  const log = new BoundedLog({ directory, fileName: "a.log", maxBytes, state });
  const append = (text: string, step: number) => {
    for (let at = 0; at < text.length; at += step) {
      const bytes = Buffer.from(text.slice(at, at + step));
      log.append(ptr(bytes), bytes.length);
      // An address keeps nothing alive: until here the bytes may not be collected.
      bytes.fill(0, 0, 1);
    }
  };
  return { directory, state, log, append };
}

describe("head and tail", () => {
  test("are exact for every total around each border, in one piece or byte by byte", () => {
    let cases = 0;
    for (const maxBytes of [4, 7, 16, 41]) {
      for (let total = 1; total <= maxBytes * 3; total += 1) {
        for (const step of [1, 3, 1_000]) {
          const { log, append, state, directory } = openLog(maxBytes);
          const text = numbered(total);
          append(text, step);
          log.finish(0);
          expect(readAllLogs(directory)).toEqual({ "a.log": expectedLog(text, maxBytes) });
          expect(state.keptBytes + state.omittedBytes).toBe(total);
          rmSync(directory, { recursive: true });
          cases += 1;
        }
      }
    }
    expect(cases).toBe((4 + 7 + 16 + 41) * 3 * 3);
  });

  test("never take more than the limit on the disk while the output goes on", () => {
    const { log, append, directory } = openLog(100);
    for (let i = 0; i < 700; i += 1) {
      append("x", 1);
      const sizes = readdirSync(directory).map((name) => statSync(`${directory}/${name}`).size);
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(100);
    }
    log.finish(0);
  });

  test("are joined later when the writer was killed at any moment, and once only", () => {
    const maxBytes = 16;
    for (let total = 1; total <= 64; total += 1) {
      const { append, directory } = openLog(maxBytes);
      const text = numbered(total);
      append(text, 5);
      joinSegments(`${directory}/a.log`);
      expect(readAllLogs(directory)).toEqual({ "a.log": expectedLog(text, maxBytes) });
      expect(joinSegments(`${directory}/a.log`)).toEqual({ kind: "nothing-to-join" });
      rmSync(directory, { recursive: true });
    }
  });

  test("a join that died after its rename is finished without doubling a byte", () => {
    const { append, directory } = openLog(16);
    append(numbered(60), 60);
    const parts = readAllLogs(directory);
    joinSegments(`${directory}/a.log`);
    const joined = readAllLogs(directory);
    for (const [name, text] of Object.entries(parts)) {
      if (name !== "a.log") writeFileSync(`${directory}/${name}`, text);
    }
    writeFileSync(`${directory}/a.log.joining`, "half of");
    joinSegments(`${directory}/a.log`);
    expect(readAllLogs(directory)).toEqual(joined);
  });

  test("files are 0600 and directories 0700 under any umask", () => {
    const before = process.umask(0o777);
    try {
      const state = new LogState();
      const directory = scene.path("umask/job");
      mkdirSync(scene.path("umask"), { mode: 0o700 });
      chmodSync(scene.path("umask"), 0o700);
      const log = new BoundedLog({ directory, fileName: "a.log", maxBytes: 100, state });
      const bytes = Buffer.from("secret");
      log.append(ptr(bytes), bytes.length);
      log.finish(0);
      expect(statSync(directory).mode & 0o777).toBe(0o700);
      expect(statSync(`${directory}/a.log`).mode & 0o777).toBe(0o600);
    } finally {
      process.umask(before);
    }
  });

  test("is locked against pruning from its first byte to its end, and free afterwards", () => {
    const { append, directory, log } = openLog(16);
    append(numbered(60), 7);
    const fd = openSync(`${directory}/a.log`, "r");
    expect(sys.flock(fd, LOCK_EX | LOCK_NB)).toBe(-EAGAIN);
    log.finish(0);
    closeSync(fd);
    const joined = openSync(`${directory}/a.log`, "r");
    expect(sys.flock(joined, LOCK_EX | LOCK_NB)).toBe(0);
    closeSync(joined);
  });

  test("a link where the log should be is not followed, and the bytes are counted", () => {
    const { append, state, directory, log } = openLog(100);
    symlinkSync(scene.path("victim"), `${directory}/a.log`);
    append("x", 1);
    log.finish(0);
    expect(existsSync(scene.path("victim"))).toBe(false);
    expect(state).toMatchObject({ droppedBytes: 1, keptBytes: 0 });
  });
});

describe("a run's log", () => {
  test("nothing is kept of a command that prints nothing", async () => {
    const { readEnd, writeEnd } = makePipe();
    const log = { ...scene.logPlan(), directory: scene.path("empty/job") };
    const stream = { name: "stdout", pipeFd: readEnd, destinationFd: 1 } as const;
    const copy = scene.start([stream], { log });
    await runInto(writeEnd, ["true"]).exited;
    expect((await copy.ended).log).toMatchObject({ path: undefined, keptBytes: 0 });
    expect(existsSync(scene.path("empty"))).toBe(false);
  });

  test("both streams stand in it in the order in which they were written", async () => {
    const one = makePipe();
    const other = makePipe();
    const target = openForWriting("/dev/null");
    const log = scene.logPlan();
    const copy = scene.start(
      [
        { name: "stdout", pipeFd: one.readEnd, destinationFd: target },
        { name: "stderr", pipeFd: other.readEnd, destinationFd: target },
      ],
      { log },
    );
    let expected = "";
    for (let i = 0; i < 200; i += 1) {
      const line = `${i % 3 === 0 ? "err" : "out"} ${i}\n`;
      expected += line;
      write(i % 3 === 0 ? other.writeEnd : one.writeEnd, line);
      await waitFor(() => copy.counters().readBytes === expected.length, line, { stepMs: 0 });
    }
    closeSync(one.writeEnd);
    closeSync(other.writeEnd);
    await copy.ended;
    expect(readFileSync(`${log.directory}/${log.fileName}`, "utf8")).toBe(expected);
    closeSync(target);
  });

  test("two floods at once lose no byte and keep each stream's own order", async () => {
    const one = makePipe();
    const other = makePipe();
    const target = openForWriting("/dev/null");
    const log = scene.logPlan(104_857_600);
    const copy = scene.start(
      [
        { name: "stdout", pipeFd: one.readEnd, destinationFd: target },
        { name: "stderr", pipeFd: other.readEnd, destinationFd: target },
      ],
      { log },
    );
    // All of each has room in its ring: what has none may be dropped where the disk is slow.
    const expected = Array.from({ length: 150_000 }, (_, i) => `${i + 1}\n`).join("");
    expect(expected.length).toBeLessThan(RING_BYTES);
    const children = [
      runInto(one.writeEnd, ["sh", "-c", "seq 1 150000"]),
      runInto(other.writeEnd, ["sh", "-c", "seq 1 150000 | tr 0-9 a-j"]),
    ];
    await Promise.all(children.map((child) => child.exited));
    const ended = await copy.ended;
    expect(ended.log).toMatchObject({ droppedBytes: 0, keptBytes: ended.readBytes });
    const text = readFileSync(`${log.directory}/${log.fileName}`, "latin1");
    const separate = (isDigit: boolean) => text.replaceAll(isDigit ? /[a-j]/g : /[0-9]/g, "");
    expect(separate(true).replaceAll("\n", "")).toBe(expected.replaceAll("\n", ""));
    expect(separate(false).replaceAll("\n", "")).toBe(
      expected.replaceAll("\n", "").replaceAll(/[0-9]/g, (d) => "abcdefghij"[Number(d)] ?? ""),
    );
    closeSync(target);
  });

  test("a stuck disk loses log bytes, counted, and never output", async () => {
    const stuck = scene.path("stuck-worker.ts");
    writeFileSync(stuck, "self.onmessage = () => {};\n");
    const { readEnd, writeEnd } = makePipe();
    const path = scene.path("delivered");
    const target = openForWriting(path);
    const stream = { name: "stdout", pipeFd: readEnd, destinationFd: target } as const;
    const workerUrls = { ...WORKERS, log: stuck };
    const copy = scene.start([stream], { log: scene.logPlan(), workerUrls });
    await runInto(writeEnd, ["head", "-c", "20000000", "/dev/zero"]).exited;
    await waitFor(() => copy.counters().streams[0]?.end === "eof", "the end of the stream");
    copy.abandon("everything");
    const ended = await copy.ended;
    expect(statSync(path).size).toBe(20_000_000);
    expect(ended.log?.droppedBytes).toBeGreaterThanOrEqual(20_000_000 - RING_BYTES - 131_072);
    closeSync(target);
  });

  test("a full disk loses log bytes, counted, and never output (needs root)", async () => {
    if (!isRoot) return console.warn("not run: a full disk needs root to mount a small tmpfs");
    const root = mkdtempSync(scene.path("full-"));
    await Bun.$`mount -t tmpfs -o size=262144 watchdog-test ${root}`.quiet();
    try {
      const { readEnd, writeEnd } = makePipe();
      const path = scene.path("delivered-full");
      const target = openForWriting(path);
      const log = { ...scene.logPlan(), directory: `${root}/logs/job`, logsRoot: `${root}/logs` };
      const stream = { name: "stdout", pipeFd: readEnd, destinationFd: target } as const;
      const copy = scene.start([stream], { log });
      await runInto(writeEnd, ["head", "-c", "3000000", "/dev/zero"]).exited;
      const ended = await copy.ended;
      expect(statSync(path).size).toBe(3_000_000);
      expect(ended.log?.errno).toBe(28);
      expect(ended.log?.droppedBytes).toBeGreaterThan(2_000_000);
      expect((ended.log?.droppedBytes ?? 0) + (ended.log?.keptBytes ?? 0)).toBe(3_000_000);
      closeSync(target);
    } finally {
      await Bun.$`umount ${root}`.quiet();
    }
  });
});

describe("retention", () => {
  const ids = Array.from(
    { length: 6 },
    (_, i) => `0190000${i}-0000-7000-8000-000000000000`,
  ) as readonly string[];
  const held: number[] = [];
  afterAll(() => held.forEach(closeSync));

  function fill(name: string): string {
    const root = scene.path(name);
    for (const [i, id] of ids.entries()) {
      const job = `${root}/job${i % 2}`;
      mkdirSync(job, { recursive: true });
      writeFileSync(`${job}/${id}.log`, "x".repeat(100));
    }
    return root;
  }

  function prune(root: string, limits: { keepBytes: number; maxFiles: number }): number {
    const steps = pruneLogs(root, limits);
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
    }
  }

  function remaining(root: string): string[] {
    return readdirSync(root, { recursive: true })
      .map(String)
      .filter((name) => name.endsWith(".log"))
      .map((name) => name.slice(5))
      .sort();
  }

  test("removes the oldest until the bytes fit", () => {
    const root = fill("by-bytes");
    expect(prune(root, { keepBytes: 250, maxFiles: 1_000 })).toBe(4);
    expect(remaining(root)).toEqual(ids.slice(4).map((id) => `${id}.log`));
  });

  test("removes nothing that fits", () => {
    const root = fill("fits");
    expect(prune(root, { keepBytes: 600, maxFiles: 6 })).toBe(0);
    expect(remaining(root)).toHaveLength(6);
  });

  test("passes over the log of a living run and takes the next", () => {
    const root = fill("held");
    const fd = openSync(`${root}/job0/${ids[0]}.log`, "r");
    held.push(fd);
    expect(sys.flock(fd, LOCK_EX | LOCK_NB)).toBe(0);
    expect(prune(root, { keepBytes: 1_000_000, maxFiles: 4 })).toBe(2);
    expect(remaining(root)).toEqual([ids[0], ids[3], ids[4], ids[5]].map((id) => `${id}.log`));
  });

  test("touches only logs: other names, links and what links lead to stay", () => {
    const root = fill("strangers");
    writeFileSync(scene.path("precious"), "precious");
    writeFileSync(`${root}/job0/notes.log`, "mine");
    symlinkSync(scene.path("precious"), `${root}/job0/0180${ids[0]?.slice(4)}.log`);
    symlinkSync(`${fill("elsewhere")}/job0`, `${root}/linked`);
    prune(root, { keepBytes: 0, maxFiles: 0 });
    expect(readFileSync(scene.path("precious"), "utf8")).toBe("precious");
    expect(readFileSync(`${root}/job0/notes.log`, "utf8")).toBe("mine");
    expect(remaining(scene.path("elsewhere"))).toHaveLength(6);
    expect(existsSync(`${root}/job1`)).toBe(false);
  });

  test("joins the parts that a killed run left, unless that run lives", () => {
    for (const isLiving of [false, true]) {
      const root = scene.path(`parts-${isLiving}`);
      const path = `${root}/job/${ids[0]}.log`;
      mkdirSync(`${root}/job`, { recursive: true });
      writeFileSync(path, "head");
      writeFileSync(`${path}.tail-4-10`, "mid");
      writeFileSync(`${path}.tail-4-13`, "end");
      const fd = openSync(path, "r");
      if (isLiving) sys.flock(fd, LOCK_EX);
      prune(root, { keepBytes: 1_000, maxFiles: 10 });
      const joined = "head\n[watchdog: 6 bytes omitted here]\nmidend";
      expect(readFileSync(path, "utf8")).toBe(isLiving ? "head" : joined);
      expect(readdirSync(`${root}/job`)).toHaveLength(isLiving ? 3 : 1);
      closeSync(fd);
    }
  });
});
