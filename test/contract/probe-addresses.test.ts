/**
 * Names with several addresses, and none: every address is tried before it is said that nobody is
 * there, and a name service that hangs holds nobody up.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { ProbeResult } from "../../src/core/probe-result.ts";
import { findAddresses, oncePerName, type LookUp } from "../../src/probe/addresses.ts";
import { connectToAny, type Connected } from "../../src/probe/connect.ts";
import { openPlainWire } from "../../src/probe/plain-wire.ts";
import { probe } from "../../src/probe/probe.ts";
import { TimeLimit } from "../../src/probe/time-limit.ts";
import { answering, ok, orderFor, ProbeScene, silent } from "../support/probe-scene.ts";
import { waitFor } from "../support/wait-for.ts";

let scene: ProbeScene;
beforeEach(() => {
  scene = new ProbeScene();
});
afterEach(() => scene.close());

/** Far beyond what a busy machine needs, unless the test is about the limit. */
const LONG_MS = 20_000;

/** Of this machine, to a port: those that have sent a SYN and have no answer (proc_net_tcp.txt). */
function countConnecting(port: number): number {
  const wanted = port.toString(16).toUpperCase().padStart(4, "0");
  const rows = readFileSync("/proc/net/tcp", "utf8").split("\n").slice(1);
  const columns = rows.map((row) => row.trim().split(/\s+/));
  return columns.filter(([, , to, state]) => to?.endsWith(`:${wanted}`) && state === "02").length;
}

async function withLimit<Result>(
  limitMs: number,
  act: (limit: TimeLimit) => Promise<Result>,
): Promise<Result> {
  const limit = new TimeLimit(limitMs);
  try {
    return await act(limit);
  } finally {
    limit.close();
  }
}

async function connectTo(
  addresses: readonly string[],
  port: number,
  limitMs = LONG_MS,
): Promise<Connected> {
  const connected = await withLimit(limitMs, (limit) =>
    connectToAny(addresses, port, { limit, open: openPlainWire }),
  );
  if (connected.kind === "connected") connected.wire.close();
  return connected;
}

describe("localhost", () => {
  test.each(["127.0.0.1", "::1"])("is found where the server is on %s alone", async (host) => {
    const { port } = await scene.serve(answering(ok()), { host });
    const result = await probe(orderFor(`http://localhost:${port}/`));
    expect(result).toMatchObject({ because: "good" });
    expect(result.address).toBe(host === "::1" ? `[::1]:${port}` : `127.0.0.1:${port}`);
  });

  test("refuses once all of its addresses have, each of which is told", async () => {
    const port = await scene.deadPort();
    const result = await probe(orderFor(`http://localhost:${port}/`));
    expect(result.because).toBe("refused");
    expect(result.detail).toContain(`127.0.0.1:${port}: connection refused`);
    expect(result.detail).toContain(`[::1]:${port}: connection refused`);
  });

  test("an IPv6 address is written in brackets", async () => {
    const server = await scene.serve(answering(ok()), { host: "::1" });
    const result = await probe(orderFor(`http://[::1]:${server.port}/`));
    expect(result.because).toBe("good");
    expect(server.received()).toContain(`Host: [::1]:${server.port}\r\n`);
  });
});

describe("of several addresses", () => {
  test("each is tried, in either order", async () => {
    const { port } = await scene.serve(silent, { host: "127.0.0.1" });
    for (const addresses of [
      ["127.0.0.1", "::1"],
      ["::1", "127.0.0.1"],
      ["::1", "127.0.0.2", "127.0.0.3", "127.0.0.1"],
    ]) {
      expect(await connectTo(addresses, port)).toMatchObject({ address: `127.0.0.1:${port}` });
    }
  });

  test("one that drops packets does not hide the next one", async () => {
    const port = await scene.fullQueue();
    await scene.serve(silent, { host: "127.0.0.2", port });
    const connected = await connectTo(["127.0.0.1", "127.0.0.2"], port);
    expect(connected).toMatchObject({ kind: "connected", address: `127.0.0.2:${port}` });
  });

  test("the next one is tried in time even where the limit is short", async () => {
    const port = await scene.fullQueue();
    await scene.serve(silent, { host: "127.0.0.2", port });
    const connected = await connectTo(["127.0.0.1", "127.0.0.2"], port, 200);
    expect(connected).toMatchObject({ kind: "connected", address: `127.0.0.2:${port}` });
  });

  test("those that were not needed are not kept open", async () => {
    const port = await scene.fullQueue();
    await scene.serve(silent, { host: "127.0.0.2", port });
    const before = countConnecting(port);
    await connectTo(["127.0.0.1", "127.0.0.2"], port);
    await waitFor(() => countConnecting(port) === before, "no attempt to be left", {
      limitMs: 5_000,
    });
    await connectTo(["127.0.0.1"], port, 100);
    await waitFor(() => countConnecting(port) === before, "none after the limit", {
      limitMs: 5_000,
    });
  });

  test("those that were too slow are told with those that refused", async () => {
    const port = await scene.fullQueue();
    const failed = await connectTo(["127.0.0.1", "::1"], port, 300);
    expect(failed).toMatchObject({ kind: "failed", because: "connect-timeout" });
    if (failed.kind !== "failed") throw new Error("it is connected");
    expect(failed.detail).toBe(
      `no connection to 127.0.0.1:${port}, [::1]:${port} within 300 ms ` +
        `([::1]:${port}: connection refused)`,
    );
  });
});

