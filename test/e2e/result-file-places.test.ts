/**
 * What lies in the place of `--result-file`: a file is replaced whole and keeps its mode and owner,
 * a link is followed, a device, a FIFO and a descriptor are written into and stay what they are.
 */
import { expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeSync,
} from "node:fs";
import { runPrepared } from "../support/outside.ts";
import {
  type Ended,
  isRoot,
  openScene,
  RELEASE,
  rootTest,
  type RunOptions,
} from "../support/scene.ts";

const scene = openScene(import.meta.file);
const D = scene.directory;
const NOBODY = 65_534;
const UMASKS = [0o027, 0o077, 0o000];

/** A run with a status of its own, whose record goes to this path. */
function runTo(path: string): Promise<Ended> {
  return scene.run(["--result-file", path, "--log", "off", "--", "sh", "-c", "exit 4"]);
}

async function expectQuietRunTo(path: string): Promise<void> {
  const ended = await runTo(path);
  expect([path, ended.code, ended.stdout.length, ended.stderr]).toEqual([path, 4, 0, ""]);
}

function readEnd(text: string): Record<string, unknown> {
  const { state, exit_status } = JSON.parse(text);
  return { state, exit_status };
}

const ENDED = { state: "ended", exit_status: 4 };

function modeOf(path: string): string {
  return (statSync(path).mode & 0o7777).toString(8);
}

test("a new file has 0666 less the caller's umask", async () => {
  for (const umask of UMASKS) {
    const path = scene.path(`new-${umask}.json`);
    const args = [RELEASE, "run", "--result-file", path, "--log", "off", "--", "/bin/true"];
    const ended = await runPrepared(scene, { umask }, args);
    expect([umask, ended.code, ended.stderr]).toEqual([umask, 0, ""]);
    expect([umask, modeOf(path)]).toEqual([umask, (0o666 & ~umask).toString(8)]);
  }
});

test("an old file is replaced whole and keeps its mode, whatever the umask", async () => {
  for (const umask of [...UMASKS, 0o777]) {
    for (const mode of [0o600, 0o640, 0o666, 0o604]) {
      const path = scene.path("old.json");
      await Bun.write(path, "x".repeat(100_000));
      chmodSync(path, mode);
      const reader = openSync(path, "r");
      const args = [RELEASE, "run", "--result-file", path, "--log", "off", "--", "/bin/true"];
      const ended = await runPrepared(scene, { umask }, args);
      expect([umask, ended.code, ended.stderr]).toEqual([umask, 0, ""]);
      expect([umask, modeOf(path)]).toEqual([umask, mode.toString(8)]);
      expect(JSON.parse(readFileSync(path, "utf8")).outcome).toBe("ok");
      // Who had opened the old one still reads the old one.
      expect(readFileSync(reader).length).toBe(100_000);
      closeSync(reader);
    }
  }
}, 180_000);

rootTest("an old file keeps its owner and group when root replaces it", async () => {
  const path = scene.path("owned.json");
  await Bun.write(path, "old");
  chownSync(path, NOBODY, NOBODY);
  chmodSync(path, 0o640);
  await expectQuietRunTo(path);
  const { uid, gid } = statSync(path);
  expect([uid, gid, modeOf(path)]).toEqual([NOBODY, NOBODY, "640"]);
  expect(readEnd(readFileSync(path, "utf8"))).toEqual(ENDED);
});

test("a link is followed: its target is replaced, and the link stays", async () => {
  const [target, link, second] = [scene.path("target"), scene.path("link"), scene.path("second")];
  await Bun.write(target, "old");
  chmodSync(target, 0o604);
  symlinkSync("target", link);
  symlinkSync(link, second);
  await expectQuietRunTo(second);
  expect([readlinkSync(second), readlinkSync(link)]).toEqual([link, "target"]);
  expect(lstatSync(target).isFile()).toBe(true);
  expect([readEnd(readFileSync(target, "utf8")), modeOf(target)]).toEqual([ENDED, "604"]);
});

test("a relative link means the directory in which it lies, also behind another link", async () => {
  mkdirSync(scene.path("far", "inner"), { recursive: true });
  symlinkSync("../behind.json", scene.path("far", "inner", "link.json"));
  symlinkSync("far/inner", scene.path("near"));
  await expectQuietRunTo(scene.path("near", "link.json"));
  expect(readEnd(readFileSync(scene.path("far", "behind.json"), "utf8"))).toEqual(ENDED);
  expect(readdirSync(scene.path("far", "inner"))).toEqual(["link.json"]);
});

test("the target of a dangling link is made", async () => {
  symlinkSync("made.json", scene.path("dangling.json"));
  await expectQuietRunTo(scene.path("dangling.json"));
  expect(readlinkSync(scene.path("dangling.json"))).toBe("made.json");
  expect(lstatSync(scene.path("made.json")).isFile()).toBe(true);
  expect(readEnd(readFileSync(scene.path("made.json"), "utf8"))).toEqual(ENDED);
});

