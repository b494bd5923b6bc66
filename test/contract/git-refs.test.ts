/** The names of the refs at a remote, asked of git itself. */
import { expect, test } from "bun:test";
import { fenceRefOf } from "../../src/core/git-fence.ts";
import { LONGEST_KEY_NAME } from "../../src/core/lease-key.ts";
import { seededRandom, SEED } from "../support/killing.ts";

/** Whole letters: names that differ in half a letter alone are one name in two spellings. */
const HARD = [..."./~^:?*[\\@{} \t\n\x7f%-_aé\u{1f600}lock"];

test("git accepts the ref of any key", () => {
  const random = seededRandom(SEED);
  const pick = () => HARD[Math.floor(random() * HARD.length)] ?? "";
  const names = Array.from({ length: 60 }, () =>
    Array.from({ length: 1 + Math.floor(random() * 12) }, pick).join(""),
  );
  names.push("a.lock", "@", "@{", "..", ".", "x.", "x".repeat(LONGEST_KEY_NAME), "-d");
  const refs = names.map((name) => fenceRefOf({ kind: "job", name }));
  for (const [index, ref] of refs.entries()) {
    const { exitCode } = Bun.spawnSync(["git", "check-ref-format", ref]);
    expect([names[index], ref, exitCode]).toEqual([names[index], ref, 0]);
  }
  expect(new Set(refs).size).toBe(new Set(names).size);
  // The negative twin: git does refuse names.
  expect(Bun.spawnSync(["git", "check-ref-format", "refs/x/a.lock"]).exitCode).not.toBe(0);
});
