/**
 * What holds of a tree that stands still, whatever happens to its run: told of every course up to a
 * length, in words of the actions alone.
 */
import { describe, expect, test } from "bun:test";
import type { RunAction } from "../../src/core/run-state.ts";
import { slotStateOf } from "../../src/run/slot-state.ts";
import {
  DEPENDENCIES,
  EVERYTHING,
  type History,
  kindsOf,
  visitAll,
} from "../support/run-courses.ts";

type Kind = RunAction["kind"];

/** Where the tree stands after so many actions; `twice`: what was done did not fit. */
function standOf(kinds: readonly Kind[]): "goes-on" | "stands-still" | "killed" | "twice" {
  let stand: "goes-on" | "stands-still" | "killed" | "twice" = "goes-on";
  for (const kind of kinds) {
    if (kind === "freeze-tree") stand = stand === "goes-on" ? "stands-still" : "twice";
    if (kind === "thaw-tree") stand = stand === "stands-still" ? "goes-on" : "twice";
    if (kind === "kill-tree") stand = "killed";
    if (stand === "twice") return stand;
  }
  return stand;
}

/** Up to a kind of action, without it; all where it never came. */
const upTo = (kinds: readonly Kind[], kind: Kind): readonly Kind[] =>
  kinds.includes(kind) ? kinds.slice(0, kinds.indexOf(kind)) : kinds;

/** What must be of every course, by the name that a failing one is told with. */
const RULES: Readonly<Record<string, (kinds: readonly Kind[], history: History) => boolean>> = {
  "freeze and thaw take turns": (kinds) => standOf(kinds) !== "twice",
  "nobody is frozen once a signal was sent to all": (kinds) => {
    const first = kinds.findIndex((kind) => kind === "signal-tree" || kind === "kill-tree");
    return first === -1 || !kinds.slice(first).includes("freeze-tree");
  },
  "nobody is frozen between the end of the command and the look at who is left": (
    kinds,
    history,
  ) => {
    if (!kinds.includes("freeze-tree")) return true;
    const end = history.findIndex(({ event }) => event.kind === "main-ended");
    const left = history.findIndex(({ event }) => event.kind === "members-left");
    const between = history.slice(end, left < end ? undefined : left);
    return end === -1 || !kindsOf(between).includes("freeze-tree");
  },
  "output is delivered of a tree that goes on, or is gone": (kinds) =>
    !kinds.includes("end-output") || standOf(upTo(kinds, "end-output")) !== "stands-still",
  "nobody is frozen or thawed when the output is delivered": (kinds) => {
    const behind = kinds.slice(upTo(kinds, "end-output").length);
    return !behind.includes("freeze-tree") && !behind.includes("thaw-tree");
  },
  "a tree that stands still and is asked goes on behind the signal": (kinds, history) => {
    const now = history.at(-1)?.actions.map(({ kind }) => kind) ?? [];
    if (!now.includes("signal-tree")) return true;
    const wasStill = standOf(kinds.slice(0, kinds.length - now.length)) === "stands-still";
    return !wasStill || now.indexOf("thaw-tree") > now.lastIndexOf("signal-tree");
  },
  "a tree that was asked, killed or left never stands still": (kinds) => {
    const isEnded = (kind: Kind): boolean =>
      ["signal-tree", "kill-tree", "end-output", "finish"].includes(kind);
    return !kinds.some(isEnded) || standOf(kinds) !== "stands-still";
  },
};
const NAMED_RULES = Object.entries(RULES);

describe.each([
  ["of all that can happen", EVERYTHING],
  ["of what concerns a dependency", DEPENDENCIES],
] as const)("in all possible courses %s", (_name, range) => {
  test("whoever is frozen is thawed once or killed, and in time", () => {
    const wrong: unknown[] = [];
    const stands = { "goes-on": 0, "stands-still": 0, killed: 0, twice: 0 };
    visitAll(range, (history) => {
      const kinds = kindsOf(history);
      stands[standOf(kinds)] += 1;
      for (const [name, holds] of NAMED_RULES) {
        if (wrong.length < 3 && !holds(kinds, history)) wrong.push({ name, history });
      }
    });
    expect(wrong).toEqual([]);
    expect(stands.twice).toBe(0);
    expect(Math.min(stands["goes-on"], stands["stands-still"], stands.killed)).toBeGreaterThan(500);
  }, 180_000);

  test("the slot says that a run is paused exactly while its tree stands still", () => {
    const wrong: unknown[] = [];
    visitAll(range, (history, state) => {
      const isStill = standOf(kindsOf(history)) === "stands-still";
      if ((slotStateOf(state) === "paused") !== isStill) wrong.push({ history, state });
    });
    expect(wrong.slice(0, 3)).toEqual([]);
  }, 180_000);
});
