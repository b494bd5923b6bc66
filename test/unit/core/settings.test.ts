/**
 * Of several files: which one is heard about what.
 */

import { expect, test } from "bun:test";
import { NO_CONTENT } from "../../../src/core/config.ts";
import type { ConfigContent } from "../../../src/core/config.ts";
import { mergeSettings, NO_SETTINGS } from "../../../src/core/settings.ts";
import type { ConfigFile } from "../../../src/core/settings.ts";

function fileOf(path: string, content: Partial<ConfigContent>, isHeard = true): ConfigFile {
  const owned = { ownerUid: 0, isChosen: false };
  return { path, ...owned, isHeard, content: { ...NO_CONTENT, ...content } };
}

test("nothing is set where there is no file", () => {
  expect(mergeSettings([])).toBe(NO_SETTINGS);
});

test("the later file beats the earlier one, key by key and list by list", () => {
  const weak = fileOf("/etc/c", {
    top: new Map([["state_dir", ["/a"]]]),
    run: new Map([
      ["lock", ["a:1", "a:2"]],
      ["wait", ["5"]],
    ]),
  });
  const strong = fileOf("/home/c", { run: new Map([["lock", ["b:1"]]]) });
  const settings = mergeSettings([weak, strong]);
  expect(settings.stateDir).toEqual({ texts: ["/a"], file: "/etc/c", rank: 0 });
  expect(settings.stateGroup).toBeUndefined();
  expect([...settings.run]).toEqual([
    ["lock", { texts: ["b:1"], file: "/home/c", rank: 1 }],
    ["wait", { texts: ["5"], file: "/etc/c", rank: 0 }],
  ]);
});

test("every policy counts, and nothing but the policy of a file that is not heard", () => {
  const policy = { run: [{ kind: "user", name: "alice" }] } as const;
  const unheard = fileOf(
    "/etc/c",
    { top: new Map([["state_dir", ["/a"]]]), run: new Map([["wait", ["5"]]]), policy },
    false,
  );
  const settings = mergeSettings([unheard, fileOf("c", { policy: { approve: [] } })]);
  expect([settings.stateDir, settings.run.size]).toEqual([undefined, 0]);
  const owned = { ownerUid: 0, isChosen: false };
  expect(settings.policies).toEqual([
    { path: "/etc/c", ...owned, lists: policy },
    { path: "c", ...owned, lists: { approve: [] } },
  ]);
});

test("tables of probes are merged key by key, and those for the start apart", () => {
  const table = (keys: Record<string, string>, startup: Record<string, string> = {}) => ({
    keys: new Map(Object.entries(keys).map(([name, text]) => [name, [text]])),
    startup: new Map(Object.entries(startup).map(([name, text]) => [name, [text]])),
  });
  const weak = fileOf("/etc/c", {
    probes: new Map([["db", table({ url: "tcp://a:1", period: "5" }, { wait: "1" })]]),
  });
  const strong = fileOf("/home/c", {
    probes: new Map([["db", table({ period: "6" }, { timeout: "2" })]]),
  });
  const unheard = fileOf("/x", { probes: new Map([["db", table({ url: "tcp://x:1" })]]) }, false);
  const { probes } = mergeSettings([weak, strong, unheard]);
  const { keys, startup } = probes.get("db") ?? { keys: new Map(), startup: new Map() };
  expect([...keys]).toEqual([
    ["url", { texts: ["tcp://a:1"], file: "/etc/c", rank: 0 }],
    ["period", { texts: ["6"], file: "/home/c", rank: 1 }],
  ]);
  expect([...startup.keys()]).toEqual(["wait", "timeout"]);
  expect(mergeSettings([fileOf("/c", {})]).probes.size).toBe(0);
});
