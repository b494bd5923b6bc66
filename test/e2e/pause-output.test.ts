/** The output of a paused run: what was written arrives, nothing is lost, and `--quiet` holds. */
import { describe, expect, test } from "bun:test";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { openPausing, type PausingRun } from "../support/pausing.ts";
import { waitForText } from "../support/processes.ts";
import { waitFor } from "../support/wait-for.ts";

const { scene, start } = openPausing(import.meta.file);
const LIMIT_MS = 180_000;

/** Prints the first part, waits for the gate, prints the second part and leaves with a status. */
function script(status: number): string {
  return `echo before; echo warned >&2; echo ready >"$0.ready"
    until [ -e "$0" ]; do sleep 0.02; done; echo after; exit ${status}`;
}

async function startPrinting(
  name: string,
  { args, status }: { readonly args: readonly string[]; readonly status: number },
): Promise<{ run: PausingRun; gate: string }> {
  const gate = scene.path(`${name}.gate`);
  const run = await start({ name, args, command: ["sh", "-c", script(status), gate] });
  await waitForText(`${gate}.ready`);
  return { run, gate };
}

async function pauseAndGoOn(run: PausingRun, gate: string): Promise<void> {
  await run.pause();
  await run.resume();
  writeFileSync(gate, "");
}

describe("the reader of a pipe", () => {
  test(
    "has what was printed before the pause while it lasts, and the rest after it",
    async () => {
      const [file, gate] = [scene.path("piped"), scene.path("piped.gate")];
      const out = openSync(file, "w");
      const run = await start({
        name: "piped",
        args: ["--log", "on"],
        command: ["sh", "-c", script(0), gate],
        before: ["sh", "-c", '"$@" | cat', "sh"],
        options: { stdout: out },
      });
      closeSync(out);
      await run.pause();
      await waitFor(() => readFileSync(file, "utf8") === "before\n", "the first part");
      await run.resume();
      writeFileSync(gate, "");
      const ended = await run.started.ended;
      expect([ended.status, readFileSync(file, "utf8")]).toEqual([0, "before\nafter\n"]);
    },
    LIMIT_MS,
  );

  test(
    "has every line in its order, however often the writer is paused",
    async () => {
      const gate = scene.path("lines.gate");
      const lines = 'n=0; until [ -e "$0" ]; do n=$((n + 1)); echo $n; done; echo end';
      const args = ["--log", "on", "--log-max", "64MiB"];
      const run = await start({ name: "lines", args, command: ["bash", "-c", lines, gate] });
      for (let time = 0; time < 3; time += 1) {
        await run.pause();
        await run.resume();
      }
      writeFileSync(gate, "");
      const { status, stdout } = await run.started.ended;
      const printed = stdout.toString().split("\n");
      const count = printed.length - 2;
      expect([status, printed.slice(-2)]).toEqual([0, ["end", ""]]);
      expect(count).toBeGreaterThan(100);
      expect(printed.slice(0, count)).toEqual(
        Array.from({ length: count }, (_, index) => String(index + 1)),
      );
      const { log } = run.record();
      expect(readFileSync(log.path, "utf8")).toBe(stdout.toString());
    },
    LIMIT_MS,
  );
});

const NEWS = /^(warned\n)?watchdog: unix:\S+ is down, the job stands still until it is back: .*\n/;

describe("--quiet", () => {
  test(
    "prints nothing of a pause when the end is good",
    async () => {
      const { run, gate } = await startPrinting("good", { args: ["--quiet"], status: 0 });
      await pauseAndGoOn(run, gate);
      const { status, stdout, stderr } = await run.started.ended;
      expect([status, stdout.toString(), stderr]).toEqual([0, "", ""]);
    },
    LIMIT_MS,
  );

  test(
    "prints the output, and what was told of the pause, when it is a bad one",
    async () => {
      const { run, gate } = await startPrinting("bad", { args: ["--quiet"], status: 3 });
      await pauseAndGoOn(run, gate);
      const { status, stdout, stderr } = await run.started.ended;
      expect([status, stdout.toString()]).toEqual([3, "before\nafter\n"]);
      expect(stderr).toMatch(NEWS);
      expect(stderr).toMatch(/watchdog: unix:\S+ is back after \d+\.\d s\n/);
    },
    LIMIT_MS,
  );

  test(
    "without it two lines are told for a pause, whatever the end",
    async () => {
      const { run, gate } = await startPrinting("told", { args: ["--log", "off"], status: 0 });
      await pauseAndGoOn(run, gate);
      const { status, stdout, stderr } = await run.started.ended;
      expect([status, stdout.toString()]).toEqual([0, "before\nafter\n"]);
      const told = stderr.split("\n").filter((line) => line.startsWith("watchdog: "));
      expect(stderr).toMatch(NEWS);
      expect(told.length).toBe(run.events("paused").length + run.events("resumed").length);
    },
    LIMIT_MS,
  );
});
