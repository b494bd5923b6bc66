/**
 * A fault in the sender itself: the run keeps its status, the notice waits, and the next one tells
 * it, once.
 */
import { expect, test } from "bun:test";
import { readLines } from "../support/processes.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import { runWithFault } from "./fault-scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 60_000;

test.each(["throw", "eio", "enospc"])(
  "at sink.send=%s nothing of the run changes, and the next run tells of it",
  async (act) => {
    const told = scene.path(`told-${act}`);
    const on = `echo "$WATCHDOG_EVENT_EXIT_STATUS" >>${told}`;
    const line = ["--name", `sender-${act}`, "--on-failure", on, "--", "/bin/sh", "-c"];
    const faulty = await runWithFault(scene, `sink.send=${act}`, [...line, "exit 7"]);
    expect(faulty.ended.status).toBe(7);
    expect(faulty.evidence.map(({ point, act: done }) => [point, done])).toEqual([
      ["sink.send", act],
    ]);
    expect(faulty.evidence[0]?.state).toMatchObject({ kind: "command", event: "failure" });
    expect(faulty.ended.stderr.trim().split("\n")).toHaveLength(1);
    expect(faulty.ended.stderr).toContain("1 notice was not delivered yet");
    expect(readLines(told)).toEqual([]);
    await scene.startProgram([RELEASE, "notify", "flush"]).ended;
    expect(readLines(told)).toEqual(["7"]);
  },
  LIMIT_MS,
);

test(
  "without a fault the same run tells of it at once",
  async () => {
    const told = scene.path("told-at-once");
    const line = ["--name", "sender", "--on-failure", `echo told >>${told}`, "--"];
    const whole = await runWithFault(scene, undefined, [...line, "/bin/sh", "-c", "exit 7"]);
    expect([whole.ended.status, whole.ended.stderr, whole.evidence]).toEqual([7, "", []]);
    expect(readLines(told)).toEqual(["told"]);
  },
  LIMIT_MS,
);
