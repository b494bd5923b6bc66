/** The text of a lease record: what is taken, and how everything else is refused. */
import { describe, expect, test } from "bun:test";
import type { LeaseRecord, RepairMark } from "../../../src/core/lease-record.ts";
import { parseRecord, renderRecord } from "../../../src/lease/files/record-file.ts";
import { sampleRecord } from "../../support/lease-samples.ts";

const NULLABLE = [
  "machine_id",
  "time_namespace",
  "released_at",
  "lane",
  "task_id",
  "worktree",
  "branch",
  "cgroup",
  "previous",
];

/** Of every field a value that it must not have, beside null and nothing. */
const WRONG: Record<keyof LeaseRecord, unknown> = {
  format: 0,
  kind: "",
  name: 5,
  generation: 0,
  state: "free",
  run_id: "",
  run_path: 1,
  job: {},
  runner: [],
  host: 1,
  machine_id: 1,
  boot_id: 1,
  pid: 0,
  pid_start_time: -1,
  pid_namespace: 4_026_531_836,
  time_namespace: 1,
  lock_inode: 3,
  uid: 0.5,
  session_started_at: 1,
  acquired_at: 1,
  released_at: 1,
  heartbeat_interval_ms: 0,
  stale_after_ms: "40s",
  lane: 1,
  task_id: 1,
  worktree: 1,
  branch: 1,
  command: ["a"],
  cgroup: 1,
  adopters: [{ pid: "abc", start_time: 1 }],
  previous: { generation: "x", run_id: null, how_it_ended: "dead", evidence: "" },
  repair: { plan_id: "0123456789" },
};
const NAMES = Object.keys(WRONG) as (keyof LeaseRecord)[];
/** The only field that a record may lack. */
const OPTIONAL = "repair";

const REPAIR: RepairMark = {
  plan_id: "0123456789",
  action: "ended-owner",
  at: "2026-01-01T00:00:00.000Z",
  boot_id: "11111111-2222-3333-4444-555555555555",
  time_namespace: "4026531834",
  monotonic_ms: 1_000_000.25,
  by: "ops@nightly",
};
const WRONG_REPAIR: Record<keyof RepairMark, unknown> = {
  plan_id: "",
  action: 1,
  at: 5,
  boot_id: 1,
  time_namespace: 1,
  monotonic_ms: -1,
  by: [],
};

function parse(fields: Readonly<Record<string, unknown>>): ReturnType<typeof parseRecord> {
  return parseRecord(JSON.stringify(fields));
}

describe("a record", () => {
  test("comes back as it was written", () => {
    const record = sampleRecord({ name: "nächtlich ☃", released_at: "2026-01-01T00:00:02.000Z" });
    expect(parseRecord(renderRecord(record))).toEqual({ kind: "read", record });
  });

  test("fills whole blocks and ends in a newline, whatever its length", () => {
    for (let length = 0; length < 9000; length += 97) {
      const text = renderRecord(sampleRecord({ command: "ü".repeat(length) }));
      expect(Buffer.byteLength(text) % 4096).toBe(0);
      expect(text.endsWith("\n")).toBe(true);
    }
  });

  test("that could not be read back is a bug, not a file", () => {
    const command = "x".repeat(65_536);
    expect(() => renderRecord(sampleRecord({ command }))).toThrow("can be read back");
  });

  test("keeps fields that this version does not know", () => {
    const record = { ...sampleRecord(), version: 99, future: { x: [1] } };
    expect(parse(record)).toEqual({ kind: "read", record });
  });

  test("has one known set of fields: each is checked below", () => {
    const names = Object.keys(sampleRecord({ repair: REPAIR })) as (keyof LeaseRecord)[];
    expect(NAMES.toSorted()).toEqual(names.toSorted());
  });

  const needed = NAMES.filter((name) => name !== OPTIONAL);
  test.each(needed.map((name) => [name]))("without '%s' is refused", (name) => {
    const { [name]: _left, ...rest } = sampleRecord();
    expect(parse(rest)).toEqual({
      kind: "unreadable",
      reason: `field '${name}' is missing or of the wrong shape`,
    });
  });

  test.each(NAMES.map((name) => [name]))("with a wrong '%s' is refused", (name) => {
    expect(parse({ ...sampleRecord(), [name]: WRONG[name] }).kind).toBe("unreadable");
    const kind = NULLABLE.includes(name) ? "read" : "unreadable";
    expect([name, parse({ ...sampleRecord(), [name]: null }).kind]).toEqual([name, kind]);
  });

  test("may tell of a repair", () => {
    const record = sampleRecord({ repair: REPAIR });
    expect(parseRecord(renderRecord(record))).toEqual({ kind: "read", record });
    const unnamed = sampleRecord({ repair: { ...REPAIR, time_namespace: null } });
    expect(parse({ ...unnamed })).toEqual({ kind: "read", record: unnamed });
    const later = { ...sampleRecord(), repair: { ...REPAIR, action: "moved", more: 1 } };
    expect(parse(later).kind).toBe("read");
  });

  const parts = Object.keys(WRONG_REPAIR) as (keyof RepairMark)[];
  test.each(parts.map((part) => [part]))("with a repair of a wrong '%s' is refused", (part) => {
    const { [part]: _left, ...rest } = REPAIR;
    for (const repair of [rest, { ...REPAIR, [part]: WRONG_REPAIR[part] }, null, "x", [REPAIR]]) {
      expect(parse({ ...sampleRecord(), repair }).kind).toBe("unreadable");
    }
  });

  test.each([
    [
      "too many adopters",
      { adopters: Array.from({ length: 65 }, () => ({ pid: 1, start_time: 1 })) },
    ],
    ["no list of adopters", { adopters: {} }],
    ["a generation that is not exact", { generation: 2 ** 53 }],
    ["an adopter that is nobody", { adopters: [null] }],
    ["a previous generation that is a text", { previous: "6" }],
  ])("with %s is refused", (_, changes) => {
    expect(parse({ ...sampleRecord(), ...changes }).kind).toBe("unreadable");
  });

  test("of a newer format is told apart, whatever else it holds", () => {
    expect(parse({ format: 2 })).toEqual({ kind: "newer", format: 2 });
    expect(parse({ ...sampleRecord(), format: 2.5 }).kind).toBe("unreadable");
  });
});

test.each([
  ["", "it is empty"],
  ["  \n ", "it is empty"],
  ["\0".repeat(4096), "it holds only zero bytes"],
  ["{", "it is no JSON"],
  ["[]", "it is no JSON object"],
  ["null", "it is no JSON object"],
  ['"x"', "it is no JSON object"],
  ["{}", "field 'format' is missing or of the wrong shape"],
  ['{"pid":"abc"}', "field 'format' is missing or of the wrong shape"],
  [renderRecord(sampleRecord()).slice(0, 500), "it is no JSON"],
])("%j is refused with its reason", (text, reason) => {
  expect(parseRecord(text)).toEqual({ kind: "unreadable", reason });
});
