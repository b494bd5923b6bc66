/** The chunked transfer coding, read as it comes (RFC 9112, section 7.1). Pure. */
import { KeptBytes } from "./kept-bytes.ts";

/** Of a line with a chunk's size, and of all trailers together. */
const LONGEST_LINE_BYTES = 4 * 1024;
const LONGEST_TRAILERS_BYTES = 64 * 1024;
const LF = 0x0a;

export type ChunkedState = "more" | "ended" | "malformed";

export class ChunkedBody {
  readonly data = new KeptBytes();
  #line: number[] = [];
  #expects: "size" | "data" | "data-end" | "trailers" = "size";
  #left = 0;
  #trailerBytes = 0;

  push(bytes: Uint8Array): ChunkedState {
    let at = 0;
    while (at < bytes.length) {
      if (this.#expects === "data") {
        at += this.#takeData(bytes.subarray(at));
        continue;
      }
      const state = this.#takeByte(bytes[at] ?? 0);
      if (state !== "more") return state;
      at += 1;
    }
    return "more";
  }

  #takeData(bytes: Uint8Array): number {
    const part = bytes.subarray(0, this.#left);
    this.data.add(part);
    this.#left -= part.length;
    if (this.#left === 0) this.#expects = "data-end";
    return part.length;
  }

  #takeByte(byte: number): ChunkedState {
    if (byte !== LF) {
      this.#line.push(byte);
      return this.#line.length > LONGEST_LINE_BYTES ? "malformed" : "more";
    }
    const line = String.fromCharCode(...this.#line).replace(/\r$/, "");
    this.#line = [];
    return this.#takeLine(line);
  }

  #takeLine(line: string): ChunkedState {
    if (this.#expects === "trailers") {
      this.#trailerBytes += line.length;
      if (line === "") return "ended";
      return this.#trailerBytes > LONGEST_TRAILERS_BYTES ? "malformed" : "more";
    }
    if (this.#expects === "data-end") {
      this.#expects = "size";
      return line === "" ? "more" : "malformed";
    }
    // At most 12 digits: a number that is exact.
    const size = /^([0-9a-f]{1,12})[ \t]*(;.*)?$/i.exec(line)?.[1];
    if (size === undefined) return "malformed";
    this.#left = Number.parseInt(size, 16);
    this.#expects = this.#left === 0 ? "trailers" : "data";
    return "more";
  }
}
