/**
 * Each limit against each kind of tree: who obeys is asked only, who does not is killed, and the
 * record tells which it was.
 */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { findByCommand } from "../support/processes.ts";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;
const GRACE_MS = 700;
/** What a busy machine may add; far from the hours that a limit that is not kept would take. */
const SLACK_MS = 15_000;

interface Sent {
  readonly signal: string;
  readonly at_ms: number;
  readonly to: string;
  readonly count: number;
  readonly why: string;
}

interface Tree {
  readonly title: string;
  /** `$1` is the command of the markers, `$2` a file to announce in. */
  readonly script: string;
  readonly needsKill: boolean;
}

const TREES: readonly Tree[] = [
  { title: "a tree that obeys TERM", script: `$1 & echo ready >$2; wait`, needsKill: false },
  {
    title: "a tree that ignores TERM",
    script: `trap '' TERM; $1 & echo ready >$2; wait`,
    needsKill: true,
  },
  {
    title: "a tree that is stopped",
    script: `$1 & kill -STOP $!; echo ready >$2; kill -STOP $$; wait`,
    needsKill: false,
  },
  {
    title: "a tree whose main command obeys and whose grandchild does not",
    script: `(trap '' TERM; exec $1) & trap 'exit 0' TERM; echo ready >$2; wait`,
    needsKill: true,
  },
];

interface Limit {
  readonly title: string;
  readonly args: () => readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly earliestMs: number;
  readonly outcome: string;
  readonly because: string;
}

const INDIA_MS = 5.5 * 3_600_000;

/** The wall clock of a zone without daylight saving, some seconds from now. */
function wallTimeIn(afterMs: number): string {
  return new Date(Date.now() + afterMs + INDIA_MS).toISOString().slice(11, 19);
}

const LIMITS: readonly Limit[] = [
  {
    title: "--timeout",
    args: () => ["--timeout", "3s"],
    earliestMs: 3000,
    outcome: "timeout",
    because: "timeout",
  },
  {
    title: "--idle-timeout",
    args: () => ["--idle-timeout", "2s"],
    earliestMs: 2000,
    outcome: "idle_timeout",
    because: "idle",
  },
  {
    title: "--not-after",
    // Any other reading of the time zone is hours away.
    args: () => ["--not-after", wallTimeIn(4000)],
    env: { TZ: "Asia/Kolkata" },
    earliestMs: 1000,
    outcome: "timeout",
    because: "not-after",
  },
];

LIMITS.forEach((limit, limitIndex) => {
  TREES.forEach((tree, treeIndex) => {
    const name = `limit-${limitIndex}-${treeIndex}`;
    const marker = `sleep 92${limitIndex}${treeIndex}0`;

    test(
      `${limit.title} ends ${tree.title}`,
      async () => {
        const ready = scene.path(`${name}.ready`);
        const script = tree.script.replaceAll("$1", marker).replaceAll("$2", ready);
        const ended = await scene.run(
          [
            ["--log", "off", "--kill-after", `${GRACE_MS}ms`, ...scene.recordTo(name)],
            [...limit.args(), "--", "sh", "-c", script],
          ].flat(),
          limit.env === undefined ? {} : { env: limit.env },
        );
        const record = scene.readRecord(name);
        const signals: readonly Sent[] = record["signals"];
        const [asked, killed] = signals;
        expect(existsSync(ready)).toBe(true);
        expect(findByCommand(scene, marker)).toEqual([]);
        expect(ended.status).toBe(124);
        expect(ended.stderr).toBe(
          `watchdog: ended by ${limit.title}: sent TERM to the whole tree\n`,
        );
        expect(record).toMatchObject({
          outcome: limit.outcome,
          because: limit.because,
          status_of: "watchdog",
          exit_status: 124,
          unsignalable: [],
        });
        expect(asked).toMatchObject({ signal: "TERM", to: "tree", count: 2, why: "limit" });
        expect(asked?.at_ms).toBeGreaterThanOrEqual(limit.earliestMs);
        expect(asked?.at_ms).toBeLessThan(limit.earliestMs + SLACK_MS);
        expect(signals).toHaveLength(tree.needsKill ? 2 : 1);
        if (!tree.needsKill) return;
        expect(killed).toMatchObject({ signal: "KILL", to: "tree", why: "grace-over" });
        expect(Number(killed?.at_ms) - Number(asked?.at_ms)).toBeGreaterThanOrEqual(GRACE_MS - 2);
      },
      LIMIT_MS,
    );
  });
});

test(
  "the record of a limit names what was asked for, and the signals in the order of their times",
  async () => {
    await scene.run(
      [
        ["--log", "off", "--timeout", "1s", "--kill-after", "300ms", ...scene.recordTo("order")],
        ["--not-after", "23:59:59", "--idle-timeout", "30m"],
        ["--", "sh", "-c", "trap '' TERM; sleep 92400 & wait; wait"],
      ].flat(),
    );
    const record = scene.readRecord("order");
    const times = record["signals"].map((sent: Sent) => sent.at_ms);
    expect(times).toHaveLength(2);
    expect(times[1]).toBeGreaterThan(times[0]);
    expect(record["duration_ms"]).toBeGreaterThanOrEqual(times[1]);
    expect(record["limits"]).toEqual({
      timeout_ms: 1000,
      idle_timeout_ms: 1_800_000,
      not_after: "23:59:59",
    });
  },
  LIMIT_MS,
);
