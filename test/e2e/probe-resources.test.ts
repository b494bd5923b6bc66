/**
 * A watchdog that has no descriptor left to probe with: that is its own trouble, and no answer of
 * the dependency. The job goes on, and no circuit opens for others.
 */
import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { openServers } from "../support/counting-server.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import { circuitOf, letPass } from "../support/shared-circuit.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const openServer = openServers();
const LIMIT_MS = 120_000;
const STATUS = 7;

test(
  "stops no job and opens no circuit, and says so once",
  async () => {
    const server = openServer();
    const [errors, ready, go] = [scene.path("errors"), scene.path("ready"), scene.path("go")];
    // A slow answer of a loaded machine is no dependency that is down.
    const often = ["--probe-period", "1s", "--probe-timeout", "1s"];
    const probe = [...often, "--probe-failure-threshold", "3", "--probe", `dep=${server.url}`];
    const command = `touch ${ready}; until test -e ${go}; do sleep 0.05; done; exit ${STATUS}`;
    const words = ["run", "--name", "poor", "--log", "off", ...probe, "--", "sh", "-c", command];
    const run = scene.startProgram(["sh", "-c", `exec "$0" "$@" 2>${errors}`, RELEASE, ...words]);
    await waitFor(() => existsSync(ready), "the command");
    const limited = Bun.spawnSync(["prlimit", "--pid", String(run.pid), "--nofile=3:3"]);
    expect(limited.exitCode).toBe(0);
    const told = (): string => readFileSync(errors, "utf8");
    await waitFor(() => told().includes("dep cannot be probed"), "the trouble to be told");
    const seen = server.count;
    await letPass(4_000); // several periods, after three of which it would be stopped
    writeFileSync(go, "");
    const { status } = await run.ended;
    expect([status, server.count]).toEqual([STATUS, seen]);
    expect(told().match(/EMFILE\)/g)).toHaveLength(1);
    expect(await circuitOf(scene)).toMatchObject({ state: "closed" });
  },
  LIMIT_MS,
);
