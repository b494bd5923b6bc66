/**
 * The public cases of limits: what is counted, what is waited for, and what the record says of it.
 */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { findByCommand, readLines, waitForText } from "../support/processes.ts";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;

function signalsOf(record: ReturnType<typeof scene.readRecord>): string[] {
  return record["signals"].map((sent: { signal: string }) => sent.signal);
}

test(
  "A-08: a command that ignores TERM, INT and HUP is killed after its grace",
  async () => {
    const ended = await scene.run(
      [
        ["--log", "off", "--timeout", "2s", "--kill-after", "1s", ...scene.recordTo("a08")],
        ["--", "bash", "-c", `trap "" TERM INT HUP; while :; do sleep 91008; done`],
      ].flat(),
    );
    const [asked, killed] = scene.readRecord("a08")["signals"];
    expect(ended.status).toBe(124);
    expect(findByCommand(scene, "sleep 91008")).toEqual([]);
    expect(signalsOf(scene.readRecord("a08"))).toEqual(["TERM", "KILL"]);
    expect(asked.at_ms).toBeGreaterThanOrEqual(2000);
    expect(killed.at_ms).toBeGreaterThanOrEqual(asked.at_ms + 998);
  },
  LIMIT_MS,
);

test(
  "A-09: a main command that leaves with 0 at TERM hides neither the limit nor its grandchild",
  async () => {
    const script = `(trap "" TERM; exec sleep 91009) & trap "exit 0" TERM; wait`;
    const ended = await scene.run(
      [
        ["--log", "off", "--timeout", "2s", "--kill-after", "1s", ...scene.recordTo("a09")],
        ["--", "bash", "-c", script],
      ].flat(),
    );
    const record = scene.readRecord("a09");
    expect(ended.status).toBe(124);
    expect(findByCommand(scene, "sleep 91009")).toEqual([]);
    expect(record).toMatchObject({ outcome: "timeout", exit_code: 0, exit_status: 124 });
    expect(signalsOf(record)).toEqual(["TERM", "KILL"]);
  },
  LIMIT_MS,
);

test(
  "A-10: a graceful stop gets all the time that it needs, and no more is waited",
  async () => {
    const done = scene.path("a10.done");
    const clean = `trap "sleep 2; echo clean >${done}; exit 0" TERM`;
    const ended = await scene.run(
      [
        ["--log", "off", "--timeout", "2s", "--kill-after", "40s", ...scene.recordTo("a10")],
        ["--", "bash", "-c", `${clean}; while :; do sleep 0.1; done`],
      ].flat(),
    );
    const record = scene.readRecord("a10");
    expect(ended.status).toBe(124);
    expect(readFileSync(done, "utf8")).toBe("clean\n");
    expect(signalsOf(record)).toEqual(["TERM"]);
    expect(record["duration_ms"]).toBeGreaterThanOrEqual(4000);
    expect(record["duration_ms"]).toBeLessThan(30_000);
  },
  LIMIT_MS,
);

test(
  "A-11: a stopped command is continued at its limit, so that its clean-up runs",
  async () => {
    const [done, pidFile] = [scene.path("a11.done"), scene.path("a11.pid")];
    const script = `trap "echo clean >${done}; exit 0" TERM; echo $$ >${pidFile}
      while :; do sleep 0.1; done`;
    const run = scene.start(
      [
        ["--log", "off", "--timeout", "4s", "--kill-after", "40s", ...scene.recordTo("a11")],
        ["--", "bash", "-c", script],
      ].flat(),
    );
    process.kill(Number(await waitForText(pidFile)), "SIGSTOP");
    const ended = await run.ended;
    const record = scene.readRecord("a11");
    expect(ended.status).toBe(124);
    expect(readFileSync(done, "utf8")).toBe("clean\n");
    expect(signalsOf(record)).toEqual(["TERM"]);
    expect(record["duration_ms"]).toBeLessThan(30_000);
  },
  LIMIT_MS,
);

