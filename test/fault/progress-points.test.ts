/**
 * Faults where the progress of a job is made, read, shown, counted for a dead run and removed: none
 * of them stops the job or changes its status, and what is left is cleared away. A row counts only
 * with the marker that the fault itself has written and fsynced.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { askJson } from "../support/ask.ts";
import { waitForBurial } from "../support/lease-seen.ts";
import { inState } from "../support/own-state.ts";
import { FAULTS, openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";
import { readEvidence, runWithFault } from "./fault-scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;
const BOUND = ["--max-fail-rate", "50%"];
/** Long enough for a look while it runs. */
const REPORTS =
  'echo ok 3 >>"${WATCHDOG_PROGRESS:-/dev/null}"; sleep 1.5; ' +
  'echo fail >>"${WATCHDOG_PROGRESS:-/dev/null}"; exit 3';

interface Row {
  readonly point: string;
  /** Keys that the state at the point must have. */
  readonly state: readonly string[];
  /** What stderr says where it throws. */
  readonly says: RegExp;
  /** What the record says then. */
  readonly degraded: string | undefined;
  readonly items: object | null;
}

const COUNTED = { ok: 3, failed: 1 };

const ROWS: readonly Row[] = [
  {
    point: "progress.create",
    state: ["path"],
    says: /^watchdog: items cannot be counted, so no bound on them holds: .*\n$/,
    degraded: "no-progress-file",
    items: null,
  },
  {
    point: "progress.read",
    state: ["readTo"],
    says: /^watchdog: the progress file cannot be read any more: .*\n$/,
    degraded: "progress-unread",
    items: null,
  },
  {
    point: "progress.remove",
    state: ["path"],
    says: /^watchdog: trouble of its own: .*\n$/,
    degraded: undefined,
    items: COUNTED,
  },
  { point: "beat.show", state: ["key"], says: /^$/, degraded: undefined, items: COUNTED },
];
const ACTS = ["throw", "eio", "enospc"];

describe.each(ROWS.map((row) => [row.point, row] as const))("at %s", (point, row) => {
  test.each(ACTS)(
    "%s costs the job nothing",
    async (act) => {
      const own = inState(scene, `${point}-${act}`);
      const words = [...BOUND, "--", "sh", "-c", REPORTS];
      const { ended, evidence, record } = await runWithFault(own, `${point}=${act}`, words);
      expect(evidence).toMatchObject([{ point, nth: 1, act }]);
      expect(Object.keys(evidence[0]?.state ?? {})).toContain(row.state[0] ?? "");
      expect(ended.status).toBe(3);
      expect(ended.stderr).toMatch(row.says);
      expect(record?.["outcome"]).toBe("failed");
      if (row.degraded !== undefined) expect(record?.["degraded"]).toContain(row.degraded);
      if (row.items === null) expect(record?.["items"]).toBeNull();
      else expect(record?.["items"]).toMatchObject(row.items);
      await runOnce(own);
    },
    LIMIT_MS,
  );

  test(
    "a delay changes nothing, and a kill leaves nothing that a later run does not clear",
    async () => {
      const slow = inState(scene, `${point}-delay`);
      const words = [...BOUND, "--", "sh", "-c", REPORTS];
      const delayed = await runWithFault(slow, `${point}=delay:300`, words);
      expect(delayed.evidence).toMatchObject([{ point, act: "delay:300" }]);
      expect([delayed.ended.status, delayed.ended.stderr]).toEqual([3, ""]);
      expect(delayed.record?.["items"]).toMatchObject(COUNTED);
      const dead = inState(scene, `${point}-kill`);
      const killed = await runWithFault(dead, `${point}=kill`, ["--name", "dead", ...words]);
      expect(killed.evidence).toMatchObject([{ point, act: "kill" }]);
      expect(killed.ended.status).toBe(137);
      // Where the guard has left, or dies of the same fault, it is the next run that clears.
      if (!["progress.remove", "progress.read"].includes(point)) {
        await waitFor(() => listFiles(dead).length === 0, "no progress file left");
      }
      await runOnce(dead);
    },
    LIMIT_MS,
  );

  test(
    "the same run without a fault counts, says nothing and leaves nothing",
    async () => {
      const own = inState(scene, `${point}-none`);
      const words = [...BOUND, "--", "sh", "-c", REPORTS];
      const { ended, evidence, record } = await runWithFault(own, undefined, words);
      expect([ended.status, ended.stderr, evidence]).toEqual([3, "", []]);
      expect(record?.["items"]).toMatchObject(COUNTED);
      expect(listFiles(own)).toEqual([]);
    },
    LIMIT_MS,
  );
});

/** A run that lasts until what others have left is cleared away, and only its own file is there. */
async function runOnce(own: typeof scene): Promise<void> {
  const isOwn = '[ "$(ls "${WATCHDOG_PROGRESS%/*}")" = "${WATCHDOG_PROGRESS##*/}" ]';
  const script = `until ${isOwn}; do sleep 0.05; done`;
  expect((await own.run(["--", "sh", "-c", script])).status).toBe(0);
  expect(listFiles(own)).toEqual([]);
}

function listFiles(own: typeof scene): string[] {
  try {
    return readdirSync(`${own.stateDirectory}/progress`);
  } catch {
    return []; // ENOENT: killed before there was one
  }
}

describe("at bury.progress", () => {
  test.each([...ACTS, "none"])(
    "%s: the run is told as abandoned all the same",
    async (act) => {
      const own = inState(scene, `bury-${act}`);
      const faults = own.path(`faults-${act}`);
      const fault = act === "none" ? undefined : `bury.progress=${act}`;
      const script = 'echo ok 3 >>"$WATCHDOG_PROGRESS"; kill -9 $PPID; sleep 94202';
      await own.run(["--name", "buried", "--", "sh", "-c", script], {
        binary: FAULTS,
        env: { WATCHDOG_FAULT: fault, WATCHDOG_FAULT_DIR: faults },
      });
      await waitForBurial(own.stateDirectory, "buried");
      const { runs } = await askJson(own, ["history", "buried"]);
      expect(runs[0].outcome).toBe("abandoned");
      if (act === "none") {
        expect(readEvidence(faults)).toEqual([]);
        expect(runs[0].items).toMatchObject({ ok: 3 });
      } else {
        expect(readEvidence(faults)).toMatchObject([{ point: "bury.progress", act }]);
        expect(runs[0].items).toBeNull();
        expect(runs[0].degraded).toContain("guard-no-progress");
      }
      await waitFor(() => listFiles(own).length === 0, "no progress file left");
    },
    LIMIT_MS,
  );
});

test("each point of this part is swept here", () => {
  expect(ROWS.map(({ point }) => point)).toHaveLength(4);
  expect(ACTS).toHaveLength(3);
});
