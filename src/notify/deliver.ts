/**
 * Delivers what is due in the outbox, through a `send` that is handed in: claims a notice, sends
 * it, settles it, until nothing is due or the time is over. Knows no kind of sink and no table.
 *
 * Guarantees: nothing is thrown; it ends with its limit; each sink hears of each job in the order
 * in which it happened, because only the first that waits of the two is ever tried; two who deliver
 * at once do not send the same notice, as long as the clock of neither is wrong. A sink is given
 * about MOST_A_MINUTE notices a minute; what waits beyond becomes one (core/join-notices.ts).
 * Non-guarantees: exactly once (core/outbox.ts).
 *
 * Clock: MONOTONIC for its limit, the wall clock for what stands in the outbox. After a crash: the
 * next one who delivers sees that the claimant is dead, and sends again under the same key.
 */
import {
  type Claimant,
  decideSettlement,
  isClaimed,
  LONGEST_CLAIM_MS,
  type OutboxRow,
  type OutboxStore,
  renderClaim,
  type Settlement,
  type StoreTrouble,
} from "../core/outbox.ts";
import type { Sent, SentReason } from "../core/delivery.ts";
import type { ResolvedSink, SinkSpec } from "../core/sink.ts";
import type { Notice } from "../core/notice.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { throwDice } from "../os/dice.ts";
import { faultPoint } from "../os/faults.ts";
import { wakeAfter, wakeWhenOver } from "../os/timers.ts";

export interface SendLimits {
  readonly timeoutMs: number;
  /** The time is over, or a person does not want to wait any more. */
  readonly signal?: AbortSignal;
}

/** It is ours, and cannot be read: a failed attempt, so that a person hears why. */
export interface NoTarget {
  readonly because: SentReason;
  readonly detail: string;
}

export interface Delivery {
  readonly store: OutboxStore & {
    countGiven(sinkId: string, since: number): number;
    join(sink: SinkSpec, now: number): number | StoreTrouble;
  };
  /** Undefined: its target is a matter of somebody else. */
  readonly resolve: (sink: SinkSpec) => ResolvedSink | NoTarget | undefined;
  /** Never rejects; ends within its limits. */
  readonly send: (sink: ResolvedSink, notice: Notice, limits: SendLimits) => Promise<Sent>;
  readonly self: Omit<Claimant, "token">;
  /** Whether somebody who has claimed a notice may still be at it. */
  readonly mayLive: (claimant: Claimant) => boolean;
}

export interface DeliveryAsked {
  readonly limitMs: number;
  /** Of one attempt. */
  readonly sendMs: number;
  readonly runId: string | null;
  /** Whose targets are known here although they are not stored. */
  readonly ownSinkIds: readonly string[];
  /** A person asks: also what waits for its next attempt. */
  readonly isForced?: boolean;
  /** Whether a row is delivered here at all; undefined: each one. */
  readonly wants?: (row: OutboxRow) => boolean;
  /** No further notice is begun; what is being sent comes to its end. */
  readonly enough?: AbortSignal;
  /** What is being sent is given up, too. */
  readonly stopping?: AbortSignal;
}

export interface Attempted {
  readonly row: OutboxRow;
  readonly settlement: Settlement;
}

export interface DeliveryReport {
  readonly attempted: readonly Attempted[];
  /** Undefined: the outbox could be read and written. */
  readonly trouble: StoreTrouble | undefined;
}

export const MOST_AT_ONCE = 8;
export const MOST_A_MINUTE = 30;
const MINUTE_MS = 60_000;
/** What is around an attempt: two transactions on a slow disk. */
const CLAIM_MARGIN_MS = 15_000;
/** Somebody else holds the database. */
const BUSY_PAUSE_MS = 20;
const MOST_BUSY = 100;
/** So that a receiver that hangs is told as such, and not as stopped by us. */
const ANSWER_MARGIN_MS = 100;
/** A notice is not even begun with less than this. */
const SHORTEST_SEND_MS = 150;

export async function deliverDue(
  delivery: Delivery,
  asked: DeliveryAsked,
): Promise<DeliveryReport> {
  const round = new Round(delivery, asked);
  try {
    await round.run();
  } finally {
    round.end();
  }
  return round.report;
}

class Round {
  readonly #delivery: Delivery;
  readonly #asked: DeliveryAsked;
  readonly #until: number;
  readonly #stopping = new AbortController();
  readonly #timer;
  readonly #by: string;
  readonly #attempted: Attempted[] = [];
  /** Those that are not to be tried once more in this round. */
  readonly #done = new Set<number>();
  /** Sinks of which all that waits was joined. */
  readonly #joined = new Set<string>();
  #trouble: StoreTrouble | undefined;

