/**
 * `watchdog keep`: what is started by it outlives the run on purpose, and nothing else does.
 */
import { expect, test } from "bun:test";
import {
  closeSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
} from "node:fs";
import { findByCommand, python, waitForCommand, waitForText } from "../support/processes.ts";
import { FAULTS, openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;

/** Ends what a test kept, and waits until it is gone. */
async function endKept(command: string): Promise<void> {
  for (const pid of findByCommand(scene, command)) process.kill(pid, "SIGKILL");
  await waitFor(() => findByCommand(scene, command).length === 0, `no '${command}' any more`);
}

test(
  "A-07: what was kept survives, the record names it, and the next run starts at once",
  async () => {
    const script = `${RELEASE} keep -- sleep 95001; setsid sleep 95002 </dev/null >/dev/null 2>&1 &
      until pgrep -fx 'sleep 95001' && pgrep -fx 'sleep 95002'; do :; done >/dev/null; exit 0`;
    const ended = await scene.run([
      "--log",
      "off",
      "--name",
      "a07",
      ...scene.recordTo("a07"),
      "--",
      "sh",
      "-c",
      script,
    ]);
    const kept = findByCommand(scene, "sleep 95001");
    const record = scene.readRecord("a07");
    expect(ended.status).toBe(0);
    expect(kept).toHaveLength(1);
    expect(record["kept"]).toEqual([{ pid: kept[0], command: "sleep 95001" }]);
    // The one beside it was not meant to stay, and is not allowed to.
    expect(findByCommand(scene, "sleep 95002")).toEqual([]);
    expect(record["leftovers"]).toMatchObject([{ command: "sleep 95002", ended_by: "TERM" }]);
    const next = await scene.run(["--log", "off", "--name", "a07", "--", "echo", "again"]);
    expect(next.stdout.toString()).toBe("again\n");
    expect(findByCommand(scene, "sleep 95001")).toEqual(kept);
    await endKept("sleep 95001");
  },
  LIMIT_MS,
);

test(
  "a limit and its KILL go around what was kept",
  async () => {
    const script = `${RELEASE} keep -- sleep 95003; trap '' TERM; sleep 95004 & sleep 95004`;
    const ended = await scene.run(
      [
        ["--log", "off", "--timeout", "5s", "--kill-after", "300ms", ...scene.recordTo("limit")],
        ["--", "sh", "-c", script],
      ].flat(),
    );
    expect(ended.status).toBe(124);
    expect(findByCommand(scene, "sleep 95004")).toEqual([]);
    expect(findByCommand(scene, "sleep 95003")).toHaveLength(1);
    expect(scene.readRecord("limit")["kept"]).toMatchObject([{ command: "sleep 95003" }]);
    await endKept("sleep 95003");
  },
  LIMIT_MS,
);

test(
  "a daemon that forks twice is kept with all that it starts",
  async () => {
    const pidFile = scene.path("daemon.pid");
    const inside = `sleep 95006 & exec sleep 95005`;
    const daemon = [...python("daemonizes.py", pidFile), "sh", "-c", `'${inside}'`].join(" ");
    const script = `${RELEASE} keep -- ${daemon}
      until pgrep -fx 'sleep 95005' && pgrep -fx 'sleep 95006'; do :; done >/dev/null`;
    const ended = await scene.run([
      "--log",
      "off",
      "--kill-after",
      "0",
      ...scene.recordTo("daemon"),
      "--",
      "sh",
      "-c",
      script,
    ]);
    expect(ended.status).toBe(0);
    expect(ended.stderr).toBe("");
    expect(findByCommand(scene, "sleep 95005")).toEqual([Number(await waitForText(pidFile))]);
    expect(findByCommand(scene, "sleep 95006")).toHaveLength(1);
    expect(scene.readRecord("daemon")["leftovers"]).toEqual([]);
    await endKept("sleep 95005");
    await endKept("sleep 95006");
  },
  LIMIT_MS,
);

test(
  "what was kept is spared from its first moment, also if keep itself is ended then",
  async () => {
    const faults = scene.path("keep-faults");
    const slow = "file.create#1=delay:700,file.create#2=delay:5000";
    const keep = `WATCHDOG_FAULT=${slow} WATCHDOG_FAULT_DIR=${faults} ${FAULTS} keep`;
    const script = `${keep} -- sleep 95030 &
      until pgrep -fx 'sleep 95030'; do sleep 0.01; done >/dev/null`;
    const args = ["--log", "off", ...scene.recordTo("early"), "--", "sh", "-c", script];
    expect((await scene.run(args)).status).toBe(0);
    const kept = findByCommand(scene, "sleep 95030");
    expect(scene.readRecord("early")["kept"]).toEqual([{ pid: kept[0], command: "sleep 95030" }]);
    expect(readdirSync(faults).length).toBeGreaterThan(0);
    await endKept("sleep 95030");
  },
  LIMIT_MS,
);

test(
  "what was kept has a session and none of the run's cookies, and holds nobody's pipe",
  async () => {
    const seen = scene.path("seen");
    const look = `{ env; echo "session $(ps -o sid= -p $$)"; } >${seen}; exec sleep 95007`;
    const ended = await scene.run(["--log", "off", "--", RELEASE, "keep", "--", "sh", "-c", look]);
    // The pipe has ended although the kept process lives: it does not hold it.
    expect(ended.status).toBe(0);
    const [pid] = await waitForCommand(scene, "sleep 95007");
    const lines = readFileSync(seen, "utf8").trimEnd().split("\n");
    expect(lines.filter((line) => line.startsWith("WATCHDOG_RUN"))).toEqual([]);
    expect(lines.find((line) => line.startsWith("session"))?.split(/\s+/)[1]).toBe(String(pid));
    for (const fd of [0, 1, 2]) expect(readlinkSync(`/proc/${pid}/fd/${fd}`)).toBe("/dev/null");
    await endKept("sleep 95007");
  },
  LIMIT_MS,
);

test(
  "keep --output appends what the kept command prints to a file",
  async () => {
    const output = scene.path("kept.log");
    const keep = [RELEASE, "keep", "--output", output, "--", "sh", "-c"];
    for (const word of ["one", "two"]) {
      const ended = await scene.run([
        "--log",
        "off",
        "--",
        ...keep,
        `echo ${word}; echo ${word}-2 >&2`,
      ]);
      expect(ended.status).toBe(0);
      await waitFor(
        () => existsSync(output) && readFileSync(output, "utf8").includes(`${word}-2\n`),
        `${word}-2 in ${output}`,
      );
    }
    expect(readFileSync(output, "utf8")).toBe("one\none-2\ntwo\ntwo-2\n");
  },
  LIMIT_MS,
);

test(
  "keep --output to a FIFO without a reader is an error at once, and nothing is started",
  async () => {
    const fifo = scene.path("unread.fifo");
    await scene.startProgram(["mkfifo", fifo]).ended;
    const mark = scene.path("started");
    const args = ["--output", fifo, "--", "touch", mark];
    for (const ended of [
      await scene.run(args, { command: "keep" }),
      await scene.run(["--log", "off", "--", RELEASE, "keep", ...args]),
    ]) {
      expect([ended.status, ended.stdout.length]).toEqual([125, 0]);
      expect(ended.stderr).toMatch(/^watchdog: error: --output .*unread\.fifo.*ENXIO.*\n$/);
    }
    expect(existsSync(mark)).toBe(false);
  },
  LIMIT_MS,
);

test(
  "keep --output to a FIFO with a reader gives it all, also what does not fit at once",
  async () => {
    const fifo = scene.path("read.fifo");
    await scene.startProgram(["mkfifo", fifo]).ended;
    const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const command = ["sh", "-c", "head -c 200000 /dev/zero; echo $?; exec sleep 95010"];
      const args = ["--output", fifo, "--", ...command];
      expect((await scene.run(args, { command: "keep" })).status).toBe(0);
      // Fuller than a FIFO can be: a descriptor that does not wait would fail here.
      let text = "";
      await waitFor(() => (text += readNow(reader)).endsWith("\n"), "the end of the output");
      expect([text.length, text.slice(-2)]).toEqual([200_002, "0\n"]);
    } finally {
      closeSync(reader);
    }
    await endKept("sleep 95010");
  },
  LIMIT_MS,
);

