/**
 * The fields of the answers about jobs of many steps in JSON: `job status`, `job plan`,
 * `job verify`. A part of the table in answer-fields.ts; never loaded by an answer.
 */

import { STEP_REASONS } from "../core/step-reasons.ts";
import { nameAll } from "./dependency-fields.ts";
import type { Meanings } from "./dependency-fields.ts";

const REASONS = nameAll(Object.keys(STEP_REASONS));

export function jobFields(): Meanings {
  return {
    job: "name of the job",
    job_id:
      "id of this execution of its steps, null: none was ever begun, and all else that is told " +
      "of one is null, too",
    file: "the job file, as an absolute path",
    is_of_other_file:
      "true: the newest job of this name is that of `file`, and not of the file that was asked " +
      "about",
    directory: "its directory: where the steps run",
    state:
      "`running`, `done`, `failed`, `unknown` (a person must decide), `interrupted`, " +
      "`over` (begun for one step alone, which is done; `job run` begins anew), or " +
      "`interrupted-can-resume`: nobody runs it any more, and nobody wrote down that it " +
      "ended; null: none was begun",
    run_id: "id of the run that has it now, or had it last",
    generation: "number of the grant of its lease under which it was written",
    begun_at: "when it was begun (wall clock, UTC)",
    changed_at: "when something of it was last written",
    ended_at: "when it ended, null: it has not",
    steps: "the steps in the order in which they run",
    "steps[].step": "name of the step",
    "steps[].state":
      "`pending`, `running`, `interrupted`, `done`, `failed`, `unknown`, `blocked` (what it " +
      "needs has failed or waits for a person) or `removed` (from the file)",
    "steps[].because": `why: ${REASONS}; null: nothing to tell`,
    "steps[].waits_for_person": "true: nothing goes on with it before a person has decided",
    "steps[].blocked_by": "steps that block it, at most three",
    "steps[].attempt": "how often it was started in this job",
    "steps[].generation": "number of the grant under which its state was written",
    "steps[].run_id": "id of the run that wrote it, null: none",
    "steps[].started_at": "when it was last started, null: never",
    "steps[].ended_at": "when that attempt ended, null: it has not",
    "steps[].exit_code": "exit code of its command, null: it did not exit",
    "steps[].signal": "signal that its command died of, null: none",
    "steps[].detail": "more about the state, for people, null: nothing",
    "steps[].artifacts": "what it has left when it was done",
    "steps[].artifacts[].path": "its path, below `directory`",
    "steps[].artifacts[].kind": "`file` or `directory`",
    "steps[].artifacts[].bytes": "of a directory: of all its files together",
    "steps[].artifacts[].sha256": "of the file, or of the manifest of the directory",
    questions: "what a person must decide",
    "questions[].step": "about which step",
    "questions[].why": "why nobody knows whether it has happened",
    "questions[].answers":
      "each answer that can be given; none: the step must be put back into the file first",
    "questions[].answers[].answer": "`retry`, `done` or `fail`",
    "questions[].answers[].command": "the line that gives it, null: it cannot be pasted",
    resume:
      "the line that goes on with the job, null: there is nothing to go on with, or only with " +
      "`--redo` of a step that a person has called failed",
  };
}

export function jobPlanFields(): Meanings {
  return {
    job: "name of the job",
    kind: "`begin`: a new job; `resume`: the unfinished one",
    is_held:
      "true: somebody has the lease of the job, or nobody can tell; `job run` would be refused, " +
      "and the rest is what it would do were that one killed now",
    steps: "the steps in the order in which they would run",
    "steps[].step": "name of the step",
    "steps[].todo":
      "`run`; `settle`: its settle command would be asked; `person`: a person must decide; " +
      "`blocked`: what it needs would not be done; `nothing`",
    "steps[].state": "what it is now",
    "steps[].because":
      `why: ${REASONS}, \`not-begun\`, \`never-done\` or \`inputs-undeclared\`; ` +
      "null: nothing to tell",
    "steps[].blocked_by": "steps that block it, at most three",
    "steps[].removes_artifacts": "true: what it has left is removed before it runs",
    "steps[].detail": "more about it, for people, null: nothing",
    missing:
      "lines about an input, or the directory of a step, that is not there and that no step " +
      "before it would make",
  };
}

export function jobVerifyFields(): Meanings {
  return {
    file: "the job file, as it was given",
    job: "name of the job, null: the file is none",
    findings:
      "lines about what is wrong in the file, not as a step has left it, or not there: an " +
      "input, or the directory of a step, that no step before may still make; also that the " +
      "newest job of this name is that of another file",
  };
}
