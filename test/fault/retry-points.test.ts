/**
 * Faults of `watchdog retry` before an attempt and before a wait: no attempt is lost or made twice,
 * the record says how far it came, and a trial that it had of the circuit is somebody else's. Each
 * fault has left its evidence, with the state of that moment.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { ask } from "../support/ask.ts";
import { inState } from "../support/own-state.ts";
import { readLines } from "../support/processes.ts";
import { type Ended, FAULTS, openScene, RELEASE, type Scene } from "../support/scene.ts";
import { circuitOf, DEP, DOWN } from "../support/shared-circuit.ts";
import { waitFor } from "../support/wait-for.ts";
import { type Evidence, readEvidence } from "./fault-scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;
const WRAPPER_ERROR = 125;

interface Struck {
  readonly state: Scene;
  readonly ended: Ended;
  readonly evidence: readonly Evidence[];
  /** Of the attempts that were begun. */
  readonly attempts: readonly string[];
  readonly record: ReturnType<typeof JSON.parse>;
}

/** Three attempts at most of a command that notes each, then does as it is told. */
async function strike(state: Scene, fault: string | undefined, script = "exit 9"): Promise<Struck> {
  const name = `${state.stateDirectory}.${fault?.replaceAll(/[#:]/g, "-") ?? "none"}`;
  const words = ["retry", "--breaker", DEP, "--max-attempts", "3", "--backoff", "10ms..20ms"];
  const command = ["sh", "-c", `echo "$WATCHDOG_ATTEMPT" >>'${name}.attempts'; ${script}`];
  const ended = await ask(state, [...words, "--result-file", `${name}.json`, "--", ...command], {
    binary: FAULTS,
    env: { WATCHDOG_FAULT: fault, WATCHDOG_FAULT_DIR: `${name}.faults` },
  });
  return {
    state,
    ended,
    evidence: readEvidence(`${name}.faults`),
    attempts: readLines(`${name}.attempts`),
    record: JSON.parse(readFileSync(`${name}.json`, "utf8")),
  };
}

async function failuresOf({ state }: Struck): Promise<unknown> {
  const { status, stdout } = await ask(state, ["circuit", "show", DEP, "--json"]);
  return status === 1 ? 0 : JSON.parse(stdout.toString()).consecutive_failures;
}

interface Row {
  readonly at: string;
  readonly state: Readonly<Record<string, unknown>>;
  /** Attempts that were made before. */
  readonly made: number;
}

const ROWS: readonly Row[] = [
  { at: "retry.attempt#1", state: { attempt: 1 }, made: 0 },
  { at: "retry.attempt#2", state: { attempt: 2 }, made: 1 },
  { at: "retry.wait#1", state: { attempt: 2, delayMs: expect.any(Number) }, made: 1 },
  { at: "retry.wait#2", state: { attempt: 3, delayMs: expect.any(Number) }, made: 2 },
];

