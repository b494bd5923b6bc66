/**
 * Owners that are dead, or only look like it: reused pids, other boots, namespaces and machines,
 * zombies, and deaths by each kind of signal. The next run gets the key where the owner is proven
 * dead, and only there.
 */
import { describe, expect, test } from "bun:test";
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { ask, askJson, waitForHolder, waitForRow } from "../support/ask.ts";
import { endAll } from "../support/guarded-scene.ts";
import { GONE_LIMIT_MS, killAlone, killWithGuard } from "../support/killing.ts";
import {
  findAnywhere,
  findByCommand,
  readLines,
  readStatusLine,
  waitForCommand,
} from "../support/processes.ts";
import { FIXTURES, openScene, readCommandLine, RELEASE, rootTest } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const NAMESPACE = ["unshare", "-pf", "--mount-proc", "--kill-child"];
const OTHER_BOOT = "11111111-2222-3333-4444-555555555555";
const OTHER_MACHINE = "0123456789abcdef0123456789abcdef";
const LIMIT_MS = 180_000;

function fileOf(job: string, name: string): string {
  return `${scene.stateDirectory}/leases/job/${job}/${name}`;
}

/** What a person, or another machine, would have written there. */
function editRecord(job: string, changes: Readonly<Record<string, unknown>>): void {
  const record = JSON.parse(readFileSync(fileOf(job, "lease.json"), "utf8"));
  for (const name of Object.keys(changes)) expect(record).toHaveProperty(name);
  writeFileSync(fileOf(job, "lease.json"), `${JSON.stringify({ ...record, ...changes })}\n`);
}

async function generationOf(job: string): Promise<number> {
  return (await askJson(scene, ["lease", "show", `job:${job}`])).generation;
}

/** A run whose command has no variable of it, killed with its guard: the command lives on. */
async function leaveBare(job: string, command: string, words: readonly string[] = []) {
  const run = scene.start(
    ["--name", job, ...words, "--", "env", "-u", "WATCHDOG_RUN_PATH", ...command.split(" ")],
    { stdout: "ignore", stderr: "ignore" },
  );
  const [pid = 0] = await waitForCommand(scene, command);
  const lease = await waitForHolder(scene, job);
  expect(lease.children).toMatchObject([{ pid }]);
  await killWithGuard(run);
  return { pid, run, generation: lease.generation as number };
}

describe("a pid that was used again", () => {
  for (const [what, id] of [
    ["owner", "A-36"],
    ["child", "A-37"],
  ] as const) {
    rootTest(
      `${id}: an innocent with the pid of the dead ${what} is neither believed nor killed`,
      async () => {
        const script = ["bash", `${FIXTURES}/reuses-a-pid.sh`, what, `reused-${what}`, RELEASE];
        const ended = await scene.startProgram([...NAMESPACE, ...script]).ended;
        // Without "reused" nothing was tested.
        expect(ended.stdout.toString().split("\n")).toEqual([
          "reused",
          "ok",
          "status 0",
          "alive",
          "",
        ]);
        expect(ended.stderr).toMatch(
          /^watchdog: took over job:reused-\w+ from run [^\n]+ \(R6 tree-empty\)\n$/,
        );
      },
    );
  }
});

test("A-38: an owner of another boot has no process here, whatever pids are in use", async () => {
  const { pid, generation } = await leaveBare("a38", "sleep 98038");
  // Process 1 lives, and the pid that the beat has recorded does, too.
  editRecord("a38", { boot_id: OTHER_BOOT, pid: 1 });
  const next = await scene.run(["--name", "a38", "--", "echo", "ok"]);
  expect([next.status, next.stdout.toString()]).toEqual([0, "ok\n"]);
  expect(next.stderr).toMatch(/^watchdog: took over job:a38 [^\n]+ \(R5 other-boot\)\n$/);
  expect(findByCommand(scene, "sleep 98038")).toEqual([pid]);
  expect(await generationOf("a38")).toBe(generation + 1);
  await endAll(scene, [pid]);
});

