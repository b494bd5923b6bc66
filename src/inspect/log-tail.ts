/**
 * The last lines of what was kept of a run's output, bounded: for a person who asks why.
 *
 * Always: never more than a fixed number of bytes is read, wherever the log ends; a first line that
 * is not whole is left out; what has the shape of a secret, or is one of our own environment, is
 * hidden. Read only. Clock: none.
 */
import { maskTail } from "../core/masking.ts";
import { ownMask } from "../os/mask.ts";
import { closeLog, openLog, readLogEnd } from "./log-parts.ts";

const TAIL_BYTES = 8_192;

/** @returns undefined: there is no such log. @throws WatchdogError "state.unusable" */
export function readLogTail(path: string, mostLines: number): readonly string[] | undefined {
  const log = openLog(path);
  if (log === undefined) return undefined;
  try {
    const { bytes, isWhole } = readLogEnd(log, TAIL_BYTES);
    const text = Buffer.from(bytes).toString("utf8");
    const lines = maskTail(text, !isWhole, ownMask()).split("\n");
    if (lines.at(-1) === "") lines.pop();
    const whole = isWhole || lines.length === 1 ? lines : lines.slice(1);
    return whole.slice(-mostLines);
  } finally {
    closeLog(log);
  }
}
