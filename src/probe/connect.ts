/**
 * A new connection to the first of several addresses that takes it, or to a socket in the file
 * system. Knows nothing of names, TLS and HTTP.
 *
 * Always: every address has been tried before it is said that there is none; all attempts but the
 * one that succeeded are closed; within the limit. The addresses are begun one after the other, the
 * next one as soon as one has failed or has not answered for some time (RFC 8305, section 5):
 * packets that are dropped on the way to one address do not hide that another one works.
 * State after a crash: none, the kernel closes what was open.
 */
import type { ProbeFailure, ProbeVerdict } from "../core/probe-result.ts";
import { wakeAfter, type Timer } from "../os/timers.ts";
import { isOfResources } from "../os/sockets.ts";
import type { LimitEnd, TimeLimit } from "./time-limit.ts";
import type { Opened, OpenWire, Wire, WireEnd } from "./wire.ts";

/** "Connection Attempt Delay" of RFC 8305, section 5; less where the limit leaves less. */
export const NEXT_ADDRESS_MS = 250;

export type Connected<Kind extends Wire = Wire> =
  | { readonly kind: "connected"; readonly wire: Kind; readonly address: string }
  | ({ readonly kind: "failed" } & ProbeVerdict);

interface Target {
  readonly shown: string;
  readonly end: WireEnd;
}

export interface Connecting<Kind extends Wire> {
  readonly limit: TimeLimit;
  readonly open: OpenWire<Kind>;
}

/** @param addresses  at least one IP address */
export function connectToAny<Kind extends Wire>(
  addresses: readonly string[],
  port: number,
  connecting: Connecting<Kind>,
): Promise<Connected<Kind>> {
  const targets = addresses.map((host) => ({
    shown: host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`,
    end: { host, port },
  }));
  return new Promise((resolve) => new Attempts(targets, connecting, resolve).begin());
}

export function connectToPath<Kind extends Wire>(
  path: string,
  connecting: Connecting<Kind>,
): Promise<Connected<Kind>> {
  const targets = [{ shown: path, end: { path } }];
  return new Promise((resolve) => new Attempts(targets, connecting, resolve).begin());
}

class Attempts<Kind extends Wire> {
  readonly #targets: readonly Target[];
  readonly #limit: TimeLimit;
  readonly #openWire: OpenWire<Kind>;
  readonly #resolve: (connected: Connected<Kind>) => void;
  readonly #delayMs: number;
  readonly #open = new Set<Opened<Kind>>();
  readonly #errors: { readonly shown: string; readonly code: string }[] = [];
  #next = 0;
  #isSettled = false;
  #timer: Timer | undefined;
  #forget: () => void = () => undefined;

  constructor(
    targets: readonly Target[],
    { limit, open }: Connecting<Kind>,
    resolve: (connected: Connected<Kind>) => void,
  ) {
    this.#targets = targets;
    this.#limit = limit;
    this.#openWire = open;
    this.#resolve = resolve;
    this.#delayMs = Math.min(NEXT_ADDRESS_MS, limit.remainingMs / targets.length);
  }

  begin(): void {
    const { end } = this.#limit;
    if (end !== undefined) return this.#giveUp(end);
    this.#tryNext();
    if (!this.#isSettled) this.#forget = this.#limit.onEnd((limitEnd) => this.#giveUp(limitEnd));
  }

  #giveUp(end: LimitEnd): void {
    const detail = `no connection to ${this.#shownTargets()} within ${this.#limit.shown}`;
    this.#settle(
      end === "time"
        ? { kind: "failed", because: this.#wordOfTimeout(), detail: this.#addErrors(detail) }
        : { kind: "failed", because: "stopped", detail },
    );
  }

  #tryNext(): void {
    this.#timer?.cancel();
    const target = this.#targets[this.#next];
    if (target === undefined) return;
    this.#next += 1;
    const { shown, end } = target;
    const opened = this.#openWire(end, {
      onOpen: (wire) => {
        this.#open.delete(opened);
        this.#settle({ kind: "connected", wire, address: shown });
      },
      onFail: (code) => {
        this.#open.delete(opened);
        this.#onFail({ shown, code });
      },
    });
    if (opened.kind === "failed") return this.#onFail({ shown, code: opened.code });
    if (opened.kind === "standing") {
      return this.#settle({ kind: "connected", wire: opened.wire, address: shown });
    }
    this.#open.add(opened);
    if (this.#next < this.#targets.length) {
      this.#timer = wakeAfter(this.#delayMs, () => this.#tryNext());
    }
  }

  #onFail(error: { readonly shown: string; readonly code: string }): void {
    this.#errors.push(error);
    if (this.#next < this.#targets.length) return this.#tryNext();
    if (this.#open.size > 0) return;
    this.#settle({ kind: "failed", ...describeErrors(this.#errors) });
  }

  #settle(connected: Connected<Kind>): void {
    this.#isSettled = true;
    this.#timer?.cancel();
    this.#forget();
    for (const opened of this.#open) if (opened.kind === "on-its-way") opened.close();
    this.#open.clear();
    this.#resolve(connected);
  }

  /** Whichever could not be tried might have answered. */
  #wordOfTimeout(): ProbeFailure {
    const isOurs = this.#errors.some(({ code }) => isOfResources(code));
    return isOurs ? "out-of-resources" : "connect-timeout";
  }

  #shownTargets(): string {
    return this.#targets.map(({ shown }) => shown).join(", ");
  }

  #addErrors(detail: string): string {
    return this.#errors.length === 0
      ? detail
      : `${detail} (${describeErrors(this.#errors).detail})`;
  }
}

/**
 * The word for several errors is that of the one that came from the other side, if one did. Where
 * an address could not be tried for want of something of ours, nothing is known of the other side.
 */
function describeErrors(
  errors: readonly { readonly shown: string; readonly code: string }[],
): ProbeVerdict {
  const detail = errors.map(({ shown, code }) => `${shown}: ${sayError(code)}`).join("; ");
  const because: ProbeFailure =
    ["out-of-resources", "refused", "reset", "connect-timeout"].find((word): word is ProbeFailure =>
      errors.some(({ code }) => wordOf(code) === word),
    ) ?? "unreachable";
  return { because, detail };
}

const REFUSALS = ["ECONNREFUSED", "ENOENT", "EAGAIN"];

/** connect(2), unix(7): a queue that is full there is told at once. */
function wordOf(code: string): ProbeFailure {
  if (isOfResources(code)) return "out-of-resources";
  if (REFUSALS.includes(code)) return "refused";
  if (code === "ECONNRESET") return "reset";
  return code === "ETIMEDOUT" ? "connect-timeout" : "unreachable";
}

function sayError(code: string): string {
  if (code === "ECONNREFUSED") return "connection refused";
  if (code === "EAGAIN") return "its queue is full";
  if (isOfResources(code)) return `this machine has nothing left to ask it with (${code})`;
  return code === "ENOENT" ? "no such socket" : code;
}
