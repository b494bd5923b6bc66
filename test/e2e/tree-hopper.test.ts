/**
 * A process that lives by fork and exit is met and ended, whatever its pace.
 *
 * The proof is the kernel's: the hopper holds the pipe that this test reads, so the run's output
 * ends only when no process of it is left; one that got away would write "died out" first. Looking
 * for it in `/proc` proves nothing, which the last test shows.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { python, waitForText } from "../support/processes.ts";
import { inRounds, limitOf } from "../support/rounds.ts";
import { findCarriers, FIXTURES, openScene, ROUNDS } from "../support/scene.ts";

const scene = openScene(import.meta.file);
/** A hopper that nobody ends gives up after this many seconds. */
const LIFE_S = "15";
const DELAYS_US = ["0", "300", "5000"];
/** All rounds are shared among the delays, for each of the two ends. */
const ROUNDS_OF_A_DELAY = Math.ceil(ROUNDS / DELAYS_US.length);
const LIMIT_MS = limitOf(ROUNDS_OF_A_DELAY, 1_500);
/** One that never rests takes a core for itself. */
const AT_ONCE = 2;
/** Doubled where a slow machine has not started the hopper by then: such a round proves nothing. */
const FIRST_SPAN_MS = 300;
const LONGEST_SPAN_MS = 5_000;
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

async function meetLimit(delayUs: string, name: string, spanMs = FIRST_SPAN_MS): Promise<void> {
  const ready = scene.path(`${name}-${spanMs}`);
  const ended = await scene.run(
    [
      ["--log", "off", "--timeout", `${spanMs}ms`, "--kill-after", "50ms"],
      [...scene.recordTo(name), "--"],
      ["sh", "-c", `${hopInto(delayUs, ready)} & exec sleep 91020`],
    ].flat(),
  );
  expect(ended.status).toBe(124);
  expect(scene.readRecord(name)).toMatchObject({ outcome: "timeout", unsignalable: [] });
  const said = existsSync(ready) ? readFileSync(ready, "utf8") : "";
  if (said === "" && spanMs < LONGEST_SPAN_MS) return meetLimit(delayUs, name, spanMs * 2);
  expect(said).toBe("ready\n");
}

async function meetEnd(delayUs: string, name: string): Promise<void> {
  const ready = scene.path(name);
  const wait = `until [ -s ${ready} ]; do sleep 0.01; done`;
  const ended = await scene.run(
    [
      ["--log", "off", "--kill-after", "0", ...scene.recordTo(name)],
      ["--", "sh", "-c", `${hopInto(delayUs, ready)} & ${wait}; exit 7`],
    ].flat(),
  );
  expect(readFileSync(ready, "utf8")).toBe("ready\n");
  expect(ended.status).toBe(7);
  expect(scene.readRecord(name)).toMatchObject({ outcome: "failed", unsignalable: [] });
}

describe.each(DELAYS_US)("a hopper of %s µs", (delayUs) => {
  test.each([
    ["the limit is reached", meetLimit],
    ["the command has ended", meetEnd],
  ] as const)(
    "is ended when %s",
    async (title, meet) => {
      const name = `${title.replaceAll(" ", "-")}-${delayUs}`;
      await inRounds(ROUNDS_OF_A_DELAY, (round) => meet(delayUs, `${name}-${round}`), AT_ONCE);
    },
    LIMIT_MS,
  );
});

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
