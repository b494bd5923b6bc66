/**
 * A process that executes the steps of one job as a runner does, without commands:
 * `STATE HOW NUMBER STEP...`, as run NUMBER. HOW is `apart` (each transaction of its own), `joined`
 * (the end of a step with the start of the next), or `broken`: as `apart`, but the artifacts of a
 * step in a transaction before that of its end, which is what the tests must catch; `blind`: as
 * `apart`, but it takes the job over without asking what is known of it. Else it begins the job, or
 * goes on with it: what runs is interrupted first. Each start of a command is a line of its output,
 * and so is each result that is not `written`. With WATCHDOG_FAULT in its environment it is a fault
 * build.
 */
import { Database } from "bun:sqlite";
import { writeSync } from "node:fs";

const [state = "", how = "apart", number = "1", ...steps] = process.argv.slice(2);
Object.assign(globalThis, { FAULT_BUILD: process.env["WATCHDOG_FAULT"] !== undefined });

const { JOB_ID, artifactsOf, done, newJob, openJobStore, pending, recall, running } =
  await import("./job-scene.ts");
const { faultPoint } = await import("../../src/os/faults.ts");

const print = (line: string): void => void writeSync(1, `${line}\n`);
const { store } = openJobStore(state, Number(number));

class Stopped extends Error {}

async function must(result: Promise<{ readonly kind: string }>): Promise<void> {
  const found = await result;
  if (found.kind === "written") return;
  print(JSON.stringify(found));
  throw new Stopped();
}

/** Known states by step: none of them `running`. */
async function begin(): Promise<Map<string, { readonly state: string; readonly attempt: number }>> {
  if (how === "blind") {
    await must(store.adopt(JOB_ID));
    return new Map();
  }
  const found = await recall(state);
  if (found.kind !== "known") {
    if (found.kind !== "none") print(JSON.stringify(found));
    if (found.kind !== "none") throw new Stopped();
    await must(store.begin(newJob(steps)));
    return new Map();
  }
  const { record } = found.job;
  const broken = record.steps.filter((step) => step.state === "running");
  const changes = broken.map(({ step, attempt }) => ({
    record: pending(step, { because: "watchdog-killed", attempt }),
  }));
  await must(store.adopt(JOB_ID, changes));
  return new Map(record.steps.map((step) => [step.step, step]));
}

/** Not by the store: the artifacts are committed, and a moment later that the step is done. */
function completeBroken(step: string): void {
  const db = new Database(`${state}/journal.db`, { readwrite: true });
  for (const { path, kind, bytes, sha256 } of artifactsOf(step)) {
    db.query("INSERT INTO artifacts VALUES (?, ?, ?, ?, ?, ?, 1)").run(
      JOB_ID,
      step,
      path,
      kind,
      bytes,
      sha256,
    );
  }
  faultPoint("broken.completion", { step });
  db.query("UPDATE steps SET state = 'done' WHERE job_id = ? AND step = ?").run(JOB_ID, step);
  db.close(true);
}

async function work(): Promise<void> {
  const known = await begin();
  const left = steps.filter((step) => known.get(step)?.state !== "done");
  const records = left.map((step) => running(step, (known.get(step)?.attempt ?? 0) + 1));
  for (const [index, record] of records.entries()) {
    const { step, attempt } = record;
    if (how !== "joined" || index === 0) await must(store.startStep(record));
    print(`runs ${step}`);
    const next = records.slice(index + 1, index + 2);
    if (how === "broken") completeBroken(step);
    else if (how === "joined") {
      await must(store.completeAndStart(done(step, attempt), artifactsOf(step), next));
    } else await must(store.completeStep(done(step, attempt), artifactsOf(step)));
  }
  await must(store.finish({ state: "done", because: null, exitStatus: 0 }));
}

try {
  await work();
} catch (error) {
  if (!(error instanceof Stopped)) print(String(error));
}
store.close();
print("ended");
