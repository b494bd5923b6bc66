/**
 * Cuts the lines of `watchdog job`.
 *
 * Prints nothing and looks at no file, not even at that of the job: what it is as a run is finished
 * when its name is known (finish-job.ts).
 */

import { checkAsked } from "../core/job-asked.ts";
import type { AskedFinding, AskedOfJob } from "../core/job-asked.ts";
import type { Cut, JobAsking } from "./cut.ts";
import { cutWordsAndOptions } from "./cut-asked.ts";
import type { Operand, WordsReading } from "./cut-asked.ts";
import { isOptionLike, problem, replacedAt } from "./cut-options.ts";
import type { Problem, Variables } from "./cut-options.ts";
import { JOB_COMMANDS } from "./job-table.ts";
import type { JobPart } from "./job-table.ts";
import { nearestOf } from "./nearest.ts";
import type { CommandRow } from "./option-row.ts";
import { showWord } from "./shown-words.ts";
import { parsePath } from "./values.ts";

type Verb = "run" | "resume" | "plan" | "status" | "verify" | "schema";

const VERBS: readonly Verb[] = ["run", "resume", "plan", "status", "verify", "schema"];

export function cutJob(words: readonly string[], variables: Variables): Cut | Problem {
  const [, second] = words;
  const verb = VERBS.find((each) => each === second);
  const command = JOB_COMMANDS.find(({ name }) => name === `job ${verb ?? ""}`);
  if (second === "--help" || second === "-h") return { kind: "help", topic: "job" };
  if (verb === undefined || command === undefined) return refuseVerb(words, second);
  const reading = cutWordsAndOptions(words, 2, command, variables);
  if (reading.kind === "help") return { kind: "help", topic: "job" };
  if (reading.kind === "problem") return reading;
  if (verb === "schema") return cutSchema(words, reading);
  const file = readFile(words, command, reading.operands);
  if (typeof file !== "string") return file;
  return finish(words, verb, { file, reading });
}

function refuseVerb(words: readonly string[], second: string | undefined): Problem {
  const expected = `expected ${JOB_COMMANDS.map(({ name }) => name).join(", ")}`;
  if (second === undefined) {
    return problem(`job alone asks nothing, ${expected}`, [{ words: ["help", "job"] }]);
  }
  const laterAt = words.findIndex(
    (word, at) => at > 1 && (VERBS as readonly string[]).includes(word),
  );
  const message = `found ${showWord(second)} behind job, ${expected}`;
  if (isOptionLike(second) && laterAt > 0) {
    const verb = words[laterAt] ?? "";
    const rest = [...words.slice(1, laterAt), ...words.slice(laterAt + 1)];
    return problem(message, [{ words: ["job", verb, ...rest] }]);
  }
  const near = nearestOf(second, VERBS);
  const repairs = near === undefined ? [] : [replacedAt(words, 1, 1, near)];
  // A file alone is most likely to be run; a bare word may be a command that we do not have.
  if (/[./]/.test(second)) repairs.push({ words: ["job", "run", ...words.slice(1)] });
  return problem(message, repairs);
}

type Reading = WordsReading<JobPart>;

function cutSchema(words: readonly string[], { operands }: Reading): Cut | Problem {
  const [first] = operands;
  if (first === undefined) return { kind: "job-schema" };
  const message = `job schema takes no word beside its options, found ${showWord(first.text)}`;
  return problem(message, [replacedAt(words, first.at, 1)]);
}

function readFile(
  words: readonly string[],
  { name, usage }: CommandRow<JobPart>,
  operands: readonly Operand[],
): string | Problem {
  const [first, second] = operands;
  if (first === undefined) return problem(`${name} was given no file, expected ${usage}`);
  if (second !== undefined) {
    const message = `${name} is about one file, found ${showWord(second.text)} too`;
    return problem(message, [replacedAt(words, second.at, 1)]);
  }
  const path = parsePath(first.text);
  if (path.kind === "value") return path.value;
  return problem(`${name}: found ${showWord(first.text)}, expected ${path.expected}`);
}

interface About {
  readonly file: string;
  readonly reading: Reading;
}

