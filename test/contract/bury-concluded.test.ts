/**
 * The burial of a run whose watchdog had decided its outcome and was killed before it had written
 * it down. Real processes; the run is killed with SIGKILL each time.
 */
import { describe, expect, test } from "bun:test";
import type { RunRecord } from "../../src/core/run-record.ts";
import { findRun } from "../../src/journal/queries.ts";
import { RUNNING_RECORD } from "../support/guard-notes.ts";
import { type Guarded, isThere, killAndBury, startGuarded } from "../support/guarded-run.ts";
import { openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);

/** As watchdog notes it before it releases its leases. */
async function noteEnd(run: Guarded, isReleased: boolean): Promise<RunRecord> {
  const record: RunRecord = {
    ...RUNNING_RECORD,
    run_id: run.runId,
    run_path: run.runId,
    state: "ended",
    outcome: "failed",
    because: "exited",
    exit_status: 3,
    status_of: "command",
    exit_code: 3,
    ended_at: "2026-01-01T00:00:01.000Z",
  };
  const changes = { record, isReleased, mainEnd: { kind: "exited", code: 3 } };
  run.send(`note ${JSON.stringify(changes)}`);
  await waitFor(() => run.told().some((one) => "noted" in one), "a note");
  return record;
}

function findInJournal({ runId }: Guarded): unknown[] | undefined {
  const found = findRun(scene.stateDirectory, runId);
  if (found.kind !== "read" || found.value === undefined) return undefined;
  return [found.value.state, found.value.outcome, found.value.abandonedBy];
}

describe("a burial where watchdog had decided the end", () => {
  test("writes that down, and leaves in peace whom watchdog was not to end", async () => {
    const run = await startGuarded(scene);
    const record = await noteEnd(run, true);
    expect(await killAndBury(run)).toEqual({ ...record });
    expect(findInJournal(run)).toEqual(["ended", "failed", null]);
    expect(isThere(run.child)).toBe(true);
    process.kill(run.child, "SIGKILL");
  });

  test("writes that down, and ends whom watchdog could not", async () => {
    const run = await startGuarded(scene);
    const record = await noteEnd(run, false);
    expect(await killAndBury(run)).toEqual({ ...record });
    expect(findInJournal(run)).toEqual(["ended", "failed", null]);
    expect(isThere(run.child)).toBe(false);
  });

  test("is told from one where it had not", async () => {
    const run = await startGuarded(scene);
    expect(await killAndBury(run)).toMatchObject({ outcome: "abandoned" });
    expect(findInJournal(run)).toEqual(["ended", "abandoned", "guard"]);
  });
});
