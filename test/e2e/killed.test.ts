/**
 * SIGKILL to watchdog itself, at any moment of its life: the tree goes with it, the key is free for
 * the next run, and the truth stands in the journal and in the result file. What ships is killed:
 * the release binary, from outside.
 */
import { expect, test } from "bun:test";
import {
  GONE_LIMIT_MS,
  killAlone,
  killThenGuard,
  killWithGuard,
  roundEntry,
  roundVariable,
  seededRandom,
  SEED,
  spreadMoments,
  waitForGuard,
  waitUntilNobodyCarries,
} from "../support/killing.ts";
import { JOB_KINDS, type JobKind, KilledLane } from "../support/killed-lane.ts";
import { FIXTURES, findCarriers, openScene, ROUNDS } from "../support/scene.ts";
import { findLateTicks, listRuns, readTicks } from "../support/ticks.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
/** A start takes some 50 ms on a quiet machine, an acquisition half of it. */
const SPAN_MS = 300;
/** From here on each third of the span has had a round in every lane. */
const ENOUGH_ROUNDS = 10;
const LIMIT_MS = 60_000 + ROUNDS * 12_000;

/** One lane for each kind of job, side by side: what they share is the state directory. */
async function inLanes(
  what: string,
  rounds: number,
  act: (lane: KilledLane, momentMs: number, round: number) => Promise<void>,
): Promise<KilledLane[]> {
  return Promise.all(
    JOB_KINDS.map(async (kind: JobKind, index) => {
      const lane = new KilledLane(scene, kind, what);
      const moments = spreadMoments(rounds, SPAN_MS, seededRandom(SEED * 31 + index));
      for (const [round, moment] of moments.entries()) await act(lane, moment, round);
      await lane.expectSettled();
      return lane;
    }),
  );
}

function sumOf(lanes: readonly KilledLane[], field: "begun" | "notBegun" | "survived"): number {
  return lanes.reduce((sum, lane) => sum + lane[field], 0);
}

test(
  `A-43: killed at any moment, the tree goes too and the next run is right (seed ${SEED})`,
  async () => {
    const lanes = await inLanes("alone", Math.ceil(ROUNDS / 2), async (lane, momentMs, round) => {
      const killed = await lane.kill(momentMs, killAlone);
      // Half of the next runs meet the guard at its work.
      if (round % 2 === 0) await lane.waitUntilGone(killed);
      await lane.runNext(killed);
      await lane.waitUntilGone(killed);
      await lane.waitForResult();
    });
    if (ROUNDS < ENOUGH_ROUNDS) return;
    expect(sumOf(lanes, "notBegun")).toBeGreaterThan(0);
    // Of two and a half rounds for each; a loaded machine starts late.
    expect(sumOf(lanes, "begun")).toBeGreaterThan(ROUNDS / 4);
  },
  LIMIT_MS,
);

test(
  `with its guard killed too, the next run ends the survivors before it starts (seed ${SEED})`,
  async () => {
    const rounds = Math.ceil(ROUNDS / JOB_KINDS.length);
    const lanes = await inLanes("both", rounds, async (lane, momentMs) => {
      const killed = await lane.kill(momentMs, killWithGuard);
      if (lane.countAlive(killed) > 0) lane.survived += 1;
      await lane.runNext(killed);
      await lane.waitUntilGone(killed);
    });
    // The twin of the test above: without a guard somebody lives on.
    expect(sumOf(lanes, "survived")).toBeGreaterThan(0);
  },
  LIMIT_MS,
);

test(
  `guard or newcomer killed in the middle of it: the next run ends what is left (seed ${SEED})`,
  async () => {
    const rounds = Math.ceil(ROUNDS / JOB_KINDS.length);
    const random = seededRandom(SEED);
    await inLanes("middle", rounds, async (lane, momentMs, round) => {
      if (round % 2 === 0) {
        // The guard takes some 30 ms on a quiet machine; whom it has stopped stays stopped.
        const killed = await lane.kill(momentMs, (run) => killThenGuard(run, random() * 60));
        await lane.runNext(killed);
        return lane.waitUntilGone(killed);
      }
      const first = await lane.kill(momentMs, killWithGuard);
      const newcomer = await lane.kill(random() * SPAN_MS, killAlone, first);
      await lane.runNext(newcomer);
      await lane.waitUntilGone(newcomer);
    });
  },
  LIMIT_MS,
);

test("the judge of overlaps finds two that run at once without a lease", async () => {
  const ticks = scene.path("twins.ticks");
  const words = [
    "--no-lease",
    "--timeout",
    "3s",
    "--",
    "sh",
    `${FIXTURES}/keeps-writing.sh`,
    ticks,
  ];
  await Promise.all([scene.run(words), scene.run(words)]);
  expect(listRuns(readTicks(ticks))).toHaveLength(2);
  expect(findLateTicks(readTicks(ticks)).length).toBeGreaterThan(10);
});

test(
  "from SIGKILL until the tree is gone it takes a moment",
  async () => {
    const spans: number[] = [];
    for (let round = 0; round < Math.min(ROUNDS, 20); round += 1) {
      spans.push(await measureOnce(`span-${round}`));
    }
    const sorted = spans.toSorted((a, b) => a - b);
    const at = (share: number) => Math.round(sorted[Math.floor((sorted.length - 1) * share)] ?? -1);
    const quick = sorted.filter((span) => span < 300).length;
    console.error(
      `SIGKILL to tree gone, ms: median ${at(0.5)}, 95 % ${at(0.95)}, most ${at(1)}; ` +
        `${quick} of ${sorted.length} below 300`,
    );
    expect(at(1)).toBeLessThan(GONE_LIMIT_MS);
    expect(at(0.5)).toBeLessThan(3_000);
  },
  LIMIT_MS,
);

async function measureOnce(mark: string): Promise<number> {
  const entry = roundEntry(mark);
  const words = ["sh", `${FIXTURES}/keeps-writing.sh`, scene.path("span.ticks"), "tree"];
  const run = scene.start(["--name", mark, "--", ...words], {
    env: roundVariable(mark),
    stdout: "ignore",
    stderr: "ignore",
  });
  // The watchdog itself, and three that write; each of them may have a sleep below it.
  await waitFor(() => findCarriers(entry).length > 4, "the whole tree");
  await waitForGuard(run.pid);
  const began = performance.now();
  run.kill("SIGKILL");
  await waitUntilNobodyCarries(entry, began);
  const spanMs = performance.now() - began;
  await run.ended;
  return spanMs;
}
