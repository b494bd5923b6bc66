/** What becomes of a notice after an attempt, and whether somebody is at it. */
import { describe, expect, test } from "bun:test";
import type { Sent } from "../../../src/core/delivery.ts";
import {
  type Claimant,
  decideSettlement,
  DELIVERY_BACKOFF,
  isClaimed,
  isDue,
  LONGEST_ASKED_MS,
  LONGEST_CLAIM_MS,
  LONGEST_PAUSE_MS,
  parseClaim,
  renderClaim,
} from "../../../src/core/outbox.ts";

const NOW = 1_700_000_000_000;
const DOWN: Sent = { kind: "failed", because: "no-answer", detail: "nobody there" };
const REST = { now: NOW, random: 0.999_999 };

describe("after an attempt", () => {
  test("a notice that was taken is delivered", () => {
    const row = { attempts: 1, createdAt: NOW };
    expect(decideSettlement(row, { kind: "delivered" }, REST)).toEqual({
      kind: "delivered",
      at: NOW,
    });
  });

  test("one that was refused for good is dead", () => {
    const sent: Sent = { kind: "refused", because: "rejected", detail: "status 404" };
    expect(decideSettlement({ attempts: 1, createdAt: NOW }, sent, REST)).toEqual({
      kind: "dead",
      because: "rejected: status 404",
    });
  });

  test("another waits longer each time, below the cap", () => {
    const waits = [1, 2, 3, 9, 20].map((attempts) => {
      const next = decideSettlement({ attempts, createdAt: NOW }, DOWN, REST);
      return next.kind === "waiting" ? Math.round((next.nextAt - NOW) / 1000) : next.kind;
    });
    expect(waits).toEqual([30, 60, 120, 3_600, 3_600]);
  });

  test("the bound of attempts and that of time end it, each alone", () => {
    const { maxAttempts, maxElapsedMs } = DELIVERY_BACKOFF;
    const kindOf = (attempts: number, ageMs: number): string =>
      decideSettlement({ attempts, createdAt: NOW - ageMs }, DOWN, REST).kind;
    expect(kindOf(maxAttempts - 1, 0)).toBe("waiting");
    expect(kindOf(maxAttempts, 0)).toBe("dead");
    expect(kindOf(1, maxElapsedMs - 1)).toBe("waiting");
    expect(kindOf(1, maxElapsedMs)).toBe("dead");
  });

  test("whoever is never there is given up within days and after some dozen attempts", () => {
    for (const retryAfterMs of [0, 10 * LONGEST_ASKED_MS]) {
      let [now, attempts] = [NOW, 0];
      for (let kind = "waiting"; kind === "waiting" && attempts < 1_000;) {
        attempts += 1;
        const sent: Sent = { ...DOWN, retryAfterMs };
        const next = decideSettlement({ attempts, createdAt: NOW }, sent, { now, random: 0.5 });
        ({ kind } = next);
        if (next.kind === "waiting") now = next.nextAt;
      }
      expect(attempts).toBeWithin(5, 100);
      expect((now - NOW) / 86_400_000).toBeWithin(0.5, 4);
    }
  });

  test("a receiver that asks for less than the wait is not asked sooner for it", () => {
    const sent: Sent = { ...DOWN, retryAfterMs: 1_000 };
    const next = decideSettlement({ attempts: 1, createdAt: NOW }, sent, REST);
    expect(next.kind === "waiting" ? Math.round((next.nextAt - NOW) / 1000) : next.kind).toBe(30);
  });

  test("a receiver that says when is heard, up to a limit", () => {
    const nextOf = (retryAfterMs: number): number => {
      const next = decideSettlement(
        { attempts: 1, createdAt: NOW },
        { ...DOWN, retryAfterMs },
        {
          now: NOW,
          random: 0,
        },
      );
      return next.kind === "waiting" ? next.nextAt - NOW : -1;
    };
    expect([0, 90_000, 10 * LONGEST_ASKED_MS].map(nextOf)).toEqual([0, 90_000, LONGEST_ASKED_MS]);
  });
});

describe("a next attempt", () => {
  test("is due when its time has come, or was never meant so far ahead", () => {
    const due = [NOW - 1, NOW, NOW + 1, NOW + LONGEST_PAUSE_MS, NOW + LONGEST_PAUSE_MS + 1];
    expect(due.map((nextAt) => isDue({ nextAt }, NOW))).toEqual([true, true, false, false, true]);
  });
});

describe("a claim", () => {
  const claimant: Claimant = {
    pid: 42,
    start_time: 7,
    boot_id: "b",
    pid_namespace: "4026531836",
    token: "t",
  };
  const claimedBy = renderClaim(claimant);
  const held = (claimedUntil: number | null, lives: boolean, by: string | null = claimedBy) =>
    isClaimed({ claimedBy: by, claimedUntil }, NOW, () => lives);

  test("holds while its time is not over and its holder may live", () => {
    expect(held(NOW + 1, true)).toBe(true);
    expect(held(NOW + 1, false)).toBe(false);
    expect(held(NOW, true)).toBe(false);
    expect(held(null, true)).toBe(false);
    expect(isClaimed({ claimedBy: null, claimedUntil: NOW + 1 }, NOW, () => true)).toBe(false);
  });

  test("does not hold for ever where a clock was wrong", () => {
    expect(held(NOW + LONGEST_CLAIM_MS, true)).toBe(true);
    expect(held(NOW + LONGEST_CLAIM_MS + 1, true)).toBe(false);
  });

  test("of something that cannot be read ends with its time alone", () => {
    expect(held(NOW + 1, false, "{")).toBe(true);
    expect(held(NOW, false, "{")).toBe(false);
  });

  test("is read back as it was written", () => {
    expect(parseClaim(claimedBy)).toEqual(claimant);
    expect(["", "null", "{}", '{"pid":1}'].map(parseClaim)).toEqual(Array(4).fill(undefined));
  });
});
