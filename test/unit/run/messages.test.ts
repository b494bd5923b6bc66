/**
 * What a run says: one line each, from watchdog, with the processes by name and no more than a few
 * of them.
 */
import { describe, expect, test } from "bun:test";
import type { Outcome } from "../../../src/core/outcome.ts";
import type { RunOptions } from "../../../src/core/run-options.ts";
import { messages, type Named } from "../../../src/run/messages.ts";

const REDIS: Named = { pid: 4711, command: "redis-server *:6379" };
const many = (count: number): Named[] =>
  Array.from({ length: count }, (_, index) => ({ pid: index + 1, command: `job ${index + 1}` }));
const ended = (because: string) => ({ because }) as Outcome;
const options = (signal: number) => ({ signal }) as RunOptions;

describe("a message", () => {
  test("names what was left, and how to leave it alone", () => {
    expect(messages.leftoversEnded([REDIS])).toBe(
      "watchdog: ended 1 process left by the command: 4711 redis-server *:6379; " +
        "hint: --leftovers leave",
    );
    expect(messages.leftoversLeft(many(2))).toBe(
      "watchdog: left 2 processes of the command running: 1 job 1, 2 job 2",
    );
  });

  test("names five at most, and counts all", () => {
    expect(messages.leftoversEnded(many(5))).not.toContain(" more");
    expect(messages.notSignalable(many(6))).toBe(
      "watchdog: 6 processes of the command could not be ended and may still run: " +
        "1 job 1, 2 job 2, 3 job 3, 4 job 4, 5 job 5 and 1 more",
    );
    expect(messages.leftAlone(many(200))).toEndWith("5 job 5 and 195 more");
  });

  test.each([
    ["timeout", 15, "watchdog: ended by --timeout: sent TERM to the whole tree"],
    ["idle", 2, "watchdog: ended by --idle-timeout: sent INT to the whole tree"],
    ["not-after", 36, "watchdog: ended by --not-after: sent RTMIN+2 to the whole tree"],
  ])("tells the limit %s by its option", (because, signal, text) => {
    expect(messages.limitReached(ended(because), options(signal))).toBe(text);
  });

  test("is one line from watchdog, without a full stop", () => {
    const { leftoversEnded, leftoversLeft, notSignalable, leftAlone } = messages;
    const all = [leftoversEnded, leftoversLeft, notSignalable, leftAlone].map((write) =>
      write([REDIS]),
    );
    const rest = [
      messages.limitReached(ended("timeout"), options(15)),
      messages.notStarted("./x", "ENOENT"),
      messages.interruptIgnored(),
      messages.undelivered(5),
      messages.outputFailed("stdout", "ENOSPC"),
      messages.noLog("EACCES"),
      messages.noResultFile("/x/y", "EROFS"),
      messages.degraded("no FFI"),
    ];
    for (const text of [...all, ...rest]) expect(text).toMatch(/^watchdog: [^\n]+[^.\n]$/);
  });
});
