/**
 * The answers in JSON have the fields that the README lists, and no others: the table held against
 * the answers of the real binary about runs of every kind.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { ask, askJson, waitForHolder, waitForRow } from "../support/ask.ts";
import { killAlone, killWithGuard, waitUntilNoGuard } from "../support/killing.ts";
import { letHoldersGo, startHolder } from "../support/lease-holder.ts";
import { placeOf } from "../support/lease-seen.ts";
import { FAULTS, openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const README = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const LIMIT_MS = 180_000;
/** A pipe would be open until the last one of the tree is gone. */
const NO_PIPES = { stdout: "ignore", stderr: "ignore" } as const;

const COMMANDS = [
  "status",
  "history",
  "report",
  "why",
  "job status",
  "job plan",
  "job verify",
  "lease list",
  "lease show",
  "lease explain",
  "repair",
  "patrol",
  "circuit list",
  "circuit show",
  "probe",
  "notify list",
  "notify test",
  "notify flush",
  "doctor",
  "config show",
  "config check",
] as const;
type Command = (typeof COMMANDS)[number];
type Answers = Readonly<Record<Command, readonly unknown[]>>;

/** Cells of a table of the README, without its head, with code as plain text. */
function readTable(readme: string, name: string): string[][] {
  const [, rest = ""] = readme.split(`<!-- table:${name} -->\n`);
  const [table = ""] = rest.split("<!-- /table -->");
  const rows = table.trimEnd().split("\n").slice(2);
  return rows.map((row) => row.split(/(?<!\\)\|/).map((cell) => cell.trim()));
}

function uncode(cell = ""): string {
  return cell.replaceAll("`", "");
}

/** The rows of a command, leases and circuits in a list with what `show` has of each. */
function listOwn(readme: string, command: Command): string[] {
  const fields = (of: Command): string[] =>
    readTable(readme, "answer-fields")
      .filter(([, commands = ""]) => commands.includes(`\`${of}\``))
      .map(([, , field]) => uncode(field));
  const own = fields(command);
  const each = (list: string, of: Command): string[] =>
    own.includes(list) ? fields(of).map((field) => `${list}[].${field}`) : [];
  const ofCircuits = each("circuits", "circuit show").filter((field) => !field.endsWith(".format"));
  return [...own, ...each("leases", "lease show"), ...ofCircuits, ...listRepeated(command, own)];
}

/** What the table says to have the fields of another part of the same answer. */
function listRepeated(command: Command, own: readonly string[]): string[] {
  const parts: Readonly<Partial<Record<Command, readonly (readonly [string, string])[]>>> = {
    report: [
      ["runs[].", "jobs[].last."],
      ["needs[].", "jobs[].needs[]."],
    ],
  };
  return (parts[command] ?? []).flatMap(([from, to]) =>
    own.filter((field) => field.startsWith(from)).map((field) => to + field.slice(from.length)),
  );
}

/** Where an answer has whole records. */
const RECORDS: Readonly<Partial<Record<Command, readonly string[]>>> = {
  status: ["runs[].", "last_runs[]."],
  history: ["runs[]."],
  why: ["run.", "before."],
};

/** The same, and runs with what the table of the record has. */
function listDocumented(readme: string, command: Command): string[] {
  const ofRecord = readTable(readme, "result-fields").map(([, field]) => uncode(field));
  const runs = RECORDS[command] ?? [];
  const whole = runs.flatMap((way) => ofRecord.map((field) => `${way}${field}`));
  const own = listOwn(readme, command);
  // Of the run before a skip there may be as much to tell, and mostly is not.
  const before = own.filter((field) => command === "why" && field.startsWith("run."));
  return [...own, ...whole, ...before.map((field) => `before${field.slice("run".length)}`)];
}

