/**
 * What of a job is on the disk before its next effect: as the kernel is told it (strace(1)), as the
 * steps themselves find it in the journal, and on a disk that is full at each transaction in turn.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { waitForStopped } from "../fault/fault-scene.ts";
import { type JobPlace, makeJob } from "../support/job-place.ts";
import { databaseOf, healthOf, HEALTHY, query } from "../support/own-state.ts";
import { FAULTS, openScene, RELEASE, rootTest } from "../support/scene.ts";

const mounted: string[] = [];
afterAll(() => {
  for (const path of mounted) Bun.spawnSync(["umount", "--lazy", path]);
});
const scene = openScene(import.meta.file);
const hasStrace = Bun.which("strace") !== null && Bun.which("sqlite3") !== null;
if (!hasStrace) console.error("needs strace and sqlite3, not run here: the order of durability");

const NAMES = ["s1", "s2", "s3", "s4"] as const;
const EFFECTS = { s1: "none", s2: "none", s3: "unsafe", s4: "none" } as const;
/** Each step writes down what the journal says at the moment at which it begins. */
const LOOK =
  'sqlite3 "file:$WATCHDOG_STATE_DIR/journal.db?mode=ro" "SELECT group_concat(state) FROM ' +
  '(SELECT state FROM steps ORDER BY position)" >>seen';

function looking(): Record<string, object> {
  const entries = NAMES.map((name, at) => {
    const needs = at === 0 ? [] : [NAMES[at - 1]];
    const command = ["sh", "-c", LOOK, name];
    return [name, { command, needs, side_effects: EFFECTS[name] }] as const;
  });
  return Object.fromEntries(entries);
}

const CALLS = "trace=execve,pwrite64,pwritev,write,fdatasync,fsync,rename,renameat2,unlink";

/** The release binary under strace. @returns what its runner did, and when steps were spawned */
async function trace(job: JobPlace): Promise<string[]> {
  const path = scene.path("durability.trace");
  const strace = ["strace", "-f", "-y", "-s", "256", "--seccomp-bpf", "-e", CALLS, "-o", path];
  const ended = await job.scene.startProgram([...strace, RELEASE, "job", "run", job.file]).ended;
  expect([ended.status, ended.stderr]).toEqual([0, ""]);
  return readEvents(readFileSync(path, "utf8"));
}