function finish(
  words: readonly string[],
  verb: Exclude<Verb, "schema">,
  { file, reading }: About,
): Cut | Problem {
  const { parts, given } = reading;
  const said: JobPart = Object.assign({}, ...parts);
  const { isJson = false, isWatching = false, isDryRun = false, maxParallel } = said;
  const { stateDir, configFile } = said;
  const place = { file, stateDir, configFile };
  if (verb === "verify") return { kind: "job-verify", ...place, isJson };
  if (verb === "status") {
    return isJson && isWatching
      ? refuseTogether(words, "--watch draws a picture", "--json", "--watch")
      : { kind: "job-status", ...place, isJson, isWatching };
  }
  const twice = refuseTwice(parts);
  if (twice !== undefined) return twice;
  const asking: JobAsking = { asked: collectAsked(verb, parts, said), maxParallel };
  const refusal = refuseAsked(words, asking.asked);
  if (refusal !== undefined) return refusal;
  if (verb === "plan" || isDryRun) return { kind: "job-plan", ...place, ...asking, isJson };
  if (isJson) {
    const message = `job ${verb} passes on what its steps print, and --json is for --dry-run alone`;
    const asPlan = { words: words.toSpliced(2, 0, "--dry-run") };
    return problem(`${message}: found no --dry-run`, [asPlan]);
  }
  return { kind: "job-run", ...place, ...asking, line: { words, given, parts } };
}

function collectAsked(
  verb: "run" | "resume" | "plan",
  parts: readonly JobPart[],
  { isFresh = false, from, only }: JobPart,
): AskedOfJob {
  return {
    verb: verb === "resume" ? "resume" : "run",
    isFresh,
    from,
    only,
    redo: [...new Set(parts.flatMap(({ redo = [] }) => redo))],
    accepted: new Map(parts.flatMap(({ accepted = [] }) => accepted)),
  };
}

/**
 * Of two that say different things about the steps the last does not win: one of them was meant,
 * and the other one may pay twice. None is offered in their place.
 */
function refuseTwice(parts: readonly JobPart[]): Problem | undefined {
  const steps = (key: "from" | "only"): string[] => [
    ...new Set(parts.flatMap((part) => part[key] ?? [])),
  ];
  for (const key of ["from", "only"] as const) {
    const [first, second] = steps(key);
    if (first === undefined || second === undefined) continue;
    return problem(
      `--${key} names one step, found ${showWord(first)} and ${showWord(second)}, expected one`,
    );
  }
  const answers = new Map<string, string>();
  for (const [step, as] of parts.flatMap(({ accepted = [] }) => accepted)) {
    const before = answers.get(step) ?? as;
    if (before !== as) {
      const found = `found ${before} and ${as}, expected one`;
      return problem(`--accept-unknown decides about ${showWord(step)} once, ${found}`);
    }
    answers.set(step, as);
  }
  return undefined;
}

/** What contradicts itself whatever steps there are. */
function refuseAsked(words: readonly string[], asked: AskedOfJob): Problem | undefined {
  const found = checkAsked([], asked).find(({ because }) => because !== "unknown-step");
  if (found === undefined) return undefined;
  // What a person has decided is not to be lost by a hint that begins anew.
  const without = found.because === "accept-with-fresh" ? "--fresh" : found.flag;
  return problem(describeAsked(found), [{ words: withoutFlag(words, without) }]);
}

export function describeAsked({ because, flag, subject }: AskedFinding): string {
  switch (because) {
    case "unknown-step":
      return `${flag}: found ${showWord(subject)}, expected the name of a step`;
    case "from-with-only":
      return "--from runs all that depends on a step, found --only beside it, expected one of them";
    case "accept-with-fresh":
      return "--accept-unknown decides about an unfinished job, found --fresh, which begins anew";
    case "resume-with-fresh":
      return "job resume goes on with what there is, found --fresh, which begins anew";
    case "redo-with-accept":
      return `--redo and --accept-unknown both decide about ${showWord(subject)}, expected one`;
  }
}

function refuseTogether(
  words: readonly string[],
  about: string,
  found: string,
  without: string,
): Problem {
  return problem(`${about}, found ${found} beside it`, [{ words: withoutFlag(words, without) }]);
}

/** The line without an option, with its value where it has one. */
function withoutFlag(words: readonly string[], flag: string): string[] {
  const row = JOB_COMMANDS.flatMap(({ rows }) => rows).find((each) => each.flag === flag);
  const count = row?.kind === "switch" ? 1 : 2;
  return words.filter((word, at) => {
    if (word.startsWith(`${flag}=`)) return false;
    const from = words.slice(Math.max(0, at - count + 1), at + 1).lastIndexOf(flag);
    return from < 0;
  });
}
