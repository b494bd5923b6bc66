/**
 * SIGKILL at each moment between the end of the command and the delivered notice: whoever is left
 * tells it, the guard at once or the next run, and nobody tells it under a second key.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { holdExclusively, inspect } from "../support/journal-scene.ts";
import { type NoticeServer, openReceivers } from "../support/notice-server.ts";
import { OutboxCase } from "../support/outbox-scene.ts";
import { openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const open = openReceivers();
const LIMIT_MS = 60_000;
let server: NoticeServer;

beforeAll(async () => {
  server = await open();
});

/** The second commit of a run is that of its end: the first one was its start. */
const BEFORE_THE_GUARD_KNOWS = ["release.R0", "release.R1", "record.end"];
const BEFORE_THE_COMMIT = ["release.R2", "release.R3", "outbox.insert", "journal.commit#2"];
const BEFORE_BYE = ["release.R4"];
const AFTER_BYE = ["release.R5", "outbox.claim", "outbox.send", "sink.send", "outbox.delivered"];

const nameOf = (point: string): string => point.split("#")[0] ?? "";

describe("watchdog killed, its guard not:", () => {
  const rows = [
    ...BEFORE_THE_GUARD_KNOWS.map((point) => [point, "abandoned"] as const),
    ...[...BEFORE_THE_COMMIT, ...BEFORE_BYE].map((point) => [point, "failure"] as const),
    // At an insertion the guard, which has the same faults, would be killed, too.
  ].filter(([point]) => point !== "outbox.insert");
  test.each(rows)(
    "at %s the guard tells of %s at once",
    async (point, event) => {
      const one = new OutboxCase(scene, server);
      expect((await one.run(`${point}=kill`)).signal).toBe("SIGKILL");
      await one.waitForQuiet();
      one.expectFired(nameOf(point));
      const [killed] = one.runs();
      expect(one.heardOf(killed)).toEqual([event]);
      expect(one.rows()).toEqual([expect.objectContaining({ event, state: "delivered" })]);
      // Nothing is left for the next one but that all is well again.
      await one.comeNext();
      expect(one.heardOf(killed)).toEqual([event]);
      expect(one.heardOf(one.runs()[1])).toEqual(["recovered"]);
    },
    LIMIT_MS,
  );

  test.each(AFTER_BYE)(
    "at %s, when the guard has left, the next run tells of it",
    async (point) => {
      const one = new OutboxCase(scene, server);
      expect((await one.run(`${point}=kill`)).signal).toBe("SIGKILL");
      await one.waitForQuiet();
      one.expectFired(nameOf(point));
      const [killed] = one.runs();
      expect(one.rows()).toEqual([expect.objectContaining({ event: "failure", state: "waiting" })]);
      // The twin: before the next run nobody has, unless it was killed with the answer at hand.
      expect(one.heardOf(killed)).toEqual(point === "outbox.delivered" ? ["failure"] : []);
      await one.comeNext();
      expect(one.heardOf(killed)).toEqual(["failure"]);
      expect(one.heardOf(one.runs()[1])).toEqual(["recovered"]);
      expect(one.rows().map(({ state }) => state)).toEqual(["delivered", "delivered"]);
    },
    LIMIT_MS,
  );
});

describe("watchdog and its guard killed:", () => {
  const rows = [
    ...[...BEFORE_THE_GUARD_KNOWS, ...BEFORE_THE_COMMIT].map(
      (point) => [point, "abandoned"] as const,
    ),
    ...[...BEFORE_BYE, ...AFTER_BYE].map((point) => [point, "failure"] as const),
  ];
  test.each(rows)(
    "at %s the next run tells of %s",
    async (point, event) => {
      const one = new OutboxCase(scene, server);
      await one.killWithGuard(one.start(`${point}=stop`));
      one.expectFired(nameOf(point));
      await one.comeNext();
      const [killed, next] = one.runs();
      expect(one.heardOf(killed)).toEqual([event]);
      expect(one.heardOf(next)).toEqual(["recovered"]);
      expect(one.rows().every(({ state }) => state === "delivered")).toBe(true);
    },
    LIMIT_MS,
  );

  test(
    "before the journal has heard of the run, the next one tells its own receivers",
    async () => {
      const one = new OutboxCase(scene, server);
      await one.killWithGuard(one.start("spawn.after=stop"));
      expect(await one.comeNext()).toMatchObject({ status: 0 });
      const [killed] = one.runs();
      expect(one.heardOf(killed)).toEqual(["abandoned"]);
    },
    LIMIT_MS,
  );

  test(
    "a next run without receivers tells those that the dead one had declared",
    async () => {
      const one = new OutboxCase(scene, server);
      await one.killWithGuard(one.start("release.R1=stop"));
      await one.run(undefined, ["true"], []);
      const [killed, next] = one.runs();
      expect(one.heardOf(killed)).toEqual(["abandoned"]);
      // It has declared none, so nobody hears that it is well again.
      expect(one.heardOf(next)).toEqual([]);
    },
    LIMIT_MS,
  );
});

