/**
 * No two commands of one key run at the same time, however many start at once and whatever they
 * find. The judge is what the commands themselves wrote down about when they lived; and he must be
 * seen to find an overlap where the lock is none.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { type Holder, letHoldersGo, startHolder } from "../support/lease-holder.ts";
import {
  findOverlaps,
  findStandstills,
  type Life,
  livingIn,
  readLives,
} from "../support/life-log.ts";
import { runShell } from "../support/outside.ts";
import { readLines } from "../support/processes.ts";
import { limitOf } from "../support/rounds.ts";
import {
  countOf,
  LOCKED,
  MOST_RUSHES,
  rush,
  rushSilently,
  SHORT_MS,
  STARTERS,
} from "../support/rush.ts";
import { FIXTURES, openScene, RELEASE, ROUNDS } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
afterEach(letHoldersGo);
const LEAST_REFUSALS = 20;
/** So many that some come before a refusal is through. */
const KILLS = Math.max(ROUNDS, 10);

let gates = 0;

/** Fifty at once, of which the one that got in stays until all others have been turned away. */
async function rushForOne(name: string, log: string): Promise<number[]> {
  const gate = scene.path(`gate-${(gates += 1)}`);
  const command = livingIn(log, { gate });
  const { started, statuses } = rush(scene, [RELEASE, "run", "--name", name, "--", ...command]);
  try {
    await waitFor(() => statuses().length >= STARTERS - 1, "49 of 50 to have ended");
    expect(statuses()).toEqual(Array(STARTERS - 1).fill(LOCKED));
  } finally {
    writeFileSync(gate, "");
    await started.ended;
  }
  return statuses();
}

const ONE_OF_FIFTY = [0, ...Array(STARTERS - 1).fill(LOCKED)];

function generationsOf(lives: readonly Life[]): (number | undefined)[] {
  return lives.map(({ generations }) => generations[0]);
}

function upTo(last: number): number[] {
  return Array.from({ length: last }, (_, index) => index + 1);
}

test(
  `fifty starters at once on one key, ${ROUNDS} times: no two commands overlap, the generation ` +
    "grows by one, and everybody else leaves with 75",
  async () => {
    const log = scene.path("rush.lives");
    let granted = 0;
    for (let round = 1; round <= ROUNDS; round += 1) {
      const command = livingIn(log, { spanMs: SHORT_MS });
      const statuses = await rushSilently(scene, [
        RELEASE,
        "run",
        "--name",
        "rush",
        "--",
        ...command,
      ]);
      const [winners, refused] = [countOf(statuses, 0), countOf(statuses, LOCKED)];
      expect([round, winners + refused]).toEqual([round, STARTERS]);
      expect(refused).toBeGreaterThanOrEqual(LEAST_REFUSALS);
      granted += winners;
    }
    const lives = readLives(log);
    expect(lives).toHaveLength(granted);
    expect(granted).toBeGreaterThanOrEqual(ROUNDS);
    expect(findOverlaps(lives)).toEqual([]);
    expect(findStandstills(lives)).toEqual([]);
    expect(generationsOf(lives)).toEqual(upTo(granted));
  },
  limitOf(ROUNDS, 500),
);

describe("the judge", () => {
  const life = (beganNs: number, endedNs: number | undefined, generation: number): Life => ({
    name: String(beganNs),
    beganNs: BigInt(beganNs),
    endedNs: endedNs === undefined ? undefined : BigInt(endedNs),
    generations: [generation],
  });

  test.each([
    ["one after the other", [life(1, 2, 1), life(2, 3, 2), life(4, 5, 3)], 0, 0],
    ["the next begins before the end", [life(1, 3, 1), life(2, 4, 2)], 1, 0],
    [
      "one within a longer one, not a neighbour",
      [life(1, 9, 1), life(2, 3, 2), life(4, 5, 3)],
      2,
      0,
    ],
    ["one that never ended", [life(1, undefined, 1), life(5, 6, 2)], 1, 0],
    ["a generation twice", [life(1, 2, 4), life(3, 4, 4)], 0, 1],
    ["a generation that fell", [life(1, 2, 4), life(3, 4, 5), life(6, 7, 3)], 0, 1],
    ["no generation", [life(1, 2, Number.NaN), life(3, 4, 5)], 0, 1],
  ])("sees %s", (_, lives, overlaps, standstills) => {
    expect(findOverlaps(lives)).toHaveLength(overlaps);
    expect(findStandstills(lives)).toHaveLength(standstills);
  });

  test.each([
    ["a lock file that is looked for and then created", "naive", [`${FIXTURES}/locks-naively.sh`]],
    ["no lease at all", "none", [RELEASE, "run", "--no-lease", "--name", "none", "--"]],
  ])(
    "finds an overlap and a number twice in the same rush with %s",
    async (_, name, words) => {
      const log = scene.path(`${name}.lives`);
      const argv = name === "naive" ? [...words, scene.path("naive")] : words;
      mkdirSync(scene.path("naive"), { recursive: true });
      let found = [0, 0];
      for (let round = 1; round <= MOST_RUSHES && found.includes(0); round += 1) {
        const statuses = await rushSilently(scene, [
          ...argv,
          ...livingIn(log, { spanMs: SHORT_MS }),
        ]);
        expect(countOf(statuses, 0) + countOf(statuses, LOCKED)).toBe(STARTERS);
        const lives = readLives(log);
        found = [findOverlaps(lives).length, findStandstills(lives).length];
      }
      expect(found[0]).toBeGreaterThan(0);
      expect(found[1]).toBeGreaterThan(0);
    },
    600_000,
  );
});

