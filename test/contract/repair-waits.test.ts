/** Repairs beside others: who holds the journal, and runs that find their key being repaired. */
import { describe, expect, test } from "bun:test";
import { claim, countLooks, FEW_LOOKS, holdFile, refusalOf } from "../support/claim-scene.ts";
import { PYTHON } from "../support/outside.ts";
import { readLines } from "../support/processes.ts";
import { failureOf } from "../support/failure-of.ts";
import { waitFor } from "../support/wait-for.ts";

import {
  actsOf,
  planOf,
  recordOf,
  repair,
  scene,
  started,
  startOwner,
} from "../support/repair-owner.ts";

describe("while somebody stands still with the journal", () => {
  /** Keeps readers out, too. */
  async function holdJournal(): Promise<() => Promise<void>> {
    const words = ["-c", HOLD_JOURNAL, `${scene.directory}/journal.db`];
    const child = Bun.spawn([PYTHON, "-I", "-S", ...words], { stdio: ["pipe", "pipe", "inherit"] });
    started.push(child);
    for await (const _ of child.stdout) break;
    return async () => {
      child.kill("SIGKILL");
      await child.exited;
    };
  }

  test("a look says so, --apply does nothing, and an approval goes on", async () => {
    const [dead, key] = [scene.key(), scene.key()];
    await scene.leaveDead(dead);
    // Makes the journal.
    expect((await repair({ keys: [dead], isApplying: true })).code).toBe(0);
    await scene.leaveDead(dead);
    const { child, notes } = await startOwner([key], 1);
    const id = planOf(await repair({ keys: [key] }), "end-owner");
    const release = await holdJournal();
    const held = "the audit cannot be used: somebody else holds journal.db";
    const dry = await repair({ keys: [dead] });
    expect([dry.code, dry.lines]).toEqual([0, expect.arrayContaining([held])]);
    const failure = await failureOf(() => repair({ keys: [dead], isApplying: true }));
    expect(failure).toMatchObject({ code: "repair.unusable", exitStatus: 125 });
    expect(String(failure)).toContain(`${held}; without it only what a person approves is done`);
    expect(recordOf(dead).state).toBe("held");
    const done = await repair({ keys: [key], approve: id });
    expect([done.code, done.report?.acts.map(({ end }) => end)]).toEqual([0, ["done"]]);
    expect(done.lines).toContain(held);
    expect(readLines(notes)).toContain("TERM");
    await release();
    await child.exited;
    expect(actsOf(key)).toMatchObject([{ planId: id, phase: "done" }]);
    const again = { keys: [dead], isApplying: true, repairIntervalMs: 0 };
    expect((await repair(again)).code).toBe(0);
  }, 60_000);
});

/** `locking_mode=EXCLUSIVE` of SQLite: nobody else reads. */
const HOLD_JOURNAL = `
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA locking_mode=EXCLUSIVE")
db.execute("BEGIN EXCLUSIVE")
db.execute("CREATE TABLE IF NOT EXISTS held (x)")
print("held", flush=True)
sys.stdin.read()
`;

test("a run that finds its key in the hands of a repair waits, and says for whom", async () => {
  const key = scene.key();
  await scene.leaveDead(key);
  const releases = [`${scene.directory}/repair.lock`, scene.placeOf(key).lock].map((path) =>
    holdFile(path),
  );
  const refused = await refusalOf(scene.request([key], { repairWaitMs: 150 }));
  expect(refused).toMatchObject({ because: "repair-at-work", status: "locked" });
  expect(refused.text).toContain("is in the hands of watchdog repair");
  const request = scene.request([key]);
  const looks = countLooks(request);
  const claiming = claim(request);
  await waitFor(() => request.asked.waits.length > 0, "a wait");
  // Said at once, not after the two seconds of a lock that nobody explains.
  expect(looks()).toBeLessThan(FEW_LOOKS);
  for (const release of releases) release?.();
  (await claiming).release();
  // The twin: a newcomer that acquires it is waited for only where that was asked for.
  const other = holdFile(scene.placeOf(key).lock);
  expect((await refusalOf(scene.request([key]))).because).toBe("being-acquired");
  other?.();
});
