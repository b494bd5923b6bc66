/** `watchdog patrol`: what it finds, what it touches and what not, and how often it tells. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { ask, waitForHolder, waitForRow } from "../support/ask.ts";
import { endAll } from "../support/guarded-scene.ts";
import { GONE_LIMIT_MS, killAlone, waitUntilNoGuard } from "../support/killing.ts";
import {
  agePatrol,
  countPatrols,
  eventsOf,
  patrol,
  patrolJson,
  startStalled,
} from "../support/patrol-scene.ts";
import { findByCommand, waitForCommand } from "../support/processes.ts";
import * as scenery from "../support/repair-scene.ts";
import { readAudit, readRuns } from "../support/repair-scene.ts";
import { inState } from "../support/own-state.ts";
import { openScene, RELEASE, type Scene, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const base = openScene(import.meta.file);
/** Each test has a state directory of its own: a patrol looks at all of it. */
let scene: Scene = base;
const LINE = "sleep 98601";
const started: Started[] = [];
let count = 0;

beforeEach(() => {
  count += 1;
  scene = inState(base, `state-${count}`);
});
afterEach(async () => {
  for (const run of started.splice(0)) {
    run.kill("SIGCONT");
    run.kill("SIGTERM");
    await run.ended;
  }
  await endAll(scene, findByCommand(scene, LINE));
  await waitUntilNoGuard(scene);
}, GONE_LIMIT_MS * 2);

function newJob(): string {
  return `watched-${count}`;
}

function findingsOf(report: { findings: { subject: string; state: string }[] }, job: string) {
  return report.findings.filter(({ subject }) => subject === `job:${job}`);
}

test("answers before there is a state directory, and makes none", async () => {
  const directory = scene.path("nothing-yet");
  const { status, stdout, stderr } = await patrol(scene, ["--state-dir", directory]);
  expect([status, stdout.toString(), stderr]).toEqual([0, "", ""]);
  expect(existsSync(directory)).toBe(false);
});

test("says that all is well, and with --quiet nothing", async () => {
  await scene.run(["--name", newJob(), "--", "true"]);
  const { status, stdout, stderr } = await patrol(scene);
  expect([status, stderr]).toEqual([0, ""]);
  expect(stdout.toString()).toStartWith("all is well\n");
  const quiet = await patrol(scene, ["--quiet"]);
  expect([quiet.status, quiet.stdout.toString(), quiet.stderr]).toEqual([0, "", ""]);
});

test("does not say that all is well where the journal cannot be read", async () => {
  await scene.run(["--name", newJob(), "--every", "1h", "--", "true"]);
  const journal = `${scene.stateDirectory}/journal.db`;
  for (const path of [journal, `${journal}-wal`, `${journal}-shm`]) rmSync(path, { force: true });
  mkdirSync(journal);
  const { stdout, stderr } = await patrol(scene);
  expect(stdout.toString()).toStartWith("nothing wrong was found, as far as one can see\n");
  expect(stderr).toContain("journal.db cannot be used");
  const report = await ask(scene, ["report"]);
  expect(report.status).toBe(125);
  expect(report.stdout.toString()).toContain("what needs a person cannot be told");
  expect(report.stdout.toString()).toContain("what has run cannot be told");
});

