/**
 * One notice to one sink over HTTP: what a real server on loopback receives, and what each of its
 * answers is taken for.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Notice } from "../../src/core/notice.ts";
import { makeSink, type ResolvedSink, type SinkWords } from "../../src/core/sink.ts";
import { setMask } from "../../src/os/mask.ts";
import { type Sent, sendNotice, type SendTerms } from "../../src/notify/send.ts";
import { sampleNotice } from "../support/sample-notice.ts";
import { waitFor } from "../support/wait-for.ts";
import { openSinkServer, type SinkServer } from "../support/sink-server.ts";

let server: SinkServer;
beforeAll(async () => {
  server = await openSinkServer();
});
afterAll(() => server.close());
beforeEach(() => {
  server.received.length = 0;
  server.answer({ status: 200, body: "OK" });
});

const AMPLE_MS = 20_000;

/** Of one test alone: a request that was given up may come in when another test has begun. */
const silent: SinkServer[] = [];
afterAll(() => Promise.all(silent.map((one) => one.close())));

async function openSilent(): Promise<string> {
  const one = await openSinkServer();
  silent.push(one);
  one.answer("hang");
  return one.url;
}

function sinkOf(target: string, words: Partial<SinkWords> = {}): ResolvedSink {
  const spec = makeSink({ kind: "webhook", source: { kind: "literal", text: target }, ...words });
  return { spec, target };
}

function send(
  sink: ResolvedSink,
  notice: Notice = sampleNotice(),
  terms: Partial<SendTerms> = {},
): Promise<Sent> {
  const hooks = { run: () => Promise.resolve({ kind: "stopped" as const }) };
  return sendNotice(sink, notice, {
    timeoutMs: AMPLE_MS,
    hooks,
    version: "9.9",
    environment: {},
    ...terms,
  });
}

function lastRequest(): SinkServer["received"][number] {
  const request = server.received.at(-1);
  if (request === undefined) throw new Error("nothing has come");
  return request;
}

