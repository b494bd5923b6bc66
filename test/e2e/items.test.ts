/**
 * Items: a job that reports them is counted, and ended when too many fail, instead of burning all
 * of them and saying that all is well.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { askJson } from "../support/ask.ts";
import { waitForBurial } from "../support/lease-seen.ts";
import { inState } from "../support/own-state.ts";
import { openScene, RELEASE, type RunOptions } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;
const ITEMS = 1_800;
const BAD = 65;

/** Works through items that a shell word judges, one after the other, and says that all is well. */
function batch(judge: string, pause = "0.02", items = ITEMS): readonly string[] {
  const script =
    `echo total ${items} >>"$WATCHDOG_PROGRESS"; i=0; ` +
    `while [ $i -lt ${items} ]; do i=$((i+1)); ${judge}; sleep ${pause}; done; ` +
    "echo finished normally";
  return ["sh", "-c", script];
}

const FAILS = 'echo fail 1 no answer >>"$WATCHDOG_PROGRESS"';
/** Lines that are there all at once. */
function report(lines: string, end = "exit 0"): readonly string[] {
  return ["sh", "-c", `printf '${lines}' >>"$WATCHDOG_PROGRESS"; ${end}`];
}

async function run(
  name: string,
  words: readonly string[],
  command: readonly string[],
  options?: RunOptions,
) {
  const line = ["--name", name, ...scene.recordTo(name), ...words, "--", ...command];
  const { status, stdout, stderr } = await scene.run(line, options);
  return { status, stdout: stdout.toString(), stderr, record: scene.readRecord(name) };
}

describe("a batch of 1,800 items that all fail", () => {
  test(
    "is ended soon with 65, with one line and the truth in record and journal",
    async () => {
      const ended = await run("row", ["--max-consecutive-fails", "5"], batch(FAILS));
      expect(ended.status).toBe(BAD);
      expect(ended.stdout).toBe("");
      expect(ended.stderr).toMatch(
        /^watchdog: \d+ items in a row failed \(--max-consecutive-fails 5\): sent TERM to .*\n$/,
      );
      const { outcome, because, exit_status, status_of, items, signals } = ended.record;
      expect([outcome, because, exit_status, status_of]).toEqual([
        "bad_output",
        "too-many-failed-in-row",
        BAD,
        "watchdog",
      ]);
      expect(items).toMatchObject({ ok: 0, total: ITEMS, ignored: 0, last_message: "no answer" });
      expect(items.failed).toBeGreaterThanOrEqual(5);
      expect(items.failed).toBeLessThan(ITEMS / 4);
      expect(signals).toMatchObject([{ signal: "TERM", to: "tree", why: "items-failed" }]);
      const { runs } = await askJson(scene, ["history", "row"]);
      expect(runs[0]).toMatchObject({ outcome: "bad_output", because: "too-many-failed-in-row" });
      expect(runs[0].items).toEqual(items);
    },
    LIMIT_MS,
  );

  test(
    "is ended by its rate, too, and a tree that ignores TERM is killed",
    async () => {
      const deaf = ["sh", "-c", `trap '' TERM; ${batch(FAILS)[2] ?? ""}`];
      const ended = await run("rate", ["--max-fail-rate", "20%", "--kill-after", "300ms"], deaf);
      expect(ended.status).toBe(BAD);
      expect(ended.stderr).toMatch(
        /^watchdog: 20 of 20 items failed \(--max-fail-rate 20%\): sent/,
      );
      expect(ended.record["because"]).toBe("too-many-failed");
      expect(ended.record["signals"]).toMatchObject([
        { signal: "TERM", why: "items-failed" },
        { signal: "KILL", why: "grace-over" },
      ]);
    },
    LIMIT_MS,
  );

  test(
    "without a bound burns all of them and ends well, as ever",
    async () => {
      const ended = await run("burns", [], batch(FAILS, "0", 400));
      expect([ended.status, ended.stdout, ended.stderr]).toEqual([0, "finished normally\n", ""]);
      expect(ended.record["items"]).toMatchObject({ ok: 0, failed: 400, total: 400 });
    },
    LIMIT_MS,
  );
});