describe("a run whose watchdog and guard were killed", () => {
  test("is marked where nobody of it is left, told once, and its lease is free", async () => {
    const job = newJob();
    await scenery.leaveDead(scene, job, LINE);
    const report = await patrolJson(scene);
    expect(report.marked).toEqual([`job:${job}`]);
    expect(findingsOf(report, job)).toEqual([]);
    expect(readRuns(scene, job)).toMatchObject([{ state: "ended", outcome: "abandoned" }]);
    expect(readAudit(scene, `job:${job}`).map(({ phase }) => phase)).toEqual(["intended", "done"]);
    expect((await patrolJson(scene)).marked).toEqual([]);
    expect(readRuns(scene, job)).toHaveLength(1);
  });

  test("is written down where its command lives on, and nobody is touched", async () => {
    const job = newJob();
    await scenery.leaveOrphans(scene, job, LINE);
    const [survivor] = findByCommand(scene, LINE);
    for (const round of [1, 2]) {
      const report = await patrolJson(scene);
      expect(findingsOf(report, job)).toMatchObject([{ state: "orphaned", because: "members" }]);
      expect(report.opened).toHaveLength(round === 1 ? 1 : 0);
      expect(report.marked).toEqual([]);
    }
    expect(findByCommand(scene, LINE)).toEqual([survivor ?? 0]);
    expect(readRuns(scene, job)).toMatchObject([
      { outcome: "abandoned", abandoned_by: "patrol", because: "R6 members" },
    ]);
    expect(readAudit(scene, `job:${job}`)).toEqual([]);
    // The next run still ends what is left, and takes the key.
    expect((await scene.run(["--name", job, "--", "true"])).status).toBe(0);
    expect(findByCommand(scene, LINE)).toEqual([]);
  });

  test("is left to its guard where that one lives", async () => {
    const job = newJob();
    const graceful = ["--name", job, "--guard-grace", "6s"];
    const deaf = ["sh", "-c", `trap '' TERM; ${LINE} & wait; wait`];
    const run = scene.start([...graceful, "--", ...deaf], { stdout: "ignore", stderr: "ignore" });
    await waitForCommand(scene, LINE);
    await waitForHolder(scene, job);
    await killAlone(run);
    const report = await patrolJson(scene);
    expect(report.abandoned).toEqual([]);
    await waitForRow(scene, job, "ended");
    expect(readRuns(scene, job)).toMatchObject([
      { outcome: "abandoned", abandoned_by: "guard", because: "watchdog-killed" },
    ]);
  });

  test("is not marked where the policy gives no right to it, and that is told", async () => {
    const job = newJob();
    await scenery.leaveDead(scene, job, LINE);
    const config = scene.path("policy.toml");
    writeFileSync(config, '[policy]\nrepair = ["uid:54321"]\n', { mode: 0o600 });
    const { status, stderr } = await patrol(scene, ["--config", config]);
    expect(status).toBe(0);
    expect(stderr).toMatch(/repair/);
    expect(readAudit(scene, `job:${job}`)).toEqual([]);
    expect((await patrolJson(scene)).marked).toEqual([`job:${job}`]);
  });
});

function isAbout(job: string): (one: { readonly subject: string }) => boolean {
  return ({ subject }) => subject === `job:${job}`;
}

describe("a run whose heartbeats have stopped", () => {
  test("is stalled, told once, and told again when it beats", async () => {
    const job = newJob();
    const run = await startStalled(scene, job, LINE);
    started.push(run);
    for (const round of [1, 2, 3]) {
      const report = await patrolJson(scene);
      expect(findingsOf(report, job)).toMatchObject([{ state: "stalled", because: "beat-old" }]);
      // Runs of others may be late, too, where the machine is busy.
      expect(report.opened.filter(isAbout(job))).toHaveLength(round === 1 ? 1 : 0);
    }
    const stalled = eventsOf(scene, "stalled").filter((event) => event.job === job);
    expect(stalled).toMatchObject([{ job, because: "beat-old" }]);
    run.kill("SIGCONT");
    await waitFor(async () => {
      const { closed } = await patrolJson(scene);
      return closed.some(isAbout(job));
    }, "a lease that is no longer stalled");
    const recovered = eventsOf(scene, "recovered").filter((event) => event.job === job);
    expect(recovered).toMatchObject([{ lease_key: `job:${job}`, data: { from: "stalled" } }]);
  });

  test("and has ended by then: nothing has recovered", async () => {
    const job = newJob();
    const run = await startStalled(scene, job, LINE);
    started.push(run);
    await patrol(scene);
    run.kill("SIGCONT");
    run.kill("SIGTERM");
    await run.ended;
    const { closed } = await patrolJson(scene);
    expect(closed.filter(isAbout(job))).toHaveLength(1);
    expect(eventsOf(scene, "recovered").filter((event) => event.job === job)).toEqual([]);
  });
});

describe("with --quiet", () => {
  test("only what has changed is printed, a line each", async () => {
    const job = newJob();
    const run = await startStalled(scene, job, LINE);
    started.push(run);
    const first = await patrol(scene, ["--quiet"]);
    expect(first.stdout.toString()).toMatch(
      new RegExp(`^job:${job}: stalled \\(R2 beat-old\\), last beat .* ago\\n$`),
    );
    expect((await patrol(scene, ["--quiet"])).stdout.toString()).toBe("");
  });
});

