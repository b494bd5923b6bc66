/** What a sink hears of a job: the change, each kind of bad once, reminders, and the good end. */
import { describe, expect, test } from "bun:test";
import { NOTICE_EVENTS, type NoticeEvent } from "../../../src/core/notice.ts";
import { makeSink, type SinkSpec } from "../../../src/core/sink.ts";
import {
  decideNotices,
  decideReminder,
  type Happening,
  MOST_KINDS,
  MOST_OTHERS,
  type ToldState,
} from "../../../src/core/told-state.ts";

const DAY_MS = 86_400_000;
const AT = 1_000_000_000_000;

function sinkOf(events: readonly NoticeEvent[] | "default" = "default"): SinkSpec {
  return makeSink({ kind: "webhook", source: { kind: "literal", text: "http://x/h" }, events });
}

const PING = makeSink({ kind: "ping", source: { kind: "literal", text: "http://x/p" } });
const BAD: Happening = {
  kind: "went-bad",
  events: ["failure"],
  what: "failed",
  isEnding: true,
};
const TIMEOUT: Happening = { ...BAD, events: ["timeout"], what: "timeout" };
const OVERDUE: Happening = { ...BAD, events: ["overdue"], what: "overdue", isEnding: false };
const GOOD: Happening = { kind: "went-well" };
const STARTED: Happening = { kind: "started" };

/** What is told of each, one a second (or at the given instants). */
function hear(
  happenings: readonly Happening[],
  sink: SinkSpec = sinkOf(),
  instants?: readonly number[],
): string[] {
  let state: ToldState | undefined;
  return happenings.map((happening, index) => {
    const at = AT + (instants?.[index] ?? index * 1000);
    const decision = decideNotices(state, happening, { sink, remindEveryMs: DAY_MS, at });
    ({ state } = decision);
    expect(decision.notices.length).toBeLessThanOrEqual(1);
    const [notice] = decision.notices;
    return notice === undefined ? "-" : `${notice.event}${notice.isReminder ? " again" : ""}`;
  });
}

describe("a job", () => {
  test("that goes bad is told once, and that it is well again", () => {
    expect(hear([GOOD, BAD, BAD, BAD, GOOD, GOOD, BAD])).toEqual([
      "-",
      "failure",
      "-",
      "-",
      "recovered",
      "-",
      "failure",
    ]);
  });

  test("is told of each kind of bad once, until it is well again", () => {
    expect(hear([BAD, TIMEOUT, BAD, TIMEOUT, GOOD, TIMEOUT])).toEqual([
      "failure",
      "timeout",
      "-",
      "-",
      "recovered",
      "timeout",
    ]);
  });

  test("that refuses a start is as it was: what lasts is told again when that is due", () => {
    const refused: Happening = { kind: "refused" };
    expect(hear([GOOD, refused, BAD, refused, TIMEOUT, GOOD, refused])).toEqual([
      "-",
      "-",
      "failure",
      "-",
      "timeout",
      "recovered",
      "-",
    ]);
    const late = [0, 1, DAY_MS, DAY_MS + 1];
    expect(hear([BAD, refused, refused, refused], sinkOf(), late)).toEqual([
      "failure",
      "-",
      "failure again",
      "-",
    ]);
    // It has heard of the start, and waits for an end.
    expect(hear([GOOD, refused, GOOD], PING)).toEqual(["success", "failure", "success"]);
  });

  test("that stays bad is told again after the span, and not before", () => {
    const late = [0, DAY_MS - 1, DAY_MS, DAY_MS + 1, 2 * DAY_MS];
    expect(hear([BAD, BAD, BAD, BAD, BAD], sinkOf(), late)).toEqual([
      "failure",
      "-",
      "failure again",
      "-",
      "failure again",
    ]);
  });

  test("a clock that was set back far does not silence it", () => {
    expect(hear([BAD, BAD, BAD], sinkOf(), [0, -DAY_MS + 1, -DAY_MS])).toEqual([
      "failure",
      "-",
      "failure again",
    ]);
  });

  test("that is late is bad without a run, and well with the next good one", () => {
    expect(hear([OVERDUE, OVERDUE, GOOD])).toEqual(["overdue", "-", "recovered"]);
  });

  test("counts failures in a row, of runs alone, and says since when", () => {
    const options = { sink: sinkOf(["failure", "overdue", "recovered"]), remindEveryMs: 0 };
    let state: ToldState | undefined;
    const told = [OVERDUE, BAD, BAD, GOOD].map((happening, index) => {
      const decision = decideNotices(state, happening, { ...options, at: AT + index });
      ({ state } = decision);
      return decision.notices[0];
    });
    expect(told.map((one) => one?.failuresInRow)).toEqual([0, 1, 2, 2]);
    expect(told.map((one) => one?.since)).toEqual([AT, AT, AT, AT]);
    expect(state).toMatchObject({ state: "good", failures: 0, kinds: [] });
  });
});

test("kinds of bad are remembered up to a limit, the oldest first forgotten", () => {
  let state: ToldState | undefined;
  for (let index = 0; index <= MOST_KINDS; index += 1) {
    const options = { sink: sinkOf(), remindEveryMs: DAY_MS, at: AT };
    ({ state } = decideNotices(state, { ...BAD, what: `kind${index}` }, options));
  }
  expect([state?.kinds.length, state?.kinds[0]]).toEqual([MOST_KINDS, "kind1"]);
});

