/**
 * A receiver of notices on loopback, which keeps what it was sent and answers as it is told to. A
 * new one can stand where one was taken away, so that a server that is down comes back.
 */
import { afterAll } from "bun:test";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import type { ServerResponse } from "node:http";

export interface Received {
  readonly path: string;
  readonly key: string;
  /** Of the JSON shape. */
  readonly event: string;
  readonly runId: string;
  readonly outcome: string | null;
  readonly body: Readonly<Record<string, unknown>>;
  readonly at: number;
}

/** A status; or it never answers, or breaks the connection off after it has read all. */
export type Behaviour =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  | "hang"
  | "reset";

export class NoticeServer {
  readonly received: Received[] = [];
  behaviour: Behaviour = { status: 200 };
  /** Called for each notice that was read, before it is answered. */
  onReceived: (received: Received) => void = () => undefined;
  /** Before it answers. */
  delayMs = 0;
  /** By job: how many notices were not answered yet, at most. */
  readonly mostAtOnce = new Map<string, number>();
  readonly #open = new Map<string, number>();
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  port = 0;

  private constructor() {
    this.#server = createHttpServer((request, response) => {
      void this.#answer(request, response);
    });
    this.#server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const received = parse(request, await readBody(request));
    this.received.push(received);
    this.onReceived(received);
    const job = String(received.body["job"]);
    this.#count(job, 1);
    await Bun.sleep(this.delayMs);
    this.#count(job, -1);
    const { behaviour } = this;
    if (behaviour === "hang") return;
    if (behaviour === "reset") return void request.socket.destroy();
    response.writeHead(behaviour.status, { ...behaviour.headers });
    response.end();
  }

  #count(job: string, more: number): void {
    const now = (this.#open.get(job) ?? 0) + more;
    this.#open.set(job, now);
    this.mostAtOnce.set(job, Math.max(this.mostAtOnce.get(job) ?? 0, now));
  }

  static async open(port = 0): Promise<NoticeServer> {
    const server = new NoticeServer();
    await new Promise<void>((resolve) => server.#server.listen(port, "127.0.0.1", resolve));
    server.port = (server.#server.address() as AddressInfo).port;
    return server;
  }

  url(path = "/hook"): string {
    return `http://127.0.0.1:${this.port}${path}`;
  }

  /** The different keys under which the end of this run was told. */
  keysOf(runId: string): string[] {
    return [...new Set(this.received.filter((one) => one.runId === runId).map(({ key }) => key))];
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(Buffer.from(part as Uint8Array));
  return Buffer.concat(parts).toString("utf8");
}

function parse(request: IncomingMessage, text: string): Received {
  const body: Record<string, unknown> = text.startsWith("{") ? JSON.parse(text) : {};
  return {
    path: request.url ?? "",
    key: String(request.headers["idempotency-key"] ?? ""),
    event: String(body["event"] ?? ""),
    runId: String(body["run_id"] ?? ""),
    outcome: typeof body["outcome"] === "string" ? body["outcome"] : null,
    body,
    at: performance.now(),
  };
}

/** Called once, at the top of a file: what opens receivers, closed when the file has ended. */
export function openReceivers(): (port?: number) => Promise<NoticeServer> {
  const servers: NoticeServer[] = [];
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.close()));
  });
  return async (port) => {
    const server = await NoticeServer.open(port);
    servers.push(server);
    return server;
  };
}

/** A port of loopback where nobody listens just now. */
export async function findFreePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
