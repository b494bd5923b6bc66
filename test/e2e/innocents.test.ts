/**
 * Who is never signalled: processes that are not of the job, however much they look like it.
 */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import {
  findAnywhere,
  findByCommand,
  python,
  readStatusLine,
  waitForCommand,
  waitForText,
} from "../support/processes.ts";
import { openScene, RELEASE } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;
const LIMITED = ["--timeout", "1s", "--kill-after", "300ms"];

test(
  "a bystander with the same command line and environment lives, one of the job does not",
  async () => {
    const bystander = scene.startProgram(["sleep", "87001"]);
    await waitForCommand(scene, "sleep 87001");
    const script = "trap '' TERM; (setsid sleep 87001 &); sleep 87001";
    const ended = await scene.run(["--log", "off", ...LIMITED, "--", "sh", "-c", script]);
    expect(ended.status).toBe(124);
    expect(findByCommand(scene, "sleep 87001")).toEqual([bystander.pid]);
    bystander.kill("SIGKILL");
    await bystander.ended;
  },
  LIMIT_MS,
);

for (const [title, limits, status] of [
  ["when the command ends", [], 3],
  ["when the limit is reached", LIMITED, 124],
] as const) {
  test(
    `the tail of 'tail … & exec watchdog run …' lives on ${title}`,
    async () => {
      const file = scene.path(`tailed-${status}`);
      const marker = `8700${status === 3 ? 2 : 3}`;
      writeFileSync(file, "");
      const work = status === 3 ? "exit 3" : `trap "" TERM; sleep ${marker}9 & sleep ${marker}9`;
      const name = `tail-${status}`;
      const run = [
        [RELEASE, "run", "--log", "off", ...limits, ...scene.recordTo(name)],
        ["--", "sh", "-c", `'(setsid sleep ${marker}8 &); ${work}'`],
      ].flat();
      const tail = `tail -n +1 -s 0.0${marker} -f ${file}`;
      const script = `${tail} & exec ${run.join(" ")}`;
      // The tail holds the pipes, so the end of the run is not the end of its output.
      const outer = scene.startProgram(
        ["sh", "-c", `(${script}); echo "status $?" >${file}.status`],
        {
          stdout: "ignore",
          stderr: "ignore",
        },
      );
      expect(await waitForText(`${file}.status`)).toBe(`status ${status}\n`);
      await outer.ended;
      const tails = findByCommand(scene, tail);
      expect(tails).toHaveLength(1);
      expect(scene.findProcesses()).toEqual(tails);
      expect(scene.readRecord(name)["leftovers"].map(commandOf)).not.toContain(tail);
      for (const pid of tails) process.kill(pid, "SIGKILL");
    },
    LIMIT_MS,
  );
}

function commandOf(process: { readonly command: string }): string {
  return process.command;
}

for (const limits of [[], ["--timeout", "50s"]]) {
  test(
    `the producer of <(…) lives and is read to its end (${limits.join(" ") || "no limit"})`,
    async () => {
      const producer = "for i in 1 2 3 4 5; do echo line $i; sleep 0.1; done; echo last";
      const run = [RELEASE, "run", "--log", "off", ...limits, "--", "cat"].join(" ");
      const ended = await scene.startProgram(["bash", "-c", `exec ${run} <(${producer})`]).ended;
      expect(ended.status).toBe(0);
      expect(ended.stderr).toBe("");
      expect(ended.stdout.toString()).toBe("line 1\nline 2\nline 3\nline 4\nline 5\nlast\n");
    },
    LIMIT_MS,
  );
}

test(
  "the producer of <(…) is not ended by the limit that ends its reader",
  async () => {
    const done = scene.path("producer.done");
    const producer = `exec >/dev/null 2>&1; sleep 2.5; echo done >${done}`;
    const run = [RELEASE, "run", "--log", "off", ...LIMITED, "--"].join(" ");
    const script = `exec ${run} sh -c 'cat "$0" >/dev/null; exec sleep 87004' <(${producer})`;
    const ended = await scene.startProgram(["bash", "-c", script]).ended;
    expect(ended.status).toBe(124);
    expect(findByCommand(scene, "sleep 87004")).toEqual([]);
    expect(await waitForText(done)).toBe("done\n");
  },
  LIMIT_MS,
);

test(
  "an adopted process that is not proven to be of the job is left alone and named",
  async () => {
    const pidFile = scene.path("adopted.pid");
    const daemon = [...python("daemonizes.py", pidFile), "sleep", "87005"].join(" ");
    // The inborn child becomes a daemon while the run goes on: watchdog inherits it as subreaper.
    const inborn = `(until [ -e ${scene.path("go")} ]; do sleep 0.01; done; ${daemon})`;
    const wait = `until [ -s ${pidFile} ]; do sleep 0.01; done; sleep 0.3`;
    const work = `touch ${scene.path("go")}; ${wait}`;
    const run = [RELEASE, "run", "--log", "off", ...scene.recordTo("adopted"), "--"].join(" ");
    const script = `${inborn} >/dev/null 2>&1 & exec ${run} sh -c '${work}; exit 2'`;
    const ended = await scene.startProgram(["sh", "-c", script]).ended;
    const pid = Number(readFileSync(pidFile, "utf8"));
    const record = scene.readRecord("adopted");
    expect(ended.status).toBe(2);
    expect(findByCommand(scene, "sleep 87005")).toEqual([pid]);
    expect(readStatusLine(pid, "State")).toStartWith("S");
    expect(record["left_alone"]).toMatchObject([{ pid, command: "sleep 87005" }]);
    expect(record["leftovers"]).toEqual([]);
    expect(ended.stderr).toBe(
      `watchdog: left 1 process alone, not proven to be of the command: ${pid} sleep 87005\n`,
    );
    process.kill(pid, "SIGKILL");
  },
  LIMIT_MS,
);

test(
  "with inborn children about, a daemon of the job is still ended",
  async () => {
    const daemon = [...python("daemonizes.py", scene.path("ours.pid")), "sleep", "87006"].join(" ");
    const run = [RELEASE, "run", "--log", "off", ...scene.recordTo("ours"), "--"].join(" ");
    const script = `sleep 87007 >/dev/null 2>&1 & exec ${run} sh -c '${daemon}; exit 2'`;
    const ended = await scene.startProgram(["sh", "-c", script]).ended;
    expect(ended.status).toBe(2);
    expect(findByCommand(scene, "sleep 87006")).toEqual([]);
    const inborn = findByCommand(scene, "sleep 87007");
    expect(inborn).toHaveLength(1);
    for (const pid of inborn) process.kill(pid, "SIGKILL");
  },
  LIMIT_MS,
);

test(
  "with inborn children about, who was born in the grace without the cookie is ended too",
  async () => {
    const late = "sleep 87010";
    // It is asked first, and born because of that.
    const asked = `trap "asked=yes" TERM; until [ "$asked" ]; do sleep 0.05; done`;
    const work = `${asked}; env -i ${late} >/dev/null 2>&1 & echo born; sleep 87011`;
    const limits = "--timeout 3s --kill-after 4s";
    const run = `${RELEASE} run --log off ${limits} -- sh -c '${work}'`;
    const script = `sleep 87012 >/dev/null 2>&1 & exec ${run}`;
    const ended = await scene.startProgram(["sh", "-c", script]).ended;
    expect([ended.status, ended.stdout.toString()]).toEqual([124, "born\n"]);
    const left = findAnywhere(late);
    for (const pid of [...left, ...findByCommand(scene, "sleep 87012")]) {
      process.kill(pid, "SIGKILL");
    }
    expect(left).toEqual([]);
  },
  LIMIT_MS,
);
