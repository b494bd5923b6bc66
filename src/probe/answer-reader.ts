/**
 * Reads one HTTP/1.1 answer from the bytes as they come (RFC 9112). Knows nothing of connections
 * and of what is expected of the answer. Pure: no clock, no I/O.
 *
 * Always: never keeps more than LARGEST_HEAD_BYTES of heads, `maxBytes` of a body and one piece;
 * whatever comes is an answer, too long, or malformed, and which of them does not depend on the
 * pieces in which it comes. What has a content coding is left as it is: a hundred kilobytes cannot
 * become a gigabyte. Interim answers (1xx) are passed over.
 *
 * An answer that comes in one piece is read without a copy: a probe a second is all that a run does
 * while it waits, and its code is never warm.
 */
import { ChunkedBody } from "./chunked-body.ts";
import { KeptBytes } from "./kept-bytes.ts";

/** Of all heads of one answer, interim ones too. */
export const LARGEST_HEAD_BYTES = 64 * 1024;
/** Beside the body, of what stands between its chunks; more of it belongs to a body as long. */
const USUAL_FRAMING_BYTES = 64 * 1024;

export interface AnswerHead {
  readonly status: number;
  /** Lower-case names; fields of one name joined by a comma (RFC 9110, section 5.3). */
  readonly headers: ReadonlyMap<string, string>;
}

export interface Answer extends AnswerHead {
  readonly body: Uint8Array;
}

export type ReaderState =
  | { readonly kind: "in-head" | "in-body" | "ended" }
  | { readonly kind: "too-long" | "malformed"; readonly found: string };

type Framing =
  | { readonly kind: "none" | "until-end" }
  | { readonly kind: "length"; readonly bytes: number }
  | { readonly kind: "chunked"; readonly chunks: ChunkedBody }
  | { readonly kind: "malformed"; readonly found: string };

export class AnswerReader {
  readonly #isHead: boolean;
  /** Of the body. */
  readonly #maxBytes: number;
  /** Of everything: heads, bodies, what frames them. */
  #received = 0;
  /** Of heads that have ended. */
  #headBytes = 0;
  /** What came of a head without an end, a letter a byte. */
  #headText = "";
  #head: AnswerHead | undefined;
  #framing: Framing = { kind: "none" };
  readonly #body = new KeptBytes();
  #state: ReaderState = { kind: "in-head" };

  constructor(request: { readonly isHead: boolean; readonly maxBytes: number }) {
    this.#isHead = request.isHead;
    this.#maxBytes = request.maxBytes;
  }

  /** As soon as it is complete. */
  get head(): AnswerHead | undefined {
    return this.#head;
  }

  get received(): number {
    return this.#received;
  }

  /** Only meaningful once the state is `ended`. */
  get answer(): Answer {
    const { data } = this.#framing.kind === "chunked" ? this.#framing.chunks : { data: this.#body };
    const { status, headers } = this.#head ?? { status: 0, headers: new Map<string, string>() };
    return { status, headers, body: data.whole };
  }

  push(bytes: Uint8Array): ReaderState {
    if (this.#state.kind !== "in-head" && this.#state.kind !== "in-body") return this.#state;
    this.#received += bytes.length;
    this.#state = this.#state.kind === "in-head" ? this.#takeHead(bytes) : this.#takeBody(bytes);
    return this.#state;
  }

  /** The other side has closed the connection. @returns what that makes of the answer */
  end(): ReaderState {
    if (this.#state.kind === "in-body" && this.#framing.kind === "until-end") {
      this.#state = { kind: "ended" };
    }
    return this.#state;
  }

  #takeHead(bytes: Uint8Array): ReaderState {
    let text = this.#headText + toLatin1(bytes);
    for (;;) {
      if (!looksLikeHttp(text)) {
        return { kind: "malformed", found: "an answer that is not HTTP/1" };
      }
      const end = endOfHead(text);
      if (this.#headBytes + (end ?? text.length) > LARGEST_HEAD_BYTES) {
        return { kind: "too-long", found: `a head of more than ${LARGEST_HEAD_BYTES} bytes` };
      }
      if (end === undefined) break;
      this.#headBytes += end;
      const head = parseHead(text.slice(0, end));
      if (typeof head === "string") return { kind: "malformed", found: head };
      text = text.slice(end);
      // Of a head that ends now, what is behind it came with this piece.
      if (head.status >= 200 || head.status === 101) {
        return this.#beginBody(head, bytes.subarray(bytes.length - text.length));
      }
    }
    this.#headText = text;
    return { kind: "in-head" };
  }

