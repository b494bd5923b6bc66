/** Probes by HTTP and TCP against real servers: what is good, and what is not. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ProbeResult } from "../../src/core/probe-result.ts";
import { probe } from "../../src/probe/probe.ts";
import {
  answering,
  ok,
  orderFor,
  ProbeScene,
  silent,
  type Behaviour,
} from "../support/probe-scene.ts";
import { waitFor } from "../support/wait-for.ts";

let scene: ProbeScene;
let scratch = "";
beforeEach(() => {
  scene = new ProbeScene();
  scratch = mkdtempSync(join(tmpdir(), "watchdog-probe-"));
});
afterEach(async () => {
  await scene.close();
  rmSync(scratch, { recursive: true, force: true });
});

const stagesOf = (result: ProbeResult): string => result.stages.map(({ stage }) => stage).join(" ");

/** Short, as these wait for it. */
const LIMIT_MS = 1_000;

async function probeServer(behave: Behaviour, changes = {}): Promise<ProbeResult> {
  const { port } = await scene.serve(behave);
  return probe(orderFor(`http://127.0.0.1:${port}/`, changes));
}

describe("a good answer", () => {
  test("is told with its status, its address and the time of each stage", async () => {
    const { port } = await scene.serve(answering(ok()));
    const result = await probe(orderFor(`http://127.0.0.1:${port}/health?deep=1`));
    expect({ ...result, stages: stagesOf(result) }).toEqual({
      isGood: true,
      because: "good",
      stages: "name connect headers body",
      status: 200,
      address: `127.0.0.1:${port}`,
      detail: "status 200",
    });
  });

  test("may come in any framing", async () => {
    const head = "HTTP/1.1 200 OK\r\n";
    for (const text of [
      `${head}\r\nok`,
      `${head}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
    ]) {
      const result = await probeServer((socket) => socket.end(text), { expectBody: "^ok$" });
      expect(result.detail).toBe("status 200");
    }
  });

  test("may come before the request, or in pieces", async () => {
    const early = await scene.serve(silent, { greeting: ok() });
    expect((await probe(orderFor(`http://127.0.0.1:${early.port}/`))).because).toBe("good");
    const result = await probeServer((socket) => {
      for (const letter of ok()) socket.write(letter);
    });
    expect(result.because).toBe("good");
  });

  test("may come while nobody reads the rest of the request", async () => {
    const answer = "HTTP/1.1 200 OK\r\n\r\nok";
    const result = await probeServer(
      (socket) => {
        socket.pause();
        socket.end(answer);
      },
      { method: "POST", body: "x".repeat(30_000_000), expectBody: "^ok$" },
    );
    expect(result).toMatchObject({ because: "good", detail: "status 200" });
  });

  test("has what was asked for in its request", async () => {
    const server = await scene.serve(answering(ok()));
    const file = join(scratch, "credentials");
    writeFileSync(file, "user:word\n");
    const headers = [{ name: "X-Canary", value: "1" }];
    const changes = { method: "POST", body: '{"q":1}', headers, credentialsFile: file };
    expect((await probe(orderFor(`http://127.0.0.1:${server.port}/v1`, changes))).isGood).toBe(
      true,
    );
    expect(server.received()).toBe(
      `POST /v1 HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nUser-Agent: watchdog\r\n` +
        "Accept: */*\r\nAccept-Encoding: identity\r\nAuthorization: Basic dXNlcjp3b3Jk\r\n" +
        'Connection: close\r\nX-Canary: 1\r\nContent-Length: 7\r\n\r\n{"q":1}',
    );
  });

  test("is asked for on a new connection each time, which is closed afterwards", async () => {
    const server = await scene.serve(answering(ok()));
    const order = orderFor(`http://127.0.0.1:${server.port}/`);
    for (let round = 1; round <= 3; round += 1) {
      expect((await probe(order)).isGood).toBe(true);
      expect(server.connections).toHaveLength(round);
    }
    await waitFor(
      () => server.connections.every((each) => each.destroyed || each.readableEnded),
      "all connections to be closed by the probe",
    );
  });
});

describe("an answer that is not good", () => {
  test("has another status", async () => {
    const result = await probeServer(answering("HTTP/1.1 503 Busy\r\nContent-Length: 9\r\n\r\n"));
    expect(result).toMatchObject({ isGood: false, because: "status", status: 503 });
  });

  test("sends somewhere else, where nobody goes", async () => {
    const other = await scene.serve(answering(ok()));
    const location = `http://127.0.0.1:${other.port}/login`;
    const result = await probeServer(
      answering(`HTTP/1.1 302 Found\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`),
    );
    expect(result).toMatchObject({ because: "redirect", status: 302 });
    expect(result.detail).toContain(location);
    expect(other.connections).toEqual([]);
  });

  test("says 200 at the door, and fails the canary", async () => {
    const body = ok('{"status":false,"error":"no session"}');
    expect((await probeServer(answering(body))).because).toBe("good");
    const text = await probeServer(answering(body), { expectBody: '"status":true' });
    expect(text.because).toBe("body-mismatch");
    expect(text.detail).toContain('"status":false');
    const expectJson = [{ path: "status", value: "true" }];
    expect((await probeServer(answering(body), { expectJson })).because).toBe("json-mismatch");
  });

  test("is none", async () => {
    const closed = await probeServer((socket) => socket.end());
    expect(closed).toMatchObject({ because: "reset" });
    const reset = await probeServer((socket) => socket.resetAndDestroy());
    expect(reset).toMatchObject({ because: "reset" });
    const half = await probeServer((socket) =>
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"),
    );
    expect(half).toMatchObject({ because: "reset", status: 200 });
    const strange = await probeServer(answering("SSH-2.0-OpenSSH_9.2\r\n"));
    expect(strange).toMatchObject({ because: "malformed" });
  });
});

test("no proxy variable of the environment is looked at", async () => {
  const names = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
  ];
  const trap = await scene.serve(answering(ok()));
  const before = names.map((name) => [name, process.env[name]] as const);
  for (const name of names) process.env[name] = `http://127.0.0.1:${trap.port}`;
  try {
    expect((await probeServer(answering(ok()))).isGood).toBe(true);
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
  expect(trap.connections).toEqual([]);
});

describe("over a unix socket", () => {
  test("HTTP is spoken as over TCP", async () => {
    const path = join(scratch, "socket");
    const server = await scene.serve(answering(ok()), { path });
    const result = await probe(orderFor(`unix:${path}:/health`));
    expect({ ...result, stages: stagesOf(result) }).toMatchObject({
      because: "good",
      stages: "connect headers body",
      address: path,
    });
    expect(server.received()).toStartWith("GET /health HTTP/1.1\r\nHost: localhost\r\n");
  });

  test("a socket that is not there, or that nobody serves, refuses", async () => {
    const missing = await probe(orderFor(`unix:${join(scratch, "missing")}`));
    expect(missing).toMatchObject({ because: "refused" });
    expect(missing.detail).toContain("no such socket");
    const file = join(scratch, "file");
    writeFileSync(file, "");
    expect(await probe(orderFor(`unix:${file}`))).toMatchObject({ because: "refused" });
  });

  test("a server that does not answer is not waited for", async () => {
    const path = join(scratch, "socket");
    await scene.serve(silent, { path });
    const result = await probe(orderFor(`unix:${path}`, { timeoutMs: LIMIT_MS }));
    expect(result.because).toBe("no-answer");
  });
});

test("by TCP, a connection is enough, and is closed without a byte", async () => {
  const server = await scene.serve(silent);
  const result = await probe(orderFor(`tcp://127.0.0.1:${server.port}`));
  expect({ ...result, stages: stagesOf(result) }).toEqual({
    isGood: true,
    because: "good",
    stages: "name connect",
    address: `127.0.0.1:${server.port}`,
    detail: "connected",
  });
  await waitFor(() => server.connections[0]?.readableEnded, "the connection to be closed");
  expect(server.received()).toBe("");
});

test("settings that cannot be used are told before anybody is asked", async () => {
  const server = await scene.serve(answering(ok()));
  const order = orderFor(`http://127.0.0.1:${server.port}/`, { credentialsFile: "/no/such/file" });
  const result = await probe(order);
  expect(result).toMatchObject({ because: "unusable-settings", stages: [] });
  expect(result.detail).toBe("/no/such/file cannot be read (ENOENT)");
  expect(server.connections).toEqual([]);
});