describe("two patrols", () => {
  test("are one: the second says so and leaves", async () => {
    const loop = await startLoop("1h");
    started.push(loop);
    const { status, stdout, stderr } = await patrol(scene);
    expect([status, stdout.toString()]).toEqual([75, ""]);
    expect(stderr).toStartWith("watchdog: error: another patrol is at work in ");
    expect(stderr).toContain(`(pid ${loop.pid})`);
  });

  test("whose first was killed follow each other at once", async () => {
    const loop = await startLoop("1h");
    loop.kill("SIGKILL");
    await loop.ended;
    expect((await patrol(scene)).status).toBe(0);
  });

  test("of which one goes on for ever wait for the other a while, and then leave", async () => {
    const loop = await startLoop("1h");
    const other = scene.startProgram([RELEASE, "patrol", "--loop", "1h"]);
    await waitFor(() => findByCommand(scene, `${RELEASE} patrol --loop 1h`).length === 2, "two");
    loop.kill("SIGTERM");
    await loop.ended;
    await waitFor(() => countPatrols(scene) === 2, "a patrol of the other one");
    expect((await scene.startProgram([RELEASE, "patrol", "--loop", "1h"]).ended).status).toBe(75);
    other.kill("SIGTERM");
    await other.ended;
  });
});

/** It has the lock, and its first round is over. */
async function startLoop(span: string): Promise<Started> {
  await scene.run(["--name", newJob(), "--", "true"]);
  const loop = scene.startProgram([RELEASE, "patrol", "--loop", span], { stdout: "ignore" });
  await waitFor(() => countPatrols(scene) === 1, "a first round");
  return loop;
}

describe("with --loop", () => {
  test("it answers again and again, one document a line, until it is ended", async () => {
    await scene.run(["--name", newJob(), "--", "true"]);
    const loop = scene.startProgram([RELEASE, "patrol", "--loop", "1s", "--json"]);
    // The last one may be ended before it answers.
    await waitFor(() => countPatrols(scene) >= 4, "four rounds");
    loop.kill("SIGTERM");
    const { signal, stdout, stderr } = await loop.ended;
    expect([signal, stderr]).toEqual(["SIGTERM", ""]);
    const reports = stdout.toString().trimEnd().split("\n");
    expect(reports.length).toBeGreaterThanOrEqual(3);
    for (const line of reports) expect(JSON.parse(line)).toMatchObject({ format: 1, findings: [] });
  });

  test("it tells a change once, and lives on without a reader", async () => {
    const loop = await startLoop("1s");
    started.push(loop);
    const job = newJob();
    const run = await startStalled(scene, `${job}-stalled`, LINE);
    started.push(run);
    await waitFor(() => eventsOf(scene, "stalled").length > 0, "a stalled lease");
    const seen = countPatrols(scene);
    await waitFor(() => countPatrols(scene) >= seen + 2, "two more rounds");
    expect(eventsOf(scene, "stalled")).toHaveLength(1);
  });

  test("one that was killed is told of by the next command", async () => {
    const loop = await startLoop("1m");
    loop.kill("SIGKILL");
    await loop.ended;
    expect((await ask(scene, ["status"])).stderr).toBe("");
    agePatrol(scene, 4 * 60_000);
    const { stderr } = await ask(scene, ["status"]);
    expect(stderr).toContain("watchdog: the patrol has stopped: the last one was 4 min");
  });
});

test("entries that wait in the spool are told where they cannot be read in", async () => {
  const place = scene.stateDirectory;
  await scene.run(["--name", "first", "--", "true"]);
  mkdirSync(`${place}/spool`, { recursive: true, mode: 0o700 });
  writeFileSync(`${place}/spool/0000000001-${crypto.randomUUID()}.json`, "no JSON", {
    mode: 0o600,
  });
  expect((await patrolJson(scene)).findings).toMatchObject([
    { kind: "journal", because: "unreadable" },
  ]);
  expect(readdirSync(`${place}/spool`)).toHaveLength(1);
});

test.each([
  [["--loop", "100ms"], "at least 1s"],
  [["--loop", "0"], "at least 1s"],
  [["--forget", "x", "--loop", "1m"], "stands without --loop"],
  [["--retire", "--every", "1m"], "stands without --every"],
  [["now"], "takes no word beside its options"],
])("%j is refused", async (words, text) => {
  const { status, stderr } = await patrol(scene, words);
  expect(status).toBe(64);
  expect(stderr).toContain(text);
});
