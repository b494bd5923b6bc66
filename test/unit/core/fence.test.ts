/** Who may run an operation under a fence: what is claimed, and what must be found for it. */
import { describe, expect, test } from "bun:test";
import {
  decideClaims,
  decideFenceLeaving,
  decideFenceLock,
  decideFenceRecord,
  exitOfFence,
  type FenceClaim,
  type FencedRecord,
  type FenceEnvironment,
} from "../../../src/core/fence.ts";
import type { LeaseKey } from "../../../src/core/lease-key.ts";
import { sampleRecord } from "../../support/lease-samples.ts";

const OUTER = "01930000-0000-7000-8000-00000000000a";
const INNER = "01930000-0000-7000-8000-00000000000b";
const OTHER = "01930000-0000-7000-8000-00000000000c";
const JOB: LeaseKey = { kind: "job", name: "night" };
const LANE: LeaseKey = { kind: "lane", name: "gpu 1" };

const ENVIRONMENT: FenceEnvironment = {
  runPath: `${OUTER}/${INNER}`,
  leases: "job%3Anight lane%3Agpu%201",
  generations: "7 12",
};

function claims(changes: Partial<FenceEnvironment> = {}, asked: readonly LeaseKey[] = []) {
  return decideClaims({ ...ENVIRONMENT, ...changes }, asked);
}

const OWN = { innermost: INNER, runIds: [OUTER, INNER] };
const CLAIM: FenceClaim = { key: JOB, ...OWN, generation: 7 };

function read(changes: Parameters<typeof sampleRecord>[0] = {}): FencedRecord {
  const own = { name: "night", run_id: INNER, generation: 7 };
  return { kind: "read", record: sampleRecord({ ...own, ...changes }) };
}

describe("what is claimed", () => {
  test("are all leases of the environment, each with its number, in the order of keys", () => {
    expect(claims()).toEqual({
      kind: "claims",
      claims: [CLAIM, { key: LANE, ...OWN, generation: 12 }],
    });
    const turned = { leases: "lane%3Agpu%201 job%3Anight", generations: "12 7" };
    expect(claims(turned)).toEqual(claims());
  });

  test("is with --key what any run around this one has, once and in the order of keys", () => {
    const zone: LeaseKey = { kind: "zone", name: "z" };
    expect(claims({}, [zone, JOB, zone])).toEqual({
      kind: "claims",
      claims: [
        { key: JOB, ...OWN, generation: 7 },
        { key: zone, ...OWN, generation: undefined },
      ],
    });
  });

  test.each([undefined, "", "/", "not-a-run", "../..", OUTER.toUpperCase()])(
    "is nothing outside any run: a run path of %j",
    (runPath) => {
      const refusal = { kind: "refuse", because: "outside-any-run" } as const;
      expect(claims({ runPath })).toEqual(refusal);
      expect(claims({ runPath }, [JOB])).toEqual(refusal);
    },
  );

  test("is nothing in a run without a lease, unless a key is named", () => {
    const none = { leases: undefined, generations: undefined };
    expect(claims(none)).toEqual({ kind: "refuse", because: "no-lease" });
    expect(claims(none, [JOB])).toMatchObject({ claims: [{ key: JOB, generation: undefined }] });
  });

  test.each([
    ["fewer numbers", { generations: "7" }],
    ["more numbers", { generations: "7 12 1" }],
    ["no numbers", { generations: undefined }],
    ["no keys", { leases: undefined }],
    ["a number that is none", { generations: "7 x" }],
    ["zero", { generations: "0 12" }],
    ["a sign", { generations: "+7 12" }],
    ["hexadecimal", { generations: "0x7 12" }],
    ["more than can be counted", { generations: "7 9007199254740993" }],
    ["a key that is none", { leases: "night lane%3Agpu%201" }],
    ["a key that is not encoded right", { leases: "job%3Anight lane%3%" }],
    ["a key twice", { leases: "job%3Anight job%3Anight" }],
    ["two blanks", { leases: "job%3Anight  lane%3Agpu%201" }],
  ] satisfies [string, Partial<FenceEnvironment>][])(
    "is nothing where the environment does not fit itself: %s",
    (_, changes) => {
      const refusal = { kind: "refuse", because: "environment-broken" } as const;
      expect(claims(changes)).toEqual(refusal);
      expect(claims(changes, [JOB])).toEqual(refusal);
    },
  );
});

