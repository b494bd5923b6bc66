/**
 * The answers of `watchdog notify`: what waits in the outbox, a notice that is a test, and what a
 * person does about those that cannot be delivered.
 *
 * Done in `run/` and `journal/`, told in words here. Always: stdout holds the answer and nothing
 * else; an answer is a success, whatever it says.
 */

import { EXIT } from "../core/errors.ts";
import type { Sent } from "../core/delivery.ts";
import { noticeOfTest } from "../core/make-notice.ts";
import { DEFAULT_NOTIFY_TIMEOUT_MS } from "../core/run-options.ts";
import type { RunRecord } from "../core/run-record.ts";
import type { SinkSpec } from "../core/sink.ts";
import type { StoreTrouble } from "../core/outbox.ts";
import { wallNow } from "../os/clock.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { readMachine } from "../os/machine.ts";
import type { Courier } from "../run/courier.ts";
import { flushNotices, insist, isTrouble, makeCourier } from "../run/flush-notices.ts";
import { type Answer, UNANSWERED } from "./answer.ts";
import type { NotifyCut } from "./cut.ts";
import {
  renderDropped,
  renderFlushed,
  renderNoticeList,
  renderTested,
  showNotice,
} from "./render-notify.ts";
import { renderJson } from "./render-words.ts";
import { webhookRow } from "./sink-options.ts";
import { isOptionVariable } from "./variables-table.ts";

export interface NotifyAround {
  readonly stateDirectory: string;
  readonly inherited: Inheritance;
  readonly build: RunRecord["watchdog"];
}

export async function answerNotify(cut: NotifyCut, around: NotifyAround): Promise<Answer> {
  const troubles: string[] = [];
  const { inherited, build, stateDirectory } = around;
  const courier = makeCourier({
    stateDirectory,
    sinks: cut.sinks,
    inherited,
    isOptionVariable,
    version: build.version,
    onTrouble: (line) => troubles.push(`journal: ${line}`),
  });
  try {
    const answer = await act(cut, around, courier);
    return { ...answer, lines: [...answer.lines, ...troubles] };
  } finally {
    courier.close();
  }
}

function act(cut: NotifyCut, around: NotifyAround, courier: Courier): Answer | Promise<Answer> {
  switch (cut.action) {
    case "list":
      return answerList(cut, around, courier);
    case "test":
      return answerTest(cut, courier);
    case "flush":
      return answerFlush(cut, courier);
    case "drop":
      return answerDrop(cut, courier);
  }
}

function answerList(cut: NotifyCut, { stateDirectory }: NotifyAround, courier: Courier): Answer {
  courier.readSpoolIn();
  const states = cut.isAll ? undefined : (["waiting", "dead"] as const);
  const found = insist(() => courier.outbox.list(states, cut.limit));
  if (isTrouble(found)) return unanswered(found);
  const notices = found.map(showNotice);
  const json = { format: 1, state_directory: stateDirectory, notices };
  const text = cut.isJson ? renderJson(json) : renderNoticeList(found, wallNow());
  return { text, lines: [], code: EXIT.ok };
}

const TEST_HINT = `watchdog notify test ${webhookRow.flag} ${webhookRow.example}`;

interface Tested {
  readonly sink: SinkSpec;
  readonly sent: Sent;
}

/** To each sink that is known here, past the outbox: a person waits for the answer. */
async function answerTest(cut: NotifyCut, courier: Courier): Promise<Answer> {
  const { sinks, isJson } = cut;
  if (sinks.length === 0) {
    const lines = ["no sink is known here", `hint: ${TEST_HINT}`];
    return { lines, code: 1 };
  }
  const { host, user } = readMachine();
  const origin = { host, runner: `${user}@${host}` };
  const tested: readonly Tested[] = await Promise.all(
    sinks.map(async (sink) => {
      const notice = noticeOfTest({ sinkId: sink.id, at: wallNow(), origin });
      const timeoutMs = cut.timeoutMs ?? DEFAULT_NOTIFY_TIMEOUT_MS;
      return { sink, sent: await courier.send(sink, notice, { timeoutMs }) };
    }),
  );
  const areAll = tested.every(({ sent }) => sent.kind === "delivered");
  const shown = tested.map(({ sink, sent }) => ({
    sink: sink.shown,
    is_delivered: sent.kind === "delivered",
    because: sent.kind === "delivered" ? null : sent.because,
    detail: sent.kind === "delivered" ? null : sent.detail,
  }));
  const json = { format: 1, is_delivered: areAll, sinks: shown };
  const text = isJson ? renderJson(json) : renderTested(tested);
  return { text, lines: [], code: areAll ? EXIT.ok : 1 };
}

/** A person waits, so each is tried; a receiver that hangs costs one limit and no more. */
const FLUSH_LIMIT_MS = 60_000;

async function answerFlush(cut: NotifyCut, courier: Courier): Promise<Answer> {
  const { isWithDead, limit: mostListed } = cut;
  const limitMs = cut.timeoutMs ?? FLUSH_LIMIT_MS;
  const asked = { limitMs, isForced: true, isWithDead, mostListed };
  const flushed = await flushNotices(courier, asked);
  if (flushed.kind !== "flushed") return unanswered(flushed);
  const { delivered, failed, left } = flushed;
  const json = { format: 1, delivered, failed, waiting: left.map(showNotice) };
  const text = cut.isJson ? renderJson(json) : renderFlushed(flushed);
  return { text, lines: [], code: EXIT.ok };
}

function answerDrop(cut: NotifyCut, { outbox }: Courier): Answer {
  const dropped = insist(() => outbox.drop(cut.isAllDead ? undefined : cut.ids));
  if (isTrouble(dropped)) return unanswered(dropped);
  const text = renderDropped(dropped, cut.isAllDead ? undefined : cut.ids.length);
  return { text, lines: [], code: EXIT.ok };
}

function unanswered({ reason }: StoreTrouble): Answer {
  return { lines: [reason], code: UNANSWERED };
}
