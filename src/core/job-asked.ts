/**
 * What a person asks of a job on the command line, and what of it cannot be meant. Pure.
 */
import type { StepNode } from "./job-graph.ts";

/** What becomes of a step of which nobody knows whether it has happened. */
export type AcceptedAs = "retry" | "fail" | "done";

export interface AskedOfJob {
  /** `resume` never begins a job. */
  readonly verb: "run" | "resume";
  /** `--fresh`: an unfinished job is left as it is. */
  readonly isFresh: boolean;
  /** `--from`: it and what depends on it; all else must be done. */
  readonly from: string | undefined;
  /** `--only`: nothing but it is run; what it needs must be done. */
  readonly only: string | undefined;
  /** `--redo`: these run again, and what depends on them. */
  readonly redo: readonly string[];
  /** `--accept-unknown` */
  readonly accepted: ReadonlyMap<string, AcceptedAs>;
}

export const NOTHING_ASKED: AskedOfJob = {
  verb: "run",
  isFresh: false,
  from: undefined,
  only: undefined,
  redo: [],
  accepted: new Map(),
};

export type AskedFlag = "--fresh" | "--from" | "--only" | "--redo" | "--accept-unknown";

export interface AskedFinding {
  readonly because:
    | "unknown-step"
    | "from-with-only"
    /** A job that only begins has nothing to decide about. */
    | "accept-with-fresh"
    /** `resume` goes on with what there is. */
    | "resume-with-fresh"
    /** A person has said two things about one step. */
    | "redo-with-accept";
  readonly flag: AskedFlag;
  /** The step that is named there, or the other flag. */
  readonly subject: string;
}

export function checkAsked(steps: readonly StepNode[], asked: AskedOfJob): readonly AskedFinding[] {
  const names = new Set(steps.map(({ name }) => name));
  const unknown = listNamed(asked).filter(({ subject }) => !names.has(subject));
  return [
    ...unknown.map((named) => ({ because: "unknown-step" as const, ...named })),
    ...checkTogether(asked),
  ];
}

function listNamed(asked: AskedOfJob): { flag: AskedFlag; subject: string }[] {
  const of = (flag: AskedFlag, subjects: Iterable<string | undefined>) =>
    [...subjects].flatMap((subject) => (subject === undefined ? [] : [{ flag, subject }]));
  return [
    ...of("--from", [asked.from]),
    ...of("--only", [asked.only]),
    ...of("--redo", asked.redo),
    ...of("--accept-unknown", asked.accepted.keys()),
  ];
}

function checkTogether(asked: AskedOfJob): AskedFinding[] {
  const { from, only, accepted, isFresh } = asked;
  const found: AskedFinding[] = [];
  if (from !== undefined && only !== undefined) {
    found.push({ because: "from-with-only", flag: "--from", subject: "--only" });
  }
  if (isFresh && accepted.size > 0) {
    found.push({ because: "accept-with-fresh", flag: "--accept-unknown", subject: "--fresh" });
  }
  if (isFresh && asked.verb === "resume") {
    found.push({ because: "resume-with-fresh", flag: "--fresh", subject: "resume" });
  }
  const both = new Set(asked.redo.filter((step) => accepted.has(step)));
  return [
    ...found,
    ...[...both].map((subject) => ({
      because: "redo-with-accept" as const,
      flag: "--redo" as const,
      subject,
    })),
  ];
}