describe("the record", () => {
  test("of the run with its number is current", () => {
    const record = expect.objectContaining({ run_id: INNER });
    expect(decideFenceRecord(CLAIM, read())).toEqual({
      kind: "current",
      generation: 7,
      runId: INNER,
      record,
    });
  });

  test("of a run around is current with its number, unless the environment has another", () => {
    const unlisted = { ...CLAIM, generation: undefined };
    const found = read({ run_id: OUTER, generation: 3 });
    expect(decideFenceRecord(unlisted, found)).toMatchObject({ kind: "current", generation: 3 });
    const listed = { ...CLAIM, generation: 3 };
    expect(decideFenceRecord(listed, found)).toMatchObject({ kind: "current", runId: OUTER });
    const because = "other-generation";
    expect(decideFenceRecord(CLAIM, found)).toEqual({ kind: "refuse", because });
  });

  test.each<[string, FencedRecord, string]>([
    ["missing", { kind: "none" }, "record-missing"],
    ["unreadable", { kind: "unreadable", reason: "it is empty" }, "record-unreadable"],
    ["of a newer version", { kind: "newer", format: 2 }, "record-unreadable"],
    ["of another run", read({ run_id: OTHER }), "other-run"],
    ["of another run with a larger number", read({ run_id: OTHER, generation: 8 }), "other-run"],
    ["of this run with a larger number", read({ generation: 8 }), "other-generation"],
    ["of this run with a smaller number", read({ generation: 6 }), "other-generation"],
    ["released", read({ state: "released" }), "released"],
    ["of another key", read({ name: "day" }), "record-of-another-key"],
    ["of another kind", read({ kind: "lane" }), "record-of-another-key"],
  ])("that is %s refuses", (_, found, because) => {
    expect(decideFenceRecord(CLAIM, found)).toEqual({ kind: "refuse", because } as never);
  });

  test("of the innermost run needs its number in the environment, also with --key", () => {
    const unnumbered = { ...CLAIM, generation: undefined };
    expect(decideFenceRecord(unnumbered, read())).toEqual({
      kind: "refuse",
      because: "other-generation",
    });
  });
});

test("a lock that is taken allows; one that is free or cannot be asked refuses", () => {
  const [held, free] = [{ kind: "held" }, { kind: "free" }] as const;
  const unaskable = { kind: "unaskable", reason: "EACCES" } as const;
  for (const isRecorded of ["yes", "no", "unread"] as const) {
    const facts = { isRecorded, ownerAlive: "yes" } as const;
    expect(decideFenceLock(held, facts)).toEqual({ kind: "held" });
    expect(decideFenceLock(held, { isRecorded, ownerAlive: "unread" })).toEqual({ kind: "held" });
    const dead = { kind: "refuse", because: "owner-dead" } as const;
    expect(decideFenceLock(held, { isRecorded, ownerAlive: "no" })).toEqual(dead);
    const refusal = { kind: "refuse", because: "lock-unaskable" } as const;
    expect(decideFenceLock(unaskable, facts)).toEqual(refusal);
  }
  const reasons = (["yes", "unread", "no"] as const).map((isRecorded) =>
    decideFenceLock(free, { isRecorded, ownerAlive: "unread" }),
  );
  expect(reasons).toEqual([
    { kind: "refuse", because: "owner-dead" },
    { kind: "refuse", because: "owner-dead" },
    { kind: "refuse", because: "lock-replaced" },
  ]);
});

test("only a fence that is busy may be had in a moment: 75, all else is 76", () => {
  expect(exitOfFence("fence-busy")).toBe("locked");
  expect(exitOfFence("owner-dead")).toBe("lease_lost");
  expect(exitOfFence("outside-any-run")).toBe("lease_lost");
});

test("fence leaves as its operation did, or with the number of the limit that ended it", () => {
  const exited = { kind: "exited", code: 5 } as const;
  const killed = { kind: "signaled", signal: 9 } as const;
  const leave = (end: Parameters<typeof decideFenceLeaving>[0]["end"], isTimedOut: boolean) =>
    decideFenceLeaving({ end, isTimedOut }, 124);
  expect(leave(exited, false)).toEqual({ kind: "status", code: 5 });
  expect(leave(killed, false)).toEqual({ kind: "signal", signal: 9 });
  expect([leave(exited, true), leave(killed, true), leave(undefined, true)]).toEqual([
    { kind: "status", code: 124 },
    { kind: "status", code: 124 },
    { kind: "status", code: 124 },
  ]);
});
