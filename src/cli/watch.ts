/**
 * `--watch`: looks again each second and draws what was seen, until `q`, Ctrl-C or a signal that
 * asks for the end. What is looked at, and how it is drawn, is handed in.
 *
 * Always: the terminal is as it was before, whatever ended the watch, and while it is stopped
 * (Ctrl-Z). A look that takes long is followed by a longer pause, so that watching never becomes a
 * load. Clock: timers, and the wall clock for people.
 */

import { EXIT, WatchdogError } from "../core/errors.ts";
import { SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH } from "../core/signals.ts";
import { monotonicNow, wallNow } from "../os/clock.ts";
import { Screen, type ScreenSize } from "../os/screen.ts";
import { handleSignals, stopAs } from "../os/signal-handlers.ts";
import { sys } from "../os/sys.ts";
import { type Timer, wakeAfter, wakeEvery } from "../os/timers.ts";
import type { Answer } from "./answer.ts";
import { renderInstant } from "./render-words.ts";

const LOOK_MS = 1_000;
const KEYS_MS = 50;
/** A look must not take more than this part of the time. */
const LOOK_SHARE = 5;
const STDOUT = 1;
const ENDS: readonly number[] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
const QUIT_KEYS = /[qQ\x04]/;

export interface WatchRequest<View> {
  /** `status`, as it stands behind `watchdog`. */
  readonly command: string;
  /** A line that answers once; undefined: that of the command alone. */
  readonly hint?: string | undefined;
  readonly look: () => Promise<View>;
  /** @param clock  local time of the look, `02:00:07` */
  readonly draw: (view: View, size: ScreenSize, clock: string) => string[];
  readonly ignoredSignals?: bigint;
  /** TERM. */
  readonly terminalKind?: string | undefined;
}

/** @throws WatchdogError "usage" without a terminal; as `look` */
export async function watch<View>(request: WatchRequest<View>): Promise<Answer> {
  const screen = openScreen(request);
  const watching = new Watching(screen, request);
  try {
    // Before the screen changes: what cannot be read at all is said on the usual one.
    await watching.look();
    const signal = await watching.run(request.ignoredSignals ?? 0n);
    return signal === undefined ? { lines: [], code: EXIT.ok } : { lines: [], code: 0, signal };
  } finally {
    screen.close();
  }
}

interface Drawn {
  readonly command: string;
  readonly hint?: string | undefined;
  readonly terminalKind?: string | undefined;
}

function openScreen({ command, hint, terminalKind }: Drawn): Screen {
  const isPlain = terminalKind === undefined || ["", "dumb"].includes(terminalKind);
  const screen = !isPlain && sys.isTerminal(STDOUT) ? Screen.open() : undefined;
  if (screen !== undefined) return screen;
  const found = isPlain ? `TERM is ${JSON.stringify(terminalKind ?? "")}` : "there is none";
  throw new WatchdogError("usage", `${command} --watch draws on a terminal, ${found}`, {
    hint: hint ?? `watchdog ${command}`,
  });
}

class Watching<View> {
  readonly #screen: Screen;
  readonly #request: WatchRequest<View>;
  readonly #ended = Promise.withResolvers<number | undefined>();
  #view: View | undefined;
  #isOver = false;
  #timer: Timer | undefined;

  constructor(screen: Screen, request: WatchRequest<View>) {
    this.#screen = screen;
    this.#request = request;
  }

  async look(): Promise<void> {
    this.#view = await this.#request.look();
  }

  /** @returns the signal that ended it; undefined: a key did */
  async run(ignoredSignals: bigint): Promise<number | undefined> {
    const signals = [...ENDS, SIGTSTP, SIGCONT, SIGWINCH];
    handleSignals(signals, ignoredSignals, (signal) => this.#hear(signal));
    this.#screen.enter();
    this.#draw();
    const keys = wakeEvery(KEYS_MS, () => this.#readKeys());
    this.#lookLater(LOOK_MS);
    try {
      return await this.#ended.promise;
    } finally {
      this.#isOver = true;
      keys.cancel();
      this.#timer?.cancel();
    }
  }

  #hear(signal: number): void {
    if (ENDS.includes(signal)) return this.#ended.resolve(signal);
    if (signal === SIGTSTP) {
      this.#screen.leave();
      stopAs(SIGTSTP);
    }
    // Continued, from whichever stop: the terminal was somebody else's meanwhile.
    if (signal !== SIGWINCH) this.#screen.enter();
    this.#draw();
  }

  #readKeys(): void {
    const keys = this.#screen.keys();
    if (keys === undefined) return this.#ended.resolve(SIGHUP);
    if (QUIT_KEYS.test(keys)) this.#ended.resolve(undefined);
  }

  #lookLater(pauseMs: number): void {
    this.#timer = wakeAfter(pauseMs, () => void this.#lookAndDraw());
  }

  async #lookAndDraw(): Promise<void> {
    const from = monotonicNow();
    try {
      await this.look();
    } catch (error) {
      return this.#ended.reject(error);
    }
    if (this.#isOver) return;
    this.#draw();
    const tookMs = monotonicNow() - from;
    this.#lookLater(Math.max(LOOK_MS - tookMs, tookMs * LOOK_SHARE));
  }

  #draw(): void {
    const view = this.#view;
    if (view === undefined || this.#isOver) return;
    const [, clock = ""] = renderInstant(wallNow()).split(" ");
    this.#screen.draw(this.#request.draw(view, this.#screen.size(), clock));
  }
}
