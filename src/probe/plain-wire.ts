/**
 * A connection without TLS, for a third of the CPU that `node:net` takes for one.
 *
 * A server on this machine has often answered before the loop would have been asked again. So the
 * system calls are made at once, and one that stands at once is waited for here, AT_ONCE_MS at
 * most, in which the thread stands still. Everything else goes to `Bun.connect` by its descriptor,
 * and the loop waits.
 *
 * By the descriptor, because a connection that Bun.connect begins itself cannot be given up before
 * it stands or has failed: there is nothing to close it by (Bun 1.4.5). Measured there, of a
 * descriptor that is on its way: `open` comes at once and means nothing; when it stands it becomes
 * writable (`drain`) or has bytes; when it fails it is closed with the code of the error; `close`
 * ends it in every state, without the reset that `terminate` sends; what is not sent at once is not
 * kept (`write`).
 *
 * Always: nothing is left open, whatever happens on the way. Without FFI it is `node:net`.
 */
import { monotonicNow } from "../os/clock.ts";
import { findFfiTrouble } from "../os/libc.ts";
import {
  addressOf,
  addressOfPath,
  beginConnection,
  closeSocket,
  receiveWithin,
  sendNow,
  type SocketAddress,
} from "../os/sockets.ts";
import { openNodeWire } from "./node-wire.ts";
import type { Opened, OpeningListener, Wire, WireEnd, WireListener } from "./wire.ts";

export const AT_ONCE_MS = 2;

/** One for all connections: each is known by what it bears. */
const HANDLERS = {
  open: (socket: Bun.Socket<PlainWire>): void => socket.data.takeSocket(socket),
  drain: (socket: Bun.Socket<PlainWire>): void => socket.data.takeRoom(),
  data: (socket: Bun.Socket<PlainWire>, bytes: Buffer): void => socket.data.takeBytes(bytes),
  end: (socket: Bun.Socket<PlainWire>): void => socket.data.takeEnd(),
  close: (socket: Bun.Socket<PlainWire>, error?: NodeJS.ErrnoException): void =>
    socket.data.takeClose(error),
};

/** What its types leave out; the rest of them is there. */
const adopt = Bun.connect as unknown as (options: {
  readonly fd: number;
  readonly data: PlainWire;
  readonly socket: typeof HANDLERS;
}) => Promise<unknown>;

class PlainWire implements Wire {
  #opening: OpeningListener<Wire> | undefined;
  /** As long as it is ours, and not the loop's. */
  #fd: number | undefined;
  #socket: Bun.Socket<PlainWire> | undefined;
  #state: "on-its-way" | "standing" | "closed" = "on-its-way";
  #listener: WireListener | undefined;
  /** Of what came while nobody heard it. */
  #unheard: ((listener: WireListener) => void)[] = [];
  #unsent: Uint8Array | undefined;

  private constructor(opening: OpeningListener<Wire> | undefined) {
    this.#opening = opening;
  }

  static standing(fd: number): PlainWire {
    const wire = new PlainWire(undefined);
    wire.#fd = fd;
    wire.#state = "standing";
    return wire;
  }

  static onItsWay(fd: number, opening: OpeningListener<Wire>): PlainWire {
    const wire = new PlainWire(opening);
    wire.#handOver(fd);
    return wire;
  }

  hear(listener: WireListener | undefined): void {
    this.#listener = listener;
    const unheard = listener === undefined ? [] : this.#unheard.splice(0);
    for (const tell of unheard) if (this.#listener !== undefined) tell(this.#listener);
  }

  send(bytes: Uint8Array): void {
    this.#unsent = bytes;
    if (this.#fd === undefined) this.#pour();
    else this.#converseAtOnce(this.#fd, bytes);
  }

  close(): void {
    this.#state = "closed";
    this.#opening = undefined;
    this.#listener = undefined;
    this.#unheard = [];
    this.#unsent = undefined;
    this.#socket?.close();
    this.#socket = undefined;
    if (this.#fd !== undefined) closeSocket(this.#fd);
    this.#fd = undefined;
  }

  takeSocket(socket: Bun.Socket<PlainWire>): void {
    this.#socket = socket;
    if (this.#state === "closed") socket.close();
  }

  takeRoom(): void {
    this.#stand();
    this.#pour();
  }

  takeBytes(bytes: Uint8Array): void {
    this.#stand();
    this.#tell((listener) => listener.onBytes(bytes));
  }

  takeEnd(): void {
    this.#stand();
    this.#tell((listener) => listener.onEnd());
  }

  takeClose(error: NodeJS.ErrnoException | undefined): void {
    this.#socket = undefined;
    if (this.#state === "on-its-way") return this.#fail(error?.code ?? "closed at once");
    this.#tell((listener) => (error === undefined ? listener.onEnd() : listener.onBreak()));
  }

  /** The loop waits for it. */
  #handOver(fd: number): void {
    this.#fd = undefined;
    // Refused only where epoll_ctl(2) is (ENOMEM, ENOSPC); then the descriptor is ours still.
    adopt({ fd, data: this, socket: HANDLERS }).catch(() => {
      closeSocket(fd);
      this.takeClose({ name: "Error", message: "", code: "ENOMEM" });
    });
  }

  /** It never stood. */
  #fail(code: string): void {
    const opening = this.#opening;
    this.close();
    opening?.onFail(code);
  }

  #stand(): void {
    if (this.#state !== "on-its-way") return;
    this.#state = "standing";
    const opening = this.#opening;
    this.#opening = undefined;
    opening?.onOpen(this);
  }

  #tell(tell: (listener: WireListener) => void): void {
    if (this.#state === "closed") return;
    if (this.#listener === undefined) this.#unheard.push(tell);
    else tell(this.#listener);
  }

  #pour(): void {
    if (this.#unsent === undefined || this.#socket === undefined) return;
    // -1: it is closed, of which we are told.
    this.#keepUnsent(this.#unsent, Math.max(0, this.#socket.write(this.#unsent)));
  }

  #keepUnsent(bytes: Uint8Array, sent: number): void {
    this.#unsent = sent < bytes.length ? bytes.subarray(sent) : undefined;
  }

  #converseAtOnce(fd: number, bytes: Uint8Array): void {
    this.#keepUnsent(bytes, sendNow(fd, bytes));
    const untilAt = monotonicNow() + AT_ONCE_MS;
    for (let waitMs = AT_ONCE_MS; waitMs > 0 && this.#unsent === undefined;) {
      const received = receiveWithin(fd, waitMs);
      if (received.kind === "bytes") this.takeBytes(received.bytes);
      if (received.kind === "ended") this.takeEnd();
      if (received.kind === "broken") this.#tell((listener) => listener.onBreak());
      if (received.kind === "ended" || received.kind === "broken") return this.close();
      if (this.#fd === undefined) return;
      waitMs = Math.ceil(untilAt - monotonicNow());
    }
    this.#handOver(fd);
  }
}

export function openPlainWire(end: WireEnd, listener: OpeningListener<Wire>): Opened<Wire> {
  const address = encode(end);
  if (address === undefined || findFfiTrouble() !== undefined) return openNodeWire(end, listener);
  const begun = beginConnection(address);
  if (begun.kind === "failed") return begun;
  const { fd } = begun;
  if (begun.isStanding) return { kind: "standing", wire: PlainWire.standing(fd) };
  const wire = PlainWire.onItsWay(fd, listener);
  return { kind: "on-its-way", close: () => wire.close() };
}

function encode(end: WireEnd): SocketAddress | undefined {
  return end.path === undefined ? addressOf(end.host, end.port) : addressOfPath(end.path);
}
