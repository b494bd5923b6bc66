/**
 * Incident B with `--on-open pause` where each call of the job goes through `watchdog retry
 * --breaker` of the same circuit: a call that fails because the server is away is made again when
 * it is back, so that not one of 1,800 items is lost.
 */
import { describe, expect, test } from "bun:test";
import {
  eventOf,
  ITEMS,
  PROBING,
  readEvents,
  waitForPause,
  type Way,
  withBatch,
} from "../support/incident-b.ts";
import { openScene, RELEASE } from "../support/scene.ts";

const whole = openScene(import.meta.file);
const LIMIT_MS = 300_000;
const DOWN = 69;
const WRAPPER = [RELEASE, "retry", "--breaker", "api", "--backoff", "50ms..200ms", "--"];

/** How many there are: each costs two starts of the binary, so that one way has all of them. */
const BATCHES: readonly (readonly [way: Way, items: number])[] = [
  ["dies", ITEMS],
  ["hangs", 160],
  ["fails", 160],
];

describe("incident B with --on-open pause and the job's calls in the same circuit", () => {
  test.concurrent.each(BATCHES)(
    "loses nothing when the server %s: all %d items succeed",
    (way, items) =>
      withBatch(whole, way, { way, items, wrapper: WRAPPER }, async ({ scene, server, batch }) => {
        const words = ["--name", "batch", ...scene.recordTo(way), ...PROBING];
        const probe = ["--probe", `api=${server.url}`, "--on-open", "pause"];
        const env = { ITEM_PAUSE: "0.000001" };
        const run = scene.start([...words, ...probe, "--", ...batch.command], { env });
        await server.waitUntilGone();
        const frozen = await waitForPause(scene, "batch");
        await server.comeBack();

        const { status, stdout, stderr } = await run.ended;
        expect([status, stdout.toString()]).toEqual([0, "finished normally\n"]);
        const [down, back, ...more] = stderr.trimEnd().split("\n");
        expect(down).toStartWith("watchdog: api is down, the job stands still until it is back: ");
        // Calls may open it before a probe has failed.
        expect(down).not.toContain("status 200");
        expect(back).toStartWith("watchdog: api is back after ");
        expect(more).toEqual([]);
        const seen = batch.readItems();
        expect(seen).toHaveLength(items);
        expect(seen.filter(({ end }) => end !== "ok")).toEqual([]);
        // It did fail, and was asked for again.
        expect(seen.filter(({ askedAt }) => askedAt.length > 1).length).toBeGreaterThan(0);

        const closed = eventOf(readEvents(scene, "batch"), "circuit_closed");
        const isWithin = (at: number): boolean => at >= frozen.until && at < closed.at;
        expect(seen.filter(({ beganAt }) => isWithin(beganAt))).toEqual([]);
        expect(seen.filter(({ askedAt }) => askedAt.some(isWithin))).toEqual([]);
        expect(scene.readRecord(way)["paused_ms"]).toBeGreaterThan(0);
      }),
    LIMIT_MS,
  );
});

test.concurrent(
  "a server that answers its probes and fails its calls is down as well",
  () =>
    withBatch(whole, "door", { way: "dies" }, async ({ scene, server }) => {
      const call = `'${RELEASE}' retry --breaker api --backoff 10ms..20ms -- false; sleep 94301`;
      const words = ["--name", "batch", ...scene.recordTo("door"), "--probe", `api=${server.url}`];
      const ended = await scene.run([...words, "--", "sh", "-c", call]);
      expect(ended.status).toBe(DOWN);
      const told = ended.stderr.split("\n").filter((line) => line.includes("the job is stopped"));
      expect(told).toEqual(["watchdog: api is down, the job is stopped: calls to it have failed"]);
      expect(scene.readRecord("door")).toMatchObject({
        outcome: "dependency_down",
        because: "circuit-opened",
        dependencies: [{ name: "api", failed_probes: 0, last_because: "good" }],
      });
      const events = readEvents(scene, "batch");
      // The call tells of its attempts, unless it is ended with the job before it has; where the
      // stop of the job comes late, a trial is among them.
      const ofCall = new Set(["retried", "circuit_half_open", "circuit_reopened"]);
      const ofRun = events.map(({ name }) => name).filter((name) => !ofCall.has(name));
      expect(ofRun.toSorted()).toEqual(["circuit_open", "dependency_down"]);
      const opened = { because: "consecutive-failures", data: { name: "api", to: "open" } };
      expect(eventOf(events, "circuit_open")).toMatchObject(opened);
      const down = { name: "api", probes: expect.any(Number), failed_probes: 0 };
      expect(eventOf(events, "dependency_down").data).toMatchObject(down);
    }),
  LIMIT_MS,
);
