/**
 * A success that is far from usual, on the compiled binary with a real journal: written down by
 * default, told only to who looks, a failure with --strict.
 */
import { expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { mkdirSync, writeFileSync } from "node:fs";
import { openScene, RELEASE } from "../support/scene.ts";
import { openTerminal } from "../support/terminal.ts";

const scene = openScene(import.meta.file);
const BAD_OUTPUT = 65;
const FORTY_MINUTES = 2_400_000;
let runs = 0;

async function run(name: string, options: readonly string[], script: string) {
  runs += 1;
  const record = `run-${runs}`;
  const words = [...scene.recordTo(record), "--name", name, ...options];
  const ended = await scene.run([...words, "--", "sh", "-c", script], { cwd: scene.directory });
  return { ...ended, record: scene.readRecord(record) };
}

/** As if the good runs of a job had each taken so long. */
function makeLong(name: string, durationMs: number): void {
  const db = new Database(`${scene.stateDirectory}/journal.db`);
  const sql = "UPDATE runs SET record = json_set(record, '$.duration_ms', ?) WHERE job = ?";
  expect(db.query(sql).run(durationMs, name).changes).toBeGreaterThan(0);
  db.close(true);
}

/** Prints, and leaves a dump; sizes that wander as those of a real job. */
function dump(bytes: number, printed: number): string {
  return `head -c ${bytes} /dev/zero >dump; head -c ${printed} /dev/zero`;
}

const DUMP = ["--expect-file", "dump"];

async function haveHistory(name: string, count = 5): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    const { status, record } = await run(name, DUMP, dump(100_000 + at * 3_000, 20_000 - at * 500));
    expect([status, record["suspicions"]]).toEqual([0, []]);
  }
  makeLong(name, FORTY_MINUTES);
}

function measuresOf(record: Record<string, unknown>): string[] {
  return (record["suspicions"] as { measure: string }[]).map(({ measure }) => measure);
}

test("seconds for forty minutes, a tenth of the dump, little output: written down", async () => {
  await haveHistory("nightly");
  const odd = await run("nightly", DUMP, dump(10_000, 300));
  expect([odd.status, odd.stderr]).toEqual([0, ""]);
  expect(measuresOf(odd.record)).toEqual(["duration_ms", "output_bytes", "artifact_bytes:dump"]);
  expect(odd.record["suspicions"][2]).toMatchObject({ value: 10_000, usual: 106_000, runs: 5 });
  expect(odd.record["outcome"]).toBe("ok");
  // What is as usual is not named; -v tells the rest.
  const told = await run("nightly", ["-v", ...DUMP], dump(100_000, 300));
  expect(measuresOf(told.record)).toEqual(["duration_ms", "output_bytes"]);
  expect(told.stderr).toMatch(
    /watchdog: suspicious: output of 300 bytes; usual: about 1\d{4} bytes/,
  );
  expect(told.stderr).toMatch(
    /suspicious: a duration of .* s; usual: about 40 min, by \d good runs/,
  );
}, 120_000);

test("with --strict it is a failure, until what has changed for good is usual", async () => {
  await haveHistory("strict");
  makeLong("strict", 100);
  const strict = () => run("strict", ["--strict", ...DUMP], dump(8_000, 20_000));
  const failed = await strict();
  expect([failed.status, failed.record["because"]]).toEqual([BAD_OUTPUT, "suspicious"]);
  expect(failed.stderr).toBe(
    "watchdog: check failed: --strict: found dump with 8000 bytes; " +
      "expected about 106000 bytes, by 5 good runs before\n",
  );
  expect(failed.record["checks"]).toMatchObject([
    { check: "expect-file", passed: true },
    { check: "strict", target: "artifact_bytes:dump", passed: false, because: "suspicious" },
  ]);
  const statuses: number[] = [];
  for (let round = 0; round < 6; round += 1) statuses.push((await strict()).status);
  expect(statuses).toEqual([65, 65, 65, 65, 0, 0]);
}, 120_000);

test("fewer than five good runs, or runs that failed, are no history", async () => {
  await haveHistory("young", 4);
  for (let round = 0; round < 3; round += 1) {
    expect((await run("young", DUMP, `${dump(100_000, 20_000)}; exit 3`)).status).toBe(3);
  }
  const odd = await run("young", ["--strict", ...DUMP], dump(1, 0));
  expect([odd.status, odd.record["suspicions"]]).toEqual([0, []]);
}, 120_000);

test("a journal that does not answer makes nobody suspicious, and fails no run", async () => {
  await haveHistory("held");
  const holder = scene.startProgram([
    "sqlite3",
    `${scene.stateDirectory}/journal.db`,
    "PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; SELECT 1;",
    `.shell while [ ! -e '${scene.path("let-go")}' ]; do sleep 0.05; done`,
  ]);
  const odd = await run(
    "held",
    ["--strict", "--expect-file", "dump:min-ratio=0.9"],
    dump(1_000, 0),
  );
  writeFileSync(scene.path("let-go"), "");
  await holder.ended;
  expect(odd.status).toBe(0);
  expect([odd.record["outcome"], odd.record["suspicions"]]).toEqual(["ok", []]);
  // It is no comparison either, and says so.
  expect(odd.stderr).toContain("good runs before cannot be read, so that --strict and :min-ratio");
  expect(odd.record["degraded"]).toContain("history-unread");
}, 120_000);

test("on a terminal it is told, in one line for each measure", async () => {
  mkdirSync(scene.path("terminal"));
  const words = ["--name", "seen", "--log", "on", "--", "sh", "-c"];
  for (let round = 0; round < 5; round += 1) await scene.run([...words, "seq 5000"]);
  const terminal = openTerminal(scene, [RELEASE, "run", ...words, "echo little"]);
  await terminal.see(/little/);
  await terminal.see(/watchdog: suspicious: output of 7 bytes; usual: about 23893 bytes/);
  expect(await terminal.ended).toBe(0);
}, 120_000);
