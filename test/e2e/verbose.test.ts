/**
 * `-v` tells the evidence behind each decision; without it a run that goes well says nothing.
 */
import { expect, test } from "bun:test";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);

test("a run that goes well says nothing without -v", async () => {
  const ended = await scene.run(["--log", "off", "--", "true"]);
  expect([ended.status, ended.stderr]).toEqual([0, ""]);
});

test("-v names the run, its surroundings and why the outcome is what it is", async () => {
  const ended = await scene.run([
    ...scene.recordTo("verbose"),
    "-v",
    "--name=told",
    "--log=off",
    "--",
    "sh",
    "-c",
    "exit 3",
  ]);
  const record = scene.readRecord("verbose");
  const lines = ended.stderr.trimEnd().split("\n");
  expect(ended.status).toBe(3);
  expect(lines[0]).toBe(
    `watchdog: run ${record["run_id"]} of job told, state in ${scene.stateDirectory}`,
  );
  expect(lines[1]).toContain("output inherited; 0 children from before the run");
  expect(lines[2]).toMatch(/^watchdog: job:told was free \(R4 [a-z-]+\)$/);
  expect(lines.at(-1)).toMatch(
    /^watchdog: outcome failed because exited, status 3 of command, after \d+ ms$/,
  );
});

test("-v tells of each key what was found, and with --no-lease of none", async () => {
  const keysOf = async (options: readonly string[]): Promise<string[]> => {
    const words = ["-v", "--name=keyed", "--log=off", ...options, "--", "true"];
    const { stderr } = await scene.run(words);
    return [...stderr.matchAll(/^watchdog: (\S+) was free \(R4 .*\)$/gm)].map(
      ([, key]) => `${key}`,
    );
  };
  expect(await keysOf(["--lane=gpu", "--lock=db:x"])).toEqual(["db:x", "job:keyed", "lane:gpu"]);
  expect(await keysOf(["--no-lease"])).toEqual([]);
});

test("-v tells every signal that was sent, to how many, and what for", async () => {
  const ended = await scene.run(["-v", "--log=off", "--timeout=0.2", "--", "sleep", "93101"]);
  expect(ended.status).toBe(124);
  expect(ended.stderr).toMatch(/^watchdog: after \d+ ms TERM to 1 of the tree, limit$/m);
});
