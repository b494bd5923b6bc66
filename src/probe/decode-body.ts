/**
 * The body of an answer as text. A content coding is undone up to the limit and not further: what
 * would become larger is told and dropped.
 */
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import type { ProbeVerdict } from "../core/probe-result.ts";
import type { Answer } from "./answer-reader.ts";

export type DecodedBody =
  { readonly kind: "text"; readonly text: string } | ({ readonly kind: "failed" } & ProbeVerdict);

type Decoder = (body: Uint8Array, options: { readonly maxOutputLength: number }) => Buffer;

/** Names of RFC 9110, section 8.4.1, and `br`. */
const DECODERS: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ["gzip", gunzipSync],
  ["x-gzip", gunzipSync],
  ["deflate", inflateSync],
  ["br", brotliDecompressSync],
]);

export function decodeBody(answer: Answer, maxBytes: number): DecodedBody {
  const coding = (answer.headers.get("content-encoding") ?? "identity").toLowerCase();
  if (coding === "identity" || coding === "") return textOf(answer.body);
  const decode = DECODERS.get(coding);
  if (decode === undefined) return fail("malformed", "a body with an unknown content coding");
  try {
    return textOf(decode(answer.body, { maxOutputLength: maxBytes }));
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE"
      ? fail("too-long", `a ${coding} body of more than ${maxBytes} bytes`)
      : fail("malformed", `a body that is not ${coding}`);
  }
}

function textOf(body: Uint8Array): DecodedBody {
  return { kind: "text", text: new TextDecoder().decode(body) };
}

function fail(because: "malformed" | "too-long", detail: string): DecodedBody {
  return { kind: "failed", because, detail };
}
