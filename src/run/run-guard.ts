/**
 * The guard of this run: what it is told at first, and what is said and written down where there is
 * none. How a guard works is a matter of guard.ts.
 */
import type { ProcessIdentity } from "../core/lease-record.ts";
import { readProcessIdentity } from "../os/machine.ts";
import { wallNow } from "../os/clock.ts";
import { ownMask } from "../os/mask.ts";
import type { Course } from "./course.ts";
import { type Guard, startGuard } from "./guard.ts";
import { messages } from "./messages.ts";
import { readOwnSelf } from "./own-self.ts";
import { recordOfRunning, resultFileMode } from "./record.ts";

/** A guard stands by before the command does; undefined where there can be none. */
export function guardRun(
  course: Course,
  onRestarted: (identity: ProcessIdentity) => void,
): Guard | undefined {
  const { identity, options, request, stateDirectory, ledger } = course;
  ledger.noteGuard(true);
  const self = readOwnSelf();
  return startGuard({
    runId: identity.runId,
    stateDirectory,
    inherited: request.inherited,
    notes: {
      record: recordOfRunning(course, undefined),
      isReleased: false,
      owner: self.identity,
      startedMonotonicMs: identity.startedAt,
      cgroup: self.machine.cgroup,
      adopters: self.adopters,
      inborn: request.inherited.inbornChildren.flatMap((pid) => readProcessIdentity(pid) ?? []),
      mainChild: null,
      hasOwnGroup: !request.inherited.hasTerminal,
      sessionId: self.sessionId,
      mainEnd: null,
      frozen: [],
      phase: "starting",
      leftovers: options.leftovers,
      guardGraceMs: options.guardGraceMs,
      resultFile: resultPath(course),
      resultFileMode: resultFileMode(course),
      telling: course.telling.forGuard(),
      mask: ownMask().known,
    },
    onRestarted,
    onLost: (because) => {
      ledger.noteGuard(false);
      ledger.noteDegraded("no-guard");
      ledger.tellOnce(messages.noGuard(because));
      const about = { runId: identity.runId, job: identity.jobName, key: null };
      const event = { kind: "event", at: wallNow(), name: "guard_lost", because } as const;
      course.journal?.put({ ...event, ...about, data: {} });
    },
  });
}

/** Absolute, because the guard stands in `/`. */
function resultPath({ options, identity }: Course): string | null {
  const path = options.resultFile;
  if (path === undefined || path.startsWith("/")) return path ?? null;
  return identity.cwd === undefined ? null : `${identity.cwd}/${path}`;
}
