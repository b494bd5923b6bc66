/** Leases in words. */
import { describe, expect, test } from "bun:test";
import {
  renderLeaseBlock,
  renderLeaseList,
  renderLeaseShow,
} from "../../../src/cli/render-lease.ts";
import { showLease } from "../../../src/inspect/lease-facts.ts";
import { renderInstant } from "../../../src/cli/render-words.ts";
import { sampleRecord, sampleSlot } from "../../support/lease-samples.ts";
import { deadView, releasedView, sampleView } from "../../support/lease-views.ts";

const ACQUIRED = renderInstant("2026-01-01T00:00:01.000Z");
const RELEASED = renderInstant("2026-01-01T01:00:00.000Z");

describe("a block", () => {
  test("of a healthy holder tells who, since when, what and how it is", () => {
    expect(renderLeaseBlock(sampleView())).toEqual([
      `job:backup  held since ${ACQUIRED}`,
      "  run       run-7 (generation 7)",
      "  owner     pid 4711, ops@nightly",
      "  command   ./backup.sh --all",
      "  state     running, 2 processes",
      "  beat      2 s ago",
      "  items     912 of 1800 items (50 %), 12 failed, 46 a minute, 19 min 30 s left, at tables",
      "  message   item 17: no answer",
      "  work      output 3 s ago, files changed 4.4 s ago, CPU 12 % of a core, " +
        "I/O 18 MiB a minute",
      "  verdict   held (R2 beat-fresh)",
    ]);
  });

  test("tells of a main loop that is blocked while the beats go on", () => {
    const slot = sampleSlot({ head: { monotonicMs: 100_000, mainLoopMs: 68_000 } });
    const lines = renderLeaseBlock(sampleView({ slot }));
    expect(lines).toContain("  beat      2 s ago; main loop blocked for 32 s");
  });

  test("of a silent owner says that it lives", () => {
    const [head, ...lines] = renderLeaseBlock(sampleView({ beatAgeMs: 4_800_000 }));
    expect(head).toBe(
      `job:backup  stalled since ${ACQUIRED}: its owner has not beaten for too long, and lives`,
    );
    expect(lines).toContain("  beat      1 h 20 min ago");
  });

  test("does not name the last run while another one is just acquiring", () => {
    const view = sampleView({ record: sampleRecord({ state: "released" }) });
    expect(renderLeaseBlock(view)).toEqual([
      "job:backup  held: just being acquired",
      "  verdict   held (R3 being-acquired)",
    ]);
  });

  test("tells of a start that waits for its dependencies, and of no run that goes on", () => {
    const waitingStart = { pid: 815 };
    const released = sampleRecord({ state: "released" });
    expect(renderLeaseBlock(sampleView({ record: released, waitingStart }))[0]).toBe(
      "job:backup  held: a start (pid 815) waits for its dependencies",
    );
    expect(renderLeaseBlock(sampleView({ waitingStart }))[0]).toBe(
      `job:backup  held since ${ACQUIRED}`,
    );
  });

  test("of a lease that was given back tells no beat and no state", () => {
    expect(renderLeaseBlock(releasedView())).toEqual([
      `job:backup  free since ${RELEASED}`,
      "  run       run-7 (generation 7)",
      "  owner     pid 4711, ops@nightly",
      "  command   ./backup.sh --all",
      "  verdict   free (R4 released)",
    ]);
  });

  test("names what is left of a dead owner, ten at most", () => {
    const members = Array.from({ length: 12 }, (_, index) => ({
      pid: 100 + index,
      start_time: 1,
      command: `sleep ${index}`,
      isSignalable: true,
      isAncestor: false,
    }));
    const lines = renderLeaseBlock(deadView({ members, suspects: [] }));
    expect(lines[0]).toBe("job:backup  orphaned: its watchdog is dead; processes of it live");
    const survivors = lines.filter((line) => line.startsWith("  survivor  "));
    expect(survivors).toHaveLength(11);
    expect(survivors.at(0)).toBe("  survivor  100 sleep 0");
    expect(survivors.at(-1)).toBe("  survivor  and 2 more");
  });

  test("says so where the processes could not be looked for", () => {
    expect(renderLeaseBlock(deadView("unread"))[0]).toBe(
      "job:backup  orphaned: its watchdog is dead; its processes could not be looked for",
    );
  });

  test("of a corrupt record says what is wrong with it", () => {
    const source = { kind: "unreadable", reason: "it is no JSON object" } as const;
    const lock = { kind: "free" } as const;
    const view = sampleView({ lock, source, record: undefined, slot: undefined });
    expect(renderLeaseBlock(view)).toEqual([
      "job:backup  unknowable: nothing tells its last generation",
      "  verdict   unknowable (R8 no-generation)",
      "  trouble   the record cannot be read: it is no JSON object",
    ]);
  });

  test("cannot be made to write elsewhere on the terminal by the words of a record", () => {
    const evil = "\u001b[2J\nwatchdog: all is well";
    const view = sampleView({
      key: { kind: "job", name: evil },
      record: sampleRecord({ name: evil, command: evil, runner: evil, run_id: evil }),
    });
    const text = renderLeaseBlock(view).join("\n");
    expect(text).not.toContain("\u001b");
    expect(text.split("\n")).toHaveLength(10);
    expect(renderLeaseList([view]).split("\n")).toHaveLength(2);
    expect(renderLeaseShow(view)).not.toContain("\u001b");
  });
});

describe("the list", () => {
  test("has a line a lease, in columns", () => {
    const gpu = sampleView({ key: { kind: "lane", name: "gpu" }, beatAgeMs: 50_000 });
    expect(renderLeaseList([releasedView(), gpu]).split("\n")).toEqual([
      "job:backup  free     R4 released  generation 7",
      "lane:gpu    stalled  R2 beat-old  generation 7  pid 4711, ops@nightly  beat 50 s ago",
      "",
    ]);
  });

  test("says where there is nothing", () => {
    expect(renderLeaseList([])).toBe("no lease is known\n");
  });
});

test("the whole of a lease is shown under the names of JSON, one a line", () => {
  const view = sampleView();
  const lines = renderLeaseShow(view).trimEnd().split("\n");
  expect(lines.map((line) => line.split(/ +/)[0] ?? "")).toEqual(Object.keys(showLease(view)));
  expect(lines).toContainEqual(expect.stringMatching(/^generation +7$/));
  expect(lines).toContainEqual(expect.stringMatching(/^released_at +-$/));
  expect(lines).toContainEqual(expect.stringMatching(/^children +\[\{"pid":4712,/));
});