/** Every field with its way: `previous.run_id`, `leases[].key`. */
function fieldsIn(value: unknown, way = ""): string[] {
  if (Array.isArray(value)) return value.flatMap((each) => fieldsIn(each, `${way}[]`));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const path = way === "" ? name : `${way}.${name}`;
    // What an event holds differs with its name, and is no part of the contract.
    return [path, ...(path.endsWith("events[].data") ? [] : fieldsIn(inner, path))];
  });
}

/** What is printed and not listed, and what is listed and was never printed. */
function compare(readme: string, answers: Answers): { unlisted: string[]; unprinted: string[] } {
  const all = COMMANDS.map((command) => {
    const printed = new Set(answers[command].flatMap((answer) => fieldsIn(answer)));
    const documented = new Set(listDocumented(readme, command));
    const own = new Set(listOwn(readme, command));
    const named = (fields: Set<string>): string[] => [...fields].map((one) => `${command} ${one}`);
    return {
      unlisted: named(printed.difference(documented)),
      unprinted: named(own.difference(printed)),
    };
  });
  return {
    unlisted: all.flatMap(({ unlisted }) => unlisted),
    unprinted: all.flatMap(({ unprinted }) => unprinted),
  };
}

function start(name: string, args: readonly string[] = []): ReturnType<typeof scene.start> {
  return scene.start(["--name", name, ...args, "--", "sleep", "331"], NO_PIPES);
}

/** Held and refused beside it, released twice, dead, and without a lease. */
async function leaveRuns(): Promise<void> {
  await startHolder(scene, ["--name", "going"]);
  await waitForProgress("going");
  expect((await scene.run(["--name", "going", "--", "true"])).status).toBe(75);
  await scene.run(["--name", "told", ...NOWHERE, "--", "false"]);
  for (const name of ["done", "done", "dead"]) await scene.run(["--name", name, "--", "true"]);
  await leaveMended();
  const dead = start("dead");
  await waitForProgress("dead");
  await killAlone(dead);
  await waitForRow(scene, "dead", "ended");
  start("bare", ["--no-lease"]);
  await waitForRow(scene, "bare", "running");
}

/** Its run has shown what its job does. */
async function waitForProgress(job: string): Promise<void> {
  await waitForHolder(scene, job);
  await waitFor(
    async () => (await askJson(scene, ["lease", "show", `job:${job}`])).progress !== null,
    `the progress of ${job}`,
  );
}

/** Killed, and settled by a repair before anybody else came. */
async function leaveMended(): Promise<void> {
  const mended = start("mended");
  await waitForHolder(scene, "mended");
  await killAlone(mended);
  await waitForRow(scene, "mended", "ended");
  expect((await ask(scene, ["repair", "--apply", "job:mended"])).status).toBe(0);
}

/** Nobody is left to bury the command; a process that has only the id of the run is beside it. */
async function leaveOrphan(): Promise<void> {
  const orphan = start("orphan");
  const { run_path: path } = await waitForHolder(scene, "orphan");
  await killWithGuard(orphan);
  scene.startProgram(["sleep", "332"], { env: { WATCHDOG_RUN_PATH: path } });
  await waitFor(
    async () => (await askJson(scene, ["lease", "show", "job:orphan"])).suspects?.length === 1,
    "a suspect",
  );
}

/** A key that is free, with an operation under its fence. */
async function leaveFenced(name: string): Promise<void> {
  const { fence } = placeOf(scene.stateDirectory, name);
  scene.startProgram(["flock", "-s", "--no-fork", fence, "sleep", "334"]);
  await waitFor(
    async () => (await askJson(scene, ["lease", "show", `job:${name}`])).fence_taken === "yes",
    "a taken fence",
  );
}

/** One that a probe has opened during a run, and one that calls have used. */
async function leaveCircuits(): Promise<void> {
  const file = scene.path("there");
  writeFileSync(file, "");
  const probe = ["--probe", `away=cmd:test -e ${file}`, "--probe-failure-window", "2/5"];
  start("watching", [...probe, "--probe-period", "1s", "--on-open", "notify"]);
  await waitForHolder(scene, "watching");
  rmSync(file);
  await waitFor(
    async () => (await askJson(scene, ["status"])).circuits.length === 1,
    "an open circuit",
  );
  const call = ["retry", "--breaker", "calls", "--max-attempts", "1", "--", "false"];
  expect((await ask(scene, call)).status).toBe(1);
}

