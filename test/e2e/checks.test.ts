/**
 * What a command must have brought about, on the compiled binary: 65 where it says that all is
 * well and it is not, and no false alarm. are those of the collected cases.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { openScene, RELEASE, rootTest } from "../support/scene.ts";
import { openTerminal } from "../support/terminal.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const BAD_OUTPUT = 65;
const YESTERDAY = new Date(Date.now() - 86_400_000);

interface Result {
  readonly status: number;
  readonly because: unknown;
  readonly stderr: string;
  readonly stdout: string;
  readonly record: ReturnType<typeof scene.readRecord>;
}

let results = 0;

/** Runs a script in a directory, with options, and gives back how it ended and why. */
async function run(options: readonly string[], script: string, cwd = scene.directory) {
  results += 1;
  const name = `checks-${results}`;
  const words = [...scene.recordTo(name), ...options, "--", "sh", "-c", script];
  const ended = await scene.run(words, { cwd });
  const record = scene.readRecord(name);
  const found: Result = {
    status: ended.status,
    because: record["because"],
    stderr: ended.stderr,
    stdout: ended.stdout.toString(),
    record,
  };
  return found;
}

async function outcomeOf(options: readonly string[], script: string, cwd?: string) {
  const { status, because } = await run(options, script, cwd);
  return [status, because];
}

function makePlace(name: string): string {
  const place = scene.path(name);
  mkdirSync(place);
  return place;
}

const GOOD = [0, "exited"];

describe("A-89: a job says 0, and its result is empty or from yesterday", () => {
  test("stale, empty and missing are 65, each with its reason; the job's code wins", async () => {
    const place = makePlace("a89");
    writeFileSync(`${place}/out`, "old\n");
    utimesSync(`${place}/out`, YESTERDAY, YESTERDAY);
    const expecting = ["--name", "a89", "--expect-file", "out"];
    const stale = await run(expecting, "true", place);
    expect([stale.status, stale.because]).toEqual([BAD_OUTPUT, "file-unchanged"]);
    expect(stale.stderr).toContain(YESTERDAY.toISOString());
    expect(stale.stderr).toContain(`before the start at ${stale.record["started_at"]}`);
    expect(stale.stderr.split("\n")).toHaveLength(2);
    expect(await outcomeOf(expecting, ": >out", place)).toEqual([BAD_OUTPUT, "file-empty"]);
    expect(await outcomeOf(expecting, "rm out", place)).toEqual([BAD_OUTPUT, "file-missing"]);
    expect(await outcomeOf(expecting, "echo new >out", place)).toEqual(GOOD);
    expect(await outcomeOf(expecting, "echo new >out; exit 9", place)).toEqual([9, "exited"]);
    // Switched off, none of them is seen.
    for (const script of ["true", ": >out", "rm out"]) {
      expect(await outcomeOf(["--name", "a89"], script, place)).toEqual(GOOD);
    }
  }, 60_000);
});

describe("A-90: false alarms", () => {
  test("spaces, the same second, moved in with an old time, absolute: all good", async () => {
    const place = makePlace("a90");
    const expecting = (target: string) => ["--name", "a90", "--expect-file", target];
    const spaces = 'mkdir -p "out dir"; echo x >"out dir/a b.txt"';
    expect(await outcomeOf(expecting("out dir/a b.txt"), spaces, place)).toEqual(GOOD);
    for (let round = 0; round < 5; round += 1) {
      expect(await outcomeOf(expecting("now.txt"), "echo x >now.txt", place)).toEqual(GOOD);
    }
    const moved = 'echo x >t; touch -d "1 hour ago" t; mv t mv.txt';
    expect(await outcomeOf(expecting("mv.txt"), moved, place)).toEqual(GOOD);
    const absolute = `${place}/abs.txt`;
    expect(await outcomeOf(expecting(absolute), `cd /; echo x >'${absolute}'`, place)).toEqual(
      GOOD,
    );
    expect(await outcomeOf(expecting("empty:min=0"), ": >empty", place)).toEqual(GOOD);
    expect(await outcomeOf(expecting("abs.txt:any-age"), "true", place)).toEqual(GOOD);
  }, 60_000);

  test("what a process writes that outlives the main command counts, too", async () => {
    const place = makePlace("late");
    const script = "(read -r word <gate; echo x >late) & exit 0";
    Bun.spawnSync(["mkfifo", `${place}/gate`]);
    const waiting = run(["--leftovers", "wait", "--expect-file", "late"], script, place);
    writeFileSync(`${place}/gate`, "go\n");
    expect((await waiting).status).toBe(0);
  }, 60_000);
});

