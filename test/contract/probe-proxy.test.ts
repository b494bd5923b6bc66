/** Probes through a proxy, for settings that ask for one. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { probe } from "../../src/probe/probe.ts";
import {
  answering,
  CA_FILE,
  ok,
  orderFor,
  ProbeScene,
  silent,
  type Behaviour,
} from "../support/probe-scene.ts";

let scene: ProbeScene;
beforeEach(() => {
  scene = new ProbeScene();
});
afterEach(() => scene.close());

/** Nobody answers for it: only a proxy knows the way. */
const HOST = "far.test";

/** Opens a tunnel to a port of this machine, whatever was asked for. */
function tunnelTo(port: number): Behaviour {
  const begun = new WeakSet<object>();
  return (socket) => {
    if (begun.has(socket)) return;
    begun.add(socket);
    const target = connect(port, "127.0.0.1");
    target.on("error", () => undefined);
    target.once("connect", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      socket.pipe(target).pipe(socket);
    });
  };
}

describe("a proxy", () => {
  test("is asked for the whole address", async () => {
    const proxy = await scene.serve(answering(ok()));
    const order = orderFor(`http://${HOST}:81/x?y=1`, { usesProxy: true });
    const result = await probe({ ...order, proxy: `http://u:p@127.0.0.1:${proxy.port}` });
    expect(result).toMatchObject({ because: "good", address: `127.0.0.1:${proxy.port}` });
    const request = proxy.received();
    expect(request).toStartWith(`GET http://${HOST}:81/x?y=1 HTTP/1.1\r\nHost: ${HOST}:81\r\n`);
    expect(request).toContain("\r\nProxy-Authorization: Basic dTpw\r\n");
  });

  test("makes a tunnel, in which the certificate of the target counts", async () => {
    const target = await scene.serveTls(answering(ok()));
    const proxy = await scene.serve(tunnelTo(target.port));
    const changes = { usesProxy: true, caFile: CA_FILE };
    const order = orderFor("https://localhost:444/x", changes);
    const result = await probe({ ...order, proxy: `127.0.0.1:${proxy.port}` });
    expect(result).toMatchObject({ because: "good", status: 200 });
    expect(result.stages.map(({ stage }) => stage)).toEqual([
      "name",
      "connect",
      "proxy",
      "tls",
      "headers",
      "body",
    ]);
    expect(proxy.received()).toStartWith("CONNECT localhost:444 HTTP/1.1\r\n");
    for (const other of [HOST, "192.0.2.1"]) {
      const wrong = await probe({
        ...orderFor(`https://${other}/`, changes),
        proxy: `127.0.0.1:${proxy.port}`,
      });
      expect(wrong).toMatchObject({
        because: "tls-failed",
        detail: `TLS: the certificate is not one of ${other}`,
      });
    }
  });

  test("that refuses the tunnel, hangs or hangs up is told", async () => {
    const order = orderFor(`https://${HOST}/`, { usesProxy: true, timeoutMs: 300 });
    const because = async (behave: Behaviour): Promise<string> => {
      const { port } = await scene.serve(behave);
      const result = await probe({ ...order, proxy: `http://127.0.0.1:${port}` });
      expect(result.detail).toStartWith("proxy: ");
      return result.because;
    };
    const denied = "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
    expect(await because(answering(denied))).toBe("proxy-refused");
    expect(await because(silent)).toBe("no-answer");
    expect(await because((socket) => socket.end())).toBe("reset");
    expect(await because(answering("hello"))).toBe("malformed");
  });

  test("that is not there is told as the proxy", async () => {
    const order = orderFor(`http://${HOST}/`, { usesProxy: true });
    const result = await probe({ ...order, proxy: `http://127.0.0.1:${await scene.deadPort()}` });
    expect(result).toMatchObject({ because: "refused" });
    expect(result.detail).toStartWith("proxy: 127.0.0.1:");
  });

  test("of another kind is refused, not passed over", async () => {
    const { port } = await scene.serve(answering(ok()));
    const order = orderFor(`http://127.0.0.1:${port}/`, { usesProxy: true });
    const result = await probe({ ...order, proxy: "socks5://127.0.0.1:1080" });
    expect(result.because).toBe("unusable-settings");
  });

  test("is left alone where the settings do not ask for one", async () => {
    const proxy = await scene.serve(answering(ok()));
    const { port } = await scene.serve(answering(ok()));
    const order = orderFor(`http://127.0.0.1:${port}/`);
    const result = await probe({ ...order, proxy: `http://127.0.0.1:${proxy.port}` });
    expect(result.because).toBe("good");
    expect(proxy.connections).toEqual([]);
  });
});
