/**
 * The Worker that probes: an answer comes in time, whatever becomes of the Worker, of its
 * expressions, and of the other probes in it.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { ProbeResult } from "../../src/core/probe-result.ts";
import { ProbeHandle } from "../../src/probe/probe-handle.ts";
import type { ProbeOrder } from "../../src/probe/probe.ts";
import { answering, CA_FILE, ok, orderFor, ProbeScene, silent } from "../support/probe-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const WORKER = new URL("../../src/probe/probe-worker.ts", import.meta.url);

let scene: ProbeScene;
let handles: ProbeHandle[] = [];
beforeEach(() => {
  scene = new ProbeScene();
});
afterEach(async () => {
  for (const handle of handles) handle.close();
  handles = [];
  await scene.close();
});

function handleOf(url: string | URL = WORKER): ProbeHandle {
  const handle = new ProbeHandle(url);
  handles.push(handle);
  return handle;
}

/** A handle whose Worker does this with each task. */
function handleThat(statements: string): ProbeHandle {
  const source = `self.onmessage = ({ data: task }) => { ${statements} };`;
  return handleOf(URL.createObjectURL(new Blob([source], { type: "application/javascript" })));
}

async function orderOf(changes: Parameters<typeof orderFor>[1] = {}): Promise<ProbeOrder> {
  const { port } = await scene.serve(answering(ok("a".repeat(200_000))));
  return orderFor(`http://127.0.0.1:${port}/`, changes);
}

/** Quadratic: about ten seconds of a core on as many `a`, and still no match. */
const RUNS_AWAY = "a*b";

describe("a probe in a Worker", () => {
  test("has the answer that it has elsewhere", async () => {
    const result = await handleOf().probe(await orderOf({ expectBody: "^a+$" }));
    expect(result).toMatchObject({ isGood: true, because: "good", status: 200 });
  });

  test("does not wait for another one", async () => {
    const handle = handleOf();
    const hanging = await scene.serve(silent);
    const hung = handle.probe(orderFor(`http://127.0.0.1:${hanging.port}/`, { timeoutMs: 60_000 }));
    let isOver = false;
    void hung.finally(() => {
      isOver = true;
    });
    expect((await handle.probe(await orderOf())).because).toBe("good");
    expect(isOver).toBe(false);
    handle.close();
    expect((await hung).because).toBe("stopped");
  });

  test("ends as soon as it is stopped, and closes its connection", async () => {
    const server = await scene.serve(silent);
    const controller = new AbortController();
    const order = orderFor(`http://127.0.0.1:${server.port}/`, { timeoutMs: 60_000 });
    const result = handleOf().probe(order, controller.signal);
    const connection = await waitFor(() => server.connections[0], "a connection");
    const closed = new Promise((resolve) => connection.on("close", resolve));
    controller.abort();
    expect((await result).because).toBe("stopped");
    await closed;
  });

  test("is told that there is none where the Worker cannot be loaded, dies or leaves", async () => {
    const order = await orderOf({ timeoutMs: 20_000 });
    for (const handle of [
      handleOf(new URL("./no-such-worker.ts", import.meta.url)),
      handleThat(`throw new Error("dies");`),
      handleThat(`process.exit(3);`),
    ]) {
      const lost = await handle.probe(order);
      expect(lost).toMatchObject({ because: "worker-lost", isGood: false });
      expect(lost.detail).toBe("the thread that probes has ended");
    }
  });

  test("has a new Worker after one that did not answer", async () => {
    const handle = handleThat(`
      if (task.order.timeoutMs === 100) for (;;) Atomics.wait(
        new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
      postMessage({ kind: "result", ticket: task.ticket, result: { because: "good" } });
    `);
    const lost = await handle.probe(await orderOf({ timeoutMs: 100 }));
    expect(lost).toMatchObject({ because: "worker-lost", isGood: false });
    expect((await handle.probe(await orderOf())).because).toBe("good");
  });
});

/** On a busy machine an answer may take longer than the probe has: then nothing was tried. */
async function runAway(handle: ProbeHandle, order: ProbeOrder): Promise<ProbeResult> {
  return waitFor(async () => {
    const result = await handle.probe(order);
    return isTooSlow(result) && result;
  }, "an answer in time for its expression, which has no end");
}

function isTooSlow({ because }: ProbeResult): boolean {
  return because === "expression-too-slow";
}

