/**
 * A signal for the whole tree reaches every member of it, however deep the tree is and although
 * members end while the others are still being told.
 *
 * The proof is the members' own: each appends one line, its pid, when TERM arrives, and exits.
 */
import { describe, expect, test } from "bun:test";
import { python, readLines, startWithoutTerminal, waitForText } from "../support/processes.ts";
import { FIXTURES, openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;
/** Members that nobody tells give up after this many seconds. */
const LIFE_S = "60";
/** Who was not told is killed then, so that a broken build ends soon. */
const GRACE = "15s";

interface Pace {
  readonly how: string;
  readonly leastUs: number;
  readonly mostUs: number;
}

const AT_ONCE: Pace = { how: "end at once", leastUs: 0, mostUs: 0 };
const PACES: readonly Pace[] = [
  AT_ONCE,
  { how: "end in any order", leastUs: 0, mostUs: 200_000 },
  // Longer than telling them all takes: the last one that is told is still as deep as at first.
  { how: "end late", leastUs: 3_000_000, mostUs: 3_000_000 },
];
const CHAINS = [500, 1500].flatMap((depth) => PACES.map((pace) => ({ depth, ...pace })));
const CHAIN = makeChain();

/** Compiled where there is a compiler; the same in Python is slower, and says so. */
function makeChain(): readonly string[] {
  const target = scene.path("chain");
  const compiler = Bun.which("cc");
  const words = ["-O2", "-o", target, `${FIXTURES}/chains-listeners.c`];
  if (compiler !== null && Bun.spawnSync([compiler, ...words]).success) return [target];
  console.error("no C compiler: the chain is the slower one in Python");
  return python("chains-listeners.py");
}

interface Chain {
  readonly words: readonly string[];
  readonly heard: string;
  readonly ready: string;
}

function chainOf(name: string, depth: number, pace: Pace): Chain {
  const heard = scene.path(`${name}-${depth}-${pace.leastUs}-${pace.mostUs}.heard`);
  const ready = scene.path(`${name}-${depth}-${pace.leastUs}-${pace.mostUs}.ready`);
  const words = [
    ...CHAIN,
    String(depth),
    String(pace.leastUs),
    String(pace.mostUs),
    LIFE_S,
    heard,
    ready,
  ];
  return { words, heard, ready };
}

function expectEachOnce(chain: Chain, depth: number): void {
  const lines = readLines(chain.heard);
  expect([lines.length, new Set(lines).size]).toEqual([depth, depth]);
}

describe.each(CHAINS)("a chain of $depth that $how", ({ depth, ...pace }) => {
  test(
    "that watchdog is told to end: each gets TERM once, and the record counts them all",
    async () => {
      const chain = chainOf("told", depth, pace);
      const run = startWithoutTerminal(
        scene,
        [
          ["--log", "off", "--kill-after", GRACE, ...scene.recordTo("told")],
          ["--", ...chain.words],
        ].flat(),
      );
      await waitForText(chain.ready);
      run.kill("SIGTERM");
      const ended = await run.ended;
      expectEachOnce(chain, depth);
      expect(scene.readRecord("told")).toMatchObject({
        outcome: "stopped",
        because: "terminated",
        unsignalable: [],
        signals: [{ signal: "TERM", to: "tree", count: depth, why: "forwarded" }],
      });
      expect([ended.status, ended.stderr]).toEqual([5, ""]);
    },
    LIMIT_MS,
  );

  test(
    "that the command has left: each gets TERM once, and the record counts them all",
    async () => {
      const chain = chainOf("left", depth, pace);
      const wait = `until [ -s ${chain.ready} ]; do sleep 0.05; done`;
      const ended = await scene.run(
        [
          ["--log", "off", "--kill-after", GRACE, ...scene.recordTo("left")],
          ["--", "sh", "-c", `${chain.words.join(" ")} & ${wait}; exit 3`],
        ].flat(),
      );
      expectEachOnce(chain, depth);
      expect(scene.readRecord("left")).toMatchObject({
        outcome: "failed",
        unsignalable: [],
        signals: [{ signal: "TERM", to: "tree", count: depth, why: "leftover" }],
      });
      expect(ended.status).toBe(3);
    },
    LIMIT_MS,
  );
});

test(
  "negative twin: who gets no TERM writes no line, so the lines prove something",
  async () => {
    const chain = chainOf("killed", 20, AT_ONCE);
    const run = scene.start(
      [
        ["--log", "off", "--signal", "KILL", "--timeout", "6s", ...scene.recordTo("killed")],
        ["--", ...chain.words],
      ].flat(),
    );
    await waitForText(chain.ready);
    const ended = await run.ended;
    expect(readLines(chain.heard)).toEqual([]);
    expect(ended.status).toBe(124);
    expect(scene.findProcesses()).toEqual([]);
  },
  LIMIT_MS,
);
