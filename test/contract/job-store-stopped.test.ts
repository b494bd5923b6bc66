/**
 * A runner that stands still (SIGSTOP) while another run takes its job over, in the middle of a
 * transaction and between two: what it writes when it goes on changes no row, and what it held open
 * is never half there. A fault counts only with its evidence.
 */
import { afterAll, describe, expect, test } from "bun:test";
import {
  artifactsOf,
  done,
  JOB_ID,
  jobOf,
  openJobStore,
  partsOf,
  pending,
  running,
  startJobProgram,
  statesOf,
  written,
  WRITTEN,
} from "../support/job-scene.ts";
import { Journal } from "../../src/journal/journal.ts";
import { inspect, lease, openJournalScene, started } from "../support/journal-scene.ts";
import { waitForStopped } from "../fault/fault-scene.ts";

const LIMIT_MS = 60_000;
const TABLES = ["jobs", "steps", "artifacts", "step_attempts", "leases"];

const children = new Set<number>();
afterAll(() => {
  for (const pid of children) process.kill(pid, "SIGKILL");
});
const scene = openJournalScene();
afterAll(() => scene.close());

function rowsOf(state: string): unknown[][][] {
  return TABLES.map((table) => inspect(state, `SELECT * FROM ${table}`));
}

/** Run 1, which stands still at the place where step b is. */
async function stopAt(point: string) {
  const state = scene.newState();
  const directory = scene.newState();
  const { pid, ended } = startJobProgram([state, "apart", "1", "a", "b", "c"], {
    env: { WATCHDOG_FAULT: `${point}@b=stop`, WATCHDOG_FAULT_DIR: directory },
  });
  children.add(pid);
  void ended.then(() => children.delete(pid));
  await waitForStopped(directory);
  const signal = (name: "SIGCONT" | "SIGKILL") => {
    process.kill(pid, name);
    return ended;
  };
  return { state, signal };
}

const SENT_BACK = [{ record: pending("b", { because: "watchdog-killed", attempt: 1 }) }];

describe("a runner that stands still while its step runs", () => {
  test(
    "and whose job was taken over changes no row when it goes on",
    async () => {
      const { state, signal } = await stopAt("step.started");
      const { store } = openJobStore(state, 2);
      expect(await store.adopt(JOB_ID, SENT_BACK)).toEqual(WRITTEN);
      await written(store.startStep(running("b", 2)));
      const rows = rowsOf(state);
      const { lines, status } = await signal("SIGCONT");
      expect(lines).toEqual([
        "runs a",
        "runs b",
        expect.stringMatching(/^{"kind":"fenced","reason":"job:nightly has generation 2 /),
        "ended",
      ]);
      expect([rowsOf(state), status]).toEqual([rows, 0]);
      expect(await store.completeStep(done("b", 2), artifactsOf("b"))).toEqual(WRITTEN);
      store.close();
    },
    LIMIT_MS,
  );

  test(
    "and whose key was only granted to another run changes no row either",
    async () => {
      const { state, signal } = await stopAt("step.started");
      const journal = new Journal(state, () => undefined);
      journal.put(started(2, [lease("nightly", 2)]));
      journal.close(1000);
      const rows = rowsOf(state);
      expect((await signal("SIGCONT")).lines).toContainEqual(
        expect.stringContaining('{"kind":"fenced"'),
      );
      expect(rowsOf(state)).toEqual(rows);
    },
    LIMIT_MS,
  );

  test(
    "and whose job nobody has taken goes on as if nothing had happened",
    async () => {
      const { state, signal } = await stopAt("step.started");
      expect((await signal("SIGCONT")).lines).toEqual(["runs a", "runs b", "runs c", "ended"]);
      expect(jobOf(state).record.state).toBe("done");
    },
    LIMIT_MS,
  );
});

describe("a runner that stands still within the transaction that ends its step", () => {
  test.each([
    ["SIGKILL", ["a done 1", "b running 1", "c pending 0"]],
    ["SIGCONT", ["a done 1", "b done 1", "c done 1"]],
  ] as const)(
    "keeps others from writing until its %s, and what it held is there as a whole or not",
    async (name, left) => {
      const { state, signal } = await stopAt("step.completion.commit");
      const { store: early } = openJobStore(state, 2, { limitMs: 300 });
      expect(await early.adopt(JOB_ID, SENT_BACK)).toMatchObject({ because: "busy" });
      early.close();
      expect(statesOf(state)).toEqual(["a done 1", "b running 1", "c pending 0"]);
      await signal(name);
      expect(statesOf(state)).toEqual([...left]);
      expect(partsOf(jobOf(state))).toEqual([]);
      if (name === "SIGCONT") return;
      const { store } = openJobStore(state, 3);
      expect(await store.adopt(JOB_ID, SENT_BACK)).toEqual(WRITTEN);
      expect(statesOf(state)).toEqual(["a done 1", "b pending 1", "c pending 0"]);
      store.close();
    },
    LIMIT_MS,
  );
});
