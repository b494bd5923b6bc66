/**
 * `--quiet`: nothing on success, everything on failure, in the order in which it was printed, and
 * nothing of it lost when there is no place to hold it back.
 */
import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { PYTHON, runShell } from "../support/outside.ts";
import { FIXTURES, openScene, RELEASE, rootTest } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const MODES = ["on", "auto", "off"];

test("a run that succeeds prints nothing at all", async () => {
  for (const mode of MODES) {
    const ended = await scene.run([
      "--quiet",
      "--log",
      mode,
      "--",
      "sh",
      "-c",
      "echo out; echo err >&2",
    ]);
    expect([ended.code, ended.stdout.toString(), ended.stderr]).toEqual([0, "", ""]);
  }
});

test("a run that fails prints everything, each stream where it belongs", async () => {
  for (const mode of MODES) {
    for (const end of ["exit 3", "kill -KILL $$"]) {
      const script = `echo out; echo err >&2; ${end}`;
      const ended = await scene.run(["--quiet", "--log", mode, "--", "sh", "-c", script]);
      expect([ended.status, ended.stdout.toString(), ended.stderr]).toEqual([
        end === "exit 3" ? 3 : 137,
        "out\n",
        "err\n",
      ]);
    }
  }
});

test("a code of --success-exit-codes is a success, and prints nothing", async () => {
  const ended = await scene.run([
    "--quiet",
    "--success-exit-codes",
    "24",
    "--",
    "sh",
    "-c",
    "echo out; exit 24",
  ]);
  expect([ended.code, ended.stdout.toString(), ended.stderr]).toEqual([24, "", ""]);
});

test("a run that a limit ends prints everything, and the reason", async () => {
  const script = "echo before; echo warned >&2; sleep 91061";
  const ended = await scene.run(["--quiet", "--timeout", "3s", "--", "sh", "-c", script]);
  expect([ended.code, ended.stdout.toString()]).toEqual([124, "before\n"]);
  expect(ended.stderr).toMatch(/^warned\nwatchdog: ended by --timeout.*\n$/);
}, 180_000);

test("leftovers of a run that succeeds are ended without a word", async () => {
  const ended = await scene.run(["--quiet", "--", "sh", "-c", "echo out; sleep 91062 &"]);
  expect([ended.code, ended.stdout.toString(), ended.stderr]).toEqual([0, "", ""]);
  expect(scene.findProcesses()).toEqual([]);
}, 180_000);

test("nothing is printed before the end, and then all of it in the common order", async () => {
  // Without a log, for which a busy machine may have no time: it says so on the same stream.
  const script = `"$W" run --quiet --log off -- \\
    sh -c '"$1" "$0" 10000; exit 3' "$F/alternates-streams.py" "$PYTHON" >"$R" 2>&1`;
  await runShell(scene, script, { env: { F: FIXTURES, R: scene.path("both"), PYTHON } });
  const expected = Array.from({ length: 10_000 }, (_, index) => `${index}\n`).join("");
  expect(readFileSync(scene.path("both"), "utf8")).toBe(expected);
  const waiting = `"$W" run --quiet -- \\
    sh -c 'echo early; echo ready >"$1"
      until [ -e "$0" ]; do sleep 0.02; done; exit 3' "$G" "$G.ready" >"$R"`;
  const running = scene.startProgram(["sh", "-c", waiting], {
    env: { W: RELEASE, G: scene.path("gate"), R: scene.path("early") },
  });
  await waitFor(
    () => Bun.file(`${scene.path("gate")}.ready`).size > 0,
    "the command to have printed",
  );
  expect(readFileSync(scene.path("early"), "utf8")).toBe("");
  await Bun.write(scene.path("gate"), "go\n");
  await running.ended;
  expect(readFileSync(scene.path("early"), "utf8")).toBe("early\n");
}, 180_000);

test("a hundred megabytes of a run that fails arrive whole", async () => {
  const script = `"$W" run --quiet -- sh -c 'yes quiet | head -c 100000000; exit 3' | sha256sum
    yes quiet | head -c 100000000 | sha256sum`;
  const [arrived, expected] = (await runShell(scene, script)).stdout.toString().split("\n");
  expect(arrived).toBe(expected);
}, 180_000);

