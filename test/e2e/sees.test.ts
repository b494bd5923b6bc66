/**
 * What the command finds of itself in /proc: the same as without watchdog. The command is `cat`,
 * which changes nothing of its own, and every line is compared; the few that name this very process
 * are in a list with the reason.
 */
import { expect, test } from "bun:test";
import { realpathSync } from "node:fs";
import { runBoth, type Surroundings } from "../support/outside.ts";
import { openScene, RELEASE, rootTest } from "../support/scene.ts";

const scene = openScene(import.meta.file);

/**
 * Numbers of this very process, or of the moment: different in any two runs of the same program.
 */
const OF_THE_MOMENT =
  /^(FDSize|[NPT]\w*[pgt]?id|NSsid|SigQ|Vm\w+|Rss\w+|\w*_?ctxt_switches|HugetlbPages):/;
const STATUS = "/proc/self/status";
const OTHER_FILES = [
  "/proc/self/limits",
  "/proc/self/oom_score_adj",
  "/proc/self/coredump_filter",
  "/proc/self/personality",
  "/proc/self/cgroup",
  "/proc/self/timerslack_ns",
  "/proc/self/loginuid",
  "/proc/self/autogroup",
  "/proc/self/uid_map",
];

interface Sight {
  readonly status: readonly string[];
  readonly rest: string;
}

async function look(surroundings: Surroundings): Promise<{ without: Sight; with: Sight }> {
  const both = async (files: readonly string[]) => {
    const pair = await runBoth(scene, surroundings, ["/bin/cat", ...files]);
    return [pair.without.stdout.toString(), pair.with.stdout.toString()] as const;
  };
  const status = await both([STATUS]);
  const rest = await both(OTHER_FILES);
  const sight = (at: 0 | 1): Sight => ({
    status: status[at].split("\n").filter((line) => !OF_THE_MOMENT.test(line)),
    // The number of the autogroup is that of the session: the shell's here, or its own.
    rest: rest[at].replace(/^\/autogroup-\d+ /m, "/autogroup "),
  });
  return { without: sight(0), with: sight(1) };
}

function lineOf(sight: Sight, key: string): string {
  return sight.status.find((line) => line.startsWith(`${key}:`)) ?? `no ${key}`;
}

function bit(signal: number): bigint {
  return 1n << BigInt(signal - 1);
}

function mask(sight: Sight, key: string): bigint {
  return BigInt(`0x${lineOf(sight, key).split("\t")[1]}`);
}

test("A-29: a fresh program has no signal blocked, ignored or caught", async () => {
  const seen = await look({});
  expect(seen.with).toEqual(seen.without);
  expect(seen.with.status.length).toBeGreaterThan(25);
  expect(seen.with.rest).toContain("Max open files");
  for (const key of ["SigBlk", "SigIgn", "SigCgt"])
    expect([key, mask(seen.with, key)]).toEqual([key, 0n]);
});

test("ignored signals stay ignored: nohup, and a job that a shell started with &", async () => {
  const ignored = [1, 2, 3, 10, 15, 18, 20, 28, 34, 64];
  const seen = await look({ ignore: ignored });
  expect(seen.with).toEqual(seen.without);
  expect(mask(seen.with, "SigIgn")).toBe(ignored.reduce((sum, one) => sum | bit(one), 0n));
});

test("blocked signals stay blocked", async () => {
  const blocked = [1, 2, 10, 13, 15, 17, 18, 28, 34, 64];
  const seen = await look({ block: blocked });
  expect(seen.with).toEqual(seen.without);
  expect(mask(seen.with, "SigBlk")).toBe(blocked.reduce((sum, one) => sum | bit(one), 0n));
});

test("umask and nice value are the caller's", async () => {
  const seen = await look({ umask: 0o137, nice: 7 });
  expect(seen.with).toEqual(seen.without);
  expect(lineOf(seen.with, "Umask")).toBe("Umask:\t0137");
  const stat = await runBoth(scene, { nice: 7 }, ["/bin/cat", "/proc/self/stat"]);
  const nice = (text: Buffer): string | undefined => text.toString().split(") ")[1]?.split(" ")[16];
  expect([nice(stat.without.stdout), nice(stat.with.stdout)]).toEqual(["7", "7"]);
});

test("every line of `ulimit -a` is the caller's, each at an unusual value", async () => {
  const limits = {
    NOFILE: [177, 1999],
    CORE: [0, 4096],
    FSIZE: [1e9, 2e9],
    NPROC: [20001, 20002],
    STACK: [4194304, 67108864],
    MEMLOCK: [65536, 131072],
    CPU: [1e3, 2e3],
    DATA: [9e10, 91e9],
    SIGPENDING: [5e3, 5001],
    MSGQUEUE: [81920, 819200],
    NICE: [0, 0],
    RTPRIO: [0, 0],
  } as const;
  const seen = await look({ limits });
  expect(seen.with).toEqual(seen.without);
  expect(seen.with.rest).toMatch(/^Max open files +177 +1999 /m);
  const pair = await runBoth(scene, { limits }, ["bash", "-c", "ulimit -Sa; ulimit -Ha"]);
  expect(pair.with.stdout.toString()).toBe(pair.without.stdout.toString());
  expect(pair.with.stdout.toString()).toContain("open files");
});

