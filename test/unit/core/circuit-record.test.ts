/** Circuits as text: what comes back, on which clock, and what is no circuit. */
import { describe, expect, test } from "bun:test";
import {
  cutForPeople,
  LONGEST_CIRCUIT_TEXT,
  LONGEST_FOR_PEOPLE,
  parseCircuit,
  renderCircuit,
} from "../../../src/core/circuit-record.ts";
import type { CircuitState } from "../../../src/core/circuit.ts";
import { LONGEST_KEY_NAME } from "../../../src/core/lease-key.ts";
import { PROBE_FAILURES } from "../../../src/core/probe-result.ts";
import type { SharedCircuit } from "../../../src/core/shared-circuit.ts";
import type { MonotonicAt, WallAt } from "../../../src/core/time.ts";
import {
  BARE_CIRCUIT,
  CIRCUIT,
  CIRCUIT_CLOCK as CLOCK,
  CIRCUIT_STATES,
  listCircuits,
  PROBE_NOTE,
  TRIAL_HOLDER,
} from "../../support/circuit-samples.ts";

const at = (ms: number): MonotonicAt => ms as MonotonicAt;

const parse = (text: string, clock = CLOCK) => parseCircuit(text, CIRCUIT.name, clock);

/** A text of a circuit with other fields. */
function changed(
  fields: Readonly<Record<string, unknown>>,
  circuit: SharedCircuit = CIRCUIT,
): string {
  const whole = JSON.parse(renderCircuit(circuit, CLOCK)) as object;
  return JSON.stringify({ ...whole, ...fields });
}

/** Every instant of CLOCK_MONOTONIC in it so many milliseconds later. */
function moved(circuit: SharedCircuit, offsetMs: number): unknown {
  const names = ["openedAt", "startedAt", "retryAt", "lastGoodAt", "at"];
  return JSON.parse(JSON.stringify(circuit), (name, value: unknown) =>
    names.includes(name) && typeof value === "number" ? value + offsetMs : value,
  );
}

describe("a circuit that was written", () => {
  test("is read again by the same boot, whatever it holds, and however late", () => {
    const later = { ...CLOCK, nowMs: at(99_000), wallMs: 5 as WallAt };
    const circuits = listCircuits();
    const wrong = circuits.filter((circuit) => {
      const reading = parse(renderCircuit(circuit, CLOCK), later);
      return !Bun.deepEquals(reading, { kind: "read", circuit }, true);
    });
    expect([wrong, circuits.length]).toEqual([[], 6 * 2 * 2 * 2 * 3]);
  });

  test("is called by the name under which it is kept", () => {
    const reading = parseCircuit(renderCircuit(CIRCUIT, CLOCK), "other", CLOCK);
    expect(reading).toMatchObject({ circuit: { name: "other" } });
  });

  test("has the words of the journal", () => {
    const circuit = { ...CIRCUIT, trialBy: TRIAL_HOLDER };
    expect(JSON.parse(renderCircuit(circuit, CLOCK))).toEqual({
      format: 1,
      boot_id: "this boot",
      time_namespace: "ours",
      monotonic_ms: 70_000.5,
      wall_ms: 1_800_000_000_000,
      state: "open",
      opened_at_ms: 60_000.25,
      retry_at_ms: 75_000.5,
      backoff: { started_at_ms: 60_000.25, attempts: 3, waits: 2 },
      changed_wall_ms: 1_799_999_990_000,
      settings: {
        failure_threshold: 3,
        failure_window: { failures: 5, size: 20 },
        success_threshold: 1,
        backoff: {
          initial_ms: 1_000,
          cap_ms: 30_000,
          factor: 2,
          max_attempts: 20,
          max_elapsed_ms: 300_000,
        },
      },
      settings_hash: "0123456789abcdef",
      target: "http://localhost:8000/health",
      job: "nightly",
      probes: 41,
      good_probes: 38,
      last_good_at_ms: 50_000.125,
      last_probe: {
        because: "status",
        detail: "found 503, expected 200-299",
        at_ms: 69_000.75,
        wall_ms: 1_799_999_999_000,
      },
      trial_by: {
        pid: 4711,
        start_time: 123_456,
        boot_id: "this boot",
        pid_namespace: "4026531836",
        at_ms: 69_500,
      },
    });
    const window = [false, true];
    const closed = { ...BARE_CIRCUIT, state: { ...CIRCUIT_STATES[1], window } as CircuitState };
    expect(JSON.parse(renderCircuit(closed, CLOCK))).toMatchObject({
      consecutive_failures: 2,
      window: "+-",
      settings: { failure_window: null },
      settings_hash: null,
    });
  });

  test("is read with fields that this version does not know", () => {
    const last_probe = { because: "good", detail: "", at_ms: 1, wall_ms: 1, later: 1 };
    expect(parse(changed({ later: { a: 1 }, last_probe })).kind).toBe("read");
  });

  test.each([
    ["another boot", { bootId: "the next one" }],
    ["another time namespace", { timeNamespace: "theirs" }],
    ["a kernel that has no time namespaces", { timeNamespace: null }],
  ])("keeps its spans where the clock is that of %s", (_, where) => {
    // One second went by, and the clock begins anew.
    const wallMs = (CLOCK.wallMs + 1_000) as WallAt;
    const reader = { ...CLOCK, ...where, nowMs: at(2_000), wallMs };
    for (const circuit of listCircuits()) {
      const reading = parse(renderCircuit(circuit, CLOCK), reader);
      const offsetMs = 2_000 - 1_000 - CLOCK.nowMs;
      expect(reading).toEqual({ kind: "read", circuit: moved(circuit, offsetMs) as SharedCircuit });
    }
    const open = parse(renderCircuit(CIRCUIT, CLOCK), reader);
    expect(open).toMatchObject({
      circuit: {
        // Opened 11 s ago, and due in 4 s.
        state: { openedAt: 2_000 - 11_000.25, retryAt: 6_000 },
        changedAt: CIRCUIT.changedAt,
        lastProbe: { at: 2_000 - 1_999.75, wallAt: PROBE_NOTE.wallAt },
      },
    });
  });

  test("lets no time go by where the wall clock has gone back", () => {
    const reader = { ...CLOCK, bootId: "next", nowMs: at(2_000), wallMs: 7 as WallAt };
    const reading = parse(renderCircuit(CIRCUIT, CLOCK), reader);
    expect(reading).toMatchObject({ circuit: { state: { retryAt: 7_000 } } });
  });
});