describe.each(ROWS.map((row) => [row.at, row] as const))("%s", (at, { state: seen, made }) => {
  const before = ["1", "2", "3"].slice(0, made);

  const struckBy = async (act: string): Promise<Struck> => {
    const state = inState(scene, `${at.replace("#", "-")}-${act.split(":")[0]}`);
    const struck = await strike(state, `${at}=${act}`);
    const [point, nth] = at.split("#");
    expect(struck.evidence).toEqual([{ point: point ?? "", nth: Number(nth), act, state: seen }]);
    return struck;
  };

  test.each([
    ["throw", /^watchdog: bug: fault injected at [^\n]+\n$/],
    ["eio", /^watchdog: error: no attempt can be made: EIO: [^\n]+\nwatchdog: hint: [^\n]+\n$/],
    [
      "enospc",
      /^watchdog: error: no attempt can be made: ENOSPC: [^\n]+\nwatchdog: hint: [^\n]+\n$/,
    ],
  ] as const)("that fails by %s ends it with 125, and its record says so", async (act, says) => {
    const struck = await struckBy(act);
    const { ended, attempts, record } = struck;
    expect([ended.status, attempts]).toEqual([WRAPPER_ERROR, before]);
    expect(ended.stderr).toMatch(says);
    expect(record).toMatchObject({
      state: "ended",
      outcome: "wrapper_error",
      exit_status: WRAPPER_ERROR,
      attempt_count: made,
    });
    expect(await failuresOf(struck)).toBe(made);
  });

  test("that is its death leaves the attempts that were made, and what they count", async () => {
    const struck = await struckBy("kill");
    expect([struck.ended.signal, struck.attempts]).toEqual(["SIGKILL", before]);
    expect(struck.record).toMatchObject({ state: "running", outcome: null });
    expect(await failuresOf(struck)).toBe(made);
    const next = await strike(struck.state, undefined, "exit 0");
    expect([next.ended.status, next.attempts, await failuresOf(next)]).toEqual([0, ["1"], 0]);
  });

  test("that takes its time changes nothing else", async () => {
    const struck = await struckBy("delay:200");
    expect([struck.ended.status, struck.attempts]).toEqual([9, ["1", "2", "3"]]);
    expect(await circuitOf(struck.state)).toMatchObject({ state: "open" });
  });

  test("that is met by a TERM: no later attempt begins", async () => {
    const { ended, attempts, record } = await struckBy("term");
    // Its command may have ended by itself just before.
    expect([143, 9]).toContain(ended.status);
    expect(attempts.length).toBeLessThanOrEqual(made + 1);
    expect(record).toMatchObject({ state: "ended", outcome: "stopped", because: "terminated" });
  });
});

test("without a fault the same call leaves no marker, and ends as its last attempt", async () => {
  const { ended, evidence, attempts, record } = await strike(inState(scene, "none"), undefined);
  expect([ended.status, evidence, attempts]).toEqual([9, [], ["1", "2", "3"]]);
  expect(ended.stderr).toMatch(/^watchdog: retry: gave up after 3 attempts [^\n]+\n$/);
  expect(record).toMatchObject({ state: "ended", outcome: "failed", attempt_count: 3 });
});

describe("the trial of an open circuit", () => {
  /** Three failures open it; the first wait is a second at most. */
  async function openUntilDue(name: string): Promise<Scene> {
    const state = inState(scene, name);
    expect((await strike(state, undefined)).ended.status).toBe(9);
    await waitFor(async () => (await circuitOf(state)).retry_in_ms === 0, "a trial that is due");
    return state;
  }

  async function call(state: Scene, command: readonly string[]): Promise<number> {
    const words = [RELEASE, "retry", "--breaker", DEP, "--max-attempts", "1", "--", ...command];
    return (await state.startProgram(words).ended).status;
  }

  test.each(["kill", "throw", "eio"])(
    "that was with a call which ended by %s before its attempt is the next one's at once",
    async (act) => {
      const state = await openUntilDue(`trial-${act}`);
      const { evidence, attempts } = await strike(state, `retry.attempt=${act}`, "exit 0");
      expect(evidence).toMatchObject([{ point: "retry.attempt", act, state: { attempt: 1 } }]);
      expect(attempts).toEqual([]);
      expect(await circuitOf(state)).toMatchObject({
        state: "half-open",
        is_trial_out: act === "kill",
      });
      expect(await call(state, ["true"])).toBe(0);
      expect((await circuitOf(state)).state).toBe("closed");
    },
    LIMIT_MS,
  );

  test(
    "is with one call alone: another one beside it is refused",
    async () => {
      const state = await openUntilDue("trial-slow");
      const gate = scene.path("trial.gate");
      const waits = `until [ -e '${gate}' ]; do sleep 0.02; done`;
      const slow = strike(state, "retry.attempt=delay:200", `${waits}; exit 0`);
      await waitFor(async () => (await circuitOf(state)).is_trial_out, "a trial that is out");
      expect(await call(state, ["touch", scene.path("never-ran")])).toBe(DOWN);
      writeFileSync(gate, "");
      const { ended, evidence } = await slow;
      expect([ended.status, evidence.length]).toEqual([0, 1]);
      expect((await circuitOf(state)).state).toBe("closed");
    },
    LIMIT_MS,
  );
});