  #beginBody(head: AnswerHead, rest: Uint8Array): ReaderState {
    this.#head = head;
    this.#headText = "";
    this.#framing = frameBody(head, this.#isHead);
    const { kind } = this.#framing;
    if (kind === "malformed") return { kind, found: this.#framing.found };
    if (kind === "none" || (kind === "length" && this.#framing.bytes === 0)) {
      return { kind: "ended" };
    }
    if (kind === "length" && this.#framing.bytes > this.#maxBytes) return this.#tooLong();
    return rest.length === 0 ? { kind: "in-body" } : this.#takeBody(rest);
  }

  #takeBody(bytes: Uint8Array): ReaderState {
    if (this.#framing.kind === "chunked") return this.#takeChunks(bytes, this.#framing.chunks);
    const wanted = this.#framing.kind === "length" ? this.#framing.bytes : Infinity;
    this.#body.add(bytes.subarray(0, Math.min(bytes.length, wanted - this.#body.length)));
    if (this.#body.length > this.#maxBytes) return this.#tooLong();
    return { kind: this.#body.length === wanted ? "ended" : "in-body" };
  }

  #takeChunks(bytes: Uint8Array, chunks: ChunkedBody): ReaderState {
    const state = chunks.push(bytes);
    const received = this.#received - this.#headBytes;
    const mostFramed = 2 * this.#maxBytes + USUAL_FRAMING_BYTES;
    if (chunks.data.length > this.#maxBytes) return this.#tooLong();
    if (state === "malformed") return { kind: state, found: "a broken chunk" };
    if (state === "ended") return { kind: state };
    if (received <= mostFramed) return { kind: "in-body" };
    return { kind: "too-long", found: `a body in chunks of more than ${mostFramed} bytes` };
  }

  #tooLong(): ReaderState {
    return { kind: "too-long", found: `a body of more than ${this.#maxBytes} bytes` };
  }
}

function toLatin1(bytes: Uint8Array): string {
  const { buffer, byteOffset, length } = bytes;
  const given = bytes instanceof Buffer ? bytes : Buffer.from(buffer, byteOffset, length);
  return given.toString("latin1");
}

/** Each line may end in a lone LF (RFC 9112, section 2.2). @returns the offset behind it */
function endOfHead(text: string): number | undefined {
  const found = /\n\r?\n/.exec(text);
  return found === null ? undefined : found.index + found[0].length;
}

const HTTP = "HTTP/1.";

function looksLikeHttp(text: string): boolean {
  return text.length < HTTP.length ? HTTP.startsWith(text) : text.startsWith(HTTP);
}

/** A value that goes on in the next line, which is to be read as one (RFC 9112, section 5.2). */
const FOLD = /\r?\n[ \t]+/g;
const STATUS_LINE = /^HTTP\/1\.\d ([1-9]\d{2})(?: |$)/;
const HEADER_LINE = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*?)[ \t]*\r?$/;

/** @returns a clause about what is wrong instead */
function parseHead(text: string): AnswerHead | string {
  const lines = text.replace(FOLD, " ").split("\n");
  const status = STATUS_LINE.exec(lines[0]?.replace("\r", "") ?? "")?.[1];
  if (status === undefined) return "an answer that is not HTTP/1";
  const headers = new Map<string, string>();
  for (let index = 1; index < lines.length; index += 1) {
    const line = lines[index];
    if (line === undefined || line === "" || line === "\r") continue;
    const found = HEADER_LINE.exec(line);
    if (found === null) return "a broken header line";
    const name = found[1]?.toLowerCase() ?? "";
    const value = found[2] ?? "";
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return { status: Number(status), headers };
}

const DIGITS = /^\d{1,15}$/;

/** RFC 9112, section 6.3. */
function frameBody({ status, headers }: AnswerHead, isHead: boolean): Framing {
  if (isHead || status === 204 || status === 304 || status === 101) return { kind: "none" };
  const coding = headers.get("transfer-encoding");
  if (coding !== undefined) {
    if (/^chunked$/i.test(coding)) return { kind: "chunked", chunks: new ChunkedBody() };
    return { kind: "malformed", found: "an unknown transfer coding" };
  }
  const length = headers.get("content-length");
  if (length === undefined) return { kind: "until-end" };
  if (DIGITS.test(length)) return { kind: "length", bytes: Number(length) };
  const values = new Set(length.split(",").map((value) => value.trim()));
  const [value = ""] = values;
  if (values.size !== 1 || !DIGITS.test(value)) {
    return { kind: "malformed", found: "a broken Content-Length" };
  }
  return { kind: "length", bytes: Number(value) };
}
