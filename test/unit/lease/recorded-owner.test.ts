/** The recorded owner against this machine: a fact where both sides are known, else `unread`. */
import { describe, expect, test } from "bun:test";
import type { Fact } from "../../../src/core/evidence.ts";
import type { LeaseRecord } from "../../../src/core/lease-record.ts";
import type { LastGeneration } from "../../../src/lease/last-generation.ts";
import {
  compareOwner,
  findRecordedOwner,
  type OwnerFindings,
  type OwnerSight,
} from "../../../src/lease/recorded-owner.ts";
import type { Machine } from "../../../src/os/machine.ts";
import {
  OTHER_BOOT,
  sampleMachine,
  sampleRecord,
  sampleSlot,
  type SlotChanges,
} from "../../support/lease-samples.ts";

interface Scene {
  readonly record?: Partial<LeaseRecord>;
  readonly slot?: SlotChanges | "none";
  readonly hasRecord?: boolean;
  readonly machine?: Partial<Machine>;
  readonly sight?: Partial<OwnerSight>;
}

function compareIn(scene: Scene): OwnerFindings {
  const slot = scene.slot === "none" ? undefined : sampleSlot(scene.slot);
  const last: LastGeneration = {
    source: { kind: "none" },
    record: scene.hasRecord === false ? undefined : sampleRecord(scene.record),
    slot,
    hasHistory: "yes",
    leastElsewhere: 0,
  };
  return compareOwner(findRecordedOwner(last), slot, {
    machine: sampleMachine(scene.machine),
    lockInode: "1:2",
    nowMs: 1_005_000.25,
    isAlive: () => "yes",
    ...scene.sight,
  });
}

const ALL_KNOWN: OwnerFindings = {
  ownerAlive: "yes",
  sameBoot: "yes",
  sameMachine: "yes",
  namespaceContained: "yes",
  recordedPids: "ours",
  sameLockInode: "yes",
  beatAgeMs: 5000,
};

const INNER = { pidNamespace: "4026532999", isInitialPidNamespace: false };

type Row = readonly [what: string, scene: Scene, differs: Partial<OwnerFindings>];

const ROWS: readonly Row[] = [
  ["where all is the same", {}, {}],
  [
    "of another boot",
    { record: { boot_id: OTHER_BOOT } },
    { sameBoot: "no", ownerAlive: "unread", recordedPids: "incomparable" },
  ],
  [
    "of no known boot",
    { record: { boot_id: "" } },
    { sameBoot: "unread", ownerAlive: "unread", recordedPids: "incomparable" },
  ],
  ["of another machine", { record: { machine_id: "ff" } }, { sameMachine: "no" }],
  ["of another host", { record: { host: "other" } }, { sameMachine: "no" }],
  ["where only one side has a machine id", { machine: { machineId: null } }, { sameMachine: "no" }],
  ["where no side has one", { record: { machine_id: null }, machine: { machineId: null } }, {}],
  [
    "of an inner namespace, seen from the initial one",
    { record: { pid_namespace: "4026532999" } },
    { ownerAlive: "unread", recordedPids: "below-ours" },
  ],
  [
    "of no known namespace",
    { record: { pid_namespace: "" } },
    { ownerAlive: "unread", recordedPids: "incomparable" },
  ],
  [
    "of the initial namespace, seen from an inner one",
    { machine: INNER },
    { ownerAlive: "unread", namespaceContained: "no", recordedPids: "incomparable" },
  ],
  [
    "of the same inner namespace",
    { machine: INNER, record: { pid_namespace: INNER.pidNamespace } },
    {},
  ],
  [
    "where /proc is of another namespace",
    { machine: { seesOwnProc: false } },
    { ownerAlive: "unread", namespaceContained: "unread", recordedPids: "incomparable" },
  ],
  [
    "of another time namespace: neither ages nor start times can be compared",
    { record: { time_namespace: "4026532111" } },
    { ownerAlive: "unread", beatAgeMs: undefined, recordedPids: "incomparable" },
  ],
  [
    "where the kernel has none",
    { record: { time_namespace: null }, machine: { timeNamespace: null } },
    {},
  ],
  ["that is dead", { sight: { isAlive: () => "no" } }, { ownerAlive: "no" }],
  ["that cannot be looked up", { sight: { isAlive: () => "unread" } }, { ownerAlive: "unread" }],
  ["whose lock file was replaced", { sight: { lockInode: "1:3" } }, { sameLockInode: "no" }],
  ["whose lock file is gone", { sight: { lockInode: undefined } }, { sameLockInode: "no" }],
  ["whose lock cannot be seen", { sight: { lockInode: "unread" } }, { sameLockInode: "unread" }],
  ["without a slot", { slot: "none" }, { beatAgeMs: undefined }],
  [
    "with a beat of another boot",
    { slot: { head: { bootId: OTHER_BOOT } } },
    { beatAgeMs: undefined },
  ],
  ["with a beat of the future", { sight: { nowMs: 999_000.25 } }, { beatAgeMs: -1000 }],
  [
    "with a beat at no instant",
    { slot: { head: { monotonicMs: Number.NaN } } },
    { beatAgeMs: undefined },
  ],
];

describe("an owner", () => {
  test.each(ROWS)("%s", (_, scene, differs) => {
    expect(compareIn(scene)).toEqual({ ...ALL_KNOWN, ...differs });
  });

  test("of which nothing is recorded leaves all unread", () => {
    const findings = compareIn({ hasRecord: false, slot: "none" });
    const { beatAgeMs, recordedPids, ...facts } = findings;
    expect([beatAgeMs, recordedPids]).toEqual([undefined, "incomparable"]);
    expect([...new Set(Object.values(facts))]).toEqual(["unread"]);
  });

  test("is looked up by the pid and the start time of its record", () => {
    const asked: unknown[] = [];
    compareIn({ sight: { isAlive: (identity) => (asked.push(identity), "yes") } });
    expect(asked).toEqual([{ pid: 4711, start_time: 123_456 }]);
  });

  test("is not even looked up where its pids are not ours", () => {
    const isAlive = (): Fact => {
      throw new Error("looked up");
    };
    compareIn({ machine: INNER, sight: { isAlive } });
    compareIn({ record: { boot_id: OTHER_BOOT }, sight: { isAlive } });
    expect(() => compareIn({ sight: { isAlive } })).toThrow("looked up");
  });
});

describe("an owner that only the slot tells of", () => {
  const known = { ...ALL_KNOWN, sameMachine: "unread" } as const;

  test("has no machine, and the rest of the facts", () => {
    expect(compareIn({ hasRecord: false })).toEqual(known);
    const sight = { isAlive: (): Fact => "no" };
    expect(compareIn({ hasRecord: false, sight })).toEqual({ ...known, ownerAlive: "no" });
  });

  test("is compared with nothing that is of another time namespace", () => {
    const slot = { body: { timeNamespace: "4026532111" } };
    const findings = compareIn({ hasRecord: false, slot });
    const unread = { ownerAlive: "unread", beatAgeMs: undefined } as const;
    expect(findings).toEqual({ ...known, ...unread, recordedPids: "incomparable" });
  });
});
