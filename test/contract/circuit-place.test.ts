/** The lock of a circuit with real files and processes. */
import { afterAll, describe, expect, spyOn, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CircuitPlace } from "../../src/circuit/place.ts";
import { LOCK_EX, LOCK_NB, sys } from "../../src/os/sys.ts";
import { countOpen } from "../support/open-files.ts";
import { PYTHON } from "../support/outside.ts";
import { rootTest } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const FIXTURE = join(import.meta.dir, "../fixtures/holds-lock.py");
const root = mkdtempSync(join(tmpdir(), "watchdog-circuit-"));
const children: Bun.Subprocess[] = [];
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await Promise.all(children.map((child) => child.exited));
  rmSync(root, { recursive: true, force: true });
});

let count = 0;
function fresh(mode = 0o700): string {
  count += 1;
  const state = `${root}/${count}`;
  mkdirSync(state);
  chmodSync(state, mode);
  return state;
}

const NAME = "model";
const lockOf = (state: string): string => `${state}/circuits/${NAME}/lock`;
const place = (state: string, name = NAME): CircuitPlace => new CircuitPlace(state, name);
const modeOf = (path: string): string => (statSync(path).mode & 0o7777).toString(8);

/** Another process that has the lock of this file. */
async function holdElsewhere(path: string): Promise<Bun.Subprocess> {
  const notes = `${path}.notes`;
  const child = Bun.spawn([PYTHON, FIXTURE, notes, "0", path], { stdin: "ignore" });
  children.push(child);
  await waitFor(() => existsSync(notes) && readFileSync(notes, "utf8") === "ready\n", "a holder");
  unlinkSync(notes);
  return child;
}

describe("of two that want the lock", () => {
  test("one has it until it gives it back", () => {
    const state = fresh();
    const [one, other] = [place(state), place(state)];
    expect([one.tryLock(), other.tryLock()]).toEqual(["locked", "busy"]);
    expect([one.isLocked, other.isLocked]).toEqual([true, false]);
    expect(one.tryLock()).toBe("locked");
    one.unlock();
    one.unlock();
    expect([other.tryLock(), one.tryLock()]).toEqual(["locked", "busy"]);
    other.unlock();
  });

  test("each has that of a circuit of its own, whatever the name", () => {
    const state = fresh();
    const names = ["a", "A", "a/b", "..", ".", "http://h/p?q#0f", "é", "x".repeat(400)];
    const long = [`${"x".repeat(400)}y`, " "];
    const places = [...names, ...long].map((name) => place(state, name));
    expect(places.map((each) => each.tryLock())).toEqual(Array(10).fill("locked"));
    expect(readdirSync(`${state}/circuits`)).toHaveLength(10);
    expect(readdirSync(state)).toEqual(["circuits"]);
    for (const each of places) each.unlock();
  });

  test("one has it when the process that had it is killed, and not before", async () => {
    const state = fresh();
    const mine = place(state);
    mine.tryLock();
    mine.unlock();
    const holder = await holdElsewhere(lockOf(state));
    expect(mine.tryLock()).toBe("busy");
    holder.kill("SIGKILL");
    await holder.exited;
    expect(mine.tryLock()).toBe("locked");
    mine.unlock();
  });

  test("and the word that it is wanted is another file, which keeps nobody from it", () => {
    const state = fresh();
    const wanted = [1, 2].map(() => new CircuitPlace(state, NAME, "wanted"));
    expect(wanted.map((each) => each.tryLock())).toEqual(["locked", "busy"]);
    const mine = place(state);
    expect([mine.tryLock(), mine.watchUse().isInUse]).toEqual(["locked", false]);
    const asker = new CircuitPlace(state, NAME, "wanted");
    expect(asker.watchUse().isInUse).toBe(true);
    for (const each of wanted) each.unlock();
    const watch = asker.watchUse();
    watch.release();
    expect(watch.isInUse).toBe(false);
    mine.unlock();
  });

  test("the one that asks whether it is in use disturbs nobody else who asks", async () => {
    const state = fresh();
    const [one, other] = [place(state), place(state)];
    const watches = [one.watchUse(), other.watchUse()];
    expect(watches.map(({ isInUse }) => isInUse)).toEqual([false, false]);
    const prober = place(state);
    expect(prober.tryLock()).toBe("busy"); // nobody begins to probe meanwhile
    for (const watch of watches) watch.release();
    expect(prober.tryLock()).toBe("locked");
    expect([one.watchUse().isInUse, prober.watchUse().isInUse]).toEqual([true, false]);
    prober.unlock();
  });
});

