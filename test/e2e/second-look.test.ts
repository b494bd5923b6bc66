/**
 * What keeps a run from a key that it could have: others at work in the checkout, and survivors of
 * a killed run that are not to be ended. Nobody is signalled because of it.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { askJson, waitForHolder } from "../support/ask.ts";
import { endAll } from "../support/guarded-scene.ts";
import { killWithGuard } from "../support/killing.ts";
import { PYTHON } from "../support/outside.ts";
import {
  findByCommand,
  isDead,
  readLines,
  readStatusLine,
  waitForCommand,
} from "../support/processes.ts";
import {
  type Ended,
  FIXTURES,
  openScene,
  readCommandLine,
  RELEASE,
  type Started,
} from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);

const LOCKED = 75;
let checkouts = 0;
let waits = 0;

/** A checkout that no other test works in. */
function makeCheckout(): string {
  checkouts += 1;
  mkdirSync(scene.path(`repo-${checkouts}`, ".git"), { recursive: true });
  mkdirSync(scene.path(`repo-${checkouts}`, "deep"));
  return realpathSync(scene.path(`repo-${checkouts}`));
}

function enter(repo: string, ...more: readonly string[]): Promise<Ended> {
  return scene.run(["--name", `enters ${repo}`, "--worktree", repo, ...more, "--", "echo", "in"]);
}

const IN: [number, string, string] = [0, "in\n", ""];

function shown({ status, stdout, stderr }: Ended): [number, string, string] {
  return [status, stdout.toString(), stderr];
}

/** A run that has been told what it waits for; lines beginning so are those of the wait. */
async function startWaiting(...words: readonly string[]) {
  const errors = scene.path(`waiting-${(waits += 1)}.err`);
  const script = `exec "$@" -- echo in 2>${errors}`;
  const started = scene.startProgram(["sh", "-c", script, "sh", RELEASE, "run", ...words]);
  const told = (): string[] =>
    readLines(errors).filter((line) => line.startsWith("watchdog: waiting: "));
  await waitFor(() => told().length > 0, "a word about the wait");
  return { started, told, errors: () => readLines(errors).join("\n") };
}

/** A run that takes no checkout. Its command is there when this resolves. */
async function startOther(
  name: string,
  script: string,
  command: string,
  cwd: string,
): Promise<{ run: Started; pid: number; runId: string; end: () => Promise<Ended> }> {
  const run = scene.start(["--name", name, "--", "sh", "-c", script], { cwd, stderr: "ignore" });
  const [pid = 0] = await waitForCommand(scene, command);
  const { run_id: runId } = await waitForHolder(scene, name);
  const end = (): Promise<Ended> => {
    run.kill("SIGTERM");
    return run.ended;
  };
  return { run, pid, runId, end };
}

describe("a checkout that another run works in", () => {
  test("by a working directory in it is refused, with who and where, and waited for", async () => {
    const repo = makeCheckout();
    const heard = scene.path("in-use.heard");
    const notes = [PYTHON, "-I", "-S", `${FIXTURES}/notes-signals.py`, heard, "user", "HUP,CONT"];
    const run = scene.start(["--name", "uses", "--", ...notes], { cwd: `${repo}/deep` });
    await waitFor(() => readLines(heard).length === 1, "a user");
    const { run_id: runId, children } = await waitForHolder(scene, "uses");
    const pid = children[0].pid;
    const record = scene.recordTo("in-use");
    const refused = await enter(repo, ...record);
    expect([refused.status, refused.stdout.toString()]).toEqual([LOCKED, ""]);
    const [line, hint, ...more] = refused.stderr.trimEnd().split("\n");
    expect(line).toStartWith(`watchdog: not started: worktree:${repo} is worked in by others: `);
    expect(line).toContain(`${pid} ${notes.join(" ")} (run ${runId}, in ${repo}/deep)`);
    expect([hint, more]).toEqual([`watchdog: hint: ps -fp ${pid}`, []]);
    expect(scene.readRecord("in-use")).toMatchObject({
      outcome: "locked",
      held_by: { key: `worktree:${repo}`, because: "worktree-in-use", run_id: runId, pid },
    });
    const { verdict } = await askJson(scene, ["lease", "show", `worktree:${repo}`]);
    expect(verdict).toBe("free");
    expect(readLines(heard)).toEqual(["user ready"]);

    const waiting = await startWaiting("--name", "waits", "--worktree", repo, "--wait", "60s");
    expect(waiting.told()[0]).toContain(`is worked in by others: ${pid} `);
    run.kill("SIGKILL");
    expect(shown(await waiting.started.ended)).toEqual(IN);
  });

  test.each([
    ["a file that is open for writing", "exec 3>>log; cd /; exec sleep 98301", "98301", true],
    ["a file that is open for reading", "exec 3<log; cd /; exec sleep 98302", "98302", false],
    ["no more, having left it", "cd /; exec sleep 98303", "98303", false],
  ])("by %s", async (_, script, seconds, isInUse) => {
    const repo = makeCheckout();
    writeFileSync(`${repo}/log`, "");
    const other = await startOther(`other-${seconds}`, script, `sleep ${seconds}`, repo);
    const entered = await enter(repo);
    if (isInUse) {
      expect(entered.status).toBe(LOCKED);
      expect(entered.stderr).toContain(
        `${other.pid} sleep ${seconds} (run ${other.runId}, writes ${repo}/log)`,
      );
    } else {
      expect(shown(entered)).toEqual(IN);
    }
    expect(findByCommand(scene, `sleep ${seconds}`)).toEqual([other.pid]);
    await other.end();
    expect(shown(await enter(repo))).toEqual(IN);
  });

  test("costs nothing and tells nothing where no checkout is asked for", async () => {
    const repo = makeCheckout();
    const other = await startOther("busy", "exec sleep 98304", "sleep 98304", repo);
    const ran = await scene.run(["--name", "without", "--", "echo", "in"], { cwd: repo });
    expect(shown(ran)).toEqual(IN);
    await other.end();
  });
});

