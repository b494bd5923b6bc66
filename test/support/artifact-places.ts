/**
 * Directories of jobs for tests of artifacts: each test has its own, and something may be done to
 * it right in the middle of a reading.
 */
import { afterAll } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Hashing } from "../../src/core/artifact.ts";
import { hashArtifact } from "../../src/job/artifacts.ts";
import { DEFAULT_READING, type Reading } from "../../src/job/survey.ts";

/** Registers their removal at the end of the file. */
export function openPlaces(): () => string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "watchdog-artifacts-")));
  let places = 0;
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  return () => {
    places += 1;
    const place = join(root, String(places));
    mkdirSync(place);
    return place;
  };
}

export function put(place: string, name: string, content: string | Uint8Array = "x"): void {
  mkdirSync(dirname(join(place, name)), { recursive: true });
  writeFileSync(join(place, name), content);
}

/** Names that are bytes and no text. */
export function putBytes(place: string, name: readonly number[], content = "x"): void {
  writeFileSync(Buffer.concat([Buffer.from(`${place}/`), Buffer.from(name)]), content);
}

export interface Interrupted extends Reading {
  readonly hasActed: () => boolean;
}

/** Does something right before the nth step of a single reading, the first of which is 1. */
export function actAt(nth: number, act: () => void): Interrupted {
  let steps = 0;
  const onStep = (): void => {
    steps += 1;
    if (steps === nth) act();
  };
  return { ...DEFAULT_READING, mostTries: 1, onStep, hasActed: () => steps >= nth };
}

/** How many steps a reading has without any disturbance. */
export async function countSteps(place: string, path: string): Promise<number> {
  let steps = 0;
  const onStep = (): void => void (steps += 1);
  await hashArtifact(place, path, { ...DEFAULT_READING, onStep });
  return steps;
}

/** The hash, or what stood in its way. */
export function tell(hashing: Hashing): string {
  return hashing.kind === "hashed" ? hashing.artifact.sha256 : hashing.kind;
}

export async function hashOf(place: string, path: string, reading?: Reading): Promise<string> {
  return tell(await hashArtifact(place, path, reading));
}

export function mount(...words: readonly string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(["mount", ...words]);
  if (exitCode !== 0) throw new Error(`mount ${words.join(" ")}: ${stderr.toString()}`);
}

export function unmount(place: string): void {
  const { exitCode, stderr } = Bun.spawnSync(["umount", place]);
  if (exitCode !== 0) throw new Error(`umount ${place}: ${stderr.toString()}`);
}

/** In openat(2), by its number on x64 or arm64 (proc(5)): at a pipe until its other end is open. */
export function isOpening(pid: number): boolean {
  try {
    return /^(257|56) /.test(readFileSync(`/proc/${pid}/syscall`, "utf8"));
  } catch {
    return false; // ENOENT: it has ended
  }
}
