/**
 * Real pipes, files and child processes around the output room, for its contract tests. Everything
 * lies in one directory of the test file's own and is removed at its end.
 */
import { afterAll } from "bun:test";
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { sys } from "../../src/os/sys.ts";
import type { Copy, CopyPlan, CopyStream, WorkerUrls } from "../../src/output/copy.ts";
import { startCopy } from "../../src/output/copy.ts";

export const WORKERS: WorkerUrls = {
  copy: new URL("../../src/output/copy-worker.ts", import.meta.url),
  log: new URL("../../src/output/log-worker.ts", import.meta.url),
  match: new URL("../../src/output/match-worker.ts", import.meta.url),
};

export interface OutputScene {
  readonly directory: string;
  readonly logsRoot: string;
  path(name: string): string;
  /** A plan of one log file below `logsRoot`. */
  logPlan(maxBytes?: number): NonNullable<CopyPlan["log"]>;
  start(streams: readonly CopyStream[], plan?: Partial<CopyPlan>): Copy;
}

export function openOutputScene(): OutputScene {
  const directory = mkdtempSync(`${tmpdir()}/watchdog-output-`);
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  const logsRoot = `${directory}/logs`;
  return {
    directory,
    logsRoot,
    path: (name) => `${directory}/${name}`,
    logPlan: (maxBytes = 10_485_760) => ({
      directory: `${logsRoot}/job`,
      fileName: `${Bun.randomUUIDv7()}.log`,
      maxBytes,
      keepBytes: 1_073_741_824,
      logsRoot,
    }),
    start: (streams, plan = {}) =>
      startCopy({
        streams,
        log: undefined,
        patterns: [],
        spoolDirectory: undefined,
        workerUrls: WORKERS,
        ...plan,
      }),
  };
}

export function makePipe(): { readEnd: number; writeEnd: number } {
  const ends = sys.pipe();
  if (typeof ends === "number") throw new Error(`pipe2: ${ends}`);
  return ends;
}

/** Starts a program whose stdout is the write end, and closes ours of it. */
export function runInto(writeEnd: number, argv: readonly string[]) {
  const child = Bun.spawn([...argv], { stdin: "ignore", stdout: writeEnd, stderr: "inherit" });
  closeSync(writeEnd);
  return child;
}

export function openForWriting(path: string): number {
  return openSync(path, "w");
}

export function write(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  if (sys.write(fd, bytes, bytes.length) !== bytes.length) throw new Error("short write");
}

/** Reads up to what is there now, blocking for the first byte; an empty text is the end. */
export function readSome(fd: number, length = 65_536): string {
  const bytes = new Uint8Array(length);
  return Buffer.from(bytes.subarray(0, Math.max(0, sys.read(fd, bytes, length)))).toString();
}

export function readAllLogs(directory: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(directory).map((name) => [name, readFileSync(`${directory}/${name}`, "latin1")]),
  );
}

export async function hashFile(path: string): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256");
  for await (const chunk of Bun.file(path).stream()) hasher.update(chunk);
  return hasher.digest("hex");
}
