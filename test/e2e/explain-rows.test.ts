/**
 * Each row of the rules R5 to R7 from outside, with real namespaces, machines and users: what
 * `lease explain` says from where a newcomer stands, what that newcomer then does, and that nobody
 * is signalled but proven members.
 */
import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { asUser, shareBinary } from "../support/as-user.ts";
import { askJson, waitForHolder, waitForRow, waitForSlot } from "../support/ask.ts";
import { endAll, identify } from "../support/guarded-scene.ts";
import { isStillThere, killWithGuard, waitForGuard } from "../support/killing.ts";
import { placeOf } from "../support/lease-seen.ts";
import { isDead, readStatusLine, waitForCommand, waitForText } from "../support/processes.ts";
import {
  type Ended,
  openScene,
  readCommandLine,
  RELEASE,
  rootTest,
  type Started,
} from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const OTHER_BOOT = "11111111-2222-3333-4444-555555555555";
const OTHER_MACHINE = "0123456789abcdef0123456789abcdef";
/** No other test uses these numbers, and no database has them. */
const GROUP = 54_490;
const [ANN, BEN] = [54_491, 54_492];

/** Whatever was answered: each test judges the fields that it names. */
type Parsed = ReturnType<typeof JSON.parse>;

/** Words before the binary: a place to stand in. */
type Place = readonly string[];
const HERE: Place = [];

/** A program in namespaces of its own, of which a line of shell has changed something. */
function within(flags: readonly string[], setup: string): Place {
  return ["unshare", ...flags, "sh", "-c", `${setup} && exec "$@"`, "sh"];
}

/** In the place of what tells boot and machine stand these files. */
function elsewhere(changes: { readonly machine?: string; readonly host?: string }): Place {
  const [boot, machine] = [scene.path("other-boot"), scene.path("other-machine")];
  writeFileSync(boot, `${OTHER_BOOT}\n`);
  const binds = [`mount --bind ${boot} /proc/sys/kernel/random/boot_id`];
  if (changes.machine !== undefined) {
    writeFileSync(machine, `${changes.machine}\n`);
    binds.push(`mount --bind ${machine} /etc/machine-id`);
  }
  if (changes.host !== undefined) binds.push(`hostname ${changes.host}`);
  return within(["-m", "-u"], binds.join(" && "));
}

const OTHER_TIME = within(["-T", "-f", "--boottime", "100000", "--monotonic", "100000"], ":");
const OTHER_PIDS = ["unshare", "-pf", "--mount-proc"];

interface Row {
  readonly verdict: string;
  readonly rule: string;
  readonly because: string;
  /** Of the newcomer; its reason is the same but where it is named. */
  readonly status: number;
  readonly reason?: string;
  /** Signals that the row turns on. */
  readonly signals: Readonly<Record<string, string>>;
}

/** `lease explain` and then a newcomer, both from there; these processes are to be spared. */
async function expectRow(job: string, from: Place, row: Row, spared: readonly number[]) {
  const seen = spared.map((pid) => identify(pid));
  const explained = await explain(job, from);
  expectExplained(explained, row);
  const next = await enter(job, from);
  const says = next.status === 0 ? "mine\n" : "";
  expect([job, next.status, next.stdout.toString()]).toEqual([job, row.status, says]);
  expect(seen.map(isStillThere)).toEqual(seen.map(() => true));
  // Neither ended nor stopped.
  expect(spared.filter((pid) => readStatusLine(pid, "State")?.startsWith("T"))).toEqual([]);
  const { leaves_note: leavesNote } = explained.newcomer[0];
  expect(existsSync(`${placeOf(scene.stateDirectory, job).directory}/seen.json`)).toBe(leavesNote);
  return { explained, next };
}

