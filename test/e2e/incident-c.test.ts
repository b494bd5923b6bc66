/**
 * Incident C: a cleaner that chose its victims by command line and age, and killed its own
 * supervisor every ten minutes. Here thirty innocents look like the command of a dead run, others
 * carry its variables by ways on which these really travel, and watchdogs, guards and ancestors are
 * about: a newcomer, a repair and a guard signal proven members and nobody else. Two witnesses tell
 * who is signalled: strace(1) around the process that acts, and the kill seam of the fault build.
 * The innocents themselves hear every signal that can be caught.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { askJson, waitForHolder } from "../support/ask.ts";
import { readEnvironment, saveEnvironment } from "../support/fencing.ts";
import { identify, waitForBeats } from "../support/guarded-scene.ts";
import { Crowd, INNOCENTS } from "../support/innocents.ts";
import {
  guardOf,
  isStillThere,
  killWithGuard,
  readChildren,
  waitForGuard,
} from "../support/killing.ts";
import { inState } from "../support/own-state.ts";
import { readStatusLine } from "../support/processes.ts";
import { planOf, QUICK, repairJson, waitForVerdict } from "../support/repair-scene.ts";
import { FIXTURES, openScene, readCommandLine, RELEASE, type Started } from "../support/scene.ts";
import { hasStrace, readTargets, startTraced, witness } from "../support/traced.ts";
import { waitFor } from "../support/wait-for.ts";

const whole = openScene(import.meta.file);
const LIMIT_MS = 180_000;
const LOCKED = 75;
const REFUSED = 77;
const traceTest = test.skipIf(!hasStrace);
let crowd: Crowd | undefined;

afterEach(async () => {
  await crowd?.disperse();
  crowd = undefined;
});

/** A crowd, half of it older than the run and half of it younger; the run's words are theirs. */
async function openCrowd(name: string) {
  const scene = inState(whole, `${name}.state`);
  const opened = new Crowd(scene, name);
  crowd = opened;
  await opened.add(INNOCENTS / 2);
  return { scene, crowd: opened, saved: scene.path(`${name}.env`) };
}

type Opened = Awaited<ReturnType<typeof openCrowd>>;

/** A run of two such processes, of which one has left the session; it saves its environment. */
async function startRun({ scene, crowd, saved }: Opened, name = "night"): Promise<Started> {
  const script = `${saveEnvironment(saved)}; setsid "$@" & "$@"; :`;
  const words = ["--name", name, ...QUICK, "--", "sh", "-c", script, "sh", ...crowd.words];
  const run = scene.start(words, { stdout: "ignore", stderr: "ignore" });
  await crowd.waitForMembers(2);
  await crowd.add(INNOCENTS / 2);
  await waitForHolder(scene, name);
  await waitForBeats(scene, name);
  return run;
}

/** The shell and its two, all that was left of the run. */
async function leaveOrphans(opened: Opened, name = "night"): Promise<number[]> {
  const run = await startRun(opened, name);
  const [shell = 0] = readChildren(run.pid).filter((pid) => guardOf(run.pid) !== pid);
  const members = [...opened.crowd.findMembers(), shell].sort((a, b) => a - b);
  expect(members).toHaveLength(3);
  await killWithGuard(run);
  expect(members.filter((pid) => readStatusLine(pid, "State") === undefined)).toEqual([]);
  return members;
}

/** Of the dead run's variables, but not of its tree: two by at(1), and two by `env -i`. */
async function addCarriers({ crowd, saved, scene }: Opened): Promise<number[]> {
  await readEnvironment(saved);
  for (const name of ["early", "late"]) crowd.store(name, saved);
  for (const name of ["early", "late"]) crowd.makeDue(name);
  for (const _ of [1, 2]) crowd.startWithSaved(saved);
  return waitFor(async () => {
    const { leases } = await repairJson(scene, ["job:night"]);
    const suspects = (leases[0]?.suspects ?? []) as { pid: number; command: string }[];
    const found = suspects.filter(({ command }) => command === crowd.line).map(({ pid }) => pid);
    return found.length === 4 && found;
  }, "four suspects");
}

const ECHO = ["--", "echo", "ok"];

