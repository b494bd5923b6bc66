/**
 * The tree of a run whose watchdog is dead: whether there still is one, and its end. Used by the
 * guard of the run and by whoever wants its key next; both may be at it at the same time.
 *
 * Guarantees: nobody is signalled but who is proven a member twice, in the look and on the open
 * pidfd; suspects, ancestors of this process, what was kept, and the run's guard never are. "Empty"
 * is three looks in a row, 100 ms apart, in which nobody was found. Non-guarantees: a process that
 * left the group or session of the main command (at a terminal there is no such group) and hid its
 * environment within the last beat is not found, nor one that replaces itself by fork and exit
 * faster than it can be read. Clock: CLOCK_MONOTONIC. State after a crash:
 * none here; who was not ended lives on (perhaps stopped) and is found again.
 */
import type { FoundProcess, TreeFinding } from "../core/evidence.ts";
import type { ProcessIdentity } from "../core/lease-record.ts";
import { SIGCONT, SIGKILL, SIGTERM } from "../core/signals.ts";
import type { Survivors } from "../core/survivors.ts";
import type { DeadRun, SeenProcess } from "../core/survivors-view.ts";
import { spanMs } from "../core/time.ts";
import { identify } from "../core/tree-members.ts";
import { monotonicNow } from "../os/clock.ts";
import { isAlive } from "../os/machine.ts";
import { readCommand } from "../os/proc.ts";
import { wakeAfter } from "../os/timers.ts";
import {
  askPass,
  continuePass,
  type Ground,
  judge,
  killPass,
  type PassTally,
  type ReadKept,
  targetsOf,
} from "./kill-pass.ts";
import { translate } from "./numbers.ts";
import type { ScanResult } from "./scan.ts";

export type { ReadKept } from "./kill-pass.ts";

/** One look over all processes; `unread`: it could not be done, or not in time. */
export type Scan = () => ScanResult | Promise<ScanResult>;

/** So many looks in a row must agree on emptiness, or on suspects. */
export const LOOKS = 3;
export const BETWEEN_LOOKS_MS = 100;
/** Looks that do not agree are given up. */
const MOST_LOOKS = 12;
/** Members that survive KILL for so long are what is left. */
export const KILL_LIMIT_MS = 10_000;
const LOOK_FOR_END_MS = 5;
/** In so many rounds one target may fail us before it counts as one that cannot be signalled. */
const MOST_FAULTS = 3;
/** How long a round waits for those that it has killed, before it looks again. */
const ROUND_MS = 200;

/**
 * Looks for the tree of a dead run. Signals nobody.
 *
 * Members without a suspect are an answer at once. A bearer can look like a suspect for a moment
 * while its parent is inside vfork and cannot be read, so suspects are looked at again, too.
 *
 * @param readKept  called after each look
 * @param pauseMs  milliseconds between two looks; less than 100 proves less
 * @returns what was found; `unread` as soon as one look is: emptiness would then be no proof
 */
export async function lookForSurvivors(
  run: DeadRun,
  readKept: ReadKept,
  scan: Scan,
  pauseMs: number = BETWEEN_LOOKS_MS,
): Promise<TreeFinding | "unread"> {
  let empty = 0;
  let doubtful = 0;
  let isBlind = false;
  let found: Survivors = NOBODY;
  for (let look = 0; look < MOST_LOOKS; look += 1) {
    if (look > 0) await wait(pauseMs);
    const processes = await scan();
    if (processes === "unread") return "unread";
    const now = judge({ run, processes, readKept });
    if (now.suspects.length === 0 && now.members.length > 0) return name(now);
    isBlind ||= now.isBlind;
    const isEmpty = now.suspects.length === 0;
    empty = isEmpty ? empty + 1 : 0;
    doubtful = isEmpty ? 0 : doubtful + 1;
    if (!isEmpty) found = now;
    if (empty === LOOKS) return name({ ...NOBODY, isBlind });
    if (doubtful === LOOKS) break;
  }
  return name(found);
}

const NOBODY: Survivors = { members: [], suspects: [], isBlind: false };