describe("files", () => {
  test("of a pattern and a directory, and what the record tells of them", async () => {
    const place = makePlace("files");
    writeFileSync(`${place}/d-1.gz`, "from before");
    const options = ["--expect-file", "d-*.gz:min=3", "--expect-file", "dir"];
    const script = "mkdir -p dir/deep; echo 12 >dir/deep/x; echo 34 >dir/y; echo 567 >d-2.gz";
    const { status, record } = await run(options, script, place);
    expect(status).toBe(0);
    expect(record["artifacts"]).toMatchObject([
      { path: `${place}/d-*.gz`, target: "d-*.gz", files: 1, bytes: 4 },
      { path: `${place}/dir`, target: "dir", files: 2, bytes: 6 },
    ]);
    expect(record["checks"]).toMatchObject([
      { check: "expect-file", target: "d-*.gz", passed: true, because: null },
      { check: "expect-file", target: "dir", passed: true, because: null },
    ]);
    expect(await outcomeOf(options, "echo 5 >d-3.gz; touch dir/y", place)).toEqual([
      BAD_OUTPUT,
      "file-too-small",
    ]);
    expect(await outcomeOf(options, "echo 567 >d-2.gz", place)).toEqual([
      BAD_OUTPUT,
      "file-unchanged",
    ]);
  }, 60_000);

  test("that have shrunk since the last good run are seen by :min-ratio alone", async () => {
    const place = makePlace("ratio");
    const write = (bytes: number) => `head -c ${bytes} /dev/zero >dump`;
    const job =
      (name: string) =>
      (bytes: number, suffix = ":min-ratio=0.5") =>
        outcomeOf(["--name", name, "--expect-file", `dump${suffix}`], write(bytes), place);
    const nightly = job("ratio");
    expect(await nightly(900)).toEqual(GOOD);
    expect(await nightly(450)).toEqual(GOOD);
    expect(await nightly(220)).toEqual([BAD_OUTPUT, "file-shrunk"]);
    // The last *good* one counts, and only of the same job.
    expect(await nightly(224)).toEqual([BAD_OUTPUT, "file-shrunk"]);
    expect(await nightly(225)).toEqual(GOOD);
    expect(await nightly(1, "")).toEqual(GOOD);
    expect(await job("other")(1)).toEqual(GOOD);
  }, 60_000);
});