describe("a lock file that was", () => {
  test("removed is made and locked again by its holder", () => {
    const state = fresh();
    const [one, other] = [place(state), place(state)];
    one.tryLock();
    unlinkSync(lockOf(state));
    expect(one.isLocked).toBe(false);
    expect([one.tryLock(), other.tryLock()]).toEqual(["locked", "busy"]);
    one.unlock();
  });

  test("removed with its directory, too", () => {
    const state = fresh();
    const one = place(state);
    one.tryLock();
    rmSync(`${state}/circuits`, { recursive: true });
    expect([one.isLocked, one.tryLock(), one.isLocked]).toEqual([false, "locked", true]);
    one.unlock();
  });

  test("replaced is had by who locks the new one, and the old holder sees that", async () => {
    const state = fresh();
    const one = place(state);
    one.tryLock();
    writeFileSync(`${state}/new`, "", { mode: 0o600 });
    renameSync(`${state}/new`, lockOf(state));
    const holder = await holdElsewhere(lockOf(state));
    expect([one.isLocked, one.tryLock()]).toEqual([false, "busy"]);
    holder.kill("SIGKILL");
    await holder.exited;
    expect(one.tryLock()).toBe("locked");
    one.unlock();
  });

  test("replaced between opening and locking is not taken for the one at the path", () => {
    const state = fresh();
    const one = place(state);
    one.tryLock();
    one.unlock();
    const real = sys.flock.bind(sys);
    let replacements = 2;
    const spy = spyOn(sys, "flock").mockImplementation((fd, operation) => {
      if (replacements > 0) {
        writeFileSync(`${state}/new`, "", { mode: 0o600 });
        renameSync(`${state}/new`, lockOf(state));
      }
      replacements -= 1;
      return real(fd, operation);
    });
    expect([one.tryLock(), one.isLocked, place(state).tryLock()]).toEqual(["locked", true, "busy"]);
    one.unlock();
    replacements = 100;
    expect(one.tryLock()).toMatchObject({ kind: "unusable" });
    spy.mockRestore();
  });
});

describe("what is no lock file of ours", () => {
  const PLANTS: Readonly<Record<string, (path: string) => void>> = {
    "a link": (path) => symlinkSync(`${root}/target`, path),
    "a FIFO": (path) => void Bun.spawnSync(["mkfifo", path]),
    "a directory": (path) => mkdirSync(path),
    "a link in place of the directory": (path) => {
      rmSync(join(path, ".."), { recursive: true });
      symlinkSync(root, join(path, ".."));
    },
  };
  test.each(Object.keys(PLANTS))("%s is refused with a reason, without waiting", (what) => {
    const state = fresh();
    mkdirSync(`${state}/circuits/${NAME}`, { recursive: true });
    PLANTS[what]?.(lockOf(state));
    const one = place(state);
    expect(one.tryLock()).toEqual({ kind: "unusable", reason: expect.any(String) });
    expect([one.isLocked, one.watchUse().isInUse]).toEqual([false, false]);
    expect(existsSync(`${root}/target`)).toBe(false);
    expect(existsSync(`${root}/lock`)).toBe(false);
  });

  rootTest("so is somebody else's, unless a group shares the directory", () => {
    const state = fresh();
    mkdirSync(`${state}/circuits/${NAME}`, { recursive: true, mode: 0o700 });
    writeFileSync(lockOf(state), "");
    chownSync(lockOf(state), 54_391, 54_392);
    expect(place(state).tryLock()).toMatchObject({ kind: "unusable" });
    chownSync(`${state}/circuits/${NAME}`, 0, 54_392);
    chmodSync(`${state}/circuits/${NAME}`, 0o2770);
    const one = place(state);
    expect(one.tryLock()).toBe("locked");
    one.unlock();
  });

  test("a place where nothing can be made is unusable, and throws nothing", () => {
    const one = place(`${root}/missing`);
    expect(one.tryLock()).toMatchObject({ kind: "unusable" });
  });
});

