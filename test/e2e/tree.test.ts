/**
 * Nothing of the command is left behind, whoever ended it and whatever it left: the public cases of
 * the tree.
 */
import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { findByCommand, python, readLines, waitForText } from "../support/processes.ts";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;
/** Long before a marker ends by itself: proves that nobody waited for it. */
const SOON_MS = 20_000;

test(
  "A-01: a helper server that the command left is ended and named, run after run",
  async () => {
    const script = "(setsid sleep 91001 >/dev/null 2>&1 </dev/null &); exit 0";
    for (let round = 0; round < 3; round += 1) {
      const ended = await scene.run(
        [
          ["--log", "off", "--name", "a01", ...scene.recordTo("a01")],
          ["--", "sh", "-c", script],
        ].flat(),
      );
      const record = scene.readRecord("a01");
      const [left] = record["leftovers"];
      expect(ended.status).toBe(0);
      expect(findByCommand(scene, "sleep 91001")).toEqual([]);
      expect(record["leftovers"]).toHaveLength(1);
      expect(left).toEqual({ pid: expect.any(Number), command: "sleep 91001", ended_by: "TERM" });
      expect(ended.stderr).toBe(
        `watchdog: ended 1 process left by the command: ${left.pid} sleep 91001; ` +
          "hint: --leftovers leave\n",
      );
    }
  },
  LIMIT_MS,
);

test(
  "A-02: workers that are born while the tree is being ended are ended too",
  async () => {
    // The script brings up the next one every 20 ms, for a minute at most.
    const script = scene.path("h.sh");
    writeFileSync(
      script,
      `n=\${1:-0}; [ "$n" -gt 3000 ] && exit; echo "$n" >>${scene.path("a02.born")}
       setsid bash "$0" $((n+1)) </dev/null >/dev/null 2>&1 & sleep 0.02\n`,
    );
    const ended = await scene.run(
      [
        ["--log", "off", "--timeout", "3s", "--kill-after", "1s", ...scene.recordTo("a02")],
        ["--", "bash", "-c", `bash ${script}; sleep 91002`],
      ].flat(),
    );
    expect(ended.status).toBe(124);
    expect(readLines(scene.path("a02.born")).length).toBeGreaterThan(3);
    expect(scene.findProcesses()).toEqual([]);
    expect(scene.readRecord("a02")["duration_ms"]).toBeLessThan(SOON_MS);
  },
  LIMIT_MS,
);

test(
  "A-03: no survivor of a timed-out run writes into the output of the next one",
  async () => {
    const out = scene.path("a03.out");
    const writer = `(setsid sh -c 'for i in $(seq 300); do echo old >>${out}; sleep 0.1; done' \
      >/dev/null 2>&1 </dev/null &); sleep 91003`;
    const first = await scene.run([
      "--log",
      "off",
      "--timeout",
      "1s",
      "--kill-after",
      "1s",
      "--",
      "sh",
      "-c",
      writer,
    ]);
    expect(first.status).toBe(124);
    expect(readLines(out)).toContain("old");
    writeFileSync(out, "");
    const second = await scene.run([
      "--log",
      "off",
      "--",
      "sh",
      "-c",
      `sleep 1; echo new >>${out}`,
    ]);
    expect(second.status).toBe(0);
    expect(readFileSync(out, "utf8")).toBe("new\n");
  },
  LIMIT_MS,
);

test(
  "A-04: when somebody else kills the main command, its children are ended and named",
  async () => {
    const pidFile = scene.path("a04.pid");
    const script = `sleep 91004 & echo $$ >${pidFile}; wait`;
    const run = scene.start(["--log", "off", ...scene.recordTo("a04"), "--", "bash", "-c", script]);
    process.kill(Number(await waitForText(pidFile)), "SIGKILL");
    const ended = await run.ended;
    const record = scene.readRecord("a04");
    expect(ended.status).toBe(137);
    expect(ended.signal).toBe("SIGKILL");
    expect(findByCommand(scene, "sleep 91004")).toEqual([]);
    expect(record).toMatchObject({
      outcome: "signaled",
      because: "killed-by-signal",
      signal: "KILL",
      exit_code: null,
      status_of: "command",
      leftovers: [{ command: "sleep 91004", ended_by: "TERM" }],
    });
    expect(ended.stderr).toContain("ended 1 process left by the command");
  },
  LIMIT_MS,
);

