/**
 * Faults at each numbered place of the journal, in a process of its own. A fault counts only with
 * the marker that it has written itself; the reaction is what the history shows afterwards.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import {
  ended,
  historyOf,
  inspect,
  openJournalScene,
  outcomesOf,
  recordInProcess,
} from "../support/journal-scene.ts";
import { newestVersion } from "../../src/journal/schema.ts";
import { Journal } from "../../src/journal/journal.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

interface Marker {
  readonly point: string;
  readonly nth: number;
  readonly state: Readonly<Record<string, unknown>>;
}

async function runWithFault(fault: string, state = scene.newState()) {
  const directory = scene.newState();
  const run = await recordInProcess(state, ["1", "1000"], {
    env: { WATCHDOG_FAULT: fault, WATCHDOG_FAULT_DIR: directory },
  });
  const markers = readdirSync(directory).map((name): Marker =>
    JSON.parse(readFileSync(`${directory}/${name}`, "utf8")),
  );
  return { state, run, markers };
}

/** The next run of another job, without a fault. */
function recordNext(state: string): string[] {
  const troubles: string[] = [];
  const journal = new Journal(state, (line) => troubles.push(line));
  journal.put(ended(2));
  journal.close(1000);
  return troubles;
}

function spooled(state: string): number {
  return existsSync(`${state}/spool`) ? readdirSync(`${state}/spool`).length : 0;
}

describe.each(["eio", "enospc", "throw"])("a fault (%s)", (act) => {
  test.each(["journal.open", "journal.commit", "migration.step"])(
    "at %s is told, and the run is in the history in the end",
    async (point) => {
      const { state, run, markers } = await runWithFault(`${point}=${act}`);
      expect(markers).toMatchObject([{ point, nth: 1 }]);
      expect([run.status, run.stderr]).toEqual([0, ""]);
      expect(run.lines).toEqual([expect.stringContaining("fault injected")]);
      expect(historyOf(state)).toMatchObject([{ job: "job-1", outcome: "failed" }]);
      expect(inspect(state, "PRAGMA integrity_check")).toEqual([["ok"]]);
    },
  );

  test("at journal.spool, when the journal cannot take it either, is told", async () => {
    const points = ["journal.open=eio", "journal.open#2=eio", "journal.open#3=eio"];
    const spools = [1, 2, 3].map((nth) => `journal.spool#${nth}=${act}`);
    const { state, run, markers } = await runWithFault([...points, ...spools].join(","));
    expect(markers.some(({ point }) => point === "journal.spool")).toBe(true);
    expect(run.status).toBe(0);
    expect(run.lines).toContainEqual(expect.stringMatching(/^this run cannot be recorded/));
    expect([existsSync(`${state}/journal.db`), spooled(state)]).toEqual([false, 0]);
  });
});

describe("a kill", () => {
  test.each([
    ["journal.open", "before there is a database", 0],
    ["migration.step", "while it is made", 0],
    ["journal.commit", "before the start is committed", 0],
    ["journal.commit#2", "before the end is committed", 1],
  ])("at %s (%s) leaves whole rows only, and the next run goes on", async (fault, _, rows) => {
    const { state, run, markers } = await runWithFault(`${fault}=kill`);
    expect(markers).toMatchObject([{ point: fault.split("#")[0] }]);
    expect(run.signal).toBe("SIGKILL");
    expect(recordNext(state)).toEqual([]);
    expect(historyOf(state)).toHaveLength(rows + 1);
    expect(historyOf(state).map((one) => one.state)).toEqual(
      rows === 1 ? ["ended", "running"] : ["ended"],
    );
    expect(inspect(state, "PRAGMA integrity_check")).toEqual([["ok"]]);
    expect(inspect(state, "PRAGMA user_version")).toEqual([[newestVersion()]]);
  });

  test("before the commit of what was spooled loses nothing of it", async () => {
    const state = scene.newState();
    const opens = [1, 2, 3].map((nth) => `journal.open#${nth}=eio`).join(",");
    await runWithFault(opens, state);
    const waiting = spooled(state);
    expect(waiting).toBeGreaterThan(0);
    const killed = await runWithFault("journal.commit=kill", state);
    expect(killed.markers).toHaveLength(1);
    expect(spooled(state)).toBe(waiting);
    recordNext(state);
    expect(outcomesOf(state)).toEqual(["failed", "failed"]);
    expect(spooled(state)).toBe(0);
  });

  test("before the spool file leaves nothing of it, and what is committed stays", async () => {
    const opens = [1, 2, 3].map((nth) => `journal.open#${nth}=eio`).join(",");
    const { state, run, markers } = await runWithFault(`${opens},journal.spool=kill`);
    expect(markers.at(-1)).toBeDefined();
    expect([run.signal, spooled(state)]).toEqual(["SIGKILL", 0]);
    expect(recordNext(state)).toEqual([]);
    expect(historyOf(state)).toHaveLength(1);
  });
});

describe("a disk that takes nothing more", () => {
  test("is told, and leaves no empty database that would be taken for a loss", async () => {
    const state = scene.newState();
    const run = await recordInProcess(state, ["1", "500"], { under: ["prlimit", "--fsize=0"] });
    expect([run.status, run.stderr]).toEqual([0, ""]);
    expect(run.lines).toContainEqual(expect.stringMatching(/^journal\.db cannot be used: /));
    expect(run.lines).toContainEqual(expect.stringMatching(/^this run cannot be recorded/));
    expect(existsSync(`${state}/journal.db`)).toBe(false);
    expect(recordNext(state)).toEqual([]);
    expect(outcomesOf(state)).toEqual(["failed"]);
  });

  test("leaves a journal that is there as it was", async () => {
    const state = scene.newState();
    expect(recordNext(state)).toEqual([]);
    const run = await recordInProcess(state, ["1", "500"], { under: ["prlimit", "--fsize=0"] });
    expect([run.status, run.lines.length]).toEqual([0, 2]);
    expect(historyOf(state)).toHaveLength(1);
    expect(inspect(state, "PRAGMA integrity_check")).toEqual([["ok"]]);
  });
});

describe("without a fault", () => {
  test("the same run leaves no marker and no complaint", async () => {
    const { state, run, markers } = await runWithFault("no.such-point=eio");
    expect([markers, run.lines, run.status]).toEqual([[], [], 0]);
    expect(outcomesOf(state)).toEqual(["failed"]);
  });
});