export interface EndOptions {
  /** `() => scanInWorker(url)`; where nothing is to be kept going meanwhile, `scanProcesses`. */
  readonly scan: Scan;
  /** Another way for the first look, where it has to be fast: `scanProcesses`. */
  readonly firstScan?: Scan;
  /** Milliseconds that the run's own guard is given to do it; it does not wait for itself. */
  readonly guardWaitMs: number;
  /** Milliseconds between TERM (and CONT) and KILL; 0: KILL at once. */
  readonly termGraceMs: number;
  /**
   * Whom their watchdog had stopped for a pause, in our numbers. A nested watchdog passes TERM on
   * to those below it, but they were not stopped by it, and it does not continue them.
   */
  readonly frozen?: readonly ProcessIdentity[];
  /** Told of the first TERM and the first KILL that each was sent, for the record. */
  readonly onSent?: (process: SeenProcess, signal: number) => void;
  /** Told at the end of trouble of our own, the first of it; without this it is thrown then. */
  readonly onFault?: (error: unknown) => void;
}

/**
 * Ends the proven members, by KILL in rounds until nobody is found three times in a row, or for
 * KILL_LIMIT_MS. Who was born meanwhile is ended, too.
 *
 * @returns what is left: nobody, suspects, members that may not be signalled or did not die;
 *   `unread` where the processes could not be read for all of the time
 * @throws once all others were signalled: what went wrong here with one of them (`onFault`)
 * Safe to repeat: yes, and beside another one that does the same.
 */
export async function endSurvivors(
  run: DeadRun,
  readKept: ReadKept,
  options: EndOptions,
): Promise<TreeFinding | "unread"> {
  const ending = new Ending(run, readKept, options);
  await ending.awaitGuard();
  await ending.ask();
  const left = await ending.kill();
  ending.tellFault();
  return left;
}

/**
 * CONT, once, to those of the proven members that their dead watchdog had stopped for a pause. They
 * are let live, and nobody else would ever continue them. Whoever was stopped by others is for the
 * caller to leave out, as far as it can know.
 *
 * @returns who was continued; `unread`: the processes could not be seen, so nobody was; `guarded`:
 *   the guard of the run lives, and decides first
 */
export async function continueFrozen(
  run: DeadRun,
  readKept: ReadKept,
  { scan, isFrozen }: { readonly scan: Scan; readonly isFrozen: (one: SeenProcess) => boolean },
): Promise<PassTally | "unread" | "guarded"> {
  const processes = await scan();
  if (processes === "unread") return "unread";
  const ground = translate({ run, processes, readKept });
  return isThere(ground.run) ? "guarded" : continuePass(ground, isFrozen);
}

class Ending {
  readonly #readKept: ReadKept;
  readonly #options: EndOptions;
  readonly #run: DeadRun;
  /** Members that were asked to end, in our numbers. */
  #asked: readonly ProcessIdentity[] = [];
  #scan: Scan;
  readonly #told = new Set<string>();
  /** Whom the kernel did not let us signal after all. */
  readonly #refused = new Set<string>();
  readonly #faulty = new Map<string, number>();
  #fault: { readonly error: unknown } | undefined;

  constructor(run: DeadRun, readKept: ReadKept, options: EndOptions) {
    this.#run = run;
    this.#readKept = readKept;
    this.#options = options;
    this.#scan = options.firstScan ?? options.scan;
  }

