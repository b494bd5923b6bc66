/**
 * A connection, as far as a probe needs one, whoever makes it. Types alone.
 *
 * Always: whoever hears a wire is told of all that has come since it stands, in order; after
 * `close` nobody is told anything.
 */

export interface WireListener {
  onBytes(bytes: Uint8Array): void;
  /** The other side sends nothing more. May be told more than once. */
  onEnd(): void;
  /** It broke, by an error of the connection. */
  onBreak(): void;
}

export interface Wire {
  /** Instead of whoever has heard it so far. @param listener  undefined: nobody */
  hear(listener: WireListener | undefined): void;
  /** What the other side does not take at once goes when it does. Once a wire. */
  send(bytes: Uint8Array): void;
  /** At once, in both directions; what was not sent is not sent any more. Safe to repeat. */
  close(): void;
}

/** Where to: a port of an address, or a socket in the file system. */
export type WireEnd =
  | { readonly host: string; readonly port: number; readonly path?: undefined }
  | { readonly path: string };

/** Told one of the two, once, and never before `open` has returned. */
export interface OpeningListener<Kind extends Wire> {
  onOpen(wire: Kind): void;
  /** As errno(3) names it, or a sentence. */
  onFail(code: string): void;
}

export type Opened<Kind extends Wire> =
  | { readonly kind: "standing"; readonly wire: Kind }
  | { readonly kind: "failed"; readonly code: string }
  /** The listener is told; closed, nobody is told anything. */
  | ({ readonly kind: "on-its-way" } & Pick<Wire, "close">);

/** Begins to connect. */
export type OpenWire<Kind extends Wire> = (
  end: WireEnd,
  listener: OpeningListener<Kind>,
) => Opened<Kind>;
