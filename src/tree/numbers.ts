/**
 * What is recorded in the numbers of a pid namespace below ours, told in our numbers: by the
 * processes that were seen, each of which the kernel numbers in every namespace around it (NSpid of
 * proc(5)). Decides nothing about who is a member, and signals nobody.
 *
 * Guarantees: a number is translated only by a process that is in that very namespace and has the
 * recorded start time; who is recorded and in none of those is dead. Where a process could be one
 * of them and its namespace is not ours to read, or it is in one further below, the run is blind.
 * Start times are the same in all pid namespaces; whoever asks has compared the time namespaces.
 * Clock: none. State after a crash: none.
 */
import type {
  DeadRun,
  KeptProcesses,
  MainGroup,
  RecordedProcess,
  SeenProcess,
} from "../core/survivors-view.ts";
import { identify } from "../core/tree-members.ts";
import { isDeadState, type NamespaceNumbers, readNamespaceNumbers } from "../os/proc-look.ts";
import type { Ground } from "./kill-pass.ts";
import { isStranger } from "./strangers.ts";

/** The same ground in our numbers, without those whom only a used pid makes look recorded. */
export function translate(ground: Ground): Ground {
  const { run, processes, readKept } = ground;
  if (run.countedIn === null) return { ...ground, run: withoutStrangers(run) };
  const numbers = new Numbers(run, run.countedIn, processes);
  const told = withoutStrangers(numbers.tell());
  return { run: told, processes, readKept: () => numbers.tellKept(readKept()) };
}

/** The number of a group is free for another process only when nobody is in the group any more. */
function withoutStrangers(run: DeadRun): DeadRun {
  const { recorded, mainGroup } = run;
  return {
    ...run,
    recorded: recorded.filter((one) => !isStranger(one)),
    mainGroup: mainGroup !== null && isStranger(mainGroup) ? null : mainGroup,
  };
}

interface Numbered {
  readonly seen: SeenProcess;
  readonly numbers: NamespaceNumbers;
}

class Numbers {
  readonly #run: DeadRun;
  /** In the very namespace of the owner. */
  readonly #natives: Numbered[] = [];
  /** In one that cannot be read, or below another than ours. */
  readonly #others: Numbered[] = [];

  constructor(run: DeadRun, namespace: string, processes: readonly SeenProcess[]) {
    this.#run = run;
    const starts = new Set(run.adopters.map((one) => one.start_time));
    for (const seen of processes) {
      const isLate = seen.startTicks >= run.owner.start_time || starts.has(seen.startTicks);
      if (!isLate || seen.isKernelThread || isDeadState(seen.state)) continue;
      const numbers = readNamespaceNumbers(seen.pid);
      if (numbers === undefined || numbers.pids.length < 2) continue; // gone, or in ours
      const isNative = numbers.pidNamespace === namespace;
      (isNative ? this.#natives : this.#others).push({ seen, numbers });
    }
  }

  tell(): DeadRun {
    const run = this.#run;
    const { mainGroup } = run;
    return {
      ...run,
      owner: this.#find(run.owner) ?? { ...run.owner, pid: NOBODY },
      recorded: run.recorded.flatMap((one) => this.#find(one) ?? []),
      guard: run.guard === null ? null : (this.#find(run.guard) ?? null),
      adopters: run.adopters.flatMap((one) => this.#find(one) ?? []),
      mainGroup: mainGroup === null ? null : (this.#findGroup(mainGroup) ?? null),
      unrecordedIn: run.unrecordedIn.flatMap((session) => this.#findSessions(session)),
      countedIn: null,
      isBelowOurs: true,
      isBlind: this.#isBlind(),
    };
  }

  tellKept({ identities, tokens }: KeptProcesses): KeptProcesses {
    const kept = this.#natives.filter(({ seen, numbers }) =>
      identities.has(`${numbers.pids.at(-1)}@${seen.startTicks}`),
    );
    return { tokens, identities: new Set(kept.map(({ seen }) => identify(seen))) };
  }

  #find<One extends RecordedProcess>(one: One): One | undefined {
    const found = this.#natives.find(
      ({ seen, numbers }) => numbers.pids.at(-1) === one.pid && seen.startTicks === one.start_time,
    );
    return found === undefined ? undefined : { ...one, pid: found.seen.pid };
  }

  /** By any member of it: they all have the same number of ours. */
  #findGroup(group: MainGroup): MainGroup | undefined {
    const found = this.#natives.find(
      ({ numbers }) =>
        numbers.groups.at(-1) === group.pid && numbers.sessions.at(-1) === group.sessionId,
    );
    if (found === undefined) return undefined;
    const { groupId: pid, sessionId } = found.seen;
    return { ...group, pid, sessionId };
  }

  /** More than one where the leader is outside of the namespace: then its number there is 0. */
  #findSessions(sessionId: number): number[] {
    const inside = this.#natives.filter(({ numbers }) => numbers.sessions.at(-1) === sessionId);
    return [...new Set(inside.map(({ seen }) => seen.sessionId))];
  }

  #isBlind(): boolean {
    const { recorded, mainGroup, unrecordedIn } = this.#run;
    const hasGroup = mainGroup !== null || unrecordedIn.length > 0;
    return this.#others.some(({ seen, numbers }) => {
      if (numbers.pidNamespace === undefined) {
        return hasGroup || recorded.some((one) => one.start_time === seen.startTicks);
      }
      // Of one further below, the numbers between are of namespaces whose inodes are not told.
      const between = numbers.pids.slice(1, -1);
      return recorded.some(
        (one) => one.start_time === seen.startTicks && between.includes(one.pid),
      );
    });
  }
}

/** No process has this pid. */
const NOBODY = 0;
