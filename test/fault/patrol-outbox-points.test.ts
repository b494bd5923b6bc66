/**
 * A patrol that is killed while it tells: the notice of a job that is overdue arrives all the same,
 * by the next patrol, and never under two keys. Each fault has left its evidence.
 */
import { afterAll, expect, test } from "bun:test";
import { ageJob, eventsOf, HOUR_MS, patrol, withJournal } from "../support/patrol-scene.ts";
import { FAULTS, openScene, type Scene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";
import { readEvidence } from "./fault-scene.ts";

const base = openScene(import.meta.file);
let count = 0;
const keys: (string | null)[] = [];
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: async (request) => {
    await request.text();
    keys.push(request.headers.get("idempotency-key"));
    return new Response("OK");
  },
});
afterAll(() => server.stop(true));

async function leaveOverdue(): Promise<Scene> {
  count += 1;
  keys.length = 0;
  const stateDirectory = base.path(`state-${count}`);
  const env = { WATCHDOG_STATE_DIR: stateDirectory };
  const url = `http://127.0.0.1:${server.port}/`;
  const words = ["--name", "nightly", "--every", "24h", "--webhook", url, "--", "true"];
  expect((await base.run(words, { env })).status).toBe(0);
  const scene: Scene = {
    ...base,
    stateDirectory,
    startProgram: (argv, options) =>
      base.startProgram(argv, { ...options, env: { ...env, ...options?.env } }),
  };
  ageJob(scene, "nightly", 26 * HOUR_MS);
  return scene;
}

/** A claim of a dead deliverer is free at once; a try that has failed waits for the next one. */
async function patrolUntilDelivered(scene: Scene): Promise<void> {
  await waitFor(async () => {
    expect((await patrol(scene)).status).toBe(0);
    const sql = "SELECT count(*) AS count FROM outbox WHERE state = 'delivered'";
    return withJournal(scene, (db) => db.query<{ count: number }, []>(sql).get())?.count === 1;
  }, "a delivered notice");
}

const POINTS = ["outbox.insert", "outbox.claim", "outbox.send", "outbox.delivered"] as const;

test.each(POINTS)(
  "killed at %s, the next one tells it, under one key",
  async (point) => {
    const scene = await leaveOverdue();
    const directory = base.path(`faults-${count}`);
    const env = { WATCHDOG_FAULT: `${point}=kill`, WATCHDOG_FAULT_DIR: directory };
    expect((await patrol(scene, [], { binary: FAULTS, env })).signal).toBe("SIGKILL");
    expect(readEvidence(directory)).toMatchObject([{ point, act: "kill" }]);
    expect(eventsOf(scene, "overdue")).toHaveLength(point === "outbox.insert" ? 0 : 1);
    await patrolUntilDelivered(scene);
    await patrol(scene);
    expect(eventsOf(scene, "overdue")).toHaveLength(1);
    expect(new Set(keys).size).toBe(1);
  },
  180_000,
);

test("without a fault it is told once", async () => {
  const scene = await leaveOverdue();
  await patrol(scene, [], { binary: FAULTS });
  await patrol(scene);
  expect(keys).toHaveLength(1);
}, 180_000);
