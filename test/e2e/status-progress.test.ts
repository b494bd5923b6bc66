/**
 * Heartbeat and progress, shown apart: that a watchdog lives, and whether its job works. And
 * `status --watch`: the same as a picture, with the terminal as it was when it is over.
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { askJson, askLines } from "../support/ask.ts";
import { inState } from "../support/own-state.ts";
import { openScene, RELEASE, type Scene } from "../support/scene.ts";
import { KEY, openShell, openTerminal } from "../support/terminal.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;
type Parsed = ReturnType<typeof JSON.parse>;

/** Reports, and then waits until it is told to go on, or for ever. */
function startJob(own: Scene, name: string, report: string, words: readonly string[] = []) {
  const gate = own.path(`${name}.gate`);
  const script = `${report}; until test -e '${gate}'; do sleep 0.1; done; echo on; sleep 94211`;
  const run = own.start(["--name", name, ...words, "--", "sh", "-c", script], { stdout: "ignore" });
  return { ...run, open: () => writeFileSync(gate, "") };
}

async function waitForProgress(own: Scene, name: string, isRight: (found: Parsed) => boolean) {
  return waitFor(async () => {
    const { leases } = await askJson(own, ["status", name]);
    const progress = leases[0]?.progress;
    return progress && isRight(progress) ? leases[0] : undefined;
  }, "the progress");
}

describe("status", () => {
  test(
    "shows what a job has reported long before the next beat, and how it works",
    async () => {
      const report =
        'printf "total 100\\nok 30\\nfail 2 no answer\\ncheckpoint tables\\n" ' +
        '>>"$WATCHDOG_PROGRESS"';
      const words = ["--heartbeat-interval", "60s", "--stale-after", "10m"];
      const job = startJob(scene, "works", report, words);
      const lease = await waitForProgress(scene, "works", ({ done }) => done !== null);
      expect(lease).toMatchObject({
        heartbeat_seq: expect.any(Number),
        progress: {
          ok: 30,
          failed: 2,
          done: 32,
          total: 100,
          checkpoint: "tables",
          last_message: "no answer",
        },
      });
      expect(lease.progress.time_left_ms).toBeGreaterThan(0);
      expect(lease.progress.measured_at).toMatch(/^\d{4}-/);
      const lines = await askLines(scene, ["status", "works"]);
      const items = lines.find((line) => line.startsWith("  items "));
      expect(items).toMatch(
        /^ {2}items {5}32 of 100 items \(32 %\), 2 failed, [\d.]+ a minute, .* left, at tables$/,
      );
      expect(lines.find((line) => line.startsWith("  message "))).toBe("  message   no answer");
      expect(lines.some((line) => /^ {2}work {6}.*CPU \d+ % of a core, I\/O /.test(line))).toBe(
        true,
      );
      // The negative twin of "lives": what was shown since has made no beat of it.
      const { leases } = await askJson(scene, ["status", "works"]);
      const shown = Date.parse(leases[0].progress.reported_at) - Date.parse(leases[0].heartbeat_at);
      expect(shown).toBeGreaterThan(0);
      job.kill("SIGTERM");
      expect((await job.ended).status).toBe(143);
    },
    LIMIT_MS,
  );

  test(
    "of a job that has said nothing shows that, and when it last wrote",
    async () => {
      const words = ["--heartbeat-interval", "300ms", "--log", "on"];
      const job = startJob(scene, "silent", "true", words);
      const before = await waitForProgress(scene, "silent", ({ cpu_ms: cpu }) => cpu !== null);
      expect(before.progress).toMatchObject({ ok: null, done: null, last_output_at: null });
      job.open();
      const after = await waitForProgress(
        scene,
        "silent",
        (found) => found.last_output_at !== null,
      );
      expect(Date.parse(after.progress.last_output_at)).toBeGreaterThan(
        Date.parse(after.acquired_at),
      );
      job.kill("SIGTERM");
      await job.ended;
    },
    LIMIT_MS,
  );

  test(
    "shows when a file that it must write has changed, and not before",
    async () => {
      const report = 'printf "ok\n" >>"$WATCHDOG_PROGRESS"';
      const path = scene.path("result-of-writes");
      writeFileSync(path, "of last night");
      const words = ["--heartbeat-interval", "300ms", "--expect-file", path];
      const job = startJob(scene, "writes", report, words);
      const before = await waitForProgress(scene, "writes", ({ cpu_ms: cpu }) => cpu !== null);
      expect(before.progress.files_changed_at).toBeNull();
      writeFileSync(path, "of this one");
      job.open();
      const changed = ({ files_changed_at: at }: Parsed) => at !== null;
      const after = await waitForProgress(scene, "writes", changed);
      const at = Date.parse(after.progress.files_changed_at);
      expect(at).toBeGreaterThan(Date.parse(after.acquired_at));
      const work = (await askLines(scene, ["status", "writes"])).find((one) =>
        /^ {2}work /.test(one),
      );
      expect(work).toMatch(/, files changed [\d.]+ s ago, CPU /);
      job.kill("SIGTERM");
      await job.ended;
    },
    LIMIT_MS,
  );

  test(
    "cannot be made to write elsewhere on the screen by what a job has told",
    async () => {
      const report =
        'printf "checkpoint \\033[2Jgone\\nfail 1 \\033]0;title\\007\\n" >>"$WATCHDOG_PROGRESS"';
      const job = startJob(scene, "evil", report);
      await waitForProgress(scene, "evil", ({ done }) => done !== null);
      const lines = await askLines(scene, ["status", "evil"]);
      expect(lines.join("\n")).toContain("at \\x1b[2Jgone");
      expect(lines.join("\n")).not.toContain("\u001b");
      job.kill("SIGTERM");
      await job.ended;
    },
    LIMIT_MS,
  );
});

