/** The helper that runs rounds of other tests side by side hides no failure and skips no round. */
import { describe, expect, test } from "bun:test";
import { inRounds, limitOf } from "../support/rounds.ts";

const turn = (): Promise<void> => new Promise((resolve) => queueMicrotask(resolve));

describe("rounds", () => {
  test("are all run, once each, and so many at a time as is said", async () => {
    const seen: number[] = [];
    let [running, most] = [0, 0];
    await inRounds(
      10,
      async (round) => {
        running += 1;
        most = Math.max(most, running);
        await turn();
        seen.push(round);
        running -= 1;
      },
      3,
    );
    expect(seen.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect([running, most]).toEqual([0, 3]);
  });

  test("tell the first failure when nobody runs any more, and none begins after it", async () => {
    const begun: number[] = [];
    let running = 0;
    const act = async (round: number): Promise<void> => {
      begun.push(round);
      running += 1;
      await turn();
      running -= 1;
      if (round === 2) throw new Error("the third");
    };
    const told = await inRounds(100, act, 2).then(
      () => "nothing",
      (error: unknown) => String(error),
    );
    expect([told, running]).toEqual(["Error: the third", 0]);
    expect(begun.length).toBeLessThan(6);
  });

  test("have a limit that grows with them", () => {
    expect(limitOf(200, 100) - limitOf(100, 100)).toBe(100_000);
  });
});
