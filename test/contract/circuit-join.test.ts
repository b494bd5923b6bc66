/** Joining with a lock that is a file: it is watched no longer than the joining takes. */
import { afterAll, describe, expect, test } from "bun:test";
import { closeSync, constants, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { joinCircuit, type Joined } from "../../src/circuit/join.ts";
import { CircuitPlace } from "../../src/circuit/place.ts";
import type { CircuitChange, CircuitStore } from "../../src/core/shared-circuit.ts";
import { LOCK_EX, LOCK_NB, sys } from "../../src/os/sys.ts";
import { CIRCUIT } from "../support/circuit-samples.ts";
import { FakeRows, MemoryCircuitStore } from "../support/probers-scene.ts";

const root = mkdtempSync(join(tmpdir(), "watchdog-join-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const EDITED = { settingsHash: "fedcba9876543210", job: "nightly" };

function storeOf(): MemoryCircuitStore {
  const rows = new FakeRows();
  rows.put(CIRCUIT);
  return new MemoryCircuitStore(rows);
}

function joinWith(store: CircuitStore, place: CircuitPlace): Joined {
  const fresh = { ...CIRCUIT, settingsHash: EDITED.settingsHash, probes: 0, goodProbes: 0 };
  return joinCircuit({ store, place, join: EDITED, fresh });
}

let count = 0;
function placesOf(): readonly [CircuitPlace, CircuitPlace] {
  count += 1;
  const name = `circuit-${count}`;
  return [new CircuitPlace(root, name), new CircuitPlace(root, name)];
}

describe("a join with other settings", () => {
  test("leaves the lock to whoever probes next", () => {
    const [place, prober] = placesOf();
    const { decision, written } = joinWith(storeOf(), place);
    expect([decision, written]).toEqual([{ kind: "begin", because: "edited" }, "done"]);
    expect(prober.tryLock()).toBe("locked");
    prober.unlock();
  });

  test("leaves it also where the store fails", () => {
    const [place, prober] = placesOf();
    const store = storeOf();
    store.change = (): CircuitChange => {
      throw new Error("the store fails");
    };
    expect(() => joinWith(store, place)).toThrow("the store fails");
    expect(prober.tryLock()).toBe("locked");
    prober.unlock();
  });

  test.each([
    [2, 3, "done"],
    [3, 3, "busy"],
  ] as const)(
    "to a store that is busy for %i tries makes %i, and is then %s",
    (busyFor, expected, written) => {
      const [place] = placesOf();
      const store = storeOf();
      const change = store.change.bind(store);
      let tries = 0;
      store.change = (...words) => {
        tries += 1;
        return tries > busyFor ? change(...words) : { kind: "busy" };
      };
      expect([joinWith(store, place).written, tries]).toEqual([written, expected]);
    },
  );
});

describe("a lock that is taken from another", () => {
  test("is left to him while somebody else is about to take it", () => {
    const [silent, taker] = placesOf();
    expect([silent.tryLock(), taker.tryLock()]).toEqual(["locked", "busy"]);
    const { O_DIRECTORY, O_RDONLY } = constants;
    const directory = openSync(`${root}/circuits/circuit-${count}`, O_RDONLY | O_DIRECTORY);
    expect(sys.flock(directory, LOCK_EX | LOCK_NB)).toBe(0);
    expect([taker.takeFromOther(), silent.isLocked]).toEqual(["busy", true]);
    closeSync(directory);
    expect([taker.takeFromOther(), silent.isLocked]).toEqual(["locked", false]);
    taker.unlock();
  });
});
