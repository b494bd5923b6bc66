/**
 * Trouble at each point of a notice's way: the run keeps its status, somebody hears of the trouble,
 * and the notice arrives in the end, under one key.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { type NoticeServer, openReceivers } from "../support/notice-server.ts";
import { OutboxCase } from "../support/outbox-scene.ts";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const open = openReceivers();
const LIMIT_MS = 60_000;
let server: NoticeServer;

beforeAll(async () => {
  server = await open();
});

/** What throws in the journal's own transaction is trouble of the journal, and told as such. */
const POINTS = ["outbox.insert", "outbox.claim", "outbox.send", "sink.send", "outbox.delivered"];
const ACTS = ["throw", "eio", "enospc"];

describe("trouble", () => {
  test.each(POINTS.flatMap((point) => ACTS.map((act) => [point, act] as const)))(
    "at %s (%s) costs neither the status nor the notice, and is told",
    async (point, act) => {
      const one = new OutboxCase(scene, server);
      const ended = await one.run(`${point}=${act}`);
      expect(ended.status).toBe(7);
      one.expectFired(point);
      expect(ended.stderr).not.toBe("");
      expect(await one.flush()).toBe(0);
      const [run] = one.runs();
      expect(one.heardOf(run)).toEqual(["failure"]);
      expect(one.rows().map(({ state }) => state)).toEqual(["delivered"]);
      // The twin: without it nothing is said.
      const well = new OutboxCase(scene, server);
      expect(await well.run(undefined)).toMatchObject({ status: 7, stderr: "" });
      expect(well.heardOf(well.runs()[0])).toEqual(["failure"]);
    },
    LIMIT_MS,
  );

  test(
    "with a retry that cannot be planned leaves the notice to the next one",
    async () => {
      const one = new OutboxCase(scene, server);
      server.behaviour = { status: 500 };
      const ended = await one.run("outbox.retry=eio");
      server.behaviour = { status: 200 };
      expect(ended.status).toBe(7);
      expect(ended.stderr).not.toBe("");
      expect(await one.flush()).toBe(0);
      expect(one.rows()).toMatchObject([{ state: "delivered", attempts: 2 }]);
    },
    LIMIT_MS,
  );
});