describe("a sink", () => {
  test("that names success hears of each good run, not that one is well again", () => {
    expect(hear([GOOD, BAD, GOOD], sinkOf(["success"]))).toEqual(["success", "-", "success"]);
  });

  test("that names both hears of one good run once", () => {
    const both = sinkOf(["success", "recovered"]);
    expect(hear([GOOD, BAD, GOOD], both)).toEqual(["success", "-", "recovered"]);
  });

  test("that names failure hears of every bad end, by its own name", () => {
    expect(hear([TIMEOUT], sinkOf(["failure"]))).toEqual(["timeout"]);
    expect(hear([BAD, TIMEOUT], sinkOf(["timeout"]))).toEqual(["-", "timeout"]);
  });

  test("hears of starts only where it names them", () => {
    expect(hear([STARTED])).toEqual(["-"]);
    expect(hear([STARTED], sinkOf(["start"]))).toEqual(["start"]);
  });

  test("that is a ping hears of each start and each end", () => {
    expect(hear([STARTED, BAD, STARTED, BAD, STARTED, GOOD, GOOD], PING)).toEqual([
      "start",
      "failure",
      "start",
      "failure again",
      "start",
      "recovered",
      "success",
    ]);
    // As a line of its log: it is no end, and the service has a clock of its own.
    expect(hear([OVERDUE, OVERDUE], PING)).toEqual(["overdue", "-"]);
  });
});

describe("what is no state of the job", () => {
  const left: Happening = { kind: "occurred", event: "leftovers", about: "" };
  const opened: Happening = { kind: "opened", event: "circuit_open", about: "db" };
  const closed: Happening = { kind: "closed", event: "circuit_closed", about: "db" };

  test("is told once a span, to whom it may concern", () => {
    expect(hear([left])).toEqual(["-"]);
    const sink = sinkOf(["leftovers"]);
    expect(hear([left, left, left], sink, [0, 1000, DAY_MS])).toEqual([
      "leftovers",
      "-",
      "leftovers",
    ]);
  });

  test("a circuit is told to open and to close, each once, and apart from others", () => {
    const other = { ...opened, about: "api" };
    expect(hear([closed, opened, opened, other, closed, closed, opened])).toEqual([
      "-",
      "circuit_open",
      "-",
      "circuit_open",
      "circuit_closed",
      "-",
      "circuit_open",
    ]);
  });

  test("a circuit that is open stays so while the job goes bad and is well again", () => {
    expect(hear([opened, BAD, GOOD, opened, closed])).toEqual([
      "circuit_open",
      "failure",
      "recovered",
      "-",
      "circuit_closed",
    ]);
  });

  test("is remembered up to a limit, the oldest first forgotten", () => {
    let state: ToldState | undefined;
    for (let index = 0; index <= MOST_OTHERS; index += 1) {
      const happening = { ...opened, about: `db${index}` };
      const options = { sink: sinkOf(), remindEveryMs: DAY_MS, at: AT };
      ({ state } = decideNotices(state, happening, options));
    }
    const kept = Object.keys(state?.others ?? {});
    expect([kept.length, kept[0]]).toEqual([MOST_OTHERS, "open:db1"]);
  });
});

describe("a reminder without a run", () => {
  const told: ToldState = {
    state: "bad",
    since: AT,
    toldAt: AT,
    failures: 2,
    kinds: ["failed"],
    others: {},
  };

  test("comes when the span is over, and starts it anew", () => {
    const options = { sink: sinkOf(), remindEveryMs: DAY_MS };
    expect(decideReminder(told, { ...options, at: AT + DAY_MS - 1 }).notices).toEqual([]);
    const due = decideReminder(told, { ...options, at: AT + DAY_MS });
    expect(due.notices).toEqual([
      { event: "failure", isReminder: true, since: AT, failuresInRow: 2 },
    ]);
    expect(due.state.toldAt).toBe(AT + DAY_MS);
  });

  test("does not come of a good job, of one that was never told, or to a ping", () => {
    const at = AT + 2 * DAY_MS;
    const options = { sink: sinkOf(), remindEveryMs: DAY_MS, at };
    for (const state of [
      { ...told, state: "good" as const },
      { ...told, toldAt: null },
    ]) {
      expect(decideReminder(state, options).notices).toEqual([]);
    }
    expect(decideReminder(told, { ...options, sink: PING }).notices).toEqual([]);
    expect(decideReminder(told, { ...options, remindEveryMs: 0 }).notices).toEqual([]);
  });
});

describe("every sequence of four", () => {
  /** Written differently: by the text of what has happened so far. */
  function oracle(happenings: readonly Happening[]): string[] {
    const letters = happenings.map((one) =>
      one === BAD ? "b" : one === TIMEOUT ? "t" : one === GOOD ? "g" : "s",
    );
    return letters.map((letter, index) => {
      const before = letters.slice(0, index).filter((one) => one !== "s");
      const phase = before.slice(before.lastIndexOf("g") + 1);
      if (letter === "s") return "-";
      if (letter === "g") return phase.length > 0 ? "recovered" : "-";
      if (phase.includes(letter)) return "-";
      return letter === "b" ? "failure" : "timeout";
    });
  }

  test("is told as the text of it says", () => {
    const all = [BAD, TIMEOUT, GOOD, STARTED];
    const longer = (sequences: readonly Happening[][]): Happening[][] =>
      sequences.flatMap((sequence) => all.map((one) => [...sequence, one]));
    const sequences = longer(longer(longer(longer([[]]))));
    expect(sequences.length).toBe(256);
    for (const sequence of sequences) expect(hear(sequence)).toEqual(oracle(sequence));
  });
});

test("every event is somebody's", () => {
  // A new one must be thought of here: by default it is told to nobody.
  expect(NOTICE_EVENTS.length).toBe(15);
});
