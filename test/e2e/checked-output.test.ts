/**
 * A long output that is looked at line by line: it costs bounded memory, whatever its lines are,
 * and the last line of it is still seen. The table of the README has the same of 10 GiB.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 240_000;
const CHECKS = [
  ["--fail-match", "^(ERROR|FATAL)"],
  ["--fail-match", "Traceback"],
  ["--expect-match", "^END$"],
].flat();
const LINE = "2026-11-30 12:00:00 INFO item 123456 processed ok in 12 ms by worker 7";

test.each([
  ["of many lines", `yes '${LINE}' | head -n 5000000`],
  ["of one line", "head -c 300000000 /dev/zero | tr '\\0' x; echo"],
  [
    "of lines that are longer than a window",
    "yes $(head -c 70000 /dev/zero | tr '\\0' x) | head -n 4000",
  ],
])(
  "%s: memory is bounded, and its end is found",
  async (_what, prints) => {
    const peak = scene.path("peak");
    const script = `${prints}; echo END; grep VmHWM /proc/$PPID/status >"${peak}"`;
    const words = [
      ...scene.recordTo("checked"),
      "--log",
      "on",
      ...CHECKS,
      "--",
      "sh",
      "-c",
      script,
    ];
    const ended = await scene.start(words, { stdout: "ignore" }).ended;
    const record = scene.readRecord("checked");
    expect([ended.status, record["because"]]).toEqual([0, "exited"]);
    expect(record["output"].stdout_bytes).toBeGreaterThan(270_000_000);
    const kibibytes = Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(peak, "utf8"))?.[1]);
    expect(kibibytes).toBeWithin(10_000, 200_000);
  },
  LIMIT_MS,
);
