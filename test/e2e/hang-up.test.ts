/**
 * A terminal that goes away under a running job, and HUP where no terminal went away: `nohup`, a
 * daemon told to read its configuration again.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { FIXTURES, openScene, RELEASE } from "../support/scene.ts";
import { findCommands, KEY, openShell, openTerminal } from "../support/terminal.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const NOTER = join(FIXTURES, "notes-hang-ups.py");
const LIMIT_MS = 180_000;
const HANG_UP = { outcome: "stopped", because: "hung-up", status_of: "command" };

function notesOf(file: string): string[] {
  return existsSync(file) ? readFileSync(file, "latin1").split("\n").slice(0, -1) : [];
}

async function waitForNote(file: string, note: string): Promise<void> {
  await waitFor(() => notesOf(file).includes(note), `${note} in ${file}`);
}

async function waitForEnd(record: string): Promise<Record<string, unknown>> {
  await waitFor(() => scene.readRecord(record)["state"] === "ended", `the end of ${record}`);
  return scene.readRecord(record);
}

function commandLine(record: string, ...words: readonly string[]): string {
  return ["exec", '"$W"', "run", ...scene.recordTo(record), ...words].join(" ");
}

describe("A-95: the terminal is closed under a running job", () => {
  test(
    "the job is told HUP and TERM, ends, and the record says why",
    async () => {
      const file = scene.path("told");
      const line = commandLine("told", "--", "python3", NOTER, file, "obeys");
      const terminal = openTerminal(scene, ["sh", "-c", line]);
      await waitForNote(file, "begun");
      terminal.hangUp();
      await terminal.ended;
      expect(notesOf(file).toSorted()).toEqual(["HUP", "TERM", "begun"].toSorted());
      expect(await waitForEnd("told")).toMatchObject({ ...HANG_UP, exit_code: 1 });
    },
    LIMIT_MS,
  );

  test(
    "the same below an interactive shell, which passes the HUP on",
    async () => {
      const file = scene.path("below-shell");
      const shell = await openShell(scene);
      shell.begin(`${commandLine("below-shell", "--", "python3", NOTER, file, "obeys").slice(5)}`);
      await waitForNote(file, "begun");
      shell.hangUp();
      await shell.ended;
      expect(await waitForEnd("below-shell")).toMatchObject(HANG_UP);
      expect(notesOf(file)).toContain("TERM");
    },
    LIMIT_MS,
  );

  test(
    "what ignores both is killed after --kill-after, also in another session",
    async () => {
      const file = scene.path("killed");
      const other = `setsid sh -c "trap \\"\\" HUP TERM; sleep 96301"`;
      const script = `${other} & exec python3 ${NOTER} ${file} deaf`;
      const line = commandLine("killed", "--kill-after", "1s", "--", "sh", "-c", `'${script}'`);
      const terminal = openTerminal(scene, ["sh", "-c", line]);
      await waitForNote(file, "begun");
      await waitFor(() => findCommands(scene, "sleep 96301").length === 1, "the deaf sleeper");
      terminal.hangUp();
      expect(await terminal.ended).toBe(137);
      expect(findCommands(scene, "sleep 96301")).toEqual([]);
      expect(await waitForEnd("killed")).toMatchObject({ ...HANG_UP, signal: "KILL" });
    },
    LIMIT_MS,
  );

  test(
    "a plain command ends of the HUP itself, and nothing is left",
    async () => {
      const line = commandLine(
        "plain",
        "sh",
        "-c",
        "'setsid sleep 96302 & echo begun; exec sleep 96303'",
      );
      const terminal = openTerminal(scene, ["sh", "-c", line]);
      await terminal.see(/begun\n/);
      await waitFor(() => findCommands(scene, "sleep 96302").length === 1, "the sleeper");
      terminal.hangUp();
      expect(await terminal.ended).toBe(129);
      expect(findCommands(scene, "sleep 96302")).toEqual([]);
      expect(await waitForEnd("plain")).toMatchObject({ ...HANG_UP, signal: "HUP" });
    },
    LIMIT_MS,
  );

  test(
    "a run that Ctrl-Z has stopped is continued, told, and ends",
    async () => {
      const file = scene.path("stopped");
      const shell = await openShell(scene);
      shell.begin(commandLine("stopped", "--", "python3", NOTER, file, "obeys").slice(5));
      await waitForNote(file, "begun");
      shell.type(KEY.suspend);
      expect((await shell.prompt()).status).toBe(148);
      shell.hangUp();
      await shell.ended;
      // bash sends TERM to a stopped job, the kernel HUP to a stopped group that nobody controls.
      const { outcome, because } = await waitForEnd("stopped");
      expect(outcome).toBe("stopped");
      expect(["terminated", "hung-up"]).toContain(String(because));
      // The record stands before the last steps of the release: the process follows in a moment.
      const left = (): number[] => scene.findProcesses().filter((pid) => pid !== shell.pid);
      await waitFor(() => left().length === 0, "nobody is left of the job");
    },
    LIMIT_MS,
  );

  test(
    "a job that goes on all the same costs no time of the processor",
    async () => {
      const file = scene.path("goes-on");
      const line = commandLine("goes-on", "--", "python3", NOTER, file, "deaf");
      const terminal = openTerminal(scene, ["sh", "-c", line]);
      await waitForNote(file, "begun");
      const main = Number(readFileSync(`${file}.pid`, "latin1"));
      terminal.hangUp();
      await waitForNote(file, "TERM");
      const [ticks, beats] = [ticksOf(terminal.pid), readBeats()];
      await waitFor(() => readBeats() - beats > 100, "a second of the machine");
      expect(ticksOf(terminal.pid) - ticks).toBeLessThan(20);
      process.kill(main, "SIGKILL");
      expect(await terminal.ended).toBe(137);
    },
    LIMIT_MS,
  );
});

describe("HUP while nothing has gone away", () => {
  test(
    "goes to the main command alone, each time, and ends nothing",
    async () => {
      const file = scene.path("daemon");
      const script = `python3 ${NOTER} ${file}.below deaf & exec python3 ${NOTER} ${file} deaf`;
      const run = scene.start([...scene.recordTo("daemon"), "--", "sh", "-c", script]);
      await waitForNote(file, "begun");
      await waitForNote(`${file}.below`, "begun");
      for (const count of [1, 2]) {
        process.kill(run.pid, "SIGHUP");
        await waitFor(() => notesOf(file).filter((note) => note === "HUP").length === count, "HUP");
      }
      expect(scene.readRecord("daemon")["state"]).toBe("running");
      expect(notesOf(`${file}.below`)).toEqual(["begun"]);
      process.kill(run.pid, "SIGTERM");
      await waitForNote(file, "TERM");
      process.kill(run.pid, "SIGTERM");
      expect((await run.ended).status).toBe(137);
    },
    LIMIT_MS,
  );

  test(
    "A-94: nohup is respected, by watchdog and for the command",
    async () => {
      const file = scene.path("nohup");
      const notes = `echo begun >>${file}; sleep 2; echo fin >>${file}`;
      const script = `trap 'echo hup >>${file}' HUP; ${notes}; exit 3`;
      const run = scene.startProgram(
        ["sh", "-c", `trap "" HUP; exec "$W" run -- sh -c '${script.replaceAll("'", "'\\''")}'`],
        {
          env: { W: RELEASE },
        },
      );
      await waitForNote(file, "begun");
      process.kill(run.pid, "SIGHUP");
      process.kill(run.pid, "SIGHUP");
      expect((await run.ended).status).toBe(3);
      expect(notesOf(file)).toEqual(["begun", "fin"]);
    },
    LIMIT_MS,
  );

  test(
    "A-94: a job under nohup outlives its terminal",
    async () => {
      const file = scene.path("nohup-terminal");
      const wait = `until [ -e ${file}.end ]; do sleep 0.1; done`;
      const script = `'echo begun >>${file}; ${wait}; echo fin >>${file}'`;
      const line = commandLine("nohup", "--", "sh", "-c", script).slice(5);
      const shell = await openShell(scene);
      shell.begin(`nohup ${line} >/dev/null 2>&1 &`);
      await waitForNote(file, "begun");
      shell.hangUp();
      await shell.ended;
      expect(scene.readRecord("nohup")["state"]).toBe("running");
      await Bun.write(`${file}.end`, "");
      expect(await waitForEnd("nohup")).toMatchObject({
        outcome: "ok",
        exit_status: 0,
        signals: [],
      });
      expect(notesOf(file)).toEqual(["begun", "fin"]);
    },
    LIMIT_MS,
  );
});

/** Time of the processor that a process has had, in ticks of 10 ms. */
function ticksOf(pid: number): number {
  const line = readFileSync(`/proc/${pid}/stat`, "latin1");
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

/** Hundredths of a second since the machine started. */
function readBeats(): number {
  return Number(readFileSync("/proc/uptime", "latin1").split(" ")[0]) * 100;
}
