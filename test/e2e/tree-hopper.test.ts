/**
 * A process that lives by fork and exit is met and ended, whatever its pace.
 *
 * The proof is the kernel's: the hopper holds the pipe that this test reads, so the run's output
 * ends only when no process of it is left; one that got away would write "died out" first. Looking
 * for it in `/proc` proves nothing, which the last test shows.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { python, waitForText } from "../support/processes.ts";
import { findCarriers, FIXTURES, openScene, ROUNDS } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;
/** A hopper that nobody ends gives up after this many seconds. */
const LIFE_S = "15";
const DELAYS_US = ["0", "300", "5000"];
const HOPPER = makeHopper();

/** Compiled where there is a compiler; the same in Python is slower, and says so. */
function makeHopper(): readonly string[] {
  const source = `${FIXTURES}/hops-by-fork-and-exit.c`;
  const target = scene.path("hopper");
  const compiler = Bun.which("cc");
  if (compiler !== null && Bun.spawnSync([compiler, "-O2", "-o", target, source]).success) {
    return [target];
  }
  console.error("no C compiler: the hopper is the slower one in Python");
  return python("hops-by-fork-and-exit.py");
}

function hopInto(delayUs: string, ready: string): string {
  return [...HOPPER, delayUs, LIFE_S, ready].join(" ");
}

for (const delayUs of DELAYS_US) {
  test(
    `a hopper of ${delayUs} µs is ended when the limit is reached`,
    async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const ready = scene.path(`limit-${delayUs}-${round}`);
        const ended = await scene.run(
          [
            ["--log", "off", "--timeout", "500ms", "--kill-after", "50ms", ...scene.recordTo()],
            ["--", "sh", "-c", `${hopInto(delayUs, ready)} & exec sleep 91020`],
          ].flat(),
        );
        expect(readFileSync(ready, "utf8")).toBe("ready\n");
        expect(ended.status).toBe(124);
        expect(scene.readRecord()).toMatchObject({ outcome: "timeout", unsignalable: [] });
      }
    },
    LIMIT_MS,
  );

  test(
    `a hopper of ${delayUs} µs is ended when the command has ended`,
    async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const ready = scene.path(`end-${delayUs}-${round}`);
        const wait = `until [ -s ${ready} ]; do sleep 0.01; done`;
        const ended = await scene.run(
          [
            ["--log", "off", "--kill-after", "0", ...scene.recordTo()],
            ["--", "sh", "-c", `${hopInto(delayUs, ready)} & ${wait}; exit 7`],
          ].flat(),
        );
        expect(readFileSync(ready, "utf8")).toBe("ready\n");
        expect(ended.status).toBe(7);
        expect(scene.readRecord()).toMatchObject({ outcome: "failed", unsignalable: [] });
      }
    },
    LIMIT_MS,
  );
}

const MOST_LOOKS = 2_000;

test(
  "negative twin: two empty looks at /proc in a row are wrong about a living hopper",
  async () => {
    const ready = scene.path("twin");
    // The main command is the first hopper: only hoppers carry the cookie of the run.
    const run = scene.start(
      [
        ["--log", "off", "--leftovers", "wait", ...scene.recordTo("twin")],
        ["--", ...HOPPER, "0", LIFE_S, ready],
      ].flat(),
    );
    await waitForText(ready);
    const cookie = `WATCHDOG_RUN_ID=${scene.readRecord("twin")["run_id"]}`;
    // About one pair in thirteen is wrong: so many looks never all happen to be right.
    let emptyInARow = 0;
    let looks = 0;
    for (; looks < MOST_LOOKS && emptyInARow < 2; looks += 1) {
      emptyInARow = findCarriers(cookie).length === 0 ? emptyInARow + 1 : 0;
    }
    // It lived through all of them: nobody has ended it yet, and it has not given up.
    expect(readFileSync(ready, "utf8")).toBe("ready\n");
    run.kill("SIGTERM");
    run.kill("SIGTERM");
    // Two TERMs at once may be one: the second counts when the first has arrived.
    const again = setInterval(() => run.kill("SIGTERM"), 50);
    await run.ended;
    clearInterval(again);
    expect(readFileSync(ready, "utf8")).toBe("ready\n");
    expect([emptyInARow, looks]).toEqual([2, expect.any(Number)]);
  },
  LIMIT_MS,
);
