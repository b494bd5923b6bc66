/** Probes over TLS: whose certificate is taken, and that no variable changes it. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HttpDetails } from "../../src/core/probe-settings.ts";
import type { ProbeResult } from "../../src/core/probe-result.ts";
import { probeHttp } from "../../src/probe/exchange.ts";
import { probe } from "../../src/probe/probe.ts";
import { answering, CA_FILE, ok, orderFor, ProbeScene, silent } from "../support/probe-scene.ts";

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

async function probeAt(host: string, changes: Partial<HttpDetails> = {}): Promise<ProbeResult> {
  const { port } = await scene.serveTls(answering(ok()));
  return probe(orderFor(`https://${host}:${port}/`, changes));
}

/** The certificate is one of localhost and its addresses; this name leads to it all the same. */
async function probeOtherName(changes: Partial<HttpDetails> = {}): Promise<ProbeResult> {
  const { port } = await scene.serveTls(answering(ok()));
  const { target, http, timeoutMs } = orderFor(`https://other.test:${port}/`, changes);
  if (target.kind !== "https") throw new Error("the target is no https");
  return probeHttp({ target, http, timeoutMs }, { lookUp: async () => ["127.0.0.1"] });
}

describe("a certificate", () => {
  test.each(["localhost", "127.0.0.1"])("of the CA file is taken, for %s", async (host) => {
    const result = await probeAt(host, { caFile: CA_FILE });
    expect(result).toMatchObject({ because: "good", status: 200 });
    expect(result.stages.map(({ stage }) => stage)).toEqual([
      "name",
      "connect",
      "tls",
      "headers",
      "body",
    ]);
  });

  test("of nobody is not taken", async () => {
    const result = await probeAt("localhost");
    expect(result.because).toBe("tls-failed");
    expect(result.detail).toBe("TLS: self signed certificate");
    expect(result.stages.at(-1)?.stage).toBe("tls");
  });

  test("of another name is not taken", async () => {
    const result = await probeOtherName({ caFile: CA_FILE });
    expect(result).toMatchObject({
      because: "tls-failed",
      detail: "TLS: the certificate is not one of other.test",
    });
  });

  test("of other addresses is not taken", async () => {
    const { port } = await scene.serveTls(answering(ok()), { host: "127.0.0.2" });
    const result = await probe(orderFor(`https://127.0.0.2:${port}/`, { caFile: CA_FILE }));
    expect(result).toMatchObject({
      because: "tls-failed",
      detail: "TLS: the certificate is not one of 127.0.0.2",
    });
  });

  test("is taken, whosever it is, where the settings say so", async () => {
    expect((await probeAt("localhost", { isInsecure: true })).because).toBe("good");
    expect((await probeOtherName({ isInsecure: true })).because).toBe("good");
  });

  test("of nobody is not taken either where a variable says that none is looked at", async () => {
    const name = "NODE_TLS_REJECT_UNAUTHORIZED";
    const before = process.env[name];
    process.env[name] = "0";
    try {
      expect((await probeAt("localhost")).because).toBe("tls-failed");
    } finally {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    }
  });
});

describe("a server that does not speak TLS", () => {
  test("is told", async () => {
    const { port } = await scene.serve(answering("HTTP/1.1 400 Bad Request\r\n\r\n"));
    const result = await probe(orderFor(`https://localhost:${port}/`));
    expect(result).toMatchObject({ because: "tls-failed", detail: "TLS: WRONG VERSION NUMBER" });
  });

  test("is told where it closes the connection", async () => {
    const { port } = await scene.serve((socket) => socket.end());
    const result = await probe(orderFor(`https://localhost:${port}/`));
    expect(result.because).toBe("tls-failed");
    expect(result.detail).toContain("closed in the handshake");
  });

  test("and one that does is told where it was not asked to", async () => {
    const { port } = await scene.serveTls(answering(ok()));
    const result = await probe(orderFor(`http://localhost:${port}/`));
    expect(["reset", "malformed"]).toContain(result.because);
  });
});

describe("a CA file", () => {
  test.each([
    ["that is missing", undefined, "cannot be read (ENOENT)"],
    ["without a certificate", "hello", "holds no certificate"],
    ["that is too large", "x".repeat(1024 * 1024 + 1), "larger than 1 MiB"],
    [
      "with a broken one",
      "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n",
      "broken certificate",
    ],
  ])("%s is told", async (_, text, detail) => {
    const caFile = join(scratch, "ca.pem");
    if (text !== undefined) writeFileSync(caFile, text);
    const result = await probeAt("localhost", { caFile });
    expect(result.because).toBe("unusable-settings");
    expect(result.detail).toContain(detail);
  });

  test("that is a FIFO is not waited for", async () => {
    const caFile = join(scratch, "fifo");
    Bun.spawnSync(["mkfifo", caFile]);
    const result = await probeAt("localhost", { caFile });
    expect(result.detail).toContain("not a regular file");
  });
});

test("a handshake that hangs leaves no connection behind", async () => {
  const server = await scene.serve(silent);
  const order = orderFor(`https://127.0.0.1:${server.port}/`, { timeoutMs: 200 });
  expect((await probe(order)).because).toBe("tls-timeout");
  const [connection] = server.connections;
  await new Promise<void>((resolve) => {
    if (connection === undefined || connection.destroyed) resolve();
    else connection.on("close", () => resolve());
  });
});
