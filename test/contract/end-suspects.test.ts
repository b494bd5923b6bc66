/** The approved end of suspects: those who were named, and nobody else. Real processes. */
import { expect, test } from "bun:test";
import { endSuspects } from "../../src/tree/end-suspects.ts";
import { scanProcesses } from "../../src/tree/scan.ts";
import { DeadRunScene, identityOf, isGone, NOBODY_KEPT } from "../support/survivor-scene.ts";
import { waitFor } from "../support/wait-for.ts";
import { readCommandLine } from "../support/scene.ts";

const dead = new DeadRunScene(import.meta.file);
const SLEEP = ["sleep", "97601"];

/** Children of this test that carry the run's id: nobody has orphaned them. */
async function startSuspects(count: number, env = dead.env): Promise<number[]> {
  const pids = Array.from({ length: count }, () => dead.startChild(SLEEP, env));
  await waitFor(() => pids.every((pid) => readCommandLine(pid) === SLEEP.join(" ")), "them");
  return pids;
}

function end(identities: ReturnType<typeof identityOf>[], readKept = NOBODY_KEPT) {
  const run = dead.describe([]);
  return endSuspects({ run, readKept, scan: scanProcesses, identities, graceMs: 500 });
}

test("ends those who were approved, also a stopped one, and spares the others", async () => {
  const [approved = 0, stopped = 0, spared = 0] = await startSuspects(3);
  process.kill(stopped, "SIGSTOP");
  const [one, two, three] = [approved, stopped, spared].map(identityOf);
  if (one === undefined || two === undefined || three === undefined) throw new Error("three");
  expect(await end([one, two])).toBe(2);
  expect([one, two, three].map(isGone)).toEqual([true, true, false]);
  process.kill(spared, "SIGKILL");
});

test("signals nobody with another start, without the run's id, or of another run", async () => {
  const [pid = 0] = await startSuspects(1);
  const [plain = 0] = await startSuspects(1, {});
  const [foreign = 0] = await startSuspects(1, dead.another().env);
  const before = identityOf(pid);
  const others = [
    { pid, start_time: before.start_time - 1 },
    identityOf(plain),
    identityOf(foreign),
  ];
  expect(await end(others)).toBe(0);
  expect([before, identityOf(plain), identityOf(foreign)].map(isGone)).toEqual([
    false,
    false,
    false,
  ]);
  for (const one of [pid, plain, foreign]) process.kill(one, "SIGKILL");
});

test("signals nobody of those that were kept, and nobody at all without a look", async () => {
  const [pid = 0] = await startSuspects(1);
  const identity = identityOf(pid);
  const identities = new Set([`${pid}@${identity.start_time}`]);
  expect(await end([identity], () => ({ identities, tokens: new Set() }))).toBe(0);
  const run = dead.describe([]);
  const blind = { run, readKept: NOBODY_KEPT, scan: () => "unread" as const };
  expect(await endSuspects({ ...blind, identities: [identity] })).toBe("unread");
  expect(isGone(identity)).toBe(false);
  process.kill(pid, "SIGKILL");
});