test("a success whose reader is gone is still a success", async () => {
  const script = `"$W" run --quiet -- sh -c 'echo x; exit 0' | true; echo "\${PIPESTATUS[0]}"`;
  const env = { W: RELEASE };
  const ended = await scene.startProgram(["bash", "-c", script], { env }).ended;
  expect(ended.stdout.toString()).toBe("0\n");
});

test("a failure whose reader is gone has its own status, and lost no output", async () => {
  const words = `--quiet ${scene.recordTo("gone").join(" ")} -- sh -c 'echo x; sleep 0.3; exit 3'`;
  const script = `"$W" run ${words} | true; echo "\${PIPESTATUS[0]}"`;
  const env = { W: RELEASE };
  const ended = await scene.startProgram(["bash", "-c", script], { env }).ended;
  expect([ended.stdout.toString(), ended.stderr]).toEqual(["3\n", ""]);
  const { output } = scene.readRecord("gone");
  expect(output).toMatchObject({ stdout_bytes: 2, write_error: null });
});

test("a command that leaves with 0 at its limit was no success: all is printed", async () => {
  const script = "trap 'exit 0' TERM; echo seen; while :; do sleep 0.05; done";
  const ended = await scene.run(["--quiet", "--timeout", "3s", "--", "sh", "-c", script]);
  expect([ended.status, ended.stdout.toString()]).toEqual([124, "seen\n"]);
});

/** Files of the state directory that hold what a killed quiet run had printed. */
async function findPrinted(state: string, log: string): Promise<string[]> {
  const ready = scene.path(`spool-ready-${log}`);
  // The word itself stands in no command line, which the lease and the journal hold.
  const script = 'printf "sec%s\\n" ret; echo ready >"$0"; sleep 91063';
  const args = ["--quiet", "--log", log, "--state-dir", state, "--", "sh", "-c", script, ready];
  const started = scene.start(args);
  await waitFor(() => Bun.file(ready).size > 0, "the command to have printed");
  if (log === "on") {
    await waitFor(async () => (await grep(state)).length > 0, "the output in the log");
  }
  started.kill("SIGKILL");
  await started.ended;
  await waitFor(() => scene.findProcesses().length === 0, "the guard to have ended the command");
  return grep(state);
}

async function grep(state: string): Promise<string[]> {
  const options = { env: { S: state } };
  const { stdout } = await runShell(scene, 'grep -rl secret "$S" 2>/dev/null; true', options);
  return stdout.toString().split("\n").slice(0, -1);
}

test("the spool of a quiet run leaves no file behind, also when watchdog is killed", async () => {
  const before = new Set(readdirSync("/tmp"));
  expect(await findPrinted(scene.path("spool-state"), "off")).toEqual([]);
  // The same with a log is found, so this would see a spool that stays.
  expect((await findPrinted(scene.path("kept-state"), "on")).map((path) => path.slice(-4))).toEqual(
    [".log"],
  );
  const spools = readdirSync("/tmp").filter((name) => !before.has(name) && name.includes("spool"));
  expect(spools).toEqual([]);
}, 180_000);

rootTest(
  "where no spool can be had, a quiet run prints everything rather than losing it",
  async () => {
    const state = scene.path("full-state");
    mkdirSync(state, { mode: 0o700 });
    await scene.startProgram(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", state])
      .ended;
    try {
      const args = ["--quiet", "--log", "off", "--state-dir", state, "--"];
      const ended = await scene.run([...args, "head", "-c", "1000000", "/dev/zero"]);
      expect([ended.code, ended.stdout.length]).toEqual([0, 1_000_000]);
      const failed = await scene.run([...args, "sh", "-c", "head -c 1000000 /dev/zero; exit 5"]);
      expect([failed.code, failed.stdout.length]).toEqual([5, 1_000_000]);
    } finally {
      await scene.startProgram(["umount", state]).ended;
    }
  },
);