const WATCH = [RELEASE, "status", "--watch"];
const XTERM = { env: { TERM: "xterm" } };
const LEFT = "\u001b[?25h\u001b[?1049l";

describe("status --watch", () => {
  const REPORT = 'printf "total 10\\nok 4\\n" >>"$WATCHDOG_PROGRESS"';

  test(
    "draws a bar in place, and leaves at q with the screen as it was",
    async () => {
      const own = inState(scene, "watched");
      const job = startJob(own, "watched", REPORT);
      await waitForProgress(own, "watched", ({ done }) => done !== null);
      const words = [...WATCH, "--state-dir", own.stateDirectory];
      const terminal = openTerminal(scene, words, { ...XTERM, columns: 90, rows: 10 });
      await terminal.see(/\u001b\[\?1049h/);
      await terminal.see(/\[#+-+\] {2}4 of 10 items \(40 %\)/);
      // Anew, from the first place on.
      await terminal.see(/\u001b\[Hwatchdog status of [^]*\[#+-+\] {2}4 of 10 items/);
      terminal.resize(40, 3);
      await terminal.see(/\u001b\[H[^]*more: make the window higher/);
      terminal.type("q");
      expect(await terminal.ended).toBe(0);
      expect(terminal.screen).toEndWith(LEFT);
      job.kill("SIGTERM");
      await job.ended;
    },
    LIMIT_MS,
  );

  test(
    "dies of Ctrl-C as a shell expects, and gives the terminal back",
    async () => {
      const shell = await openShell(scene, XTERM);
      const before = (await shell.ask("stty -g")).text;
      shell.begin("$W status --watch");
      await shell.see(/no lease is held|watchdog status of/);
      shell.type(KEY.interrupt);
      expect((await shell.prompt()).status).toBe(130);
      expect((await shell.ask("stty -g")).text).toBe(before);
      expect(shell.screen).toContain(LEFT);
      shell.type("exit\n");
      await shell.ended;
    },
    LIMIT_MS,
  );

  test(
    "stands still at Ctrl-Z with the terminal given back, and draws on in the foreground",
    async () => {
      const shell = await openShell(scene, XTERM);
      const before = (await shell.ask("stty -g")).text;
      shell.begin("$W status --watch");
      await shell.see(/watchdog status of/);
      shell.type(KEY.suspend);
      expect((await shell.prompt()).status).toBe(148);
      expect((await shell.ask("stty -g")).text).toBe(before);
      shell.begin("fg");
      await shell.see(/\u001b\[\?1049h[^]*watchdog status of/);
      shell.type("q");
      expect((await shell.prompt()).status).toBe(0);
      expect((await shell.ask("stty -g")).text).toBe(before);
      shell.type("exit\n");
      await shell.ended;
    },
    LIMIT_MS,
  );

  test(
    "gives the settings of the terminal back by itself, at a key and at Ctrl-C",
    async () => {
      const script =
        "trap : INT; stty -g; for end in key signal; do $W status --watch; " +
        'echo "status=$?"; stty -g; done; echo over';
      const terminal = openTerminal(scene, ["sh", "-c", script], XTERM);
      const settings = async (): Promise<string> =>
        (await terminal.see(/^[0-9a-f]+(?::[0-9a-f]+)+$/m))[0];
      const before = await settings();
      for (const [key, status] of [
        ["q", 0],
        [KEY.interrupt, 130],
      ] as const) {
        await terminal.see(/watchdog status of/);
        terminal.type(key);
        expect((await terminal.see(/status=(\d+)/))[1]).toBe(String(status));
        expect(await settings()).toBe(before);
      }
      await terminal.see(/over/);
      await terminal.ended;
    },
    LIMIT_MS,
  );

  test(
    "ends where its terminal is gone",
    async () => {
      const terminal = openTerminal(scene, WATCH, XTERM);
      await terminal.see(/watchdog status of/);
      terminal.hangUp();
      expect(await terminal.ended).toBe(129);
    },
    LIMIT_MS,
  );

  test(
    "needs a terminal that can be drawn on, and none of --json",
    async () => {
      const env = { TERM: "xterm" };
      const [none, dumb, json] = await Promise.all([
        scene.startProgram(["setsid", ...WATCH], { env }).ended,
        scene.startProgram(["setsid", ...WATCH], { env: { TERM: "dumb" } }).ended,
        scene.startProgram([...WATCH, "--json"], { env }).ended,
      ]);
      expect([none.status, dumb.status, json.status]).toEqual([64, 64, 64]);
      expect(none.stderr).toStartWith(
        "watchdog: error: status --watch draws on a terminal, there is",
      );
      expect(dumb.stderr).toContain('TERM is "dumb"');
      expect(json.stderr).toContain("--watch draws a picture, found --json");
      expect([none, dumb, json].map(({ stdout }) => stdout.length)).toEqual([0, 0, 0]);
    },
    LIMIT_MS,
  );
});
