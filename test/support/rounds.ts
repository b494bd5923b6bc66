/**
 * Rounds of a test that looks for races: several at a time where a round waits more than it
 * computes, and with a limit that grows with their number.
 *
 * Always holds: no round goes on when the test has its verdict; the first failure is the one that
 * is told.
 */

/** So many at once keep two cores busy, and none of them starves. */
const WIDTH = 4;

/** Each round has files, names and marks of its own: nobody else's end is its own. */
export async function inRounds(
  count: number,
  act: (round: number) => Promise<unknown>,
  width = WIDTH,
): Promise<void> {
  const failures: unknown[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < count && failures.length === 0) {
      const round = next;
      next += 1;
      await act(round).catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, count) }, work));
  if (failures.length > 0) throw failures[0];
}

/**
 * The limit of a test with so many rounds, in milliseconds: for a machine ten times as slow as the
 * one on which a round was measured. Only a broken build reaches it.
 */
export function limitOf(rounds: number, measuredMs: number): number {
  return 120_000 + rounds * measuredMs * 10;
}
