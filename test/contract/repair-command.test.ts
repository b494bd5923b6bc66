/**
 * Repairs of real leases with real locks and processes, where the front door's pieces are played:
 * rights, words and spans.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { renderKey } from "../../src/core/lease-key.ts";
import { MOST_KEPT } from "../../src/lease/files/kept-record.ts";
import { endingPath } from "../../src/lease/files/owner-ending.ts";
import { writeRecord } from "../../src/lease/files/record-file.ts";
import { LOOKS } from "../../src/tree/survivors.ts";
import { holdFile, machine, refusalOf } from "../support/claim-scene.ts";
import { readLines } from "../support/processes.ts";
import { actsOf, planOf, recordOf, repair } from "../support/repair-owner.ts";
import { scene, started, startOwner } from "../support/repair-owner.ts";

describe("without the right to it", () => {
  test.each([
    [{ isApplying: true }, "repair"],
    [{ approve: "0123456789" }, "approve"],
    [{ setGeneration: 7 }, "approve"],
  ] as const)("%j does nothing and says what is missing", async (options, right) => {
    const key = scene.key();
    await scene.leaveDead(key);
    const asked: string[] = [];
    const before = readFileSync(scene.placeOf(key).record, "utf8");
    const { code, lines, report } = await repair(
      { ...options, keys: [key] },
      {
        decideRight: (one) => {
          asked.push(one);
          return { kind: "missing", what: "ops is not in 'approve'" };
        },
      },
    );
    expect([code, lines[0], report]).toEqual([77, "error: ops is not in 'approve'", undefined]);
    expect(asked).toEqual([right]);
    expect(readFileSync(scene.placeOf(key).record, "utf8")).toBe(before);
    expect((await repair({ keys: [key] })).code).toBe(0);
  });
});

describe("a dead lease", () => {
  test("is marked without a number that falls", async () => {
    const key = scene.key();
    await scene.leaveDead(key);
    await scene.leaveDead(key);
    const { code, report } = await repair({ keys: [key], isApplying: true });
    expect([code, report?.acts.map(({ because }) => because)]).toEqual([0, ["marked"]]);
    expect(recordOf(key)).toMatchObject({ state: "released", generation: 2 });
    const held = await scene.hold([key]);
    expect(held.leases[0]?.generation).toBe(3);
    held.close();
  });

  test("is left as it is while a fenced operation is in progress", async () => {
    const key = scene.key();
    await scene.leaveDead(key);
    const release = holdFile(scene.placeOf(key).fence, "shared");
    const { code, report } = await repair({ keys: [key], isApplying: true });
    expect([code, report?.acts.map(({ because }) => because)]).toEqual([75, ["fenced-operation"]]);
    expect(recordOf(key).state).toBe("held");
    release?.();
  }, 20_000);

  test("is not marked where no name is left for its old record", async () => {
    const key = scene.key();
    await scene.leaveDead(key);
    const { record } = scene.placeOf(key);
    for (let at = 1; at <= MOST_KEPT; at += 1) writeFileSync(`${record}.kept-${at}`, "");
    const { code, lines } = await repair({ keys: [key], isApplying: true });
    expect(code).toBe(78);
    expect(lines).toEqual([
      `error: too many old records are kept beside that of ${renderKey(key)}: ` +
        "move lease.json.kept-* away first",
    ]);
    expect(recordOf(key).state).toBe("held");
    // Nothing was begun, so that nothing is counted.
    expect(actsOf(key)).toEqual([]);
    for (let at = 1; at <= MOST_KEPT; at += 1) rmSync(`${record}.kept-${at}`);
    expect((await repair({ keys: [key], isApplying: true })).code).toBe(0);
  });

  test("keeps the mark of an owner that was ended, so that the cooldown holds", async () => {
    const key = scene.key();
    await scene.leaveDead(key);
    const mark = {
      plan_id: "0123456789",
      action: "ended-owner",
      at: "2026-01-01T00:00:00.000Z",
      boot_id: machine.bootId,
      time_namespace: machine.timeNamespace,
      monotonic_ms: 5,
      by: "ops@nightly",
    } as const;
    writeRecord(scene.placeOf(key).record, { ...recordOf(key), repair: mark });
    expect((await repair({ keys: [key], isApplying: true })).code).toBe(0);
    expect(recordOf(key)).toMatchObject({ state: "released", repair: mark });
  });

  test("that somebody acquires meanwhile is refused, and nothing is changed", async () => {
    const key = scene.key();
    await scene.leaveDead(key);
    const dry = await repair({ keys: [key] });
    const held = await scene.hold([key]);
    const { code, lines } = await repair({ keys: [key], approve: planOf(dry, "mark") });
    expect([code, lines[0]]).toEqual([
      77,
      `error: no plan has the id ${planOf(dry, "mark")} now: the evidence has changed`,
    ]);
    expect(recordOf(key)).toMatchObject({ state: "held", generation: 2 });
    held.close();
  });
});

test("an approval whose evidence changes after the look, before the lock, is refused", async () => {
  const key = scene.key();
  await scene.leaveDead(key);
  const id = planOf(await repair({ keys: [key] }), "mark");
  const { record } = scene.placeOf(key);
  let changed = "";
  const change = () => {
    // The record was read for the look already; the one under the lock reads this.
    if (changed === "") writeRecord(record, { ...recordOf(key), pid_start_time: 2 });
    changed ||= readFileSync(record, "utf8");
    return { identities: new Set<string>(), tokens: new Set<string>() };
  };
  const { code, lines, report } = await repair({ keys: [key], approve: id }, { readKept: change });
  expect([code, lines]).toEqual([
    77,
    [`error: the evidence about ${renderKey(key)} has changed: nothing was done`],
  ]);
  expect(report?.acts).toMatchObject([{ end: "refused", because: "evidence-changed" }]);
  expect(readFileSync(record, "utf8")).toBe(changed);
  expect(actsOf(key)).toMatchObject([
    { phase: "refused", planId: id, because: "evidence-changed" },
  ]);
});

test("--apply does nothing that needs an approval by the time that the lock is had", async () => {
  const key = scene.key();
  const runId = Bun.randomUUIDv7();
  await scene.leaveDead(key, { run_id: runId });
  let looks = 0;
  // The last of the looks that find nobody has been taken: who comes now is a suspect.
  const suspect = (): Bun.Subprocess =>
    Bun.spawn(["sleep", "60"], { env: { ...process.env, WATCHDOG_RUN_PATH: runId } });
  const readKept = () => {
    looks += 1;
    if (looks === LOOKS) started.push(suspect());
    return { identities: new Set<string>(), tokens: new Set<string>() };
  };
  const { code, report } = await repair({ keys: [key], isApplying: true }, { readKept });
  expect(report?.leases.map(({ verdict }) => verdict.name)).toEqual(["dead"]);
  expect(report?.acts).toMatchObject([{ end: "refused", because: "evidence-changed" }]);
  expect([code, recordOf(key).state, actsOf(key)]).toEqual([77, "held", []]);
  expect(started.at(-1)?.signalCode).toBeNull();
  expect(looks).toBeGreaterThan(LOOKS);
});

describe("an approved end of an owner", () => {
  test("asks once, where that is enough", async () => {
    const key = scene.key();
    const { child, notes } = await startOwner([key], 1);
    const id = planOf(await repair({ keys: [key] }), "end-owner");
    const { code, steps, report } = await repair({ keys: [key], approve: id });
    expect([code, steps, report?.acts.map(({ because }) => because)]).toEqual([0, [], ["marked"]]);
    expect(await child.exited).toBe(0);
    expect(readLines(notes).filter((one) => one === "TERM")).toHaveLength(1);
    expect(recordOf(key)).toMatchObject({
      state: "released",
      generation: 7,
      repair: { plan_id: id, action: "ended-owner" },
    });
  });

  test("asks twice, then kills, and marks every key of that run before", async () => {
    const [key, other] = [scene.key(), scene.key()];
    const { child, notes } = await startOwner([key, other], 0);
    const id = planOf(await repair({ keys: [key] }), "end-owner");
    const killed = await repair({ keys: [key], approve: id }, { ownerGraceMs: 400 });
    expect(killed.code).toBe(0);
    expect(killed.steps).toEqual([
      `the owner of ${renderKey(key)} was asked to end and still runs: asked once more`,
      `the owner of ${renderKey(key)} does not answer: killed; its guard ends its processes`,
    ]);
    await child.exited;
    expect(child.signalCode).toBe("SIGKILL");
    expect(readLines(notes).filter((one) => one === "TERM")).toHaveLength(2);
    expect(recordOf(key)).toMatchObject({ state: "released", repair: { plan_id: id } });
    // Its record is not ours to write; what was said beside it counts all the same.
    expect(recordOf(other)).not.toHaveProperty("repair");
    expect(await refusalOf(scene.request([other]))).toMatchObject({ because: "repair-cooldown" });
    expect(existsSync(endingPath(scene.placeOf(key), 7))).toBe(false);
  });

  test("that is asked writes no record before it is dead", async () => {
    const key = scene.key();
    const { child } = await startOwner([key], 0);
    const { record } = scene.placeOf(key);
    const before = readFileSync(record, "utf8");
    const id = planOf(await repair({ keys: [key] }), "end-owner");
    const seen: string[] = [];
    const onStep = () => void seen.push(readFileSync(record, "utf8"));
    expect((await repair({ keys: [key], approve: id }, { ownerGraceMs: 200, onStep })).code).toBe(
      0,
    );
    expect(seen).toEqual([before, before]);
    await child.exited;
  });

  test("is refused before anybody hears of it where its record could not be kept", async () => {
    const key = scene.key();
    const { child, notes } = await startOwner([key], 1);
    const { record, directory } = scene.placeOf(key);
    for (let at = 1; at <= MOST_KEPT; at += 1) writeFileSync(`${record}.kept-${at}`, "");
    const names = readdirSync(directory);
    const id = planOf(await repair({ keys: [key] }), "end-owner");
    const refused = await repair({ keys: [key], approve: id });
    expect(refused.report?.acts).toMatchObject([{ end: "refused", because: "too-many-kept" }]);
    expect([refused.code, readLines(notes)]).toEqual([78, ["ready"]]);
    expect(readdirSync(directory)).toEqual(names);
    child.kill("SIGTERM");
    await child.exited;
  });

  test("is refused for a plan of another moment, and nobody hears of it", async () => {
    const key = scene.key();
    const { child, notes } = await startOwner([key], 1);
    const id = planOf(await repair({ keys: [key] }), "end-owner");
    writeRecord(scene.placeOf(key).record, { ...recordOf(key), run_id: "another" });
    const refused = await repair({ keys: [key], approve: id });
    expect(refused.code).toBe(77);
    expect(readLines(notes)).toEqual(["ready"]);
    child.kill("SIGTERM");
    await child.exited;
  });

  test("happens by an approval alone, however often --apply is asked", async () => {
    const key = scene.key();
    const { child, notes } = await startOwner([key], 1);
    for (let round = 0; round < 3; round += 1) {
      const { code, report } = await repair({ keys: [key], isApplying: true });
      expect([code, report?.acts]).toEqual([77, []]);
    }
    expect(readLines(notes)).toEqual(["ready"]);
    child.kill("SIGTERM");
    await child.exited;
  });
});

test("while somebody has repair.lock nothing is done, and a look says so", async () => {
  const [key, other] = [scene.key(), scene.key()];
  for (const one of [key, other]) await scene.leaveDead(one);
  expect((await repair({ keys: [other], isApplying: true })).code).toBe(0);
  const path = `${scene.directory}/repair.lock`;
  expect(existsSync(path)).toBe(true);
  const release = holdFile(path);
  const busy = await repair({ keys: [key], isApplying: true });
  expect([busy.code, busy.lines[0]]).toEqual([
    75,
    `error: another repair is at work in ${scene.directory}`,
  ]);
  expect((await repair({ keys: [key] })).report?.isBusy).toBe(true);
  expect(recordOf(key).state).toBe("held");
  release?.();
  expect((await repair({ keys: [key] })).report?.isBusy).toBe(false);
});
