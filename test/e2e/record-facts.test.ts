/**
 * Single facts of the record that a reader relies on: how many were killed, whose pid the command
 * has while it runs, and no output where nobody has looked at it.
 */
import { expect, test } from "bun:test";
import { appendFileSync, closeSync, openSync, writeFileSync } from "node:fs";
import { waitForCommand, waitForText } from "../support/processes.ts";
import { openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;
/** A shell and five that it has started: all ignore TERM. */
const SIX = `trap '' TERM; for i in 1 2 3 4 5; do sleep "$1" & done; echo ready >"$2"`;

test(
  "KILL has the number of processes that the rounds have killed, when a limit is reached",
  async () => {
    const ready = scene.path("limit.ready");
    const run = scene.start(
      [
        ["--log", "off", "--timeout", "5s", "--kill-after", "200ms", ...scene.recordTo("limit")],
        ["--", "sh", "-c", `${SIX}; wait`, "sh", "97601", ready],
      ].flat(),
    );
    await waitForText(ready);
    await waitForCommand(scene, "sleep 97601", 5);
    expect((await run.ended).status).toBe(124);
    expect(scene.readRecord("limit")["signals"]).toMatchObject([
      { signal: "TERM", to: "tree", count: 6, why: "limit" },
      { signal: "KILL", to: "tree", count: 6, why: "grace-over" },
    ]);
  },
  LIMIT_MS,
);

test(
  "KILL has that number for what the command has left, and none where all obey TERM",
  async () => {
    for (const [trap, killed] of [
      ["", [5]],
      [":", []],
    ] as const) {
      const ready = scene.path(`left-${killed.length}.ready`);
      const script = `${SIX.replace("''", `'${trap}'`)}; exit 3`;
      const ended = await scene.run(
        [
          ["--log", "off", "--kill-after", "300ms", ...scene.recordTo("left")],
          ["--", "sh", "-c", script, "sh", "97602", ready],
        ].flat(),
      );
      expect(ended.status).toBe(3);
      const sent: { signal: string; count: number }[] = scene.readRecord("left")["signals"];
      expect(sent.filter((one) => one.signal === "TERM").map((one) => one.count)).toEqual([5]);
      expect(sent.filter((one) => one.signal === "KILL").map((one) => one.count)).toEqual([
        ...killed,
      ]);
    }
  },
  LIMIT_MS,
);

/** `write` is done while the command runs, by somebody else; the command itself writes `text`. */
async function lastOutput(mode: string, text: string, write: (path: string) => void) {
  const [path, ready, go] = ["out", "ready", "go"].map((name) => scene.path(`${mode}.${name}`));
  if (path === undefined || ready === undefined || go === undefined) throw new Error("no names");
  const stdout = openSync(path, "w");
  const script = `${text}; echo ready >"$1"; until [ -e "$2" ]; do sleep 0.02; done`;
  const run = scene.start(
    ["--log", mode, ...scene.recordTo(mode), "--", "sh", "-c", script, "sh", ready, go],
    { stdout },
  );
  await waitForText(ready);
  write(path);
  writeFileSync(go, "");
  expect((await run.ended).status).toBe(0);
  closeSync(stdout);
  return scene.readRecord(mode)["output"].last_output_at;
}

test(
  "under --log off there is no time of the last output, whoever writes to the file",
  async () => {
    const write = (path: string): void => appendFileSync(path, "somebody else\n");
    expect(await lastOutput("off", "echo own", write)).toBeNull();
  },
  LIMIT_MS,
);

test(
  "under --log on there is one if the command has written, and none if only others have",
  async () => {
    const write = (path: string): void => appendFileSync(path, "somebody else\n");
    expect(await lastOutput("on", ":", write)).toBeNull();
    expect(Date.parse(await lastOutput("on", "echo own", () => undefined))).toBeGreaterThan(0);
  },
  LIMIT_MS,
);

test(
  "child_pid is the command's while the run goes on, and afterwards",
  async () => {
    for (const mode of ["on", "off"]) {
      const ready = scene.path(`child-${mode}.ready`);
      const script = 'echo $$ >"$0"; exec sleep 97603';
      const run = scene.start(
        ["--log", mode, ...scene.recordTo("child"), "--", "sh", "-c", script, ready],
        {},
      );
      const pid = Number(await waitForText(ready));
      // The command may be quicker than the line that tells of it.
      await waitFor(() => scene.readRecord("child")["child_pid"] !== null, "a child_pid", {
        limitMs: 10_000,
      });
      expect(scene.readRecord("child")).toMatchObject({ state: "running", child_pid: pid });
      run.kill("SIGTERM");
      await run.ended;
      expect(scene.readRecord("child")).toMatchObject({ state: "ended", child_pid: pid });
    }
  },
  LIMIT_MS,
);
