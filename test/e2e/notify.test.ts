/** `watchdog notify`: what a person sees of notices, and does about them. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { ask, askJson, askLines } from "../support/ask.ts";
import { openReceivers } from "../support/notice-server.ts";
import { holdDatabase, inState, listSpool, query } from "../support/own-state.ts";
import { openScene, type Scene } from "../support/scene.ts";

const whole = openScene(import.meta.file);
const open = openReceivers();
const LIMIT_MS = 60_000;
const NOWHERE = ["--webhook", "http://127.0.0.1:1/hook"];

let states = 0;
function newState(): Scene {
  states += 1;
  return inState(whole, `notify-${states}.state`);
}

describe("notify list", () => {
  test("tells that nothing waits, and makes nothing", async () => {
    const scene = newState();
    expect(await askLines(scene, ["notify", "list"])).toEqual(["no notice waits"]);
    expect(await askLines(scene, ["notify", "flush"])).toEqual(["delivered 0 notices"]);
    expect(existsSync(scene.stateDirectory)).toBe(false);
  });

  test("shows what waits, to whom, and why", async () => {
    const scene = newState();
    await scene.run(["--name", "nightly", ...NOWHERE, "--", "sh", "-c", "exit 7"]);
    const [line = "", ...more] = await askLines(scene, ["notify", "list"]);
    expect(more).toEqual([]);
    expect(line).toMatch(/^1 {2}waiting, 1 attempt, next one /);
    expect(line).toContain("failed with status 7");
    expect(line).toContain("webhook http://127.0.0.1:1/hook  not-connected: ECONNREFUSED");
  });
});

describe("notify flush", () => {
  test(
    "sends what waits in the spool, since the journal was held when its run ended",
    async () => {
      const server = await open();
      const scene = newState();
      expect((await scene.run(["--name", "job", "--", "true"])).status).toBe(0);
      const holder = await holdDatabase(scene);
      const words = ["--name", "job", "--webhook", server.url(), "--notify-timeout", "0"];
      expect((await scene.run([...words, "--", "false"])).status).toBe(1);
      await holder.release();
      expect(listSpool(scene)).not.toEqual([]);
      expect(server.received).toEqual([]);
      expect(await askLines(scene, ["notify", "flush"])).toEqual(["delivered 1 notice"]);
      expect(server.received.map(({ event }) => event)).toEqual(["failure"]);
      expect(listSpool(scene)).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    "runs a hook in the environment of who asks, without what is said to watchdog in it",
    async () => {
      const scene = newState();
      const told = whole.path("environment");
      const words = ["--name", "job", "--on", `failure=env >${told}`, "--notify-timeout", "0"];
      await scene.run([...words, "--", "false"]);
      const env = { WATCHDOG_PING: "http://127.0.0.1:1/ping", OF_MINE: "yes" };
      expect((await ask(scene, ["notify", "flush"], { env })).status).toBe(0);
      const names = readFileSync(told, "utf8").match(/^\w+(?==)/gm) ?? [];
      expect(names).toContain("OF_MINE");
      expect(names).toContain("WATCHDOG_EVENT");
      expect(names.filter((name) => /^WATCHDOG_(PING|WEBHOOK)/.test(name))).toEqual([]);
    },
    LIMIT_MS,
  );
});

describe("notify drop", () => {
  test(
    "forgets what is not delivered, by number or all that is dead",
    async () => {
      const server = await open();
      server.behaviour = { status: 410 };
      const scene = newState();
      for (const [name, sink] of [
        ["a", NOWHERE],
        ["b", ["--webhook", server.url()]],
        ["c", ["--webhook", server.url()]],
      ] as const) {
        await scene.run(["--name", name, ...sink, "--", "false"]);
      }
      const list = async (): Promise<unknown[]> => {
        const { notices } = await askJson(scene, ["notify", "list"]);
        return (notices as unknown as { id: number; state: string }[]).map(({ id, state }) => [
          id,
          state,
        ]);
      };
      expect(await list()).toEqual([
        [3, "dead"],
        [2, "dead"],
        [1, "waiting"],
      ]);
      const dropped = await askLines(scene, ["notify", "drop", "1", "17"]);
      expect(dropped).toEqual([
        "dropped 1 notice; 1 of the numbers given belong to none that could be dropped",
      ]);
      expect(await askLines(scene, ["notify", "drop", "--all-dead"])).toEqual([
        "dropped 2 notices",
      ]);
      expect(await list()).toEqual([]);
    },
    LIMIT_MS,
  );
});

describe("notify test", () => {
  test(
    "sends one that says what it is, keeps nothing, and tells what came of it",
    async () => {
      const server = await open();
      const scene = newState();
      const both = ["--webhook", server.url(), "--webhook", "http://127.0.0.1:1/h"];
      const tested = await ask(scene, ["notify", "test", ...both]);
      expect(tested.status).toBe(1);
      expect(tested.stdout.toString().split("\n")).toEqual([
        expect.stringMatching(/^webhook http:\S+\/hook +delivered$/),
        expect.stringMatching(/^webhook http:\S+:1\/h +failed: not-connected: ECONNREFUSED$/),
        "",
      ]);
      expect(server.received.map(({ body }) => body["details"])).toEqual([{ is_test: true }]);
      expect((await ask(scene, ["notify", "test", "--webhook", server.url()])).status).toBe(0);
      const none = await ask(scene, ["notify", "test"]);
      expect([none.status, none.stderr.split("\n")]).toEqual([
        1,
        [
          "watchdog: no sink is known here",
          "watchdog: hint: watchdog notify test --webhook file:/etc/watchdog/webhook",
          "",
        ],
      ]);
      expect(await askLines(scene, ["notify", "list", "--all"])).toEqual(["no notice waits"]);
    },
    LIMIT_MS,
  );
});

describe("a job that is bad and does not run any more", () => {
  test(
    "is told again by flush when the span is over, once",
    async () => {
      const server = await open();
      const scene = newState();
      await scene.run(["--name", "nightly", "--webhook", server.url(), "--", "false"]);
      await ask(scene, ["notify", "flush"]);
      expect(server.received).toHaveLength(1);
      query(scene, "UPDATE told SET told_at = told_at - 86400000");
      await Promise.all([ask(scene, ["notify", "flush"]), ask(scene, ["notify", "flush"])]);
      await ask(scene, ["notify", "flush"]);
      expect(server.received.map(({ event, body }) => [event, body["is_reminder"]])).toEqual([
        ["failure", false],
        ["failure", true],
      ]);
    },
    LIMIT_MS,
  );
});
