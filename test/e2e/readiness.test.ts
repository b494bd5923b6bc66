/**
 * `--ready-probe`: a server that is reachable but does not want work now holds a job, and never
 * opens a circuit. The batch has its items from another server, which is well all the time.
 */
import { describe, expect, test } from "bun:test";
import { askLines } from "../support/ask.ts";
import {
  eventOf,
  expectNothingMoved,
  readEvents,
  waitForPause,
  withBatch,
} from "../support/incident-b.ts";
import { roundEntry, roundVariable } from "../support/killing.ts";
import { ok, ProbeScene } from "../support/probe-servers.ts";
import { findCarriers, openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const whole = openScene(import.meta.file);
const LIMIT_MS = 180_000;
const BUSY = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy";
const ITEMS = 400;
const PROBING = "--probe-period 300ms --probe-timeout 300ms --probe-failure-threshold 2".split(" ");

/** Ready or not, as it is told; a port of its own. */
async function withDoor(
  act: (door: { url: string; isReady: boolean; asked(): number }) => Promise<void>,
): Promise<void> {
  const servers = new ProbeScene();
  try {
    let asked = 0;
    const door = { url: "", isReady: true, asked: () => asked };
    const { port } = await servers.serve((socket) => {
      asked += 1;
      socket.end(door.isReady ? ok() : BUSY);
    });
    door.url = `http://127.0.0.1:${port}/ready`;
    await act(door);
  } finally {
    await servers.close();
  }
}

describe("a server that is not ready", () => {
  const plan = { way: "fails", goodItems: 10 * ITEMS, items: ITEMS } as const;

  test.concurrent(
    "holds the job until it is ready, and no circuit is opened",
    () =>
      withDoor((door) =>
        withBatch(whole, "held", plan, async ({ scene, batch }) => {
          const words = ["--name", "batch", ...scene.recordTo("held"), ...PROBING];
          const probe = ["--ready-probe", `door=${door.url}`];
          const env = roundVariable("held");
          const run = scene.start([...words, ...probe, "--", ...batch.command], { env });
          await waitFor(() => batch.count("ok") >= 10, "ten items");
          door.isReady = false;
          const frozen = await waitForPause(scene, "batch");
          const members = findCarriers(roundEntry("held")).filter((pid) => pid !== run.pid);
          const before = door.asked();
          await waitFor(() => door.asked() >= before + 3, "three more questions");
          expectNothingMoved(members);
          door.isReady = true;

          const { status, stdout, stderr } = await run.ended;
          expect([status, stdout.toString()]).toEqual([0, "finished normally\n"]);
          expect(stderr).toBe(
            "watchdog: door is not ready, the job stands still until it is back: " +
              "status 503, expected 200-299\nwatchdog: door is ready again\n",
          );
          const events = readEvents(scene, "batch");
          expect(events.map(({ name }) => name)).toEqual(["unready", "paused", "ready", "resumed"]);
          expect(eventOf(events, "unready")).toMatchObject({
            because: "status",
            data: { name: "door", detail: "status 503, expected 200-299" },
          });
          expect(await askLines(scene, ["circuit", "list"])).toEqual(["no circuit is known"]);
          const record = scene.readRecord("held");
          expect(record).toMatchObject({
            outcome: "ok",
            dependencies: [{ name: "door", role: "readiness", policy: "pause", state: "ready" }],
          });
          expect(record["paused_ms"]).toBeGreaterThan(0);
          const readyAt = eventOf(events, "ready").at;
          const within = batch
            .readItems()
            .filter(({ beganAt }) => beganAt >= frozen.until && beganAt < readyAt);
          expect(within).toEqual([]);
          expect(batch.count("ok")).toBe(ITEMS);
        }),
      ),
    LIMIT_MS,
  );

  test.concurrent(
    "is told and no more with --on-unready notify",
    () =>
      withDoor((door) =>
        withBatch(whole, "told", plan, async ({ scene, batch }) => {
          const words = ["--name", "batch", ...scene.recordTo("told"), ...PROBING];
          const probe = ["--ready-probe", `door=${door.url}`, "--on-unready", "notify"];
          door.isReady = false;
          const { status, stderr } = await scene.run([...words, ...probe, "--", ...batch.command]);
          expect(status).toBe(0);
          expect(stderr).toBe(
            "watchdog: door is not ready, the job goes on: status 503, expected 200-299\n",
          );
          expect(readEvents(scene, "batch").map(({ name }) => name)).toEqual(["unready"]);
          expect(scene.readRecord("told")).toMatchObject({ outcome: "ok", paused_ms: 0 });
          expect(batch.count("ok")).toBe(ITEMS);
        }),
      ),
    LIMIT_MS,
  );

  test.concurrent(
    "does not keep a job from its start",
    () =>
      withDoor(async (door) => {
        door.isReady = false;
        const { status, stdout } = await whole.run([
          "--ready-probe",
          door.url,
          "--",
          "echo",
          "ran",
        ]);
        expect([status, stdout.toString()]).toEqual([0, "ran\n"]);
      }),
    LIMIT_MS,
  );
});
