/**
 * One request and its answer over a connection that stands. Knows nothing of addresses and TLS.
 *
 * Always: ends within the limit and with the bytes that it allows, however the other side behaves;
 * the connection is closed when it ends. The body is read to its end where the head is a good one:
 * a server that stalls in the middle of an answer is not well. State after a crash: none.
 */
import type { ProbeVerdict } from "../core/probe-result.ts";
import { AnswerReader, type Answer, type AnswerHead, type ReaderState } from "./answer-reader.ts";
import type { LimitEnd, TimeLimit } from "./time-limit.ts";
import type { Wire } from "./wire.ts";

export type Conversation =
  | { readonly kind: "answered"; readonly answer: Answer }
  | ({ readonly kind: "failed" } & ProbeVerdict);

export interface Exchange {
  readonly request: Buffer;
  readonly isHead: boolean;
  /** Of the body. */
  readonly maxBytes: number;
  /** @returns a verdict that makes the body superfluous */
  onHead(head: AnswerHead): ProbeVerdict | undefined;
}

export function converse(wire: Wire, exchange: Exchange, limit: TimeLimit): Promise<Conversation> {
  return new Promise((resolve) => {
    const reader = new AnswerReader(exchange);
    let hasHead = false;
    let isSettled = false;
    let forget = (): void => undefined;
    const settle = (conversation: Conversation): void => {
      isSettled = true;
      forget();
      wire.close();
      resolve(conversation);
    };
    const fail = (verdict: ProbeVerdict): void => settle({ kind: "failed", ...verdict });
    const consider = (state: ReaderState): void => {
      if (!hasHead && reader.head !== undefined) {
        hasHead = true;
        const verdict = exchange.onHead(reader.head);
        if (verdict !== undefined) return fail(verdict);
      }
      if (state.kind === "ended") settle({ kind: "answered", answer: reader.answer });
      if (state.kind === "malformed") fail({ because: "malformed", detail: state.found });
      if (state.kind === "too-long") fail({ because: "too-long", detail: state.found });
    };
    const failClosed = (): void => fail({ because: "reset", detail: sayClosed(reader.received) });
    wire.hear({
      onBytes: (bytes) => consider(reader.push(bytes)),
      onEnd: () => {
        consider(reader.end());
        failClosed();
      },
      onBreak: failClosed,
    });
    wire.send(exchange.request);
    // A server near by has answered by now: nothing has to be set up to wait for it.
    if (!isSettled) forget = limit.onEnd((end) => fail(sayLimit(end, limit, reader)));
  });
}

function sayClosed(received: number): string {
  return received === 0
    ? "the connection was closed without an answer"
    : `the connection was closed after ${received} bytes of an answer that had not ended`;
}

function sayLimit(end: LimitEnd, limit: TimeLimit, reader: AnswerReader): ProbeVerdict {
  if (end === "stopped") return { because: "stopped", detail: "stopped before the answer" };
  if (reader.received === 0) {
    return { because: "no-answer", detail: `no answer within ${limit.shown}` };
  }
  const part = reader.head === undefined ? "its head" : "its body";
  const detail = `${reader.received} bytes of an answer within ${limit.shown}, ${part} had no end`;
  return { because: reader.head === undefined ? "no-answer" : "too-slow", detail };
}
