/** The copy of a command's output: real pipes, real Workers, real children. */
import { afterAll, describe, expect, test } from "bun:test";
import { closeSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { F_GETFL, F_SETFL, O_NONBLOCK, sys } from "../../src/os/sys.ts";
import {
  hashFile,
  makePipe,
  openForWriting,
  openOutputScene,
  readSome,
  runInto,
  WORKERS,
  write,
} from "../support/output-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openOutputScene();
const openFds: number[] = [];
afterAll(() => openFds.forEach((fd) => sys.close(fd)));

const RANDOM = scene.path("random");
const RANDOM_BYTES = 33_554_432;
const PIPE_BYTES = 65_536;
for (let at = 0, parts: Uint8Array[] = []; at < RANDOM_BYTES; at += 65_536) {
  parts.push(crypto.getRandomValues(new Uint8Array(65_536)));
  if (at + 65_536 === RANDOM_BYTES) writeFileSync(RANDOM, Buffer.concat(parts));
}

function stdoutTo(pipeFd: number, destinationFd: number) {
  return { name: "stdout", pipeFd, destinationFd } as const;
}

describe("bytes", () => {
  test("256 MiB of random bytes arrive unchanged, with the log on", async () => {
    const { readEnd, writeEnd } = makePipe();
    const target = openForWriting(scene.path("copied"));
    const copy = scene.start([stdoutTo(readEnd, target)], { log: scene.logPlan() });
    const files = Array<string>(8).fill(RANDOM);
    await runInto(writeEnd, ["cat", ...files]).exited;
    const ended = await copy.ended;
    closeSync(target);
    expect(ended.streams[0]).toMatchObject({ end: "eof", readBytes: RANDOM_BYTES * 8 });
    expect(ended.streams[0]?.writtenBytes).toBe(RANDOM_BYTES * 8);
    await Bun.spawn(["sh", "-c", `cat ${files.join(" ")} > ${scene.path("expected")}`]).exited;
    expect(await hashFile(scene.path("copied"))).toBe(await hashFile(scene.path("expected")));
    const log = ended.log;
    expect((log?.keptBytes ?? 0) + (log?.omittedBytes ?? 0) + (log?.droppedBytes ?? 0)).toBe(
      RANDOM_BYTES * 8,
    );
  }, 180_000);

  test("a line of 64 MiB without a newline at its end arrives whole", async () => {
    const { readEnd, writeEnd } = makePipe();
    const target = openForWriting(scene.path("line"));
    const copy = scene.start([stdoutTo(readEnd, target)]);
    await runInto(writeEnd, ["sh", "-c", "head -c 67108864 /dev/zero | tr '\\0' x"]).exited;
    await copy.ended;
    closeSync(target);
    const hasher = new Bun.CryptoHasher("sha256");
    for (let i = 0; i < 1024; i += 1) hasher.update("x".repeat(65_536));
    expect(await hashFile(scene.path("line"))).toBe(hasher.digest("hex"));
  }, 180_000);

  test("text without a newline is delivered before the command goes on", async () => {
    const { readEnd, writeEnd } = makePipe();
    const reader = makePipe();
    const copy = scene.start([stdoutTo(readEnd, reader.writeEnd)]);
    write(writeEnd, "abc");
    await waitFor(() => copy.counters().streams[0]?.writtenBytes === 3, "three bytes");
    expect(readSome(reader.readEnd)).toBe("abc");
    const isWaiting = () => copy.counters().streams[0]?.writeStartedAt !== undefined;
    await waitFor(() => !isWaiting(), "no write in progress");
    closeSync(writeEnd);
    expect((await copy.ended).readBytes).toBe(3);
    openFds.push(reader.readEnd, reader.writeEnd);
  });

  test("a destination that was non-blocking gets every byte and stays as it was", async () => {
    const { readEnd, writeEnd } = makePipe();
    const reader = makePipe();
    sys.fcntl(reader.writeEnd, F_SETFL, sys.fcntl(reader.writeEnd, F_GETFL, 0) | O_NONBLOCK);
    const flags = sys.fcntl(reader.writeEnd, F_GETFL, 0);
    const copy = scene.start([stdoutTo(readEnd, reader.writeEnd)]);
    const child = runInto(writeEnd, ["head", "-c", "3000000", RANDOM]);
    const counter = Bun.spawn(["sha256sum"], { stdin: reader.readEnd, stdout: "pipe" });
    await child.exited;
    const ended = await copy.ended;
    expect(ended.streams[0]).toMatchObject({ end: "eof", writtenBytes: 3_000_000 });
    expect(sys.fcntl(reader.writeEnd, F_GETFL, 0)).toBe(flags);
    closeSync(reader.writeEnd);
    const hasher = new Bun.CryptoHasher("sha256");
    hasher.update(readFileSync(RANDOM).subarray(0, 3_000_000));
    expect(await new Response(counter.stdout).text()).toStartWith(hasher.digest("hex"));
    openFds.push(reader.readEnd);
  });
});

describe("readers", () => {
  test("a stalled reader stops the command, not main, and the flags stay", async () => {
    const { readEnd, writeEnd } = makePipe();
    const reader = makePipe();
    const flags = sys.fcntl(reader.writeEnd, F_GETFL, 0);
    const plan = scene.logPlan();
    const copy = scene.start([stdoutTo(readEnd, reader.writeEnd)], { log: plan });
    const child = runInto(writeEnd, ["yes"]);
    const stream = () => copy.counters().streams[0];
    await waitFor(() => (stream()?.readBytes ?? 0) >= 131_072, "two chunks taken");
    await waitFor(() => stream()?.writeStartedAt !== undefined, "a write that waits");
    child.kill("SIGKILL");
    await child.exited;
    copy.drain();
    copy.abandon("readers");
    const ended = await copy.ended;
    expect(ended.streams[0]?.end).toBe("abandoned");
    expect(ended.streams[0]?.writtenBytes).toBeLessThan(ended.streams[0]?.readBytes ?? 0);
    expect(ended.log?.keptBytes).toBe(ended.readBytes);
    expect(sys.fcntl(reader.writeEnd, F_GETFL, 0)).toBe(flags);
    closeSync(reader.readEnd);
    openFds.push(reader.writeEnd);
  });

  test("a reader that comes back gets every byte", async () => {
    const { readEnd, writeEnd } = makePipe();
    const reader = makePipe();
    const copy = scene.start([stdoutTo(readEnd, reader.writeEnd)]);
    const child = runInto(writeEnd, ["head", "-c", "1000000", RANDOM]);
    await waitFor(() => copy.counters().streams[0]?.writeStartedAt !== undefined, "a stall");
    const counter = Bun.spawn(["wc", "-c"], { stdin: reader.readEnd, stdout: "pipe" });
    await child.exited;
    copy.drain();
    expect((await copy.ended).streams[0]?.writtenBytes).toBe(1_000_000);
    closeSync(reader.writeEnd);
    expect(Number(await new Response(counter.stdout).text())).toBe(1_000_000);
    openFds.push(reader.readEnd);
  });

  test("A-30: when the reader is gone the command gets SIGPIPE", async () => {
    const { readEnd, writeEnd } = makePipe();
    const reader = makePipe();
    const copy = scene.start([stdoutTo(readEnd, reader.writeEnd)]);
    const child = runInto(writeEnd, ["yes"]);
    expect(readSome(reader.readEnd, 2)).toBe("y\n");
    closeSync(reader.readEnd);
    await child.exited;
    expect(child.signalCode).toBe("SIGPIPE");
    expect((await copy.ended).streams[0]?.end).toBe("reader-gone");
    openFds.push(reader.writeEnd);
  });

  test("A-30: a silent command's very next write meets SIGPIPE, as without a copy", async () => {
    const { readEnd, writeEnd } = makePipe();
    const reader = makePipe();
    const copy = scene.start([stdoutTo(readEnd, reader.writeEnd)]);
    write(writeEnd, "x");
    expect(readSome(reader.readEnd)).toBe("x");
    expect(copy.counters().streams[0]?.end).toBe("open");
    closeSync(reader.readEnd);
    expect((await copy.ended).streams[0]?.end).toBe("reader-gone");
    expect(() => write(writeEnd, "y")).toThrow();
    openFds.push(reader.writeEnd, writeEnd);
  });

  test("a full destination ends the copy with its error, and the pipe is closed", async () => {
    const { readEnd, writeEnd } = makePipe();
    const full = openForWriting("/dev/full");
    const copy = scene.start([stdoutTo(readEnd, full)]);
    const child = runInto(writeEnd, ["yes"]);
    await child.exited;
    expect(child.signalCode).toBe("SIGPIPE");
    expect((await copy.ended).streams[0]).toMatchObject({ end: "write-failed", errno: 28 });
    closeSync(full);
  });
});

describe("the end", () => {
  test("A-20: a stranger who holds the pipe holds no drain, and nothing is lost", async () => {
    const { readEnd, writeEnd } = makePipe();
    const target = openForWriting(scene.path("held"));
    const copy = scene.start([stdoutTo(readEnd, target)]);
    write(writeEnd, "late1\nlate2\n");
    copy.drain();
    const ended = await copy.ended;
    expect(ended.streams[0]?.end).toBe("drained");
    expect(readFileSync(scene.path("held"), "utf8")).toBe("late1\nlate2\n");
    closeSync(target);
    openFds.push(writeEnd);
  });

  test("without the order to drain the same holder keeps the copy going", async () => {
    const { readEnd, writeEnd } = makePipe();
    const target = openForWriting("/dev/null");
    const copy = scene.start([stdoutTo(readEnd, target)]);
    write(writeEnd, "one");
    await waitFor(() => copy.counters().readBytes === 3, "the first bytes");
    write(writeEnd, "two");
    await waitFor(() => copy.counters().readBytes === 6, "bytes after a pause");
    expect(copy.counters().streams[0]?.end).toBe("open");
    closeSync(writeEnd);
    expect((await copy.ended).streams[0]?.end).toBe("eof");
    closeSync(target);
  });

  test("a stranger who writes faster than the reader reads holds no drain", async () => {
    const { readEnd, writeEnd } = makePipe();
    const reader = makePipe();
    const copy = scene.start([stdoutTo(readEnd, reader.writeEnd)]);
    const stranger = runInto(writeEnd, ["yes"]);
    const stream = () => copy.counters().streams[0];
    await waitFor(() => stream()?.writeStartedAt !== undefined, "a reader that is too slow");
    await waitFor(() => sys.readableBytes(reader.readEnd) === PIPE_BYTES, "a full pipe");
    const most = copy.counters().readBytes + 2 * PIPE_BYTES;
    copy.drain();
    // Small reads, each after the copy has had its turn: the stranger's pipe is always full again.
    while (stream()?.end === "open" && copy.counters().readBytes <= most) {
      if (sys.readableBytes(reader.readEnd) > 0) readSome(reader.readEnd, 4_096);
      await Bun.sleep(0);
    }
    expect(copy.counters().readBytes).toBeLessThanOrEqual(most);
    expect((await copy.ended).streams[0]?.end).toBe("drained");
    await stranger.exited;
    expect(stranger.signalCode).toBe("SIGPIPE");
    openFds.push(reader.readEnd, reader.writeEnd);
  });

  test("a Worker that dies ends its stream and closes the command's pipe", async () => {
    const { readEnd, writeEnd } = makePipe();
    const broken = scene.path("broken-worker.ts");
    writeFileSync(broken, "self.onmessage = () => { throw new Error('broken'); };\n");
    const workerUrls = { ...WORKERS, copy: broken };
    const copy = scene.start([stdoutTo(readEnd, 1)], { workerUrls });
    const child = runInto(writeEnd, ["yes"]);
    await child.exited;
    expect(child.signalCode).toBe("SIGPIPE");
    expect((await copy.ended).streams[0]?.end).toBe("worker-failed");
  });
});

describe("quiet", () => {
  test.each([
    ["replay", "hello\nworld\n"],
    ["discard", ""],
  ] as const)("%s prints %p, and nothing before the verdict", async (verdict, expected) => {
    const { readEnd, writeEnd } = makePipe();
    const path = scene.path(`quiet-${verdict}`);
    const target = openForWriting(path);
    const copy = scene.start([stdoutTo(readEnd, target)], { spoolDirectory: scene.logsRoot });
    await runInto(writeEnd, ["sh", "-c", "echo hello; echo world"]).exited;
    copy.drain();
    await waitFor(() => copy.counters().streams[0]?.end !== "open", "the end of the source");
    expect(readFileSync(path, "utf8")).toBe("");
    copy.finish(verdict);
    await copy.ended;
    expect(readFileSync(path, "utf8")).toBe(expected);
    closeSync(target);
  });

  test("without a place for the spool the run is loud and says so", async () => {
    const { readEnd, writeEnd } = makePipe();
    const target = openForWriting(scene.path("loud"));
    const spoolDirectory = "/proc/nothing";
    const copy = scene.start([stdoutTo(readEnd, target)], { spoolDirectory });
    await runInto(writeEnd, ["echo", "loud"]).exited;
    await waitFor(() => copy.counters().streams[0]?.writtenBytes === 5, "the output");
    copy.finish("discard");
    expect((await copy.ended).streams[0]?.isQuietAbandoned).toBe(true);
    expect(readFileSync(scene.path("loud"), "utf8")).toBe("loud\n");
    expect(existsSync(spoolDirectory)).toBe(false);
    closeSync(target);
  });
});
