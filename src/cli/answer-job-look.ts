/**
 * What `watchdog job status`, `plan` and `verify` answer: they look at the job file, at what the
 * journal knows of the job and at its artifacts, and change nothing.
 *
 * Always: looking spoils no resume; what cannot be read is told as such.
 */
import { EXIT, WatchdogError } from "../core/errors.ts";
import { type JobView, viewOfJob } from "../core/job-view.ts";
import type { Sights } from "../core/job-missing.ts";
import type { PlannedStep } from "../core/job-plan.ts";
import type { JobSpec, StepSpec } from "../core/job-spec.ts";
import { quoteForShell } from "../core/own-command.ts";
import { renderKey } from "../core/lease-key.ts";
import type { JobRecord } from "../core/step-record.ts";
import { isTaken } from "../inspect/lease-facts.ts";
import { readLeases } from "../inspect/leases.ts";
import { ArtifactHandle } from "../job/artifact-handle.ts";
import { decideBeginning } from "../job/begin-job.ts";
import { messages } from "../job/messages.ts";
import { findMissing } from "../job/missing.ts";
import { findAlreadyDone } from "../job/telling.ts";
import { readNewestJob, recallJob, type StoredJob } from "../journal/job-queries.ts";
import { placeIn } from "../os/own-line.ts";
import { wallNow } from "../os/clock.ts";
import { readScreenSize } from "../os/screen.ts";
import { type Answer, type AnswerContext, lookFrom } from "./answer.ts";
import type { JobPlanCut, JobStatusCut, JobVerifyCut } from "./cut.ts";
import { checkAskedOf } from "./finish-job.ts";
import { renderFinding } from "./job-findings.ts";
import { isNoFile, type JobReading, loadJob, readJob, refuseJob } from "./load-job.ts";
import { explainMissing, findNamedJob } from "./named-job.ts";
import { stepsToTell } from "./plan-steps.ts";
import { renderJobPlan, renderJobStatus } from "./render-job.ts";
import { renderJobWatch } from "./render-job-watch.ts";
import { renderCount, renderJson, renderLines } from "./render-words.ts";
import type { ReadSettings } from "./settings.ts";
import { showJob, showNoJob, showPlan } from "./show-job.ts";
import { watch } from "./watch.ts";

export interface JobAround extends AnswerContext {
  readonly readSettings: ReadSettings;
  /** Of job/artifact-worker.ts. */
  readonly artifactUrl: URL;
  readonly variables: Readonly<Record<string, string | undefined>>;
}

export function answerJobLook(
  cut: JobStatusCut | JobPlanCut | JobVerifyCut,
  around: JobAround,
): Promise<Answer> {
  switch (cut.kind) {
    case "job-status":
      return answerJobStatus(cut, around);
    case "job-plan":
      return answerJobPlan(cut, around);
    case "job-verify":
      return answerJobVerify(cut, around);
  }
}

interface Viewed {
  readonly stored: StoredJob;
  readonly view: JobView;
  /** The file that was asked about, where it is not that of the job. */
  readonly askedFile: string | undefined;
  readonly troubles: readonly string[];
}

/** @throws WatchdogError "config.refused" (78) where the file is no job, "state.unusable" (125) */
async function answerJobStatus(cut: JobStatusCut, around: JobAround): Promise<Answer> {
  if (cut.isWatching) return watchJob(cut, around);
  const { name, viewed } = await view(cut, around);
  const recalled = await recallJob(around.stateDirectory, name);
  const lost = recalled.kind === "lost" ? [recalled.reason] : [];
  if (viewed === undefined) return tellNothing(name, cut.isJson, lost);
  const { stored, view: shown, askedFile } = viewed;
  const { record } = stored;
  const troubles = [...viewed.troubles, ...lost];
  const lines = [...troubles];
  if (cut.isJson) {
    const isOfOtherFile = askedFile !== undefined;
    const text = renderJson(showJob({ record, view: shown, isOfOtherFile, troubles }));
    return { text, lines, code: EXIT.ok };
  }
  const columns = readScreenSize()?.columns;
  const text = renderJobStatus({ record, view: shown, askedFile, now: wallNow(), columns });
  return { text, lines, code: EXIT.ok };
}

/** @param troubles  none: the journal would know of it */
function tellNothing(name: string, isJson: boolean, troubles: readonly string[]): Answer {
  const [lost] = troubles;
  const line =
    lost === undefined
      ? `no job ${name} of many steps was ever begun here`
      : `what has become of job ${name} is not known: ${lost}`;
  if (!isJson) return { text: renderLines([line]), lines: [], code: EXIT.ok };
  return { text: renderJson(showNoJob(name, troubles)), lines: [], code: EXIT.ok };
}

