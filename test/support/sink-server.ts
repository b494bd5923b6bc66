/**
 * A server on loopback that a sink points to: it keeps every request as it came and answers as it
 * is told, one line of a script for each request, the last for all that follow.
 */
import { createServer, type Socket } from "node:net";

export interface Received {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type Answer =
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  | "hang"
  | "reset"
  | "endless"
  /** A head, and a body that does not come to its end: nothing more, or the connection breaks. */
  | { readonly unfinished: "hangs" | "breaks"; readonly status: number };

export interface SinkServer {
  readonly port: number;
  readonly url: string;
  readonly received: Received[];
  readonly connections: () => number;
  /** Those that nobody has closed yet. */
  readonly open: () => number;
  answer(...script: readonly Answer[]): void;
  close(): Promise<void>;
}

export function openSinkServer(): Promise<SinkServer> {
  const received: Received[] = [];
  const sockets = new Set<Socket>();
  let script: Answer[] = [{ status: 200, body: "OK" }];
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("error", () => undefined); // ECONNRESET: the sender has gone
    socket.on("close", () => sockets.delete(socket));
    let bytes = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      if (bytes[0] === TLS_HANDSHAKE) return void socket.end("HTTP/1.1 400 X\r\n\r\n");
      const request = parse(bytes);
      if (request === undefined) return;
      bytes = Buffer.alloc(0);
      received.push(request);
      const [answer = { status: 200 }] = script.length > 1 ? [script.shift()] : script;
      reply(socket, answer as Answer);
    });
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      resolve({
        port,
        url: `http://127.0.0.1:${port}`,
        received,
        connections: () => connections,
        open: () => sockets.size,
        answer: (...lines) => {
          script = [...lines];
        },
        close: () =>
          new Promise((done) => {
            server.close(() => done());
            for (const socket of sockets) socket.destroy();
          }),
      });
    });
  });
}

/** The first byte of a ClientHello (RFC 8446, 5.1). */
const TLS_HANDSHAKE = 0x16;

/** Undefined: not all of it is there. */
function parse(bytes: Buffer): Received | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [first = "", ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const length = Number(headers["content-length"] ?? 0);
  const body = bytes.subarray(end + 4);
  if (body.length < length) return undefined;
  const [method = "", target = ""] = first.split(" ");
  return { method, target, headers, body: body.toString("utf8") };
}

function reply(socket: Socket, answer: Answer): void {
  if (answer === "hang") return;
  if (answer === "reset") {
    socket.resetAndDestroy();
    return;
  }
  if (answer === "endless") {
    socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n");
    const chunk = Buffer.alloc(65_536, "x");
    const write = (): void => {
      while (!socket.destroyed && socket.write(chunk)) continue;
    };
    socket.on("drain", write);
    write();
    return;
  }
  if ("unfinished" in answer) {
    socket.write(`HTTP/1.1 ${answer.status} X\r\nContent-Length: 5000\r\n\r\nsome`);
    if (answer.unfinished === "breaks") socket.end();
    return;
  }
  const body = answer.body ?? "";
  const headers = Object.entries(answer.headers ?? {}).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const length = Buffer.byteLength(body);
  socket.end(
    `HTTP/1.1 ${answer.status} X\r\n${headers.join("")}Content-Length: ${length}\r\n\r\n${body}`,
  );
}
