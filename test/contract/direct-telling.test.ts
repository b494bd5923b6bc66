/** What is told past an outbox that takes nothing: to whom, under which key, and what is lost. */
import { expect, test } from "bun:test";
import type { Sent } from "../../src/core/delivery.ts";
import { makeKeyedId } from "../../src/core/make-notice.ts";
import type { Notice } from "../../src/core/notice.ts";
import type { SinkSpec } from "../../src/core/sink.ts";
import type { Courier } from "../../src/run/courier.ts";
import { tellWithoutOutbox } from "../../src/run/direct-telling.ts";
import { endedRecord, runId } from "../support/journal-scene.ts";
import { partFor, sinkTo } from "../support/notice-parts.ts";

const SINKS = [sinkTo("a"), sinkTo("b"), sinkTo("good", ["success"])];
const DOWN: Sent = { kind: "failed", because: "not-connected", detail: "ECONNREFUSED" };

async function tell(changes: Parameters<typeof endedRecord>[1], answer: Sent) {
  const sent: { sink: SinkSpec; notice: Notice }[] = [];
  const courier = {
    send: (sink: SinkSpec, notice: Notice) => {
      sent.push({ sink, notice });
      return Promise.resolve(answer);
    },
  } as unknown as Courier;
  const lost = await tellWithoutOutbox(courier, SINKS, {
    run: endedRecord(7, changes),
    part: partFor(SINKS, { logTail: "last words" }),
    limitMs: 1_000,
    stopping: new AbortController().signal,
  });
  return { sent, lost };
}

test("whoever hears of it is told once, under the key that the outbox would give", async () => {
  const { sent, lost } = await tell({}, { kind: "delivered" });
  expect(lost).toBeUndefined();
  expect(sent.map(({ sink }) => sink.id)).toEqual(SINKS.slice(0, 2).map(({ id }) => id));
  const entryId = `end:${runId(7)}`;
  for (const { sink, notice } of sent) {
    expect(notice.id).toBe(makeKeyedId({ entryId, sinkId: sink.id, at: 0 }));
    expect(notice).toMatchObject({ event: "failure", log_tail: "last words" });
  }
});

test("what nobody took is counted, and the first of it named", async () => {
  const { lost } = await tell({}, DOWN);
  expect(lost).toMatchObject({ count: 2, because: "not-connected: ECONNREFUSED" });
});

test("a good end is told to those alone who ask for it", async () => {
  const { sent } = await tell({ outcome: "ok", exit_status: 0 }, { kind: "delivered" });
  expect(sent.map(({ notice }) => notice.event)).toEqual(["success"]);
});
