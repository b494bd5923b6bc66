/**
 * Servers that hang in one stage or the other, or answer without an end: whatever they do or do not
 * do holds no probe longer than its limit, and makes it no larger.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import type { ProbeReason, ProbeResult } from "../../src/core/probe-result.ts";
import { probe } from "../../src/probe/probe.ts";
import { answering, orderFor, ProbeScene, silent, type Behaviour } from "../support/probe-scene.ts";
import { waitFor } from "../support/wait-for.ts";

let scene: ProbeScene;
beforeEach(() => {
  scene = new ProbeScene();
});
afterEach(() => scene.close());

const stagesOf = (result: ProbeResult): string => result.stages.map(({ stage }) => stage).join(" ");
const sumOf = (result: ProbeResult): number => result.stages.reduce((sum, { ms }) => sum + ms, 0);

/** Short, as these wait for it; LATE_MS is for a machine that is busy. */
const LIMIT_MS = 1_000; // "1 s"
const LATE_MS = 20_000;

async function probeServer(behave: Behaviour, changes = {}): Promise<ProbeResult> {
  const { port } = await scene.serve(behave);
  return probe(orderFor(`http://127.0.0.1:${port}/`, changes));
}

describe("a server that hangs", () => {
  interface Hang {
    readonly because: ProbeReason;
    readonly stages: string;
    readonly detail: string;
    readonly url: () => Promise<string>;
  }
  const at = async (behave: Behaviour): Promise<string> =>
    `http://127.0.0.1:${(await scene.serve(behave)).port}/`;
  const drip = (text: string): Behaviour => {
    return (socket) => {
      socket.write(text);
      const timer = setInterval(() => socket.write("x"), 20);
      socket.on("close", () => clearInterval(timer));
    };
  };

  const HANGS: readonly (readonly [string, Hang])[] = [
    [
      "takes no connection",
      {
        because: "connect-timeout",
        stages: "name connect",
        detail: "no connection to",
        url: async () => `http://127.0.0.1:${await scene.fullQueue()}/`,
      },
    ],
    [
      "takes no connection, where no more is asked",
      {
        because: "connect-timeout",
        stages: "name connect",
        detail: "within 1 s",
        url: async () => `tcp://127.0.0.1:${await scene.fullQueue()}`,
      },
    ],
    [
      "does not shake hands",
      {
        because: "tls-timeout",
        stages: "name connect tls",
        detail: "no TLS handshake within 1 s",
        url: async () => (await at(silent)).replace("http", "https"),
      },
    ],
    [
      "does not answer",
      {
        because: "no-answer",
        stages: "name connect headers",
        detail: "no answer within 1 s",
        url: () => at(silent),
      },
    ],
    [
      "answers a head without an end",
      {
        because: "no-answer",
        stages: "name connect headers",
        detail: "its head had no end",
        url: () => at(drip("HTTP/1.1 200 OK\r\nX: ")),
      },
    ],
    [
      "answers one byte after the other",
      {
        because: "too-slow",
        stages: "name connect headers body",
        detail: "its body had no end",
        url: () => at(drip("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")),
      },
    ],
    [
      "answers a body without an end, and then nothing",
      {
        because: "too-slow",
        stages: "name connect headers body",
        detail: "its body had no end",
        url: () => at(answering("HTTP/1.1 200 OK\r\n\r\nok")),
      },
    ],
  ];

  test.each(HANGS.map(([title, hang]) => [title, hang] as const))(
    "%s",
    async (_, { because, stages, detail, url }) => {
      const order = orderFor(await url(), { timeoutMs: LIMIT_MS });
      const began = performance.now();
      const result = await probe(order);
      const spent = performance.now() - began;
      expect({ because: result.because, stages: stagesOf(result) }).toEqual({ because, stages });
      expect(result.detail).toContain(detail);
      expect(spent).toBeGreaterThanOrEqual(LIMIT_MS - 1);
      expect(spent).toBeLessThan(LIMIT_MS + LATE_MS);
      expect(sumOf(result)).toBeLessThan(LIMIT_MS + LATE_MS);
    },
  );

  test("negative twin: each of them is waited for as long as the limit says", async () => {
    const order = orderFor(await at(drip("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n")));
    expect((await probe(order)).because).toBe("good");
  });

  test("is not waited for when the probe is stopped", async () => {
    for (const [, { url, because }] of HANGS) {
      const controller = new AbortController();
      const order = orderFor(await url(), { timeoutMs: 60_000 });
      const before = scene.connectionCount;
      const result = probe(order, { signal: controller.signal });
      if (because !== "connect-timeout") {
        await waitFor(() => scene.connectionCount > before, "the probe to be connected");
      }
      controller.abort();
      expect((await result).because).toBe("stopped");
    }
  });
});

describe("an answer that is too long", () => {
  /** Beyond what one run of the collector leaves behind; the answers would be far larger. */
  const MOST_GROWTH_BYTES = 60_000_000;

  async function growthDuring(act: () => Promise<void>): Promise<number> {
    Bun.gc(true);
    const before = process.memoryUsage.rss();
    await act();
    return process.memoryUsage.rss() - before;
  }

  test("is left where it passes the limit", async () => {
    const chunk = Buffer.alloc(64 * 1024, "x");
    let sent = 0;
    const growth = await growthDuring(async () => {
      const result = await probeServer((socket) => {
        const pour = (): void => {
          while (!socket.destroyed && socket.write(chunk)) sent += chunk.length;
        };
        socket.on("drain", pour);
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        pour();
      });
      expect(result).toMatchObject({ because: "too-long", status: 200 });
      expect(result.detail).toContain("1048576 bytes");
    });
    expect(sent).toBeLessThan(50_000_000);
    expect(growth).toBeLessThan(MOST_GROWTH_BYTES);
  });

  test("is not unpacked beyond the limit", async () => {
    const bomb = gzipSync(Buffer.alloc(400_000_000));
    const length = `Content-Length: ${bomb.length}`;
    const head = `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n${length}\r\n\r\n`;
    const growth = await growthDuring(async () => {
      const result = await probeServer(
        (socket) => {
          socket.write(head);
          socket.write(bomb);
        },
        { expectBody: "x" },
      );
      expect(result.because).toBe("too-long");
    });
    expect(growth).toBeLessThan(MOST_GROWTH_BYTES);
  });
});
