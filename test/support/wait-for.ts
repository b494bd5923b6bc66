/**
 * Waiting for something that will be true, instead of sleeping: looks again and again, and says
 * what it saw last when the time is up. The limit is only there so that a broken build ends; no
 * test proves anything by it.
 */
export interface WaitOptions {
  readonly limitMs?: number;
  readonly stepMs?: number;
}

const LIMIT_MS = 60_000;
const STEP_MS = 15;

/**
 * Resolves when nobody is found three times in a row: who is born while somebody looks may be
 * missed.
 */
export async function waitForNobody(
  find: () => readonly unknown[],
  what: string,
  options: WaitOptions = {},
): Promise<void> {
  let unseen = 0;
  const look = (): boolean => {
    unseen = find().length === 0 ? unseen + 1 : 0;
    return unseen >= 3;
  };
  await waitFor(look, what, options);
}

/** Resolves with the first value that is neither `undefined` nor `false`. */
export async function waitFor<Value>(
  look: () => Value | undefined | false | Promise<Value | undefined | false>,
  what: string,
  options: WaitOptions = {},
): Promise<Value> {
  const until = performance.now() + (options.limitMs ?? LIMIT_MS);
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > until) throw new Error(`waited for ${what}, last saw ${String(seen)}`);
    await Bun.sleep(options.stepMs ?? STEP_MS);
  }
}
