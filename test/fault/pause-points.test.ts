/**
 * Faults where a paused tree is stopped and where it is continued, in a whole run: trouble with one
 * process is told once, costs nobody else the signal and is tried again. Each fault has left its
 * evidence. A run that dies there is a matter of its guard, and has tests of its own.
 */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { openServers } from "../support/counting-server.ts";
import { inState } from "../support/own-state.ts";
import { waitForText } from "../support/processes.ts";
import { FAULTS, openScene } from "../support/scene.ts";
import { areStopped, dependsOn, PATIENT } from "../support/shared-circuit.ts";
import { waitFor } from "../support/wait-for.ts";
import { readEvidence } from "./fault-scene.ts";

const scene = openScene(import.meta.file);
const openServer = openServers();
const LIMIT_MS = 120_000;
const SHORT = ["--probe-backoff", "300ms..300ms", "--probe-max-attempts", "100000"];

/** Pauses a shell and two children, one of them in a session of its own, and lets it go on. */
async function pauseOnce(name: string, fault: string | undefined) {
  const [state, server] = [inState(scene, name), openServer()];
  const [gate, pidsFile, faults] = ["gate", "pids", "faults"].map((part) =>
    scene.path(`${name}.${part}`),
  ) as [string, string, string];
  const script =
    `setsid sleep 94031 & echo $! >>'${pidsFile}'; sleep 94032 & echo $! $$ all >>'${pidsFile}'; ` +
    `until test -e '${gate}'; do sleep 0.1; done; exit 3`;
  const words = [...dependsOn(scene, server, [...PATIENT, ...SHORT, "--on-open", "pause"])];
  const run = state.start([...scene.recordTo(name), ...words, "--", "sh", "-c", script], {
    binary: FAULTS,
    env: { WATCHDOG_FAULT: fault, WATCHDOG_FAULT_DIR: faults },
    stdout: "ignore",
  });
  await waitFor(async () => (await waitForText(pidsFile)).includes("all"), "the tree");
  const pids = (await waitForText(pidsFile)).match(/\d+/g)?.map(Number) ?? [];
  expect(pids).toHaveLength(3);
  server.goDown();
  await waitFor(() => areStopped(pids), "a tree that stands still");
  server.goUp();
  await waitFor(() => !pids.some((pid) => areStopped([pid])), "a tree that goes on");
  writeFileSync(gate, "");
  const { status, stderr } = await run.ended;
  const bugs = stderr.match(/^watchdog: trouble of its own: .*$/gm) ?? [];
  return { status, bugs, evidence: readEvidence(faults), record: scene.readRecord(name) };
}

test.each(["tree.freeze#2", "tree.thaw#1"])(
  "%s that fails is told once, and that takes its time is not: all stand still, and all go on",
  async (at) => {
    const [point, nth] = at.split("#");
    const acts = ["throw", "eio", "delay:300"];
    const runs = await Promise.all(
      acts.map((act) => pauseOnce(`${at}-${act.split(":")[0]}`, `${at}=${act}`)),
    );
    for (const [index, { status, bugs, evidence, record }] of runs.entries()) {
      const act = acts[index];
      const seen = { pid: expect.any(Number), count: expect.any(Number) };
      expect(evidence).toEqual([
        { point: point ?? "", nth: Number(nth), act: act ?? "", state: seen },
      ]);
      const isTrouble = act !== "delay:300";
      expect([status, bugs.length, record["degraded"]]).toEqual([
        3,
        isTrouble ? 1 : 0,
        isTrouble ? ["bug"] : [],
      ]);
      expect(record["paused_ms"]).toBeGreaterThan(0);
    }
  },
  LIMIT_MS,
);

test(
  "without a fault the same run leaves no marker and no complaint",
  async () => {
    const { status, bugs, evidence, record } = await pauseOnce("none", undefined);
    expect([status, bugs, evidence, record["degraded"]]).toEqual([3, [], [], []]);
  },
  LIMIT_MS,
);
