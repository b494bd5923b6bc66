/**
 * Faults right before the push of `watchdog fence git-push`: the remote has both the branch and the
 * fence or neither, and nobody keeps the fence here. A row counts only with the marker that the
 * fault itself has written.
 */
import { afterEach, expect, test } from "bun:test";
import { endHolders, holdCheckout, HOLDERS_LIMIT_MS } from "../support/git-scene.ts";
import { makeRemote, makeRepository } from "../support/git-scene.ts";
import { FAULTS, openScene } from "../support/scene.ts";
import { readEvidence } from "./fault-scene.ts";

const scene = openScene(import.meta.file);
afterEach(endHolders, HOLDERS_LIMIT_MS);
const LIMIT_MS = 60_000;

test.each([
  ["kill", 137, ""],
  ["eio", 125, "watchdog: error: the fence cannot be had: EIO"],
  ["enospc", 125, "watchdog: error: the fence cannot be had: ENOSPC"],
  ["throw", 125, "watchdog: bug: fault injected at fence.F4"],
] as const)(
  "%s right before the push leaves nothing there, and the next one goes through",
  async (act, status, says) => {
    const repository = await makeRepository(scene);
    const remote = await makeRemote(scene, repository);
    const words = ["--lane", act];
    const holder = await holdCheckout(scene, repository, words, { env: { W: FAULTS } });
    const evidence = scene.path(`faults-${act}`);
    const faulty = `WATCHDOG_FAULT=fence.F4=${act} WATCHDOG_FAULT_DIR='${evidence}'`;
    const ended = await holder.inside(`${faulty} "$W" fence git-push --key lane:${act}`);
    expect(readEvidence(evidence)).toMatchObject([
      { point: "fence.F4", state: { leases: [{ key: `lane:${act}`, generation: 1 }] } },
    ]);
    expect([ended.status, ended.text]).toEqual([status, expect.stringContaining(says)]);
    expect(await remote.ask("for-each-ref")).toBe("");
    const fence = `${scene.stateDirectory}/leases/lane/${act}/fence`;
    const { ended: asked } = scene.startProgram(["flock", "-n", "-x", fence, "true"]);
    expect((await asked).status).toBe(0);
    expect((await holder.inside(`fence git-push --key lane:${act}`)).status).toBe(0);
    expect(await remote.ask("for-each-ref --format=%(refname)")).toBe(
      `refs/heads/main\nrefs/watchdog/fence/lane/${act}`,
    );
    await holder.end();
  },
  LIMIT_MS,
);