describe("an expression that runs away", () => {
  test("ends its own probe in time, holds up no other, and is not tried again", async () => {
    const handle = handleOf();
    const order = await orderOf({ expectBody: RUNS_AWAY, timeoutMs: 300 });
    const other = await orderOf({ expectBody: "^a", timeoutMs: 20_000 });
    const began = performance.now();
    const result = await runAway(handle, order);
    expect(result).toMatchObject({ isGood: false, because: "expression-too-slow" });
    expect(result.detail).toContain("had no end within 1300 ms");
    expect(performance.now() - began).toBeLessThan(40_000);

    expect((await handle.probe(other)).because).toBe("good");
    const again = await handle.probe(order);
    expect(again.because).toBe("expression-too-slow");
    expect(again.detail).toContain("still runs from before");
  }, 60_000);

  test("is not tried a second time for another probe that waits with it", async () => {
    const order = await orderOf({ expectBody: RUNS_AWAY, timeoutMs: 300 });
    const began = performance.now();
    const results = await waitFor(async () => {
      const handle = handleOf();
      const both = await Promise.all([handle.probe(order), handle.probe(order)]);
      return both.every(isTooSlow) && both;
    }, "two answers in time for their expressions");
    expect(results.filter(({ detail }) => detail.includes("still runs from before"))).toHaveLength(
      1,
    );
    expect(performance.now() - began).toBeLessThan(40_000);
  }, 60_000);

  test("is one of few: then no other one is tried, but what has none is asked", async () => {
    const handle = handleOf();
    for (const expectBody of [RUNS_AWAY, "a*c"]) {
      const result = await runAway(handle, await orderOf({ expectBody, timeoutMs: 100 }));
      expect(result.detail).toContain("had no end");
    }
    const harmless = await handle.probe(await orderOf({ expectBody: "^a" }));
    expect(harmless.detail).toContain("still runs from before");
    expect((await handle.probe(await orderOf())).because).toBe("good");
  }, 60_000);

  test("takes no probe with it that had begun before", async () => {
    const handle = handleOf();
    // With the thread there it has all the time that it needs to come to its expression.
    expect((await handle.probe(await orderOf({ timeoutMs: 20_000 }))).because).toBe("good");
    const runaway = runAway(handle, await orderOf({ expectBody: RUNS_AWAY, timeoutMs: 4_000 }));
    const late = await scene.serve((socket) => {
      void runaway.finally(() => socket.write(ok()));
    });
    const other = handle.probe(orderFor(`http://127.0.0.1:${late.port}/`, { timeoutMs: 20_000 }));
    await runaway;
    expect((await other).because).toBe("good");
    expect(late.connections.length).toBeGreaterThanOrEqual(1);
  }, 60_000);
});

test("negative twin: an expression that takes its time and ends is no runaway", async () => {
  const body = "a".repeat(20_000);
  const { port } = await scene.serve(answering(ok(body)));
  const order = orderFor(`http://127.0.0.1:${port}/`, { expectBody: RUNS_AWAY, timeoutMs: 20_000 });
  expect((await handleOf().probe(order)).because).toBe("body-mismatch");
});

describe("the Worker", () => {
  /** Runs a program that makes one probe. @returns its status and what it says on stderr */
  async function runProgram(
    url: string,
    http: object,
    env: Readonly<Record<string, string>>,
  ): Promise<{ status: number; stdout: string; stderr: string }> {
    const program = join(import.meta.dir, "../fixtures/probes-once.ts");
    const child = Bun.spawn([process.execPath, program, url, JSON.stringify(http)], {
      env: { PATH: process.env["PATH"] ?? "", ...env },
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    return { status: await child.exited, stdout, stderr };
  }

  test("keeps nobody alive, and leaves standard error to others", async () => {
    const { port } = await scene.serveTls(answering(ok()));
    const env = { NODE_TLS_REJECT_UNAUTHORIZED: "0" };
    const done = await runProgram(`https://localhost:${port}/`, {}, env);
    expect(done).toEqual({ status: 0, stdout: "tls-failed", stderr: "" });
  }, 60_000);

  test.each(["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"])(
    "believes no authority that %s names",
    async (name) => {
      const { port } = await scene.serveTls(answering(ok()));
      const ask = (http: object) =>
        runProgram(`https://localhost:${port}/`, http, { [name]: CA_FILE });
      expect((await ask({})).stdout).toBe("tls-failed");
      expect((await ask({ caFile: CA_FILE })).stdout).toBe("good");
    },
    60_000,
  );
});