describe("a run within a run", () => {
  test("is not kept out by the run around it, and is by a run beside it", async () => {
    const repo = makeCheckout();
    const inner = `${RELEASE} run --name inner --worktree ${repo} -- echo in`;
    const beside = `${RELEASE} run --name beside -- sleep 98305`;
    const around = ["--name", "around", "--", "sh", "-c"];
    const alone = await scene.run([...around, `sleep 98306 & ${inner}; kill $!`], { cwd: repo });
    expect(shown(alone)).toEqual(IN);
    const until = `until pgrep -fx "sleep 98305" >/dev/null; do sleep 0.02; done`;
    const script = `${beside} & ${until}; ${inner}; echo $?; kill $!; wait`;
    const both = await scene.run([...around, script], { cwd: repo });
    expect(both.stdout.toString()).toBe(`${LOCKED}\n`);
    expect(both.stderr).toMatch(/is worked in by others: \d+ sleep 98305 \(run /);
  });

  test("is not kept out by a run around it whose variables it has lost", async () => {
    const repo = makeCheckout();
    const inner = `env -u WATCHDOG_RUN_PATH -u WATCHDOG_RUN_ID ${RELEASE} run --name lost`;
    const script = `${inner} --worktree ${repo} -- echo in; true`;
    const ran = await scene.run(["--name", "loses", "--", "sh", "-c", script], { cwd: repo });
    expect(shown(ran)).toEqual(IN);
  });
});

describe("a checkout is not kept", () => {
  test("by what a run has kept with watchdog keep", async () => {
    const repo = makeCheckout();
    const script = `${RELEASE} keep -- sleep 98307`;
    const keeps = ["--name", "keeps", "--", "sh", "-c", script];
    expect((await scene.run(keeps, { cwd: repo })).status).toBe(0);
    const kept = await waitForCommand(scene, "sleep 98307");
    expect(shown(await enter(repo))).toEqual(IN);
    expect(shown(await enter(repo, "--strict-worktree"))[0]).toBe(LOCKED);
    await endAll(scene, kept);
  });

  test("by a process of no run, unless --strict-worktree says so", async () => {
    const repo = makeCheckout();
    const apart = scene.startProgram(["setsid", "-w", "sleep", "98308"], { cwd: repo });
    const [pid = 0] = await waitForCommand(scene, "sleep 98308");
    expect(shown(await enter(repo))).toEqual(IN);
    const strict = await enter(repo, "--strict-worktree");
    expect(strict.status).toBe(LOCKED);
    expect(strict.stderr).toContain(`${pid} sleep 98308 (in ${repo})`);
    expect(findByCommand(scene, "sleep 98308")).toEqual([pid]);
    await endAll(scene, [pid]);
    await apart.ended;
    expect(shown(await enter(repo, "--strict-worktree"))).toEqual(IN);
  });

  test("by who has started the run, nor by its session, however strict", async () => {
    const repo = makeCheckout();
    const run = `${RELEASE} run --name own --worktree ${repo} --strict-worktree -- echo in`;
    const script = `sleep 98309 & ${run}; kill $!`;
    const shell = scene.startProgram(["setsid", "-w", "sh", "-c", script], { cwd: repo });
    const ended = await shell.ended;
    // `setsid -w` itself waits in the session of the test, and in the checkout: it is an ancestor.
    expect(shown(ended)).toEqual(IN);
  });
});

test("a key whose living owner a repair has ended is refused until --repair-cooldown", async () => {
  const run = (...more: readonly string[]): Promise<Ended> =>
    scene.run(["--name", "cooling", ...more, "--", "echo", "in"]);
  expect(shown(await run())).toEqual(IN);
  const path = `${scene.stateDirectory}/leases/job/cooling/lease.json`;
  const record = JSON.parse(readFileSync(path, "utf8"));
  const clock = [PYTHON, "-I", "-S", "-c", "import time; print(time.monotonic() * 1000)"];
  const repair = {
    plan_id: "0a1b2c3d4e",
    action: "ended-owner",
    at: "2030-01-02T03:04:05.000Z",
    boot_id: record.boot_id,
    time_namespace: record.time_namespace,
    monotonic_ms: Number((await scene.startProgram(clock).ended).stdout.toString()),
    by: "ops@nightly",
  };
  const marked = JSON.stringify({ ...record, repair });
  writeFileSync(path, marked);
  const refused = await run();
  expect([refused.status, refused.stdout.toString()]).toEqual([LOCKED, ""]);
  expect(refused.stderr).toMatch(
    /^watchdog: not started: job:cooling is granted to nobody for (5\d\d|600) s more: repair 0a1b/,
  );
  expect(readFileSync(path, "utf8")).toBe(marked);
  expect(shown(await run("--repair-cooldown", "0"))).toEqual(IN);
  const { previous } = await askJson(scene, ["lease", "show", "job:cooling"]);
  expect(previous.evidence).toBe("R4 released, repair 0a1b2c3d4e ended-owner by ops@nightly");
  // For whoever heeds it the cooldown goes on, until it is over.
  expect((await run()).status).toBe(LOCKED);
  expect(shown(await run("--repair-cooldown", "1ms"))).toEqual(IN);
});

/** Neither stopped nor dead. */
function isAtWork(pid: number): boolean {
  return /^[RSD]/.test(readStatusLine(pid, "State") ?? "");
}

describe("--on-survivors", () => {
  /** A run that was killed with its guard. @returns its lease and the member that lives */
  async function leaveSurvivor(job: string, repo?: string) {
    const heard = scene.path(`${job}.heard`);
    const words = [PYTHON, "-I", "-S", `${FIXTURES}/notes-signals.py`, heard, "member"];
    const place = repo === undefined ? [] : ["--worktree", repo];
    const run = scene.start(["--name", job, ...place, "--", ...words, "TERM,HUP,INT,CONT"], {
      stdout: "ignore",
      stderr: "ignore",
      ...(repo === undefined ? {} : { cwd: repo }),
    });
    await waitFor(() => readLines(heard).length === 1, "a member");
    const lease = await waitForHolder(scene, job);
    await killWithGuard(run);
    const [pid = 0] = scene.findProcesses().filter((one) => readCommandLine(one).includes(heard));
    return { lease, pid, heard: () => readLines(heard) };
  }

  test("refuse names them, leaves them alone, and gets the key once they are gone", async () => {
    const { lease, pid, heard } = await leaveSurvivor("refuses");
    const words = ["--name", "refuses", "--on-survivors", "refuse"];
    const refused = await scene.run([...words, "--", "echo", "STOLEN"]);
    expect([refused.status, refused.stdout.toString()]).toEqual([LOCKED, ""]);
    expect(refused.stderr).toMatch(
      new RegExp(
        `^watchdog: not started: job:refuses was left by run ${lease.run_id} [^\\n]+, which is ` +
          `dead; its processes live and are left alone, as --on-survivors says: ${pid} `,
      ),
    );
    const inTime = await scene.run([...words, "--wait", "200ms", "--", "echo", "STOLEN"]);
    expect([inTime.status, inTime.stdout.toString()]).toEqual([LOCKED, ""]);
    expect([heard(), isAtWork(pid)]).toEqual([["member ready"], true]);
    const waiting = await startWaiting(...words, "--wait", "60s");
    await endAll(scene, [pid]);
    expect(shown(await waiting.started.ended)).toEqual(IN);
    expect(waiting.errors()).toContain("watchdog: took over job:refuses ");
    expect(waiting.errors()).toContain("it is dead, and so is every process of it (R6 tree-empty)");
  });

  test("wait waits without an end for those that end, and says so once", async () => {
    const { pid, heard } = await leaveSurvivor("waits-for");
    const waiting = await startWaiting("--name", "waits-for", "--on-survivors", "wait");
    expect([heard(), isAtWork(pid)]).toEqual([["member ready"], true]);
    await endAll(scene, [pid]);
    expect(shown(await waiting.started.ended)).toEqual(IN);
    expect(waiting.told()).toHaveLength(1);
  });

  test("wait is bound by --wait", async () => {
    const { pid } = await leaveSurvivor("bound");
    const words = ["--name", "bound", "--on-survivors", "wait", "--wait", "300ms"];
    const refused = await scene.run([...words, "--", "echo", "STOLEN"]);
    expect([refused.status, refused.stdout.toString()]).toEqual([LOCKED, ""]);
    expect(isAtWork(pid)).toBe(true);
    // The twin: the default ends them.
    const next = await scene.run(["--name", "bound", "--", "echo", "in"]);
    expect([next.status, next.stdout.toString()]).toEqual([0, "in\n"]);
    expect(isDead(pid)).toBe(true);
  });

  test("wait goes on no longer than until --not-after", async () => {
    const { pid } = await leaveSurvivor("night");
    const at = new Date(Date.now() + 2_500).toTimeString().slice(0, 8);
    const words = ["--name", "night", "--on-survivors", "wait", "--not-after", at];
    const refused = await scene.run([...words, "--", "echo", "STOLEN"]);
    expect([refused.status, refused.stdout.toString()]).toEqual([LOCKED, ""]);
    expect(refused.stderr).toContain("watchdog: waiting: job:night was left by run ");
    expect(isAtWork(pid)).toBe(true);
    await endAll(scene, [pid]);
  });

  test("kill ends survivors in a checkout, which are in nobody's way then", async () => {
    const repo = makeCheckout();
    const { pid } = await leaveSurvivor("in-checkout", repo);
    const next = await scene.run(["--name", "other", "--worktree", repo, "--", "echo", "in"]);
    expect([next.status, next.stdout.toString()]).toEqual([0, "in\n"]);
    expect(next.stderr).toContain("watchdog: took over worktree:");
    expect(isDead(pid)).toBe(true);
  });

  test("ends no survivor while another run works in the checkout", async () => {
    const repo = makeCheckout();
    const { pid, heard } = await leaveSurvivor("both", repo);
    const other = await startOther("third", "exec sleep 98310", "sleep 98310", repo);
    const refused = await enter(repo);
    expect(refused.status).toBe(LOCKED);
    expect(refused.stderr).toContain(`is worked in by others: ${other.pid} sleep 98310 (run `);
    expect(refused.stderr).not.toContain(`${pid} `);
    expect(heard()).toEqual(["member ready"]);
    await other.end();
    const next = await enter(repo);
    expect([next.status, next.stdout.toString()]).toEqual([0, "in\n"]);
    expect(isDead(pid)).toBe(true);
  });

  test.each(["kill", "wait", "refuse"])("%s lists a suspect and signals nobody", async (policy) => {
    const job = `suspect-${policy}`;
    const { lease, pid, heard } = await leaveSurvivor(job);
    const suspect = scene.startProgram(["sleep", "98311"], {
      env: { WATCHDOG_RUN_PATH: lease.run_path, WATCHDOG_RUN_ID: lease.run_id },
    });
    await waitForCommand(scene, "sleep 98311");
    const words = ["--name", job, "--on-survivors", policy];
    const next = await scene.run([...words, "--", "echo", "STOLEN"]);
    expect([next.status, next.stdout.toString()]).toEqual([LOCKED, ""]);
    expect(next.stderr).toContain(`and are not proven: ${suspect.pid} sleep 98311`);
    expect(findByCommand(scene, "sleep 98311")).toEqual([suspect.pid]);
    expect([heard(), isAtWork(pid)]).toEqual([["member ready"], true]);
    await endAll(scene, [suspect.pid, pid]);
  });
});
