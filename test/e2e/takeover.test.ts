/**
 * A run whose watchdog and guard were both killed, and the next one under its key: whom that ends,
 * whom it only names, and that nobody gets the key while one of them lives. Runs within runs too.
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { askJson, waitForHolder } from "../support/ask.ts";
import { guardOf, killWithGuard, readChildren, waitForGuard } from "../support/killing.ts";
import { endAll, waitForBeats } from "../support/guarded-scene.ts";
import { PYTHON } from "../support/outside.ts";
import { findByCommand, readLines, readStatusLine, waitForCommand } from "../support/processes.ts";
import { FIXTURES, openScene, readCommandLine, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);

function fixture(name: string, ...words: readonly string[]): string[] {
  return [PYTHON, "-I", "-S", `${FIXTURES}/${name}`, ...words];
}

/** A run of that job, killed with its guard once the command is there. @returns the run's lease */
async function leaveSurvivors(
  job: string,
  words: readonly string[],
  ready: () => Promise<unknown>,
) {
  const run = scene.start(["--name", job, ...words], { stdout: "ignore", stderr: "ignore" });
  await ready();
  const lease = await waitForHolder(scene, job);
  await killWithGuard(run);
  return lease;
}

describe("the next run", () => {
  test("ends the survivors, all of them and nobody else, and says whom", async () => {
    const script = "setsid sleep 98201 & sleep 98201";
    const innocents = [
      scene.startProgram(["sleep", "98201"]),
      scene.startProgram(["sleep", "98201"]),
    ];
    const lease = await leaveSurvivors("ends", ["--", "sh", "-c", script], () =>
      waitForCommand(scene, "sleep 98201", 4),
    );
    const spared = innocents.map((one) => one.pid).sort((a, b) => a - b);
    const survivors = findByCommand(scene, "sleep 98201").filter((pid) => !spared.includes(pid));
    expect(survivors).toHaveLength(2);
    const list = `pgrep -fx "sleep 98201" | sort -n | tr '\\n' ' '`;
    const next = await scene.run(["--name", "ends", "--", "sh", "-c", list]);
    expect([next.status, next.stdout.toString()]).toEqual([0, `${spared.join(" ")} `]);
    const [first, second, ...more] = next.stderr.trimEnd().split("\n");
    expect(first).toMatch(
      new RegExp(
        `^watchdog: took over job:ends from run ${lease.run_id} [^\\n]+ ` +
          "it is dead, and its processes were ended \\(R6 members\\)$",
      ),
    );
    // The shell, too.
    expect(second).toStartWith("watchdog: ended 3 processes of the run before: ");
    for (const pid of survivors) expect(second).toContain(`${pid} sleep 98201`);
    expect(more).toEqual([]);
    const { generation, previous } = await askJson(scene, ["lease", "show", "job:ends"]);
    expect(generation).toBe(lease.generation + 1);
    expect(previous).toMatchObject({ how_it_ended: "orphaned", evidence: "R6 members" });
    await endAll(scene, spared);
  });

  test("spares what the dead run had kept, and what has been started by hand since", async () => {
    const script = `${RELEASE} keep -- sleep 98202; exec sleep 98203`;
    const words = ["--heartbeat-interval", "100ms", "--", "sh", "-c", script];
    await leaveSurvivors("kept", words, async () => {
      await waitForCommand(scene, "sleep 98203");
      await waitForBeats(scene, "kept");
    });
    const [kept = 0] = findByCommand(scene, "sleep 98202");
    const byHand = scene.startProgram(["sleep", "98203"]);
    const next = await scene.run(["--name", "kept", "--", "echo", "ok"]);
    expect([next.status, next.stdout.toString()]).toEqual([0, "ok\n"]);
    expect(findByCommand(scene, "sleep 98202")).toEqual([kept]);
    expect(findByCommand(scene, "sleep 98203")).toEqual([byHand.pid]);
    await endAll(scene, [kept, byHand.pid]);
  });

  test("spares children that the dead watchdog had before the run", async () => {
    const binary = scene.path("with-a-child.sh");
    writeFileSync(binary, `#!/bin/sh\nsleep 98211 &\nexec ${RELEASE} "$@"\n`, { mode: 0o755 });
    const words = ["--name", "inborn", "--heartbeat-interval", "100ms", "--", "sleep", "98212"];
    const run = scene.start(words, { binary, stdout: "ignore", stderr: "ignore" });
    const [inborn = 0] = await waitForCommand(scene, "sleep 98211");
    await waitForHolder(scene, "inborn");
    await waitForBeats(scene, "inborn");
    await killWithGuard(run);
    const next = await scene.run(["--name", "inborn", "--", "pgrep", "-fx", "sleep 98212"]);
    expect([next.status, next.stdout.toString()]).toEqual([1, ""]);
    expect(findByCommand(scene, "sleep 98211")).toEqual([inborn]);
    await endAll(scene, [inborn]);
  });

  test("ends a stopped survivor, and one that ignores everything but KILL", async () => {
    const isSleep = `[ "$(tr "\\0" " " </proc/$!/cmdline)" = "sleep 98204 " ]`;
    const stop = `sleep 98204 & until ${isSleep}; do :; done; kill -STOP $!`;
    const script = `trap "" TERM HUP INT; ${stop}; exec sleep 98205`;
    await leaveSurvivors("deaf", ["--", "sh", "-c", script], async () => {
      await waitForCommand(scene, "sleep 98205");
      const [stopped = 0] = await waitForCommand(scene, "sleep 98204");
      await waitFor(() => readStatusLine(stopped, "State")?.startsWith("T"), "a stopped one");
    });
    const next = await scene.run(["--name", "deaf", "--", "echo", "ok"]);
    expect([next.status, next.stdout.toString()]).toEqual([0, "ok\n"]);
    expect([98204, 98205].flatMap((n) => findByCommand(scene, `sleep ${n}`))).toEqual([]);
  });

  test("is refused because of a suspect, names it, and signals nobody", async () => {
    const heard = scene.path("suspect.heard");
    const lease = await leaveSurvivors(
      "suspect",
      ["--", ...fixture("notes-signals.py", heard, "member", "TERM,HUP,INT,CONT")],
      () => waitFor(() => readLines(heard).length === 1, "a member"),
    );
    const member = scene.findProcesses().filter((pid) => readCommandLine(pid).includes(heard));
    expect(member).toHaveLength(1);
    // Started from elsewhere with the run's variables, as by at(1) or `env > file`.
    const suspect = scene.startProgram(["sleep", "98206"], {
      env: { WATCHDOG_RUN_PATH: lease.run_path, WATCHDOG_RUN_ID: lease.run_id },
    });
    await waitForCommand(scene, "sleep 98206");
    const next = await scene.run(["--name", "suspect", "--", "echo", "STOLEN"]);
    expect([next.status, next.stdout.toString()]).toEqual([75, ""]);
    expect(next.stderr).toMatch(
      new RegExp(
        `^watchdog: not started: job:suspect was left by run ${lease.run_id} [^\\n]+, ` +
          "which is dead; these carry its id, may be its command, or cannot be read, " +
          "and are not proven: " +
          `${suspect.pid} sleep 98206\\n` +
          "watchdog: hint: watchdog lease show job:suspect\\n$",
      ),
    );
    expect(await askJson(scene, ["lease", "show", "job:suspect"])).toMatchObject({
      verdict: "orphaned",
      because: "suspects",
      suspects: [{ pid: suspect.pid, command: "sleep 98206" }],
    });
    expect(readLines(heard)).toEqual(["member ready"]);
    expect(findByCommand(scene, "sleep 98206")).toEqual([suspect.pid]);
    expect(member.map((pid) => readStatusLine(pid, "State"))).toEqual([
      expect.stringMatching(/^[SRD] /), // not stopped, and no zombie
    ]);
    // The twin: it was the suspect alone.
    await endAll(scene, [suspect.pid]);
    const after = await scene.run(["--name", "suspect", "--", "echo", "ok"]);
    expect([after.status, after.stdout.toString()]).toEqual([0, "ok\n"]);
    expect(scene.findProcesses().filter((pid) => member.includes(pid))).toEqual([]);
  });

  test("is refused when it is itself below the survivors", async () => {
    const [go, told] = [scene.path("below.go"), scene.path("below.told")];
    const inner = `${RELEASE} run --name below --wait 20s -- echo STOLEN`;
    const script = `until [ -e ${go} ]; do sleep 0.02; done; ${inner} >${told} 2>&1
      echo "status $?" >>${told}; exec sleep 98207`;
    await leaveSurvivors("below", ["--", "sh", "-c", script], () => waitForHolder(scene, "below"));
    const began = performance.now();
    writeFileSync(go, "");
    const [survivor = 0] = await waitForCommand(scene, "sleep 98207");
    expect(performance.now() - began).toBeLessThan(15_000);
    const lines = readLines(told);
    expect(lines.at(-1)).toBe("status 75");
    expect(lines[0]).toContain("which is dead; this run is below its processes: ");
    expect(lines[0]).toContain(String(survivor));
    // The twin: from elsewhere it is an ordinary survivor.
    const next = await scene.run(["--name", "below", "--", "echo", "ok"]);
    expect([next.status, next.stdout.toString()]).toEqual([0, "ok\n"]);
    expect(findByCommand(scene, "sleep 98207")).toEqual([]);
  });
});

