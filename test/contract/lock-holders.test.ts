/**
 * Who holds a lock, by name: with real locks of real processes, the one that has taken it and the
 * ones that have inherited it of a dead one.
 */
import { afterAll, expect, test } from "bun:test";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findHolderAround, findLockHolders } from "../../src/os/lock-holders.ts";
import { LOCK_SH, sys } from "../../src/os/sys.ts";
import { PYTHON } from "../support/outside.ts";
import { waitFor } from "../support/wait-for.ts";

const FIXTURE = join(import.meta.dir, "../fixtures/holds-fence.py");
const directory = mkdtempSync(join(tmpdir(), "watchdog-holders-"));
const started: number[] = [];
afterAll(() => {
  for (const pid of started) endQuietly(pid);
  rmSync(directory, { recursive: true, force: true });
});

function endQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // ESRCH: it has ended in its test
  }
}

let count = 0;
function freshFence(): string {
  count += 1;
  const path = join(directory, String(count), "fence");
  mkdirSync(join(directory, String(count)));
  writeFileSync(path, "");
  return path;
}

/** @returns the pid of whoever stays */
async function hold(path: string, how: "taker" | "heirs" | "opener"): Promise<number> {
  const ready = `${path}.${how}`;
  Bun.spawn([PYTHON, FIXTURE, path, ready, how], { stdin: "ignore", stdout: "ignore" });
  await waitFor(() => existsSync(ready), "a holder");
  const pid = Number(readFileSync(ready, "utf8"));
  started.push(pid);
  return pid;
}

test("the process that has taken the lock is named, and no other", async () => {
  const [path, other] = [freshFence(), freshFence()];
  const pid = await hold(path, "taker");
  await hold(other, "taker");
  const [holder, ...more] = findLockHolders(path);
  expect([holder?.pid, holder?.command.includes(FIXTURE), more]).toEqual([pid, true, []]);
});

test("so is the heir of one that is dead", async () => {
  const path = freshFence();
  const pid = await hold(path, "heirs");
  expect(findLockHolders(path).map((one) => one.pid)).toEqual([pid]);
});

test("who only has the file open is not, nor anybody where there is no file", async () => {
  const path = freshFence();
  await hold(path, "opener");
  expect(findLockHolders(path)).toEqual([]);
  expect(findLockHolders(join(directory, "missing"))).toEqual([]);
});

test("the look at everybody's descriptors ends at its limit; the taker needs none", async () => {
  const [path, taken] = [freshFence(), freshFence()];
  const pid = await hold(taken, "taker");
  await hold(path, "heirs");
  expect(findLockHolders(path, 0)).toEqual([]);
  expect(findLockHolders(taken, 0).map((one) => one.pid)).toEqual([pid]);
});

test("one of this process and those above it is told where it has a lock", async () => {
  const path = freshFence();
  await hold(path, "taker");
  expect(findHolderAround(path)).toBeUndefined();
  const fd = openSync(path, "r+");
  expect(findHolderAround(path)).toBeUndefined();
  expect(sys.flock(fd, LOCK_SH)).toBe(0);
  expect(findHolderAround(path)?.pid).toBe(process.pid);
  const script = `import { findHolderAround } from
    "${import.meta.dir}/../../src/os/lock-holders.ts";
    console.log(findHolderAround(${JSON.stringify(path)})?.pid);`;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  expect((await new Response(child.stdout).text()).trim()).toBe(String(process.pid));
  closeSync(fd);
});
