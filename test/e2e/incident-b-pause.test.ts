/**
 * Incident B with `--on-open pause`: the tree stands still while the server is away, so that no
 * item is burned meanwhile, and goes on when it is back. What was begun before the tree stood still
 * may fail, unless each call is made through the same circuit (incident-b-retry.test.ts).
 */
import { describe, expect, test } from "bun:test";
import { askJson, askLines } from "../support/ask.ts";
import {
  eventOf,
  expectNothingMoved,
  FOUND_OUT_MS,
  ITEMS,
  LATE,
  PROBING,
  readEvents,
  THRESHOLD,
  waitForPause,
  WAYS,
  withBatch,
} from "../support/incident-b.ts";
import { roundEntry, roundVariable } from "../support/killing.ts";
import { QUICK } from "../support/repair-scene.ts";
import { findCarriers, openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const whole = openScene(import.meta.file);
const LIMIT_MS = 180_000;
const DOWN = 69;

describe("incident B with --on-open pause", () => {
  test.concurrent.each(WAYS)(
    "begins no item while the server is away, and does all others when it is back: it %s",
    (way) =>
      withBatch(whole, `back-${way}`, { way }, async ({ scene, server, batch }) => {
        const words = ["--name", "batch", ...QUICK, ...scene.recordTo(`back-${way}`), ...PROBING];
        const probe = ["--probe", `api=${server.url}`, "--on-open", "pause"];
        const env = roundVariable(`back-${way}`);
        const run = scene.start([...words, ...probe, "--", ...batch.command], { env });
        const goneAt = await server.waitUntilGone();
        const frozen = await waitForPause(scene, "batch");
        const members = findCarriers(roundEntry(`back-${way}`)).filter((pid) => pid !== run.pid);
        expectNothingMoved(members);
        const { heartbeat_seq: beats } = await askJson(scene, ["lease", "show", "job:batch"]);
        const lease = await waitFor(async () => {
          const shown = await askJson(scene, ["lease", "show", "job:batch"]);
          return shown.heartbeat_seq > beats + 2 && shown;
        }, "beats in a pause");
        expect(lease).toMatchObject({ verdict: "held", run_state: "paused" });
        expect((await askLines(scene, ["status"])).join("\n")).toContain("paused");
        expectNothingMoved(members);
        const backAt = await server.comeBack();

        const { status, stdout, stderr } = await run.ended;
        expect([status, stdout.toString()]).toEqual([0, "finished normally\n"]);
        const [down, back, ...more] = stderr.trimEnd().split("\n");
        expect(down).toStartWith("watchdog: api is down, the job stands still until it is back: ");
        expect(back).toMatch(/^watchdog: api is back after \d+(\.\d)? s$/);
        expect(more).toEqual([]);

        const events = readEvents(scene, "batch");
        expect(events[0]?.name).toBe("circuit_open");
        expect(events.at(-1)?.name).toBe("resumed");
        const closed = eventOf(events, "circuit_closed");
        expect(closed).toMatchObject({ because: "success-threshold", data: { name: "api" } });
        expect(frozen.at - goneAt).toBeLessThan(FOUND_OUT_MS * LATE);
        const trials = events.filter(({ name }) => name === "circuit_half_open").length;
        const probes = server.asked("probe").filter(({ at }) => at >= goneAt && at <= closed.at);
        // One more: the server may have answered it just before it was gone.
        expect(probes.length).toBeLessThanOrEqual(THRESHOLD + trials + 1);

        const record = scene.readRecord(`back-${way}`);
        expect(record).toMatchObject({ outcome: "ok", status_of: "command" });
        // The two clocks are not the same, and one is told in whole milliseconds.
        expect(record["paused_ms"]).toBeGreaterThan(backAt - frozen.at - 50);

        const items = batch.readItems();
        expect(items).toHaveLength(ITEMS);
        const isWithin = (at: number): boolean => at >= frozen.until && at < closed.at;
        expect(items.filter(({ beganAt }) => isWithin(beganAt))).toEqual([]);
        expect(items.filter(({ askedAt }) => askedAt.some(isWithin))).toEqual([]);
        expect(server.asked("item").filter(({ at }) => isWithin(at))).toEqual([]);
        const inFlight = items.filter(
          ({ beganAt, endedAt }) => beganAt < frozen.until && endedAt >= closed.at,
        );
        expect(inFlight.length).toBeLessThanOrEqual(1);
        const failed = items.filter(({ end }) => end === "fail");
        expect(failed.filter(({ beganAt }) => beganAt >= frozen.until)).toEqual([]);
        const exposed = items.filter(
          ({ beganAt, endedAt }) => endedAt >= goneAt && beganAt < frozen.until,
        );
        expect(failed.length).toBeGreaterThan(0);
        expect(failed.length).toBeLessThanOrEqual(exposed.length);
        expect(batch.count("ok")).toBe(ITEMS - failed.length);
      }),
    LIMIT_MS,
  );
});

describe("incident B with --on-open pause and a server that does not return", () => {
  const BOUNDS = [
    ["max-attempts", ["--probe-max-attempts", "3"]],
    ["max-elapsed", ["--probe-max-elapsed", "1s"]],
  ] as const;

  test.concurrent.each(BOUNDS)(
    "ends with 69 at the bound, because of %s, and nobody is left",
    (because, bound) =>
      withBatch(whole, because, { way: "fails" }, async ({ scene, server, batch }) => {
        const words = ["--name", "batch", ...scene.recordTo(because), ...PROBING, ...bound];
        const probe = ["--probe", `api=${server.url}`, "--on-open", "pause"];
        const env = roundVariable(because);
        const run = scene.start([...words, ...probe, "--", ...batch.command], { env });
        const { status, stdout, stderr } = await run.ended;
        expect([status, stdout.toString()]).toEqual([DOWN, ""]);
        expect(findCarriers(roundEntry(because))).toEqual([]);
        const [down, givenUp, ...more] = stderr.trimEnd().split("\n");
        expect(down).toStartWith("watchdog: api is down, the job stands still until it is back: ");
        expect(givenUp).toStartWith("watchdog: api has not come back ");
        expect(givenUp).toEndWith("; the job is stopped");
        expect(more).toEqual([]);

        const record = scene.readRecord(because);
        expect(record).toMatchObject({
          outcome: "dependency_down",
          because,
          status_of: "watchdog",
          dependencies: [{ name: "api", policy: "pause", state: "permanent" }],
        });
        const events = readEvents(scene, "batch");
        const paused = events.find(({ name }) => name === "paused");
        if (paused !== undefined) expect(record["paused_ms"]).toBeGreaterThan(0);
        expect(eventOf(events, "circuit_permanent")).toMatchObject({ because });
        expect(eventOf(events, "dependency_down")).toMatchObject({
          because,
          data: { name: "api" },
        });
        expect(events.filter(({ name }) => name === "circuit_closed")).toEqual([]);
        // A busy machine may come to the bound before everybody stands still: then none is told.
        const until = paused === undefined ? Date.now() : paused.at + 1;
        expect(batch.readItems().filter(({ beganAt }) => beganAt >= until)).toEqual([]);
        const { verdict } = await askJson(scene, ["lease", "show", "job:batch"]);
        expect(verdict).toBe("free");
      }),
    LIMIT_MS,
  );
});
