/**
 * The fence under fire: grants alternate while processes outside the tree, which carry the
 * environment of an earlier run, go on writing. No lower generation is ever taken after a higher
 * one; and the same harness finds that the bare check is not enough for that.
 */
import { expect, test } from "bun:test";
import {
  FenceFire,
  findRegressions,
  generationsOf,
  type HowItEnds,
  type StopsAt,
  type Stranger,
} from "../support/fence-fire.ts";
import { openScene, ROUNDS } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 300_000;
const LEASE_LOST = 76;
const GRANTS = Math.max(4, Math.ceil(ROUNDS / 4));
/** Before each grant: some stand between check and use, most come whenever they come. */
const STOPS: readonly StopsAt[] = Array.from({ length: 20 }, (_, index) =>
  index % 5 === 0 ? "F1" : index % 5 === 1 ? "F4" : undefined,
);

function goOn(strangers: readonly Stranger[], at: StopsAt): void {
  for (const one of strangers) if (one.stopsAt === at) one.process.kill("SIGCONT");
}

/** What became of each: 0 with its line in the register, or 76 without one. */
async function settle(fire: FenceFire, strangers: readonly Stranger[]) {
  const ended = await Promise.all(
    strangers.map(async ({ id, stopsAt, process }) => {
      return { id, stopsAt, status: (await process.ended).status };
    }),
  );
  const written = new Set(fire.updates().map((line) => line.split(" ")[1]));
  for (const { id, status } of ended) {
    expect([id, [0, LEASE_LOST].includes(status), written.has(id)]).toEqual([
      id,
      true,
      status === 0,
    ]);
  }
  const statusesOf = (at: StopsAt) => ended.filter(({ stopsAt }) => stopsAt === at);
  return (at: StopsAt) => new Set(statusesOf(at).map(({ status }) => status));
}

test(
  "no write of an old generation comes after one of a newer, and none is lost",
  async () => {
    const fire = new FenceFire(scene, "fire", GRANTS);
    let { run, generation } = fire.startRun();
    let refused = 0;
    for (let grant = 0; grant < GRANTS; grant += 1) {
      const how: HowItEnds = grant % 2 === 0 ? "released" : "killed";
      const strangers = await fire.startStrangers(await fire.waitForWrite(generation), STOPS);
      await fire.end(run, generation, how);
      const next = fire.startRun();
      // Of a dead owner they are suspects, for as long as they live: nobody is granted anything.
      if (how === "killed") goOn(strangers, "F1");
      else await fire.waitForLock();
      expect(Math.max(...generationsOf(fire.updates()))).toBe(generation);
      goOn(strangers, "F4");
      await fire.waitForWrite(next.generation);
      goOn(strangers, "F1");
      const statusOf = await settle(fire, strangers);
      expect([statusOf("F4"), statusOf("F1")]).toEqual([new Set([0]), new Set([LEASE_LOST])]);
      refused += statusOf("F1").size;
      ({ run, generation } = next);
    }
    await fire.end(run, generation, "released");
    expect(refused).toBe(GRANTS);
    expect(new Set(generationsOf(fire.updates())).size).toBe(GRANTS + 1);
    expect(findRegressions(generationsOf(fire.updates()))).toEqual([]);
    expect(new Set(fire.pushed()).size).toBe(GRANTS + 1);
    expect(findRegressions(fire.pushed())).toEqual([]);
  },
  LIMIT_MS,
);

test(
  "negative twin: after a bare check the register takes old writes, and the judge sees it",
  async () => {
    const fire = new FenceFire(scene, "bare", 1);
    const first = fire.startRun();
    const environment = await fire.waitForWrite(first.generation);
    const strangers = await fire.startStrangers(environment, ["use", "use", "use"]);
    await fire.end(first.run, first.generation, "released");
    const next = fire.startRun();
    await fire.waitForWrite(next.generation);
    goOn(strangers, "use");
    expect((await settle(fire, strangers))("use")).toEqual(new Set([0]));
    await fire.end(next.run, next.generation, "released");
    expect(findRegressions(generationsOf(fire.updates()))).toContain("1 after 2");
    expect(findRegressions(fire.pushed())).toContain("1 after 2");
  },
  LIMIT_MS,
);