/** The runner writes the journal from one thread; the run around it has a journal's life too. */
function readEvents(text: string): string[] {
  const lines = text.split("\n");
  const runner = lines.find((line) => /execve\(.*"__job"/.test(line))?.split(" ")[0];
  const syncing = new Set<string>();
  return lines.flatMap((line): string[] => {
    const [pid = ""] = line.split(" ");
    const spawned = /execve\(.*, \["sh", "-c", .*"(s\d)"\]/.exec(line)?.[1];
    if (spawned !== undefined) return line.includes("= -1 ") ? [] : [`spawn ${spawned}`];
    if (pid !== runner) return [];
    if (/(pwrite64|pwritev|write)\(\d+<[^>]*journal\.db-wal>/.test(line)) return ["wal"];
    if (/(fsync|fdatasync)\(\d+<[^>]*journal\.db-wal>/.test(line)) {
      if (!line.includes("unfinished")) return ["sync"];
      syncing.add(pid);
      return [];
    }
    // It counts when it has come back.
    if (/f(data)?sync resumed>/.test(line) && syncing.delete(pid)) return ["sync"];
    return /unlink\("[^"]*\/jobs\//.test(line) ? ["marker gone"] : [];
  });
}

/** `wal wal sync` is one commit, on the disk. */
function commitsIn(events: readonly string[]): string[] {
  const commits: string[] = [];
  let isWritten = false;
  for (const event of events) {
    if (event === "wal") isWritten = true;
    if (event !== "sync") continue;
    commits.push(isWritten ? "commit" : "sync of nothing");
    isWritten = false;
  }
  return isWritten ? [...commits, "not synced"] : commits;
}

test.skipIf(!hasStrace)(
  "before a step is spawned its start is on the disk, and the end of the one before it",
  async () => {
    const job = makeJob(scene, "traced", looking());
    const events = await trace(job);
    const spawns = NAMES.map((name) => events.indexOf(`spawn ${name}`));
    expect(spawns.toSorted((a, b) => a - b)).toEqual(spawns);
    expect(spawns[0]).toBeGreaterThan(0);
    const between = spawns.map((from, at) => events.slice(from + 1, spawns[at + 1]));
    // Two that are harmless share a commit; the start and the end of an unsafe one have their own.
    expect(between.slice(0, 3).map(commitsIn)).toEqual([
      ["commit"],
      ["commit", "commit"],
      ["commit", "commit"],
    ]);
    const [gone, last = []] = [events.indexOf("marker gone"), between[3]];
    expect(commitsIn(last.slice(0, last.indexOf("marker gone")))).toEqual(["commit", "commit"]);
    expect(gone).toBeGreaterThan(spawns[3] ?? 0);
    const beginning = commitsIn(events.slice(0, spawns[0]));
    expect([beginning.length >= 2, beginning.filter((one) => one !== "commit")]).toEqual([
      true,
      [],
    ]);
    expect(job.lines("seen")).toEqual([
      "running,pending,pending,pending",
      "done,running,pending,pending",
      "done,done,running,pending",
      "done,done,done,running",
    ]);
  },
);

test("the reader of traces sees a commit that is not synced, and one that comes late", () => {
  const begin = '7 execve("/w", ["/w", "__job"], 0x1) = 0';
  const wal = "7 pwrite64(3</s/journal.db-wal>, 1, 1, 1) = 1";
  const spawn = '8 execve("/bin/sh", ["sh", "-c", "x", "s1"], 0x1) = 0';
  const sync = "7 fdatasync(3</s/journal.db-wal>) = 0";
  const others = "9 fdatasync(3</s/journal.db-wal>) = 0";
  const cut = "7 fdatasync(3</s/journal.db-wal> <unfinished ...>";
  const eventsOf = (...lines: string[]) => readEvents([begin, ...lines].join("\n"));
  expect(commitsIn(eventsOf(wal, sync, spawn))).toEqual(["commit"]);
  expect(commitsIn(eventsOf(wal, others, spawn))).toEqual(["not synced"]);
  expect(eventsOf(wal, cut, spawn, "7 <... fdatasync resumed>) = 0")).toEqual([
    "wal",
    "spawn s1",
    "sync",
  ]);
});

type Effects = "none" | "unsafe";

interface FullDisk {
  readonly point: string;
  /** Of every step: the start of an unsafe one is a transaction of its own. */
  readonly effects: Effects;
  /** What has been done when it stopped, and after the next run. */
  readonly log: string;
  readonly steps: readonly string[];
  readonly after: string;
}

const STEPS = ["s1", "s2", "s3"] as const;
const BEGUN = ["s1 done 1", "s2 pending 0", "s3 pending 0"];
/** One transaction is the end of s1 and the start of s2. */
const FIRST = ["s1 running 1", "s2 pending 0", "s3 pending 0"];
const RUNNING = ["s1 done 1", "s2 running 1", "s3 pending 0"];
const DONE = ["s1 done 1", "s2 done 1", "s3 done 1"];

/** The disk has no block left from there on; `.commit`: in the middle of the transaction. */
const FULL: readonly FullDisk[] = [
  { point: "job.begin.commit", effects: "none", log: "", steps: [], after: "s1 s2 s3" },
  { point: "step.next@s2", effects: "unsafe", log: "s1", steps: BEGUN, after: "s1 s2 s3" },
  {
    point: "step.started.commit@s2",
    effects: "unsafe",
    log: "s1",
    steps: BEGUN,
    after: "s1 s2 s3",
  },
  {
    point: "step.started.commit@s2",
    effects: "none",
    log: "s1",
    steps: FIRST,
    after: "s1 s1 s2 s3",
  },
  { point: "step.hashed@s2", effects: "none", log: "s1 s2", steps: RUNNING, after: "s1 s2 s2 s3" },
  {
    point: "step.completion.commit@s2",
    effects: "none",
    log: "s1 s2",
    steps: RUNNING,
    after: "s1 s2 s2 s3",
  },
  { point: "job.finish", effects: "unsafe", log: "s1 s2 s3", steps: DONE, after: "s1 s2 s3" },
  { point: "job.finish.commit", effects: "none", log: "s1 s2 s3", steps: DONE, after: "s1 s2 s3" },
];

let count = 0;

/** Its state alone is on the small disk. @returns fill and empty it */
async function makeOnSmallDisk(effects: Effects) {
  count += 1;
  const name = `full-${count}`;
  const steps = STEPS.map((step, at) => {
    const needs = at === 0 ? [] : [STEPS[at - 1]];
    return [step, { command: `echo ${step} >>log`, needs, side_effects: effects }] as const;
  });
  const job = makeJob(scene, name, Object.fromEntries(steps));
  const disk = job.scene.stateDirectory;
  mkdirSync(disk, { mode: 0o700 });
  await Bun.$`mount -t tmpfs -o size=6m,mode=700 watchdog-test ${disk}`.quiet();
  mounted.push(disk);
  return {
    job,
    name,
    fill: () => void Bun.spawnSync(["dd", "if=/dev/zero", `of=${disk}/fill`, "bs=4k"]),
    empty: () => rmSync(`${disk}/fill`),
  };
}

const logOf = (job: JobPlace): string => job.lines("log").join(" ");

function stepsOf(job: JobPlace): string[] {
  if (!existsSync(databaseOf(job.scene))) return [];
  const sql = "SELECT step, state, attempt FROM steps ORDER BY position";
  return query(job.scene, sql).map((row) => row.join(" "));
}

/** The disk is filled while the runner stands still at the point. */
async function runUntilFull(disk: Awaited<ReturnType<typeof makeOnSmallDisk>>, point: string) {
  const { job, name, fill } = disk;
  const evidence = scene.path(`${name}.evidence`);
  const run = job.scene.startProgram([FAULTS, "job", "run", ...scene.recordTo(name), job.file], {
    env: { WATCHDOG_FAULT: `${point}=stop`, WATCHDOG_FAULT_DIR: evidence },
  });
  const runner = await waitForStopped(evidence);
  fill();
  process.kill(runner, "SIGCONT");
  const ended = await run.ended;
  const { outcome, because } = scene.readRecord(name);
  return [ended.status, outcome, because];
}

const UNWRITTEN = [125, "wrapper_error", "job-state-unwritten"];

describe("on a disk that is full", () => {
  for (const { point, effects, log, steps, after } of FULL) {
    rootTest(
      `from ${point} of ${effects} on, nothing more is done, and it goes on when there is room`,
      async () => {
        const disk = await makeOnSmallDisk(effects);
        const { job } = disk;
        expect(await runUntilFull(disk, point)).toEqual(UNWRITTEN);
        expect(logOf(job)).toBe(log);
        disk.empty();
        expect(stepsOf(job)).toEqual([...steps]);
        expect(healthOf(job.scene)).toEqual(HEALTHY);
        const again = await job.job("run");
        expect([again.status, logOf(job)]).toEqual([0, after]);
        expect(query(job.scene, "SELECT state, count(*) FROM jobs")).toEqual([["done", 1]]);
      },
    );
  }

  rootTest("an unsafe step that has happened is not run again without a word", async () => {
    const disk = await makeOnSmallDisk("unsafe");
    const { job } = disk;
    expect(await runUntilFull(disk, "step.completion.commit@s2")).toEqual(UNWRITTEN);
    // Full still: nothing is begun.
    expect([(await job.job("run")).status, logOf(job)]).toEqual([125, "s1 s2"]);
    disk.empty();
    expect([(await job.job("run")).status, logOf(job)]).toEqual([3, "s1 s2"]);
    const resumed = await job.job("resume", "--accept-unknown=s2=done");
    expect([resumed.status, logOf(job)]).toEqual([0, "s1 s2 s3"]);
  });

  rootTest("a resume that cannot write what it has decided runs nothing", async () => {
    const disk = await makeOnSmallDisk("none");
    const { job, name } = disk;
    expect(await runUntilFull(disk, "step.completion.commit@s2")).toEqual(UNWRITTEN);
    disk.empty();
    rmSync(scene.path(`${name}.evidence`), { recursive: true });
    expect(await runUntilFull(disk, "job.adopt.commit")).toEqual(UNWRITTEN);
    expect(logOf(job)).toBe("s1 s2");
    disk.empty();
    expect(stepsOf(job)).toEqual(RUNNING);
    expect([(await job.job("run")).status, logOf(job)]).toEqual([0, "s1 s2 s2 s3"]);
  });

  rootTest("the twin: with room at that moment it comes to its end", async () => {
    const disk = await makeOnSmallDisk("none");
    const told = await runUntilFull({ ...disk, fill: () => undefined }, "step.hashed@s2");
    expect([told[0], logOf(disk.job)]).toEqual([0, "s1 s2 s3"]);
  });
});
