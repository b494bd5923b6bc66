/** Circuits in words, and under the names of `--json`. */
import { describe, expect, test } from "bun:test";
import {
  renderBrokenCircuits,
  renderCircuitList,
  renderCircuitShow,
  renderReset,
  sayUnknown,
} from "../../../src/cli/render-circuit.ts";
import { renderInstant } from "../../../src/cli/render-words.ts";
import { decideReset } from "../../../src/core/circuit-reset.ts";
import type { MonotonicAt, WallAt } from "../../../src/core/time.ts";
import { retryInMs, showCircuit } from "../../../src/inspect/circuit-facts.ts";
import {
  CHANGED_AT,
  closedCircuit,
  halfOpenCircuit,
  NOW_AT,
  OPENED_AT,
  openCircuit,
  permanentCircuit,
  SETTINGS,
  viewOf,
} from "../../support/circuit-views.ts";

const SINCE = `since ${renderInstant(CHANGED_AT)}`;
const OPEN_SINCE = `since ${renderInstant(OPENED_AT)}`;
const EVIL = "\u001b[2J\nwatchdog: all is well";

describe("the list", () => {
  test("has a line a circuit, in columns", () => {
    const views = [
      viewOf(closedCircuit(), { isProbed: true }),
      viewOf(openCircuit({ name: "api-2" })),
      viewOf(halfOpenCircuit({ target: null }), { isProbed: undefined }),
      viewOf(permanentCircuit({ lastProbe: null })),
    ];
    const last = "refused 2 s ago: 127.0.0.1:8080: connection refused";
    const target = "http://127.0.0.1:8080/health";
    const none = "-".padEnd(target.length);
    expect(renderCircuitList(views).trimEnd().split("\n")).toEqual([
      `api    closed     ${SINCE}  1 failure           probed         ${target}  ${last}`,
      `api-2  open       ${OPEN_SINCE}  next trial in 12 s  not probed     ${target}  ${last}`,
      `api    half-open  ${OPEN_SINCE}  trial is out        prober unread  ${none}  ${last}`,
      `api    permanent  ${OPEN_SINCE}  next trial now      not probed     ${target}  never probed`,
    ]);
  });

  test("says where there is none", () => {
    expect(renderCircuitList([])).toBe("no circuit is known\n");
  });

  test("of status tells what is waited for and why", () => {
    expect(renderBrokenCircuits([viewOf(openCircuit())])).toEqual([
      `  api  open ${OPEN_SINCE}  next trial in 12 s  ` +
        "refused 2 s ago: 127.0.0.1:8080: connection refused",
    ]);
  });
});

describe("a block", () => {
  test("of an open circuit tells all that is known of it", () => {
    expect(renderCircuitShow(viewOf(openCircuit()))).toBe(
      [
        `api  open ${OPEN_SINCE}`,
        "  why       too many failures: nothing starts, next trial in 12 s",
        "  attempts  4 of 20, 40 s of 5 min",
        "  last      refused 2 s ago: 127.0.0.1:8080: connection refused",
        "  good      45 s ago; 9 of 12 probes",
        "  probed    by nobody now",
        "  target    http://127.0.0.1:8080/health",
        "  opens     after 3 failures in a row",
        "  closes    after 2 good trials",
        "  trials    1 s to 30 s, times 2 each; 20 at most, for 5 min",
        "  settings  0123456789abcdef, of job nightly",
        "",
      ].join("\n"),
    );
  });

  test("of a closed one tells how near it is to opening", () => {
    const settings = { ...SETTINGS, failureWindow: { failures: 5, size: 20 } };
    const state = { kind: "closed", consecutiveFailures: 1, window: [true, false, true] } as const;
    const text = renderCircuitShow(viewOf(closedCircuit({ settings, state }), { isProbed: true }));
    expect(text).toContain(
      "  why       everything goes through: 1 of 3 failures in a row, 2 of 5 among the last 20\n",
    );
    expect(text).toContain("  opens     after 3 failures in a row, or 5 of the last 20\n");
    expect(text).toContain("  probed    by somebody now\n");
    expect(text).not.toContain("attempts");
  });

  test("of a half-open one names who makes the trial", () => {
    const text = renderCircuitShow(viewOf(halfOpenCircuit()));
    expect(text).toContain(
      "  why       one trial is out and decides, with 1 of 2 good ones that close it; " +
        "nothing else starts\n  trial     by pid 77, 1 s ago\n",
    );
  });

  test("of a permanent one says which bound was reached, and what that means", () => {
    const state = permanentCircuit().state as Extract<
      ReturnType<typeof permanentCircuit>["state"],
      { kind: "permanent" }
    >;
    const bounds = { "max-attempts": "as many trials", "max-elapsed": "all the time" } as const;
    for (const [because, bound] of Object.entries(bounds)) {
      const changed = { ...state, because } as typeof state;
      expect(renderCircuitShow(viewOf(permanentCircuit({ state: changed })))).toContain(
        `it did not come back in ${bound} as it was given (${because}): who waited has given ` +
          "up; for who comes now, next trial now\n",
      );
    }
  });

  test("of one that only calls have used names no target", () => {
    const ofCalls = openCircuit({ settingsHash: null, target: null, job: null });
    const text = renderCircuitShow(viewOf(ofCalls));
    expect(text).toContain("  settings  of no probe: those of the next one\n");
    expect(text).not.toContain("target");
  });

  test("cannot be made to write elsewhere on the terminal", () => {
    const note = { because: "status", detail: EVIL, at: NOW_AT, wallAt: CHANGED_AT } as const;
    const evil = openCircuit({ name: EVIL, target: EVIL, job: EVIL, lastProbe: note });
    for (const text of [
      renderCircuitShow(viewOf(evil)),
      renderCircuitList([viewOf(evil)]),
      renderBrokenCircuits([viewOf(evil)]).join("\n"),
    ]) {
      expect(/[^\x20-\x7e\n]/.test(text)).toBe(false);
      expect(text).not.toContain("\nwatchdog");
    }
  });
});