describe("the note of the last probe", () => {
  test("has any reason that a probe may have", () => {
    for (const because of ["good", ...PROBE_FAILURES] as const) {
      const lastProbe = { ...PROBE_NOTE, because };
      const reading = parse(renderCircuit({ ...CIRCUIT, lastProbe }, CLOCK));
      expect(reading).toMatchObject({ circuit: { lastProbe: { because } } });
    }
  });

  test("with a word of a later version is left out, and the state is kept", () => {
    const last_probe = { because: "too-warm", detail: "", at_ms: 1, wall_ms: 1 };
    expect(parse(changed({ last_probe }))).toEqual({
      kind: "read",
      circuit: { ...CIRCUIT, lastProbe: null },
    });
  });
});

describe("what only people read", () => {
  test("is cut, and what is compared is not: the longest text can be read", () => {
    const long = {
      ...CIRCUIT,
      state: {
        kind: "closed",
        consecutiveFailures: 999,
        window: Array.from({ length: 1_000 }, () => true),
      },
      job: "\u0001".repeat(LONGEST_KEY_NAME),
      target: "\ud800".repeat(5_000),
      lastProbe: { ...PROBE_NOTE, detail: "\u0000".repeat(5_000) },
      trialBy: TRIAL_HOLDER,
    } as const;
    const text = renderCircuit(long, CLOCK);
    expect(text.length).toBeLessThan(LONGEST_CIRCUIT_TEXT / 2);
    const reading = parse(text);
    if (reading.kind !== "read") throw new Error(`found ${JSON.stringify(reading)}`);
    expect(reading.circuit.job).toBe(long.job);
    expect(reading.circuit.state).toEqual(long.state);
    expect(reading.circuit.lastProbe?.detail).toHaveLength(LONGEST_FOR_PEOPLE);
    expect(reading.circuit.target).toEndWith("…");
  });

  test("is cut between letters, and only where it is longer than allowed", () => {
    const whole = "🐕".repeat(LONGEST_FOR_PEOPLE);
    expect(cutForPeople(whole)).toBe(whole);
    expect(cutForPeople(`${whole}x`)).toBe(`${"🐕".repeat(LONGEST_FOR_PEOPLE - 1)}…`);
    expect(cutForPeople(`x${whole}`)).toBe(`x${"🐕".repeat(LONGEST_FOR_PEOPLE - 2)}…`);
    expect(cutForPeople("")).toBe("");
  });
});

