/** The words between main and a Worker: two views of one memory. */
import { describe, expect, test } from "bun:test";
import type { MonotonicAt } from "../../../src/core/time.ts";
import { ChunkRing } from "../../../src/output/chunk-ring.ts";
import { LogFeed, WAIT_BUDGET_MS } from "../../../src/output/log-feed.ts";
import { LogState, ORDERS, StreamState } from "../../../src/output/shared-state.ts";

function twoViews(): { worker: StreamState; main: StreamState } {
  const worker = new StreamState();
  return { worker, main: new StreamState(worker.memory) };
}

describe("stream state", () => {
  test("an order only moves on, in every pair of orders", () => {
    for (const [i, first] of ORDERS.entries()) {
      for (const [j, second] of ORDERS.entries()) {
        const { worker, main } = twoViews();
        main.setOrder(first);
        main.setOrder(second);
        expect(worker.order).toBe(j > i ? second : first);
      }
    }
  });

  test("the first end stays", () => {
    const { worker, main } = twoViews();
    expect(main.end).toBe("open");
    main.setEnd("abandoned");
    worker.setEnd("drained");
    expect(main.end).toBe("abandoned");
  });

  test("counts beyond 32 bits, and tells instants only when there are some", () => {
    const { worker, main } = twoViews();
    expect(main.lastOutputAt).toBeUndefined();
    for (let i = 0; i < 3; i += 1) worker.noteRead(4_294_967_296, 7.5 as MonotonicAt);
    expect(main).toMatchObject({ readBytes: 12_884_901_888, lastOutputAt: 7.5 });
    worker.startWrite(9 as MonotonicAt);
    expect(main.writeStartedAt).toBe(9 as MonotonicAt);
    worker.endWrite();
    expect(main.writeStartedAt).toBeUndefined();
  });
});

describe("log feed", () => {
  const ELSEWHERE = 1;

  /** A clock that each look moves on by `stepMs`, in place of the real waits. */
  function openFeed(stepMs: number) {
    let at = 1_000;
    const ring = new ChunkRing();
    ring.awaitRoom = () => {
      at += stepMs;
    };
    const state = new StreamState();
    let firsts = 0;
    const feed = new LogFeed({
      ring,
      log: new LogState(),
      state,
      now: () => at as MonotonicAt,
      onFirst: () => (firsts += 1),
    });
    return {
      ring,
      state,
      feed,
      pass: (ms: number) => (at += ms),
      now: () => at,
      firsts: () => firsts,
    };
  }

  function fill(feed: LogFeed): void {
    while (feed.claim(ELSEWHERE) !== ELSEWHERE) feed.publish(65_536);
    feed.publish(65_536);
  }

  test("waits for a full ring at most its budget, then drops and counts without waiting", () => {
    const { feed, state, now } = openFeed(10);
    const startedAt = now();
    fill(feed);
    expect(now() - startedAt).toBe(WAIT_BUDGET_MS);
    expect(state.logDroppedBytes).toBe(65_536);
    expect(feed.claim(ELSEWHERE)).toBe(ELSEWHERE);
    feed.publish(5);
    expect(now() - startedAt).toBe(WAIT_BUDGET_MS);
    expect(state.logDroppedBytes).toBe(65_541);
  });

  test("earns its waiting back by going on without, so output keeps half of its speed", () => {
    const { feed, pass, now } = openFeed(1);
    fill(feed);
    pass(30);
    const startedAt = now();
    feed.claim(ELSEWHERE);
    expect(now() - startedAt).toBe(30);
  });

  test("has room again as soon as the log has taken something", () => {
    const { feed, ring, state } = openFeed(10);
    fill(feed);
    ring.release();
    expect(feed.claim(ELSEWHERE)).not.toBe(ELSEWHERE);
    feed.publish(1);
    expect(state.logDroppedBytes).toBe(65_536);
  });

  test("asks for the log's reader once, at the first chunk", () => {
    const { feed, firsts } = openFeed(10);
    feed.claim(ELSEWHERE);
    expect(firsts()).toBe(0);
    feed.publish(1);
    fill(feed);
    expect(firsts()).toBe(1);
  });
});
