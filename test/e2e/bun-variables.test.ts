/**
 * Variables and files by which Bun takes over an ordinary compiled program: they do nothing to
 * watchdog, and reach the command.
 */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openScene, RELEASE } from "../support/scene.ts";
import { DISARMED_CASES, runSmokeCase } from "../support/smoke.ts";

const scene = openScene(import.meta.file);
const EVIL = scene.path("evil.ts");
const MARK = scene.path("evil-has-run");
writeFileSync(
  EVIL,
  `require("node:fs").writeFileSync(${JSON.stringify(MARK)}, ""); console.log("EVIL");`,
);

const VALUES: readonly (readonly [name: string, value: string])[] = [
  ["BUN_OPTIONS", "--version"],
  ["BUN_OPTIONS", "--help"],
  ["BUN_OPTIONS", `--preload=${EVIL}`],
  ["BUN_OPTIONS", "--cpu-prof"],
  ["BUN_OPTIONS", "--smol --inspect-wait"],
  ["BUN_BE_BUN", "1"],
  ["BUN_INSPECT", "ws+unix:///nonexistent/socket?wait=1"],
  ["BUN_INSPECT_PRELOAD", EVIL],
  ["BUN_INSPECT_CONNECT_TO", "ws+unix:///nonexistent/socket"],
  ["NODE_OPTIONS", `--require=${EVIL}`],
];

test("each of Bun's variables does nothing to watchdog and reaches the command", async () => {
  for (const [name, value] of VALUES) {
    for (const mode of ["on", "off"]) {
      const args = ["--log", mode, "--timeout", "20", "--", "sh", "-c", `printenv ${name}; exit 5`];
      const ended = await scene.run(args, { env: { [name]: value }, cwd: scene.directory });
      expect([name, value, ended.code]).toEqual([name, value, 5]);
      expect([ended.stdout.toString(), ended.stderr]).toEqual([`${value}\n`, ""]);
    }
  }
  expect(existsSync(MARK)).toBe(false);
  expect(readdirSync(scene.directory).filter((name) => name.includes("profile"))).toEqual([]);
}, 180_000);

test("the other commands are not taken over either", async () => {
  for (const [name, value] of VALUES) {
    const program = [RELEASE, "--version"];
    const ended = await scene.startProgram(program, { env: { [name]: value } }).ended;
    expect([name, value, ended.code]).toEqual([name, value, 0]);
    expect(ended.stdout.toString()).toStartWith("watchdog ");
  }
}, 180_000);

test("configuration and modules of the working directory have no effect", async () => {
  const directory = scene.path("hostile");
  mkdirSync(join(directory, "output"), { recursive: true });
  mkdirSync(join(directory, "node_modules/citty"), { recursive: true });
  const plant = (name: string, text: string): void => writeFileSync(join(directory, name), text);
  plant(".env", "FROM_DOTENV=evil\nWATCHDOG_TIMEOUT=evil\n");
  plant("bunfig.toml", `preload = [${JSON.stringify(EVIL)}]\n`);
  plant("tsconfig.json", '{"compilerOptions":{"paths":{"*":["./evil.ts"]}}}');
  plant("package.json", '{"imports":{"#x":"./evil.ts"}}');
  plant("output/copy-worker.ts", `import ${JSON.stringify(EVIL)};`);
  plant("output/copy-worker.js", `import ${JSON.stringify(EVIL)};`);
  plant("node_modules/citty/index.js", `import ${JSON.stringify(EVIL)};`);
  plant("libc.so.6", "not a library");
  const args = ["--log", "on", "--", "sh", "-c", 'echo "[$FROM_DOTENV]"'];
  const ended = await scene.run(args, { cwd: directory });
  expect([ended.code, ended.stdout.toString(), ended.stderr]).toEqual([0, "[]\n", ""]);
  const help = await scene.startProgram([RELEASE, "help", "run"], { cwd: directory }).ended;
  expect([help.code, help.stderr]).toEqual([0, ""]);
  expect(existsSync(MARK)).toBe(false);
});

test("a program named like one of Bun's commands is run as a program", async () => {
  const bin = scene.path("bin");
  mkdirSync(bin);
  for (const name of ["run", "install", "x", "upgrade", "--help", "--version", "-e"]) {
    writeFileSync(join(bin, name), '#!/bin/sh\necho "program $1"\n', { mode: 0o755 });
    const env = { PATH: `${bin}:${process.env["PATH"]}` };
    const ended = await scene.run(["--log", "off", "--", name, "word"], { env });
    expect([name, ended.stdout.toString(), ended.code]).toEqual([name, "program word\n", 0]);
  }
});

test("under a name of Bun's, watchdog is still watchdog", async () => {
  const bin = scene.path("links");
  mkdirSync(bin);
  for (const name of ["bun", "bunx", "node", "npx"]) {
    await scene.startProgram(["ln", "-s", RELEASE, join(bin, name)]).ended;
    const program = [join(bin, name), "run", "--log", "on", "--", "echo", "x"];
    const ended = await scene.startProgram(program).ended;
    expect([name, ended.stdout.toString(), ended.code]).toEqual([name, "x\n", 0]);
  }
});

test("the cases that every build must pass hold here too", () => {
  expect(DISARMED_CASES.length).toBeGreaterThan(3);
  for (const one of DISARMED_CASES) expect(runSmokeCase(RELEASE, one)).toBe(undefined);
}, 180_000);
