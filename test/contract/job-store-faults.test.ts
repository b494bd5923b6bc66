/**
 * Faults at each numbered place of a job's transactions, in a process of its own. A fault counts
 * only with the evidence that it has written itself: which step it was, what its transaction held,
 * and what everybody else saw of the step at that moment. Then comes what is left, and what the
 * next run makes of it.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { JOB_ID, jobOf, partsOf, recall, runJobProgram, statesOf } from "../support/job-scene.ts";
import { inspect, openJournalScene } from "../support/journal-scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

const LIMIT_MS = 60_000;
const STEPS = ["a", "b", "c"] as const;
type Step = (typeof STEPS)[number];

interface Marker {
  readonly point: string;
  readonly step?: string;
  readonly nth: number;
  readonly act: string;
  readonly state: Readonly<Record<string, unknown>>;
}

async function runWithFault(fault: string, how = "apart", state = scene.newState()) {
  const directory = scene.newState();
  const run = await runJobProgram([state, how, "1", ...STEPS], {
    env: { WATCHDOG_FAULT: fault, WATCHDOG_FAULT_DIR: directory },
  });
  const markers = readdirSync(directory).map((name): Marker =>
    JSON.parse(readFileSync(`${directory}/${name}`, "utf8")),
  );
  return { state, run, markers };
}

/** Run 2 goes on. @returns the steps that it ran */
async function goOn(state: string, how = "apart"): Promise<string[]> {
  const run = await runJobProgram([state, how, "2", ...STEPS]);
  expect([run.status, run.stderr, run.lines.at(-1)]).toEqual([0, "", "ended"]);
  return run.lines.filter((line) => line.startsWith("runs ")).map((line) => line.slice(5));
}

function before(step: Step): readonly Step[] {
  return STEPS.slice(0, STEPS.indexOf(step));
}

/** As `statesOf` gives them: those before are done, those after have not begun. */
function expectStates(state: string, step: Step, is: string): void {
  const after = STEPS.slice(STEPS.indexOf(step) + 1);
  expect(statesOf(state)).toEqual([
    ...before(step).map((one) => `${one} done 1`),
    `${step} ${is}`,
    ...after.map((one) => `${one} pending 0`),
  ]);
}

interface Row {
  readonly point: string;
  /** The state of the step as everybody sees it when the fault strikes, and after it. */
  readonly seen: string;
  readonly pending: Readonly<Record<string, unknown>> | null;
  readonly left: string;
  /** Whether its command has been started by then. */
  readonly hasRun: boolean;
  /** Whether its command runs in the next run. */
  readonly runsAgain: boolean;
}

const ROWS: readonly Row[] = [
  {
    point: "step.started.commit",
    seen: "pending",
    pending: { state: "running", artifacts: 0 },
    left: "pending 0",
    hasRun: false,
    runsAgain: true,
  },
  {
    point: "step.started",
    seen: "running",
    pending: null,
    left: "running 1",
    hasRun: false,
    runsAgain: true,
  },
  {
    point: "step.completion.commit",
    seen: "running",
    pending: { state: "done", artifacts: 2 },
    left: "running 1",
    hasRun: true,
    runsAgain: true,
  },
  {
    point: "step.completed",
    seen: "done",
    pending: null,
    left: "done 1",
    hasRun: true,
    runsAgain: false,
  },
];

const CASES = ROWS.flatMap((row) =>
  STEPS.map((step): [string, Step, Row] => [row.point, step, row]),
);

describe.each(["kill", "throw", "eio", "enospc"])("a fault that is a %s", (act) => {
  test.each(CASES)(
    "at %s of %s leaves that step whole, and the next run goes on from there",
    async (point, step, row) => {
      const { state, run, markers } = await runWithFault(`${point}@${step}=${act}`);
      const transaction = row.pending === null ? "committed" : "open";
      const { seen: stateInDatabase, pending } = row;
      const seen = { job: JOB_ID, step, attempt: 1, generation: 1 };
      const evidence = { ...seen, transaction, stateInDatabase, pending };
      expect(markers).toEqual([{ point, step, nth: 1, act, state: evidence }]);
      expect(run.signal).toBe(act === "kill" ? "SIGKILL" : null);
      const ran = [...before(step), ...(row.hasRun ? [step] : [])].map((one) => `runs ${one}`);
      expect(run.lines.filter((line) => line.startsWith("runs "))).toEqual(ran);
      if (act !== "kill") expect(run.lines.join("\n")).toContain("fault injected");
      expectStates(state, step, row.left);
      expect(partsOf(jobOf(state))).toEqual([]);
      const again = STEPS.slice(STEPS.indexOf(step) + (row.runsAgain ? 0 : 1));
      expect(await goOn(state)).toEqual([...again]);
      expect(jobOf(state).record.state).toBe("done");
      expect(partsOf(jobOf(state))).toEqual([]);
      expect(inspect(state, "PRAGMA integrity_check")).toEqual([["ok"]]);
    },
    LIMIT_MS,
  );
});