function watchJob(cut: JobStatusCut, around: JobAround): Promise<Answer> {
  const { ignoredSignals = 0n, terminalKind } = around;
  return watch({
    command: "job status",
    hint: quoteForShell(["watchdog", "job", "status", cut.file]),
    ignoredSignals,
    terminalKind,
    look: async () => {
      const { name, viewed } = await view(cut, around);
      if (viewed !== undefined) return viewed;
      throw new WatchdogError("usage", `no job ${name} of many steps was ever begun here`);
    },
    draw: ({ stored: { record }, view: shown, askedFile }, size, clock) =>
      renderJobWatch({ record, view: shown, askedFile, now: wallNow(), size, clock }),
  });
}

/** The file of a job, or the name of one that the journal knows. */
async function view(
  { file, configFile }: JobStatusCut,
  around: JobAround,
): Promise<{ readonly name: string; readonly viewed: Viewed | undefined }> {
  const { stateDirectory } = around;
  const found = findNamedJob(file, stateDirectory, around.readSettings(configFile));
  const { name, stored, spec, askedFile, troubles } = found;
  if (stored === undefined) return { name, viewed: undefined };
  const { record, because, sideEffects: startedAs } = stored;
  const isLive = record.state === "running" && (await isHeld(name, around));
  const shown = placed(viewOfJob({ record, because, isLive, steps: spec?.steps, startedAs }));
  return { name, viewed: { stored, view: shown, askedFile, troubles } };
}

/** Its commands look where this one did. */
function placed(view: JobView): JobView {
  const { resume } = view;
  const questions = view.questions.map((question) => {
    const answers = question.answers.map(({ accepted, command }) => {
      return { accepted, command: command === undefined ? undefined : placeIn(command) };
    });
    return { ...question, answers };
  });
  return { ...view, questions, resume: resume === undefined ? undefined : placeIn(resume) };
}

async function isHeld(name: string, around: JobAround): Promise<boolean> {
  const { stateDirectory } = around;
  const own = renderKey({ kind: "job", name });
  const leases = await readLeases(
    { stateDirectory, isAsked: ({ key }) => renderKey(key) === own },
    lookFrom(around),
  );
  return leases.some(isTaken);
}

/** @throws WatchdogError "config.refused" (78), "usage" (64) */
async function answerJobPlan(cut: JobPlanCut, around: JobAround): Promise<Answer> {
  const explain = explainMissing(around.stateDirectory, "plan");
  const spec = loadJob(cut.file, around.readSettings(cut.configFile), explain);
  checkAskedOf(spec, cut.asked);
  const artifacts = new ArtifactHandle(around.artifactUrl);
  try {
    const { stateDirectory, variables } = around;
    const decided = await decideBeginning({
      order: { spec, asked: cut.asked },
      stateDirectory,
      run: { runId: "", generation: 0 },
      looks: { artifacts, caller: variables },
    });
    const { name } = spec;
    if (decided.kind === "lost") return refuse(...messages.lost(name, decided.reason));
    if (decided.kind === "unreadable") return refuse(messages.unreadable(name, decided.reason));
    const { decision } = decided;
    if (decision.kind === "refused") {
      return refuse(...messages.refusal(spec, decision, cut.asked));
    }
    const { kind } = decision;
    const steps = stepsToTell(decision.steps, spec.steps, cut.asked);
    const running = new Set(decision.steps.flatMap((one) => (isOver(one) ? [] : one.record.step)));
    const willRun = (step: StepSpec): boolean => running.has(step.name);
    const missing = findMissing(spec, { willWrite: willRun, willRun });
    const plan = { name, kind, isHeld: await isHeld(name, around), steps, missing };
    const text = cut.isJson ? renderJson(showPlan({ ...plan, troubles: [] })) : renderJobPlan(plan);
    const alreadyDone = cut.isJson ? undefined : findAlreadyDone(cut.asked, decision.steps);
    const lines = alreadyDone === undefined ? [] : [messages.alreadyDone(alreadyDone)];
    return { text, lines: lines.map(withoutOwnName), code: EXIT.ok };
  } finally {
    artifacts.close();
  }
}

/** Whatever becomes of it, its command will not make what is missing. */
function isOver({ todo }: PlannedStep): boolean {
  return todo === "nothing";
}