test("links in a circle are told once and stay", async () => {
  symlinkSync("circle-2", scene.path("circle-1"));
  symlinkSync("circle-1", scene.path("circle-2"));
  const ended = await runTo(scene.path("circle-1"));
  expect(ended.code).toBe(4);
  expect(readlinkSync(scene.path("circle-1"))).toBe("circle-2");
  expect(ended.stderr).toMatch(/^watchdog: result file .*ELOOP.*\n$/);
});

rootTest("a device stays a device: the record goes into it, without a complaint", async () => {
  const path = scene.path("null");
  await scene.startProgram(["mknod", path, "c", "1", "3"]).ended;
  symlinkSync("null", scene.path("to-null"));
  const before = statSync(path);
  for (const name of [path, scene.path("to-null")]) await expectQuietRunTo(name);
  const after = lstatSync(path);
  expect([after.isCharacterDevice(), after.rdev, after.ino]).toEqual([true, 0x103, before.ino]);
  expect(lstatSync(scene.path("to-null")).isSymbolicLink()).toBe(true);
});

async function makeFifo(name: string): Promise<string> {
  await scene.startProgram(["mkfifo", scene.path(name)]).ended;
  return scene.path(name);
}

function openWithoutWaiting(path: string, flags: number): number {
  return openSync(path, flags | constants.O_NONBLOCK);
}

test("the reader of a FIFO gets one document, that of the end, and the FIFO stays", async () => {
  const fifo = await makeFifo("read.fifo");
  const reader = openWithoutWaiting(fifo, constants.O_RDONLY);
  try {
    await expectQuietRunTo(fifo);
    expect(readEnd(readFileSync(reader, "utf8"))).toEqual(ENDED);
  } finally {
    closeSync(reader);
  }
  expect(lstatSync(fifo).isFIFO()).toBe(true);
});

async function expectToldOnce(path: string, reason: string): Promise<void> {
  const ended = await runTo(path);
  expect([ended.code, ended.stdout.length]).toEqual([4, 0]);
  const [line = "", ...more] = ended.stderr.split("\n");
  expect(line).toStartWith(`watchdog: result file ${path} could not be written: ${reason}`);
  expect(more).toEqual([""]);
  expect(lstatSync(path).isFIFO()).toBe(true);
}

test("a FIFO without a reader, or full, is told in one line and never waited for", async () => {
  const fifo = await makeFifo("unread.fifo");
  await expectToldOnce(fifo, "ENXIO");
  const reader = openWithoutWaiting(fifo, constants.O_RDONLY);
  const writer = openWithoutWaiting(fifo, constants.O_WRONLY);
  try {
    expect(() => {
      for (;;) writeSync(writer, Buffer.alloc(4096));
    }).toThrow("EAGAIN");
    await expectToldOnce(fifo, "EAGAIN");
  } finally {
    closeSync(writer);
    closeSync(reader);
  }
});

/**
 * As root in a `/dev` of its own, gone with the process: a build that replaces what lies in place
 * of the result file must not meet the machine's `/dev/stdout`.
 */
const OWN_DEVICES = `mount -t tmpfs none /dev && ln -s /proc/self/fd /dev/fd &&
  ln -s /proc/self/fd/1 /dev/stdout && mknod -m 666 /dev/null c 1 3 || exit 99
  exec "$@"`;
const SAFELY = isRoot ? ["unshare", "--mount", "sh", "-c", OWN_DEVICES, "sh"] : [];

function startSafely(argv: readonly string[], options: RunOptions = {}): Promise<Ended> {
  return scene.startProgram([...SAFELY, ...argv], options).ended;
}

test("a descriptor is written into: the file that the output goes to is not replaced", async () => {
  symlinkSync("/dev/stdout", scene.path("to-stdout"));
  for (const path of ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", scene.path("to-stdout")]) {
    for (const log of ["off", "on"]) {
      const file = scene.path("printed");
      const fd = openSync(file, "w");
      const before = statSync(file).ino;
      const args = ["--result-file", path, "--log", log, "--", "sh", "-c", "echo out; exit 4"];
      const running = startSafely([RELEASE, "run", ...args], { stdout: fd });
      const ended = await running.finally(() => closeSync(fd));
      expect([path, log, ended.code, ended.stderr]).toEqual([path, log, 4, ""]);
      const printed = readFileSync(file, "utf8");
      expect([path, log, printed.slice(0, 5)]).toEqual([path, log, "out\n{"]);
      expect(readEnd(printed.slice(4))).toEqual(ENDED);
      expect(statSync(file).ino).toBe(before);
    }
  }
  expect(readdirSync(D).filter((name) => name.includes(".tmp"))).toEqual([]);
}, 180_000);

test("a pipe as standard output gets the output and then the record", async () => {
  const line = `"$0" run --log off --result-file /dev/stdout -- sh -c 'echo out; exit 4' | cat`;
  const ended = await startSafely(["sh", "-c", line, RELEASE]);
  expect([ended.stderr, ended.stdout.toString().slice(0, 4)]).toEqual(["", "out\n"]);
  expect(readEnd(ended.stdout.toString().slice(4))).toEqual(ENDED);
});
