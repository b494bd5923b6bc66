/** What is left of a proxy that opens no tunnel. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { probe } from "../../src/probe/probe.ts";
import { answering, orderFor, ProbeScene } from "../support/probe-scene.ts";
import { waitFor } from "../support/wait-for.ts";

let scene: ProbeScene;
beforeEach(() => {
  scene = new ProbeScene();
});
afterEach(() => scene.close());

const HOST = "host.invalid";

describe("a proxy that opens no tunnel", () => {
  test("keeps no connection: each probe would leave one more", async () => {
    let closed = 0;
    const proxy = await scene.serve((socket) => {
      socket.on("close", () => (closed += 1));
      socket.write("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    });
    const order = orderFor(`https://${HOST}/`, { usesProxy: true });
    const result = await probe({ ...order, proxy: `http://127.0.0.1:${proxy.port}` });
    expect(result.because).toBe("proxy-refused");
    await waitFor(() => closed === 1, "the end of the connection", { limitMs: 5_000 });
  });

  test("is not listened to without an end, however often it says that it goes on", async () => {
    const proxy = await scene.serve(answering("HTTP/1.1 100 Continue\r\n\r\n".repeat(4_000)));
    const order = orderFor(`https://${HOST}/`, { usesProxy: true, timeoutMs: 3_000 });
    const result = await probe({ ...order, proxy: `http://127.0.0.1:${proxy.port}` });
    expect(result.because).toBe("too-long");
  });
});
