/** Why a run ended so, in words, out of its record. */
import { expect, test } from "bun:test";
import { explainRun } from "../../../src/core/run-explanation.ts";
import type { RunRecord } from "../../../src/core/run-record.ts";
import { runningRecord } from "../../support/journal-scene.ts";

function sentenceOf(change: Partial<RunRecord>, fate = "bad" as const): string {
  return explainRun(runningRecord(1, change), fate, null).sentence;
}

test("the sentence tells who has decided, and what", () => {
  const ended = { state: "ended", outcome: "failed" } as const;
  expect(sentenceOf({ ...ended, because: "exited", exit_code: 3 })).toBe(
    "the command ended by itself with status 3",
  );
  expect(
    explainRun(runningRecord(1, { because: "exited", exit_code: 0 }), "good", null).sentence,
  ).toBe("all went well: the command ended by itself with status 0");
  expect(sentenceOf({ ...ended, because: "lease-held" })).toContain("held by another run");
  expect(sentenceOf({ ...ended, because: "idle" })).toContain("--idle-timeout");
  expect(sentenceOf({ ...ended, because: "of-a-later-version" })).toBe("of-a-later-version");
  expect(sentenceOf({ ...ended, because: null })).toBe("no reason was written down");
});

test("a signal is watchdog's only where the record says that it was sent", () => {
  const died = { because: "killed-by-signal", signal: "KILL" } as const;
  expect(sentenceOf(died)).toBe(
    "the command died of KILL, which watchdog has not sent " +
      "(a person, or the kernel where memory ran out)",
  );
  expect(sentenceOf({ ...died, signal: "SEGV" })).toBe(
    "the command died of SEGV, which watchdog has not sent",
  );
  const sent = { signal: "KILL", at_ms: 5, to: "tree", count: 1, why: "grace-over" } as const;
  expect(sentenceOf({ ...died, signals: [sent] })).toContain("which watchdog had sent");
  const other = { ...sent, signal: "TERM" };
  expect(sentenceOf({ ...died, signals: [other] })).toContain("has not sent");
});

test("of an abandoned run it is told who says so", () => {
  const abandoned = { state: "ended", outcome: "abandoned", because: "watchdog-killed" } as const;
  const by = (who: string | null): string =>
    explainRun(runningRecord(1, abandoned), "bad", who).sentence;
  expect(by("guard")).toBe("its watchdog was killed; its guard says so");
  expect(by("next-run")).toBe("its watchdog was killed; the next run says so");
  expect(by("repair")).toBe("its watchdog was killed; watchdog repair says so");
  expect(by(null)).toBe("its watchdog was killed");
});

test("the evidence of a success that was none names the check, what was found and expected", () => {
  const check = { check: "expect-file", target: "dump.gz", passed: false } as const;
  const checks = [
    { ...check, because: "file-empty", found: "0 bytes", expected: "a file, not empty" } as const,
  ];
  const suspicions = [
    { measure: "output_bytes", value: 10, usual: 10_000, spread: 1, runs: 9 } as const,
  ];
  const change = { because: "file-empty", checks, suspicions } as const;
  const { sentence, evidence } = explainRun(runningRecord(1, change), "bad", null);
  expect(sentence).toBe("it said that all went well, but an expected file is empty");
  expect(evidence.map(([label]) => label)).toEqual(["check", "suspicious"]);
  expect(evidence[0]?.[1]).toContain("dump.gz");
  expect(evidence[0]?.[1]).toContain("0 bytes");
});

test("of many signals the first are named", () => {
  const sent = { signal: "TERM", at_ms: 5, to: "tree", count: 1, why: "grace-over" } as const;
  const signals = Array.from({ length: 50 }, () => sent);
  const { evidence } = explainRun(runningRecord(1, { signals }), "bad", null);
  expect(evidence).toHaveLength(5);
});

test("the evidence names what the record holds, and nothing that is not there", () => {
  expect(explainRun(runningRecord(1, {}), "good", null).evidence).toEqual([]);
  const many = Array.from({ length: 7 }, (_, pid) => ({
    pid,
    command: "x",
    ended_by: "TERM" as const,
  }));
  const record = runningRecord(1, {
    held_by: {
      key: "job:n",
      because: "held",
      run_id: "r",
      runner: "u@h",
      pid: 5,
      since: "then",
    },
    limits: { timeout_ms: 7_200_000, idle_timeout_ms: null, not_after: "06:00:00" },
    signals: [{ signal: "TERM", at_ms: 1_250, to: "tree", count: 2, why: "limit" }],
    leftovers: many,
    suspended_ms: 61_000,
    degraded: ["no-guard"],
    dependencies: [
      {
        name: "db",
        role: "liveness",
        target: "tcp://db:1",
        policy: "stop",
        state: "open",
        probes: 4,
        failed_probes: 3,
        last_because: "refused",
        last_detail: "nobody listens",
        last_at: null,
      },
    ],
  });
  expect(explainRun(record, "bad", null).evidence).toEqual([
    ["held by", "job:n was held by run r (pid 5, u@h), since then"],
    ["dependency", "db open (3 of 4 probes failed): nobody listens"],
    ["limits", "--timeout 7200 s, --not-after 06:00:00"],
    ["signal", "TERM to 2 of the tree after 1.3 s (limit)"],
    ["leftovers", "0 x, 1 x, 2 x, 3 x, 4 x, and 2 more"],
    ["suspended", "for 61 s"],
    ["without", "no-guard"],
  ]);
});