describe("a webhook", () => {
  test("receives the whole notice as JSON, with its key, once", async () => {
    const notice = sampleNotice();
    expect(await send(sinkOf(`${server.url}/hook?x=1`), notice)).toEqual({ kind: "delivered" });
    expect(server.received).toHaveLength(1);
    const { method, target, headers, body } = lastRequest();
    expect([method, target]).toEqual(["POST", "/hook?x=1"]);
    expect(JSON.parse(body)).toEqual({ format: 1, ...notice });
    expect(headers["idempotency-key"]).toBe(notice.id);
    expect(headers["content-type"]).toBe("application/json");
    expect(headers["user-agent"]).toBe("watchdog/9.9");
    expect(headers["x-watchdog-event"]).toBe("failure");
  });

  test("with a user and a password in its address is told them by a header", async () => {
    await send(sinkOf(`http://us%40er:pw_77@127.0.0.1:${server.port}/h`));
    const { target, headers } = lastRequest();
    expect(target).toBe("/h");
    expect(headers["authorization"]).toBe(`Basic ${btoa("us@er:pw_77")}`);
  });

  test.each([
    [400, "refused", "rejected"],
    [401, "refused", "rejected"],
    [404, "refused", "rejected"],
    [410, "refused", "rejected"],
    [422, "refused", "rejected"],
    [408, "failed", "server-error"],
    [425, "failed", "server-error"],
    [429, "failed", "rate-limited"],
    [500, "failed", "server-error"],
    [503, "failed", "server-error"],
    [301, "failed", "redirected"],
    [307, "failed", "redirected"],
  ] as const)("that answers %d: %s, %s", async (status, kind, because) => {
    server.answer({ status, body: "because\nof this", headers: { Location: `${server.url}/b` } });
    const sent = await send(sinkOf(`${server.url}/a`));
    const detail = `status ${status}: because of this`;
    expect(sent).toEqual({ kind, because, detail } as Sent);
    // Where it points to is not asked.
    expect(server.received.map(({ target }) => target)).toEqual(["/a"]);
  });

  test("is heard when it asks for some time", async () => {
    server.answer({ status: 429, headers: { "Retry-After": "7" } });
    expect(await send(sinkOf(server.url))).toMatchObject({ kind: "failed", retryAfterMs: 7_000 });
    server.answer({ status: 503, headers: { "Retry-After": "never" } });
    expect(await send(sinkOf(server.url))).not.toHaveProperty("retryAfterMs");
  });

  test("whose certificate nobody vouches for is told nothing, by no variable", async () => {
    const file = (name: string) => Bun.file(`test/fixtures/localhost-${name}.pem`);
    let heard = 0;
    const secure = Bun.serve({
      port: 0,
      hostname: "localhost",
      tls: { cert: file("certificate"), key: file("key") },
      fetch: () => new Response(`${(heard += 1)}`),
    });
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    const sent = await send(sinkOf(`https://localhost:${secure.port}/h`));
    delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    // The twin: it answers whoever does not ask who it is.
    const tls = { rejectUnauthorized: false };
    const twin = await fetch(`https://localhost:${secure.port}/h`, { tls });
    await secure.stop(true);
    expect(sent).toMatchObject({ kind: "failed", because: "tls-error" });
    expect([twin.status, heard]).toEqual([200, 1]);
  });

  test("that gives back a secret is quoted without it, also where the quotation ends", async () => {
    setMask({ values: ["tok_1a2b3c4d5e"] });
    server.answer({ status: 500, body: `${"x".repeat(193)} tok_1a2b3c4d5e is unknown` });
    const sent = await send(sinkOf(server.url));
    setMask({});
    expect(sent).toMatchObject({ kind: "failed", because: "server-error" });
    expect(JSON.stringify(sent)).not.toContain("tok_");
  });

  test("that takes the request and never answers fails at the limit", async () => {
    const url = await openSilent();
    const began = performance.now();
    const sent = await send(sinkOf(url), sampleNotice(), { timeoutMs: 200 });
    expect(sent).toEqual({
      kind: "failed",
      because: "no-answer",
      detail: "no answer within 200 ms",
    });
    expect(performance.now() - began).toBeLessThan(15_000);
  });

  test("that hangs up, is not there, or speaks no TLS fails and says which", async () => {
    server.answer("reset");
    expect(await send(sinkOf(server.url))).toMatchObject({ because: "no-answer" });
    const gone = await send(sinkOf("http://127.0.0.1:1/secret-path?token=abc"));
    expect(gone).toEqual({ kind: "failed", because: "not-connected", detail: "ECONNREFUSED" });
    const tls = await send(sinkOf(`https://127.0.0.1:${server.port}/`));
    expect(tls).toMatchObject({ kind: "failed", because: "tls-error" });
  });

  test("whose answer has no end is read to a bound, and was delivered", async () => {
    server.answer("endless");
    const before = process.memoryUsage.rss();
    expect(await send(sinkOf(server.url))).toEqual({ kind: "delivered" });
    expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 1024 * 1024);
    // It is not left to go on for as long as this process lives.
    await waitFor(() => server.open() === 0, "the connection to be closed");
  });

  test("that makes a sender throw is tried again, and the address is not told", async () => {
    const hooks = {
      run: () => Promise.reject(new TypeError("cannot ask https://h/tok_secret")),
    };
    const sent = await send(sinkOf("true", { kind: "command" }), sampleNotice(), { hooks });
    expect(sent).toEqual({ kind: "failed", because: "not-connected", detail: "TypeError" });
  });

  test.each(["hangs", "breaks"] as const)(
    "whose answer %s in its body has said with its status what became of it",
    async (unfinished) => {
      server.answer({ unfinished, status: 200 });
      expect(await send(sinkOf(server.url))).toEqual({ kind: "delivered" });
      server.answer({ unfinished, status: 404 });
      // What has come of a body that breaks off may be gone with it.
      const detail = expect.stringMatching(/^status 404/) as string;
      const refused = { kind: "refused", because: "rejected", detail };
      expect(await send(sinkOf(server.url))).toMatchObject(refused);
      server.answer({ unfinished, status: 500 });
      expect(await send(sinkOf(server.url))).toMatchObject({ because: "server-error" });
      // The limit of the whole comes first.
      const short = { timeoutMs: 200 };
      server.answer({ unfinished, status: 200 });
      expect(await send(sinkOf(server.url), sampleNotice(), short)).toEqual({ kind: "delivered" });
    },
  );

  test("can be stopped at any time", async () => {
    const url = await openSilent();
    const stop = new AbortController();
    const sending = send(sinkOf(url), sampleNotice(), { signal: stop.signal });
    stop.abort();
    expect(await sending).toMatchObject({ kind: "failed", because: "stopped" });
  });

  test("is reached through the proxy that curl would take, and no other", async () => {
    const environment = { http_proxy: server.url };
    await send(sinkOf("http://example.invalid/a"), sampleNotice(), { environment });
    expect(lastRequest().target).toBe("http://example.invalid/a");
    const upper = { HTTP_PROXY: "http://127.0.0.1:1" };
    expect(await send(sinkOf(`${server.url}/b`), sampleNotice(), { environment: upper })).toEqual({
      kind: "delivered",
    });
    const except = { http_proxy: "http://127.0.0.1:1", no_proxy: "127.0.0.1" };
    await send(sinkOf(`${server.url}/c`), sampleNotice(), { environment: except });
    expect(lastRequest().target).toBe("/c");
  });

  test("that is no address is refused, and not told", async () => {
    for (const target of ["tok_secret", "ftp://h/x", "http://"]) {
      const sent = await send(sinkOf(target));
      expect(sent).toMatchObject({ kind: "refused", because: "not-an-address" });
      expect(JSON.stringify(sent)).not.toContain("tok_secret");
    }
  });

  test("of ntfy is posted to the root of its server, with the topic in the body", async () => {
    const sink = sinkOf(`${server.url}/my-topic`, { shape: "ntfy" });
    expect(await send(sink)).toEqual({ kind: "delivered" });
    expect(lastRequest().target).toBe("/");
    expect(JSON.parse(lastRequest().body)).toMatchObject({ topic: "my-topic", priority: 4 });
  });
});