describe("incident C: of those who look like a dead run's command", () => {
  traceTest(
    "a newcomer signals the proven members and none of thirty innocents",
    async () => {
      const opened = await openCrowd("newcomer");
      const members = await leaveOrphans(opened);
      const { ended, targets } = await witness(opened.scene, ["run", "--name", "night", ...ECHO]);
      expect([ended.status, ended.stdout.toString()]).toEqual([0, "ok\n"]);
      expect(targets).toEqual(members);
      opened.crowd.expectUntouched();
      expect(opened.crowd.find()).toHaveLength(INNOCENTS);
    },
    LIMIT_MS,
  );

  traceTest(
    "a repair with --apply signals the proven members and none of thirty innocents",
    async () => {
      const opened = await openCrowd("repair");
      const members = await leaveOrphans(opened);
      const dry = await witness(opened.scene, ["repair"]);
      expect([dry.ended.status, dry.targets]).toEqual([0, []]);
      const { ended, targets } = await witness(opened.scene, ["repair", "--apply"]);
      expect([ended.status, ended.stderr]).toEqual([0, ""]);
      expect(targets).toEqual(members);
      opened.crowd.expectUntouched();
      expect(opened.crowd.find()).toHaveLength(INNOCENTS);
    },
    LIMIT_MS,
  );

  traceTest(
    "the guard of a killed watchdog signals the proven members and none of thirty innocents",
    async () => {
      const opened = await openCrowd("guard");
      const { scene, crowd, saved } = opened;
      const script = `${saveEnvironment(saved)}; setsid "$@" & "$@"; :`;
      const words = [RELEASE, "run", "--name", "night", ...QUICK, "--", "sh", "-c", script, "sh"];
      const traced = startTraced(scene, [...words, ...crowd.words], { stdout: "ignore" });
      const members = await crowd.waitForMembers(2);
      await crowd.add(INNOCENTS / 2);
      const { pid } = await waitForHolder(scene, "night");
      crowd.startAtd();
      crowd.store("early", saved);
      crowd.makeDue("early");
      await waitFor(() => crowd.findMembers().length === 3, "a carrier");
      const [carrier = 0] = crowd.findMembers().filter((one) => !members.includes(one));
      process.kill(pid, "SIGKILL");
      await traced.started.ended;
      await waitFor(() => crowd.find().length === INNOCENTS + 1, "the end of the members");
      expect(readTargets(traced.trace)).toEqual(expect.arrayContaining(members));
      const others = readTargets(traced.trace).filter((one) => !members.includes(one));
      // The shell of the command.
      expect(others).toHaveLength(1);
      expect(crowd.heardBy([carrier])).toEqual([`${carrier} ready`]);
      crowd.expectUntouched();
    },
    LIMIT_MS,
  );
});