function readNow(fd: number): string {
  const bytes = Buffer.alloc(65_536);
  try {
    return bytes.toString("latin1", 0, readSync(fd, bytes));
  } catch {
    return ""; // EAGAIN: a writer is there and has written nothing yet
  }
}

test(
  "keep works outside any run and returns while its command goes on",
  async () => {
    const ended = await scene.run(["--", "sleep", "95008"], { command: "keep" });
    expect(ended.status).toBe(0);
    expect(ended.stderr).toBe("");
    expect(await waitForCommand(scene, "sleep 95008")).toHaveLength(1);
    await endKept("sleep 95008");
  },
  LIMIT_MS,
);

test(
  "keep of a program that does not exist gives 127, of one that cannot be executed 126",
  async () => {
    const missing = await scene.run(["--", "./no-such-program"], { command: "keep" });
    expect(missing.status).toBe(127);
    expect(missing.stderr).toStartWith("watchdog: error: ./no-such-program: ");
    const directory = await scene.run(["--", scene.directory], { command: "keep" });
    expect(directory.status).toBe(126);
    const inside = await scene.run([
      "--log",
      "off",
      ...scene.recordTo("missing"),
      "--",
      RELEASE,
      "keep",
      "./no-such-program",
    ]);
    expect(inside.status).toBe(127);
    expect(scene.readRecord("missing")).toMatchObject({ kept: [], leftovers: [] });
  },
  LIMIT_MS,
);

test(
  "keep in a run within a run is spared by both",
  async () => {
    const inner = `${RELEASE} run --log off -- ${RELEASE} keep -- sleep 95009; exit 0`;
    const ended = await scene.run([
      "--log",
      "off",
      "--kill-after",
      "0",
      ...scene.recordTo("both"),
      "--",
      "sh",
      "-c",
      inner,
    ]);
    expect(ended.status).toBe(0);
    expect(ended.stderr).toBe("");
    expect(await waitForCommand(scene, "sleep 95009")).toHaveLength(1);
    expect(scene.readRecord("both")["leftovers"]).toEqual([]);
    await endKept("sleep 95009");
  },
  LIMIT_MS,
);
