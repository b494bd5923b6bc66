/**
 * `watchdog report` and `watchdog why` about real runs: how each job ended, what was skipped, and
 * what needs a person.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { ask, askJson, waitForHolder } from "../support/ask.ts";
import { killAlone } from "../support/killing.ts";
import { letHoldersGo, startHolder } from "../support/lease-holder.ts";
import { inState } from "../support/own-state.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

// Before the scene looks for what is left.
afterAll(letHoldersGo);
const scene = openScene(import.meta.file);
const LIMIT_MS = 60_000;

/** Whatever was answered: each test judges the fields that it names. */
type Parsed = ReturnType<typeof JSON.parse>;

function jobOf(report: Parsed, name: string): Parsed {
  return report.jobs.find(({ job }: { job: string }) => job === name);
}

async function run(name: string, script: string, args: readonly string[] = []): Promise<void> {
  await scene.run(["--name", name, "--log", "on", ...args, "--", "sh", "-c", script]);
}

/** Good ones, bad ones, one that was skipped, one that was killed, and one that goes on. */
async function leaveNight(): Promise<void> {
  const flaky = `"${RELEASE}" retry --backoff 1ms..1ms -- sh -c '[ -e "${scene.path("tried")}" ] ||
    { : >"${scene.path("tried")}"; exit 1; }'`;
  await run("backup", flaky);
  for (let more = 0; more < 3; more += 1) await run("backup", "echo dumped; echo packed");
  await run("import", "exit 0");
  await run("import", "echo cannot read the file >&2; exit 3");
  await run("import", "echo cannot read the file >&2; exit 3");
  await run("slow", "sleep 60", ["--timeout", "200ms"]);
  await startHolder(scene, ["--name", "long"]);
  await waitForHolder(scene, "long");
  expect((await scene.run(["--name", "long", "--", "true"])).status).toBe(75);
  expect((await scene.run(["--name", "long", "--", "true"])).status).toBe(75);
  const killed = scene.start(["--name", "killed", "--", "sleep", "337"], {
    stdout: "ignore",
    stderr: "ignore",
  });
  await waitForHolder(scene, "killed");
  await killAlone(killed);
  await waitFor(
    async () => (await askJson(scene, ["history", "killed"])).runs[0]?.outcome === "abandoned",
    "the guard's word about the killed run",
  );
}

/** As of the morning: tests that come later leave runs of their own. */
let night: Parsed = undefined;
let text = "";

beforeAll(async () => {
  await leaveNight();
  night = await askJson(scene, ["report"]);
  text = (await ask(scene, ["report"])).stdout.toString();
}, LIMIT_MS);

describe("report", () => {
  test("tells of each job how it ended, against what is usual, and what was skipped", () => {
    const report = night;
    expect(jobOf(report, "backup")).toMatchObject({
      runs: 4,
      good: 4,
      bad: 0,
      failures_in_row: 0,
      retries: 1,
      needs: [],
      last: { fate: "good", outcome: "ok", exit_status: 0 },
    });
    expect(jobOf(report, "backup").usual_ms).toBeGreaterThan(0);
    expect(jobOf(report, "import")).toMatchObject({ runs: 3, good: 1, bad: 2, failures_in_row: 2 });
    expect(jobOf(report, "slow").last).toMatchObject({ outcome: "timeout", exit_status: 124 });
    const long = jobOf(report, "long");
    expect(long).toMatchObject({ runs: 3, skipped: 2, running: 1, last: { fate: "running" } });
    expect(long.skipped_because).toStartWith(`job:long was held by run ${long.last.run_id} (pid `);
    expect(long.needs).toEqual([]);
    expect(report.totals).toEqual({
      runs: 12,
      good: 5,
      bad: 4,
      stopped: 0,
      skipped: 2,
      partial: 0,
      running: 1,
    });
  });

  test("names what needs a person before anything else", () => {
    const { needs, jobs } = night;
    const texts = needs.map(({ job, text }: Parsed) => `${job}: ${text}`);
    expect(texts).toEqual([
      "killed: abandoned (watchdog-killed)",
      "slow: timeout",
      "import: failed, 2 times in a row",
    ]);
    const names = jobs.map(({ job }: Parsed) => job);
    expect(names).toEqual(["killed", "slow", "import", "long", "backup"]);
    const lines = text.split("\n");
    expect(lines[0]).toContain("12 runs: 5 good, 4 bad, 2 skipped, 1 running");
    expect(lines[2]).toBe("3 things need a person");
    expect(lines[3]).toMatch(/^ {2}killed +abandoned/);
    expect(lines[6]).toBe("  hint: watchdog why killed");
  });

  test("tells nothing of what was before its span, but what still runs", async () => {
    await waitFor(
      async () => (await askJson(scene, ["report", "--since", "10ms"])).totals.runs === 1,
      "a span without an end in it",
    );
    const { jobs, totals } = await askJson(scene, ["report", "--since", "10ms"]);
    expect(jobs.map(({ job }: Parsed) => job)).toEqual(["long"]);
    expect(totals).toMatchObject({ runs: 1, running: 1 });
  });

  test("of a directory in which nothing has run is an answer", async () => {
    const empty = scene.path("empty");
    mkdirSync(empty, { mode: 0o700 });
    const answered = await ask(scene, ["report", "--state-dir", empty]);
    expect([answered.status, answered.stderr]).toEqual([0, ""]);
    expect(answered.stdout.toString()).toMatch(/: nothing has run\n\nnothing needs a person\n$/);
  });

  test("that is no more to be written than a directory is refused", async () => {
    const answered = await ask(scene, ["report", "--html", scene.path("none/page.html")]);
    expect([answered.status, answered.stdout.toString()]).toEqual([125, ""]);
    expect(answered.stderr).toMatch(/^watchdog: error: .*page\.html cannot be written: ENOENT/);
  });
});

