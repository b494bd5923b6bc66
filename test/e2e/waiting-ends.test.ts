/**
 * A run that waits for its lease: what begins only when the lease is had, and what is written down
 * when it is asked to end before that.
 */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { openScene, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;
/** More than the limit of the run. */
const WAIT_MS = 4_000;

interface Holder {
  readonly run: Started;
  end(): Promise<void>;
}

/** Holds the key until it is told to end. */
async function hold(name: string): Promise<Holder> {
  const [ready, gate] = [scene.path(`${name}.ready`), scene.path(`${name}.gate`)];
  const script = 'echo >"$0"; until [ -e "$1" ]; do sleep 0.02; done';
  const run = scene.start(["--log", "off", "--name", name, "--", "sh", "-c", script, ready, gate]);
  await waitFor(() => existsSync(ready), "the holder's command");
  return {
    run,
    end: async () => {
      await Bun.write(gate, "");
      expect((await run.ended).status).toBe(0);
    },
  };
}

/** One more process than the holder waits in flock(2) for the lock of the key. */
async function waitForWaiter(name: string): Promise<void> {
  const lock = `${scene.stateDirectory}/leases/job/${name}/lock`;
  const inode = (await Bun.file(lock).stat()).ino;
  const isWaiting = (): boolean =>
    readFileSync("/proc/locks", "utf8")
      .split("\n")
      .some((line) => line.includes("-> FLOCK") && line.includes(`:${inode} `));
  await waitFor(isWaiting, "a waiter in the kernel's queue");
}

test(
  "a request to end while it waits is written down, and the status is the signal's",
  async () => {
    const holder = await hold("asked");
    const waiting = scene.start(
      [
        ["--log", "off", "--name", "asked", "--wait", "1m"],
        scene.recordTo("asked"),
        ["--", "touch", scene.path("never")],
      ].flat(),
    );
    await waitForWaiter("asked");
    waiting.kill("SIGTERM");
    expect((await waiting.ended).signal).toBe("SIGTERM");
    expect(existsSync(scene.path("never"))).toBe(false);
    const record = { state: "ended", outcome: "stopped", because: "terminated", exit_status: 143 };
    expect(scene.readRecord("asked")).toMatchObject({ ...record, child_pid: null });
    await holder.end();
  },
  LIMIT_MS,
);

test(
  "its deadline and its duration count from the moment the lease is had",
  async () => {
    const holder = await hold("clocked");
    const waiting = scene.start(
      [
        ["--log", "off", "--name", "clocked", "--wait", "1m", "--timeout", "3s"],
        scene.recordTo("clocked"),
        ["--", "sh", "-c", 'echo "$(date +%s) $WATCHDOG_DEADLINE"'],
      ].flat(),
    );
    await waitForWaiter("clocked");
    const since = performance.now();
    await waitFor(() => performance.now() - since > WAIT_MS, "more than the limit of the run");
    const freeFrom = performance.now();
    await holder.end();
    const ended = await waiting.ended;
    const mostMs = performance.now() - freeFrom;
    const [now = 0, deadline = 0] = ended.stdout.toString().trim().split(" ").map(Number);
    expect([ended.status, deadline >= now]).toEqual([0, true]);
    expect(scene.readRecord("clocked")["duration_ms"]).toBeLessThanOrEqual(mostMs + 1);
  },
  LIMIT_MS,
);

test(
  "it waits no longer than until --not-after, and nothing is started then",
  async () => {
    const holder = await hold("night");
    const at = new Date(Date.now() + 2_000).toTimeString().slice(0, 8);
    const late = scene.path("late");
    const ended = await scene.run(
      [
        ["--log", "off", "--name", "night", "--wait", "1m", "--not-after", at],
        ["--", "touch", late],
      ].flat(),
    );
    expect([ended.status, existsSync(late)]).toEqual([75, false]);
    await holder.end();
  },
  LIMIT_MS,
);
