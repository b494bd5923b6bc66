/** The bytes of a beat slot: each part comes back whole or not at all. */
import { describe, expect, test } from "bun:test";
import { MOST_SLOT_MEMBERS, SLOT_RUN_STATES } from "../../../src/core/lease-record.ts";
import {
  decodeSlot,
  encodeSlot,
  SLOT_BYTES,
  SLOT_HEAD_BYTES,
} from "../../../src/lease/files/slot.ts";
import { sampleSlot } from "../../support/lease-samples.ts";

function members(count: number): { pid: number; start_time: number }[] {
  return Array.from({ length: count }, (_, index) => ({ pid: 100 + index, start_time: index }));
}

/** The same bytes with one bit turned. */
function flipped(bytes: Uint8Array, at: number): Uint8Array {
  const copy = bytes.slice();
  copy[at] = (copy[at] ?? 0) ^ 0x10;
  return copy;
}

function hashOf(bytes: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}

describe("a slot", () => {
  test("comes back as it was written", () => {
    const slot = sampleSlot();
    expect(encodeSlot(slot)).toHaveLength(SLOT_BYTES);
    expect(decodeSlot(encodeSlot(slot))).toEqual(slot);
  });

  test.each(SLOT_RUN_STATES.map((state) => [state]))("comes back in the state %s", (runState) => {
    const slot = sampleSlot({ head: { runState } });
    expect(decodeSlot(encodeSlot(slot))).toEqual(slot);
  });

  test("without main child, guard and members comes back so", () => {
    const nobody = { mainGroup: null, mainChild: null, guard: null };
    const body = { ...nobody, timeNamespace: null, sessionId: 0, members: [], memberCount: 0 };
    const slot = sampleSlot({ body });
    expect(decodeSlot(encodeSlot(slot))).toEqual(slot);
  });

  test("holds the largest numbers that a count can have", () => {
    const most = Number.MAX_SAFE_INTEGER;
    const slot = sampleSlot({
      head: { generation: most, sequence: most, mainLoopSequence: most, wallMs: 8.64e15 },
      body: {
        owner: { pid: 2 ** 22, start_time: most, pidfd_inode: most },
        memberCount: 2 ** 32 - 1,
      },
    });
    expect(decodeSlot(encodeSlot(slot))).toEqual(slot);
  });

  test("lists as many members as it promises, and counts those beyond", () => {
    const all = members(MOST_SLOT_MEMBERS + 50);
    const slot = sampleSlot({ body: { members: all, memberCount: all.length } });
    const body = decodeSlot(encodeSlot(slot))?.body;
    expect(body?.members).toEqual(all.slice(0, MOST_SLOT_MEMBERS));
    expect(body?.memberCount).toBe(all.length);
  });

  test("with long texts lists what they leave room for", () => {
    const all = members(MOST_SLOT_MEMBERS);
    const runId = "ü".repeat(600);
    const slot = sampleSlot({ body: { runId, members: all, memberCount: all.length } });
    const body = decodeSlot(encodeSlot(slot))?.body;
    expect(body?.runId).toBe(runId);
    expect(body?.members.length).toBeGreaterThan(200);
    expect(body?.members).toEqual(all.slice(0, body?.members.length ?? 0));
    expect(body?.memberCount).toBe(all.length);
  });

  test("that cannot hold its texts is a bug, not a cut text", () => {
    expect(() => encodeSlot(sampleSlot({ body: { runId: "x".repeat(5000) } }))).toThrow("fits");
    expect(() => encodeSlot(sampleSlot({ head: { bootId: "x".repeat(37) } }))).toThrow("boot id");
  });

  test("may lie anywhere in the bytes that were read, with more behind it", () => {
    const bytes = new Uint8Array(SLOT_BYTES + 1000);
    bytes.set(encodeSlot(sampleSlot()), 24);
    expect(decodeSlot(bytes.subarray(24))).toEqual(sampleSlot());
  });
});

describe("of a slot that is not whole", () => {
  const slot = sampleSlot();
  const whole = encodeSlot(slot);

  test("every single wrong bit is noticed, in the part that it lies in", () => {
    for (let at = 0; at < SLOT_BYTES; at += 1) {
      const decoded = decodeSlot(flipped(whole, at));
      const expected = at < SLOT_HEAD_BYTES ? undefined : { head: slot.head, body: undefined };
      expect([at, decoded]).toEqual([at, expected]);
    }
  });

  test("every shorter piece gives the head or nothing", () => {
    for (let length = 0; length < SLOT_BYTES; length += 1) {
      const decoded = decodeSlot(whole.subarray(0, length));
      const expected = length < SLOT_HEAD_BYTES ? undefined : { head: slot.head, body: undefined };
      expect([length, decoded]).toEqual([length, expected]);
    }
  });

  test("head and body of two beats are both taken: each has its own checksum", () => {
    const next = encodeSlot(sampleSlot({ head: { sequence: 4 }, body: { memberCount: 99 } }));
    const mixed = whole.slice();
    mixed.set(next.subarray(0, SLOT_HEAD_BYTES));
    expect(decodeSlot(mixed)?.head.sequence).toBe(4);
    expect(decodeSlot(mixed)?.body).toEqual(slot.body);
  });

  test.each([
    ["zeros", new Uint8Array(SLOT_BYTES)],
    ["ones", new Uint8Array(SLOT_BYTES).fill(255)],
    ["nothing", new Uint8Array(0)],
  ])("%s is no slot", (_, bytes) => {
    expect(decodeSlot(bytes)).toBeUndefined();
  });

  test.each([
    ["magic", 0],
    ["format", 4],
    ["run state", 6],
  ])("a right checksum over a foreign %s is no slot either", (_, at) => {
    const bytes = whole.slice();
    bytes[at] = 200;
    new DataView(bytes.buffer).setUint32(124, Bun.hash.crc32(bytes.subarray(0, 124)), true);
    expect(decodeSlot(bytes)).toBeUndefined();
  });

  test("a right checksum over a length that leads out of the body gives no body", () => {
    const bytes = whole.slice();
    const view = new DataView(bytes.buffer);
    view.setUint16(SLOT_HEAD_BYTES, 60_000, true);
    view.setUint32(4092, Bun.hash.crc32(bytes.subarray(SLOT_HEAD_BYTES, 4092)), true);
    expect(decodeSlot(bytes)).toEqual({ head: slot.head, body: undefined });
  });

  test("the layout stays: a later version must read what this one has written", () => {
    expect(hashOf(whole)).toBe("d75c23231f2a13e7e8a39e5d813ac0534c1b69083ef1b38c44ac3dc958821aca");
  });

  test("without progress it is byte for byte the one of the versions that knew none", () => {
    const earlier = encodeSlot(sampleSlot({ head: { counts: null }, body: { work: null } }));
    expect(hashOf(earlier)).toBe(
      "7c3bc60e1460693c6db8c366a35824acb482922ef73d08c235e848b620066d9d",
    );
    expect(decodeSlot(earlier)?.head.counts).toBeNull();
    expect(decodeSlot(earlier)?.body?.work).toBeNull();
  });
});
