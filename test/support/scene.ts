/**
 * What each test file of real processes stands on: a directory of its own, a cookie in the
 * environment of everything that it starts, and the proof at its end that nothing is left of
 * either.
 *
 *     const scene = openScene(import.meta.file);
 *     test("…", async () => { const ended = await scene.run(["--log", "off", "--", "true"]); … });
 */
import { afterAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { takeOwnSession } from "./own-session.ts";
import { readProcText } from "./proc-text.ts";
import { waitForNobody } from "./wait-for.ts";

takeOwnSession();

const ROOT = resolve(import.meta.dir, "../..");
/** `WATCHDOG_BINARY` puts a broken build in its place, to see the tests fail. */
export const RELEASE: string = process.env["WATCHDOG_BINARY"] ?? join(ROOT, "dist/watchdog");
export const FAULTS = join(ROOT, "dist/watchdog-faults");
export const FIXTURES = join(ROOT, "test/fixtures");
/** How often a test that looks for races repeats itself. */
export const ROUNDS: number = Number(process.env["ROUNDS"] ?? 20);
export const isRoot: boolean = process.getuid?.() === 0;

/** For a loaded machine; the hook itself has time for what comes after it. */
const EMPTY_LIMIT_MS = 30_000;
const CLOSING_LIMIT_MS = 2 * EMPTY_LIMIT_MS;
const COOKIE_VARIABLE = "WATCHDOG_TEST_COOKIE";

export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  /** As a shell shows it: the code, or 128 + the signal's number. */
  readonly status: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

export interface RunOptions {
  readonly binary?: string;
  readonly command?: "run" | "keep";
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  readonly stdin?: "ignore" | "inherit" | Blob | Uint8Array;
  readonly stdout?: "pipe" | "ignore" | number;
  readonly stderr?: "pipe" | "ignore" | number;
}

export interface Started {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  kill(signal: NodeJS.Signals): void;
}

/** Whatever was in the file: each test judges the fields that it names. */
type Parsed = ReturnType<typeof JSON.parse>;

export interface Scene {
  readonly cookie: string;
  /** `NAME=cookie`, for an environment that is made entry by entry. */
  readonly cookieEntry: string;
  readonly directory: string;
  readonly stateDirectory: string;
  /** The environment of whatever the test starts itself. */
  readonly env: Readonly<Record<string, string>>;
  path(...parts: readonly string[]): string;
  /** `watchdog run ARGS…`, to its end. */
  run(args: readonly string[], options?: RunOptions): Promise<Ended>;
  /** The same, while it goes on. */
  start(args: readonly string[], options?: RunOptions): Started;
  /** Any other program, with the cookie. */
  startProgram(argv: readonly string[], options?: RunOptions): Started;
  /** The record that `--result-file` wrote. */
  readRecord(name?: string): Record<string, Parsed>;
  /** `--result-file` and its path for `readRecord(name)`. */
  recordTo(name?: string): readonly string[];
  /** Pids of living processes that carry the cookie. */
  findProcesses(): number[];
}

/** Opens the scene of a test file and registers its closing proof. */
export function openScene(file: string): Scene {
  const cookie = `${file}-${randomBytes(8).toString("hex")}`;
  const directory = mkdtempSync(join(tmpdir(), "watchdog-test-"));
  const scene = makeScene(cookie, directory);
  afterAll(async () => {
    await closeScene(scene);
  }, CLOSING_LIMIT_MS);
  return scene;
}

function makeScene(cookie: string, directory: string): Scene {
  const stateDirectory = join(directory, "state");
  mkdirSync(join(directory, "home"));
  const env = {
    ...cleanEnvironment(),
    [COOKIE_VARIABLE]: cookie,
    HOME: join(directory, "home"),
    WATCHDOG_STATE_DIR: stateDirectory,
  };
  const start = (argv: readonly string[], options: RunOptions = {}): Started =>
    startProcess(argv, { ...options, env: { ...env, ...options.env } });
  const recordPath = (name = "result"): string => join(directory, `${name}.json`);
  return {
    cookie,
    cookieEntry: `${COOKIE_VARIABLE}=${cookie}`,
    directory,
    stateDirectory,
    env,
    path: (...parts) => join(directory, ...parts),
    run: (args, options) => start(commandLine(args, options), options).ended,
    start: (args, options) => start(commandLine(args, options), options),
    startProgram: start,
    readRecord: (name) => JSON.parse(readFileSync(recordPath(name), "utf8")),
    recordTo: (name) => ["--result-file", recordPath(name)],
    findProcesses: () => findCarriers(`${COOKIE_VARIABLE}=${cookie}`),
  };
}

function commandLine(args: readonly string[], options: RunOptions = {}): string[] {
  return [options.binary ?? RELEASE, options.command ?? "run", ...args];
}

/** The surroundings of the test run itself must not reach the product. */
function cleanEnvironment(): Record<string, string> {
  const entries = Object.entries(process.env).filter(
    ([key, value]) =>
      value !== undefined && !key.startsWith("WATCHDOG_") && !key.startsWith("BUN_"),
  );
  return Object.fromEntries(entries) as Record<string, string>;
}

function startProcess(argv: readonly string[], options: RunOptions): Started {
  const child = Bun.spawn([...argv], {
    env: options.env as Record<string, string>,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    stdin: options.stdin ?? "ignore",
    stdout: options.stdout ?? "pipe",
    stderr: options.stderr ?? "pipe",
  });
  return {
    pid: child.pid,
    kill: (signal) => child.kill(signal),
    ended: collect(child),
  };
}

async function collect(child: Bun.Subprocess): Promise<Ended> {
  const [stdout, stderr] = await Promise.all([readAll(child.stdout), readAll(child.stderr)]);
  await child.exited;
  const signal = child.signalCode === null ? null : String(child.signalCode);
  return {
    code: child.exitCode,
    signal,
    status: child.exitCode ?? 128 + signalNumber(signal),
    stdout,
    stderr: stderr.toString(),
  };
}

async function readAll(stream: unknown): Promise<Buffer> {
  if (!(stream instanceof ReadableStream)) return Buffer.alloc(0);
  return Buffer.from(await new Response(stream).arrayBuffer());
}

function signalNumber(name: string | null): number {
  const numbers = constants.signals as Readonly<Record<string, number>>;
  return numbers[String(name)] ?? Number(name);
}

/** Living processes (zombies have nothing left to leak) whose environment holds this entry. */
export function findCarriers(entry: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && carries(pid, entry));
}