  constructor(delivery: Delivery, asked: DeliveryAsked) {
    this.#delivery = delivery;
    this.#asked = asked;
    this.#until = monotonicNow() + asked.limitMs;
    this.#timer = wakeWhenOver(asked.limitMs, () => this.#stopping.abort());
    asked.stopping?.addEventListener("abort", () => this.#stopping.abort());
    if (asked.stopping?.aborted === true) this.#stopping.abort();
    this.#by = renderClaim({ ...delivery.self, token: crypto.randomUUID() });
  }

  get report(): DeliveryReport {
    return { attempted: this.#attempted, trouble: this.#trouble };
  }

  end(): void {
    this.#timer.cancel();
  }

  async run(): Promise<void> {
    const running = new Set<Promise<void>>();
    while (!this.#isOver()) {
      const next = running.size < MOST_AT_ONCE ? await this.#claimNext() : undefined;
      if (next === undefined && running.size === 0) break;
      if (next === undefined) {
        await Promise.race(running);
        continue;
      }
      const attempt = this.#attempt(next.row, next.sink).finally(() => running.delete(attempt));
      running.add(attempt);
    }
    await Promise.all(running);
  }

  #isOver(): boolean {
    const restMs = this.#until - monotonicNow();
    const { enough } = this.#asked;
    return this.#stopping.signal.aborted || enough?.aborted === true || restMs < SHORTEST_SEND_MS;
  }

  async #claimNext(): Promise<{ row: OutboxRow; sink: ResolvedSink | NoTarget } | undefined> {
    const { store, resolve } = this.#delivery;
    const { runId, ownSinkIds, isForced = false } = this.#asked;
    const found = await this.#patiently(() =>
      store.listDue({ now: wallNow(), isForced, runId, ownSinkIds }),
    );
    if (found === undefined) return undefined;
    for (const row of found) {
      if (this.#done.has(row.id) || !this.#isOurs(row)) continue;
      const sink = resolve(row.sink);
      if (sink === undefined || this.#isSated(row)) continue;
      const until = wallNow() + Math.min(LONGEST_CLAIM_MS, this.#asked.sendMs + CLAIM_MARGIN_MS);
      const claimed = await this.#patiently(() => store.claim(row, { by: this.#by, until }));
      this.#done.add(row.id);
      if (claimed === "done") return { row: { ...row, attempts: row.attempts + 1 }, sink };
    }
    return undefined;
  }

  #isOurs(row: OutboxRow): boolean {
    const { wants } = this.#asked;
    if (isClaimed(row, wallNow(), this.#delivery.mayLive)) return false;
    return wants === undefined || wants(row);
  }

  /** A ping is a state, and a hook is ours: neither can be too many for a person. */
  #isSated({ sink }: OutboxRow): boolean {
    if (sink.kind === "ping" || sink.kind === "command") return false;
    const { store } = this.#delivery;
    const now = wallNow();
    if (store.countGiven(sink.id, now - MINUTE_MS) < MOST_A_MINUTE) return false;
    // What is still waiting becomes one notice, for when it may be told again.
    if (!this.#joined.has(sink.id)) store.join(sink, now);
    this.#joined.add(sink.id);
    return true;
  }

  async #attempt(row: OutboxRow, sink: ResolvedSink | NoTarget): Promise<void> {
    const { notice } = row;
    const sent = await this.#send(row, sink);
    const settlement = decideSettlement(row, sent, { now: wallNow(), random: throwDice() });
    this.#attempted.push({ row, settlement });
    const { store } = this.#delivery;
    const settled = await this.#patiently(() => store.settle(row, this.#by, settlement), "late");
    // The row stays claimed: sent again under the same key once we are gone.
    if (settled !== "done") this.#trouble ??= { kind: "unusable", reason: notice.id };
  }

  async #send({ notice }: OutboxRow, sink: ResolvedSink | NoTarget): Promise<Sent> {
    if ("because" in sink) return { ...sink, kind: "failed" };
    const restMs = this.#until - monotonicNow();
    const timeoutMs = Math.max(
      1,
      Math.floor(Math.min(this.#asked.sendMs, restMs - ANSWER_MARGIN_MS)),
    );
    try {
      faultPoint("outbox.send", { notice: notice.id, event: notice.event, sink: sink.spec.id });
      return await this.#delivery.send(sink, notice, { timeoutMs, signal: this.#stopping.signal });
    } catch (error) {
      // A bug of a sender, or a fault of the system that it does not know.
      const detail = error instanceof Error ? error.message : String(error);
      return { kind: "failed", because: "no-answer", detail };
    }
  }

  /**
   * A database that another one holds is to be had a moment later.
   * @param whenever  "late": what is to be written matters more than the limit
   */
  async #patiently<T>(
    ask: () => T | StoreTrouble,
    whenever: "in-time" | "late" = "in-time",
  ): Promise<T | undefined> {
    for (let tries = 0; tries < MOST_BUSY; tries += 1) {
      const found = attempt(ask);
      if (!isTrouble(found)) return found;
      if (found.kind !== "busy" || (whenever === "in-time" && this.#isOver())) {
        this.#trouble = found;
        return undefined;
      }
      await new Promise<void>((resolve) => wakeAfter(BUSY_PAUSE_MS, resolve));
    }
    this.#trouble = { kind: "busy", reason: "somebody else holds journal.db" };
    return undefined;
  }
}

/** A fault that the store does not know must not cost the notices that are being sent. */
function attempt<T>(ask: () => T | StoreTrouble): T | StoreTrouble {
  try {
    return ask();
  } catch (error) {
    return { kind: "unusable", reason: error instanceof Error ? error.message : String(error) };
  }
}

function isTrouble<T>(found: T | StoreTrouble): found is StoreTrouble {
  return typeof found === "object" && found !== null && "kind" in found && "reason" in found;
}