test("watchdog works with 20 and with 64 open files, and so does the command", async () => {
  for (const soft of [20, 64]) {
    for (const hard of [64, 4_096]) {
      const seen = await look({ limits: { NOFILE: [Math.min(soft, hard), hard] } });
      expect(seen.with).toEqual(seen.without);
    }
  }
}, 180_000);

test("the working directory is the caller's, also one whose name is not ASCII", async () => {
  const directory = scene.path("tëst☃ dir");
  await scene.startProgram(["mkdir", directory]).ended;
  const pair = await runBoth(scene, { cwd: directory }, ["readlink", "/proc/self/cwd"]);
  expect(pair.with.stdout.toString()).toBe(`${realpathSync(directory)}\n`);
  expect(pair.with.stdout).toEqual(pair.without.stdout);
});

/** pid, parent, group, session, terminal and foreground group, of stat(5). */
async function readIds(surroundings: Surroundings): Promise<number[][]> {
  const pair = await runBoth(scene, surroundings, ["/bin/cat", "/proc/self/stat"]);
  return [pair.without, pair.with].map(({ stdout }) => {
    const fields = stdout.toString().split(") ")[1]?.split(" ") ?? [];
    return [Number(stdout.toString().split(" ")[0]), ...fields.slice(1, 6).map(Number)];
  });
}

test("the session is the caller's, and so is having no terminal", async () => {
  // The caller leads a session of its own here, so the session's number is that of watchdog.
  const [without = [], wrapped = []] = await readIds({ fresh_session: true });
  expect([without[3], without[4]]).toEqual([without[0], 0]);
  expect(wrapped[3]).toBe(wrapped[1]);
  expect(wrapped.slice(4)).toEqual(without.slice(4));
});

rootTest("capabilities, groups and no_new_privs are the caller's", async () => {
  const dropped = ["setpriv", "--bounding-set=-sys_admin", "--no-new-privs", "--groups=5,7"];
  const look = async (command: readonly string[]) => {
    const { stdout } = await scene.startProgram([...dropped, ...command]).ended;
    return stdout
      .toString()
      .split("\n")
      .filter((line) => !OF_THE_MOMENT.test(line));
  };
  const without = await look(["/bin/cat", STATUS]);
  const wrapped = await look([RELEASE, "run", "--log", "off", "--", "/bin/cat", STATUS]);
  expect(wrapped).toEqual(without);
  expect(wrapped.join("\n")).toMatch(/^Groups:\t5 7 $/m);
  expect(wrapped.join("\n")).toMatch(/^NoNewPrivs:\t1$/m);
});

test("with the output copied, the command sees the same", async () => {
  const status = await runBoth(
    scene,
    { ignore: [1], block: [10] },
    ["/bin/cat", STATUS],
    ["--log", "on"],
  );
  const lines = (text: Buffer): string[] =>
    text
      .toString()
      .split("\n")
      .filter((line) => !OF_THE_MOMENT.test(line));
  expect(lines(status.with.stdout)).toEqual(lines(status.without.stdout));
  const limits = await runBoth(scene, {}, ["/bin/cat", "/proc/self/limits"], ["--log", "on"]);
  expect(limits.with.stdout.toString()).toBe(limits.without.stdout.toString());
});

test("under a terminal the command has it, in the caller's group", async () => {
  // The second line is what `script` itself starts: that shell has the group that counts.
  const look = `tty; test -t 0 && test -t 1 && test -t 2 && echo all three
    stty -a; cut -d" " -f5-8 /proc/$$/stat | sed "s/^$G /same group /"`;
  await Bun.write(scene.path("look"), look);
  const typescript = async (prefix: string): Promise<string> => {
    const line = `export G=$(cut -d" " -f5 /proc/$$/stat); ${prefix} sh "$L"; echo $?`;
    const env = { L: scene.path("look"), W: RELEASE };
    const program = ["script", "-qec", line, "/dev/null"];
    const { stdout } = await scene.startProgram(program, { env }).ended;
    // Each terminal has its own number, and each session too.
    return stdout
      .toString()
      .replace(/pts\/\d+/, "pts/N")
      .replace(/same group \d+ .*/, "same group");
  };
  const without = await typescript("");
  expect(without).toContain("all three");
  expect(without).toContain("same group");
  expect(await typescript('"$W" run --')).toBe(without);
}, 180_000);