describe("a text that is no circuit", () => {
  test("of a newer version is told apart, whatever else it holds", () => {
    const newer = { kind: "newer", format: 2 } as const;
    expect(parse(changed({ format: 2, state: "ajar" }))).toEqual(newer);
    expect(parse('{"format":2}')).toEqual(newer);
  });

  test.each(["", "{", "null", "[]", "3", '"open"', "\0"])("is unreadable: %j", (text) => {
    expect(parse(text)).toEqual({ kind: "unreadable", reason: "it is no JSON object" });
  });

  test("that is too long is not even parsed", () => {
    const text = changed({ padding: "x".repeat(LONGEST_CIRCUIT_TEXT) });
    expect(parse(text)).toEqual({ kind: "unreadable", reason: "it is too long" });
  });

  test("that was cut off anywhere is unreadable", () => {
    const text = renderCircuit({ ...CIRCUIT, trialBy: TRIAL_HOLDER }, CLOCK);
    const kinds = Array.from(text, (_, length) => parse(text.slice(0, length)).kind);
    expect(new Set(kinds)).toEqual(new Set(["unreadable"]));
  });

  const { backoff, ...settings } = {
    failure_threshold: 3,
    failure_window: null,
    success_threshold: 1,
    backoff: { initial_ms: 1, cap_ms: 2, factor: 2, max_attempts: 3, max_elapsed_ms: 4 },
  };
  const note = { because: "good", detail: "", at_ms: 1, wall_ms: 1 };
  const trial = { pid: 1, start_time: 0, boot_id: "b", pid_namespace: null, at_ms: 1 };

  test("the shapes of the table below are right but for what is changed in them", () => {
    const fields = { settings: { ...settings, backoff }, last_probe: note, trial_by: trial };
    expect(parse(changed(fields)).kind).toBe("read");
  });

  test.each<[string, unknown]>([
    ["format", undefined],
    ["format", 0],
    ["format", "1"],
    ["boot_id", ""],
    ["time_namespace", undefined],
    ["monotonic_ms", "7"],
    ["wall_ms", null],
    ["state", "ajar"],
    ["changed_wall_ms", null],
    ["settings", undefined],
    ["settings", []],
    ["settings", { ...settings, backoff, failure_threshold: 0 }],
    ["settings", { ...settings, backoff, failure_window: { failures: 0, size: 1 } }],
    ["settings", { ...settings, backoff, failure_window: { failures: 1 } }],
    ["settings", { ...settings, backoff, success_threshold: 0.5 }],
    ["settings", settings],
    ["settings", { ...settings, backoff: { ...backoff, initial_ms: -1 } }],
    ["settings", { ...settings, backoff: { ...backoff, cap_ms: null } }],
    ["settings", { ...settings, backoff: { ...backoff, factor: "2" } }],
    ["settings", { ...settings, backoff: { ...backoff, max_attempts: 0 } }],
    ["settings", { ...settings, backoff: { ...backoff, max_elapsed_ms: undefined } }],
    ["settings_hash", ""],
    ["target", undefined],
    ["job", 7],
    ["probes", -1],
    ["good_probes", 0.5],
    ["last_good_at_ms", undefined],
    ["last_good_at_ms", "soon"],
    ["last_probe", []],
    ["last_probe", { ...note, because: "" }],
    ["last_probe", { ...note, detail: null }],
    ["last_probe", { ...note, at_ms: undefined }],
    ["last_probe", { ...note, wall_ms: "1" }],
    ["trial_by", undefined],
    ["trial_by", { ...trial, pid: 0 }],
    ["trial_by", { ...trial, start_time: -1 }],
    ["trial_by", { ...trial, boot_id: "" }],
    ["trial_by", { ...trial, pid_namespace: 7 }],
    ["trial_by", { ...trial, at_ms: null }],
  ])("names the field that is wrong: %s of %j", (name, value) => {
    expect(parse(changed({ [name]: value }))).toEqual({
      kind: "unreadable",
      reason: `field '${name}' is missing or of the wrong shape`,
    });
  });

  const [, closed, open, half, , permanent] = CIRCUIT_STATES as readonly [
    CircuitState,
    CircuitState,
    CircuitState,
    CircuitState,
    CircuitState,
    CircuitState,
  ];
  const waited = { started_at_ms: 1, attempts: 1, waits: 1 };

  test.each<[CircuitState, Readonly<Record<string, unknown>>]>([
    [closed, { consecutive_failures: -1 }],
    [closed, { consecutive_failures: 1.5 }],
    [closed, { window: "+x" }],
    [closed, { window: undefined }],
    [open, { opened_at_ms: null }],
    [open, { retry_at_ms: "soon" }],
    [open, { backoff: undefined }],
    [open, { backoff: [] }],
    [open, { backoff: { ...waited, started_at_ms: null } }],
    [open, { backoff: { ...waited, attempts: -1 } }],
    [open, { backoff: { ...waited, waits: 0.5 } }],
    [half, { successes: -1 }],
    [half, { is_trial_out: 1 }],
    [permanent, { because: "tired" }],
    [permanent, { retry_at_ms: undefined }],
  ])("has not the fields of its state: %j with %j", (state, fields) => {
    expect(parse(changed(fields, { ...CIRCUIT, state }))).toEqual({
      kind: "unreadable",
      reason: `it has not the fields of a circuit that is '${state.kind}'`,
    });
  });
});
