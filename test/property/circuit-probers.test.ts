/**
 * Runs that come, go and are killed in any order, while their dependency goes up and down: what the
 * server sees of them, and what the row says at that moment.
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { ProbeSettings } from "../../src/core/probe-settings.ts";
import {
  at,
  type FakeRun,
  ProbersScene,
  type Request,
  settingsOf,
} from "../support/probers-scene.ts";

const SLOTS = 5;

type Act =
  | { readonly kind: "go" | "stop" | "kill" | "call"; readonly slot: number }
  | { readonly kind: "up" | "down" | "reset" }
  | { readonly kind: "pass"; readonly spanMs: number };

const slot = fc.integer({ min: 0, max: SLOTS - 1 });
const acts: fc.Arbitrary<Act> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("go" as const), slot }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom("stop", "kill", "call"),
      slot,
    }) as fc.Arbitrary<Act>,
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom("up", "down", "down", "reset"),
    }) as fc.Arbitrary<Act>,
  },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant("pass" as const),
      spanMs: fc.constantFrom(1, 3, 40, 700, 1_500, 12_000, 45_000),
    }),
  },
);

const histories = fc.array(acts, { minLength: 20, maxLength: 80, size: "max" });

const settings: fc.Arbitrary<Partial<ProbeSettings>> = fc.record({
  periodMs: fc.constantFrom(300, 2_000, 10_000),
  initialDelayMs: fc.constantFrom(0, 0, 3_000),
  failureThreshold: fc.integer({ min: 1, max: 3 }),
  successThreshold: fc.integer({ min: 1, max: 2 }),
  backoff: fc.record({
    initialMs: fc.constantFrom(200, 1_000),
    capMs: fc.constantFrom(1_000, 20_000),
    factor: fc.constantFrom(1, 2),
    maxAttempts: fc.integer({ min: 1, max: 6 }),
    maxElapsedMs: fc.constantFrom(5_000, 300_000),
  }),
});

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

interface Seen {
  readonly scene: ProbersScene;
  readonly slots: (FakeRun | undefined)[];
  /** What must never be. */
  readonly wrong: string[];
  readonly kinds: Set<string>;
}

function judge({ scene, wrong, kinds }: Seen, { by, atMs }: Request): void {
  const { state, trialBy } = scene.row;
  const others = [...scene.server.open].filter((pid) => pid !== by);
  if (others.length > 0) wrong.push(`${by} asks at ${atMs} while ${others.join()} does`);
  if (scene.lock.holder !== by) wrong.push(`${by} asks without the lock`);
  kinds.add(state.kind);
  const isTrial = state.kind === "half-open" && state.isTrialOut && trialBy?.pid === by;
  if (state.kind !== "closed" && !isTrial) wrong.push(`${by} asks while it is ${state.kind}`);
}

function open(changes: Partial<ProbeSettings>, seed: number): Seen {
  const scene = new ProbersScene(settingsOf(changes));
  scene.random = seeded(seed);
  const seen: Seen = { scene, slots: Array(SLOTS).fill(undefined), wrong: [], kinds: new Set() };
  scene.server.onRequest = (request) => judge(seen, request);
  return seen;
}

async function perform({ scene, slots }: Seen, act: Act): Promise<void> {
  switch (act.kind) {
    case "go":
      if (slots[act.slot] === undefined) {
        const run = scene.run();
        slots[act.slot] = run;
        void run.go();
      }
      return;
    case "call":
      call(scene);
      return;
    case "stop":
    case "kill":
      slots[act.slot]?.[act.kind]();
      slots[act.slot] = undefined;
      return;
    case "reset":
      reset(scene);
      return;
    case "pass":
      return scene.time.pass(act.spanMs);
    default:
      scene.server.isUp = act.kind === "up";
  }
}

/** `watchdog retry`: asks, and if it may calls at once; sometimes it is killed in its trial. */
function call(scene: ProbersScene): void {
  const caller = scene.run({ isCaller: true });
  const { decision, isTrial } = caller.circuit.tell({ kind: "due" });
  if (!decision.isAdmitted) return;
  if (isTrial && scene.random() < 0.3) return caller.kill();
  caller.circuit.tell({ kind: scene.server.isUp ? "call-succeeded" : "call-failed", isTrial });
}

function reset(scene: ProbersScene): void {
  const row = scene.rows.rows.get("model");
  if (row === undefined) return;
  const state = { kind: "closed", consecutiveFailures: 0, window: [] } as const;
  const settingsHash = scene.lock.holder === undefined ? null : row.settingsHash;
  scene.rows.put({ ...row, state, settingsHash, trialBy: null, probes: 0, goodProbes: 0 });
}

test("nobody asks beside another, nor while it is open but the trial", async () => {
  const kinds = new Set<string>();
  let requests = 0;
  await fc.assert(
    fc.asyncProperty(settings, histories, fc.nat(), async (...given) => {
      const [changes, list, seed] = given;
      const seen = open(changes, seed);
      for (const act of list) await perform(seen, act);
      expect(seen.wrong).toEqual([]);
      requests += seen.scene.count;
      for (const kind of seen.kinds) kinds.add(kind);
      await endWell(seen);
    }),
    { numRuns: 400 },
  );
  expect([...kinds].toSorted()).toEqual(["closed", "half-open"]);
  expect(requests).toBeGreaterThan(10_000);
}, 600_000);

/** The dependency is back for good: whoever watches sees it closed, and exactly one asks. */
async function endWell(seen: Seen): Promise<void> {
  const { scene } = seen;
  scene.server.isUp = true;
  await scene.time.pass(700_000); // the longest trial of somebody else
  const watching = scene.runs.filter((run) => run.isWatching);
  const before = scene.count;
  await scene.time.pass(10 * scene.settings.periodMs);
  const isWatched = watching.length > 0;
  const asked = scene.count - before;
  expect([asked >= (isWatched ? 9 : 0), asked <= (isWatched ? 10 : 0)]).toEqual([true, true]);
  expect(seen.wrong).toEqual([]);
  if (isWatched) expect(scene.row.state.kind).toBe("closed");
  for (const run of watching) {
    expect([undefined, "closed"]).toContain(run.told.at(-1)?.to);
    run.stop();
  }
  await scene.time.pass(700_000);
  expect([scene.lock.holder, scene.server.open.size, scene.time.timerCount]).toEqual([
    undefined,
    0,
    0,
  ]);
}

test("the judge sees each of these: the negative twin", async () => {
  const seen = open({}, 1);
  const { scene, wrong } = seen;
  scene.watching();
  await scene.time.pass(2);
  const signal = new AbortController().signal;
  void scene.server.ask(7, signal);
  expect(wrong).toEqual([expect.stringContaining("while 100 does"), "7 asks without the lock"]);
  wrong.length = 0;
  await scene.time.pass(100);
  const broken = { openedAt: at(0), backoff: { startedAt: at(0), attempts: 1, waits: 1 } };
  scene.rows.put({ ...scene.row, state: { kind: "open", ...broken, retryAt: at(1e9) } });
  void scene.server.ask(100, signal);
  expect(wrong).toEqual(["100 asks while it is open"]);
});
