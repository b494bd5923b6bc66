/** Who is left from earlier attempts, out of what is seen below this process. */
import { expect, test } from "bun:test";
import type { ProcessRow } from "../../../src/core/tree-members.ts";
import { readStat } from "../../../src/os/proc.ts";
import { EarlierAttempts } from "../../../src/retry/earlier-attempts.ts";

const row = (pid: number, ppid: number, startTicks: number): ProcessRow => ({
  pid,
  ppid,
  startTicks,
  state: "S",
  isWatchdog: false,
});

test("a child from before is spared with whoever is below it, and a new one is not", async () => {
  const earlier = new EarlierAttempts();
  const child = Bun.spawn(["sleep", "60"]);
  try {
    const start = readStat(child.pid)?.startTicks ?? 0;
    earlier.note();
    const self = process.pid;
    const rows = [
      row(child.pid, self, start),
      row(900_001, self, start),
      row(900_002, child.pid, 5),
      row(900_003, 900_002, 6),
      row(900_004, 900_001, 7),
    ];
    expect([...earlier.find(rows)]).toEqual([child.pid, 900_002, 900_003]);
    // What was seen below it stays spared when its parent is gone; its pid alone proves nothing.
    const orphans = [row(900_003, self, 6), row(900_002, self, 99)];
    expect([...earlier.find(orphans)]).toEqual([900_003]);
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
});

test("nobody is spared where nothing was left", () => {
  expect([...new EarlierAttempts().find([row(900_001, process.pid, 5)])]).toEqual([]);
});