describe("another pid namespace", () => {
  rootTest("A-39: a holder in it is not robbed, from outside or from a third", async () => {
    const words = [RELEASE, "run", "--name", "a39", "--", "sleep", "98039"];
    const holder = scene.startProgram([...NAMESPACE, ...words]);
    const [pid = 0] = await waitForCommand(scene, "sleep 98039");
    const lease = await waitForHolder(scene, "a39");
    const steal = ["run", "-v", "--name", "a39", "--", "echo", "STOLEN"];
    for (const words of [[RELEASE], [...NAMESPACE, RELEASE]]) {
      const ended = await scene.startProgram([...words, ...steal]).ended;
      expect([ended.status, ended.stdout.toString()]).toEqual([75, ""]);
      expect(ended.stderr).toStartWith(
        `watchdog: not started: job:a39 is held by run ${lease.run_id}`,
      );
      // Where it is, what settles it, and how long nothing was heard of it.
      expect(ended.stderr).toMatch(
        /in another pid namespace or container; [^\n]+ lock settles it[^\n]+ is \d+ s old\n/,
      );
    }
    expect(findByCommand(scene, "sleep 98039")).toEqual([pid]);
    process.kill(pid, "SIGTERM");
    expect((await holder.ended).status).toBe(143);
  });

  rootTest(
    "A-40: a container that is started again gets the key when nothing was heard for the limit",
    async () => {
      const beats = ["--heartbeat-interval", "200ms", "--stale-after", "1s"];
      const words = [...NAMESPACE, RELEASE, "run", "--name", "a40", ...beats, "--"];
      const first = scene.startProgram([...words, "sleep", "98040"]);
      await waitForCommand(scene, "sleep 98040");
      // A number of a namespace that is gone is given again; then all that was in it is gone too.
      const [inside = 0] = findByCommand(scene, "sleep 98040");
      const namespace = openSync(`/proc/${inside}/ns/pid`, "r");
      const { generation } = await waitForHolder(scene, "a40");
      first.kill("SIGKILL");
      await waitFor(() => findByCommand(scene, "sleep 98040").length === 0, "an empty namespace");
      await first.ended;
      const began = performance.now();
      const again = () => scene.startProgram([...words, "echo", "ok"]).ended;
      const early = await again();
      expect([early.status, early.stdout.toString()]).toEqual([75, ""]);
      expect(early.stderr).toContain("in a pid namespace that cannot be seen from here\n");
      expect(existsSync(fileOf("a40", "seen.json"))).toBe(true);
      const late = await waitFor(async () => {
        const ended = await again();
        return ended.status === 0 && ended;
      }, "the key");
      expect(performance.now() - began).toBeGreaterThan(1_000);
      expect(late.stdout.toString()).toBe("ok\n");
      expect(late.stderr).toMatch(
        /^watchdog: took over job:a40 [^\n]+ \(R6 other-namespace[^\n]*\)\n$/,
      );
      expect(existsSync(fileOf("a40", "seen.json"))).toBe(false);
      const lease = await askJson(scene, ["lease", "show", "job:a40"]);
      expect(lease.generation).toBe(generation + 1);
      expect(lease.previous).toMatchObject({ generation, how_it_ended: "elsewhere" });
      closeSync(namespace);
    },
  );

  rootTest("A-97: from outside, a dead process 1 is seen with its whole namespace", async () => {
    const words = [RELEASE, "run", "--name", "a97", ...scene.recordTo("a97"), "--"];
    const run = scene.startProgram([...NAMESPACE, ...words, "sleep", "98097"], {
      stderr: "ignore",
    });
    await waitForCommand(scene, "sleep 98097");
    await waitForRow(scene, "a97", "running");
    expect(scene.readRecord("a97")["pid"]).toBe(1);
    const init = scene.findProcesses().find((pid) => {
      const isInit = readStatusLine(pid, "NSpid")?.endsWith("\t1");
      return isInit && readCommandLine(pid).includes("--name a97");
    });
    process.kill(Number(init), "SIGKILL");
    await run.ended;
    const next = await scene.run(["--name", "a97", "--", "echo", "ok"]);
    expect([next.status, next.stdout.toString()]).toEqual([0, "ok\n"]);
    expect(next.stderr).toContain("(R6 tree-empty)");
    // The guard died with its namespace, so that the next run has written it down.
    const { runs } = await askJson(scene, ["history", "a97"]);
    expect(runs.map((row: { outcome: string }) => row.outcome)).toEqual(["ok", "abandoned"]);
  });
});

test("A-41: an owner that nobody has collected is dead", async () => {
  const script = `"$@" & exec sleep 98141`;
  const words = [RELEASE, "run", "--name", "a41", "--", "sleep", "98041"];
  const parent = scene.startProgram(["sh", "-c", script, "sh", ...words], {
    stdout: "ignore",
    stderr: "ignore",
  });
  await waitForCommand(scene, "sleep 98041");
  const { pid } = await waitForHolder(scene, "a41");
  process.kill(pid, "SIGKILL");
  await waitFor(() => readStatusLine(pid, "State")?.startsWith("Z"), "a zombie");
  const next = await scene.run(["--name", "a41", "--", "echo", "ok"]);
  expect([next.status, next.stdout.toString()]).toEqual([0, "ok\n"]);
  expect(readStatusLine(pid, "State")).toStartWith("Z");
  expect(findByCommand(scene, "sleep 98041")).toEqual([]);
  parent.kill("SIGKILL");
  await parent.ended;
});