describe("incident C: carriers of a dead run's cookie, by at(1) and by env -i", () => {
  traceTest(
    "keep the key from everybody, and nobody is signalled, not even the members",
    async () => {
      const opened = await openCrowd("carriers");
      const { scene, crowd } = opened;
      crowd.startAtd();
      const members = await leaveOrphans(opened);
      const carriers = await addCarriers(opened);
      const asked = [
        ["run", "--name", "night", ...ECHO],
        ["run", "--name", "night", "--on-survivors", "refuse", ...ECHO],
        ["run", "--name", "night", "--on-survivors", "wait", "--wait", "300ms", ...ECHO],
        ["run", "--name", "night", "--wait", "300ms", ...ECHO],
        ["repair", "--apply"],
        ["repair", "job:night", "--apply"],
        ["repair", "--approve", "0123456789"],
        ["repair", "job:night", "--set-generation", "9"],
      ];
      for (const words of asked) {
        const { ended, targets } = await witness(scene, words);
        const status = words[0] === "run" ? LOCKED : REFUSED;
        expect([words, ended.status, targets]).toEqual([words, status, []]);
        expect(ended.stdout.toString()).not.toContain("ok\n");
        if (words[0] !== "run") continue;
        for (const pid of carriers) expect(ended.stderr).toContain(`${pid} `);
      }
      crowd.expectUntouched();
      expect(crowd.heardBy(carriers)).toEqual(carriers.map((pid) => `${pid} ready`).sort());
      expect(crowd.find()).toHaveLength(INNOCENTS + 4 + 2);
      expect(members.filter((pid) => readStatusLine(pid, "State") === undefined)).toEqual([]);
    },
    LIMIT_MS,
  );

  traceTest(
    "are ended by an approval that names them, and not by one that was made before one more came",
    async () => {
      const opened = await openCrowd("approved");
      const { scene, crowd, saved } = opened;
      crowd.startAtd();
      const members = await leaveOrphans(opened);
      const four = await addCarriers(opened);
      const before = await waitForVerdict(scene, "job:night", "orphaned");
      const old = planOf(before, "end-suspects");
      crowd.store("later", saved);
      crowd.makeDue("later");
      const now = await waitFor(async () => {
        const [lease] = (await repairJson(scene, ["job:night"])).leases;
        return lease.suspects.length === before.suspects.length + 1 && lease;
      }, "one more");
      const refused = await witness(scene, ["repair", "--approve", old]);
      expect([refused.ended.status, refused.targets]).toEqual([REFUSED, []]);
      expect(crowd.heardBy(four)).toEqual(four.map((pid) => `${pid} ready`).sort());
      const id = planOf(now, "end-suspects");
      const done = await witness(scene, ["repair", "--approve", id]);
      expect([done.ended.status, done.ended.stderr]).toEqual([0, ""]);
      const named = now.suspects.map(({ pid }: { pid: number }) => pid);
      expect(done.targets).toEqual([...members, ...named].sort((a, b) => a - b));
      crowd.expectUntouched();
      expect(crowd.find()).toHaveLength(INNOCENTS);
    },
    LIMIT_MS,
  );

  traceTest(
    "are not signalled where one of them has started the newcomer or the repair itself",
    async () => {
      const opened = await openCrowd("ancestor");
      const { scene, crowd, saved } = opened;
      const members = await leaveOrphans(opened);
      const environment = await readEnvironment(saved);
      const trace = scene.path("ancestor.trace");
      const strace = ["strace", "-f", "-yy", "-o", trace, "-e", "trace=kill,pidfd_send_signal"];
      for (const [words, status] of [
        [["run", "--name", "night", ...ECHO], LOCKED],
        [["repair", "job:night", "--apply"], REFUSED],
      ] as const) {
        const line = [...strace, RELEASE, ...words];
        // The shell carries the dead run's cookie, and the one that looks is below it.
        const { status: found, stdout } = await scene.startProgram(
          ["sh", "-c", '"$@"; exit $?', "sh", ...line],
          { env: environment },
        ).ended;
        expect([words, found, stdout.toString().includes("ok\n")]).toEqual([words, status, false]);
        expect(readTargets(trace)).toEqual([]);
      }
      crowd.expectUntouched();
      expect(members.filter((pid) => readStatusLine(pid, "State") === undefined)).toEqual([]);
      // The twin: it was the ancestor alone.
      const next = await witness(scene, ["run", "--name", "night", ...ECHO]);
      expect([next.ended.status, next.targets]).toEqual([0, members]);
    },
    LIMIT_MS,
  );
});

/** SIGKILL to a nested watchdog and its guard; the one around it collects them. */
async function killNested(pid: number): Promise<void> {
  const identity = identify(pid);
  const guard = await waitForGuard(pid);
  process.kill(pid, "SIGSTOP");
  await waitFor(() => readStatusLine(pid, "State")?.startsWith("T"), "a stopped one");
  process.kill(guard, "SIGKILL");
  process.kill(pid, "SIGKILL");
  await waitFor(() => !isStillThere(identity), "its end");
}

