/**
 * Good probes of a circuit that is well, which are not written down one by one: which of them may
 * wait, and what they come to together. Pure.
 *
 * Always: what changes the state of a circuit never waits, and neither does an answer that anybody
 * could miss: one that is not good, the first good one after another, the one without which the
 * newest that is written would get older than `writtenEveryMs` before the next is asked for.
 * Non-guarantee: those that wait when their process is killed are not in the counts of the circuit,
 * and who takes over asks without regard to the last of them.
 */
import type { CircuitState } from "./circuit.ts";
import type { ProbeSettings } from "./probe-settings.ts";
import type { ProbeNote, SharedCircuit } from "./shared-circuit.ts";
import type { MonotonicAt } from "./time.ts";

/** A transaction each second would cost more than the probe itself. */
const WRITTEN_EVERY_MS = 10_000;

export type ProbePeriod = Pick<ProbeSettings, "periodMs">;

/** So old the last good answer that is written may be, while somebody goes on asking. */
export function writtenEveryMs({ periodMs }: ProbePeriod): number {
  return Math.max(periodMs, WRITTEN_EVERY_MS);
}

/**
 * Whether a good answer adds nothing to what the row says but that there was another one.
 *
 * @param row  as it is written
 * @param askedAt  when the answer was asked for
 */
export function mayStayUnwritten(
  { state, lastProbe, lastGoodAt }: SharedCircuit,
  askedAt: MonotonicAt,
  period: ProbePeriod,
): boolean {
  if (!isWell(state) || lastProbe?.because !== "good" || lastGoodAt === null) return false;
  const ageMs = askedAt - lastGoodAt;
  return ageMs >= 0 && ageMs + period.periodMs <= writtenEveryMs(period);
}

/** A further success changes nothing; how many successes stand in a window is no matter. */
function isWell(state: CircuitState): boolean {
  return state.kind === "closed" && state.consecutiveFailures === 0 && !state.window.includes(true);
}

export interface UnwrittenProbes {
  readonly count: number;
  readonly last: ProbeNote;
}

/** The row with them: for who schedules the next probe, and for the next write. */
export function addUnwritten(
  row: SharedCircuit,
  unwritten: UnwrittenProbes | undefined,
): SharedCircuit {
  if (unwritten === undefined) return row;
  const { count, last } = unwritten;
  const isNewest = row.lastProbe === null || row.lastProbe.at <= last.at;
  const isNewestGood = row.lastGoodAt === null || row.lastGoodAt <= last.at;
  return {
    ...row,
    probes: row.probes + count,
    goodProbes: row.goodProbes + count,
    lastProbe: isNewest ? last : row.lastProbe,
    lastGoodAt: isNewestGood ? last.at : row.lastGoodAt,
  };
}

/** What is left of them where the row has changed: a reset begins the counts anew. */
export function keepUnwritten(
  unwritten: UnwrittenProbes | undefined,
  { before, after }: { readonly before: SharedCircuit | undefined; readonly after: SharedCircuit },
): UnwrittenProbes | undefined {
  const isReset = before !== undefined && after.probes < before.probes;
  return unwritten !== undefined && isReset ? { ...unwritten, count: 0 } : unwritten;
}