test(
  "A-05: hundreds of short orphans are collected while the command still runs",
  async () => {
    // Counted among the children of watchdog alone: other zombies of the machine are not ours.
    const script = `for i in $(seq 300); do (sleep 0.2 &); done
      for try in $(seq 100); do
        living=$(ps --ppid $PPID -o comm= | grep -c sleep); [ "$living" -eq 0 ] && break; sleep 0.1
      done
      sleep 0.3
      ps --ppid $PPID -o stat= | grep -c '^Z' >${scene.path("a05.zombies")}
      echo "$living" >${scene.path("a05.living")}; exit 0`;
    const ended = await scene.run(["--log", "off", "--", "sh", "-c", script]);
    expect(ended.status).toBe(0);
    expect(ended.stderr).toBe("");
    expect(readLines(scene.path("a05.living"))).toEqual(["0"]);
    expect(readLines(scene.path("a05.zombies"))).toEqual(["0"]);
  },
  LIMIT_MS,
);

test(
  "A-06: a zombie that only its own parent could collect neither holds up the end nor is named",
  async () => {
    const ready = scene.path("a06.ready");
    const ended = await scene.run(
      [
        ["--log", "off", "--kill-after", "40s", ...scene.recordTo("a06")],
        ["--", ...python("keeps-zombies.py", "50", "0.5", ready)],
      ].flat(),
    );
    const record = scene.readRecord("a06");
    expect(ended.status).toBe(0);
    expect(ended.stderr).toBe("");
    expect(existsSync(ready)).toBe(true);
    expect(record).toMatchObject({ outcome: "ok", leftovers: [], signals: [], unsignalable: [] });
    expect(record["duration_ms"]).toBeLessThan(SOON_MS);
  },
  LIMIT_MS,
);

test(
  "zombies of the command's own do not hold up the end by a limit either",
  async () => {
    const ready = scene.path("zombies.ready");
    const ended = await scene.run(
      [
        [
          "--log",
          "off",
          "--timeout",
          "1500ms",
          "--kill-after",
          "40s",
          ...scene.recordTo("zombies"),
        ],
        ["--", ...python("keeps-zombies.py", "50", "90", ready)],
      ].flat(),
    );
    const record = scene.readRecord("zombies");
    expect(ended.status).toBe(124);
    expect(existsSync(ready)).toBe(true);
    expect(record["unsignalable"]).toEqual([]);
    expect(record["signals"].map((sent: { signal: string }) => sent.signal)).toEqual(["TERM"]);
    expect(record["duration_ms"]).toBeLessThan(SOON_MS);
  },
  LIMIT_MS,
);

test(
  "A-99: a command that has said its last word and never exits is ended, its text kept",
  async () => {
    const script = `echo "all clear"; (sleep 91099 &); exec sleep 91099`;
    const ended = await scene.run(
      [
        ["--log", "on", "--timeout", "4s", "--kill-after", "1s", ...scene.recordTo("a99")],
        ["--", "bash", "-c", script],
      ].flat(),
    );
    const record = scene.readRecord("a99");
    expect(ended.status).toBe(124);
    expect(findByCommand(scene, "sleep 91099")).toEqual([]);
    expect(ended.stdout.toString()).toBe("all clear\n");
    expect(readFileSync(record["log"].path, "utf8")).toContain("all clear");
    const silentMs = Date.parse(record["ended_at"]) - Date.parse(record["output"].last_output_at);
    expect(silentMs).toBeGreaterThan(1000);
    expect(record["output"].stdout_bytes).toBe(10);
  },
  LIMIT_MS,
);
