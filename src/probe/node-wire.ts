/**
 * A connection by `node:net`, which TLS can be put on. Costs three times the CPU of plain-wire.ts
 * (measured, Bun 1.4.5: 0.83 ms an exchange, 0.27 there).
 */
import { connect, type Socket } from "node:net";
import type { Opened, OpeningListener, Wire, WireEnd, WireListener } from "./wire.ts";

export class NodeWire implements Wire {
  readonly socket: Socket;
  #listener: WireListener | undefined;
  readonly #onData = (bytes: Buffer): void => this.#listener?.onBytes(bytes);
  readonly #onEnd = (): void => this.#listener?.onEnd();

  /** @param socket  that stands */
  constructor(socket: Socket) {
    this.socket = socket;
    // Stays: an error that nobody listens to would end the thread.
    socket.on("error", () => this.#listener?.onBreak());
  }

  hear(listener: WireListener | undefined): void {
    const { socket } = this;
    socket.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onEnd);
    this.#listener = listener;
    if (listener === undefined) return;
    socket.on("data", this.#onData).on("end", this.#onEnd).on("close", this.#onEnd);
  }

  send(bytes: Uint8Array): void {
    this.socket.write(bytes);
  }

  close(): void {
    this.hear(undefined);
    this.socket.destroy();
  }
}

export function openNodeWire(
  end: WireEnd,
  { onOpen, onFail }: OpeningListener<NodeWire>,
): Opened<NodeWire> {
  const { path } = end;
  const socket =
    path === undefined
      ? connect({ host: end.host, port: end.port, autoSelectFamily: false })
      : connect({ path });
  let isOver = false;
  const settle = (tell: () => void): void => {
    if (!isOver) tell();
    isOver = true;
  };
  socket.on("error", (error: NodeJS.ErrnoException) =>
    settle(() => onFail(error.code ?? error.message)),
  );
  socket.once("connect", () => {
    if (!isWithItself(socket)) return settle(() => onOpen(new NodeWire(socket)));
    settle(() => onFail("ECONNREFUSED"));
    socket.resetAndDestroy();
  });
  return { kind: "on-its-way", close: () => settle(() => socket.destroy()) };
}

/** As sockets.ts has it: nobody listens there. */
function isWithItself({ localAddress, localPort, remoteAddress, remotePort }: Socket): boolean {
  return remotePort !== undefined && localPort === remotePort && localAddress === remoteAddress;
}
