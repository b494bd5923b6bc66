/**
 * Which of the promises of watchdog hold on a machine, by what `watchdog doctor` has found there.
 * Pure; refuses to know how a check is made and what a person should do about it.
 *
 * Always: a promise holds only where everything that it rests on was tried and found well; what
 * could not be tried is never taken for well; each answer but `holds` names the checks that it is
 * for.
 */

/** In the order in which they are made and shown: what others rest on comes first. */
export const CHECKS = [
  "ffi",
  "state-directory",
  "room",
  "files",
  "locks",
  "journal",
  "repair-files",
  "owners",
  "processes",
  "pidfd",
  "namespaces",
  "cgroup",
  "clocks",
  "guard",
  "workers",
  "limits",
  "variables",
  "configuration",
  "rights",
] as const;
export type CheckName = (typeof CHECKS)[number];

/** `note`: nothing is wrong, and not all that watchdog can do is to be had here. */
export type CheckState = "ok" | "note" | "finding" | "unknown";

export type CheckStates = Readonly<Record<CheckName, CheckState>>;

export const PROMISES = ["exclusion", "generation", "fence", "recovery", "no-harm"] as const;
export type PromiseName = (typeof PROMISES)[number];

/** In the order of what is worse. */
export type PromiseState = "does-not-hold" | "unproven" | "holds-in-part" | "holds";

export interface PromiseAnswer {
  readonly promise: PromiseName;
  readonly state: PromiseState;
  /** The checks that made it so; none where it holds. */
  readonly because: readonly CheckName[];
}

interface Ground {
  /** Without one of these there is nothing left of the promise. */
  readonly restsOn: readonly CheckName[];
  /** These take a part of it away. */
  readonly limitedBy: readonly CheckName[];
}

/**
 * Exclusion and recovery look at the processes of a dead owner: what is hidden, or counted in a pid
 * namespace that is not seen from here, is not covered. A bearer of the cookie is proven by its
 * cgroup, so that without one it stays a suspect, and whoever comes is refused. Without a guard the
 * tree of a killed watchdog lives until the next start. Where descriptors are short the guard goes
 * first, and then the lease, and with it the run.
 */
const GROUNDS: Readonly<Record<PromiseName, Ground>> = {
  exclusion: {
    restsOn: ["ffi", "state-directory", "locks"],
    limitedBy: ["processes", "namespaces"],
  },
  generation: { restsOn: ["ffi", "state-directory", "files"], limitedBy: ["repair-files"] },
  fence: { restsOn: ["ffi", "state-directory", "locks"], limitedBy: [] },
  recovery: {
    restsOn: ["ffi", "state-directory", "locks", "files", "workers"],
    limitedBy: ["repair-files", "owners", "processes", "namespaces", "cgroup", "guard", "limits"],
  },
  "no-harm": { restsOn: [], limitedBy: ["pidfd", "variables", "room", "limits"] },
};

/** One answer for each promise, in their order. */
export function decidePromises(states: CheckStates): PromiseAnswer[] {
  return PROMISES.map((promise) => decidePromise(promise, states));
}

function decidePromise(promise: PromiseName, states: CheckStates): PromiseAnswer {
  const { restsOn, limitedBy } = GROUNDS[promise];
  const inState = (names: readonly CheckName[], ...wanted: readonly CheckState[]): CheckName[] =>
    names.filter((name) => wanted.includes(states[name]));
  const broken = inState(restsOn, "finding");
  if (broken.length > 0) return { promise, state: "does-not-hold", because: broken };
  const untried = inState([...restsOn, ...limitedBy], "unknown");
  if (untried.length > 0) return { promise, state: "unproven", because: untried };
  const limits = inState(limitedBy, "finding", "note");
  if (limits.length > 0) return { promise, state: "holds-in-part", because: limits };
  return { promise, state: "holds", because: [] };
}
