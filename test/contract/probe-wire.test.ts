/**
 * A connection without TLS: told what becomes of it in every case, at once or later, and nothing is
 * left open. Each case is also tried with `node:net`, which says the same.
 */
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openNodeWire } from "../../src/probe/node-wire.ts";
import { AT_ONCE_MS, openPlainWire } from "../../src/probe/plain-wire.ts";
import { probe } from "../../src/probe/probe.ts";
import type { OpenWire, Wire, WireEnd } from "../../src/probe/wire.ts";
import { openTargets } from "../support/open-files.ts";
import { ok, orderFor, ProbeScene, silent } from "../support/probe-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const SERVER = new URL("../fixtures/answers-at-once.py", import.meta.url).pathname;

let scene: ProbeScene;
let scratch = "";
beforeEach(() => {
  scene = new ProbeScene();
  scratch = mkdtempSync(join(tmpdir(), "watchdog-wire-"));
});
afterEach(async () => {
  await scene.close();
  rmSync(scratch, { recursive: true, force: true });
});

type Open = OpenWire<Wire>;
const BOTH: readonly (readonly [string, Open])[] = [
  ["the plain one", openPlainWire],
  ["that of node:net", openNodeWire as Open],
];

const at = (port: number): WireEnd => ({ host: "127.0.0.1", port });
const REQUEST = Buffer.from("GET / HTTP/1.1\r\n\r\n");

/** Waits until it stands. @returns the wire, or the code by which it failed */
function stand(open: Open, end: WireEnd): Promise<Wire | string> {
  return new Promise((resolve) => {
    const opened = open(end, { onOpen: resolve, onFail: resolve });
    if (opened.kind === "standing") resolve(opened.wire);
    if (opened.kind === "failed") resolve(opened.code);
  });
}

async function standing(open: Open, end: WireEnd): Promise<Wire> {
  const wire = await stand(open, end);
  if (typeof wire === "string") throw new Error(wire);
  return wire;
}

interface Heard {
  text: string;
  end: "none" | "ended" | "broken";
}

function hearAll(wire: Wire): Heard {
  const heard: Heard = { text: "", end: "none" };
  wire.hear({
    onBytes: (bytes) => void (heard.text += Buffer.from(bytes).toString("latin1")),
    onEnd: () => {
      if (heard.end === "none") heard.end = "ended";
    },
    onBreak: () => void (heard.end = "broken"),
  });
  return heard;
}

function openSockets(): number {
  return openTargets().filter((target) => target.startsWith("socket:")).length;
}

