/**
 * Deliveries beside a run that goes on: one round after the other while something is due, then a
 * sleep until the next attempt. Decides nothing about a notice.
 *
 * Always: once the run is over nothing is begun any more, and what is being sent comes to its end.
 * Clock: the wall clock of the outbox, by timers. State after a crash: that of the outbox.
 */
import { wallNow } from "../os/clock.ts";
import { tickEvery, type Timer } from "../os/timers.ts";
import type { Journal } from "../journal/journal.ts";
import type { Courier } from "./courier.ts";

export interface BesideParts {
  readonly journal: Journal | undefined;
  /** False: what others have left is sent once, and nothing is waited for. */
  readonly hasOwnSinks: boolean;
  readonly load: () => Promise<Courier>;
  /** Nobody waits any more: what is being sent is given up. */
  readonly leaving: AbortSignal;
  readonly onBug: (error: unknown) => void;
}

/** Of one round. */
const ROUND_LIMIT_MS = 60_000;
const LONGEST_SLEEP_MS = 30_000;
const SHORTEST_SLEEP_MS = 100;
/** What is due and was not tried: another one sends it, or its receiver has had enough. */
const IDLE_SLEEP_MS = 5_000;

export class Beside {
  readonly #parts: BesideParts;
  readonly #over = new AbortController();
  #timer: Timer | undefined;
  #isWorking = false;
  #isWanted = false;

  constructor(parts: BesideParts) {
    this.#parts = parts;
  }

  /** Looks now, and after each entry that the run writes. */
  begin(): void {
    const { journal, hasOwnSinks } = this.#parts;
    if (journal === undefined) return;
    const look = (): void => {
      if (!this.#over.signal.aborted && journal.hasDueNotices()) this.#work();
    };
    if (hasOwnSinks) journal.watchWritten(look);
    look();
  }

  /** Nothing is begun any more. */
  end(): void {
    this.#timer?.cancel();
    this.#over.abort();
  }

  #work(): void {
    this.#isWanted = true;
    if (this.#isWorking || this.#over.signal.aborted) return;
    this.#isWorking = true;
    this.#timer?.cancel();
    void this.#workOff()
      .catch((error: unknown) => this.#parts.onBug(error))
      .finally(() => {
        this.#isWorking = false;
      });
  }

  async #workOff(): Promise<void> {
    const { load, leaving, hasOwnSinks } = this.#parts;
    const courier = await load();
    let hasTried = false;
    while (this.#isWanted && !this.#over.signal.aborted) {
      this.#isWanted = false;
      const { attempted } = await courier.deliver({
        limitMs: ROUND_LIMIT_MS,
        enough: this.#over.signal,
        stopping: leaving,
      });
      hasTried = attempted.length > 0;
    }
    if (hasOwnSinks) this.#sleep(courier.nextAt(), hasTried ? SHORTEST_SLEEP_MS : IDLE_SLEEP_MS);
  }

  #sleep(nextAt: number | undefined, shortestMs: number): void {
    if (nextAt === undefined || this.#over.signal.aborted) return;
    const waitMs = Math.min(Math.max(shortestMs, nextAt - wallNow()), LONGEST_SLEEP_MS);
    this.#timer = tickEvery(waitMs, () => {
      this.#timer?.cancel();
      this.#work();
    });
  }
}