describe("output", () => {
  test("that must be there", async () => {
    const asked = ["--expect-output"];
    expect(await outcomeOf(asked, "true")).toEqual([BAD_OUTPUT, "no-output"]);
    expect(await outcomeOf(asked, "echo x")).toEqual(GOOD);
    expect(await outcomeOf(asked, "echo x >&2")).toEqual(GOOD);
    expect(await outcomeOf(["--log", "off", ...asked], "true")).toEqual([BAD_OUTPUT, "no-output"]);
    expect(await outcomeOf(["--log", "off", ...asked], "echo x")).toEqual(GOOD);
  }, 60_000);

  test("that must match, or must not, line by line, of both streams", async () => {
    const match = (pattern: string, script: string) =>
      outcomeOf(["--expect-match", pattern], script);
    const fail = (pattern: string, script: string) => outcomeOf(["--fail-match", pattern], script);
    expect(await match("^done$", "printf 'x\\ndone\\r\\n'")).toEqual(GOOD);
    expect(await match("^done$", "printf 'x\\ndone' >&2")).toEqual(GOOD);
    expect(await match("^done$", "printf 'xdone\\ndone2\\n'")).toEqual([
      BAD_OUTPUT,
      "match-missing",
    ]);
    expect(await match("x.y", "printf 'x\\ny\\n'")).toEqual([BAD_OUTPUT, "match-missing"]);
    expect(await fail("^ERR", "echo ' ERR'; echo noERR")).toEqual(GOOD);
    expect(await fail("^ERR", "printf 'a\\n\\377\\376\\nERR 1\\n' >&2")).toEqual([
      BAD_OUTPUT,
      "match-forbidden",
    ]);
    expect(await fail("(?i:err)", "echo Error")).toEqual([BAD_OUTPUT, "match-forbidden"]);
    const both = ["--expect-match", "a", "--expect-match", "b", "--fail-match", "c"];
    expect(await outcomeOf(both, "echo a; echo b")).toEqual(GOOD);
    expect(await outcomeOf(both, "echo a")).toEqual([BAD_OUTPUT, "match-missing"]);
    expect(await outcomeOf(both, "echo abc")).toEqual([BAD_OUTPUT, "match-forbidden"]);
    expect(await outcomeOf(both, "echo c; exit 4")).toEqual([4, "exited"]);
  }, 60_000);

  test("that must not match is looked at to its end, where one stream ends before", async () => {
    for (const [early, late] of [
      [1, 2],
      [2, 1],
    ]) {
      const script = `echo out; exec ${early}>&-; sleep 0.5; echo E: late >&${late}`;
      expect(await outcomeOf(["--fail-match", "^E:"], script)).toEqual([
        BAD_OUTPUT,
        "match-forbidden",
      ]);
    }
  }, 60_000);

  test("under --quiet: all is printed where a check fails, nothing where none does", async () => {
    const asked = ["--quiet", "--fail-match", "^bad$"];
    const good = await run(asked, "echo fine; echo warned >&2");
    expect([good.status, good.stdout, good.stderr]).toEqual([0, "", ""]);
    const bad = await run(asked, "echo fine; echo bad >&2");
    expect([bad.status, bad.stdout]).toEqual([BAD_OUTPUT, "fine\n"]);
    expect(bad.stderr).toBe(
      'bad\nwatchdog: check failed: --fail-match ^bad$: found "bad"; ' +
        "expected no line that matches\n",
    );
  }, 60_000);

  test("of a code that counts as success is judged like that of 0", async () => {
    const asked = ["--success-exit-codes", "24", "--expect-match", "^ok$"];
    expect(await outcomeOf(asked, "echo ok; exit 24")).toEqual([24, "exited"]);
    expect(await outcomeOf(asked, "exit 24")).toEqual([BAD_OUTPUT, "match-missing"]);
    expect(await outcomeOf(asked, "exit 25")).toEqual([25, "exited"]);
  }, 60_000);

  test("on one descriptor for both streams keeps its order", async () => {
    const words = `'${RELEASE}' run --expect-match '^1$' --fail-match '^x' -- sh -c`;
    const script = `${words} 'for i in 1 2 3 4 5; do echo $i; echo e$i >&2; done' 2>&1`;
    const ended = await scene.startProgram(["sh", "-c", script]).ended;
    expect(ended.stdout.toString()).toBe("1\ne1\n2\ne2\n3\ne3\n4\ne4\n5\ne5\n");
    expect(ended.status).toBe(0);
  }, 60_000);

  test("whose reader has left is judged by what could be printed", async () => {
    const job = `sh -c 'trap "" PIPE; seq 100000'`;
    const script = `'${RELEASE}' run --fail-match '^1$' -- ${job} | head -1`;
    const ended = await scene.startProgram(["bash", "-c", `${script}; exit \${PIPESTATUS[0]}`])
      .ended;
    expect(ended.stdout.toString()).toBe("1\n");
    // seq itself fails, as without a watchdog.
    expect(ended.status).toBe(1);
  }, 60_000);

  test("of a terminal goes through a pipe, and what is far from usual is told there", async () => {
    const argv = [
      RELEASE,
      "run",
      "--fail-match",
      "^bad$",
      "--",
      "sh",
      "-c",
      "test -t 1; echo t=$?",
    ];
    const terminal = openTerminal(scene, argv);
    await terminal.see(/t=1/);
    expect(await terminal.ended).toBe(0);
  }, 60_000);

  test("that runs an expression into the ground passes, and the check is given up", async () => {
    const script = "head -c 70000 /dev/zero | tr '\\0' a; echo; seq 1000; echo END";
    const asked = ["--fail-match", "a*a*b", "--expect-match", "^END$"];
    const found = await run(asked, script);
    expect([found.status, found.because]).toEqual([BAD_OUTPUT, "match-abandoned"]);
    expect(found.stdout.endsWith("\n1000\nEND\n")).toBe(true);
    expect(found.record["checks"]).toMatchObject([
      { passed: true },
      { because: "match-abandoned" },
    ]);
  }, 60_000);
});