describe.each(BOTH)("a wire: %s", (_, open) => {
  test("is refused by its code where nobody listens", async () => {
    expect(await stand(open, at(await scene.deadPort()))).toBe("ECONNREFUSED");
    expect(await stand(open, { path: join(scratch, "missing") })).toBe("ENOENT");
    const file = join(scratch, "file");
    writeFileSync(file, "");
    expect(await stand(open, { path: file })).toBe("ECONNREFUSED");
  });

  test("brings an answer that comes at once, and one that comes late", async () => {
    for (const waitMs of [0, 10 * AT_ONCE_MS]) {
      const answer = (socket: Socket): void => void socket.end(ok());
      const server = await scene.serve((socket) => void setTimeout(answer, waitMs, socket));
      const wire = await standing(open, at(server.port));
      const heard = hearAll(wire);
      wire.send(REQUEST);
      await waitFor(() => heard.end === "ended", "the end of the answer");
      expect([heard.text, server.received()]).toEqual([ok(), REQUEST.toString()]);
      wire.close();
    }
  });

  test("brings what came before anybody asked", async () => {
    const { port } = await scene.serve(silent, { greeting: "hello" });
    const wire = await standing(open, at(port));
    const heard = hearAll(wire);
    wire.send(REQUEST);
    await waitFor(() => heard.text === "hello", "the greeting");
    wire.close();
  });

  test("tells an end from a break, at once and late", async () => {
    for (const waitMs of [0, 10 * AT_ONCE_MS]) {
      for (const how of ["end", "resetAndDestroy"] as const) {
        const leave = (socket: Socket): void => void socket[how]();
        const server = await scene.serve((socket) => void setTimeout(leave, waitMs, socket));
        const wire = await standing(open, at(server.port));
        const heard = hearAll(wire);
        wire.send(REQUEST);
        await waitFor(() => heard.end !== "none", "the end");
        expect([how, heard.end]).toEqual([how, how === "end" ? "ended" : "broken"]);
        wire.close();
      }
    }
  });

  test("brings all that came before a break", async () => {
    const server = await scene.serve((socket) => {
      socket.write("half", () => setTimeout(() => socket.resetAndDestroy(), 5 * AT_ONCE_MS));
    });
    const wire = await standing(open, at(server.port));
    const heard = hearAll(wire);
    wire.send(REQUEST);
    await waitFor(() => heard.end !== "none", "the break");
    expect(heard).toEqual({ text: "half", end: "broken" });
    wire.close();
  });

  test("sends all of what a slow reader does not take at once", async () => {
    const server = await scene.serve((socket) => {
      socket.pause();
      setTimeout(() => socket.resume(), 5 * AT_ONCE_MS);
    });
    const wire = await standing(open, at(server.port));
    hearAll(wire);
    wire.send(Buffer.alloc(10_000_000, "x"));
    await waitFor(() => server.received().length === 10_000_000, "all of it");
    wire.close();
  });

  test("tells nobody anything when it is closed, and else the last who hears it", async () => {
    const server = await scene.serve((socket) => void setTimeout(() => socket.write("late"), 20));
    const [wire, closed] = [
      await standing(open, at(server.port)),
      await standing(open, at(server.port)),
    ];
    const first = hearAll(wire);
    const none = hearAll(closed);
    wire.send(REQUEST);
    closed.send(REQUEST);
    closed.close();
    closed.close();
    const second = hearAll(wire);
    await waitFor(() => second.text === "late", "the answer");
    expect([first.text, none]).toEqual(["", { text: "", end: "none" }]);
    wire.close();
  });

  test("leaves nothing open, on its way, standing, with a request or an answer", async () => {
    const full = await scene.fullQueue();
    const server = await scene.serve(silent);
    const path = join(scratch, "socket");
    await scene.serve(silent, { path });
    const before = openSockets();
    const onItsWay = open(at(full), { onOpen: () => undefined, onFail: () => undefined });
    if (onItsWay.kind !== "on-its-way") throw new Error(`it is ${onItsWay.kind}`);
    onItsWay.close();
    (await standing(open, at(server.port))).close();
    (await standing(open, { path })).close();
    const asked = await standing(open, at(server.port));
    hearAll(asked);
    asked.send(REQUEST);
    asked.close();
    const pouring = await standing(open, at(server.port));
    hearAll(pouring);
    pouring.send(Buffer.alloc(10_000_000));
    pouring.close();
    const isGone = (socket: Socket): boolean => socket.destroyed || socket.readableEnded;
    await waitFor(() => server.connections.every(isGone), "the server to see all of them closed");
    await waitFor(() => openSockets() <= before + server.connections.length + 1, "none to be left");
    for (const connection of server.connections) connection.destroy();
    await waitFor(() => openSockets() <= before + 1, "none but those of the servers");
  });
});

test("a plain one closes without a reset, which a server would log", async () => {
  const errors: string[] = [];
  const server = await scene.serve(silent);
  for (let round = 0; round < 20; round += 1) {
    expect((await probe(orderFor(`tcp://127.0.0.1:${server.port}`))).because).toBe("good");
  }
  await waitFor(() => server.connections.length === 20, "all connections");
  for (const each of server.connections) each.on("error", (error) => errors.push(String(error)));
  await waitFor(() => server.connections.every((each) => each.readableEnded), "their ends");
  expect(errors).toEqual([]);
});

test("the queue of a unix socket that is full refuses, and is told as that", async () => {
  const path = join(scratch, "socket");
  const script = `import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(0)
waiting = [socket.socket(socket.AF_UNIX) for _ in range(3)]
for each in waiting:
    each.setblocking(False)
    each.connect_ex(sys.argv[1])
print("full", flush=True)
sys.stdin.read()`;
  const listener = Bun.spawn(["python3", "-c", script, path], { stdin: "pipe", stdout: "pipe" });
  await listener.stdout.getReader().read();
  const result = await probe(orderFor(`unix:${path}`));
  listener.kill();
  await listener.exited;
  expect(result).toMatchObject({ because: "refused", detail: `${path}: its queue is full` });
});

