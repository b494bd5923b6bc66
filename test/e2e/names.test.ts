/**
 * Names: whatever a job is called, it works with all its files inside the state directory, or is
 * refused before anything starts; what the command prints of control characters never comes out of
 * watchdog's own mouth.
 */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const STATE = scene.path("box", "state");

const NAMES = [
  "a/b",
  "../../evil",
  "/tmp/wd_evil",
  "a b",
  ".",
  "..",
  "...",
  "-x",
  "--timeout",
  "nightly.backup",
  "",
  "new\nline",
  "esc\x1B[31m",
  "tab	",
  "nul\\0",
  "n".repeat(300),
  "n".repeat(200),
  "☃".repeat(120),
  "☃".repeat(60),
  "%2e%2e",
  "a%2Fb",
  "a~b",
  "CON",
  "é",
  "‮evil",
  "\u2028",
  "~",
  "*",
  "$(touch x)",
];

function listAll(directory: string): string[] {
  return readdirSync(directory, { recursive: true }).map(String).sort();
}

test("A-82: a name works with all files in the state directory, or is refused", async () => {
  const box = scene.path("box");
  await Bun.write(join(box, "keep"), "");
  let accepted = 0;
  for (const [index, name] of NAMES.entries()) {
    const ran = scene.path(`ran-${index}`);
    const args = ["--state-dir", STATE, "--log", "on", ...scene.recordTo(), `--name=${name}`];
    const ended = await scene.run([...args, "--", "sh", "-c", 'echo ran | tee "$0"', ran], {
      cwd: box,
    });
    const isRefused = ended.code === 64;
    expect([name, ended.code]).toEqual([name, isRefused ? 64 : 0]);
    expect([name, existsSync(ran)]).toEqual([name, !isRefused]);
    expect([name, /[\x00-\x09\x0b-\x1f\x7f]/.test(ended.stderr)]).toEqual([name, false]);
    if (isRefused) continue;
    accepted += 1;
    const record = scene.readRecord();
    expect([record.job, ended.stderr]).toEqual([name, ""]);
    const path = resolve(record.log.path);
    expect(path).toStartWith(`${STATE}/logs/`);
    expect(path.slice(STATE.length).split("/").length).toBe(4);
    expect(readFileSync(path, "utf8")).toBe("ran\n");
  }
  expect(accepted).toBeGreaterThan(15);
  expect(readdirSync(box).sort()).toEqual(["keep", "state"]);
  expect(readdirSync(STATE).sort()).toEqual([
    "FORMAT",
    "journal.db",
    "journal.lock",
    "leases",
    "logs",
    "progress",
  ]);
  expect(readdirSync(join(STATE, "progress"))).toEqual([]);
  expect(readdirSync(join(STATE, "leases"))).toEqual(["job"]);
  // Each name has a lease of its own: none meets another's by the way its directory is named.
  expect(readdirSync(join(STATE, "leases", "job")).length).toBe(accepted);
  expect(existsSync("/tmp/wd_evil")).toBe(false);
  expect(existsSync(scene.path("evil"))).toBe(false);
}, 180_000);

test("A-82: two long names that differ at the end only have two logs", async () => {
  const state = scene.path("long-state");
  for (const end of ["1", "2"]) {
    const name = "☃".repeat(60) + end;
    await scene.run(["--state-dir", state, "--log", "on", `--name=${name}`, "--", "echo", end]);
  }
  expect(readdirSync(join(state, "logs")).length).toBe(2);
  for (const entry of readdirSync(join(state, "logs"))) {
    expect(Buffer.byteLength(entry)).toBeLessThanOrEqual(255);
    expect(statSync(join(state, "logs", entry)).isDirectory()).toBe(true);
  }
});

test("a run without a name is called after its command and directory", async () => {
  const nameOf = async (command: readonly string[], cwd: string): Promise<string> => {
    await scene.run([...scene.recordTo(), "--log", "off", "--", ...command], { cwd });
    return scene.readRecord().job;
  };
  const here = await nameOf(["/bin/echo", "a"], scene.directory);
  expect(here).toMatch(/^echo-[0-9a-f]{8}$/);
  expect(await nameOf(["/bin/echo", "a"], scene.directory)).toBe(here);
  expect(await nameOf(["/bin/echo", "b"], scene.directory)).not.toBe(here);
  expect(await nameOf(["/bin/echo", "a"], "/")).not.toBe(here);
  expect(await nameOf(["/bin/echo", "a", ""], scene.directory)).not.toBe(here);
});

test("A-82: a command whose own name is hostile gets a harmless one, and still runs", async () => {
  for (const name of ["esc\x1b[31m", "new\nline", "a b", "☃", "..x", "-x", "n".repeat(250)]) {
    const program = join(scene.directory, name);
    await Bun.write(program, "#!/bin/sh\necho ran\n");
    await scene.startProgram(["chmod", "755", program]).ended;
    const args = ["--state-dir", scene.path("odd-state"), "--log", "on", ...scene.recordTo()];
    const ended = await scene.run([...args, "--", program]);
    expect([name, ended.code, ended.stdout.toString(), ended.stderr]).toEqual([
      name,
      0,
      "ran\n",
      "",
    ]);
    expect(resolve(scene.readRecord().log.path)).toStartWith(`${scene.path("odd-state")}/logs/`);
  }
  expect(listAll(scene.path("odd-state")).length).toBeGreaterThan(7);
}, 180_000);

/** Moves cursors, starts lines, turns the direction of writing, or is a control of C1. */
const HOSTILE = "no\x1b[31m\nsuch\x07\u202e\u009b";
const RAW = /[\x00-\x1f\x7f-\x9f\u202e]/;

test("A-82: control characters of a command that cannot run are not printed raw", async () => {
  await Bun.write(join(scene.directory, HOSTILE), "no program");
  for (const command of ["run", "keep"] as const) {
    for (const [cwd, code] of [
      ["/", 127],
      [scene.directory, 126],
    ] as const) {
      const log = command === "run" ? ["--log", "off"] : [];
      const ended = await scene.run([...log, "--", `./${HOSTILE}`], { command, cwd });
      expect([command, ended.code]).toEqual([command, code]);
      const [line = "", ...more] = ended.stderr.split("\n");
      expect([command, code, RAW.test(line), more]).toEqual([command, code, false, [""]]);
      expect(line).toContain("./no\\x1b[31m\\nsuch\\x07\\u{202e}\\x9b: ");
    }
  }
});

test("A-82: control characters in the name of a leftover are not printed raw", async () => {
  const program = join(scene.directory, "ev\x1b[2Jil\nx");
  await Bun.write(program, "#!/bin/sh\nsleep 91082\n");
  await scene.startProgram(["chmod", "755", program]).ended;
  const ended = await scene.run(["--log", "off", "--", "sh", "-c", '"$0" & exit 4', program]);
  expect(ended.code).toBe(4);
  expect(ended.stderr).toContain("ended ");
  expect(ended.stderr.trimEnd().split("\n").length).toBe(1);
  expect(ended.stderr.trimEnd()).not.toMatch(/[\x00-\x1f\x7f]/);
}, 180_000);
