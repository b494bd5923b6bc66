/**
 * What the command finds of itself in /proc: the same as without watchdog. The command is `cat`, which changes nothing of
 * its own, and every line is compared; the few that name this very process are in a list with the reason.
 */
import { expect, test } from "bun:test";
import { realpathSync } from "node:fs";
import { runBoth, type Surroundings } from "../support/outside.ts";
import { openScene, RELEASE, rootTest } from "../support/scene.ts";

const scene = openScene(import.meta.file);

/** Numbers of this very process, or of the moment: different in any two runs of the same program. */
const OF_THE_MOMENT =
  /^(FDSize|Tgid|Ngid|Pid|PPid|NStgid|NSpid|NSpgid|NSsid|SigQ|Vm\w+|Rss\w+|\w*_?ctxt_switches|HugetlbPages):/;
const STATUS = "/proc/self/status";
const OTHER_FILES = [
  ...["/proc/self/limits", "/proc/self/oom_score_adj", "/proc/self/coredump_filter"],
  ...["/proc/self/personality", "/proc/self/cgroup", "/proc/self/timerslack_ns"],
  ...["/proc/self/loginuid", "/proc/self/autogroup", "/proc/self/uid_map"],
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

test("A-29: a fresh program has no signal blocked, ignored or caught, as without watchdog", async () => {
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

test("every line of `ulimit -a` is the caller's, each set to another value than usual", async () => {
  const limits = {
    ...{ NOFILE: [177, 1_999], CORE: [0, 4_096], FSIZE: [1_000_000_000, 2_000_000_000] },
    ...{ NPROC: [20_001, 20_002], STACK: [4_194_304, 67_108_864], MEMLOCK: [65_536, 131_072] },
    ...{ CPU: [1_000, 2_000], DATA: [90_000_000_000, 91_000_000_000], SIGPENDING: [5_000, 5_001] },
    ...{ MSGQUEUE: [81_920, 819_200], NICE: [0, 0], RTPRIO: [0, 0] },
  } as const;
  const seen = await look({ limits });
  expect(seen.with).toEqual(seen.without);
  expect(seen.with.rest).toMatch(/^Max open files +177 +1999 /m);
  const pair = await runBoth(scene, { limits }, ["bash", "-c", "ulimit -Sa; ulimit -Ha"]);
  expect(pair.with.stdout.toString()).toBe(pair.without.stdout.toString());
  expect(pair.with.stdout.toString()).toContain("open files");
});

test("low limits of open files, 20 and 64, are the command's, and watchdog works with them", async () => {
  for (const soft of [20, 64]) {
    for (const hard of [64, 4_096]) {
      const seen = await look({ limits: { NOFILE: [Math.min(soft, hard), hard] } });
      expect(seen.with).toEqual(seen.without);
    }
  }
}, 30_000);

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