test(
  "A-12: the limit is counted from the spawn, also for a command that never does a thing",
  async () => {
    const ended = await scene.run(
      [
        ["--log", "off", "--timeout", "1s", "--kill-after", "1s", ...scene.recordTo("a12")],
        ["--", "sh", "-c", "kill -STOP $$; echo never; sleep 91012"],
      ].flat(),
    );
    expect(ended.status).toBe(124);
    expect(ended.stdout.toString()).toBe("");
    expect(scene.readRecord("a12")["signals"][0].at_ms).toBeLessThan(15_000);
  },
  LIMIT_MS,
);

test(
  "--kill-after 0 kills the whole tree at once, without a chance to clean up",
  async () => {
    const got = scene.path("at-once");
    const script = `(trap "" TERM; exec sleep 92500) & trap "sleep 5; echo late >${got}" TERM
      while :; do sleep 0.1; done`;
    const ended = await scene.run(
      [
        ["--log", "off", "--timeout", "2s", "--kill-after", "0", ...scene.recordTo("at-once")],
        ["--", "bash", "-c", script],
      ].flat(),
    );
    const record = scene.readRecord("at-once");
    const [asked, killed] = record["signals"];
    expect(ended.status).toBe(124);
    expect(existsSync(got)).toBe(false);
    expect(findByCommand(scene, "sleep 92500")).toEqual([]);
    expect(signalsOf(record)).toEqual(["TERM", "KILL"]);
    expect(killed.at_ms - asked.at_ms).toBeLessThan(5_000);
  },
  LIMIT_MS,
);

test(
  "--signal USR1 is what a limit sends first, to every member",
  async () => {
    const got = scene.path("usr1");
    const member = `trap "echo $0 >>${got}; exit 0" USR1; while :; do sleep 0.05; done`;
    const script = `sh -c '${member}' child & ${member.replace("$0", "main")}`;
    const ended = await scene.run(
      [
        ["--log", "off", "--timeout", "3s", "--signal", "USR1", ...scene.recordTo("usr1")],
        ["--kill-after", "40s", "--", "sh", "-c", script],
      ].flat(),
    );
    const record = scene.readRecord("usr1");
    expect(ended.status).toBe(124);
    expect(ended.stderr).toEndWith("watchdog: ended by --timeout: sent USR1 to the whole tree\n");
    expect(readLines(got).sort()).toEqual(["child", "main"]);
    expect(record["signals"][0]).toMatchObject({ signal: "USR1", to: "tree", why: "limit" });
  },
  LIMIT_MS,
);

test(
  "--signal KILL ends the whole tree without any wait",
  async () => {
    const script = `trap "" TERM; (exec sleep 92501) & exec sleep 92501`;
    const ended = await scene.run(
      [
        ["--log", "off", "--timeout", "1s", "--signal", "KILL", "--kill-after", "40s"],
        [...scene.recordTo("kill"), "--", "sh", "-c", script],
      ].flat(),
    );
    const record = scene.readRecord("kill");
    expect(ended.status).toBe(124);
    expect(findByCommand(scene, "sleep 92501")).toEqual([]);
    expect(record["signals"][0]).toMatchObject({ signal: "KILL", why: "limit" });
    expect(record["duration_ms"]).toBeLessThan(30_000);
  },
  LIMIT_MS,
);

test(
  "a command that ends before its limit keeps its own status",
  async () => {
    const ended = await scene.run(
      [
        ["--log", "off", "--timeout", "50s", "--not-after", "00:00", "--idle-timeout", "50s"],
        [...scene.recordTo("before"), "--", "sh", "-c", "exit 124"],
      ].flat(),
    );
    expect(ended.status).toBe(124);
    expect(ended.stderr).toBe("");
    expect(scene.readRecord("before")).toMatchObject({
      outcome: "failed",
      because: "exited",
      status_of: "command",
    });
  },
  LIMIT_MS,
);