describe("a ping", () => {
  const ping = (path: string): ResolvedSink => sinkOf(`${server.url}${path}`, { kind: "ping" });

  test("goes through the sequence of the protocol, with one rid", async () => {
    const sink = ping("/ping/uuid-1");
    const { run_id: rid } = sampleNotice();
    await send(sink, sampleNotice({ event: "start", exit_status: null, log_tail: null }));
    await send(sink, sampleNotice({ event: "success", exit_status: 0 }));
    await send(sink, sampleNotice());
    await send(sink, sampleNotice({ event: "abandoned", exit_status: null }));
    await send(sink, sampleNotice({ event: "circuit_open" }));
    expect(server.received.map(({ target }) => target)).toEqual([
      `/ping/uuid-1/start?rid=${rid}`,
      `/ping/uuid-1/0?rid=${rid}`,
      `/ping/uuid-1/3?rid=${rid}`,
      `/ping/uuid-1/fail?rid=${rid}`,
      `/ping/uuid-1/log?rid=${rid}`,
    ]);
    expect(server.received[0]?.body).toBe("");
    expect(server.received[2]?.body).toBe("first line\nlast line\n");
  });

  test("keeps the path and the query that it was given", async () => {
    await send(ping("/key/slug?create=1"));
    expect(lastRequest().target).toBe(`/key/slug/3?create=1&rid=${sampleNotice().run_id}`);
  });

  test("sends no more of the output than the service has said that it keeps", async () => {
    const tail = `${"x".repeat(99)}\n`.repeat(200);
    const sink = ping("/p/limit");
    server.answer({ status: 200, headers: { "Ping-Body-Limit": "500" }, body: "OK" });
    await send(sink, sampleNotice({ event: "start" }));
    await send(sink, sampleNotice({ log_tail: tail }));
    expect(lastRequest().body).toBe(`${"x".repeat(99)}\n`.repeat(5));
    await send(ping("/p/other"), sampleNotice({ log_tail: tail }));
    expect(lastRequest().body).toHaveLength(10_000);
  });

  test("that is refused as too long is sent again, cut to the limit that was named", async () => {
    const tooLong = { status: 413, headers: { "Ping-Body-Limit": "7" } };
    server.answer(tooLong, { status: 200, body: "OK" });
    expect(await send(ping("/p/413"))).toEqual({ kind: "delivered" });
    expect(server.received.map(({ body }) => body)).toEqual([
      "first line\nlast line\n",
      "t line\n",
    ]);
  });

  test("knows the answers that say with 200 that they are none", async () => {
    server.answer({ status: 200, body: "OK (not found)" });
    expect(await send(ping("/p"))).toMatchObject({ kind: "refused", because: "rejected" });
    server.answer({ status: 200, body: "OK (rate limited)" });
    expect(await send(ping("/p"))).toMatchObject({ kind: "failed", because: "rate-limited" });
  });
});
