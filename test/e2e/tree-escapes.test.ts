/**
 * The ways in which processes get away from a wrapper, one by one: each is ended when the limit is
 * reached, and when the command ends by itself.
 */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { PYTHON } from "../support/outside.ts";
import { findAnywhere, findByCommand, python } from "../support/processes.ts";
import { type Ended, FIXTURES, openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
type RunRecord = ReturnType<typeof scene.readRecord>;
const LIMIT_MS = 600_000;
const DEEPEST = "500";

interface Escape {
  readonly title: string;
  /** Starts `marker` in its way; `ready` is a path to announce in. */
  readonly script: (marker: string, ready: string) => string;
  /** Whether TERM is enough. */
  readonly endedBy: "TERM" | "KILL";
}

const ESCAPES: readonly Escape[] = [
  {
    title: "one in a session of its own",
    script: (marker, ready) => `setsid sh -c 'echo ready >${ready}; exec ${marker}' &`,
    endedBy: "TERM",
  },
  {
    title: "one that forked twice and closed its descriptors",
    script: (marker, ready) => `${python("daemonizes.py", ready).join(" ")} ${marker}`,
    endedBy: "TERM",
  },
  {
    title: "one whose environment is empty",
    script: (marker, ready) => `env -i sh -c 'echo ready >${ready}; exec ${marker}' &`,
    endedBy: "TERM",
  },
  {
    title: "one that ignores TERM, INT and HUP",
    script: (marker, ready) =>
      `(trap '' TERM INT HUP; echo ready >${ready}; exec ${marker}) </dev/null >/dev/null 2>&1 &`,
    endedBy: "KILL",
  },
  {
    title: "one that is stopped",
    script: (marker, ready) =>
      `setsid sh -c 'echo ready >${ready}; kill -STOP $$; exec ${marker}' &
       until grep -q '^State:.T' /proc/$!/status; do sleep 0.01; done`,
    endedBy: "TERM",
  },
  {
    title: "one that is stopped and ignores TERM",
    script: (marker, ready) =>
      `setsid sh -c 'trap "" TERM; echo ready >${ready}; kill -STOP $$; exec ${marker}' &
       until grep -q '^State:.T' /proc/$!/status; do sleep 0.01; done`,
    endedBy: "KILL",
  },
];

const ENDS = ["at the end of the command", "when the limit is reached"] as const;

ESCAPES.forEach((escape, index) => {
  ENDS.forEach((end, which) => {
    const name = `escape-${index}-${which}`;
    // One of a kind: a process without the cookie is looked for on the whole machine.
    const marker = `sleep 90${index}0${which}.${process.pid}`;
    const isLimited = which === 1;

    test(
      `${escape.title} is ended ${end}`,
      async () => {
        const ready = scene.path(`${name}.ready`);
        const wait = `until [ -s ${ready} ]; do sleep 0.01; done`;
        const rest = isLimited ? "; sleep 91010" : "";
        const script = `${escape.script(marker, ready)}\n${wait}${rest}`;
        const limits = isLimited ? ["--timeout", "4s"] : [];
        const ended = await scene.run(
          [
            ["--log", "off", "--kill-after", "1s", ...limits, ...scene.recordTo(name)],
            ["--", "sh", "-c", script],
          ].flat(),
        );
        const record = scene.readRecord(name);
        expect(existsSync(ready)).toBe(true);
        expect(scene.findProcesses()).toEqual([]);
        expect(findAnywhere(marker)).toEqual([]);
        expect(record["unsignalable"]).toEqual([]);
        expect(ended.status).toBe(isLimited ? 124 : 0);
        expect(record["outcome"]).toBe(isLimited ? "timeout" : "ok");
        expect(record["signals"].map((sent: { signal: string }) => sent.signal)).toEqual(
          escape.endedBy === "TERM" ? ["TERM"] : ["TERM", "KILL"],
        );
        if (isLimited) return;
        expect(record["leftovers"]).toHaveLength(1);
        expect(record["leftovers"][0].ended_by).toBe(escape.endedBy);
      },
      LIMIT_MS,
    );
  });
});

/** A small interpreter: what is measured here is not how fast it forks. */
function forkChain(ready: string): string[] {
  return [PYTHON, "-I", "-S", `${FIXTURES}/chains-forks.py`, DEEPEST, ready];
}

/** Doubled where the machine has not forked the whole chain by then: such a run proves nothing. */
const FIRST_SPAN_S = 4;
const LONGEST_SPAN_S = 60;

async function limitChain(spanS: number): Promise<{ ended: Ended; record: RunRecord }> {
  const ready = scene.path(`chain-${spanS}.ready`);
  const ended = await scene.run(
    [
      ["--log", "off", "--timeout", `${spanS}s`, "--kill-after", "200ms"],
      [...scene.recordTo("chain"), "--", ...forkChain(ready)],
    ].flat(),
  );
  const isWhole = existsSync(ready);
  if (!isWhole && spanS < LONGEST_SPAN_S) return limitChain(spanS * 2);
  expect(isWhole).toBe(true);
  return { ended, record: scene.readRecord("chain") };
}

test(
  "a chain of 500 forks that all ignore TERM is ended when the limit is reached",
  async () => {
    const { ended, record } = await limitChain(FIRST_SPAN_S);
    expect(scene.findProcesses().length).toBe(0);
    expect(record["unsignalable"].length).toBe(0);
    expect(ended.status).toBe(124);
    expect(ended.stderr).toBe("watchdog: ended by --timeout: sent TERM to the whole tree\n");
  },
  LIMIT_MS,
);

test(
  "a chain of 500 forks that all ignore TERM is ended when the command has ended",
  async () => {
    const ready = scene.path("chain-end.ready");
    const chain = forkChain(ready).join(" ");
    const script = `${chain} & until [ -s ${ready} ]; do sleep 0.05; done; exit 3`;
    const ended = await scene.run(
      [
        ["--log", "off", "--kill-after", "200ms", ...scene.recordTo("chain-end")],
        ["--", "sh", "-c", script],
      ].flat(),
    );
    const record = scene.readRecord("chain-end");
    expect(scene.findProcesses().length).toBe(0);
    expect(record["unsignalable"].length).toBe(0);
    expect(ended.status).toBe(3);
    expect(ended.stderr).toMatch(
      /^watchdog: ended 500 processes left by the command: .* and 495 more/,
    );
  },
  LIMIT_MS,
);

test("the marker of an escape would be seen, were it left", async () => {
  const left = scene.startProgram(["sleep", "90990"]);
  expect(findByCommand(scene, "sleep 90990")).toEqual([left.pid]);
  expect(findAnywhere("sleep 90990")).toContain(left.pid);
  left.kill("SIGKILL");
  await left.ended;
});
