/**
 * Incident D: two processes that both "had" a lock file, a fix that stole it from the living, and a
 * release of what belonged to another. Each of the locks that were published so often is put into
 * the harness that judges watchdog, which must find it wrong; and finds nothing wrong with watchdog
 * in as many rushes as the most patient of them needed.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { waitForHolder } from "../support/ask.ts";
import { newcomer, placeOf, stealRecord, waitForBeat } from "../support/lease-seen.ts";
import {
  type Life,
  findOverlaps,
  findStandstills,
  livingIn,
  readLives,
} from "../support/life-log.ts";
import { isDead, readLines } from "../support/processes.ts";
import { countOf, LOCKED, MOST_RUSHES, rushSilently, SHORT_MS, STARTERS } from "../support/rush.ts";
import { FIXTURES, openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 600_000;
/** A lock that is stolen after 40 ms is met by those who come later: they live longer than that. */
const LONGER_MS = 80;
const LEAST_RUSHES = 5;
/** A control that needs more than this has met a machine that is too busy for it. */
const MOST_OF_OURS = 20;

interface Kind {
  readonly name: string;
  readonly says: string;
  readonly spanMs: number;
}

const KINDS: readonly Kind[] = [
  {
    name: "overwriting",
    says: "a file that is opened for overwriting and read back",
    spanMs: SHORT_MS,
  },
  { name: "check-create", says: "a file that is looked for and then created", spanMs: SHORT_MS },
  { name: "pid-file", says: "a file with the pid of somebody who lives", spanMs: SHORT_MS },
  { name: "ttl-steal", says: "a directory that is stolen when it is old", spanMs: LONGER_MS },
  { name: "release-any", says: "a directory that whoever leaves removes", spanMs: SHORT_MS },
  { name: "flock-unlink", says: "a flock whose file its holder removes", spanMs: SHORT_MS },
];

let mostNeeded = LEAST_RUSHES;

async function rushOnce(words: readonly string[], log: string, spanMs: number): Promise<Life[]> {
  const statuses = await rushSilently(scene, [...words, ...livingIn(log, { spanMs })]);
  expect(countOf(statuses, 0) + countOf(statuses, LOCKED)).toBe(STARTERS);
  return readLives(log);
}

describe("the harness catches", () => {
  test.each(KINDS.map((kind) => [kind.says, kind] as const))(
    "%s: two lived at once",
    async (_, { name, spanMs }) => {
      const log = scene.path(`${name}.lives`);
      const directory = scene.path(name);
      mkdirSync(directory);
      const words = [`${FIXTURES}/locks-badly.sh`, name, directory];
      let [rushes, found] = [0, 0];
      while (found === 0 && rushes < MOST_RUSHES) {
        rushes += 1;
        found = findOverlaps(await rushOnce(words, log, spanMs)).length;
      }
      expect(found).toBeGreaterThan(0);
      mostNeeded = Math.min(Math.max(mostNeeded, rushes), MOST_OF_OURS);
    },
    LIMIT_MS,
  );
});

test(
  "and it does not catch watchdog, in as many rushes as the most patient needed",
  async () => {
    const log = scene.path("real.lives");
    const words = [RELEASE, "run", "--name", "real", "--"];
    let lives: Life[] = [];
    for (let rushes = 0; rushes < mostNeeded; rushes += 1) {
      lives = await rushOnce(words, log, LONGER_MS);
    }
    expect(findOverlaps(lives)).toEqual([]);
    expect(findStandstills(lives)).toEqual([]);
    expect(lives.length).toBeGreaterThanOrEqual(mostNeeded);
    expect(lives.every(({ endedNs }) => endedNs !== undefined)).toBe(true);
  },
  LIMIT_MS,
);

test("a run does not release what another has taken: the record stays the other's", async () => {
  const [gate, log] = [scene.path("taken.gate"), scene.path("taken.lives")];
  const beats = ["--heartbeat-interval", "30s"];
  const words = ["--name", "taken", ...beats, "--", ...livingIn(log, { gate })];
  const run = scene.start(words);
  await waitForHolder(scene, "taken");
  const place = placeOf(scene.stateDirectory, "taken");
  await waitForBeat(place, 3);
  const stolen = stealRecord(place);
  writeFileSync(gate, "");
  await run.ended;
  expect(readFileSync(place.record, "utf8")).toBe(stolen);
  expect(readLines(log)).toHaveLength(2);
});

test("who was refused leaves the lock of the holder as it is, however it leaves", async () => {
  const [gate, log] = [scene.path("left.gate"), scene.path("left.lives")];
  const run = scene.start(["--name", "left", "--", ...livingIn(log, { gate })]);
  await waitForHolder(scene, "left");
  for (const signal of [undefined, "SIGTERM", "SIGKILL"] as const) {
    if (signal === undefined) {
      expect((await newcomer(scene, "left")).status).toBe(LOCKED);
      continue;
    }
    const waiter = scene.start(["--name", "left", "--wait", "1m", "--", "echo", "STOLEN"]);
    await waitFor(() => isWaiting(waiter.pid), "a waiter");
    waiter.kill(signal);
    expect((await waiter.ended).stdout.toString()).toBe("");
    // The next one meets the same lock.
    const next = await newcomer(scene, "left");
    expect([signal, next.status, next.stdout.toString()]).toEqual([signal, LOCKED, ""]);
  }
  expect(isDead(run.pid)).toBe(false);
  writeFileSync(gate, "");
  expect((await run.ended).status).toBe(0);
  expect((await newcomer(scene, "left")).stdout.toString()).toBe("STOLEN\n");
});

/** Whether one of its threads is blocked in flock(2), as the kernel's list of locks tells. */
function isWaiting(pid: number): boolean {
  return readLines("/proc/locks").some((line) => new RegExp(`-> FLOCK.* ${pid} `).test(line));
}