/** A repair that died in the middle, the one that tells of it, and one without any act. */
async function askRepairs(): Promise<unknown[]> {
  const words = ["repair", "--apply", "job:dead"];
  const before = await askJson(scene, ["repair"]);
  const env = { WATCHDOG_FAULT: "repair.act=kill", WATCHDOG_FAULT_DIR: scene.path("faults") };
  expect((await ask(scene, words, { binary: FAULTS, env })).status).toBe(137);
  const after = await ask(scene, [...words, "--json"]);
  const mended = await askJson(scene, ["repair", "job:mended"]);
  return [before, JSON.parse(after.stdout.toString()), mended];
}

/** In an environment in which not all of it holds. */
async function askDoctor(): Promise<unknown> {
  const env = { LD_PRELOAD: "libm.so.6" };
  return JSON.parse((await ask(scene, ["doctor", "--json"], { env })).stdout.toString());
}

/** Of files with every kind of setting, and of one with a finding. */
async function askConfigs(): Promise<Pick<Answers, "config show" | "config check">> {
  const [right, wrong] = [scene.path("right.toml"), scene.path("wrong.toml")];
  writeFileSync(right, '[run]\nwait = "5s"\n[policy]\nrepair = ["uid:0"]\n', { mode: 0o600 });
  writeFileSync(wrong, "[run]\ntiemout = 1\n", { mode: 0o600 });
  const checked = await ask(scene, ["config", "check", "--json", "--config", wrong]);
  return {
    "config show": [await askJson(scene, ["config", "show", "--config", right])],
    "config check": [JSON.parse(checked.stdout.toString())],
  };
}

async function askEverything(): Promise<Answers> {
  try {
    await leaveRuns();
    await leaveOrphan();
    await leaveFenced("done");
    await leaveCircuits();
    return await askAll(["going", "done", "dead", "orphan", "mended", "never"]);
  } finally {
    await letHoldersGo();
    for (const pid of scene.findProcesses()) askToEnd(pid);
    await waitUntilNoGuard(scene);
  }
}

const NOWHERE = ["--webhook", "http://127.0.0.1:1/hook"];

/** In vain: nobody listens there. */
async function askNotifyTest(): Promise<unknown> {
  const { stdout, status } = await ask(scene, ["notify", "test", "--json", ...NOWHERE]);
  expect(status).toBe(1);
  return JSON.parse(stdout.toString());
}

function askToEnd(pid: number): void {
  try {
    process.kill(pid, "SIGTERM");
  } catch {
    // ESRCH: the command of a watchdog that was asked a moment ago.
  }
}

async function askAll(jobs: readonly string[]): Promise<Answers> {
  const show = (job: string): Promise<unknown> => askJson(scene, ["lease", "show", `job:${job}`]);
  const explain = (job: string): Promise<unknown> =>
    askJson(scene, ["lease", "explain", `job:${job}`]);
  return {
    status: [await askJson(scene, ["status"])],
    history: [await askJson(scene, ["history"])],
    report: [await askJson(scene, ["report"])],
    why: [
      await askJson(scene, ["why", "going"]),
      await askJson(scene, ["why", "dead"]),
      await askJson(scene, ["why", "done"]),
    ],
    ...(await askJobs()),
    "lease list": [await askJson(scene, ["lease", "list"])],
    "lease show": await Promise.all(jobs.map(show)),
    "lease explain": await Promise.all(jobs.filter((job) => job !== "never").map(explain)),
    repair: await askRepairs(),
    "circuit list": [await askJson(scene, ["circuit", "list"])],
    "circuit show": [
      await askJson(scene, ["circuit", "show", "away"]),
      await askJson(scene, ["circuit", "show", "calls"]),
    ],
    probe: [await askJson(scene, ["probe", "cmd:true"])],
    "notify list": [await askJson(scene, ["notify", "list"])],
    "notify test": [await askNotifyTest()],
    "notify flush": [await askJson(scene, ["notify", "flush"])],
    doctor: [await askDoctor()],
    ...(await askConfigs()),
    patrol: await askPatrols(),
  };
}