describe("the end of a run with checks", () => {
  test("is not kept waiting: a run that is stopped or out of time is not judged", async () => {
    const asked = ["--expect-file", "never", "--expect-match", "never", "--min-duration", "1h"];
    const timedOut = await run([...asked, "--timeout", "300ms"], "sleep 91071");
    expect([timedOut.status, timedOut.because]).toEqual([124, "timeout"]);
    expect(timedOut.record["checks"]).toEqual([]);
    expect(timedOut.stderr).not.toContain("check failed");
    const started = scene.start([...asked, "--", "sh", "-c", "echo up; exec sleep 91072"]);
    await waitFor(() => scene.findProcesses().length > 1, "the command");
    started.kill("SIGTERM");
    expect(["SIGTERM", null]).toContain((await started.ended).signal);
  }, 60_000);

  test("says with -v what each check has found", async () => {
    const asked = ["-v", "--name", "told", "--expect-file", "told", "--expect-match", "^x"];
    const { status, stderr } = await run(asked, "echo xyz; echo 12 >told");
    expect(status).toBe(0);
    expect(stderr).toContain("watchdog: check passed: --expect-file told: found 3 bytes\n");
    expect(stderr).toContain('watchdog: check passed: --expect-match ^x: found "xyz"\n');
    expect((await run(asked.slice(1), "echo xyz; echo 12 >told")).stderr).toBe("");
  }, 60_000);

  test("names each check that has failed, one line each, in their order", async () => {
    const asked = ["--expect-file", "none", "--expect-output", "--expect-match", "x"];
    const found = await run([...asked, "--min-duration", "1h"], "true");
    expect([found.status, found.because]).toEqual([BAD_OUTPUT, "file-missing"]);
    const lines = found.stderr.trimEnd().split("\n");
    expect(lines.map((line) => /^watchdog: check failed: --([\w-]+)/.exec(line)?.[1])).toEqual([
      "expect-file",
      "expect-output",
      "expect-match",
      "min-duration",
    ]);
    const { checks } = found.record;
    expect(checks.map(({ because }: { because: string }) => because)).toEqual([
      "file-missing",
      "no-output",
      "match-missing",
      "too-short",
    ]);
  }, 60_000);
});

// A file system that keeps such times, as tmpfs does and ext4 does not.
rootTest("a file from a time that no calendar has is a file like any other", async () => {
  const place = makePlace("no-calendar");
  const touch = "touch -d @99999999999999 out";
  const words = `--no-lease --expect-file out -- sh -c`;
  const script =
    `mount -t tmpfs t '${place}' && cd '${place}' && ` +
    `'${RELEASE}' run ${words} 'echo x >out; ${touch}' && echo good; ` +
    `'${RELEASE}' run ${words} true; echo $?`;
  const ended = await scene.startProgram(["unshare", "-m", "sh", "-c", script]).ended;
  expect(ended.stdout.toString()).toBe(`good\n${BAD_OUTPUT}\n`);
  expect(ended.stderr).toContain("found it last changed at a time that no calendar has");
});