/** What `job run` would be refused for. */
function refuse(...lines: readonly string[]): Answer {
  return {
    lines: lines.map((line) => placeIn(withoutOwnName(line))),
    code: EXIT.config_error,
  };
}

/** Whoever prints it puts that in front. */
function withoutOwnName(line: string): string {
  return line.replace(/^watchdog: /, "");
}

/** Whether the file is a job, and what its steps have left is what it was. */
async function answerJobVerify(cut: JobVerifyCut, around: JobAround): Promise<Answer> {
  const { file, isJson } = cut;
  const reading = readJob(file, around.readSettings(cut.configFile));
  const verified =
    reading.kind === "job"
      ? await verifyJob(file, reading.spec, around)
      : refuseReading(file, reading, around);
  const { job, findings, good, lines } = verified;
  const code = findings.length === 0 ? EXIT.ok : FOUND;
  if (isJson) return { text: renderJson({ format: 1, file, job, findings }), lines, code };
  return { text: renderLines(findings.length === 0 ? [good] : findings), lines, code };
}

interface Verified {
  /** Its name; null: the file is none. */
  readonly job: string | null;
  readonly findings: readonly string[];
  /** What is said where nothing was found. */
  readonly good: string;
  readonly lines: readonly string[];
}

/** With the line for a word that is no file, but may be the name of a job. */
function refuseReading(
  file: string,
  reading: Extract<JobReading, { kind: "refused" }>,
  { stateDirectory }: JobAround,
): Verified {
  const { findings } = reading;
  const none = { job: null, good: "" };
  if (!isNoFile(reading)) {
    return { ...none, findings: findings.map((one) => renderFinding(file, one)), lines: [] };
  }
  const { message, hint } = refuseJob(file, findings, explainMissing(stateDirectory, "verify"));
  return { ...none, findings: [message], lines: hint === undefined ? [] : [`hint: ${hint}`] };
}

/** The newest job of the name. */
function readRecord({ name }: JobSpec, { stateDirectory }: JobAround): JobRecord | undefined {
  const found = readNewestJob(stateDirectory, name);
  if (found.kind === "unreadable") throw new WatchdogError("state.unusable", found.reason);
  return found.kind === "read" ? found.value?.record : undefined;
}

/** After a job that is done all its steps may run again, and make their directories. */
function unfinishedOf(record: JobRecord | undefined): Pick<Sights, "willWrite" | "willRun"> {
  const steps = record?.steps ?? [];
  const done = new Set(steps.flatMap(({ step, state }) => (state === "done" ? step : [])));
  const isOpen = ({ name }: StepSpec): boolean => !done.has(name);
  return { willWrite: isOpen, willRun: record?.state === "done" ? () => true : isOpen };
}

async function verifyJob(file: string, spec: JobSpec, around: JobAround): Promise<Verified> {
  const record = readRecord(spec, around);
  const findings = await findInJob(spec, record, around);
  const hasLeft = record !== undefined && record.artifacts.length > 0;
  const left = hasLeft ? "all that it has left is as it was" : "nothing that it has left is known";
  const steps = renderCount(spec.steps.length, "step", "steps");
  return { job: spec.name, findings, good: `${file} is a job of ${steps}, and ${left}`, lines: [] };
}

/** What it names and is not there, and what is not as the newest job of its name has left it. */
async function findInJob(
  spec: JobSpec,
  record: JobRecord | undefined,
  around: JobAround,
): Promise<readonly string[]> {
  if (record === undefined) return findMissing(spec, unfinishedOf(undefined));
  if (record.file !== spec.file) {
    const other = `the newest job ${record.name} is that of another file: ${record.file}`;
    const line = `${other}; what that one has left is not looked at`;
    return [line, ...findMissing(spec, unfinishedOf(undefined))];
  }
  return [...(await verifyArtifacts(record, around)), ...findMissing(spec, unfinishedOf(record))];
}

async function verifyArtifacts(record: JobRecord, around: JobAround): Promise<readonly string[]> {
  if (record.artifacts.length === 0) return [];
  const artifacts = new ArtifactHandle(around.artifactUrl);
  try {
    const checks = await artifacts.verify(record.directory, record.artifacts);
    return checks.flatMap(({ step, path, kind, detail }) =>
      kind === "same" ? [] : [`step ${step}: ${path}: ${detail ?? kind}`],
    );
  } finally {
    artifacts.close();
  }
}

/** product.md, section 3: `job verify` answers 1 on a finding. */
const FOUND = 1;
