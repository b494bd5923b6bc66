/** One picture of `status --watch`, and the words that `status` has for work. */
import { describe, expect, test } from "bun:test";
import {
  describeItems,
  describeWork,
  percentOf,
  renderBytes,
  renderRate,
} from "../../../src/cli/render-progress.ts";
import { cutLine, renderBar, renderWatch } from "../../../src/cli/render-watch.ts";
import { describeProgress } from "../../../src/core/described-progress.ts";
import type { StatusView } from "../../../src/inspect/status.ts";
import { sampleSlot } from "../../support/lease-samples.ts";
import { sampleRun, sampleView } from "../../support/lease-views.ts";

function statusOf(changes: Partial<StatusView> = {}): StatusView {
  return {
    stateDirectory: "/var/lib/watchdog",
    name: undefined,
    leases: [sampleView()],
    runs: [],
    lastRuns: [],
    circuits: [],
    troubles: [],
    ...changes,
  };
}

function draw(view: StatusView, columns = 120, rows = 24): string[] {
  return renderWatch({ view, size: { columns, rows }, clock: "02:00:07" });
}

describe("a picture", () => {
  test("has a bar, and that it lives and that it works on lines of their own", () => {
    expect(draw(statusOf())).toEqual([
      "watchdog status of /var/lib/watchdog  02:00:07  (q ends)",
      "",
      "job:backup  held  running  2 processes  beat 2 s ago",
      "  [##############--------------]  912 of 1800 items (50 %), 12 failed, 46 a minute, " +
        "19 min 30 s left, at tables",
      "  item 17: no answer",
      "  output 3 s ago, files changed 4.4 s ago, CPU 12 % of a core, I/O 18 MiB a minute",
    ]);
  });

  test("of nothing says so; a run without a lease and troubles are named", () => {
    expect(draw(statusOf({ leases: [] }))).toEqual([
      "watchdog status of /var/lib/watchdog  02:00:07  (q ends)",
      "",
      "no lease is held",
    ]);
    const lines = draw(statusOf({ leases: [], runs: [sampleRun()], troubles: ["journal: away"] }));
    expect(lines.slice(2)).toEqual([
      `${sampleRun().job}  running without a lease`,
      "",
      "journal: away",
    ]);
  });

  test("never has more lines or columns than its window, whatever it is told", () => {
    const evil = `\u001b[2J${"\u{1f600}".repeat(90)}`;
    const told = { checkpoint: evil, lastMessage: evil, ratePerMinute: 1e9, reportedMs: 1 };
    const { work } = sampleSlot().body;
    const slot = sampleSlot({ body: { work: work && { ...work, told } } });
    const leases = Array.from({ length: 12 }, () => sampleView({ slot }));
    let pictures = 0;
    for (const columns of [1, 2, 10, 39, 80, 300]) {
      for (const rows of [1, 2, 3, 5, 24, 100]) {
        const lines = draw(statusOf({ leases }), columns, rows);
        expect(lines.length).toBeLessThanOrEqual(rows);
        for (const line of lines) {
          expect(Bun.stringWidth(line)).toBeLessThan(Math.max(columns, 1));
          expect(line).not.toContain("\u001b");
        }
        pictures += 1;
      }
    }
    expect(pictures).toBe(36);
    const [last] = draw(statusOf({ leases }), 80, 10).slice(-1);
    expect(last).toMatch(/^\d+ lines more: make the window higher, or name a job$/);
  });

  test.each([
    [0, 10, "[--------]"],
    [5, 10, "[####----]"],
    [9.99, 10, "[#######-]"],
    [10, 10, "[########]"],
    [20, 10, "[########]"],
    [0, 0, "[########]"],
  ])("has of %f of %i the bar %s", (done, total, bar) => {
    expect(renderBar({ done, total, width: 10 })).toBe(bar);
  });

  test("is cut at a letter", () => {
    expect(cutLine("ab\u{1f600}c", 3)).toBe("ab");
    expect(cutLine("ab\u{1f600}c", 4)).toBe("ab\u{1f600}");
    expect(cutLine("abc", 3)).toBe("abc");
  });
});

describe("words", () => {
  test("of items are as many as are known", () => {
    const items = (head: object, told: object): string | undefined => {
      const { work } = sampleSlot().body;
      const all =
        work?.told === null || work?.told === undefined ? null : { ...work.told, ...told };
      const slot = sampleSlot({ head, body: { work: work && { ...work, told: all } } });
      const progress = describeProgress(slot);
      return progress && describeItems(progress);
    };
    const bare = { checkpoint: null, lastMessage: null, ratePerMinute: null };
    expect(items({ counts: { ok: 3, failed: 0, total: null } }, bare)).toBe("3 items");
    expect(
      items({ counts: { ok: 9, failed: 1, total: 10 } }, { ...bare, ratePerMinute: 2.5 }),
    ).toBe("10 of 10 items (100 %), 1 failed, 2.5 a minute");
    expect(items({ counts: null }, bare)).toBe("0 items");
  });

  test("of work have no age where the beat has none", () => {
    expect(describeWork(sampleView({ beatAgeMs: undefined }))).toBe(
      "CPU 12 % of a core, I/O 18 MiB a minute",
    );
    const silent = sampleSlot({ head: { counts: null }, body: { work: null } });
    expect(describeWork(sampleView({ slot: silent }))).toBeUndefined();
  });

  test("of numbers are short", () => {
    expect([999, 1_000].map((done) => percentOf(done, 1_000))).toEqual([99, 100]);
    expect([0.123, 9.999, 45.5].map(renderRate)).toEqual(["0.12", "10", "46"]);
    expect([0, 512, 1_536, 10 * 2 ** 20, 2 ** 60].map(renderBytes)).toEqual([
      "0 B",
      "512 B",
      "1.5 KiB",
      "10 MiB",
      "1024 PiB",
    ]);
  });
});
