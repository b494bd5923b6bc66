/**
 * What one run has brought about: looks at the files again, asks the output what was found in it,
 * compares with the good runs before. Decides nothing itself (core/checks.ts, core/suspicion.ts).
 *
 * Always: judged once, when the tree is gone, and only where the command itself has ended well. No
 * trouble of it is a success: what could not be looked at is a check that has failed.
 */
import { resolve } from "node:path";
import {
  type CheckResult,
  decideChecks,
  listFailures,
  type OutputFactsOfRun,
} from "../../core/checks.ts";
import type { OutcomeFacts } from "../../core/outcome.ts";
import { type FileFacts, listResults, sumBytes } from "../../core/file-changes.ts";
import type { RecordedArtifact, RunRecord } from "../../core/run-record.ts";
import { isOfOneStep } from "../../core/one-step.ts";
import { decideSuspicions, type Measure, MOST_RUNS, type Suspicion } from "../../core/suspicion.ts";
import { renderIso, spanMs } from "../../core/time.ts";
import type { GoodRun } from "../../journal/good-runs.ts";
import { monotonicNow } from "../../os/clock.ts";
import { faultPoint } from "../../os/faults.ts";
import { ownMask } from "../../os/mask.ts";
import type { Course } from "../course.ts";
import { messages } from "../messages.ts";
import type { RunOutput } from "../output.ts";
import type { RunResults } from "../record.ts";
import { type Look, lookAtFiles } from "./expected-files.ts";
import { showSuspicion } from "../../core/check-words.ts";

export interface Judged {
  readonly results: RunResults;
  readonly failedChecks: OutcomeFacts["failedChecks"];
}

/** @param before  of the expected files, right before the start */
export async function judgeRun(
  course: Course,
  output: RunOutput,
  before: readonly Look[],
): Promise<Judged> {
  const { options, identity, journal, ledger } = course;
  const durationMs = spanMs(identity.startedAt, monotonicNow()) - ledger.pausedMs;
  faultPoint("checks.judge", { runId: identity.runId, files: options.expectFiles.length });
  const isOfJob = !isOfOneStep(course.request.program?.readVerdict() ?? { because: null });
  const found = journal?.goodRuns(identity.jobName, MOST_RUNS) ?? "unread";
  // What one step takes is compared with no run of them all.
  const good = isOfJob ? found : [];
  if (good === "unread") tellUncompared(course);
  const files = await factsOfFiles(course, before, good);
  const seen = hideInLines(await output.read());
  const checks = decideChecks({ asked: options, files, output: seen, durationMs });
  const artifacts = files.flatMap((facts) => artifactOf(facts, identity.cwd));
  const suspicions = good === "unread" ? [] : compare(good, { durationMs, artifacts, output });
  const all = options.isStrict ? [...checks, ...suspicions.map(strictly)] : checks;
  return { results: { checks: all, artifacts, suspicions }, failedChecks: listFailures(all) };
}

/** Before a check quotes a part of a line: half a secret would be found by no mask. */
function hideInLines(seen: OutputFactsOfRun | undefined): OutputFactsOfRun | undefined {
  if (seen === undefined) return undefined;
  const mask = ownMask();
  const patterns = seen.patterns.map((one) =>
    one.line === undefined ? one : { ...one, line: mask.text(one.line) },
  );
  return { ...seen, patterns };
}

/** Trouble with the journal fails no run, but nobody may take this for a comparison. */
function tellUncompared({ options, ledger }: Course): void {
  const hasRatio = options.expectFiles.some(({ minRatio }) => minRatio !== undefined);
  if (!options.isStrict && !hasRatio) return;
  ledger.noteDegraded("history-unread");
  ledger.tellOnce(messages.historyUnread());
}

async function factsOfFiles(
  { options, identity }: Course,
  before: readonly Look[],
  good: readonly GoodRun[] | "unread",
): Promise<readonly FileFacts[]> {
  if (options.expectFiles.length === 0) return [];
  const after = await lookAtFiles(identity.cwd, options.expectFiles, "end");
  const last = good === "unread" ? good : good.find(({ isOk }) => isOk);
  return options.expectFiles.map((expectation, index) => ({
    expectation,
    isDirectory: after[index]?.isDirectory ?? false,
    before: before[index]?.sight ?? NOT_LOOKED,
    after: after[index]?.sight ?? NOT_LOOKED,
    startedAt: identity.startedWallAt,
    lastGoodBytes: last === "unread" ? last : bytesOf(last, expectation.target),
  }));
}

const NOT_LOOKED = { kind: "unread", reason: "nobody has looked" } as const;

function bytesOf(run: GoodRun | undefined, target: string): number | undefined {
  // A record of an earlier version has none.
  const artifacts: RunRecord["artifacts"] | undefined = run?.record.artifacts;
  // The journal holds it without secrets.
  const masked = ownMask().text(target);
  return artifacts?.find((one) => one.target === target || one.target === masked)?.bytes;
}

function artifactOf(facts: FileFacts, cwd: string | undefined): readonly RecordedArtifact[] {
  const found = listResults(facts);
  if (found.length === 0) return [];
  const { target } = facts.expectation;
  const newest = Math.max(...found.map(({ changedAt }) => changedAt));
  return [
    {
      path: resolve(cwd ?? "/", target),
      target,
      files: found.length,
      bytes: sumBytes(found),
      changed_at: renderIso(newest),
    },
  ];
}

interface Measured {
  readonly durationMs: number;
  readonly artifacts: readonly RecordedArtifact[];
  readonly output: RunOutput;
}

function compare(good: readonly GoodRun[], measured: Measured): readonly Suspicion[] {
  const records = good.map(({ record }) => record);
  const { durationMs, artifacts, output } = measured;
  const outputBytes = bytesOfOutput(output.summary());
  const measures: Measure[] = [
    {
      name: "duration_ms",
      value: Math.round(durationMs),
      before: records.flatMap(({ duration_ms: all, paused_ms: paused }) =>
        all === null ? [] : all - paused,
      ),
    },
    ...(outputBytes === undefined
      ? []
      : [
          {
            name: "output_bytes",
            value: outputBytes,
            before: records.flatMap((record) => bytesOfOutput(record.output) ?? []),
          } as const,
        ]),
    ...artifacts.map(({ target, bytes }) => ({
      name: `artifact_bytes:${target}` as const,
      value: bytes,
      before: good.flatMap((run) => bytesOf(run, target) ?? []),
    })),
  ];
  return decideSuspicions(measures);
}

/** Only where all of it was seen. */
function bytesOfOutput({
  is_copied,
  stdout_bytes,
  stderr_bytes,
}: RunRecord["output"]): number | undefined {
  return is_copied && stdout_bytes !== null ? stdout_bytes + (stderr_bytes ?? 0) : undefined;
}

function strictly(suspicion: Suspicion): CheckResult {
  const { found, expected } = showSuspicion(suspicion);
  const because = "suspicious";
  return { check: "strict", target: suspicion.measure, passed: false, because, found, expected };
}