test("A-44: of fifty starts in the same instant one runs, and 49 are locked out", async () => {
  const log = scene.path("a44.lives");
  for (const rounds of [1, 2]) {
    const statuses = await rushForOne("a44", log);
    expect(statuses.toSorted((a, b) => a - b)).toEqual(ONE_OF_FIFTY);
    expect(generationsOf(readLives(log))).toEqual(upTo(rounds));
  }
}, 180_000);

/** Everything that watchdog has started: its guard and its command. */
function childrenOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`)
    .flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" "))
    .filter((word) => word !== "")
    .map(Number);
}

function isAlive(pid: number): boolean {
  return scene.findProcesses().includes(pid);
}

/** SIGKILL for watchdog; its guard ends the command. */
async function leaveDead(name: string): Promise<Holder> {
  const holder = await startHolder(scene, ["--name", name]);
  holder.started.kill("SIGKILL");
  await holder.started.ended;
  await waitFor(() => !isAlive(holder.pid), "the guard to have ended the command");
  return holder;
}

/** SIGKILL for the guard, and for watchdog before it can notice: the command stays. */
async function leaveOrphaned(name: string): Promise<Holder> {
  const holder = await startHolder(scene, ["--name", name]);
  holder.started.kill("SIGSTOP");
  const guards = childrenOf(holder.started.pid).filter((pid) => pid !== holder.pid);
  expect(guards).toHaveLength(1);
  for (const guard of guards) process.kill(guard, "SIGKILL");
  holder.started.kill("SIGKILL");
  await holder.started.ended;
  expect(isAlive(holder.pid)).toBe(true);
  return holder;
}

test.each([
  ["dead, nothing left of it", "a45", leaveDead],
  ["dead, its command still alive", "a45 orphaned", leaveOrphaned],
])(
  "A-45: fifty starters find the same stale lease (%s): one starts, generation + 1",
  async (_, name, leaveStale) => {
    const old = await leaveStale(name);
    const log = scene.path(`${name}.lives`);
    const statuses = await rushForOne(name, log);
    expect(statuses.toSorted((a, b) => a - b)).toEqual(ONE_OF_FIFTY);
    expect(isAlive(old.pid)).toBe(false);
    const before = readLives(old.log);
    expect([generationsOf(before), generationsOf(readLives(log))]).toEqual([[1], [2]]);
  },
  180_000,
);

/** All of a key but the content of the beat: names, identities, sizes, times, texts. */
function pictureOf(directory: string): unknown {
  return readdirSync(directory)
    .sort()
    .map((name) => {
      const path = `${directory}/${name}`;
      const { ino, mode, nlink, uid, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
      const fixed = { name, ino, mode, nlink, uid, size };
      if (name.startsWith("beat.")) return fixed;
      return { ...fixed, mtimeNs, ctimeNs, text: readFileSync(path, "latin1") };
    });
}

test(
  "A-46: losers, refused or killed on the way, leave the winner's lease alone",
  async () => {
    const holder = await startHolder(scene, ["--name", "a46"]);
    const directory = `${scene.stateDirectory}/leases/job/a46`;
    const before = pictureOf(directory);
    expect(before).toMatchObject([
      { name: "beat.1" },
      { name: "fence" },
      { name: "lease.json" },
      { name: "lock" },
    ]);
    const loser = [RELEASE, "run", "--name", "a46", "--", "echo", "STOLEN"];
    for (const _ of [1, 2, 3]) {
      const refused = await scene.startProgram(loser).ended;
      expect([refused.status, refused.stdout.toString(), refused.stderr]).toEqual([LOCKED, "", ""]);
    }
    let killed = 0;
    for (let round = 1; round <= KILLS; round += 1) {
      // From before its first step to after its last: a refusal takes some 100 ms.
      const limit = String((round * 0.12) / KILLS);
      const ended = await scene.startProgram(["timeout", "-s", "KILL", limit, ...loser]).ended;
      expect([LOCKED, 137]).toContain(ended.status);
      expect(ended.stdout.toString()).toBe("");
      killed += ended.status === 137 ? 1 : 0;
    }
    expect(killed).toBeGreaterThan(0);
    expect(pictureOf(directory)).toEqual(before);
    expect((await holder.finish()).status).toBe(0);
    const next = await scene.run(["--name", "a46", "--", ...livingIn(holder.log)]);
    expect(next.status).toBe(0);
    expect(generationsOf(readLives(holder.log))).toEqual([1, 2]);
  },
  limitOf(KILLS, 80),
);

const HANDS_OVER = `
w() {
  i=0
  while [ $i -lt 20 ]; do
    until "$@" sh -c 'a=$(cat n); sleep 0.02; echo $((a+1)) >n'; do
      echo $? >>refused
      sleep 0.03
    done
    i=$((i+1))
  done
}
echo 0 >n
for k in 1 2 3 4 5 6; do w "$W" run WAY --name a49 -- & done
wait
cat n`;

async function handOver(way: string): Promise<string> {
  mkdirSync(scene.path(`a49${way}`));
  const script = HANDS_OVER.replace("WAY", way);
  const ended = await runShell(scene, script, { cwd: scene.path(`a49${way}`) });
  expect([ended.status, ended.stderr]).toEqual([0, ""]);
  return ended.stdout.toString().trim();
}

test("A-49: under constant hand-over nobody is inside with another: 120 exactly", async () => {
  expect(await handOver("")).toBe("120");
  const refusals = readLines(scene.path("a49", "refused"));
  expect(refusals.length).toBeGreaterThanOrEqual(LEAST_REFUSALS);
  expect([...new Set(refusals)]).toEqual([String(LOCKED)]);
}, 120_000);

test("A-49 without a lease: counts are lost", async () => {
  expect(Number(await handOver("--no-lease"))).toBeLessThan(120);
}, 120_000);