describe("a server of another process", () => {
  // While the call waits for it, this one stands still.
  async function serve(...words: readonly string[]) {
    const server = Bun.spawn(["python3", SERVER, ...words], { stdin: "pipe", stdout: "pipe" });
    onTestFinished(async () => {
      server.kill();
      await server.exited;
    });
    const { value } = await server.stdout.getReader().read();
    return { server, port: Number(new TextDecoder().decode(value)) };
  }

  /** So often that one of them was answered within the first moment. */
  const ROUNDS = 20;

  test("that answers or breaks at once is told from one that does not", async () => {
    const { port } = await serve();
    const before = openSockets();
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [path, expected] of [
        ["end", { text: ok(), end: "ended" }],
        ["reset", { text: "HTTP/1.1 200 OK\r\n", end: "broken" }],
      ] as const) {
        const wire = await standing(openPlainWire, at(port));
        const heard = hearAll(wire);
        wire.send(Buffer.from(`GET /${path} HTTP/1.1\r\n\r\n`));
        await waitFor(() => heard.end !== "none", "the end", { stepMs: 1 });
        expect(heard).toEqual(expected);
        wire.close();
      }
    }
    const wire = await standing(openPlainWire, at(port));
    const heard = hearAll(wire);
    wire.send(Buffer.from("GET /silent HTTP/1.1\r\n\r\n"));
    expect(heard).toEqual({ text: "", end: "none" });
    wire.close();
    await waitFor(() => openSockets() <= before, "none to be left");
  });

  test("costs no timer and no listener of the signal where it answers at once", async () => {
    const { port } = await serve();
    const order = orderFor(`http://127.0.0.1:${port}/end`);
    const { signal } = new AbortController();
    let listeners = 0;
    signal.addEventListener = () => void (listeners += 1);
    await waitFor(async () => {
      listeners = 0;
      expect((await probe(order, { signal })).because).toBe("good");
      return listeners === 0;
    }, "an answer within the first moment");
  });

  test("that stands late, greets and is gone has been heard", async () => {
    const { server, port } = await serve("late");
    const opened = openPlainWire(at(port), {
      onOpen: (wire) => Object.assign(heard, { wire }),
      onFail: (code) => Object.assign(heard, { code }),
    });
    const heard: { wire?: Wire; code?: string } = {};
    expect(opened.kind).toBe("on-its-way");
    server.stdin.write("\n");
    server.stdin.flush();
    const wire = await waitFor(() => heard.wire, "the connection to stand");
    const told = hearAll(wire);
    await waitFor(() => told.end !== "none", "its end");
    expect([told, heard.code]).toEqual([{ text: "hello", end: "broken" }, undefined]);
    wire.close();
  });
});

test("a probe that was stopped before it began makes no connection", async () => {
  const server = await scene.serve((socket) => socket.end(ok()));
  const order = orderFor(`http://127.0.0.1:${server.port}/`);
  expect((await probe(order, { signal: AbortSignal.abort() })).because).toBe("stopped");
  expect((await probe(order)).because).toBe("good");
  expect(server.connections).toHaveLength(1);
});

test("the same settings for another path make another request", async () => {
  const server = await scene.serve((socket) => socket.end(ok()));
  const { http, ...first } = orderFor(`http://127.0.0.1:${server.port}/first`);
  const targets = [
    first.target,
    orderFor(`http://127.0.0.1:${server.port}/second`).target,
    orderFor(`http://u:p@127.0.0.1:${server.port}/second`).target,
    first.target,
  ];
  for (const target of targets) await probe({ ...first, http, target });
  const lines = server.received().match(/^GET .*|^Authorization: .*/gm);
  expect(lines?.map((line) => line.trim())).toEqual([
    "GET /first HTTP/1.1",
    "GET /second HTTP/1.1",
    "GET /second HTTP/1.1",
    "Authorization: Basic dTpw",
    "GET /first HTTP/1.1",
  ]);
});
