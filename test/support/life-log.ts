/**
 * The independent judge of exclusion: what commands themselves have written about when they lived
 * (`fixtures/logs-its-life.py`), and which of them lived at the same time.
 *
 * Refuses to know anything of leases: it reads instants of CLOCK_MONOTONIC, which all processes of
 * a boot share. Always holds: a life without an end counts as going on for ever; a line that cannot
 * be read is an error, never left out.
 */
import { readFileSync } from "node:fs";
import { PYTHON } from "./outside.ts";
import { FIXTURES } from "./scene.ts";

export interface Life {
  readonly name: string;
  readonly beganNs: bigint;
  /** Undefined: it was killed, or lives. */
  readonly endedNs: bigint | undefined;
  /** In the order of `WATCHDOG_LEASE`. */
  readonly generations: readonly number[];
}

/** The words of a command that writes its life down. @param name  undefined: its pid */
export function livingIn(
  log: string,
  life: { name?: string; spanMs?: number; gate?: string } = {},
): string[] {
  const words = [log, life.name ?? "-", String(life.spanMs ?? 0)];
  // Isolated and without site packages: it lives a few milliseconds after it was started.
  const gate = life.gate === undefined ? [] : [life.gate];
  return [PYTHON, "-I", "-S", `${FIXTURES}/logs-its-life.py`, ...words, ...gate];
}

/** All lives of a log, by their beginnings. */
export function readLives(path: string): Life[] {
  const lives: Life[] = [];
  for (const line of readFileSync(path, "utf8").split("\n").slice(0, -1)) {
    const [, what, instant, name, numbers] = /^(begin|end) (\d+) (\S+) (\S+)$/.exec(line) ?? [];
    if (instant === undefined || name === undefined || numbers === undefined) {
      throw new Error(`no line of a life: ${line}`);
    }
    if (what === "begin") {
      const generations = numbers.split(",").map(Number);
      lives.push({ name, beganNs: BigInt(instant), endedNs: undefined, generations });
      continue;
    }
    const at = lives.findIndex((life) => life.name === name && life.endedNs === undefined);
    const life = lives[at];
    if (life === undefined) throw new Error(`an end without a beginning: ${line}`);
    lives[at] = { ...life, endedNs: BigInt(instant) };
  }
  return lives.sort((a, b) => (a.beganNs < b.beganNs ? -1 : 1));
}

/** Pairs that lived at the same time: none at all where somebody kept them apart. */
export function findOverlaps(lives: readonly Life[]): (readonly [Life, Life])[] {
  return lives.flatMap((one, index) =>
    lives
      .slice(index + 1)
      .filter((other) => one.endedNs === undefined || other.beganNs < one.endedNs)
      .map((other) => [one, other] as const),
  );
}

/** Neighbours in the order of their beginnings whose generation did not grow. */
export function findStandstills(lives: readonly Life[], at = 0): (readonly [Life, Life])[] {
  return lives.slice(1).flatMap((life, index) => {
    const before = lives[index];
    const [earlier, later] = [before?.generations[at], life.generations[at]];
    const grows = earlier !== undefined && later !== undefined && later > earlier;
    return grows || before === undefined ? [] : [[before, life] as const];
  });
}