  /** The guard records what it does, so it is let go first. */
  async awaitGuard(): Promise<void> {
    if (this.#options.guardWaitMs <= 0 || !isThere(this.#run)) return;
    const ground = await this.#look();
    if (ground === "unread" || !isThere(ground.run)) return;
    const { guard } = ground.run;
    const targets = targetsOf(judge(ground)).map(identityOf);
    await awaitEnd(targets, this.#options.guardWaitMs, () => !isThere({ guard }));
  }

  /** TERM once to each that lives now; who is born later is not asked again before KILL. */
  async ask(): Promise<void> {
    const graceMs = this.#options.termGraceMs;
    const ground = graceMs > 0 ? await this.#look() : "unread";
    if (ground === "unread") return;
    const asked = askPass(ground, [SIGTERM, SIGCONT]);
    this.#note(asked, SIGTERM);
    const frozen = new Set(this.#options.frozen?.map((one) => `${one.pid}@${one.start_time}`));
    this.#noteFaults(continuePass(ground, (member) => frozen.has(identify(member))));
    // Their parents may end before them: that they were proven is not to be forgotten then.
    this.#asked = asked.sent.map(identityOf);
    const began = monotonicNow();
    let left = this.#asked;
    while (left.length > 0 && spanMs(began, monotonicNow()) < graceMs) {
      await awaitEnd(left, graceMs - spanMs(began, monotonicNow()));
      const now = await this.#look();
      if (now === "unread") return;
      left = targetsOf(judge(now)).map(identityOf);
    }
  }

  async kill(): Promise<TreeFinding | "unread"> {
    const began = monotonicNow();
    for (let empty = 0; ;) {
      const ground = await this.#look();
      const isOver = spanMs(began, monotonicNow()) > KILL_LIMIT_MS;
      if (ground === "unread") {
        if (isOver) return "unread";
        await wait(BETWEEN_LOOKS_MS);
        continue;
      }
      const found = this.#markRefused(judge(ground));
      const targets = targetsOf(found);
      empty = targets.length === 0 ? empty + 1 : 0;
      if (empty === LOOKS || isOver) return name(found);
      if (targets.length === 0) {
        await wait(BETWEEN_LOOKS_MS);
        continue;
      }
      this.#note(killPass(ground), SIGKILL);
      await awaitEnd(targets.map(identityOf), ROUND_MS);
    }
  }

  async #look(): Promise<Ground | "unread"> {
    const scan = this.#scan;
    this.#scan = this.#options.scan;
    const processes = await scan();
    if (processes === "unread") return "unread";
    const ground = translate({ run: this.#run, processes, readKept: this.#readKept });
    const { run } = ground;
    return { ...ground, run: { ...run, recorded: [...run.recorded, ...this.#asked] } };
  }

  tellFault(): void {
    if (this.#fault === undefined) return;
    const { error } = this.#fault;
    if (this.#options.onFault === undefined) throw error;
    this.#options.onFault(error);
  }

  #note(tally: PassTally, signal: number): void {
    for (const one of tally.refused) this.#refused.add(identify(one));
    this.#noteFaults(tally);
    for (const one of tally.sent) {
      const line = `${identify(one)} ${signal}`;
      if (!this.#told.has(line)) this.#options.onSent?.(one, signal);
      this.#told.add(line);
    }
  }

  /** Who cannot be signalled again and again, whyever that is, is not waited for. */
  #noteFaults({ faults }: PassTally): void {
    const [first] = faults;
    if (first !== undefined) this.#fault ??= { error: first.error };
    for (const id of new Set(faults.map(({ member }) => identify(member)))) {
      const times = (this.#faulty.get(id) ?? 0) + 1;
      this.#faulty.set(id, times);
      if (times >= MOST_FAULTS) this.#refused.add(id);
    }
  }

  #markRefused(found: Survivors): Survivors {
    const mark = (one: Survivors["members"][number]) =>
      this.#refused.has(identify(one)) ? { ...one, isSignalable: false } : one;
    return { ...found, members: found.members.map(mark) };
  }
}

/** A guard other than ourselves, as far as it can be looked up by its number. */
function isThere({ guard, countedIn }: Pick<DeadRun, "guard"> & Partial<DeadRun>): boolean {
  if (guard === null || guard.pid === process.pid) return false;
  return typeof countedIn === "string" || isAlive(guard) !== "no";
}

function identityOf(seen: SeenProcess): ProcessIdentity {
  return { pid: seen.pid, start_time: seen.startTicks };
}

/** Until none of these lives, or the time is up, or `isOver`. */
async function awaitEnd(
  those: readonly ProcessIdentity[],
  limitMs: number,
  isOver: () => boolean = () => false,
): Promise<void> {
  const began = monotonicNow();
  let left = those;
  while (!isOver()) {
    left = left.filter((one) => isAlive(one) !== "no");
    if (left.length === 0 || spanMs(began, monotonicNow()) >= limitMs) return;
    await wait(LOOK_FOR_END_MS);
  }
}

function wait(waitMs: number): Promise<void> {
  return new Promise((resolve) => {
    wakeAfter(waitMs, resolve);
  });
}

function name(found: Survivors): TreeFinding {
  const named = (one: Survivors["members"][number]): FoundProcess => ({
    pid: one.pid,
    start_time: one.startTicks,
    command: readCommand(one.pid),
    isSignalable: one.isSignalable,
    isAncestor: one.isAncestor,
  });
  const finding = { members: found.members.map(named), suspects: found.suspects.map(named) };
  return found.isBlind ? { ...finding, isBlind: true } : finding;
}
