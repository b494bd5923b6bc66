/** The limit of a probe: heard of once, by whoever waits, and nothing of it while nobody does. */
import { expect, test } from "bun:test";
import { LONGEST_WAIT_MS } from "../../../src/os/timers.ts";
import { type LimitEnd, TimeLimit } from "../../../src/probe/time-limit.ts";

/** As many listeners as there are now; a signal tells nobody how many. */
function countingSignal(): { signal: AbortSignal; abort(): void; listeners(): number } {
  const controller = new AbortController();
  const { signal } = controller;
  let count = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...given: Parameters<typeof add>) => {
    count += 1;
    add(...given);
  };
  signal.removeEventListener = (...given: Parameters<typeof remove>) => {
    count -= 1;
    remove(...given);
  };
  return { signal, abort: () => controller.abort(), listeners: () => count };
}

test("nobody is listened to before anybody waits, nor after it was closed", () => {
  const { signal, listeners } = countingSignal();
  const limit = new TimeLimit(LONGEST_WAIT_MS, signal);
  expect(listeners()).toBe(0);
  const forget = limit.onEnd(() => undefined);
  limit.onEnd(() => undefined);
  expect(listeners()).toBe(1);
  forget();
  limit.close();
  limit.close();
  expect(listeners()).toBe(0);
});

test("an end that came while nobody waited is told to who begins to", () => {
  const heard: LimitEnd[] = [];
  const { signal, abort } = countingSignal();
  const stopped = new TimeLimit(LONGEST_WAIT_MS, signal);
  abort();
  expect(stopped.end).toBe("stopped");
  stopped.onEnd((end) => void heard.push(end));
  const over = new TimeLimit(0);
  over.onEnd((end) => void heard.push(end));
  expect([heard, over.end]).toEqual([["stopped", "time"], "time"]);
});

test("each that waits is told once, whatever comes after", () => {
  const heard: string[] = [];
  const { signal, abort } = countingSignal();
  const limit = new TimeLimit(LONGEST_WAIT_MS, signal);
  limit.onEnd((end) => void heard.push(`a ${end}`));
  limit.onEnd((end) => void heard.push(`b ${end}`))();
  limit.onEnd((end) => void heard.push(`c ${end}`));
  expect(limit.end).toBeUndefined();
  abort();
  abort();
  expect([heard, limit.end]).toEqual([["a stopped", "c stopped"], "stopped"]);
});
