/**
 * A job that is hit at each of its points: what the journal says right after the fault, against a
 * table; how often each step has really happened, counted by a server outside; and what a resume
 * makes of it. A fault that did not fire, or in another state, fails the test.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { type JobPlace, makeJob } from "../support/job-place.ts";
import { query } from "../support/own-state.ts";
import { FIXTURES, openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";
import { readEvidence } from "./fault-scene.ts";

const counts = new Map<string, number>();
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: ({ url }) => {
    const { pathname } = new URL(url);
    counts.set(pathname, (counts.get(pathname) ?? 0) + 1);
    return new Response("noted");
  },
});
afterAll(() => server.stop(true));
const scene = openScene(import.meta.file);

const NAMES = ["s1", "s2", "s3"] as const;
type Name = (typeof NAMES)[number];
type Effects = "none" | "unsafe";
type Act = "kill" | "throw" | "term";

/** What the journal says of the step, and how often it has happened, when the fault has struck. */
interface Row {
  readonly point: string;
  readonly state: "pending" | "running" | "done" | "interrupted";
  readonly times: 0 | 1;
  /** What the database told at the moment of the fault, where the point tells it. */
  readonly seen?: string;
  /** It is to be found in the middle of it: its command waits for a gate that is not there. */
  readonly isGated?: true;
}

/** Whoever dies or throws at a point leaves what was committed before it. */
const STRUCK: readonly Row[] = [
  { point: "step.started.commit", state: "pending", times: 0, seen: "pending" },
  { point: "step.started", state: "running", times: 0, seen: "running" },
  { point: "step.spawned", state: "running", times: 0, isGated: true },
  { point: "step.command-ended", state: "running", times: 1 },
  { point: "step.hashed", state: "running", times: 1 },
  { point: "step.completion.commit", state: "running", times: 1, seen: "running" },
  { point: "step.completed", state: "done", times: 1, seen: "done" },
];

/** A request to end is heard a moment later: what has begun is told to end, or is done. */
const ASKED: readonly Row[] = STRUCK.map((row): Row => {
  const isBefore = row.times === 0;
  return isBefore
    ? { ...row, state: "interrupted", isGated: true }
    : { ...row, state: "done", times: 1 };
});

/** A request that comes when the last step has happened finds a job that is done. */
function statusOf(act: Act, { state }: Row, hit: Name): number {
  if (act === "kill") return 137;
  if (act === "throw") return 125;
  return hit === "s3" && state === "done" ? 0 : 143;
}

let jobs = 0;

interface Gate {
  readonly path: string;
  /** Its command waits for the file. */
  readonly step: Name | undefined;
}

/**
 * A request to end that comes after the end of a step is heard a moment later, perhaps when the
 * next one has been begun: that one must not be done by then.
 */
function gateOf({ isGated }: Row, { act, hit, path }: { act: Act; hit: Name; path: string }): Gate {
  const next = act === "term" ? NAMES[NAMES.indexOf(hit) + 1] : undefined;
  return { path, step: isGated === true ? hit : next };
}

function stepsOf(job: string, hit: Name, effects: Effects, gate: Gate) {
  return Object.fromEntries(
    NAMES.map((name, place) => {
      const words = [String(server.port), `${job}-${name}`];
      const gated = name === gate.step ? [gate.path] : [];
      const step = {
        command: ["bash", `${FIXTURES}/does-a-step.sh`, ...words, ...gated],
        side_effects: name === hit ? effects : "none",
        ...(place === 0 ? {} : { needs: [NAMES[place - 1]] }),
      };
      return [name, step];
    }),
  );
}

const happened = (job: string, name: Name): number => counts.get(`/${job}-${name}`) ?? 0;

function stateOf(job: JobPlace, name: Name): unknown {
  return query(job.scene, `SELECT state FROM steps WHERE step = '${name}'`)[0]?.[0];
}

async function strike(row: Row, act: Act, hit: Name, effects: Effects): Promise<void> {
  jobs += 1;
  const name = `job-${jobs}`;
  const gate = gateOf(row, { act, hit, path: scene.path(`${name}.gate`) });
  const job = makeJob(scene, name, stepsOf(name, hit, effects, gate));
  const evidence = scene.path(`${name}.evidence`);
  const ended = await job.fail(`${row.point}@${hit}=${act}`, evidence, "run");
  await waitFor(() => scene.findProcesses().length === 0, "nobody of the job to be left");

  const [fired, ...others] = readEvidence(evidence);
  expect([fired?.point, fired?.state["step"], others]).toEqual([row.point, hit, []]);
  if (row.seen !== undefined) expect(fired?.state["stateInDatabase"]).toBe(row.seen);
  expect(ended.status).toBe(statusOf(act, row, hit));
  expect([stateOf(job, hit), happened(name, hit)]).toEqual([row.state, row.times]);

  writeFileSync(gate.path, "");
  // A job that is done has nothing to go on with.
  if (ended.status !== 0) await resume(job, { row, hit, effects, name });
  expect(NAMES.map((one) => stateOf(job, one))).toEqual(["done", "done", "done"]);
  expect((await job.job("verify")).status).toBe(0);
}

interface Struck {
  readonly row: Row;
  readonly hit: Name;
  readonly effects: Effects;
  readonly name: string;
}

/** Nothing harmless is left undone, and nothing unsafe is done twice without a person's word. */
async function resume(job: JobPlace, { row, hit, effects, name }: Struck): Promise<void> {
  const isOpen = row.state === "running" || row.state === "interrupted";
  const isUnknown = effects === "unsafe" && isOpen;
  const again = await job.job("run");
  expect([again.status, stateOf(job, hit)]).toEqual(isUnknown ? [3, "unknown"] : [0, "done"]);
  if (isUnknown) {
    expect(happened(name, hit)).toBe(row.times);
    const word = row.times === 1 ? "done" : "retry";
    expect((await job.job("resume", `--accept-unknown=${hit}=${word}`)).status).toBe(0);
    expect(happened(name, hit)).toBe(1);
  } else {
    const isRepeated = row.times === 1 && isOpen;
    expect(happened(name, hit)).toBe(isRepeated ? 2 : 1);
  }
}

for (const [act, rows] of [
  ["kill", STRUCK],
  ["throw", STRUCK],
  ["term", ASKED],
] as const) {
  describe(`${act} at`, () => {
    for (const row of rows) {
      for (const effects of ["none", "unsafe"] as const) {
        test.each([...NAMES])(`${row.point} of ${effects} %s`, async (hit) => {
          await strike(row, act, hit, effects);
        });
      }
    }
  });
}

test("a point that fires at an earlier transaction than it says is noticed", async () => {
  const [first, last] = [STRUCK[0], STRUCK.find(({ point }) => point === "step.completion.commit")];
  // The known broken placement: the first transaction of the step in the place of its completion.
  const misplaced = { ...last, point: first?.point ?? "" } as Row;
  const struck = strike(misplaced, "kill", "s2", "unsafe").then(
    () => "unnoticed",
    (error: unknown) => String(error),
  );
  expect(await struck).toContain("running");
});
