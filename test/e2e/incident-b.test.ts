/**
 * Incident B: an inference server was asked once, at the start, and died in the middle of a batch.
 * 1,800 items failed one by one, and the log said "finished normally". Here the server goes after
 * 40 items, in each of three ways: without watchdog all the others are burned, with it the job is
 * stopped, or, where it is only to be told, goes on and ends as it likes.
 */
import { describe, expect, test } from "bun:test";
import { askJson } from "../support/ask.ts";
import {
  eventOf,
  FOUND_OUT_MS,
  GOOD_ITEMS,
  ITEMS,
  LATE,
  PROBING,
  readEvents,
  THRESHOLD,
  type Way,
  WAYS,
  withBatch,
} from "../support/incident-b.ts";
import { roundEntry, roundVariable } from "../support/killing.ts";
import { findCarriers, openScene } from "../support/scene.ts";

const whole = openScene(import.meta.file);
const LIMIT_MS = 180_000;
const DOWN = 69;

/** What a probe finds of such a server. */
const FOUND: Readonly<Record<Way, readonly [because: string, detail: RegExp]>> = {
  dies: ["refused", /^127\.0\.0\.1:\d+: connection refused$/],
  hangs: ["no-answer", /^no answer within 400 ms$/],
  fails: ["status", /^status 500, expected 200-299$/],
};

describe("incident B without watchdog", () => {
  test.concurrent.each(WAYS)(
    "burns all that is left, and finishes normally, when the server %s",
    (way) =>
      withBatch(whole, `alone-${way}`, { way }, async ({ scene, batch }) => {
        const env = { ITEM_LIMIT: "0.002", ITEM_PAUSE: "0.000001" };
        const { status, stdout } = await scene.startProgram(batch.command, { env }).ended;
        expect([status, stdout.toString()]).toEqual([0, "finished normally\n"]);
        expect(batch.readItems()).toHaveLength(ITEMS);
        expect(batch.count("fail")).toBeGreaterThanOrEqual(ITEMS - GOOD_ITEMS);
      }),
    LIMIT_MS,
  );
});

describe("incident B with --on-open stop", () => {
  test.concurrent.each(WAYS)(
    "ends with 69, soon, with one line, and burns little, when the server %s",
    (way) =>
      withBatch(whole, `stop-${way}`, { way }, async ({ scene, server, batch }) => {
        const mark = roundVariable(`stop-${way}`);
        const words = ["--name", "batch", ...scene.recordTo(`stop-${way}`), ...PROBING];
        const probe = ["--probe", `api=${server.url}`, "--on-open", "stop"];
        const run = scene.start([...words, ...probe, "--", ...batch.command], { env: mark });
        const goneAt = await server.waitUntilGone();
        const { status, stdout, stderr } = await run.ended;
        expect([status, stdout.toString()]).toEqual([DOWN, ""]);
        expect(findCarriers(roundEntry(`stop-${way}`))).toEqual([]);

        const [because, detail] = FOUND[way];
        expect(stderr).toMatch(/^watchdog: api is down, the job is stopped: .*\n$/);
        expect(stderr.trimEnd().split("stopped: ")[1]).toMatch(detail);

        const record = scene.readRecord(`stop-${way}`);
        expect(record).toMatchObject({
          outcome: "dependency_down",
          because: "circuit-opened",
          status_of: "watchdog",
          exit_status: DOWN,
          paused_ms: 0,
          signals: [{ signal: "TERM", why: "dependency-down" }],
          dependencies: [{ name: "api", policy: "stop", state: "open", last_because: because }],
        });
        expect(record["dependencies"][0].failed_probes).toBeGreaterThanOrEqual(THRESHOLD);
        expect(Date.parse(record["ended_at"]) - goneAt).toBeLessThan(FOUND_OUT_MS * LATE);

        const events = readEvents(scene, "batch");
        expect(events.map(({ name }) => name)).toEqual(["circuit_open", "dependency_down"]);
        const opened = eventOf(events, "circuit_open");
        expect(opened).toMatchObject({
          because: "consecutive-failures",
          data: { name: "api", from: "closed", to: "open", last_probe: { because } },
        });
        expect(opened.data.probes - opened.data.good_probes).toBeGreaterThanOrEqual(THRESHOLD);
        expect(opened.at - goneAt).toBeLessThan(FOUND_OUT_MS * LATE);
        const down = eventOf(events, "dependency_down");
        expect(down).toMatchObject({ because: "circuit-opened", data: { name: "api" } });

        const { verdict } = await askJson(scene, ["lease", "show", "job:batch"]);
        expect(verdict).toBe("free");
        const probes = server.asked("probe").filter(({ at }) => at >= goneAt);
        expect(probes.length).toBeLessThanOrEqual(THRESHOLD);
        expect(batch.count("ok")).toBe(GOOD_ITEMS);
        expect(batch.readItems().length).toBeLessThan(ITEMS);
      }),
    LIMIT_MS,
  );

  test.concurrent(
    "kills a job that ignores TERM, after the grace",
    () =>
      withBatch(whole, "deaf", { way: "hangs" }, async ({ scene, server, batch }) => {
        const deaf = ["sh", "-c", `trap '' TERM; "$@"; exit 3`, "sh", ...batch.command];
        const words = ["--name", "batch", ...scene.recordTo("deaf"), ...PROBING];
        const probe = ["--probe", server.url, "--kill-after", "300ms"];
        const ended = await scene.run([...words, ...probe, "--", ...deaf], {
          env: roundVariable("deaf"),
        });
        expect(ended.status).toBe(DOWN);
        expect(findCarriers(roundEntry("deaf"))).toEqual([]);
        const { outcome, signals } = scene.readRecord("deaf");
        expect(outcome).toBe("dependency_down");
        expect(signals.map(({ signal }: { signal: string }) => signal)).toContain("KILL");
        expect(batch.count("ok")).toBe(GOOD_ITEMS);
      }),
    LIMIT_MS,
  );
});

describe("incident B with --on-open notify", () => {
  const items = 800;

  test.concurrent(
    "is told in one line and one event, and the job ends as it likes",
    () =>
      withBatch(whole, "told", { way: "fails", items }, async ({ scene, server, batch }) => {
        const own = ["sh", "-c", `"$@"; exit 7`, "sh", ...batch.command];
        const words = ["--name", "batch", ...scene.recordTo("told"), ...PROBING];
        const probe = ["--probe", `api=${server.url}`, "--on-open", "notify"];
        const ended = await scene.run([...words, ...probe, "--", ...own]);
        expect([ended.status, ended.stdout.toString()]).toEqual([7, "finished normally\n"]);
        expect(ended.stderr).toBe(
          "watchdog: api is down, the job goes on: status 500, expected 200-299\n",
        );
        const events = readEvents(scene, "batch");
        expect(eventOf(events, "circuit_open").data).toMatchObject({ name: "api" });
        const trials = ["circuit_half_open", "circuit_reopened"];
        const others = events.filter(({ name }) => !trials.includes(name));
        expect(others).toEqual([eventOf(events, "circuit_open")]);
        expect(scene.readRecord("told")).toMatchObject({
          outcome: "failed",
          status_of: "command",
          paused_ms: 0,
          dependencies: [{ name: "api", policy: "notify" }],
        });
        expect([batch.count("ok"), batch.count("fail")]).toEqual([GOOD_ITEMS, items - GOOD_ITEMS]);
      }),
    LIMIT_MS,
  );
});