describe("the guard killed while it tells:", () => {
  test.each(["outbox.insert", "outbox.claim", "outbox.send", "outbox.delivered"])(
    "at %s the next run tells it",
    async (point) => {
      const one = new OutboxCase(scene, server);
      expect((await one.run(`release.R1=kill,${point}=kill`)).signal).toBe("SIGKILL");
      await one.waitForQuiet();
      one.expectFired("release.R1", point);
      await one.comeNext();
      const [killed, next] = one.runs();
      expect(one.heardOf(killed)).toEqual(["abandoned"]);
      expect(one.heardOf(next)).toEqual(["recovered"]);
    },
    LIMIT_MS,
  );
});

describe("a receiver that is down:", () => {
  test(
    "killed while it plans the next attempt, the notice is tried again at once",
    async () => {
      const one = new OutboxCase(scene, server);
      server.behaviour = { status: 500 };
      expect((await one.run("outbox.retry=kill")).signal).toBe("SIGKILL");
      one.expectFired("outbox.retry");
      server.behaviour = { status: 200 };
      await one.comeNext();
      const [killed] = one.runs();
      expect(one.heardOf(killed)).toEqual(["failure"]);
      expect(server.keysOf(killed ?? "")).toHaveLength(1);
      expect(one.rows()[0]).toMatchObject({ state: "delivered", attempts: 2 });
    },
    LIMIT_MS,
  );

  test(
    "each attempt is counted before it is made, so that a notice that kills its sender ends",
    async () => {
      const one = new OutboxCase(scene, server);
      let before = 0;
      for (let round = 0; round < 3; round += 1) {
        await one.run("outbox.send=kill");
        await one.waitForQuiet();
        const [row] = one.rows();
        expect(row).toMatchObject({ state: "waiting" });
        // The guard of a run that was killed beside its command has tried, too.
        expect(row?.attempts).toBeGreaterThan(before);
        before = row?.attempts ?? 0;
      }
    },
    LIMIT_MS,
  );
});

describe("a journal that somebody else holds:", () => {
  test(
    "the end that watchdog and its guard could only spool is told once",
    async () => {
      const one = new OutboxCase(scene, server);
      await one.comeNext();
      const go = scene.path("go");
      const wait = `while [ ! -e ${go} ]; do sleep 0.02; done; exit 7`;
      const run = one.start("release.R4=kill", ["sh", "-c", wait]);
      const isRunning = "SELECT 1 FROM runs WHERE state = 'running'";
      await waitFor(() => inspect(one.state, isRunning).length > 0, "the run to be recorded");
      const holder = await holdExclusively(one.state);
      await Bun.write(go, "");
      expect((await run.ended).signal).toBe("SIGKILL");
      await one.waitForQuiet();
      await holder.release();
      expect(one.rows()).toEqual([]);
      await one.comeNext();
      const [, killed, next] = one.runs();
      expect(one.heardOf(killed)).toEqual(["failure"]);
      expect(one.heardOf(next)).toEqual(["recovered"]);
    },
    LIMIT_MS,
  );

  test(
    "an end that was spooled is told by its own run, once the journal is free again",
    async () => {
      const one = new OutboxCase(scene, server);
      await one.comeNext();
      const go = scene.path("go2");
      const wait = `while [ ! -e ${go} ]; do sleep 0.02; done; exit 7`;
      const run = one.start(undefined, ["sh", "-c", wait]);
      const isRunning = "SELECT 1 FROM runs WHERE state = 'running'";
      await waitFor(() => inspect(one.state, isRunning).length > 0, "the run to be recorded");
      const holder = await holdExclusively(one.state);
      await Bun.write(go, "");
      const spooled = (): boolean =>
        [...new Bun.Glob("*.json").scanSync(`${one.state}/spool`)].length > 0;
      await waitFor(() => {
        try {
          return spooled();
        } catch {
          return false; // ENOENT: it is not there yet
        }
      }, "the end to be spooled");
      await holder.release();
      expect(await run.ended).toMatchObject({ status: 7, stderr: "" });
      expect(one.heardOf(one.runs()[1])).toEqual(["failure"]);
    },
    LIMIT_MS,
  );
});
