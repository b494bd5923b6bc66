/**
 * The outbox of a state directory that a group shares: a hook that one user has left there is never
 * run by another one.
 */
import { describe, expect } from "bun:test";
import { chmodSync, existsSync, mkdirSync, statSync } from "node:fs";
import { asUser, shareBinary } from "../support/as-user.ts";
import { openReceivers } from "../support/notice-server.ts";
import { type Ended, openScene, rootTest } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const open = openReceivers();
/** No other test uses these numbers, and no database has them. */
const GROUP = 54_490;
const [ANN, BEN] = [54_411, 54_412];

describe("in a shared state directory", () => {
  rootTest("a hook waits for its own user, an address that is no secret does not", async () => {
    const server = await open();
    const marks = scene.path("marks");
    mkdirSync(marks);
    chmodSync(marks, 0o1777);
    const env = { WATCHDOG_STATE_DIR: `${marks}/state`, HOME: "/nonexistent" };
    const as = async (uid: number, words: readonly string[]): Promise<Ended> => {
      const prefix = [...asUser(uid, [GROUP]), await shareBinary(scene)];
      return scene.startProgram([...prefix, ...words], { cwd: "/", env }).ended;
    };
    const hook = ["--on-failure", `: >${marks}/ran`];
    const left = ["run", "--name", "ann", "--state-group", String(GROUP), "--notify-timeout", "0"];
    const webhook = ["--webhook", server.url()];
    expect((await as(ANN, [...left, ...hook, ...webhook, "--", "false"])).status).toBe(1);
    expect(server.received).toEqual([]);
    const flushed = await as(BEN, ["notify", "flush"]);
    expect([flushed.status, flushed.stderr]).toEqual([0, ""]);
    expect(server.received.map(({ event }) => event)).toEqual(["failure"]);
    expect((await as(BEN, ["run", "--name", "ben", "--", "true"])).status).toBe(0);
    expect(existsSync(`${marks}/ran`)).toBe(false);
    // The twin: whoever has it on his own line runs it.
    expect((await as(ANN, ["notify", "flush", ...hook])).stdout.toString()).toBe(
      "delivered 1 notice\n",
    );
    expect(statSync(`${marks}/ran`).uid).toBe(ANN);
  });
});
