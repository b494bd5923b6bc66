/**
 * Notices of many jobs and by many who deliver them, and of watchdogs of the release that are
 * killed at whatever moment: each is sent by one, in its order, and under one key.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { ask, askJson } from "../support/ask.ts";
import { findFreePort, openReceivers } from "../support/notice-server.ts";
import { inState, query } from "../support/own-state.ts";
import { openScene, readCommandLine, ROUNDS, type Scene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const whole = openScene(import.meta.file);
const open = openReceivers();
const LIMIT_MS = 120_000;
/** From the end of a command to the end of its watchdog, on a machine that is not idle. */
const LONGEST_WAY_MS = 80;

let states = 0;
function newState(): Scene {
  states += 1;
  return inState(whole, `many-${states}.state`);
}

async function listStates(scene: Scene): Promise<string[]> {
  const { notices } = await askJson(scene, ["notify", "list", "--all", "--limit", "100"]);
  return (notices as unknown as readonly { state: string }[]).map(({ state }) => state);
}

describe("many at once", () => {
  test(
    "of those who deliver at the same time each notice is sent by one, in the order of its job",
    async () => {
      const scene = newState();
      const port = await findFreePort();
      const options = ["--webhook", `http://127.0.0.1:${port}/hook`, "--remind-every", "0"];
      const jobs = ["one", "two", "three", "four"];
      for (let round = 0; round < 5; round += 1) {
        await Promise.all(jobs.map((job) => scene.run(["--name", job, ...options, "--", "false"])));
      }
      const server = await open(port);
      server.delayMs = 20;
      const flushes = await Promise.all(
        Array.from({ length: 5 }, () => ask(scene, ["notify", "flush"])),
      );
      expect(flushes.map(({ status }) => status)).toEqual(Array(5).fill(0));
      expect(server.received).toHaveLength(20);
      expect(new Set(server.received.map(({ key }) => key)).size).toBe(20);
      for (const job of jobs) {
        expect(server.mostAtOnce.get(job)).toBe(1);
        const told = server.received.filter(({ body }) => body["job"] === job);
        expect(told.map(({ body }) => body["failures_in_row"])).toEqual([1, 2, 3, 4, 5]);
      }
    },
    LIMIT_MS,
  );

  test(
    "a receiver is given thirty a minute, and the rest becomes one notice for later",
    async () => {
      const scene = newState();
      const port = await findFreePort();
      const options = ["--webhook", `http://127.0.0.1:${port}/hook`, "--remind-every", "0"];
      const jobs = Array.from({ length: 15 }, (_, index) => `job${index}`);
      for (let round = 0; round < 3; round += 1) {
        await Promise.all(jobs.map((job) => scene.run(["--name", job, ...options, "--", "false"])));
      }
      const server = await open(port);
      await ask(scene, ["notify", "flush"]);
      expect(server.received).toHaveLength(30);
      const rows = await listStates(scene);
      const count = (state: string): number => rows.filter((one) => one === state).length;
      expect(["delivered", "superseded", "waiting"].map(count)).toEqual([30, 15, 1]);
      // The twin: before a minute is over it waits.
      await ask(scene, ["notify", "flush"]);
      expect(server.received).toHaveLength(30);
      query(scene, "UPDATE outbox SET delivered_at = delivered_at - 61000");
      await ask(scene, ["notify", "flush"]);
      expect(server.received.slice(30).map(({ body }) => body)).toMatchObject([
        { event: "failure", job: null, details: { joined: 15, events: { failure: 15 } } },
      ]);
      expect(new Set(server.received.map(({ key }) => key)).size).toBe(31);
    },
    LIMIT_MS,
  );
});

describe("a killed watchdog of the release", () => {
  test(
    "at whatever moment: the end of its run is told under one key",
    async () => {
      const server = await open();
      const heard = new Map<string, number>();
      for (let round = 0; round < ROUNDS; round += 1) {
        const scene = newState();
        const options = ["--name", "job", "--webhook", server.url()];
        const mark = whole.path(`ended-${round}`);
        const run = scene.start([...options, "--", "sh", "-c", `: >${mark}; exit 7`]);
        await waitFor(() => existsSync(mark), "the command to end", { stepMs: 1 });
        // The moment is the test: from the end of the command to behind the delivery.
        await Bun.sleep(Math.random() * LONGEST_WAY_MS);
        run.kill("SIGKILL");
        await run.ended;
        await waitForGuard(scene);
        await scene.run([...options, "--", "true"]);
        const { runs } = await askJson(scene, ["history"]);
        const all = runs as unknown as readonly { run_id: string; outcome: string }[];
        for (const { run_id: id, outcome } of all.filter((one) => one.outcome !== "ok")) {
          expect([outcome, server.keysOf(id).length]).toEqual([outcome, 1]);
          heard.set(outcome, (heard.get(outcome) ?? 0) + 1);
        }
        expect(await listStates(scene)).not.toContain("waiting");
      }
      console.error(`told of: ${JSON.stringify(Object.fromEntries(heard))}`);
    },
    10 * LIMIT_MS,
  );
});

/** A guard has the state directory on its command line, and no cookie. */
async function waitForGuard(scene: Scene): Promise<void> {
  const isOurs = (pid: string): boolean =>
    readCommandLine(Number(pid)).endsWith(` ${scene.stateDirectory}`);
  await waitFor(
    () => !readdirSync("/proc").some((name) => /^\d+$/.test(name) && isOurs(name)),
    "the guard to have done its work",
  );
}