/** One that was done but for a step of which nobody knows, and one that never was begun. */
async function askJobs(): Promise<Pick<Answers, "job status" | "job plan" | "job verify">> {
  const [file, never] = [scene.path("job.yaml"), scene.path("never.yaml")];
  const step = "side_effects: unsafe, command: 'kill -9 $$'";
  const done = "artifacts: [left], command: echo x >left";
  writeFileSync(file, `name: steps\nsteps:\n  a: { ${done} }\n  b: { ${step}, needs: [a] }\n`);
  writeFileSync(never, "name: never\nsteps: { a: { side_effects: none, command: 'true' } }\n");
  expect((await ask(scene, ["job", "run", file])).status).toBe(3);
  return {
    "job status": [
      await askJson(scene, ["job", "status", file]),
      await askJson(scene, ["job", "status", never]),
    ],
    "job plan": [await askJson(scene, ["job", "plan", file])],
    "job verify": [await askJson(scene, ["job", "verify", file])],
  };
}

/** With a job that is expected, and with a circuit that is open at first and closed later. */
async function askPatrols(): Promise<unknown[]> {
  expect((await scene.run(["--name", "daily", "--every", "24h", "--", "true"])).status).toBe(0);
  const first = await askJson(scene, ["patrol"]);
  writeFileSync(scene.path("there"), "");
  await waitFor(
    async () => (await askJson(scene, ["status"])).circuits.length === 0,
    "a closed circuit",
  );
  return [first, await askJson(scene, ["patrol"])];
}

/** Where a lease is told of. */
const RULE_OF = ["status leases[].", "lease list leases[].", "lease show ", "repair leases[]."];

describe("the fields of the answers in JSON", () => {
  let answers: Answers;
  beforeAll(async () => {
    answers = await askEverything();
  }, LIMIT_MS);

  test("were asked about leases and runs of every kind", () => {
    const words = (field: string, value: unknown): unknown[] => {
      const one = value as Record<string, unknown>;
      return Array.isArray(value) ? value.flatMap((each) => words(field, each)) : [one[field]];
    };
    expect(words("verdict", answers["lease show"])).toEqual([
      "held",
      "free",
      "dead",
      "orphaned",
      "free",
      "free",
    ]);
    const [history] = answers.history as [{ runs: unknown[] }];
    const outcomes = new Set(words("outcome", history.runs));
    expect(outcomes).toEqual(new Set(["ok", "failed", "locked", "abandoned", null]));
  });

  test("are in the README, each that is printed and none that is not", () => {
    expect(listOwn(README, "status").length).toBeGreaterThan(60);
    expect(compare(README, answers)).toEqual({ unlisted: [], unprinted: [] });
  });

  test("are missed where the README lacks one, and where it has one too many", () => {
    const row = "| `lease show` | `rule` |";
    expect(README).toContain(row);
    expect(compare(README.replace(row, "| `lease show` | `ruling` |"), answers)).toEqual({
      unlisted: RULE_OF.map((way) => `${way}rule`),
      unprinted: RULE_OF.map((way) => `${way}ruling`),
    });
  });

  test("are those of the record where they tell of a run", () => {
    const row = "| `held_by.runner` |";
    expect(README).toContain(row);
    const { unlisted, unprinted } = compare(README.replace(row, "| `held_by.who` |"), answers);
    expect(unlisted).toContain("history runs[].held_by.runner");
    expect(unprinted).toEqual([]);
  });
});