function expectExplained(explained: Parsed, row: Row): void {
  const { verdict, rule, because, status, reason = because, signals } = row;
  expect(explained).toMatchObject({ format: 1, verdict, rule, because });
  for (const [name, says] of Object.entries(signals)) {
    const signal = explained.signals.find((one: Parsed) => one.name === name);
    expect([name, signal?.says]).toEqual([name, says]);
  }
  const decided = explained.rules.findIndex((one: Parsed) => one.state === "decided");
  expect(explained.rules[decided].rule).toBe(rule);
  expect(explained.rules.slice(0, decided).every((one: Parsed) => one.misses.length > 0)).toBe(
    true,
  );
  const [newcomer] = explained.newcomer;
  expect(newcomer).toMatchObject({ on_survivors: "kill", because: reason });
  expect(newcomer.outcome).toBe({ 0: null, 75: "locked", 78: "config_error" }[status]);
}

async function explain(job: string, from: Place): Promise<Parsed> {
  const words = [...from, RELEASE, "lease", "explain", `job:${job}`, "--json"];
  const { status, stdout, stderr } = await scene.startProgram(words).ended;
  expect([status, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout.toString());
}

function enter(job: string, from: Place, options: readonly string[] = []): Promise<Ended> {
  const words = [RELEASE, "run", "--name", job, ...options, "--", "echo", "mine"];
  return scene.startProgram([...from, ...words]).ended;
}

const NO_PIPES = { stdout: "ignore", stderr: "ignore" } as const;

async function start(job: string, command: string): Promise<{ run: Started; pid: number }> {
  const run = scene.start(["--name", job, "--", ...command.split(" ")], NO_PIPES);
  const [pid = 0] = await waitForCommand(scene, command);
  await waitForHolder(scene, job);
  return { run, pid };
}

/** Watchdog and guard are killed; the command lives on. */
async function leave(job: string, command: string): Promise<number> {
  const { run, pid } = await start(job, command);
  await killWithGuard(run);
  return pid;
}

/** The same, beside another lock file: the watchdog stands still and cannot restore it. */
async function replaceLock(job: string, command: string) {
  const { run, pid } = await start(job, command);
  await waitForGuard(run.pid);
  run.kill("SIGSTOP");
  await waitFor(() => readStatusLine(run.pid, "State")?.startsWith("T"), "a stopped watchdog");
  rmSync(placeOf(scene.stateDirectory, job).lock);
  return { run, pid };
}

describe("R5, an owner of another boot", () => {
  rootTest("of this machine is dead, and no process of today is its", async () => {
    const pid = await leave("boot", "sleep 96501");
    const signals = { "same-boot": "no", "same-machine": "yes", "lock-taken": "no" };
    const row = { verdict: "dead", rule: "R5", because: "other-boot", status: 0, signals };
    await expectRow("boot", elsewhere({}), row, [pid]);
    await endAll(scene, [pid]);
  });

  for (const [what, changes] of [
    ["host", { host: "otherhost" }],
    ["machine id", { machine: OTHER_MACHINE }],
  ] as const) {
    rootTest(`with another ${what} is elsewhere, and the time is noted`, async () => {
      const job = what.replace(" ", "-");
      const pid = await leave(job, "sleep 96502");
      const signals = { "same-boot": "no", "same-machine": "no", "note-old": "no" };
      const row = { verdict: "elsewhere", rule: "R5", because: "other-machine", signals };
      const { next } = await expectRow(job, elsewhere(changes), { ...row, status: 75 }, [pid]);
      expect(next.stderr).toContain(", another machine\n");
      await endAll(scene, [pid]);
    });
  }

  rootTest("is elsewhere where only the beat is left, which names no machine", async () => {
    const pid = await leave("beat-only", "sleep 96503");
    rmSync(placeOf(scene.stateDirectory, "beat-only").record);
    const signals = { "same-boot": "no", "same-machine": "unread" };
    const row = { verdict: "elsewhere", rule: "R5", because: "machine-unread", status: 75 };
    await expectRow("beat-only", elsewhere({}), { ...row, signals }, [pid]);
    await endAll(scene, [pid]);
  });

  test("or of this one, as only the journal remembers: whoever is found may be its", async () => {
    const { run, pid } = await start("journal-only", "sleep 96504");
    await waitForRow(scene, "journal-only", "running");
    await killWithGuard(run);
    const { directory, record } = placeOf(scene.stateDirectory, "journal-only");
    for (const name of readdirSync(directory)) {
      if (name.startsWith("beat.")) rmSync(`${directory}/${name}`);
    }
    rmSync(record);
    const signals = { "generation-known": "yes", "same-boot": "unread" };
    const found = { verdict: "orphaned", rule: "R5", because: "suspects", status: 75 };
    const { explained } = await expectRow("journal-only", HERE, { ...found, signals }, [pid]);
    expect(explained.suspects).toMatchObject([{ pid }]);
    await endAll(scene, [pid]);
    const gone = { verdict: "elsewhere", rule: "R5", because: "boot-unread", status: 75 };
    await expectRow("journal-only", HERE, { ...gone, signals }, []);
  });
});

describe("R6, an owner that the kernel has proven dead", () => {
  rootTest("in a namespace beside ours is elsewhere, in one below ours it is seen", async () => {
    const script = `"$@" & wait $!; exec sleep 96611`;
    const words = [RELEASE, "run", "--name", "beside", "--", "sleep", "96610"];
    const init = scene.startProgram([...OTHER_PIDS, "sh", "-c", script, "sh", ...words], NO_PIPES);
    const [pid = 0] = await waitForCommand(scene, "sleep 96610");
    await waitForHolder(scene, "beside");
    await killWithGuard(findWatchdog("beside"));
    await waitForCommand(scene, "sleep 96611");
    const signals = { "same-lock-file": "yes", "namespace-contained": "no" };
    const row = { verdict: "elsewhere", rule: "R6", because: "other-namespace", status: 75 };
    await expectRow("beside", [...OTHER_PIDS], { ...row, signals }, [pid]);
    const blind = { verdict: "elsewhere", rule: "R6", because: "namespace-unread" };
    expect(await explain("beside", ["unshare", "-pf"])).toMatchObject(blind);
    const below = await explain("beside", HERE);
    expect(below).toMatchObject({ verdict: "orphaned", because: "members" });
    expect((await enter("beside", HERE)).status).toBe(0);
    expect(isDead(pid)).toBe(true);
    await endAll(scene, await waitForCommand(scene, "sleep 96611"));
    await init.ended;
  });

  rootTest("in another time namespace: what the beat names cannot be compared", async () => {
    const bare = ["env", "-u", "WATCHDOG_RUN_PATH", "sleep", "96620"];
    const run = scene.start(["--name", "time", "--", ...bare], NO_PIPES);
    const [pid = 0] = await waitForCommand(scene, "sleep 96620");
    await waitForHolder(scene, "time");
    await killWithGuard(run);
    const signals = { "pids-comparable": "no", "owner-alive": "unread", "tree-empty": "unread" };
    const row = { verdict: "elsewhere", rule: "R6", because: "members-not-compared", status: 75 };
    await expectRow("time", OTHER_TIME, { ...row, signals }, [pid]);
    await endAll(scene, [pid]);
  });

  test("with proven members: they are ended, and nobody else", async () => {
    const pid = await leave("members", "sleep 96630");
    const innocent = scene.startProgram(["sleep", "96631"]);
    const signals = { "owner-alive": "no", "same-lock-file": "yes", "tree-empty": "no" };
    const row = { verdict: "orphaned", rule: "R6", because: "members", status: 0, signals };
    const refused = await enter("members", HERE, ["--on-survivors", "refuse"]);
    const { explained } = await expectRow("members", HERE, row, [innocent.pid]);
    expect(explained.survivors).toMatchObject([{ pid, is_signalable: true, is_ancestor: false }]);
    expect(explained.newcomer[2]).toMatchObject({
      on_survivors: "refuse",
      because: "survivors-alive",
    });
    expect(refused.status).toBe(75);
    expect(isDead(pid)).toBe(true);
    await endAll(scene, [innocent.pid]);
  });

  test("with a suspect: nobody is signalled", async () => {
    const { run, pid } = await start("suspect", "sleep 96640");
    const { run_path: path } = await askJson(scene, ["lease", "show", "job:suspect"]);
    await killWithGuard(run);
    const suspect = scene.startProgram(["sleep", "96641"], { env: { WATCHDOG_RUN_PATH: path } });
    await waitForCommand(scene, "sleep 96641");
    const signals = { "tree-empty": "no" };
    const row = { verdict: "orphaned", rule: "R6", because: "suspects", status: 75, signals };
    const { explained } = await expectRow("suspect", HERE, row, [pid, suspect.pid]);
    expect(explained.suspects).toMatchObject([{ pid: suspect.pid }]);
    await endAll(scene, [pid, suspect.pid]);
  });

  test("asked from below one of its members: that one is not ended", async () => {
    const [gate, out, code] = ["below.gate", "below.json", "below.code"].map((name) =>
      scene.path(name),
    );
    const asks = `'${RELEASE}' lease explain job:below --json >'${out}'`;
    const runs = `'${RELEASE}' run --name below -- echo mine; echo $? >'${code}'`;
    const waits = `until [ -e '${gate}' ]; do sleep 0.05; done`;
    const script = `${waits}; ${asks}; ${runs}; exec sleep 96650`;
    const run = scene.start(["--name", "below", "--", "sh", "-c", script], NO_PIPES);
    const { children } = await waitForHolder(scene, "below");
    await killWithGuard(run);
    writeFileSync(gate ?? "", "");
    expect(await waitForText(code ?? "")).toBe("75\n");
    const [pid = 0] = await waitForCommand(scene, "sleep 96650");
    expect(pid).toBe(children[0].pid);
    const explained = JSON.parse(await waitForText(out ?? ""));
    const [because, signals] = ["ancestor-of-newcomer", { "tree-empty": "no" }];
    const row = { verdict: "orphaned", rule: "R6", because, status: 75, signals };
    expectExplained(explained, row);
    expect(explained.newcomer[0].can_wait).toBe(false);
    expect(explained.survivors).toContainEqual(expect.objectContaining({ pid, is_ancestor: true }));
    await endAll(scene, [pid]);
  });

  test("and nobody left: the key is free for the next one", async () => {
    const pid = await leave("empty", "sleep 96660");
    await endAll(scene, [pid]);
    const signals = { "tree-empty": "yes", "owner-alive": "no" };
    const row = { verdict: "dead", rule: "R6", because: "tree-empty", status: 0, signals };
    const { explained } = await expectRow("empty", HERE, row, []);
    expect(explained.plans).toMatchObject([{ action: "mark", needs: "apply" }]);
  });
});

describe("R6 for another user of a shared directory", () => {
  for (const [what, because, hide] of [
    ["may not be signalled", "unsignalable", HERE],
    [
      "are hidden (hidepid)",
      "members-not-compared",
      within(["-m"], "mount -t proc -o hidepid=2 proc /proc"),
    ],
  ] as const) {
    rootTest(`members that ${what} are left alone, and the key with them`, async () => {
      const shared = await makeShared(because);
      const words = ["run", "--name", "theirs", "--", "sleep", "96670"];
      const run = scene.startProgram([...shared.as(ANN), ...words], { ...shared.at, ...NO_PIPES });
      const pid = await waitFor(() => childOf(run.pid, "sleep 96670"), "the command");
      await waitForGuard(run.pid);
      await waitForSlot(scene, [...shared.as(ANN), "lease", "show", "job:theirs"], shared.at);
      await killWithGuard(run);
      const seen = identify(pid);
      const from = [...hide, ...shared.as(BEN)];
      const asked = ["lease", "explain", "job:theirs", "--json"];
      const answer = await scene.startProgram([...from, ...asked], shared.at).ended;
      const explained = JSON.parse(answer.stdout.toString());
      const verdict = because === "unsignalable" ? "orphaned" : "elsewhere";
      const row = { verdict, rule: "R6", because, status: 75, signals: {} };
      expectExplained(explained, row);
      const enters = ["run", "--name", "theirs", "--", "echo", "mine"];
      const next = await scene.startProgram([...from, ...enters], shared.at).ended;
      expect([next.status, next.stdout.toString()]).toEqual([75, ""]);
      expect(isStillThere(seen)).toBe(true);
      process.kill(pid, "SIGKILL");
    });
  }
});

/** A directory of that group with one run in it. */
async function makeShared(name: string) {
  const place = scene.path(name);
  mkdirSync(place);
  chmodSync(place, 0o1777);
  const binary = await shareBinary(scene);
  const as = (uid: number): string[] => [...asUser(uid, [GROUP]), binary];
  const env = { WATCHDOG_STATE_DIR: `${place}/state`, HOME: "/nonexistent" };
  const at = { cwd: "/", env };
  const first = ["run", "--name", "first", "--state-group", String(GROUP), "--", "true"];
  expect((await scene.startProgram([...as(ANN), ...first], at).ended).status).toBe(0);
  return { as, at };
}

describe("R7, beside a lock file that was replaced", () => {
  test("a living owner is not robbed", async () => {
    const { run, pid } = await replaceLock("alive", "sleep 96701");
    const signals = { "lock-taken": "no", "same-lock-file": "no", "owner-alive": "yes" };
    const row = { verdict: "unknowable", rule: "R7", because: "lock-replaced", status: 75 };
    const { explained } = await expectRow("alive", HERE, { ...row, signals }, [pid]);
    const actions = explained.plans.map((plan: Parsed) => plan.action);
    expect(actions).toEqual(["continue-owner", "end-owner"]);
    run.kill("SIGCONT");
    run.kill("SIGTERM");
    await run.ended;
  });

  rootTest("an owner that cannot be looked up is elsewhere", async () => {
    const { run, pid } = await replaceLock("unread", "sleep 96702");
    const signals = { "same-lock-file": "no", "owner-alive": "unread", "pids-comparable": "no" };
    const row = { verdict: "elsewhere", rule: "R7", because: "owner-unread", status: 75 };
    await expectRow("unread", OTHER_TIME, { ...row, signals }, [pid]);
    run.kill("SIGCONT");
    run.kill("SIGTERM");
    await run.ended;
  });

  test("a dead owner is judged as under R6: first by its members, then dead", async () => {
    const { run, pid } = await replaceLock("dead", "sleep 96703");
    await killWithGuard(run);
    const signals = { "same-lock-file": "no", "owner-alive": "no" };
    const found = { verdict: "orphaned", rule: "R7", because: "members", status: 0, signals };
    expectExplained(await explain("dead", HERE), found);
    await endAll(scene, [pid]);
    const row = { verdict: "dead", rule: "R7", because: "tree-empty", status: 0, signals };
    await expectRow("dead", HERE, row, []);
  });
});

/** In whatever namespace it is. */
function findWatchdog(job: string): Started {
  const pid = scene.findProcesses().find((one) => {
    return readCommandLine(one).startsWith(`${RELEASE} run --name ${job} `);
  });
  if (pid === undefined) throw new Error(`no watchdog of ${job}`);
  const gone = waitFor(() => isDead(pid), "the end of a watchdog");
  const ended = gone.then(() => ({}) as Ended);
  return { pid, ended, kill: (signal) => process.kill(pid, signal) };
}

function childOf(parent: number, command: string): number | undefined {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .find(
      (pid) => readStatusLine(pid, "PPid") === String(parent) && readCommandLine(pid) === command,
    );
}
