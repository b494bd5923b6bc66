/** Which logs go: every small case against an oracle, and the rules one by one. */
import { describe, expect, test } from "bun:test";
import { decidePruning, type StoredLog } from "../../../src/output/log-retention.ts";

function log(runId: string, bytes: number, isHeld = false): StoredLog {
  return { runId, bytes, isHeld };
}

function fits(logs: readonly StoredLog[], keepBytes: number, maxFiles: number): boolean {
  return logs.length <= maxFiles && logs.reduce((sum, one) => sum + one.bytes, 0) <= keepBytes;
}

/** The fewest free logs, oldest first, without which the rest fits; else all of them. */
function oracle(logs: readonly StoredLog[], keepBytes: number, maxFiles: number): Set<string> {
  const free = logs
    .filter((one) => !one.isHeld)
    .map((one) => one.runId)
    .sort();
  for (let count = 0; count <= free.length; count += 1) {
    const gone = new Set(free.slice(0, count));
    if (
      fits(
        logs.filter((one) => !gone.has(one.runId)),
        keepBytes,
        maxFiles,
      )
    )
      return gone;
  }
  return new Set(free);
}

const LIMITS = [0, 1, 5, 6, 7, 12, 100].flatMap((keepBytes) =>
  [0, 1, 3, 9].map((maxFiles) => [keepBytes, maxFiles] as const),
);

describe("retention", () => {
  test("is the shortest run of the oldest free logs, in every case of up to four", () => {
    const kinds = [1, 5].flatMap((bytes) => [false, true].map((isHeld) => ({ bytes, isHeld })));
    let cases = 0;
    for (let count = 0; count <= 4; count += 1) {
      for (let code = 0; code < kinds.length ** count; code += 1) {
        const logs = Array.from({ length: count }, (_, i) => {
          const kind = kinds[Math.floor(code / kinds.length ** i) % kinds.length]!;
          return log(`run${(i * 3) % 4}${i}`, kind.bytes, kind.isHeld);
        });
        for (const [keepBytes, maxFiles] of LIMITS) {
          const removed = decidePruning(logs, { keepBytes, maxFiles });
          const removedIds = new Set(removed.map((one) => one.log.runId));
          expect(removedIds).toEqual(oracle(logs, keepBytes, maxFiles));
          cases += 1;
        }
      }
    }
    expect(cases).toBe((1 + 4 + 16 + 64 + 256) * 28);
  });

  test("says why each one goes", () => {
    const logs = [log("c", 10), log("a", 10), log("b", 10)];
    const because = (keepBytes: number, maxFiles: number) =>
      decidePruning(logs, { keepBytes, maxFiles }).map((one) => `${one.log.runId} ${one.because}`);
    expect(because(15, 9)).toEqual(["a too-many-bytes", "b too-many-bytes"]);
    expect(because(15, 2)).toEqual(["a too-many-files", "b too-many-bytes"]);
    expect(because(30, 3)).toEqual([]);
  });

  test("an empty log does not go for the sake of bytes", () => {
    const removed = decidePruning([log("a", 0), log("b", 10)], { keepBytes: 5, maxFiles: 9 });
    expect(removed.map((one) => one.log.runId)).toEqual(["b"]);
  });
});
