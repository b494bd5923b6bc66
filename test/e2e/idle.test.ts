/**
 * `--idle-timeout`: what counts as work and what does not, and how `--idle-cpu` and `--idle-io`
 * move the border. Each busy program ends by itself after the span would have run out.
 */
import { expect, test } from "bun:test";
import { python } from "../support/processes.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import type { Ended } from "../support/scene.ts";

const scene = openScene(import.meta.file);
type RunRecord = ReturnType<typeof scene.readRecord>;

const LIMIT_MS = 180_000;
const SPAN = ["--idle-timeout", "1500ms"];
/** Much longer than the span. */
const LONG_S = "5";
/** Never reached where the run is ended as idle. */
const FOREVER_S = "45";

async function runSpinning(
  name: string,
  args: readonly string[],
  words: readonly string[],
): Promise<{ ended: Ended; record: RunRecord }> {
  const span = args.includes("--idle-timeout") ? [] : SPAN;
  const ended = await scene.run(
    [["--log", "off", ...span, ...args, ...scene.recordTo(name), "--"], ...words].flat(),
  );
  return { ended, record: scene.readRecord(name) };
}

function expectIdle(found: { ended: Ended; record: RunRecord }): void {
  expect(found.ended.status).toBe(124);
  expect(found.ended.stderr).toBe(
    "watchdog: ended by --idle-timeout: sent TERM to the whole tree\n",
  );
  expect(found.record).toMatchObject({
    outcome: "idle_timeout",
    because: "idle",
    status_of: "watchdog",
  });
  expect(found.record["signals"][0].at_ms).toBeGreaterThanOrEqual(1500);
}

function expectActive(found: { ended: Ended; record: RunRecord }): void {
  expect(found.ended.stderr).toBe("");
  expect(found.ended.status).toBe(0);
  expect(found.record).toMatchObject({ outcome: "ok", signals: [] });
  expect(found.record["duration_ms"]).toBeGreaterThanOrEqual(Number(LONG_S) * 1000 - 50);
}

interface Case {
  readonly title: string;
  readonly args: readonly string[];
  readonly words: (seconds: string) => readonly string[];
  readonly isIdle: boolean;
}

const CASES: readonly Case[] = [
  {
    title: "a process that sleeps is idle",
    args: [],
    words: (seconds) => ["sleep", seconds],
    isIdle: true,
  },
  {
    title: "one that turns over at 0.2 % of a core is idle",
    // Long enough for a clock tick (10 ms) to show what little is done.
    args: ["--idle-timeout", "6s"],
    words: (seconds) => python("spins.py", "little", seconds),
    isIdle: true,
  },
  {
    title: "one that computes is not idle",
    args: [],
    words: (seconds) => python("spins.py", "much", seconds),
    isIdle: false,
  },
  {
    title: "one that computes far below a sleeping main command is not idle",
    args: [],
    words: (seconds) => {
      const spin = python("spins.py", "much", seconds).join(" ");
      return ["sh", "-c", `(setsid sh -c '${spin}; exit 0' & wait); exit 0`];
    },
    isIdle: false,
  },
  {
    title: "a chain of short processes that compute is not idle",
    // Starting a program reads more than the border of I/O.
    args: ["--idle-io", "1GiB"],
    words: (seconds) => {
      const burst = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
      return [
        "sh",
        "-c",
        `for n in $(seq ${Number(seconds) * 5}); do sh -c '${burst}'; sleep 0.2; done`,
      ];
    },
    isIdle: false,
  },
  {
    title: "one that prints is not idle",
    args: [],
    words: (seconds) => python("spins.py", "prints", seconds),
    isIdle: false,
  },
  {
    title: "one that reads is not idle",
    args: ["--idle-cpu", "90"],
    words: (seconds) => python("spins.py", "reads", seconds),
    isIdle: false,
  },
  {
    title: "--idle-io moves the border: one that reads less is idle",
    args: ["--idle-cpu", "90", "--idle-io", "1GiB"],
    words: (seconds) => python("spins.py", "reads", seconds),
    isIdle: true,
  },
  {
    title: "one that computes for a tenth of its time is not idle",
    args: [],
    words: (seconds) => python("spins.py", "some", seconds),
    isIdle: false,
  },
  {
    title: "--idle-cpu moves the border: a tenth of a core is idle below 60 %",
    args: ["--idle-cpu", "60"],
    words: (seconds) => python("spins.py", "some", seconds),
    isIdle: true,
  },
  {
    title: "a nested watchdog is no work by itself",
    args: [],
    words: (seconds) => [RELEASE, "run", "--log", "off", "--", "sleep", seconds],
    isIdle: true,
  },
];

CASES.forEach((one, index) => {
  test(
    one.title,
    async () => {
      const words = one.words(one.isIdle ? FOREVER_S : LONG_S);
      const found = await runSpinning(`case-${index}`, one.args, words);
      if (one.isIdle) expectIdle(found);
      else expectActive(found);
      if (words.includes("prints")) expect(found.ended.stdout.toString()).toStartWith("alive\n");
    },
    LIMIT_MS,
  );
});