describe("incident C: watchdogs around, beside and within", () => {
  /** A run around two: one of them will be killed, and both have the command of the crowd. */
  async function startNested(opened: Opened) {
    const { scene, crowd } = opened;
    const inner = (name: string) =>
      `${RELEASE} run --name ${name} ${QUICK.join(" ")} -- sh -c '"$@"; :' sh "$@"`;
    const script = `${inner("beside")} & ${inner("night")}; wait`;
    const outer = scene.start(["--name", "outer", "--", "sh", "-c", script, "sh", ...crowd.words], {
      stdout: "ignore",
      stderr: "ignore",
    });
    await crowd.waitForMembers(2);
    const leases = await Promise.all(
      ["outer", "beside", "night"].map((name) => waitForHolder(scene, name)),
    );
    const watchdogs: number[] = leases.map(({ pid }) => pid);
    const guards = await Promise.all(watchdogs.map((pid) => waitForGuard(pid)));
    await waitForBeats(scene, "night");
    const below = (pid: number): number[] =>
      readChildren(pid).flatMap((one) => [one, ...below(one)]);
    const [, , night = 0] = watchdogs;
    const members = below(night).filter((pid) => !guards.includes(pid));
    return { outer, watchdogs, guards, night, members: members.sort((a, b) => a - b) };
  }

  async function expectOthersAlive(opened: Opened, others: readonly number[]): Promise<void> {
    opened.crowd.expectUntouched();
    expect(others.filter((pid) => !/^[RSD]/.test(readStatusLine(pid, "State") ?? ""))).toEqual([]);
    for (const name of ["outer", "beside"]) {
      const lease = await askJson(opened.scene, ["lease", "show", `job:${name}`]);
      expect([name, lease.verdict]).toEqual([name, "held"]);
    }
  }

  traceTest(
    "a newcomer to the key of a killed inner one signals what that one left, and none of them",
    async () => {
      const opened = await openCrowd("nested");
      const { outer, watchdogs, guards, night, members } = await startNested(opened);
      await killNested(night);
      const next = await witness(opened.scene, ["run", "--name", "night", ...ECHO]);
      expect([next.ended.status, next.targets]).toEqual([0, members]);
      await expectOthersAlive(opened, [...watchdogs.slice(0, 2), ...guards.slice(0, 2)]);
      await opened.crowd.disperse();
      await outer.ended;
    },
    LIMIT_MS,
  );

  traceTest(
    "a repair signals the inner watchdog that a person has approved to end, and none of them",
    async () => {
      const opened = await openCrowd("approved-owner");
      const { outer, watchdogs, guards, night, members } = await startNested(opened);
      process.kill(night, "SIGSTOP");
      const lease = await waitForVerdict(opened.scene, "job:night", "stalled");
      const applied = await witness(opened.scene, ["repair", "--apply"]);
      expect([applied.ended.status, applied.targets]).toEqual([REFUSED, []]);
      const id = planOf(lease, "end-owner");
      const { ended, targets } = await ownerWitness(opened, ["repair", "--approve", id]);
      expect([ended.status, ended.stderr]).toEqual([0, ""]);
      expect(targets).toEqual([night]);
      expect(members.filter((pid) => readCommandLine(pid) === opened.crowd.line)).toEqual([]);
      await expectOthersAlive(opened, [...watchdogs.slice(0, 2), ...guards.slice(0, 2)]);
      await opened.crowd.disperse();
      await outer.ended;
    },
    LIMIT_MS,
  );

  /** A living watchdog is no survivor: its seam has no point, so strace alone tells. */
  async function ownerWitness({ scene }: Opened, words: readonly string[]) {
    const traced = startTraced(scene, [RELEASE, ...words]);
    const ended = await traced.started.ended;
    return { ended, targets: readTargets(traced.trace) };
  }
});

describe("the witnesses", () => {
  test(
    "negative twin: a cleaner by command line hits the innocents, and watchdog itself",
    async () => {
      const opened = await openCrowd("naive");
      const run = await startRun(opened);
      const hit = await runCleaner(opened);
      for (const { pid } of opened.crowd.innocents) expect(hit).toContain(pid);
      // Its command line holds that of the command.
      expect(hit).toContain(run.pid);
      await waitFor(() => opened.crowd.heardBy(hit).some((line) => line.endsWith("SIGUSR1")), "it");
      expect(() => opened.crowd.expectUntouched()).toThrow();
      await opened.crowd.disperse();
      await run.ended;
    },
    LIMIT_MS,
  );

  traceTest(
    "negative twin: strace names everybody that such a cleaner hits",
    async () => {
      const opened = await openCrowd("naive-traced");
      const words = [`${FIXTURES}/cleans-naively.sh`, opened.crowd.line, opened.scene.cookieEntry];
      const traced = startTraced(opened.scene, words);
      const hit = pidsOf((await traced.started.ended).stdout);
      expect(readTargets(traced.trace)).toEqual(hit);
      for (const { pid } of opened.crowd.innocents) expect(hit).toContain(pid);
    },
    LIMIT_MS,
  );

  async function runCleaner({ scene, crowd }: Opened): Promise<number[]> {
    const words = [`${FIXTURES}/cleans-naively.sh`, crowd.line, scene.cookieEntry];
    return pidsOf((await scene.startProgram(words).ended).stdout);
  }

  function pidsOf(stdout: Buffer): number[] {
    const pids = stdout.toString().split("\n").filter(Boolean).map(Number);
    return pids.sort((a, b) => a - b);
  }
});
