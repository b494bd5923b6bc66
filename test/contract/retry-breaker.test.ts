/** Calls that share a circuit: what opens it, whom it refuses, and who may try it again. */
import { describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import type { CircuitStore } from "../../src/core/shared-circuit.ts";
import { openCircuitStore } from "../../src/journal/circuit-rows.ts";
import { Breaker, type OpenStore } from "../../src/retry/breaker.ts";
import { makeCounted, retryWords, startRetry } from "../support/retrying.ts";
import { waitForCommand, waitForText } from "../support/processes.ts";
import { CallCircuit } from "../support/retry-circuit.ts";
import { killQuietly, openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const DOWN = 69;
const HOUR_MS = 3_600_000;
const LIMIT_MS = 60_000;

interface CallOptions {
  readonly maxAttempts?: number;
  readonly maxElapsedMs?: number;
  /** Circuits for which the run around stands still. */
  readonly pausesOn?: string;
}

function call(
  circuit: CallCircuit,
  command: readonly string[],
  { maxAttempts = 1, maxElapsedMs = 300_000, pausesOn }: CallOptions = {},
) {
  const plan = {
    command,
    options: { breaker: circuit.name },
    backoff: { maxAttempts, maxElapsedMs },
  };
  return startRetry(scene, plan, { env: { WATCHDOG_PAUSES_ON: pausesOn } });
}

/** `sh`: is there, and goes on when the file `go` is. */
function waitingCommand(mark: string) {
  const go = scene.path(`${mark}.go`);
  const counted = makeCounted(scene, `until test -e '${go}'; do sleep 0.02; done`);
  return { ...counted, letGo: () => writeFileSync(go, "") };
}

describe("a circuit", () => {
  test("is opened by three failures in a row, and refuses at once without a start", async () => {
    const circuit = new CallCircuit(scene, "three in a row");
    const { command, attempts } = makeCounted(scene, "exit 7");
    const first = await call(circuit, command, { maxAttempts: 3 }).ended;
    expect([first.status, attempts().length, circuit.state]).toEqual([7, 3, "open"]);
    circuit.openUntil(HOUR_MS);
    const { status, stderr } = await call(circuit, command, { maxAttempts: 5 }).ended;
    expect([status, attempts().length]).toEqual([DOWN, 3]);
    const [subject, span] = ["not started: circuit three in a row", "\\d\\.\\d+ s"];
    expect(stderr).toMatch(
      new RegExp(`^watchdog: retry: ${subject} has been open for ${span}, next trial in 3600 s\n$`),
    );
  });

  test("ends attempts that would follow when it opens between two of them", async () => {
    const circuit = new CallCircuit(scene, "between two");
    const { command, attempts } = makeCounted(scene, "exit 7");
    // The first trial comes within a second, and the waits of these attempts are 10 ms.
    const { status, stderr } = await call(circuit, command, { maxAttempts: 9 }).ended;
    const isRefused = status === DOWN && attempts().length >= 3;
    expect([isRefused, attempts().length < 9]).toEqual([true, true]);
    expect(stderr).toStartWith(
      `watchdog: retry: gave up after ${attempts().length} attempts: ` +
        "the last one exited with status 7, and circuit between two has been open for ",
    );
  });

  test("counts the failures of all processes together", async () => {
    const circuit = new CallCircuit(scene, "together");
    const { command, attempts } = makeCounted(scene, "exit 7");
    await call(circuit, command, { maxAttempts: 2 }).ended;
    expect(circuit.state).toBe("closed");
    await call(circuit, command).ended;
    expect([circuit.state, attempts().length]).toEqual(["open", 3]);
  });

  test("is not opened by failures with a success between them", async () => {
    const circuit = new CallCircuit(scene, "success between");
    const bad = makeCounted(scene, "exit 7");
    await call(circuit, bad.command, { maxAttempts: 2 }).ended;
    await call(circuit, ["true"]).ended;
    await call(circuit, bad.command, { maxAttempts: 2 }).ended;
    expect([circuit.state, bad.attempts().length]).toEqual(["closed", 4]);
  });

  test("is told nothing by a command that is not there, or is wrong", async () => {
    const circuit = new CallCircuit(scene, "says nothing");
    for (const command of [["/no/such"], ["/no/such"], ["sh", "-c", "exit 64"], ["/dev/null"]]) {
      expect((await call(circuit, command).ended).status).not.toBe(DOWN);
    }
    expect(circuit.read()).toBeUndefined();
  });

  test("counts an attempt that its limit has ended", async () => {
    const circuit = new CallCircuit(scene, "limits count");
    const options = { breaker: circuit.name, attemptTimeoutMs: 100 };
    const plan = { command: ["sleep", "9"], options, backoff: { maxAttempts: 3 } };
    expect((await startRetry(scene, plan).ended).status).toBe(124);
    expect(circuit.state).toBe("open");
  });

  test("of the process alone serves where no state directory can be used, told once", async () => {
    const [{ command, attempts }, file] = [
      makeCounted(scene, "exit 7"),
      scene.path("no directory"),
    ];
    writeFileSync(file, "");
    const options = { breaker: "alone", stateDir: file };
    const plan = { command, options, backoff: { maxAttempts: 9 } };
    const { status, stderr } = await startRetry(scene, plan).ended;
    expect([status, attempts().length < 9]).toEqual([DOWN, true]);
    expect(stderr.match(/circuit alone is not shared with others: /g)).toHaveLength(1);
  });
});

describe("when a trial is due", () => {
  test(
    "one of many calls has it, and its success closes the circuit",
    async () => {
      const circuit = new CallCircuit(scene, "one of many");
      circuit.openUntil(-1);
      const { command, attempts, letGo } = waitingCommand("many");
      const calls = Array.from({ length: 8 }, () => call(circuit, command));
      const ended: number[] = [];
      const all = calls.map(async (one) => void ended.push((await one.ended).status));
      await waitFor(() => ended.length === 7, "all but one refused");
      expect([ended.every((status) => status === DOWN), attempts().length]).toEqual([true, 1]);
      expect(circuit.state).toBe("half-open");
      letGo();
      await Promise.all(all);
      expect([ended.at(-1), attempts().length, circuit.state]).toEqual([0, 1, "closed"]);
    },
    LIMIT_MS,
  );

  test("its failure opens the circuit again", async () => {
    const circuit = new CallCircuit(scene, "fails again");
    circuit.openUntil(-1);
    expect((await call(circuit, ["false"]).ended).status).toBe(1);
    expect(circuit.state).toBe("open");
  });

  test("that of a process that was killed is lost, and the next call has it", async () => {
    const circuit = new CallCircuit(scene, "killed holder");
    circuit.openUntil(-1);
    const holder = call(circuit, ["sleep", "94271"]);
    const [sleeper = 0] = await waitForCommand(scene, "sleep 94271");
    expect((await call(circuit, ["true"]).ended).status).toBe(DOWN);
    holder.kill("SIGKILL");
    killQuietly(sleeper);
    await holder.ended;
    expect((await call(circuit, ["true"]).ended).status).toBe(0);
    expect(circuit.state).toBe("closed");
  });

  test("that of a call that was asked to end is given back", async () => {
    const circuit = new CallCircuit(scene, "asked holder");
    circuit.openUntil(-1);
    const holder = call(circuit, ["sleep", "94272"]);
    await waitForCommand(scene, "sleep 94272");
    expect(circuit.read()?.state).toMatchObject({ kind: "half-open", isTrialOut: true });
    holder.kill("SIGTERM");
    expect((await holder.ended).signal).toBe("SIGTERM");
    expect(circuit.read()?.state).toMatchObject({ kind: "half-open", isTrialOut: false });
  });

  test("that of a command that is not there is given back", async () => {
    const circuit = new CallCircuit(scene, "missing holder");
    circuit.openUntil(-1);
    expect((await call(circuit, ["/no/such"]).ended).status).toBe(127);
    expect(circuit.read()?.state).toMatchObject({ kind: "half-open", isTrialOut: false });
  });
});

/** The breaker of this very process. */
function openBreaker(circuit: CallCircuit, openStore: OpenStore = openCircuitStore): Breaker {
  return new Breaker({
    name: circuit.name,
    stateDir: scene.stateDirectory,
    environment: [],
    openStore,
    tell: () => undefined,
  });
}

test("a trial is given back as soon as its attempt has said nothing, before the next wait", () => {
  const circuit = new CallCircuit(scene, "said nothing");
  circuit.openUntil(-1);
  const breaker = openBreaker(circuit);
  expect(breaker.admit({ leavesTrial: false })).toEqual({ kind: "admitted" });
  expect(circuit.read()?.state).toMatchObject({ kind: "half-open", isTrialOut: true });
  breaker.note("nothing");
  expect(circuit.read()?.state).toMatchObject({ kind: "half-open", isTrialOut: false });
  breaker.leave();
});

test("a trial that comes unasked, because it opened just now, is left to those who probe", () => {
  const circuit = new CallCircuit(scene, "opened just now");
  circuit.close();
  const breaker = openBreaker(circuit, (stateDirectory, tell) => {
    const store = openCircuitStore(stateDirectory, tell);
    const read: CircuitStore["read"] = (name) => {
      const seen = store.read(name);
      circuit.openUntil(-1);
      return seen;
    };
    return {
      read,
      list: () => store.list(),
      change: (name, decide) => store.change(name, decide),
      hasChanged: () => store.hasChanged(),
      close: () => store.close(),
    };
  });
  expect(breaker.admit({ leavesTrial: true }).kind).toBe("refused");
  expect(circuit.read()?.state).toMatchObject({ kind: "half-open", isTrialOut: false });
  breaker.leave();
});

describe("a call whose run stands still for the circuit", () => {
  const pausesOn = (circuit: CallCircuit): string => `other ${encodeURIComponent(circuit.name)}`;

  test("waits while it is open, leaves the trial to those who probe, and goes on", async () => {
    const circuit = new CallCircuit(scene, "stands still");
    // A trial is due all the time.
    circuit.openUntil(-1);
    const { command, attempts } = makeCounted(scene, "exit 0");
    const said = { isVerbose: true, breaker: circuit.name };
    const plan = { command, options: said };
    const path = scene.path("stands.err");
    const stderr = Bun.file(path);
    const waiting = scene.startProgram(
      ["sh", "-c", `exec "$@" 2>'${path}'`, "sh", ...retryWords(plan)],
      { env: { WATCHDOG_PAUSES_ON: pausesOn(circuit) } },
    );
    expect(await waitForText(path)).toContain("waiting for the run to stand still");
    expect([attempts(), circuit.state]).toEqual([[], "open"]);
    circuit.close();
    expect([(await waiting.ended).status, attempts()]).toEqual([0, ["1"]]);
    expect(await stderr.text()).not.toContain("not started");
  });

  test("leaves when the total time is over, and nothing was started", async () => {
    const circuit = new CallCircuit(scene, "never closed");
    circuit.openUntil(HOUR_MS);
    const { command, attempts } = makeCounted(scene, "exit 0");
    const options = { pausesOn: pausesOn(circuit), maxElapsedMs: 400 };
    expect((await call(circuit, command, options).ended).status).toBe(DOWN);
    expect(attempts()).toEqual([]);
  });

  test("dies of a signal meanwhile", async () => {
    const circuit = new CallCircuit(scene, "signalled");
    circuit.openUntil(HOUR_MS);
    const record = scene.path("signalled.json");
    const options = { breaker: circuit.name, resultFile: record };
    const env = { WATCHDOG_PAUSES_ON: pausesOn(circuit) };
    const waiting = startRetry(scene, { command: ["true"], options }, { env });
    await waitFor(() => existsSync(record), "the beginning");
    waiting.kill("SIGTERM");
    expect((await waiting.ended).signal).toBe("SIGTERM");
  });

  test("of another name is refused as any other", async () => {
    const circuit = new CallCircuit(scene, "another");
    circuit.openUntil(HOUR_MS);
    const options = { pausesOn: "other one" };
    expect((await call(circuit, ["true"], options).ended).status).toBe(DOWN);
  });
});
