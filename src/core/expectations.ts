/**
 * What a job is expected to bring about, as it was asked for: files, output, a duration. Plain data
 * and the cutting of `PATH[:min=SIZE][:any-age][:min-ratio=R]`. Pure.
 */

/** One `--expect-file`. */
export interface FileExpectation {
  /** As it was written, without the suffixes: what it is called. */
  readonly target: string;
  /** A file must hold at least so much; 0: it may be empty. */
  readonly minBytes: number;
  /** It need not have changed since before the start. */
  readonly isAnyAge: boolean;
  /** Of the bytes that the last good run left; undefined: not compared. */
  readonly minRatio: number | undefined;
}

/** An empty file is no result, where nobody says otherwise. */
export const DEFAULT_MIN_BYTES = 1;
/** Each is looked at before the command is started. */
export const MOST_EXPECTED_FILES = 100;

export interface Expectations {
  readonly expectFiles: readonly FileExpectation[];
  readonly expectsOutput: boolean;
  /** Each must be found in a line of the output. */
  readonly expectMatches: readonly string[];
  /** None may be found. */
  readonly failMatches: readonly string[];
  readonly minDurationMs: number | undefined;
  /** What is far from usual is a failure. */
  readonly isStrict: boolean;
}

export const NO_EXPECTATIONS: Expectations = {
  expectFiles: [],
  expectsOutput: false,
  expectMatches: [],
  failMatches: [],
  minDurationMs: undefined,
  isStrict: false,
};

/** Whether something must be done for them before or while the command runs. */
export function needsOutput(asked: Expectations): boolean {
  return asked.expectsOutput || asked.expectMatches.length + asked.failMatches.length > 0;
}

/** Whether anything but the comparison with earlier runs was asked for. */
export function expectsAnything(asked: Expectations): boolean {
  return needsOutput(asked) || asked.expectFiles.length > 0 || asked.minDurationMs !== undefined;
}

export type FileSuffix =
  { readonly key: "any-age" } | { readonly key: "min" | "min-ratio"; readonly value: string };

export interface CutFileWord {
  readonly path: string;
  readonly suffixes: readonly FileSuffix[];
}

const SUFFIX = /^([^]*):(?:(any-age)|(min|min-ratio)=([^:]*))$/;

/**
 * Takes known suffixes off, from the right, and stops at the first that is none: a path may hold
 * colons. Of `out:min=1:2` nothing is taken off.
 */
export function cutFileWord(word: string): CutFileWord {
  const suffixes: FileSuffix[] = [];
  let path = word;
  for (let found = SUFFIX.exec(path); found !== null; found = SUFFIX.exec(path)) {
    const [, before = "", isAnyAge, key, value = ""] = found;
    if (isAnyAge !== undefined) suffixes.unshift({ key: "any-age" });
    else suffixes.unshift({ key: key === "min" ? "min" : "min-ratio", value });
    path = before;
  }
  return { path, suffixes };
}
