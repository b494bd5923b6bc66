/** `watchdog probe` of the real binary, above all with commands: it is their helper, too. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { ask, askJson, askLines } from "../support/ask.ts";
import { waitForCommand, waitForText } from "../support/processes.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
/** Long beside what a command needs, on any machine. */
const AMPLE = ["--probe-timeout", "60s"] as const;

async function reasons(targets: readonly string[]): Promise<unknown[]> {
  const { probes } = await askJson(scene, ["probe", ...AMPLE, ...targets]);
  return probes.map((probe: { because: unknown }) => probe.because);
}

describe("a command", () => {
  test("is asked, and answered by its status", async () => {
    expect(await reasons(["cmd:true", "cmd:exit 3", "cmd:kill -9 $$"])).toEqual([
      "good",
      "command-failed",
      "command-failed",
    ]);
  });

  test("is told of with what it has said, and with its first word alone", async () => {
    const lines = await askLines(scene, ["probe", ...AMPLE, "cmd:echo away >&2; exit 3 hunter2"]);
    expect(lines[0]).toBe("cmd:echo");
    expect(lines[3]).toEndWith("  status 3, expected status 0; it said: away");
    expect(lines[4]).toStartWith("  NOT GOOD: command-failed, ");
    expect(lines.join("\n")).not.toContain("hunter2");
  });

  test("has the caller's environment, without the options of watchdog", async () => {
    const target = 'cmd:test "$KEPT" = yes && test -z "$WATCHDOG_PROBE_TIMEOUT"';
    const env = { KEPT: "yes", WATCHDOG_PROBE_TIMEOUT: "60s" };
    const { status, stdout } = await ask(scene, ["probe", "--check", target], { env });
    expect([status, stdout.toString()]).toEqual([0, expect.stringContaining("  good, ")]);
  });

  test("is over at its limit, with all that it has started", async () => {
    const target = "cmd:trap '' TERM; setsid sleep 411 & sleep 412";
    const words = ["probe", "--json", "--probe-timeout", "300ms", target];
    const { stdout, stderr, status } = await ask(scene, words);
    expect([status, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout.toString()).probes[0]).toMatchObject({
      because: "command-timeout",
      timeout_ms: 300,
    });
    expect(scene.findProcesses()).toEqual([]);
  });

  test.each(["SIGKILL", "SIGINT"] as const)(
    "is over when whoever asks dies of %s",
    async (signal) => {
      const file = scene.path(`asked-${signal}`);
      const target = `cmd:trap '' TERM INT; setsid sleep 413 & echo >${file}; wait`;
      const asking = scene.startProgram([RELEASE, "probe", ...AMPLE, target]);
      await waitForText(file);
      await waitForCommand(scene, "sleep 413");
      asking.kill(signal);
      expect((await asking.ended).signal).toBe(signal);
      await waitFor(() => scene.findProcesses().length === 0, "nobody left", { limitMs: 30_000 });
    },
  );
});

describe("--check", () => {
  test("leaves with 69 unless every probe is good", async () => {
    const bad = "tcp://127.0.0.1:1";
    const words = ["probe", "--check", ...AMPLE];
    expect((await ask(scene, [...words, "cmd:true", "cmd:true"])).status).toBe(0);
    const answer = await ask(scene, [...words, "cmd:true", bad]);
    expect([answer.status, answer.stderr]).toEqual([69, ""]);
    expect(answer.stdout.toString()).toContain("NOT GOOD: refused");
    expect((await ask(scene, ["probe", ...AMPLE, bad])).status).toBe(0);
  });
});

test("nothing is kept of it, not even a state directory", async () => {
  await askLines(scene, ["probe", ...AMPLE, "cmd:true"]);
  expect(existsSync(scene.stateDirectory)).toBe(false);
});