test("A-42: an owner of another machine keeps the key while it may be heard of", async () => {
  const { pid, generation } = await leaveBare("a42", "sleep 98042", ["--stale-after", "2s"]);
  const changes = { host: "otherhost", machine_id: OTHER_MACHINE, runner: "root@otherhost" };
  editRecord("a42", { boot_id: OTHER_BOOT, pid, ...changes });
  const again = () => scene.run(["--name", "a42", "--", "echo", "ok"]);
  const began = performance.now();
  const early = await again();
  expect([early.status, early.stdout.toString()]).toEqual([75, ""]);
  expect(early.stderr).toMatch(/^watchdog: not started: [^\n]+@otherhost[^\n]+, another machine\n/);
  const note = readFileSync(fileOf("a42", "seen.json"));
  expect((await again()).status).toBe(75);
  expect(readFileSync(fileOf("a42", "seen.json"))).toEqual(note);
  const late = await waitFor(async () => {
    const ended = await again();
    return ended.status === 0 && ended;
  }, "the key");
  expect(performance.now() - began).toBeGreaterThan(2_000);
  expect(late.stderr).toMatch(
    /^watchdog: took over job:a42 [^\n]+ nothing was heard [^\n]+ \(R5 other-machine[^\n]*\)\n$/,
  );
  expect(await generationOf("a42")).toBe(generation + 1);
  expect(existsSync(fileOf("a42", "seen.json"))).toBe(false);
  // The pid of the record is that of a process of this machine.
  expect(findByCommand(scene, "sleep 98042")).toEqual([pid]);
  await endAll(scene, [pid]);
});

test(
  "A-43: after each kind of death the next run has the key at once, with the next number",
  async () => {
    for (const [index, signal] of (["SIGKILL", "SIGSEGV", "SIGABRT"] as const).entries()) {
      const run = scene.start(["--name", "a43", "--", "sleep", "98043"], {
        stdout: "ignore",
        stderr: "ignore",
      });
      await waitForCommand(scene, "sleep 98043");
      const { generation } = await waitForHolder(scene, "a43");
      expect(generation).toBe(2 * index + 1);
      run.kill(signal);
      await run.ended;
      const began = performance.now();
      const script = `pgrep -fx "sleep 98043"; echo ok`;
      const next = await scene.run(["--name", "a43", "--", "sh", "-c", script]);
      expect([signal, next.status, next.stdout.toString()]).toEqual([signal, 0, "ok\n"]);
      expect(performance.now() - began).toBeLessThan(GONE_LIMIT_MS);
      expect(await generationOf("a43")).toBe(generation + 1);
    }
    const { runs } = await askJson(scene, ["history", "a43"]);
    expect(runs.map((row: { outcome: string }) => row.outcome)).toEqual(
      Array.from({ length: 3 }, () => ["ok", "abandoned"]).flat(),
    );
  },
  LIMIT_MS,
);

test("A-93: a job whose wrapper was killed does not write beside the next one", async () => {
  const ticks = scene.path("a93.ticks");
  const loop = `while :; do echo tick >>${ticks}; sleep 0.02; done`;
  const run = scene.start(["--name", "a93", "--", "sh", "-c", loop], {
    stdout: "ignore",
    stderr: "ignore",
  });
  await waitFor(() => readLines(ticks).length > 3, "ticks");
  await killAlone(run);
  const compare = `cp ${ticks} ${ticks}.1; sleep 0.3; cmp ${ticks} ${ticks}.1 && echo alone`;
  const next = await scene.run(["--name", "a93", "--", "sh", "-c", compare]);
  expect([next.status, next.stdout.toString()]).toEqual([0, "alone\n"]);
  expect(findAnywhere(`sh -c ${loop}`)).toEqual([]);
  const history = await ask(scene, ["history", "a93"]);
  expect(history.stdout.toString()).toMatch(/ abandoned .+watchdog was killed/);
});

test("A-03: a run out of time gives its key back when its last process is dead", async () => {
  const out = scene.path("a03.out");
  const late = `for i in $(seq 200); do echo old >>${out}; sleep 0.05; done`;
  const script = `(setsid sh -c 'trap "" TERM; ${late}' >/dev/null 2>&1 </dev/null &); sleep 98003`;
  const limits = ["--timeout", "3s", "--kill-after", "500ms"];
  const first = await scene.run(["--name", "a03", ...limits, "--", "sh", "-c", script]);
  expect(first.status).toBe(124);
  expect(readLines(out)).toContain("old");
  writeFileSync(out, "");
  const next = ["--name", "a03", "--", "sh", "-c", `sleep 0.4; echo new >>${out}`];
  expect((await scene.run(next)).status).toBe(0);
  expect(readLines(out)).toEqual(["new"]);
});