describe("the next trial", () => {
  test.each([
    ["is waited for", 112_000, 12_000],
    ["may be made at the instant itself", 100_000, 0],
    ["may be made later", 20_000, 0],
    ["does not wait for an instant of another clock", 900_000, 0],
  ])("%s", (_, retryAt, expected) => {
    const state = { ...openCircuit().state, retryAt: retryAt as MonotonicAt };
    expect(retryInMs(viewOf(openCircuit({ state } as object)))).toBe(expected);
  });

  test("is nothing to wait for where it is closed or half-open", () => {
    expect(retryInMs(viewOf(closedCircuit()))).toBeUndefined();
    expect(retryInMs(viewOf(halfOpenCircuit()))).toBeUndefined();
  });
});

describe("a reset in words", () => {
  const now = { nowMs: NOW_AT, wallMs: CHANGED_AT as WallAt };

  test.each([
    [
      "forgets",
      openCircuit(),
      false,
      "api: was open, is closed; its settings are forgotten: the next probe brings its own\n",
    ],
    [
      "keeps",
      openCircuit(),
      true,
      "api: was open, is closed; somebody probes now, and its settings stay\n",
    ],
    [
      "counts",
      closedCircuit({ settingsHash: null }),
      false,
      "api: was closed with 1 failure, is closed\n",
    ],
  ])("says what it was and is, and what it %s", (_, circuit, isProbed, text) => {
    const reset = { kind: "reset", isProbed, troubles: [] } as const;
    const decided = decideReset(circuit, { ...now, isProbed });
    expect(renderReset("api", { ...reset, ...decided })).toBe(text);
  });

  test("of a name that nobody knows says where names are to be had", () => {
    expect(sayUnknown("a\nb")).toEqual([
      'error: no circuit is known of "a\\nb"',
      "hint: watchdog circuit list",
    ]);
  });
});

describe("for machines", () => {
  test("an open circuit has all of its fields", () => {
    expect(showCircuit(viewOf(openCircuit()))).toMatchSnapshot();
  });

  test("what is not so is null", () => {
    expect(showCircuit(viewOf(closedCircuit(), { isProbed: undefined }))).toMatchObject({
      state: "closed",
      open_for_ms: null,
      retry_in_ms: null,
      consecutive_failures: 1,
      attempts: null,
      is_probed: null,
    });
    expect(showCircuit(viewOf(halfOpenCircuit()))).toMatchObject({
      successes: 1,
      is_trial_out: true,
      trial_pid: 77,
      consecutive_failures: null,
    });
    expect(
      showCircuit(viewOf(permanentCircuit({ lastProbe: null, lastGoodAt: null }))),
    ).toMatchObject({
      because: "max-attempts",
      last_probe: null,
      last_good_age_ms: null,
    });
  });
});