describe("report --html", () => {
  test("writes one page of its own, for its owner, and says nothing", async () => {
    const path = scene.path("page.html");
    const answered = await ask(scene, ["report", "--html", path]);
    expect([answered.status, answered.stdout.toString(), answered.stderr]).toEqual([0, "", ""]);
    const page = readFileSync(path, "utf8");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(page).toStartWith("<!doctype html>");
    expect(page).not.toMatch(/<script|<link|<img|https?:|url\(/);
    expect(page).toContain("3 things need a person");
  });

  test("shows what a job is called as text, whatever that is", async () => {
    const name = `<img src=x onerror="alert(1)">&'`;
    const own = scene.path("own");
    mkdirSync(own, { mode: 0o700 });
    const words = ["--state-dir", own, "--name", name, "--", "false"];
    expect((await scene.run(words)).status).toBe(1);
    const path = scene.path("named.html");
    expect((await ask(scene, ["report", "--state-dir", own, "--html", path])).status).toBe(0);
    const page = readFileSync(path, "utf8");
    expect(page).not.toContain("<img");
    expect(page).toContain("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;&amp;&#39;");
  });
});

describe("why", () => {
  const readOf = async (name: string): Promise<string> => {
    const answered = await ask(scene, ["why", name]);
    expect([answered.status, answered.stderr]).toEqual([0, ""]);
    return answered.stdout.toString();
  };

  test("tells how a run ended, and its last words", async () => {
    const answer = await readOf("import");
    expect(answer).toStartWith(
      "import: failed, status 3: the command ended by itself with status 3",
    );
    expect(answer).toMatch(/the last 1 line of its output \(all of it: watchdog logs [0-9a-f-]+\)/);
    expect(answer).toContain("  cannot read the file\n");
    expect(await readOf("slow")).toMatch(
      /^slow: timeout, status 124: it ran into --timeout[^]*TERM to \d of the tree/,
    );
    expect(await readOf("backup")).toMatch(/^backup: ok, status 0: all went well[^]*usually/);
  });

  test("tells by whom a killed run is known to be dead", async () => {
    const answer = await readOf("killed");
    expect(answer).toStartWith("killed: abandoned: its watchdog was killed; its guard says so");
    expect(answer).toMatch(/leftovers +\d+ sleep/);
  });

  test("tells why a start was refused, how often, and how the run before goes", async () => {
    const answer = await readOf("long");
    expect(answer).toMatch(
      /^long: locked, status 75: its lease was held by another run, .*; 2 in a row\n/,
    );
    expect(answer).toMatch(/held by +job:long was held by run [0-9a-f-]+ \(pid \d+/);
    expect(answer).toMatch(/\nlong: running: it runs, as pid \d+\n/);
    const { run: newest, before, skips_in_row } = await askJson(scene, ["why", "long"]);
    expect([newest.fate, before.fate, skips_in_row]).toEqual(["skipped", "running", 2]);
    expect(newest.held_by.run_id).toBe(before.run_id);
  });

  test("is 1 of a name that nobody knows", async () => {
    const answered = await ask(scene, ["why", "nobody"]);
    expect([answered.status, answered.stdout.toString()]).toEqual([
      1,
      'no run of "nobody" is known\n',
    ]);
    expect(answered.stderr).toBe("watchdog: hint: watchdog status\n");
  });

  test("names the job that was meant: without --name it is longer than the command", async () => {
    const own = inState(scene, "hints");
    expect((await ask(own, ["why", "nothing"])).stderr).toBe("");
    await own.run(["--", "sleep", "0"]);
    const [{ job }] = (await askJson(own, ["history"])).runs;
    expect(job).toMatch(/^sleep-[0-9a-f]+$/);
    for (const command of ["why", "logs"]) {
      const answered = await ask(own, [command, "sleep"]);
      expect(answered.stderr).toEndWith(`watchdog: hint: watchdog ${command} ${job}\n`);
    }
  });

  test("shows the end of a long output alone, and in lines that are whole", async () => {
    await run("talks", "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i + 1)); done");
    const { tail } = await askJson(scene, ["why", "talks"]);
    expect(tail).toEqual(Array.from({ length: 20 }, (_, index) => `line ${2980 + index}`));
    await run("escapes", String.raw`printf 'a\033[31mb\n'`);
    expect(await readOf("escapes")).toContain(String.raw`  a\x1b[31mb`);
  });

  test("hides what has the shape of a secret, which the log itself does not", async () => {
    const token = `ghp_${"a1B2".repeat(9)}`;
    await run("leaky", `echo calling with ${token.slice(0, 4)}"${token.slice(4)}"`);
    expect(await readOf("leaky")).toContain("  calling with ***\n");
    expect((await ask(scene, ["logs", "leaky"])).stdout.toString()).toContain(token);
  });

  test("says what it knows where the log is gone", async () => {
    await run("pruned", "echo gone");
    const { run: last } = await askJson(scene, ["why", "pruned"]);
    expect(existsSync(last.log.path)).toBe(true);
    await Bun.file(last.log.path).delete();
    const answer = await readOf("pruned");
    expect(answer).toStartWith("pruned: ok");
    expect(answer).not.toContain("of its output");
  });
});
