/** `watchdog logs`: the kept output of a run, byte for byte, whatever became of the run. */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { ask, waitForHolder, waitForRow } from "../support/ask.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
/** All byte values, and more than any pipe or buffer holds. */
const BYTES = "import sys; sys.stdout.buffer.write(bytes(i * 7 % 256 for i in range(3000000)))";

function expectedBytes(): Buffer {
  return Buffer.from(Uint8Array.from({ length: 3_000_000 }, (_, index) => (index * 7) % 256));
}

describe("logs", () => {
  test("prints what a run has written, byte for byte, by its job and by its id", async () => {
    const run = await scene.run(["--name", "bytes", "--", "python3", "-c", BYTES]);
    expect(run.stdout.equals(expectedBytes())).toBe(true);
    const { run_id: runId } = await waitForRow(scene, "bytes", "ended");
    for (const target of ["bytes", runId]) {
      const { status, stdout, stderr } = await ask(scene, ["logs", target]);
      expect([status, stderr, stdout.equals(run.stdout)]).toEqual([0, "", true]);
    }
  });

  test("prints the last run of a job, and says so where that kept nothing", async () => {
    await scene.run(["--name", "turns", "--", "echo", "first"]);
    await scene.run(["--name", "turns", "--", "echo", "second"]);
    expect((await ask(scene, ["logs", "turns"])).stdout.toString()).toBe("second\n");
    await scene.run(["--name", "turns", "--", "true"]);
    const { status, stdout, stderr } = await ask(scene, ["logs", "turns"]);
    expect([status, stdout.toString()]).toEqual([0, "second\n"]);
    expect(stderr).toMatch(/^watchdog: nothing was kept of the last run \(.*: this is run .*\n$/);
  });

  test("prints what a run that goes on has written so far", async () => {
    const run = scene.start(["--name", "going", "--", "sh", "-c", "echo begun; exec sleep 306"]);
    await waitFor(
      async () => (await ask(scene, ["logs", "going"])).stdout.toString() === "begun\n",
      "the first line of a running run",
    );
    run.kill("SIGTERM");
    await run.ended;
  });

  test("prints head and tail of a run whose watchdog was killed in the middle", async () => {
    // Less than may wait for the log's thread, of which none is dropped on a busy machine.
    const script = "seq 1 150000; exec sleep 307";
    const options = ["--name", "parts", "--log-max", "64KiB", "--log", "on"];
    const run = scene.start([...options, "--", "sh", "-c", script], { stdout: "ignore" });
    const { run_id: runId } = await waitForHolder(scene, "parts");
    const directory = `${scene.stateDirectory}/logs/parts`;
    await waitFor(async () => {
      return (await ask(scene, ["logs", "parts"])).stdout.toString().endsWith("\n150000\n");
    }, "the last line in the log");
    run.kill("SIGKILL");
    await run.ended;
    await waitForRow(scene, "parts", "ended");
    expect(readdirSync(directory).some((name) => name.includes(".tail-"))).toBe(true);
    const { status, stdout } = await ask(scene, ["logs", runId]);
    const text = stdout.toString();
    expect([status, text.startsWith("1\n2\n"), text.endsWith("\n150000\n")]).toEqual([
      0,
      true,
      true,
    ]);
    const omitted = Number(/\n\[watchdog: (\d+) bytes omitted here\]\n/.exec(text)?.[1]);
    const marker = `\n[watchdog: ${omitted} bytes omitted here]\n`;
    const whole = Array.from({ length: 150_000 }, (_, index) => `${index + 1}\n`).join("");
    expect(text.length - marker.length + omitted).toBe(whole.length);
  });

  test("of a reader that has had enough is no failure", async () => {
    await scene.run(["--name", "long", "--", "seq", "1", "400000"]);
    const line = `"$0" logs long | head -n 1; echo "\${PIPESTATUS[0]}"`;
    const { stdout } = await scene.startProgram(["bash", "-c", line, RELEASE]).ended;
    expect(stdout.toString()).toBe("1\n0\n");
  });

  test("of which nothing was kept, or which nobody knows, is 1 with a line", async () => {
    await scene.run(["--name", "silent", "--log", "off", "--", "echo", "hello"]);
    const silent = await ask(scene, ["logs", "silent"]);
    expect([silent.status, silent.stdout.length]).toEqual([1, 0]);
    expect(silent.stderr).toStartWith('watchdog: nothing was kept of "silent"\n');
    expect(silent.stderr).toContain("hint: watchdog run --log on");
    await scene.run(["--name", "mute", "--", "true"]);
    expect((await ask(scene, ["logs", "mute"])).stderr).toBe(
      'watchdog: nothing was kept of "mute": its last run has printed nothing\n',
    );
    await scene.run(["--name", "absent", "--", "/no/such/program"]);
    expect((await ask(scene, ["logs", "absent"])).stderr).toBe(
      'watchdog: nothing was kept of "absent": its last run was not started\n',
    );
    const unknown = await ask(scene, ["logs", "nobody"]);
    expect([unknown.status, unknown.stdout.length, unknown.stderr]).toEqual([
      1,
      0,
      'watchdog: no run is known of "nobody"\nwatchdog: hint: watchdog status\n',
    ]);
  });
});
