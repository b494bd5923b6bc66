/**
 * `cmd:` probes in a run: each is a small tree of its own that never outlives its limit, never is a
 * member of the job, and is gone with the run, however that ends. Judged by /proc.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { killAlone, killWithGuard, readChildren } from "../support/killing.ts";
import { listBelow, stateOf } from "../support/movement.ts";
import { openPausing, PausingRun, waitForStart } from "../support/pausing.ts";
import { findByCommand, readLines, waitForCommand } from "../support/processes.ts";
import { readCommandLine, type RunOptions, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const { scene, makeDependency } = openPausing(import.meta.file);
const LIMIT_MS = 180_000;
const DOWN = 69;
const QUICK = ["--probe-period", "300ms", "--probe-timeout", "300ms"];
const ONCE = ["--probe-failure-threshold", "1"];
/** Longer than any test. */
const HANGING = [
  ["--probe-period", "200s", "--probe-timeout", "200s"],
  ["--probe-startup-wait", "200s", "--probe-max-elapsed", "200s"],
].flat();

interface Probed {
  readonly name: string;
  /** For `sh -c`, as the command is. */
  readonly probe: string;
  readonly args: readonly string[];
  readonly command: string;
  readonly options?: RunOptions | undefined;
}

async function startWith({ name, probe, args, command, options }: Probed): Promise<Started> {
  const words = [
    ["--name", name, "--log", "off", ...scene.recordTo(name), "--probe", `cmd:${probe}`],
    [...args, "--", "sh", "-c", command],
  ].flat();
  const run = scene.start(words, options);
  await waitForStart(scene, name);
  return run;
}

