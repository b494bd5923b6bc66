/** What is said of an artifact, from what was seen of it: each case of the table. */
import { describe, expect, test } from "bun:test";
import {
  type ArtifactTrouble,
  decideArtifact,
  decideSame,
  type Hashing,
} from "../../../src/core/artifact.ts";
import type { FileSight } from "../../../src/core/file-changes.ts";

const SPEC = { path: "out", minBytes: 1, isAnyAge: false };
const ABSENT: FileSight = { kind: "seen", files: new Map() };
const UNREAD: FileSight = { kind: "unread", reason: "permission denied" };
const TROUBLES: readonly ArtifactTrouble[] = [
  "missing",
  "link",
  "special",
  "outside",
  "changing",
  "unreadable",
];

function see(identity: string, bytes = 1): FileSight {
  return { kind: "seen", files: new Map([["", { identity, bytes, changedAt: 0 }]]) };
}

function hashed(bytes = 1, sha256 = "a", kind: "file" | "directory" = "file"): Hashing {
  return { kind: "hashed", artifact: { path: "out", kind, bytes, sha256 } };
}

describe("at the end of a step", () => {
  const rows: readonly (readonly [
    string,
    Partial<Parameters<typeof decideArtifact>[0]>,
    string,
  ])[] = [
    ["was not there", { before: ABSENT }, "good"],
    ["is another one", { before: see("old") }, "good"],
    ["is the same one", { before: see("new") }, "out: is as it was before the start"],
    ["has other bytes", { before: see("new", 2) }, "good"],
    ["was not seen", { before: UNREAD }, "out: before the start: permission denied"],
    ["need not be new", { before: UNREAD, spec: { ...SPEC, isAnyAge: true } }, "good"],
    ["is empty", { hashing: hashed(0) }, "out: is empty"],
    ["is too small", { spec: { ...SPEC, minBytes: 2 } }, "out: 1 byte, expected at least 2"],
    ["may be empty", { hashing: hashed(0), spec: { ...SPEC, minBytes: 0 } }, "good"],
  ];

  test.each(rows)("one that %s", (_, facts, expected) => {
    const verdict = decideArtifact({
      spec: SPEC,
      before: ABSENT,
      after: see("new"),
      hashing: hashed(),
      ...facts,
    });
    expect(verdict.kind === "good" ? "good" : verdict.detail).toBe(expected);
  });

  test.each(TROUBLES)("one that is %s is none, of whatever age", (kind) => {
    for (const isAnyAge of [true, false]) {
      const verdict = decideArtifact({
        spec: { ...SPEC, minBytes: 0, isAnyAge },
        before: ABSENT,
        after: ABSENT,
        hashing: { kind, path: "out", reason: "reason" },
      });
      const because = kind === "missing" ? "artifact-missing" : "artifact-unreadable";
      expect(verdict).toMatchObject({ kind: "bad", because });
    }
  });
});

describe("a record holds", () => {
  const record = { step: "pack", path: "out", kind: "file", bytes: 1, sha256: "a" } as const;

  test("where kind, length and hash are the same, and nowhere else", () => {
    const kinds = [hashed(), hashed(2), hashed(1, "b"), hashed(1, "a", "directory")].map(
      (hashing) => decideSame(record, hashing).kind,
    );
    expect(kinds).toEqual(["same", "changed", "changed", "changed"]);
  });

  test.each(TROUBLES)("and not where it is %s", (kind) => {
    const check = decideSame(record, { kind, path: "out", reason: "reason" });
    expect(check).toEqual({ step: "pack", path: "out", kind, detail: "reason" });
  });
});
