/**
 * What a patrol has found, for people and for programs, and what every other command says on its
 * way of jobs that are overdue. Pure text; decides nothing.
 */

import { renderKey } from "../core/lease-key.ts";
import type { OverdueDecision } from "../core/overdue.ts";
import type { PatrolFinding, PatrolStanding } from "../core/patrol.ts";
import { renderIso } from "../core/time.ts";
import type { JobSight, LeaseSight, PatrolReport } from "../patrol/request.ts";
import type { Told } from "../patrol/telling.ts";
import {
  renderAge,
  renderColumns,
  renderCount,
  renderInstant,
  renderLines,
  renderSpanText,
} from "./render-words.ts";
import { escapeUnprintable } from "../core/printable.ts";

/** All that is known, what is wrong first. */
export function renderPatrol(report: PatrolReport): string {
  const wrong = describeWrong(report);
  const head = wrong.length === 0 ? [describeNothing(report)] : wrong;
  const blocks = [head, ...describeMarked(report), ...describeJobs(report), describeRest(report)];
  return blocks.map((lines) => renderLines(lines.map(escapeUnprintable))).join("\n");
}

/** Where something could not be read, what was not found may be there all the same. */
function describeNothing({ isComplete }: PatrolReport): string {
  return isComplete ? "all is well" : "nothing wrong was found, as far as one can see";
}

/** What has changed since the patrol before; empty where nothing has. */
export function renderNews(report: PatrolReport): string {
  const { news, overdueNews, at } = report;
  const byName = new Map(report.jobs.map((job) => [job.schedule.job, job]));
  const lines = [
    ...news.opened.map((finding) => describeFinding(report, finding)),
    ...news.closed.map((one) => `${nameOf(one)}: no longer ${one.state}`),
    ...overdueNews.opened.flatMap((name) => {
      const job = byName.get(name);
      return job === undefined ? [] : [`${name}: ${describeJob(job, at)}`];
    }),
    ...overdueNews.closed.map((name) => `${name}: no longer overdue`),
    ...report.marked.map((key) => `${renderKey(key)}: its run was killed; it is marked as over`),
    ...report.abandoned.map((runId) => `run ${runId}: its watchdog was killed, and it lives on`),
  ];
  return renderLines(lines.map(escapeUnprintable));
}

function describeWrong(report: PatrolReport): string[] {
  const jobs = report.jobs.filter(({ decision }) => decision.kind !== "fine");
  return [
    ...report.findings.map((finding) => describeFinding(report, finding)),
    ...jobs.map((job) => `${job.schedule.job}: ${describeJob(job, report.at)}`),
  ];
}

function nameOf({ kind, subject }: PatrolFinding): string {
  return kind === "circuit" ? `circuit ${subject}` : subject;
}

function describeFinding(report: PatrolReport, finding: PatrolFinding): string {
  switch (finding.kind) {
    case "lease": {
      const seen = report.leases.find(({ key }) => renderKey(key) === finding.subject);
      return `${finding.subject}: ${describeLease(finding, seen)}`;
    }
    case "circuit": {
      const seen = report.circuits.find(({ name }) => name === finding.subject);
      const since = seen?.sinceAt === null ? undefined : seen?.sinceAt;
      return `circuit ${finding.subject}: ${finding.because} since ${renderInstant(since)}`;
    }
    case "room":
      return `${report.stateDirectory}: its file system is nearly full (${describeRoom(report)})`;
    case "outbox":
      return `outbox: ${report.outbox?.dead ?? 0} notices were given up; watchdog notify list`;
    case "journal":
      return `journal: entries in spool/ are ${finding.because}; watchdog doctor`;
  }
}

function describeLease({ state, because }: PatrolFinding, seen: LeaseSight | undefined): string {
  const verdict = `${state} (${seen?.rule ?? ""} ${because})`;
  const beatAgeMs = seen?.beatAgeMs ?? null;
  const beat =
    state === "stalled" && beatAgeMs !== null ? `, last beat ${renderAge(beatAgeMs)}` : "";
  return `${verdict}${beat}`;
}

function describeMarked({ marked, abandoned }: PatrolReport): string[][] {
  const lines = [
    ...marked.map((key) => `${renderKey(key)}: its run was killed; marked as over`),
    ...abandoned.map((runId) => `run ${runId}: its watchdog was killed; written down as abandoned`),
  ];
  return lines.length === 0 ? [] : [lines];
}

function describeJobs({ jobs, at }: PatrolReport): string[][] {
  if (jobs.length === 0) return [];
  const rows = jobs.map((job) => [`  ${job.schedule.job}`, describeJob(job, at)]);
  return [["jobs with a schedule", ...renderColumns(rows)]];
}

function describeRest(report: PatrolReport): string[] {
  const { leases, outbox } = report;
  const held = leases.filter(({ verdict }) => verdict === "held").length;
  const rows = [
    ["leases", `${renderCount(leases.length, "key", "keys")}, ${held} held`],
    ["circuits", `${report.circuits.length} not closed`],
    ...(outbox === undefined
      ? []
      : [["outbox", `${outbox.waiting} waiting, ${outbox.dead} given up`]]),
    ["room", describeRoom(report)],
  ];
  return renderColumns(rows);
}

const MIB = 1024 ** 2;

function describeRoom({ room }: PatrolReport): string {
  if (room === undefined) return "not limited, or unknown";
  return `${Math.floor(room.freeBytes / MIB)} MiB free`;
}

const UNSURE: Readonly<Record<Extract<OverdueDecision, { kind: "unsure" }>["because"], string>> = {
  "clock-set-back": "its last success lies in the future: the clock was wrong then, or is now",
  "no-calendar": "its schedule or its time zone cannot be read here",
  "no-more-times": "its schedule has no more times",
};