describe("modes", () => {
  test("are those of the state directory, whatever the umask", () => {
    const GID = process.getegid?.() ?? 0;
    for (const [mode, directory, file] of [
      [0o700, "700", "600"],
      [0o2770, "2770", "660"],
    ] as const) {
      const state = fresh();
      chownSync(state, -1, GID);
      chmodSync(state, mode);
      const before = process.umask(0o277);
      const one = place(state);
      expect(one.tryLock()).toBe("locked");
      process.umask(before);
      const paths = [`${state}/circuits`, `${state}/circuits/${NAME}`];
      expect(paths.map(modeOf)).toEqual([directory, directory]);
      expect(modeOf(lockOf(state))).toBe(file);
      one.unlock();
    }
  });

  test("that somebody has changed are put right", () => {
    const state = fresh();
    const one = place(state);
    one.tryLock();
    one.unlock();
    chmodSync(lockOf(state), 0o644);
    expect(one.tryLock()).toBe("locked");
    expect(modeOf(lockOf(state))).toBe("600");
    one.unlock();
  });
});

test("descriptors are closed: a thousand tries, busy and had, leave none behind", () => {
  const state = fresh();
  const one = place(state);
  one.tryLock();
  const fd = openSync(lockOf(state), "r+");
  const before = countOpen();
  one.unlock();
  expect(sys.flock(fd, LOCK_EX | LOCK_NB)).toBe(0);
  for (let index = 0; index < 1_000; index += 1) expect(one.tryLock()).toBe("busy");
  closeSync(fd);
  for (let index = 0; index < 1_000; index += 1) {
    one.tryLock();
    one.unlock();
    one.watchUse().release();
  }
  expect(countOpen()).toBe(before - 2);
});

describe("of one that has the lock and gives no sign", () => {
  test("one of many takes it, and he finds that it is his no more", () => {
    const state = fresh();
    const [silent, ...others] = [place(state), place(state), place(state), place(state)];
    expect(silent.tryLock()).toBe("locked");
    expect(others.map((each) => each.tryLock())).toEqual(["busy", "busy", "busy"]);
    expect(others.map((each) => each.takeFromOther())).toEqual(["locked", "busy", "busy"]);
    expect([silent.isLocked, silent.tryLock()]).toEqual([false, "busy"]);
    expect(others.map(({ isLocked }) => isLocked)).toEqual([true, false, false]);
    others[0]?.unlock();
    expect(silent.tryLock()).toBe("locked");
    silent.unlock();
  });

  test("nobody takes it who has not seen him, and another one has another name", async () => {
    const state = fresh();
    const [first, second, stranger] = [place(state), place(state), place(state)];
    expect(first.tryLock()).toBe("locked");
    expect([stranger.other, stranger.takeFromOther()]).toEqual([undefined, "busy"]);
    expect([second.tryLock(), stranger.tryLock()]).toEqual(["busy", "busy"]);
    const seen = stranger.other;
    expect([second.takeFromOther(), stranger.tryLock()]).toEqual(["locked", "busy"]);
    expect(stranger.other).not.toBe(seen);
    second.unlock();
    expect(first.isLocked).toBe(false);
  });

  test("it is taken from another process, which keeps a file that nobody finds", async () => {
    const state = fresh();
    const one = place(state);
    expect(one.tryLock()).toBe("locked");
    one.unlock();
    await holdElsewhere(lockOf(state));
    expect([one.tryLock(), one.takeFromOther(), one.isLocked]).toEqual(["busy", "locked", true]);
    one.unlock();
  });
});
