/** One patrol with handed-in looks: what it makes of them, and that none costs the others. */
import { afterAll, describe, expect, test } from "bun:test";
import type { PatrolFinding } from "../../src/core/patrol.ts";
import { readPatrolKnowledge } from "../../src/journal/schedule-queries.ts";
import type { LeaseSight, PatrolRequest } from "../../src/patrol/request.ts";
import { GUARD_WAIT_MS, patrolOnce } from "../../src/patrol/round.ts";
import { historyOf, openJournalScene, runId } from "../support/journal-scene.ts";
import { runningRecord } from "../support/journal-scene.ts";

const scene = openJournalScene();
afterAll(() => scene.close());

function request(changes: Partial<PatrolRequest> = {}): PatrolRequest {
  return {
    stateDirectory: changes.stateDirectory ?? scene.newState(),
    periodMs: undefined,
    readLeases: async () => [],
    markDead: async () => ({ marked: [], lines: [] }),
    readCircuits: () => ({ circuits: [], isReadable: true, troubles: [] }),
    ...changes,
  };
}

function sight(name: string, changes: Partial<LeaseSight> = {}): LeaseSight {
  const about = { runId: runId(1), job: name, beatAgeMs: 9, lost: undefined };
  const verdict = { verdict: "stalled", rule: "R2", because: "beat-old" };
  return { key: { kind: "job", name }, ...verdict, ...about, ...changes };
}

function orphan(name: string, isGuarded: boolean): LeaseSight {
  const leases = [{ kind: "job", name, generation: 1 }];
  const lost = { runId: runId(1), run: runningRecord(1), leases, isGuarded };
  const verdict = { verdict: "orphaned", rule: "R6", because: "members" };
  return sight(name, { ...verdict, lost });
}

const words = (findings: readonly PatrolFinding[]) =>
  findings.map(({ kind, subject, state }) => [kind, subject, state]);

describe("a patrol", () => {
  test("tells somebody outside that it lives, after it has delivered", async () => {
    const calls: string[] = [];
    const given = request({
      flush: async () => {
        const known = readPatrolKnowledge(given.stateDirectory, { drains: true });
        calls.push(`flush, ${known.kind === "read" ? known.value.findings.length : "?"} known`);
        return ["2 notices wait"];
      },
      ping: async () => {
        calls.push("ping");
        return undefined;
      },
      readLeases: async () => [sight("a")],
    });
    const report = await patrolOnce(given);
    expect(calls).toEqual(["flush, 1 known", "ping"]);
    expect(report.troubles).toEqual(["2 notices wait"]);
  });

  test("pings though nothing can be delivered, and answers anyway", async () => {
    let pings = 0;
    const report = await patrolOnce(
      request({
        flush: () => Promise.reject(new Error("no way out")),
        ping: async () => {
          pings += 1;
          throw new Error("unreachable");
        },
      }),
    );
    expect(pings).toBe(1);
    expect(report.troubles).toEqual(["outbox: no way out", "ping: unreachable"]);
  });

  test("does not ping where it could not look", async () => {
    let pings = 0;
    const given = request({
      readLeases: () => Promise.reject(new Error("no /proc")),
      ping: async () => void (pings += 1),
    });
    expect(await patrolOnce(given).catch((error: Error) => error.message)).toBe("no /proc");
    expect(pings).toBe(0);
  });

  test("finds notices that were given up, and circuits that are not closed", async () => {
    const circuits = [{ name: "db", state: "permanent", target: null, job: null, sinceAt: 5 }];
    const report = await patrolOnce(
      request({
        readOutbox: () => ({ waiting: 3, dead: 1 }),
        readCircuits: () => ({ circuits, isReadable: true, troubles: [] }),
      }),
    );
    expect(words(report.findings)).toEqual([
      ["circuit", "db", "open"],
      ["outbox", "outbox", "dead"],
    ]);
  });

  test("keeps what it has found of circuits while they cannot be read", async () => {
    const stateDirectory = scene.newState();
    const circuits = [{ name: "db", state: "open", target: null, job: null, sinceAt: 5 }];
    const readable = { circuits, isReadable: true, troubles: [] };
    await patrolOnce(request({ stateDirectory, readCircuits: () => readable }));
    const unreadable = { circuits: [], isReadable: false, troubles: ["journal: busy"] };
    const blind = request({ stateDirectory, readCircuits: () => unreadable });
    const report = await patrolOnce(blind);
    expect([report.news.closed, report.troubles]).toEqual([[], ["journal: busy"]]);
    const after = await patrolOnce(request({ stateDirectory }));
    expect(words(after.news.closed)).toEqual([["circuit", "db", "open"]]);
  });
});

describe("a dead owner", () => {
  test("is looked at once more, after its guard had its time", async () => {
    let looks = 0;
    const began = performance.now();
    const report = await patrolOnce(
      request({
        readLeases: async () => {
          looks += 1;
          return looks === 1 ? [orphan("a", true)] : [sight("a", { verdict: "free" })];
        },
      }),
    );
    expect(performance.now() - began).toBeGreaterThanOrEqual(GUARD_WAIT_MS - 1);
    expect([looks, report.findings, report.abandoned]).toEqual([2, [], []]);
  });

  test("whose guard lives is left to it", async () => {
    const given = request({ readLeases: async () => [orphan("a", true)] });
    const report = await patrolOnce(given);
    expect([report.findings, report.abandoned]).toEqual([[], []]);
  });

  test("whose command lives on is written down once, and not waited for again", async () => {
    let looks = 0;
    const readLeases = async () => {
      looks += 1;
      return [orphan("a", false), orphan("b", false)];
    };
    const given = request({ readLeases });
    const first = await patrolOnce(given);
    expect(first.abandoned).toEqual([runId(1)]);
    expect(historyOf(given.stateDirectory)).toMatchObject([
      { runId: runId(1), outcome: "abandoned", abandonedBy: "patrol" },
    ]);
    // Whoever waits looks once more after it.
    expect(looks).toBe(2);
    expect((await patrolOnce(given)).abandoned).toEqual([]);
    expect(looks).toBe(3);
  });

  test("is marked, and is no finding then; one that could not be marked is", async () => {
    const dead = (name: string) => sight(name, { verdict: "dead", because: "tree-empty" });
    const report = await patrolOnce(
      request({
        readLeases: async () => [dead("a"), dead("b")],
        markDead: async () => ({ marked: [{ kind: "job", name: "a" }], lines: ["b: no right"] }),
      }),
    );
    expect(words(report.findings)).toEqual([["lease", "job:b", "dead"]]);
    expect([report.marked, report.troubles]).toEqual([
      [{ kind: "job", name: "a" }],
      ["b: no right"],
    ]);
  });

  test("nobody is marked for where nobody is dead", async () => {
    let calls = 0;
    await patrolOnce(
      request({
        readLeases: async () => [sight("a"), sight("b", { verdict: "held" })],
        markDead: async () => {
          calls += 1;
          return { marked: [], lines: [] };
        },
      }),
    );
    expect(calls).toBe(0);
  });
});
