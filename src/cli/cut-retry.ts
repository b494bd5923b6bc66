/**
 * Cuts the lines of `watchdog retry`, and checks what its options must be to each other.
 *
 * Prints nothing and looks at no file.
 */

import { checkBackoff } from "../core/backoff.ts";
import type { RetryOptions } from "../core/retry-options.ts";
import { NEVER_RETRIED } from "../core/retry.ts";
import { cutOptions, problem } from "./cut-options.ts";
import type { Problem, Variables } from "./cut-options.ts";
import type { Cut } from "./cut.ts";
import { renderLongSpan } from "./lease-values.ts";
import { setTo } from "./read-line.ts";
import type { ReadLine } from "./read-line.ts";
import { RETRY_COMMAND, RETRY_DEFAULTS } from "./retry-table.ts";
import type { RetryParts } from "./retry-table.ts";

export function cutRetry(words: readonly string[], variables: Variables): Cut | Problem {
  const reading = cutOptions(words, 1, RETRY_COMMAND, variables);
  if (reading.kind === "help") return { kind: "help", topic: "retry" };
  if (reading.kind === "problem") return reading;
  const { next, given, parts } = reading;
  const { initialMs, capMs, factor, maxAttempts, maxElapsedMs, ...others }: RetryParts =
    Object.assign({}, RETRY_DEFAULTS, ...parts);
  const options: RetryOptions = {
    ...others,
    backoff: { initialMs, capMs, factor, maxAttempts, maxElapsedMs },
  };
  const line: ReadLine = { words, given };
  const refusal =
    refuseCommand(words[next]) ?? refuseBackoff(line, options) ?? refuseCodes(line, options);
  return refusal ?? { kind: "retry", options, commandAt: next };
}

function refuseCommand(command: string | undefined): Problem | undefined {
  if (command !== undefined && command !== "") return undefined;
  const message =
    command === undefined
      ? `no command to retry was given, expected ${RETRY_COMMAND.usage}`
      : 'the command is empty, found "", expected the name or path of a program';
  return problem(message, [{ words: ["help", "retry"] }]);
}

/** Of what each option alone may be, only this can be wrong between them. */
function refuseBackoff(line: ReadLine, { backoff }: RetryOptions): Problem | undefined {
  const [broken] = checkBackoff(backoff);
  if (broken === undefined) return undefined;
  const flag = line.given.has("--max-elapsed") ? "--max-elapsed" : "--backoff";
  return problem(`${flag}: found ${broken.found}, expected ${broken.expected}`, [
    setTo(line, "--max-elapsed", renderLongSpan(backoff.capMs)),
  ]);
}

function refuseCodes(line: ReadLine, options: RetryOptions): Problem | undefined {
  const { retryOn, noRetryOn } = options;
  const both = noRetryOn.find((code) => retryOn?.includes(code) === true);
  if (both !== undefined) {
    const message = `--no-retry-on: found ${both}, which --retry-on names too`;
    const repair = setTo(line, "--no-retry-on", undefined);
    return problem(`${message}, expected each code in one of them`, [repair]);
  }
  if (retryOn === undefined || !retryOn.every((code) => NEVER_RETRIED.includes(code))) {
    return undefined;
  }
  const never = NEVER_RETRIED.join(", ");
  const message = `--retry-on: found ${retryOn.join(",")}, expected a code beside ${never}`;
  return problem(`${message}, which are never tried again`, [setTo(line, "--retry-on", undefined)]);
}
