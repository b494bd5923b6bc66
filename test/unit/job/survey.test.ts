/** What a survey makes of the times of its entries. */
import { expect, test } from "bun:test";
import type { ByteText } from "../../../src/core/byte-text.ts";
import { newestOf, sightOf, type Survey } from "../../../src/job/survey.ts";
import { type EntryStat, isSameNode, isSameStat } from "../../../src/os/entries.ts";

const STAT: EntryStat = {
  kind: "file",
  bytes: 1,
  device: 2,
  inodeHigh: 3,
  inodeLow: 4,
  changedSeconds: 5,
  changedNanoseconds: 6,
  modifiedSeconds: 7,
  modifiedNanoseconds: 8_000_000,
  mount: 9,
};

function survey(...stats: readonly Partial<EntryStat>[]): Survey {
  const entries = stats.map((more, at) => [`${at}` as ByteText, { ...STAT, ...more }] as const);
  return { kind: "directory", entries: new Map(entries) };
}

test("an entry is the same where nothing but its mount's number is another", () => {
  expect(isSameStat(STAT, { ...STAT })).toBe(true);
  expect(isSameStat(STAT, { ...STAT, mount: 0 })).toBe(true);
  const fields = Object.keys(STAT).filter((field) => field !== "mount");
  expect(fields).toHaveLength(9);
  for (const field of fields) {
    const other = { ...STAT, [field]: field === "kind" ? "link" : 0 };
    expect([field, isSameStat(STAT, other)]).toEqual([field, false]);
    const isOfNode = ["device", "inodeHigh", "inodeLow"].includes(field);
    expect([field, isSameNode(STAT, other)]).toEqual([field, !isOfNode]);
  }
});

test("the newest is the last by seconds, and by nanoseconds within one", () => {
  const at = (changedSeconds: number, changedNanoseconds: number) => {
    return { changedSeconds, changedNanoseconds };
  };
  const newest = (...times: readonly Partial<EntryStat>[]) => newestOf(survey(...times));
  expect(newest(at(5, 6), at(5, 8), at(5, 7), at(4, 9))).toBe(5_000_000_008n);
  expect(newest(at(1, 999_999_999), at(2, 0))).toBe(2_000_000_000n);
  expect(newest(at(-3, 0))).toBe(0n);
});

test("what is compared with a look before are files and links, each by all of its numbers", () => {
  const seen = sightOf(survey({}, { kind: "directory" }, { kind: "link" }));
  expect(seen.kind === "seen" && [...seen.files]).toEqual([
    ["0", { identity: "2:3:4:5:6:7:8000000", bytes: 1, changedAt: 7_008 }],
    ["2", { identity: "2:3:4:5:6:7:8000000", bytes: 1, changedAt: 7_008 }],
  ]);
});
