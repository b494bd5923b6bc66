/**
 * The fault points of checks: what could not be looked at is no success, and the job, its output
 * and its own status never suffer from it.
 */
import { expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { openScene } from "../support/scene.ts";
import { type FaultRun, runWithFault } from "./fault-scene.ts";

const scene = openScene(import.meta.file);

const OUT = scene.path("out");
const WRITES = ["--", "sh", "-c", `echo good; echo new >'${OUT}'`];
const ALL = [`--expect-file=${OUT}`, "--expect-output", "--expect-match=^good$"];

interface Row {
  readonly fault: string;
  readonly args: readonly string[];
  readonly state: readonly string[];
  readonly status: number;
  readonly because: string | null;
  readonly says: RegExp;
}

const LOOKED = { state: ["target", "when"], status: 65, because: "file-unread" } as const;
const ROWS: readonly Row[] = [
  // Before the start, and at the end.
  { ...LOOKED, fault: "checks.look=throw", args: ALL, says: /before the start: fault injected/ },
  { ...LOOKED, fault: "checks.look#2=eio", args: ALL, says: /found EIO: fault injected/ },
  {
    fault: "checks.judge=throw",
    args: ALL,
    state: ["runId", "files"],
    status: 65,
    because: "unchecked",
    says: /trouble of its own: fault injected(?:.|\n)*check failed: --expect-match/,
  },
  // Nothing was asked for, so nothing is failed by it.
  {
    fault: "checks.judge=throw",
    args: [],
    state: ["runId", "files"],
    status: 0,
    because: "exited",
    says: /trouble of its own: fault injected/,
  },
  {
    fault: "match.take=throw",
    args: ALL,
    state: ["bytes"],
    status: 65,
    because: "match-abandoned",
    says: /given up: the thread that looks at the output has died/,
  },
];

function expectFired(run: FaultRun, row: Row): void {
  const [point = "", act = ""] = row.fault.split("=");
  expect(run.evidence.map((one) => [one.point, one.act])).toEqual([
    [point.replace(/#.*/, ""), act],
  ]);
  expect(Object.keys(run.evidence[0]?.state ?? {})).toEqual(expect.arrayContaining([...row.state]));
}

for (const row of ROWS) {
  const title = `${row.fault} with ${row.args.length} checks`;
  test(`${title} ends with ${row.status}, ${row.because}`, async () => {
    const run = await runWithFault(scene, row.fault, [...row.args, ...WRITES]);
    expectFired(run, row);
    expect(run.ended.stdout.toString()).toBe("good\n");
    expect(run.ended.stderr).toMatch(row.says);
    expect([run.ended.status, run.record?.["because"]]).toEqual([row.status, row.because]);
  }, 60_000);

  test(`${title} changes nothing of a job that fails`, async () => {
    const command = ["--", "sh", "-c", "echo good; exit 9"];
    const run = await runWithFault(scene, row.fault, [...row.args, ...command]);
    expect([run.ended.status, run.ended.stdout.toString()]).toEqual([9, "good\n"]);
    expect(run.record).toMatchObject({ outcome: "failed", checks: [] });
  }, 60_000);
}

test("a fault in giving up is no end of it: it is given up the next time", async () => {
  const slow = "head -c 70000 /dev/zero | tr '\\0' a; echo; echo END";
  const args = ["--fail-match=a*a*b", "--expect-match=^END$", "--", "sh", "-c", slow];
  const run = await runWithFault(scene, "match.give-up=throw", args);
  expect(run.evidence).toMatchObject([{ point: "match.give-up", state: { pattern: 1 } }]);
  expect([run.ended.status, run.ended.stdout.length]).toEqual([65, 70_005]);
  expect(run.record).toMatchObject({
    because: "match-abandoned",
    checks: [
      { check: "expect-match", passed: true },
      { check: "fail-match", passed: false },
    ],
  });
}, 60_000);

for (const point of ["checks.look", "checks.look#2", "checks.judge", "match.take"]) {
  test(`${point}=kill leaves the rest to the guard`, async () => {
    writeFileSync(OUT, "");
    const run = await runWithFault(scene, `${point}=kill`, [...ALL, ...WRITES]);
    expect(run.evidence.map((one) => one.act)).toEqual(["kill"]);
    expect(run.ended.signal).toBe("SIGKILL");
  }, 60_000);
}

test("a TERM while files are looked at before the start ends it all", async () => {
  const mark = scene.path("ran-after-term");
  const run = await runWithFault(scene, "checks.look=term", [...ALL, "--", "touch", mark]);
  expect(run.evidence.map((one) => one.act)).toEqual(["term"]);
  expect([run.ended.signal, existsSync(mark)]).toEqual(["SIGTERM", false]);
  expect(run.record).toMatchObject({ outcome: "stopped", because: "terminated", checks: [] });
}, 60_000);

test("a TERM while files are looked at in the end holds nothing up", async () => {
  const run = await runWithFault(scene, "checks.look#2=term", [...ALL, ...WRITES]);
  expect(run.evidence.map((one) => one.act)).toEqual(["term"]);
  expect([0, 65]).toContain(run.ended.status);
  expect(run.record?.["state"]).toBe("ended");
}, 60_000);

test("without a fault all is well, and nothing is left to tell", async () => {
  // Of a name of its own: a run that was killed above may just have left the lease of the others.
  const run = await runWithFault(scene, undefined, ["--name", "plain", ...ALL, ...WRITES]);
  expect([run.ended.status, run.ended.stderr, run.evidence]).toEqual([0, "", []]);
  const checks = run.record?.["checks"] as { passed: boolean }[];
  expect(checks.map(({ passed }) => passed)).toEqual([true, true, true]);
}, 60_000);