describe("a run within a run", () => {
  /** Outer and inner watchdog and their guards, all killed: nobody is left but the command. */
  async function leaveInner(outer: string, inner: string, command: string): Promise<number> {
    const words = [RELEASE, "run", "--name", inner, "--", ...command.split(" ")];
    const run = scene.start(["--name", outer, "--", ...words], {
      stdout: "ignore",
      stderr: "ignore",
    });
    const [pid = 0] = await waitForCommand(scene, command);
    await waitForHolder(scene, inner);
    await waitForGuard(run.pid);
    const nested = readChildren(run.pid).find((one) => readCommandLine(one).includes(inner)) ?? 0;
    // The outer one first, so that it does not end what the inner one leaves.
    process.kill(run.pid, "SIGSTOP");
    process.kill(nested, "SIGSTOP");
    await waitFor(() => [run.pid, nested].every(isStopped), "both stopped");
    for (const one of [run.pid, nested]) {
      const guard = guardOf(one);
      expect(guard).toBeNumber();
      process.kill(Number(guard), "SIGKILL");
    }
    for (const one of [nested, run.pid]) process.kill(one, "SIGKILL");
    await run.ended;
    expect(findByCommand(scene, command)).toEqual([pid]);
    return pid;
  }

  function isStopped(pid: number): boolean {
    return readStatusLine(pid, "State")?.startsWith("T") ?? false;
  }

  for (const [key, other] of [
    ["outer", "inner"],
    ["inner", "outer"],
  ] as const) {
    test(`both killed with their guards: the next run of the ${key} key ends it all`, async () => {
      const command = key === "outer" ? "sleep 98208" : "sleep 98209";
      const [mine, theirs] = [`${key}-of-${key}`, `${other}-of-${key}`];
      const [outer, inner] = key === "outer" ? [mine, theirs] : [theirs, mine];
      const pid = await leaveInner(outer, inner, command);
      const next = await scene.run(["--name", mine, "--", "pgrep", "-fx", command]);
      expect([next.status, next.stdout.toString()]).toEqual([1, ""]);
      expect(next.stderr).toContain(`of the run before: ${pid} ${command}\n`);
      expect(findByCommand(scene, command)).toEqual([]);
      const after = await scene.run(["--name", theirs, "--", "echo", "ok"]);
      expect([after.status, after.stdout.toString()]).toEqual([0, "ok\n"]);
      expect(after.stderr).toContain("(R6 tree-empty)");
    });
  }

  test("A-96: after the outer limit the inner key is free at once", async () => {
    const script = "setsid sleep 98210 & sleep 98210";
    const inner = [RELEASE, "run", "--name", "a96-in", "--", "sh", "-c", script];
    const limits = ["--timeout", "3s", "--kill-after", "5s"];
    const ended = await scene.run(["--name", "a96-out", ...limits, "--", ...inner]);
    expect(ended.status).toBe(124);
    expect(findByCommand(scene, "sleep 98210")).toEqual([]);
    const next = await scene.run(["--name", "a96-in", "--", "echo", "ok"]);
    expect([next.status, next.stdout.toString(), next.stderr]).toEqual([0, "ok\n", ""]);
  });
});