export function describeJob({ schedule, decision, runningSince }: JobSight, now: number): string {
  if (decision.kind === "unsure") return `unsure: ${UNSURE[decision.because]}`;
  const { lastSuccessAt } = schedule;
  const success =
    lastSuccessAt === null ? "no success yet" : `last success ${renderAge(now - lastSuccessAt)}`;
  if (decision.kind === "fine") {
    const state = runningSince === undefined ? "on time" : "running";
    return `${state}, due ${renderInstant(decision.dueAt)}; ${success}`;
  }
  const since = renderInstant(decision.since);
  return `overdue since ${since}: ${describeWhy({ schedule, decision, runningSince })}; ${success}`;
}

function describeWhy({ schedule, decision, runningSince }: JobSight): string {
  if (decision.kind !== "overdue") return "";
  const { lastFailure, lastRefusal, lastRefusalAt, lastStartAt } = schedule;
  const isRefused = lastRefusalAt !== null && lastRefusalAt > (lastStartAt ?? 0);
  const refusal = isRefused ? `, the last try was refused (${lastRefusal ?? "unknown"})` : "";
  switch (decision.because) {
    case "never-started":
      return `never started${refusal}`;
    case "not-started":
      return `not started${refusal}`;
    case "failing":
      return `failing${lastFailure === null ? "" : `, the last run ended as ${lastFailure}`}`;
    case "running-too-long":
      return `running too long, since ${renderInstant(runningSince)}`;
    case "started-late":
      return `started late, at ${renderInstant(runningSince)}, and running`;
  }
}

/** So many jobs are named on the way. */
const MOST_TOLD = 3;

/** For stderr, of any other command; without who says them. */
export function describeTold({ overdue, patrol, now }: Told): string[] {
  const lines = overdue
    .slice(0, MOST_TOLD)
    .map((job) => `${job.schedule.job} is ${describeJob(job, now)}`);
  const more = overdue.length - lines.length;
  if (more > 0) lines.push(`${renderCount(more, "more job is", "more jobs are")} overdue`);
  const hint = overdue.length > 0 ? ["hint: watchdog patrol"] : [];
  return [...lines, ...hint, ...describeStanding(patrol)].map(escapeUnprintable);
}

function describeStanding(patrol: PatrolStanding): string[] {
  if (patrol.kind !== "stopped") return [];
  const [age, period] = [renderSpanText(patrol.ageMs), renderSpanText(patrol.periodMs)];
  return [
    `the patrol has stopped: the last one was ${age} ago, expected every ${period}`,
    "hint: watchdog patrol --retire if none is meant to come",
  ];
}

/** As `patrol --json` shows it. A contract; ignore unknown fields. */
export function showPatrol(report: PatrolReport): Record<string, unknown> {
  return {
    format: 1,
    state_directory: report.stateDirectory,
    at: showInstant(report.at),
    findings: report.findings.map(showFinding),
    opened: report.news.opened.map(showFinding),
    closed: report.news.closed.map(showFinding),
    marked: report.marked.map(renderKey),
    abandoned: report.abandoned,
    jobs: report.jobs.map(showJob),
    newly_overdue: report.overdueNews.opened,
    no_longer_overdue: report.overdueNews.closed,
    verdicts: report.leases.map(showSight),
    open_circuits: report.circuits.map(({ name, state, target, job, sinceAt }) => ({
      name,
      state,
      target,
      job,
      since: showInstant(sinceAt),
    })),
    outbox: report.outbox ?? null,
    room:
      report.room === undefined
        ? null
        : {
            free_bytes: report.room.freeBytes,
            total_bytes: report.room.totalBytes,
            is_low: report.room.isLow,
          },
    last_patrol_at: showInstant(report.last?.at ?? null),
    troubles: report.troubles,
  };
}

function showFinding({ kind, subject, state, because, runId, job }: PatrolFinding): object {
  return { kind, subject, state, because, run_id: runId, job };
}

function showSight({ key, verdict, rule, because, runId, job, beatAgeMs }: LeaseSight): object {
  const age = beatAgeMs === null ? null : Math.round(beatAgeMs);
  return {
    key: renderKey(key),
    verdict,
    rule,
    because,
    run_id: runId,
    job,
    heartbeat_age_ms: age,
  };
}

function showJob({ schedule, decision, runningSince }: JobSight): object {
  const isJudged = decision.kind !== "unsure";
  const overdueSince = decision.kind === "overdue" ? decision.since : null;
  const lateAt = decision.kind === "fine" ? decision.lateAt : null;
  return {
    job: schedule.job,
    state: decision.kind,
    because: decision.kind === "fine" ? null : decision.because,
    due_at: showInstant(isJudged ? decision.dueAt : null),
    late_at: showInstant(lateAt),
    overdue_since: showInstant(overdueSince),
    every_ms: schedule.everyMs,
    schedule: schedule.cron,
    time_zone: schedule.timeZone,
    declared_at: showInstant(schedule.declaredAt),
    declared_by: schedule.declaredBy,
    running_since: showInstant(runningSince ?? null),
    last_start_at: showInstant(schedule.lastStartAt),
    last_success_at: showInstant(schedule.lastSuccessAt),
    last_failure_at: showInstant(schedule.lastFailureAt),
    last_failure: schedule.lastFailure,
    last_refusal_at: showInstant(schedule.lastRefusalAt),
    last_refusal: schedule.lastRefusal,
  };
}

function showInstant(at: number | null): string | null {
  return at === null ? null : renderIso(at);
}