describe("a probe that hangs", () => {
  test(
    "before the start ends with its limit, and nothing is started",
    async () => {
      const mark = scene.path("hung.ran");
      const bound = ["--probe-max-attempts", "2", "--probe-backoff", "10ms..20ms"];
      const words = [
        ["--name", "hung", "--probe", "cmd:sleep 92601", ...QUICK, ...bound],
        [...scene.recordTo("hung"), "--", "touch", mark],
      ];
      const ended = await scene.run(words.flat());
      expect([ended.status, existsSync(mark)]).toEqual([DOWN, false]);
      expect(ended.stderr).toMatch(/^watchdog: not started: cmd:sleep is down, no good answer/);
      expect(scene.readRecord("hung")).toMatchObject({
        outcome: "dependency_down",
        because: "max-attempts",
        child_pid: null,
      });
      expect(findByCommand(scene, "sleep 92601")).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    "while the job runs opens the circuit, and each of them is ended at its limit",
    async () => {
      const file = scene.path("opens");
      const probe = `test -e ${file} || exit 0; exec sleep 92602`;
      const args = [...QUICK, ...ONCE];
      const run = await startWith({ name: "opens", probe, args, command: "exec sleep 92603" });
      writeFileSync(file, "");
      const ended = await run.ended;
      expect(ended.status).toBe(DOWN);
      expect(scene.readRecord("opens")).toMatchObject({
        outcome: "dependency_down",
        because: "circuit-opened",
        dependencies: [{ last_because: "command-timeout" }],
        leftovers: [],
      });
      expect(findByCommand(scene, "sleep 92602")).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    "is not of the job: whoever waits for the end of the job waits for no probe and names none",
    async () => {
      const { run, hung, helper, gate } = await startHung("apart", 92_604);
      const { child_pid: main } = scene.readRecord("apart");
      expect(listBelow(main)).not.toContain(hung);
      expect(listBelow(helper)).toContain(hung);
      writeFileSync(gate, "");
      const ended = await run.ended;
      expect([ended.status, ended.stderr]).toEqual([4, ""]);
      expect(scene.readRecord("apart")).toMatchObject({
        outcome: "failed",
        leftovers: [],
        left_alone: [],
        unsignalable: [],
      });
      await waitUntilGone(hung, helper);
    },
    LIMIT_MS,
  );

  test(
    "goes on while the job is paused by another one, and does not hold up its going on",
    async () => {
      const [config, gate] = [scene.path("both.toml"), scene.path("paused.gate")];
      const dependency = makeDependency();
      writeFileSync(config, slowBesideQuick(dependency.url, "cmd:exec sleep 92605"));
      const probes = ["--config", config, "--probe", "quick", "--ready-probe", "slow"];
      const words = ["--name", "paused", "--log", "off", ...scene.recordTo("paused"), ...probes];
      const started = scene.start([...words, "--", "sh", "-c", untilThere(gate)]);
      await waitForStart(scene, "paused");
      const run = new PausingRun({ scene, name: "paused", dependency, started });
      const [hung = 0] = await waitForCommand(scene, "sleep 92605");
      await run.pause();
      // Whoever is stopped is stopped again within a second, if it was overlooked.
      const began = performance.now();
      await waitFor(() => performance.now() - began > 1_200, "another look at the tree");
      const helper = helperOf(run.pid, hung);
      const isStopped = [run.main, hung, helper].map((pid) => stateOf(pid) === "T");
      expect(isStopped).toEqual([true, false, false]);
      await run.resume();
      writeFileSync(gate, "");
      expect((await run.started.ended).status).toBe(4);
      expect(run.record()).toMatchObject({ outcome: "failed", leftovers: [], left_alone: [] });
      await waitUntilGone(hung, helper);
    },
    LIMIT_MS,
  );
});

test(
  "a probe that forks, changes its session and ignores TERM is gone before the next one",
  async () => {
    const [up, born] = [scene.path("deaf.up"), scene.path("deaf.born")];
    writeFileSync(up, "");
    const deaf = 'trap "" TERM; setsid sleep 92606 & (sleep 92606 &); exec sleep 92607';
    const probe = `test -e ${up} && exit 0; echo born >>${born}; ${deaf}`;
    const args = [...QUICK, ...ONCE, "--on-open", "notify", "--probe-backoff", "10ms..20ms"];
    const run = await startWith({ name: "deaf", probe, args, command: "exec sleep 92608" });
    rmSync(up);
    await waitFor(() => {
      // At most one probe at a time has anybody alive.
      expect(findByCommand(scene, "sleep 92606").length).toBeLessThanOrEqual(2);
      expect(findByCommand(scene, "sleep 92607").length).toBeLessThanOrEqual(1);
      return readLines(born).length >= 4;
    }, "four probes");
    run.kill("SIGTERM");
    const ended = await run.ended;
    expect(ended.signal).toBe("SIGTERM");
    expect(ended.stderr).not.toContain("left by the command");
    const { leftovers, dependencies, signals } = scene.readRecord("deaf");
    expect(leftovers).toEqual([]);
    expect(dependencies).toMatchObject([{ last_because: "command-timeout" }]);
    expect(signals).toMatchObject([{ signal: "TERM", count: 1 }]);
    await waitFor(() => findAll(["sleep 92606", "sleep 92607"]).length === 0, "the last one gone");
  },
  LIMIT_MS,
);

test(
  "a probe that leaves a daemon and is good leaves nobody",
  async () => {
    const asked = scene.path("leaves.asked");
    const probe = `(setsid sleep 92611 &); setsid sleep 92611 & echo asked >>${asked}`;
    const run = await startWith({
      name: "leaves",
      probe,
      args: QUICK,
      command: "exec sleep 92612",
    });
    await waitFor(() => {
      // Those of one probe at a time.
      expect(findByCommand(scene, "sleep 92611").length).toBeLessThanOrEqual(2);
      return readLines(asked).length >= 4;
    }, "four probes");
    run.kill("SIGTERM");
    expect((await run.ended).signal).toBe("SIGTERM");
    const { leftovers, dependencies, left_alone: alone, signals } = scene.readRecord("leaves");
    expect([leftovers, alone]).toEqual([[], []]);
    expect(signals).toMatchObject([{ signal: "TERM", count: 1 }]);
    expect(dependencies).toMatchObject([{ state: "closed", failed_probes: 0 }]);
    await waitFor(() => findByCommand(scene, "sleep 92611").length === 0, "nobody left");
  },
  LIMIT_MS,
);

describe("in the middle of a probe", () => {
  test.each([
    ["TERM to watchdog", (run: Started) => run.kill("SIGTERM")],
    ["SIGKILL to watchdog", (run: Started) => killAlone(run)],
    ["SIGKILL to watchdog and its guard", (run: Started) => killWithGuard(run)],
  ] as const)(
    "%s leaves nothing of it",
    async (title, end) => {
      const name = title.replaceAll(" ", "-");
      // Who survives would keep the pipes of the test open.
      const options = { stdout: "ignore", stderr: "ignore" } as const;
      const { run, hung, helper } = await startHung(name, 92_609, options);
      await end(run);
      await run.ended;
      await waitUntilGone(hung, helper);
      const next = await scene.run(["--name", name, "--log", "off", "--", "echo", "next"]);
      expect([next.status, next.stdout.toString()]).toEqual([0, "next\n"]);
      expect(findAll(["sleep 92609"])).toEqual([]);
    },
    LIMIT_MS,
  );

  test.each([
    ["TERM", (run: Started) => run.kill("SIGTERM"), 143],
    ["SIGKILL", (run: Started) => killAlone(run), 137],
  ] as const)(
    "before the start %s leaves nothing of it, and the next run has lease and circuit",
    async (title, end, status) => {
      const [name, up] = [`start-${title}`, scene.path(`start-${title}.up`)];
      const mark = scene.path(`${name}.ran`);
      const probe = `cmd:test -e ${up} || exec sleep 92610`;
      const words = ["--name", name, "--log", "off", ...HANGING, "--probe", probe];
      const run = scene.start([...words, "--", "touch", mark]);
      await waitForCommand(scene, "sleep 92610");
      await end(run);
      expect((await run.ended).status).toBe(status);
      await waitFor(() => findAll(["sleep 92610"]).length === 0, "the end of the probe");
      expect(existsSync(mark)).toBe(false);
      writeFileSync(up, "");
      const next = await scene.run([...words, "--", "touch", mark]);
      expect([next.status, existsSync(mark)]).toEqual([0, true]);
    },
    LIMIT_MS,
  );
});

/** Two probes of one run with settings of their own. */
function slowBesideQuick(quick: string, slow: string): string {
  return `
    [probes.quick]
    url = "${quick}"
    period = "250ms"
    timeout = "250ms"
    failure_threshold = 1
    backoff = "20ms..100ms"
    max_attempts = 100000
    on_open = "pause"
    [probes.slow]
    url = "${slow}"
    period = "200s"
    timeout = "200s"
  `;
}

/** Ends with 4 when the file is there. */
function untilThere(file = ""): string {
  return `until [ -e ${file} ]; do sleep 0.02; done; exit 4`;
}

/** A run with a probe that hangs in a sleep of this span: `--ready-probe` begins with the job. */
async function startHung(name: string, seconds: number, options?: RunOptions) {
  const gate = scene.path(`${name}.gate`);
  const args = ["--ready-probe", `cmd:exec sleep ${seconds}`, ...HANGING];
  const run = await startWith({ name, probe: "true", args, command: untilThere(gate), options });
  const [hung = 0] = await waitForCommand(scene, `sleep ${seconds}`);
  return { run, hung, helper: helperOf(run.pid, hung), gate };
}

/** The child of watchdog that has this process below it. */
function helperOf(watchdog: number, probe: number): number {
  const helper = readChildren(watchdog).find((pid) => listBelow(pid).includes(probe)) ?? 0;
  expect(readCommandLine(helper)).toContain("__probe-command");
  return helper;
}

async function waitUntilGone(...pids: readonly number[]): Promise<void> {
  await waitFor(() => pids.every((pid) => "XZ".includes(stateOf(pid))), `${pids} gone`);
}

function findAll(commands: readonly string[]): number[] {
  return commands.flatMap((one) => findByCommand(scene, one));
}

test("what a start rests on, and each answer that is not good, is told with -v alone", async () => {
  const start = async (name: string, ...more: readonly string[]): Promise<readonly string[]> => {
    const mark = scene.path(`${name}.asked`);
    const probe = `once=cmd:test -e '${mark}' || { touch '${mark}'; exit 3; }`;
    const waits = ["--probe-backoff", "10ms..20ms"];
    const state = ["--state-dir", scene.path(`${name}.state`)];
    const words = ["--name", name, ...more, ...state, ...waits, "--probe", probe];
    const { status, stderr } = await scene.run([...words, "--", "true"]);
    expect(status).toBe(0);
    return stderr.split("\n").filter((line) => line !== "");
  };
  const told = (await start("told", "-v")).filter((line) => line.includes("probe"));
  expect(told).toEqual([
    "watchdog: probe of once: status 3, expected status 0 (command-failed)",
    "watchdog: probe of once: status 0 (good)",
  ]);
  expect(await start("untold")).toEqual([]);
});