describe("a name", () => {
  const never: LookUp = () => new Promise(() => undefined);

  test("without an address is told", async () => {
    const result = await probe(orderFor("http://no-such-name.invalid/"));
    expect(result.because).toBe("name-unresolved");
    expect(result.detail).toContain("no-such-name.invalid");
    expect(result.stages.map(({ stage }) => stage)).toEqual(["name"]);
  }, 30_000);

  test("whose service hangs is given up at the limit", async () => {
    const found = await withLimit(200, (limit) => findAddresses("a.test", limit, never));
    expect(found).toEqual({
      kind: "failed",
      because: "name-timeout",
      detail: "no address for the name a.test within 200 ms",
    });
  });

  test("is asked for in a second way when the first one hangs", async () => {
    const lookUp: LookUp = (_, backend) =>
      backend === "libc" ? new Promise(() => undefined) : Promise.resolve(["192.0.2.1"]);
    const found = await withLimit(LONG_MS, (limit) => findAddresses("a.test", limit, lookUp));
    expect(found).toEqual({ kind: "found", addresses: ["192.0.2.1"] });
  });

  test("is not said to have no address because the second way knows none", async () => {
    const lookUp: LookUp = (_, backend) =>
      backend === "libc" ? new Promise(() => undefined) : Promise.reject(new Error("NXDOMAIN"));
    const found = await withLimit(300, (limit) => findAddresses("a.test", limit, lookUp));
    expect(found).toMatchObject({ because: "name-timeout" });
  });

  test("of this machine is known without anybody", async () => {
    for (const name of ["localhost", "a.localhost", "LOCALHOST."]) {
      const found = await withLimit(LONG_MS, (limit) => findAddresses(name, limit, never));
      expect(found).toEqual({ kind: "found", addresses: ["127.0.0.1", "::1"] });
    }
    const other = await withLimit(200, (limit) => findAddresses("localhost.test", limit, never));
    expect(other.kind).toBe("failed");
  });

  test("that is an address is not asked for", async () => {
    for (const host of ["192.0.2.1", "::1", "[::1]"]) {
      const found = await withLimit(LONG_MS, (limit) => findAddresses(host, limit, never));
      expect(found).toEqual({ kind: "found", addresses: [host.replace(/[[\]]/g, "")] });
    }
  });

  test("is asked for once at a time, and again afterwards", async () => {
    const asked: string[] = [];
    const lookUp = oncePerName(async (name) => {
      asked.push(name);
      if (name === "none.test") throw new Error("none");
      return ["192.0.2.1"];
    });
    await Promise.all([lookUp("a.test", "libc"), lookUp("a.test", "libc")]);
    await Promise.allSettled([lookUp("none.test", "libc"), lookUp("none.test", "libc")]);
    expect(asked).toEqual(["a.test", "none.test"]);
    await lookUp("a.test", "libc");
    await Promise.all([lookUp("a.test", "libc"), lookUp("a.test", "c-ares")]);
    expect(asked).toHaveLength(5);
  });

  test("with many addresses has no more than are tried", async () => {
    const lookUp: LookUp = async () => Array.from({ length: 500 }, (_, n) => `192.0.2.${n % 250}`);
    const found = await withLimit(LONG_MS, (limit) => findAddresses("a.test", limit, lookUp));
    if (found.kind !== "found") throw new Error(found.detail);
    expect(found.addresses).toHaveLength(16);
  });
});

test("a stopped probe ends while its name is looked up", async () => {
  const controller = new AbortController();
  const limit = new TimeLimit(LONG_MS, controller.signal);
  const found = findAddresses("a.test", limit, () => new Promise(() => undefined));
  controller.abort();
  expect(await found).toMatchObject({ because: "stopped" });
});

test("a probe that was stopped before it began asks nobody", async () => {
  const server = await scene.serve(answering(ok()));
  const signal = AbortSignal.abort();
  const order = orderFor(`http://127.0.0.1:${server.port}/`);
  const result: ProbeResult = await probe(order, { signal });
  expect(result.because).toBe("stopped");
  expect(server.received()).toBe("");
});
