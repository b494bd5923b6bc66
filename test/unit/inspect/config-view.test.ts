/**
 * Where each setting comes from, as `config show` tells it.
 */

import { expect, test } from "bun:test";
import { mergeSettings, NO_SETTINGS } from "../../../src/core/settings.ts";
import {
  viewJobs,
  viewPolicies,
  viewProbes,
  viewSettings,
} from "../../../src/inspect/config-view.ts";

const LOCK = { key: "run.lock", flag: "--lock", variable: "V_LOCK", defaultText: "none" };
const STATE = { key: "state_dir", flag: "--state-dir", variable: undefined, defaultText: "/d" };
const GROUP = { key: "state_group", flag: "--state-group", variable: "V_G", defaultText: "none" };

const settings = mergeSettings([
  {
    path: "/c",
    ownerUid: 0,
    isChosen: false,
    isHeard: true,
    content: {
      top: new Map([["state_dir", ["/f"]]]),
      run: new Map([["lock", ["a:1", "a:2"]]]),
      jobs: new Map(),
      probes: new Map(),
      sinks: new Map(),
      policy: undefined,
    },
  },
]);

test("a setting is of a variable, else of a file, else the default", () => {
  const sources = (variables: Record<string, string>, from = settings): unknown[] =>
    viewSettings([LOCK, STATE, GROUP], variables, from).map((each) => [
      each.values,
      each.source,
      each.from,
    ]);
  expect(sources({ V_LOCK: "b:1", V_G: "" })).toEqual([
    [["b:1"], "variable", "V_LOCK"],
    [["/f"], "file", "/c"],
    [[], "default", null],
  ]);
  expect(sources({})[0]).toEqual([["a:1", "a:2"], "file", "/c"]);
  expect(sources({}, NO_SETTINGS)).toEqual(Array.from({ length: 3 }, () => [[], "default", null]));
});

test("of a probe is shown what is set, and the variable that beats it", () => {
  const keys = new Map([["period", { texts: ["5"], file: "/c", rank: 0 }]]);
  const startup = new Map([["period", { texts: ["6"], file: "/d", rank: 1 }]]);
  const probed = { ...NO_SETTINGS, probes: new Map([["a.b", { keys, startup }]]) };
  const period = { flag: "--probe-period", variable: "V_P", defaultText: "10s" };
  const shown = (variables: Record<string, string>): unknown[] =>
    viewProbes(
      [
        { name: "period", isOfStart: false, option: period },
        { name: "period", isOfStart: true, option: period },
        { name: "timeout", isOfStart: false, option: period },
      ],
      variables,
      probed,
    ).map(({ key, values, source, from }) => [key, values, source, from]);
  expect(shown({})).toEqual([
    ['probes."a.b".period', ["5"], "file", "/c"],
    ['probes."a.b".startup.period', ["6"], "file", "/d"],
  ]);
  expect(shown({ V_P: "7" })[0]).toEqual(['probes."a.b".period', ["7"], "variable", "V_P"]);
  expect(viewProbes([], {}, NO_SETTINGS)).toEqual([]);
});

test("a policy is told list by list, in the words of the file", () => {
  const owned = { path: "/c", ownerUid: 0, isChosen: false };
  const run = [
    { kind: "user", name: "alice" },
    { kind: "uid", uid: 7 },
    { kind: "group", name: "ops" },
  ] as const;
  expect(viewPolicies([{ ...owned, lists: { approve: [], run } }])).toEqual([
    { right: "run", entries: ["alice", "uid:7", "@ops"], file: "/c" },
    { right: "approve", entries: [], file: "/c" },
  ]);
});

test("of a job is shown what is set, and the variable that beats it", () => {
  const table = new Map([["timeout", { texts: ["5"], file: "/c", rank: 1 }]]);
  const settings = { ...NO_SETTINGS, jobs: new Map([["a.b", table]]) };
  const timeout = { key: "timeout", flag: "--timeout", variable: "V_T", defaultText: "none" };
  const shown = (variables: Record<string, string>): unknown[] =>
    viewJobs([timeout, { ...timeout, key: "wait" }], variables, settings).map(
      ({ key, values, from }) => [key, values, from],
    );
  expect(shown({})).toEqual([['jobs."a.b".timeout', ["5"], "/c"]]);
  expect(shown({ V_T: "6" })).toEqual([['jobs."a.b".timeout', ["6"], "V_T"]]);
});
