/**
 * What probes meet: servers on this machine that behave well or badly. Knows nothing of the
 * product, so that tests of the binary have them too.
 */
import { readFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";

const FIXTURES = new URL("../fixtures/", import.meta.url).pathname;
export const CA_FILE = `${FIXTURES}localhost-certificate.pem`;
const KEY_FILE = `${FIXTURES}localhost-key.pem`;
const FULL_QUEUE = `${FIXTURES}takes-no-connection.py`;

export const ok = (body = "ok"): string =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

export interface Served {
  readonly port: number;
  /** Of every connection, as it came. */
  readonly connections: Socket[];
  /** What was sent to it, all in all. */
  received(): string;
}

export type Behaviour = (socket: Socket, request: string) => void;

/** Answers every request like this; a function is called with the first bytes of each. */
export function answering(text: string): Behaviour {
  return (socket) => socket.write(text);
}

/** Where a server is, and what it says as soon as somebody comes. */
interface Place {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly greeting?: string;
}

export const silent: Behaviour = () => undefined;

/** Keeps what it opens until `close`. */
export class ProbeScene {
  readonly #servers: Server[] = [];
  readonly #sockets: Socket[] = [];
  readonly #processes: Bun.Subprocess[] = [];

  /** A server of 127.0.0.1, or of the address or path given. */
  async serve(behave: Behaviour, at: Place = {}): Promise<Served> {
    return this.#listen((onSocket) => createServer(onSocket), behave, at);
  }

  /** The same with TLS, for `localhost`, 127.0.0.1 and ::1. */
  async serveTls(behave: Behaviour, at: Place = {}): Promise<Served> {
    const options = { cert: readFileSync(CA_FILE), key: readFileSync(KEY_FILE) };
    return this.#listen((onSocket) => createTlsServer(options, onSocket), behave, at);
  }

  async #listen(
    create: (onSocket: (socket: Socket) => void) => Server,
    behave: Behaviour,
    at: Place,
  ): Promise<Served> {
    const connections: Socket[] = [];
    let received = "";
    const server = create((socket) => {
      connections.push(socket);
      this.#sockets.push(socket);
      socket.on("error", () => undefined);
      if (at.greeting !== undefined) socket.write(at.greeting);
      socket.on("data", (bytes: Buffer) => {
        received += bytes.toString("latin1");
        behave(socket, bytes.toString("latin1"));
      });
    });
    server.on("tlsClientError", () => undefined);
    this.#servers.push(server);
    const { host = "127.0.0.1", port: wanted = 0, path } = at;
    const where = path === undefined ? { host, port: wanted } : { path };
    await new Promise<void>((resolve, reject) => {
      server.on("error", reject);
      server.listen(where, resolve);
    });
    const bound = server.address();
    const port = typeof bound === "object" && bound !== null ? bound.port : 0;
    return { port, connections, received: () => received };
  }

  /** A port that drops the packets of those who want to connect. */
  async fullQueue(): Promise<number> {
    const listener = Bun.spawn(["python3", FULL_QUEUE], { stdin: "pipe", stdout: "pipe" });
    this.#processes.push(listener);
    const { value } = await listener.stdout.getReader().read();
    return Number(new TextDecoder().decode(value));
  }

  /** A port of 127.0.0.1 where nobody listens. */
  async deadPort(): Promise<number> {
    const { port } = await this.serve(silent);
    const server = this.#servers.pop();
    await new Promise((resolve) => server?.close(resolve));
    return port;
  }

  /** Of all servers together, from the start. */
  get connectionCount(): number {
    return this.#sockets.length;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    for (const server of this.#servers) server.close();
    for (const each of this.#processes) each.kill();
    await Promise.all(this.#processes.map((each) => each.exited));
  }
}
