/**
 * What a job tells of its items: how a line of its progress file is read, what is counted, and when
 * so many have failed that the job must not go on, or did not do its work. Pure.
 *
 * Always: the lines alone decide, taken one after the other: whether they are read at once or over
 * hours, the first line at which a bound is passed is the same. What is no line of ours is counted
 * and never a failure.
 */

/** Numbers beyond this are none of a job's items. */
const MOST_AT_ONCE = 1_000_000_000;
/** `1e9` written out. */
const LONGEST_NUMBER = 10;
export const LONGEST_MESSAGE = 200;
export const LONGEST_CHECKPOINT = 100;
/** From so many items on the rate of failures is judged while the job runs (product.md, 6). */
export const FEWEST_JUDGED_ITEMS = 20;

export interface ItemCounts {
  readonly ok: number;
  readonly failed: number;
  /** What the job has said there is to do; undefined: nothing. */
  readonly total: number | undefined;
  /** As long as its line: cut where it is told. */
  readonly checkpoint: string | undefined;
  readonly failedInRow: number;
  /** Lines that say nothing of this. */
  readonly ignored: number;
  /** The same. */
  readonly lastMessage: string | undefined;
}

export const NO_ITEMS: ItemCounts = {
  ok: 0,
  failed: 0,
  total: undefined,
  checkpoint: undefined,
  failedInRow: 0,
  ignored: 0,
  lastMessage: undefined,
};

export type ProgressLine =
  | { readonly kind: "ok" | "fail"; readonly count: number; readonly message: string | undefined }
  | { readonly kind: "total"; readonly count: number }
  | { readonly kind: "checkpoint" | "message"; readonly text: string }
  | { readonly kind: "blank" | "unknown" };

const UNKNOWN: ProgressLine = { kind: "unknown" };
const ONE_OK: ProgressLine = { kind: "ok", count: 1, message: undefined };
const ONE_FAIL: ProgressLine = { kind: "fail", count: 1, message: undefined };

/**
 * `ok`, `fail`, `ok 10`, `fail 3 MESSAGE`, `fail MESSAGE`, `total 1800`, `checkpoint NAME`,
 * `message TEXT`; blanks around and a CR at the end do not matter. A word that looks like a number
 * and is no count (`-1`, `1.5`) makes the line unknown: it would count as one item otherwise.
 */
export function parseProgressLine(line: string): ProgressLine {
  if (line === "ok") return ONE_OK;
  if (line === "fail") return ONE_FAIL;
  const text = line.trim();
  if (text === "") return { kind: "blank" };
  const end = text.search(/\s/);
  const word = end < 0 ? text : text.slice(0, end);
  const rest = end < 0 ? "" : text.slice(end).trim();
  switch (word) {
    case "ok":
    case "fail":
      return parseItems(word, rest);
    case "total": {
      const count = parseCount(rest);
      return count === undefined ? UNKNOWN : { kind: "total", count };
    }
    case "checkpoint":
    case "message":
      return rest === "" ? UNKNOWN : { kind: word, text: rest };
    default:
      return UNKNOWN;
  }
}

function parseItems(kind: "ok" | "fail", rest: string): ProgressLine {
  if (rest === "") return kind === "ok" ? ONE_OK : ONE_FAIL;
  const [first = ""] = rest.split(/\s/, 1);
  if (!/^[+-]?[.]?[0-9]/.test(first)) return { kind, count: 1, message: rest };
  const count = parseCount(first);
  if (count === undefined) return UNKNOWN;
  const message = rest.slice(first.length).trim();
  return { kind, count, message: message === "" ? undefined : message };
}

function parseCount(text: string): number | undefined {
  if (!/^[0-9]+$/.test(text) || text.length > LONGEST_NUMBER) return undefined;
  const count = Number(text);
  return count <= MOST_AT_ONCE ? count : undefined;
}

export function countItems(counts: ItemCounts, line: ProgressLine): ItemCounts {
  switch (line.kind) {
    case "ok":
      return {
        ...counts,
        ok: add(counts.ok, line.count),
        failedInRow: line.count === 0 ? counts.failedInRow : 0,
        lastMessage: line.message ?? counts.lastMessage,
      };
    case "fail":
      return {
        ...counts,
        failed: add(counts.failed, line.count),
        failedInRow: add(counts.failedInRow, line.count),
        lastMessage: line.message ?? counts.lastMessage,
      };
    case "total":
      return { ...counts, total: line.count };
    case "checkpoint":
      return { ...counts, checkpoint: line.text };
    case "message":
      return { ...counts, lastMessage: line.text };
    case "unknown":
      return { ...counts, ignored: add(counts.ignored, 1) };
    case "blank":
      return counts;
  }
}

function add(sum: number, count: number): number {
  return Math.min(sum + count, Number.MAX_SAFE_INTEGER);
}

/**
 * At a whole letter. Only once the secrets are out of it: half of one would be known to no mask.
 *
 * @param longest  units of UTF-16
 */
export function shorten(text: string, longest: number): string {
  if (text.length <= longest) return text;
  const [...letters] = text.slice(0, longest);
  return `${letters.slice(0, -1).join("")}…`;
}

export function doneOf({ ok, failed }: Pick<ItemCounts, "ok" | "failed">): number {
  return ok + failed;
}

/** Whether the job has reported anything that counts. */
export function hasReported({ ok, failed, total, checkpoint, lastMessage }: ItemCounts): boolean {
  const told = [total, checkpoint, lastMessage].some((one) => one !== undefined);
  return told || ok + failed > 0;
}

export interface ItemLimits {
  /** `--max-fail-rate`, in percent of the items; undefined: no bound. */
  readonly maxFailRate: number | undefined;
  /** `--max-consecutive-fails`; undefined: no bound. */
  readonly maxConsecutiveFails: number | undefined;
}

export type ItemsFailureReason = "too-many-failed" | "too-many-failed-in-row";

/** What there was when a bound was passed. */
export interface ItemsFailure {
  readonly because: ItemsFailureReason;
  readonly failed: number;
  readonly done: number;
  readonly failedInRow: number;
}

export type ItemsDecision =
  { readonly kind: "fine" } | { readonly kind: "failed"; readonly failure: ItemsFailure };

const FINE: ItemsDecision = { kind: "fine" };

/**
 * @param isAtEnd  no more items come, so that fewer of them are judged too
 */
export function decideItems(
  counts: ItemCounts,
  { maxFailRate, maxConsecutiveFails }: ItemLimits,
  isAtEnd: boolean,
): ItemsDecision {
  const { failed, failedInRow } = counts;
  const done = doneOf(counts);
  if (maxConsecutiveFails !== undefined && failedInRow >= maxConsecutiveFails) {
    const because = "too-many-failed-in-row";
    return { kind: "failed", failure: { because, failed, done, failedInRow } };
  }
  if (maxFailRate === undefined || failed === 0) return FINE;
  if (done < FEWEST_JUDGED_ITEMS && !isAtEnd) return FINE;
  if (failed * 100 <= maxFailRate * done) return FINE;
  return { kind: "failed", failure: { because: "too-many-failed", failed, done, failedInRow } };
}