/** Guards, waiting or burying, whose state directory is this one or below it. */
export function findGuards(directory: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      const words = readCommandLine(pid);
      return words.includes("__bury") && words.includes(directory);
    });
}

function carries(pid: number, entry: string): boolean {
  try {
    return readProcText(pid, "environ").split("\0").includes(entry);
  } catch {
    return false; // gone, or of another user
  }
}

export function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // ESRCH: it has ended by itself in this moment
  }
}

async function closeScene(scene: Scene): Promise<void> {
  try {
    const what = `no process left of ${scene.cookie}`;
    await waitForNobody(() => findLeft(scene), what, { limitMs: EMPTY_LIMIT_MS });
  } catch (error) {
    const pids = findLeft(scene);
    const left = describe(pids);
    for (const pid of pids) killQuietly(pid);
    throw new Error(`left running, now killed: ${left}`, { cause: error });
  } finally {
    rmSync(scene.directory, { recursive: true, force: true });
  }
  expect(existsSync(scene.directory)).toBe(false);
}

/** A guard carries no cookie. It writes below the directory until it leaves. */
function findLeft(scene: Scene): number[] {
  return [...scene.findProcesses(), ...findGuards(scene.directory)];
}

function describe(pids: readonly number[]): string {
  return pids.map((pid) => `${pid} ${readCommandLine(pid)}`).join("; ");
}

export function readCommandLine(pid: number): string {
  try {
    const bytes = Buffer.from(readProcText(pid, "cmdline"), "latin1");
    return bytes.toString("utf8").replaceAll("\0", " ").trim();
  } catch {
    return "gone";
  }
}

/** A test that needs root. Elsewhere it says so in its title and in the sum, and is run in CI. */
export function rootTest(title: string, body: () => void | Promise<void>, limitMs = 180_000): void {
  if (isRoot) return void test(title, body, limitMs);
  console.error(`needs root, not run here: ${title}`);
}