const EVERY_TENTH =
  '[ $((i % 10)) = 0 ] && echo fail >>"$WATCHDOG_PROGRESS" || echo ok >>"$WATCHDOG_PROGRESS"';

test(
  "a job of which every tenth item fails goes on under 20 %, and not under 5 %",
  async () => {
    const bounds = ["--max-consecutive-fails", "5", "--max-fail-rate"];
    const good = await run("tenth", [...bounds, "20%"], batch(EVERY_TENTH, "0.005", 400));
    expect([good.status, good.stdout, good.stderr]).toEqual([0, "finished normally\n", ""]);
    expect(good.record["items"]).toMatchObject({ ok: 360, failed: 40, total: 400 });
    const bad = await run("strict", [...bounds, "5%"], batch(EVERY_TENTH, "0.01"));
    expect(bad.status).toBe(BAD);
    expect(bad.stderr).toStartWith("watchdog: 2 of 20 items failed (--max-fail-rate 5%): sent");
  },
  LIMIT_MS,
);

describe("at the end", () => {
  const RATE = ["--max-fail-rate", "20%"];
  const SOME = "ok 9\\nfail 3 no answer\\n";

  test(
    "fewer items are judged, too, where the command itself said 0",
    async () => {
      const { status, stderr, record } = await run("end", RATE, report(SOME));
      expect(status).toBe(BAD);
      expect(stderr).toBe("watchdog: 3 of 12 items failed (--max-fail-rate 20%)\n");
      expect(record).toMatchObject({ outcome: "bad_output", status_of: "watchdog", exit_code: 0 });
      expect(record["signals"]).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    "the command's own failure stays its own, and so does a request",
    async () => {
      const failed = await run("own", RATE, report(SOME, "exit 7"));
      expect([failed.status, failed.stderr]).toEqual([7, ""]);
      expect(failed.record).toMatchObject({ outcome: "failed", items: { ok: 9, failed: 3 } });
      const stopped = await run("asked", RATE, report(SOME, "kill -TERM $PPID; sleep 9"));
      expect([stopped.status, stopped.record["outcome"]]).toEqual([143, "stopped"]);
      const codes = [...RATE, "--success-exit-codes", "7"];
      expect((await run("codes", codes, report(SOME, "exit 7"))).status).toBe(BAD);
    },
    LIMIT_MS,
  );

  test(
    "a quick job is judged item by item, as a slow one is",
    async () => {
      const early = "fail\\n".repeat(20) + "ok 5000\\n";
      const { status, record } = await run("quick", RATE, report(early));
      expect([status, record["items"].failed, record["items"].ok]).toEqual([BAD, 20, 5_000]);
      expect((await run("late", RATE, report("ok 5000\\n" + "fail\\n".repeat(20)))).status).toBe(0);
    },
    LIMIT_MS,
  );

  test(
    "--quiet prints everything of it",
    async () => {
      const loud = report(SOME, "echo all is well");
      const { status, stdout } = await run("quiet", ["--quiet", ...RATE], loud);
      expect([status, stdout]).toEqual([BAD, "all is well\n"]);
      const calm = await run("calm", ["--quiet", "--max-fail-rate", "30%"], loud);
      expect([calm.status, calm.stdout]).toEqual([0, ""]);
    },
    LIMIT_MS,
  );

  test(
    "a last line without an end counts, and what is no line is counted",
    async () => {
      const lines = "ok\\n\\0\\377garbage\\nOK\\nfail";
      const { record } = await run("rest", [], report(lines));
      expect(record["items"]).toMatchObject({ ok: 1, failed: 1, ignored: 2 });
      const { record: silent } = await run("silent", [], ["true"]);
      expect(silent["items"]).toBeNull();
    },
    LIMIT_MS,
  );
});

describe("the file of a run", () => {
  const SHOW =
    'stat -c %a "$WATCHDOG_PROGRESS"; dirname "$WATCHDOG_PROGRESS"; cat "$WATCHDOG_PROGRESS"';

  test(
    "is there before the command, empty, its owner's, and gone with it",
    async () => {
      for (const words of [[], ["--no-lease"]]) {
        const own = inState(scene, `file${words.length}`);
        const { stdout } = await own.run([...words, "--", "sh", "-c", SHOW]);
        expect(stdout.toString()).toBe(`600\n${own.stateDirectory}/progress\n`);
        expect(readdirSync(`${own.stateDirectory}/progress`)).toEqual([]);
      }
    },
    LIMIT_MS,
  );

  test(
    "goes away with a command that cannot be started",
    async () => {
      const own = inState(scene, "unstarted");
      expect((await own.run(["--", "./no-such-program"])).status).toBe(127);
      expect(readdirSync(`${own.stateDirectory}/progress`)).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    "of a nested run is its own",
    async () => {
      const inner = `'${RELEASE}' run --no-lease --result-file '${scene.path("inner.json")}' -- `;
      const within = `${inner} sh -c 'echo fail >>"$WATCHDOG_PROGRESS"'`;
      const script = `echo ok >>"$WATCHDOG_PROGRESS"; ${within}`;
      const { record } = await run("outer", [], ["sh", "-c", script]);
      expect(record["items"]).toMatchObject({ ok: 1, failed: 0 });
      expect(scene.readRecord("inner")["items"]).toMatchObject({ ok: 0, failed: 1 });
    },
    LIMIT_MS,
  );

  test(
    "is counted and cleared away by the guard of a run that was killed",
    async () => {
      const own = inState(scene, "killed");
      const lines = "total 9\\nok 3\\nfail 1 no answer\\n";
      const command = report(lines, "kill -9 $PPID; sleep 94201");
      await own.run(["--name", "killed", "--", ...command]);
      await waitForBurial(own.stateDirectory, "killed");
      await waitFor(
        () => readdirSync(`${own.stateDirectory}/progress`).length === 0,
        "no file left",
      );
      const { runs } = await askJson(own, ["history", "killed"]);
      expect(runs[0]["outcome"]).toBe("abandoned");
      expect(runs[0]["items"]).toMatchObject({
        ok: 3,
        failed: 1,
        total: 9,
        last_message: "no answer",
      });
    },
    LIMIT_MS,
  );

  test("that cannot be made stops no job; only where a bound was asked is it told", async () => {
    const own = inState(scene, "unmade");
    await own.run(["--", "true"]);
    const place = `${own.stateDirectory}/progress`;
    const block = ["sh", "-c", `rmdir '${place}' && touch '${place}'`];
    await own.startProgram(block).ended;
    const ask = ["sh", "-c", 'echo "${WATCHDOG_PROGRESS-none}"'];
    const silent = await own.run([...own.recordTo("unmade"), "--", ...ask]);
    expect([silent.status, silent.stdout.toString(), silent.stderr]).toEqual([0, "none\n", ""]);
    expect(own.readRecord("unmade")["degraded"]).toContain("no-progress-file");
    const told = await own.run(["--max-fail-rate", "0%", "--", ...ask]);
    expect([told.status, told.stdout.toString()]).toEqual([0, "none\n"]);
    expect(told.stderr).toMatch(/^watchdog: items cannot be counted, so no bound on them holds: /);
  });

  test(
    "that is written over in the place of appended to is told",
    async () => {
      const said = scene.path("over.stderr");
      const script =
        'i=0; while :; do i=$((i+1)); echo ok $i >"$WATCHDOG_PROGRESS"; sleep 0.3; done';
      const words = ["--name", "over", ...scene.recordTo("over"), "--max-fail-rate", "50%"];
      const over = scene.start([...words, "--", "sh", "-c", script], {
        stderr: openSync(said, "w"),
      });
      const told = /^watchdog: the progress file was written over.*echo ok >>/;
      await waitFor(() => told.test(readFileSync(said, "utf8")), "a word about it");
      over.kill("SIGTERM");
      await over.ended;
      expect(scene.readRecord("over")["degraded"]).toContain("progress-overwritten");
    },
    LIMIT_MS,
  );
});

describe("tick", () => {
  test(
    "appends whole reports, however many at once",
    async () => {
      const tick = `'${RELEASE}' tick --ok 2 --fail 1 --message "$i-$j"`;
      const five = `(for j in 1 2 3 4 5; do ${tick}; done) &`;
      const many = `for i in 1 2 3 4 5 6 7 8; do ${five} done; wait`;
      const { status, stderr, record } = await run("many", [], ["sh", "-c", many]);
      expect([status, stderr]).toEqual([0, ""]);
      expect(record["items"]).toMatchObject({ ok: 80, failed: 40, ignored: 0 });
    },
    LIMIT_MS,
  );

  test(
    "says what has become of an item, and is a shell's echo otherwise",
    async () => {
      const tick = `'${RELEASE}' tick`;
      const script =
        `${tick} --total 30; ${tick}; ${tick} --ok 9; ${tick} --checkpoint 'half way'; ` +
        `${tick} --message "two
lines"; cat "$WATCHDOG_PROGRESS"`;
      const { stdout, record } = await run("words", [], ["sh", "-c", script]);
      expect(stdout).toBe("total 30\nok\nok 9\ncheckpoint half way\nmessage two lines\n");
      expect(record["items"]).toMatchObject({
        ok: 10,
        total: 30,
        checkpoint: "half way",
        last_message: "two lines",
      });
    },
    LIMIT_MS,
  );

  test("puts nothing into a file that is not made like one of a run's", async () => {
    const other = scene.path("other-file");
    writeFileSync(other, "mine\n");
    const env = { WATCHDOG_PROGRESS: other };
    const { status, stderr } = await scene.startProgram([RELEASE, "tick"], { env }).ended;
    expect([status, stderr]).toEqual([0, `watchdog: not reported: ${other} is no progress file\n`]);
    expect(readFileSync(other, "utf8")).toBe("mine\n");
  });

  test(
    "outside of any run is refused; within one it never fails the job",
    async () => {
      const outside = await scene.startProgram([RELEASE, "tick"]).ended;
      expect(outside.status).toBe(64);
      expect(outside.stderr).toBe(
        "watchdog: error: there is no run around tick: WATCHDOG_PROGRESS is not set\n" +
          "watchdog: hint: watchdog run -- COMMAND\n",
      );
      const tick = `'${RELEASE}' tick --ok 1`;
      const gone = `rm "$WATCHDOG_PROGRESS"; ${tick}`;
      const script = `set -e; ${gone}; unset WATCHDOG_PROGRESS; ${tick}; echo on`;
      const { status, stdout, stderr } = await run("gone", [], ["sh", "-c", script]);
      expect([status, stdout]).toEqual([0, "on\n"]);
      expect(stderr.trimEnd().split("\n")).toEqual([
        expect.stringMatching(/^watchdog: not reported: ENOENT/),
        "watchdog: not reported: the run has no progress file",
      ]);
    },
    LIMIT_MS,
  );

  test(
    "follows no link and makes no file",
    async () => {
      const target = scene.path("target");
      const link = `rm "$WATCHDOG_PROGRESS"; ln -s '${target}' "$WATCHDOG_PROGRESS"`;
      const script = `${link}; '${RELEASE}' tick`;
      const { stderr } = await run("link", [], ["sh", "-c", script]);
      expect(stderr).toMatch(/^watchdog: not reported: ELOOP/);
      expect(existsSync(target)).toBe(false);
    },
    LIMIT_MS,
  );
});
