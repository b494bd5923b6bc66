/** The failure that some work must end in. */
import type { WatchdogError } from "../../src/core/errors.ts";

export async function failureOf(work: Promise<unknown> | (() => unknown)): Promise<WatchdogError> {
  try {
    await (typeof work === "function" ? work() : work);
  } catch (error) {
    return error as WatchdogError;
  }
  throw new Error("no failure");
}
