/**
 * Fencing over all combinations of what an environment, a record and a lock can say, against the
 * one sentence that is promised: an operation is started only for a living owner that the record
 * names, that is a run around it, and whose number the environment has right.
 */
import { expect, test } from "bun:test";
import type { LockAnswer } from "../../src/core/evidence.ts";
import {
  decideClaims,
  decideFenceLock,
  decideFenceRecord,
  type FencedRecord,
  type FenceEnvironment,
} from "../../src/core/fence.ts";
import type { LeaseKey } from "../../src/core/lease-key.ts";
import { sampleRecord } from "../support/lease-samples.ts";

const OUTER = "01930000-0000-7000-8000-00000000000a";
const INNER = "01930000-0000-7000-8000-00000000000b";
const OTHER = "01930000-0000-7000-8000-00000000000c";
const KEY: LeaseKey = { kind: "job", name: "night" };

const PATHS = [undefined, "", "garbage", OUTER, INNER, `${OUTER}/${INNER}`, `${INNER}/${OUTER}`];
const LEASES = [undefined, "job%3Anight", "lane%3Ax", "night"];
const NUMBERS = [undefined, "6", "7", "8", "seven"];
const ASKED: readonly (readonly LeaseKey[])[] = [[], [KEY]];
const RUNS = [OUTER, INNER, OTHER];
const GENERATIONS = [6, 7, 8];
const LOCKS: readonly LockAnswer[] = [
  { kind: "held" },
  { kind: "free" },
  { kind: "unaskable", reason: "ENOLCK" },
];

const RECORDS: readonly FencedRecord[] = [
  { kind: "none" },
  { kind: "unreadable", reason: "it is empty" },
  { kind: "newer", format: 2 },
  ...RUNS.flatMap((run_id) =>
    GENERATIONS.flatMap((generation) =>
      (["held", "released"] as const).flatMap((state) =>
        ["night", "day"].map((name): FencedRecord => {
          return { kind: "read", record: sampleRecord({ run_id, generation, state, name }) };
        }),
      ),
    ),
  ),
];

interface Case {
  readonly environment: FenceEnvironment;
  readonly asked: readonly LeaseKey[];
  readonly found: FencedRecord;
  readonly lock: LockAnswer;
}

function pairs<One, Other>(ones: readonly One[], others: readonly Other[]): [One, Other][] {
  return ones.flatMap((one) => others.map((other): [One, Other] => [one, other]));
}

function* listCases(): Generator<Case> {
  const asks = pairs(pairs(PATHS, LEASES), pairs(NUMBERS, ASKED));
  for (const [[runPath, leases], [generations, asked]] of asks) {
    const environment = { runPath, leases, generations };
    for (const [found, lock] of pairs(RECORDS, LOCKS)) yield { environment, asked, found, lock };
  }
}

/** The answer for job:night; undefined: allowed. */
function refusalOf({ environment, asked, found, lock }: Case): string | undefined {
  const decided = decideClaims(environment, asked);
  if (decided.kind === "refuse") return decided.because;
  const claim = decided.claims.find(({ key }) => key.kind === KEY.kind && key.name === KEY.name);
  if (claim === undefined) return "not-claimed";
  const record = decideFenceRecord(claim, found);
  if (record.kind === "refuse") return record.because;
  const held = decideFenceLock(lock, { isRecorded: "yes", ownerAlive: "yes" });
  return held.kind === "refuse" ? held.because : undefined;
}

/** Two lists that watchdog has written, or neither. */
function isWhole({ leases, generations }: FenceEnvironment): boolean {
  if (leases === undefined) return generations === undefined;
  return leases !== "night" && /^\d$/.test(generations ?? "");
}

/** Written from the promise, without the steps. */
function isPromised({ environment, asked, found, lock }: Case): boolean {
  if (found.kind !== "read" || lock.kind !== "held" || !isWhole(environment)) return false;
  const { run_id, state, name, generation } = found.record;
  const ids = (environment.runPath ?? "").split("/");
  const isOwn = run_id === ids.at(-1);
  const isListed = environment.leases === "job%3Anight";
  const isNumbered = isListed && environment.generations === String(generation);
  const isAround = !isOwn && !isListed && asked.length > 0;
  const isOurs = ids.includes(run_id) && (isNumbered || isAround);
  return isOurs && state === "held" && name === "night";
}

test("allows what is promised and nothing else, over all combinations", () => {
  let [allowed, refused] = [0, 0];
  const reasons = new Set<string>();
  for (const one of listCases()) {
    const refusal = refusalOf(one);
    if ((refusal === undefined) !== isPromised(one)) {
      throw new Error(`found ${refusal ?? "allowed"} for ${JSON.stringify(one)}`);
    }
    if (refusal === undefined) allowed += 1;
    else refused += 1;
    reasons.add(refusal ?? "allowed");
  }
  expect(allowed).toBeGreaterThan(20);
  expect(allowed + refused).toBe(7 * 4 * 5 * 2 * 39 * 3);
  expect([...reasons].sort()).toEqual([
    "allowed",
    "environment-broken",
    "lock-unaskable",
    "no-lease",
    "not-claimed",
    "other-generation",
    "other-run",
    "outside-any-run",
    "owner-dead",
    "record-missing",
    "record-of-another-key",
    "record-unreadable",
    "released",
  ]);
});

test("a larger number in the record is never passed by who has a smaller one", () => {
  for (const one of listCases()) {
    const { found, environment } = one;
    if (found.kind !== "read" || refusalOf(one) !== undefined) continue;
    const isOwn = environment.runPath?.endsWith(found.record.run_id) ?? false;
    const isListed = environment.leases === "job%3Anight";
    if (isOwn || isListed) expect(environment.generations).toBe(String(found.record.generation));
  }
});
