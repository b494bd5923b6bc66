/** One kind of bad that is over while the run goes on: what a sink hears of that. */
import { describe, expect, test } from "bun:test";
import { happeningOfEvent } from "../../../src/core/happening.ts";
import {
  decideNotices,
  decideReminder,
  type Happening,
  type ToldState,
} from "../../../src/core/told-state.ts";

const SINK = { id: "s", shown: "s", source: { kind: "hidden" } } as const;
const webhook = { ...SINK, kind: "webhook", events: "default" } as const;
const ping = { ...SINK, kind: "ping", events: "default" } as const;

/** The notices of what happens, a minute apart. */
function follow(
  sink: typeof webhook | typeof ping,
  ...happenings: readonly Happening[]
): { events: string[]; state: ToldState | undefined } {
  let state: ToldState | undefined;
  const events: string[] = [];
  for (const [index, happening] of happenings.entries()) {
    const at = index * 60_000;
    const decided = decideNotices(state, happening, { sink, remindEveryMs: 86_400_000, at });
    ({ state } = decided);
    events.push(...decided.notices.map(({ event }) => event));
  }
  return { events, state };
}

const bad = (what: "stalled" | "overdue"): Happening => ({
  kind: "went-bad",
  events: [what],
  what,
  isEnding: false,
});
const healed: Happening = { kind: "healed", what: "stalled" };
const failed: Happening = { kind: "went-bad", events: ["failure"], what: "failed", isEnding: true };

describe("a lease that beats again", () => {
  test("is told to whoever was told that it had stopped", () => {
    expect(follow(webhook, bad("stalled"), healed).events).toEqual(["stalled", "recovered"]);
    expect(follow(webhook, healed).events).toEqual([]);
  });

  test("can be told to have stopped anew", () => {
    const { events } = follow(webhook, bad("stalled"), healed, bad("stalled"));
    expect(events).toEqual(["stalled", "recovered", "stalled"]);
  });

  test("has not recovered while something else of it is bad", () => {
    const { events, state } = follow(webhook, bad("overdue"), bad("stalled"), healed);
    expect(events).toEqual(["overdue", "stalled"]);
    expect(state).toMatchObject({ state: "bad", kinds: ["overdue"] });
    expect(follow(webhook, failed, healed).state).toMatchObject({ state: "bad" });
  });

  test("is no good end of a run to a ping", () => {
    expect(follow(ping, bad("stalled"), healed).events).toEqual(["stalled"]);
  });

  test("is what the event of a patrol says", () => {
    expect(happeningOfEvent("recovered", {})).toEqual(healed);
  });
});

test("what lasts is called by its name in a reminder", () => {
  const remind = (...happenings: readonly Happening[]) => {
    const { state } = follow(webhook, ...happenings);
    if (state === undefined) throw new Error("nothing has happened");
    const options = { sink: webhook, remindEveryMs: 86_400_000, at: 2 * 86_400_000 };
    return decideReminder(state, options).notices.map(({ event }) => event);
  };
  expect(remind(bad("stalled"))).toEqual(["stalled"]);
  expect(remind(bad("overdue"))).toEqual(["overdue"]);
  expect(remind(failed)).toEqual(["failure"]);
  expect(remind(bad("stalled"), failed)).toEqual(["failure"]);
});
