/** `watchdog status` in words. */
import { expect, test } from "bun:test";
import type { LeaseEvidence } from "../../../src/core/evidence.ts";
import { renderStatus } from "../../../src/cli/render-status.ts";
import { renderInstant } from "../../../src/cli/render-words.ts";
import type { StatusView } from "../../../src/inspect/status.ts";
import { sampleSlot } from "../../support/lease-samples.ts";
import { OPENED_AT, openCircuit, viewOf } from "../../support/circuit-views.ts";
import {
  deadView,
  releasedView,
  runningRun,
  sampleRun,
  sampleRunRecord,
  sampleView,
} from "../../support/lease-views.ts";

const EMPTY: StatusView = {
  stateDirectory: "/s",
  name: undefined,
  leases: [],
  runs: [],
  lastRuns: [],
  circuits: [],
  troubles: [],
};

function blocks(changes: Partial<StatusView>): string[] {
  return renderStatus({ ...EMPTY, ...changes })
    .trimEnd()
    .split("\n\n");
}

test("with nothing held it says so, and free leases are left out", () => {
  expect(renderStatus(EMPTY)).toBe("no lease is held\n");
  expect(renderStatus({ ...EMPTY, leases: [releasedView()] })).toBe("no lease is held\n");
});

test("each lease that somebody has is a block, then each run without one", () => {
  const record = sampleRunRecord({ command: ["sleep", "9"] });
  const runs = [runningRun({ job: "bare", runId: "run-9", pid: 99, record })];
  const [held, bare, ...more] = blocks({ leases: [releasedView(), sampleView()], runs });
  expect(held).toStartWith("job:backup  held since ");
  expect(bare?.split("\n")).toEqual([
    `bare  running without a lease since ${renderInstant(runs[0]?.startedAt)}`,
    "  run       run-9",
    "  owner     pid 99",
    "  command   sleep 9",
  ]);
  expect(more).toEqual([]);
});

test("what a dead watchdog has left is shown, and is not held", () => {
  const [none, dead] = blocks({ leases: [deadView({ members: [], suspects: [] })] });
  expect(none).toBe("no lease is held");
  expect(dead).toStartWith("job:backup  dead: its watchdog is dead, and so is every process of it");
});

const FREE = { lock: { kind: "free" }, sameLockInode: "no" } as const;

test.each<[string, Partial<LeaseEvidence>]>([
  ["cannot be asked", { lock: { kind: "unaskable", reason: "a FIFO" } }],
  ["was replaced under a living owner", { ...FREE, ownerAlive: "yes" }],
  ["was replaced, its owner out of sight", { ...FREE, ownerAlive: "unread" }],
])("that none is held is not said above one whose lock %s", (_, changes) => {
  const [first, second] = blocks({ leases: [releasedView(), sampleView(changes)] });
  expect(first).toBe("no lease is known to be held; of 1 lease it cannot be told");
  expect(second).toStartWith("job:backup  ");
});

test("nor anything of that kind beside one that is held", () => {
  const leases = [sampleView({ ...FREE, ownerAlive: "yes" }), sampleView()];
  expect(renderStatus({ ...EMPTY, leases })).not.toContain("no lease is");
});

test("circuits that are not closed stand before how each job last ended, a line each", () => {
  const circuits = [viewOf(openCircuit()), viewOf(openCircuit({ name: "db" }))];
  const [none, broken, last] = blocks({ circuits, lastRuns: [sampleRun()] });
  expect(none).toBe("no lease is held");
  const since = `open since ${renderInstant(OPENED_AT)}  next trial in 12 s  refused 2 s ago`;
  expect(broken?.split("\n")).toEqual([
    "circuits",
    `  api  ${since}: 127.0.0.1:8080: connection refused`,
    `  db   ${since}: 127.0.0.1:8080: connection refused`,
  ]);
  expect(last).toStartWith("last run\n");
});

test("a run that stands still is paused", () => {
  const slot = sampleSlot({ head: { runState: "paused" } });
  const [held] = blocks({ leases: [sampleView({ slot })] });
  expect(held).toContain("\n  state     paused, 2 processes\n");
});

test("how each job last ended stands at the end", () => {
  const lastRuns = [sampleRun(), sampleRun({ job: "sync", outcome: "failed", exitStatus: 3 })];
  const ended = renderInstant(sampleRun().endedAt);
  expect(blocks({ lastRuns }).at(-1)?.split("\n")).toEqual([
    "last runs",
    `  backup  ok, status 0, ended ${ended}, took 5 min 3 s`,
    `  sync    failed, status 3, ended ${ended}, took 5 min 3 s`,
  ]);
});

test("asked for one name it shows a free lease too, and the last run", () => {
  const shown = blocks({ name: "backup", leases: [releasedView()], lastRuns: [sampleRun()] });
  expect(shown).toHaveLength(2);
  expect(shown[0]).toStartWith("job:backup  free since ");
  expect(shown[1]).toStartWith("last run\n  backup  ok");
});

test("of an unknown name it says that nothing is known", () => {
  expect(renderStatus({ ...EMPTY, name: "no\nbody" })).toBe('nothing is known of "no\\nbody"\n');
});