describe("where the end of a step and the start of the next are one transaction", () => {
  test.each([
    ["step.completion.commit@a", ["a running 1", "b pending 0", "c pending 0"], ["a", "b", "c"]],
    ["step.started.commit@b", ["a running 1", "b pending 0", "c pending 0"], ["a", "b", "c"]],
    ["step.completed@a", ["a done 1", "b running 1", "c pending 0"], ["b", "c"]],
    ["step.started@b", ["a done 1", "b running 1", "c pending 0"], ["b", "c"]],
  ])(
    "a kill at %s leaves both or none",
    async (at, left, again) => {
      const { state, run, markers } = await runWithFault(`${at}=kill`, "joined");
      expect([run.signal, markers.length, run.lines]).toEqual(["SIGKILL", 1, ["runs a"]]);
      expect(statesOf(state)).toEqual(left);
      expect(partsOf(jobOf(state))).toEqual([]);
      expect(await goOn(state, "joined")).toEqual(again);
      expect(jobOf(state).record.state).toBe("done");
    },
    LIMIT_MS,
  );
});

describe("the beginning and the end of a job", () => {
  test.each([
    ["job.begin.commit", { seen: null, kind: "none", hasMarker: false, again: ["a", "b", "c"] }],
    ["job.begun", { seen: "running", kind: "known", hasMarker: false, again: ["a", "b", "c"] }],
    ["job.finish.commit", { seen: "running", kind: "known", hasMarker: true, again: [] }],
    ["job.finished", { seen: "done", kind: "known", hasMarker: true, again: [] }],
  ] as const)(
    "a kill at %s is resumed, or was no job yet",
    async (point, { seen, kind, hasMarker, again }) => {
      const { state, run, markers } = await runWithFault(`${point}=kill`);
      expect(run.signal).toBe("SIGKILL");
      expect(markers).toMatchObject([{ point, state: { job: JOB_ID, stateInDatabase: seen } }]);
      expect((await recall(state)).kind).toBe(kind);
      expect(existsSync(`${state}/jobs/nightly`)).toBe(hasMarker);
      if (point === "job.finished") return expect(jobOf(state).record.state).toBe("done");
      expect(await goOn(state)).toEqual([...again]);
      expect(jobOf(state).record.state).toBe("done");
      expect(existsSync(`${state}/jobs/nightly`)).toBe(false);
    },
    LIMIT_MS,
  );

  test.each(["file.create", "file.fsync", "file.rename"])(
    "no step is started where the marker cannot be written (%s), and the job is there",
    async (point) => {
      const { state, run } = await runWithFault(`${point}=enospc`);
      const [line = ""] = run.lines;
      expect(JSON.parse(line)).toMatchObject({ kind: "unwritten", because: "marker" });
      expect(run.lines.slice(1)).toEqual(["ended"]);
      expect(statesOf(state)).toEqual(["a pending 0", "b pending 0", "c pending 0"]);
      expect(await goOn(state)).toEqual(["a", "b", "c"]);
    },
    LIMIT_MS,
  );

  test(
    "a kill within the decisions of a resume leaves none of them",
    async () => {
      const { state } = await runWithFault("step.started@b=kill");
      const before = inspect(state, "SELECT * FROM steps");
      const { run, markers } = await runWithFault("job.adopt.commit=kill", "apart", state);
      expect([run.signal, run.lines]).toEqual(["SIGKILL", []]);
      expect(markers).toMatchObject([
        { state: { steps: ["b"], stateInDatabase: "running", transaction: "open" } },
      ]);
      expect(inspect(state, "SELECT * FROM steps")).toEqual(before);
      expect(await goOn(state)).toEqual(["b", "c"]);
    },
    LIMIT_MS,
  );
});

describe("the test itself", () => {
  test(
    "sees artifacts that were committed before the end of their step",
    async () => {
      const { state, run, markers } = await runWithFault("broken.completion@b=kill", "broken");
      expect([run.signal, markers.length]).toEqual(["SIGKILL", 1]);
      expect(partsOf(jobOf(state))).toEqual(["b is running with 2 artifacts"]);
    },
    LIMIT_MS,
  );

  test(
    "sees a fault that did not strike: it leaves no evidence, and nothing is left to do",
    async () => {
      const { run, markers, state } = await runWithFault("step.completed@d=kill");
      expect([markers, run.lines]).toEqual([[], ["runs a", "runs b", "runs c", "ended"]]);
      expect(jobOf(state).record.state).toBe("done");
    },
    LIMIT_MS,
  );
});

describe("a fault plan", () => {
  test.each([
    ["step.started@b=kill", "b", 1],
    ["step.started#2=kill", "b", 2],
    ["step.started@b#2=kill", undefined, 0],
    ["step.started@b#2=kill,step.started@c=kill", "c", 1],
    ["step.started.commit@b=throw,step.started@b=kill", "b", 1],
  ])(
    "%s strikes the step that it names, the time that it names",
    async (plan, step, nth) => {
      const { markers } = await runWithFault(plan);
      const [marker] = markers;
      expect([marker?.state["step"], marker?.nth ?? 0]).toEqual([step, nth]);
    },
    LIMIT_MS,
  );

  test("that is none is told", async () => {
    const { run } = await runWithFault("step.started@=kill");
    expect(run.lines.join()).toContain("expected point[@step][#n]=act");
  });
});
