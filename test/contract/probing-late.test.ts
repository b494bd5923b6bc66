/**
 * A probe whose asker stood still: what the limit has ended is asked once more. A real server in
 * another process; a main loop that is blocked stands for one that was stopped.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { defaultProbeSettings, type ProbeSettings } from "../../src/core/probe-settings.ts";
import { parseProbeTarget } from "../../src/core/probe-target.ts";
import { readInheritance } from "../../src/os/inheritance.ts";
import { CommandProbes } from "../../src/run/dependencies/command-probe.ts";
import { Probing } from "../../src/run/dependencies/probing.ts";

const TIMEOUT_MS = 2_500;
/** Of the server: short beside the limit, and long enough that no answer is there at once. */
const LATENCY_MS = 300;
const SERVER = `
  let count = 0;
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, fetch: (request) => {
    if (new URL(request.url).pathname === "/count") return new Response(String(count));
    count += 1;
    if (new URL(request.url).pathname === "/hang") return new Promise(() => {});
    return new Promise((resolve) => setTimeout(() => resolve(new Response("ok")), ${LATENCY_MS}));
  } });
  console.log(server.port);
`;

const server = Bun.spawn([process.execPath, "-e", SERVER], { stdout: "pipe", stderr: "inherit" });
afterAll(async () => {
  server.kill("SIGKILL");
  await server.exited;
});
const reader = server.stdout.getReader();
const base = `http://127.0.0.1:${new TextDecoder().decode((await reader.read()).value).trim()}`;

const probing = new Probing({
  workerUrl: new URL("../../src/probe/probe-worker.ts", import.meta.url),
  commands: new CommandProbes({ inherited: readInheritance(), environment: () => [] }),
});
afterAll(() => probing.close());

function settingsOf(path: string): ProbeSettings {
  const parsing = parseProbeTarget(`${base}${path}`);
  if (parsing.kind === "refused") throw new Error(parsing.because);
  return defaultProbeSettings("liveness", parsing.target);
}

const countRequests = async (): Promise<number> =>
  Number(await (await fetch(`${base}/count`)).text());

function standStill(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * TIMEOUT_MS);
}

/** @returns the reason, and how many requests it took */
async function ask(path: string, isStopped: boolean): Promise<readonly [string, number]> {
  const before = await countRequests();
  const asked = probing.ask(settingsOf(path), TIMEOUT_MS, new AbortController().signal);
  if (isStopped) standStill();
  const { because } = await asked;
  return [because, (await countRequests()) - before];
}

describe("whoever stood still while he asked", () => {
  test("takes no answer of a server that is well for a failure", async () => {
    const [because] = await ask("/", true);
    expect(because).toBe("good");
  });

  test("still finds one that hangs, with two requests at most", async () => {
    const [because, count] = await ask("/hang", true);
    expect(because).toBe("no-answer");
    expect([1, 2]).toContain(count);
  });
});

test("whoever did not asks once, whatever the answer is", async () => {
  expect(await ask("/", false)).toEqual(["good", 1]);
  expect(await ask("/hang", false)).toEqual(["no-answer", 1]);
});
