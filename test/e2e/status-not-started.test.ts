/**
 * Commands that cannot be started: 126 and 127 as a shell, one line that names the path and the
 * reason, and a record that says so.
 */
import { beforeAll, expect, test } from "bun:test";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { base64, runPrepared, runShell } from "../support/outside.ts";
import { type Ended, openScene, RELEASE, rootTest } from "../support/scene.ts";

const scene = openScene(import.meta.file);

beforeAll(() => {
  const write = (name: string, text: string, mode: number): void => {
    writeFileSync(scene.path(name), text);
    chmodSync(scene.path(name), mode);
  };
  write("plain", "", 0o644);
  write("bad-interpreter", "#!/no/interpreter\n", 0o755);
  write("no-interpreter-line", 'echo "script $1"; exit 7\n', 0o755);
  write("empty", "", 0o755);
  mkdirSync(scene.path("first"));
  mkdirSync(scene.path("second"));
  write("first/tool", "", 0o644);
  write("second/tool", "#!/bin/sh\nexit 5\n", 0o755);
  write("first/only-plain", "", 0o644);
});

interface Refusal {
  readonly word: string;
  readonly status: 126 | 127;
  readonly outcome: "not_executable" | "not_found";
  readonly reason: RegExp;
}

const REFUSALS: readonly Refusal[] = [
  { word: "/no/such/cmd", status: 127, outcome: "not_found", reason: /ENOENT|no such file/i },
  { word: "nosuchcmd_a33", status: 127, outcome: "not_found", reason: /ENOENT|not found|no such/i },
  { word: ".", status: 126, outcome: "not_executable", reason: /EACCES|EISDIR|permission/i },
  { word: "./first", status: 126, outcome: "not_executable", reason: /EACCES|EISDIR|permission/i },
  { word: "./plain", status: 126, outcome: "not_executable", reason: /EACCES|permission/i },
  { word: "./plain/below", status: 127, outcome: "not_found", reason: /ENOTDIR|not a directory/i },
  { word: "./bad-interpreter", status: 127, outcome: "not_found", reason: /ENOENT|no such/i },
];

test("A-33: a command that cannot be started gives 126 or 127, and one line", async () => {
  for (const { word, status, outcome, reason } of REFUSALS) {
    // A directory of PATH that may not be searched would be the reason named, as by execvp(3).
    const ended = await scene.run([...scene.recordTo(), "--log", "off", "--", word], {
      cwd: scene.directory,
      env: { PATH: "/usr/bin:/bin" },
    });
    expect([word, ended.status]).toEqual([word, status]);
    const lines = ended.stderr.split("\n").slice(0, -1);
    expect(lines[0]).toStartWith(`watchdog: error: ${word}: `);
    expect(lines[0]).toMatch(reason);
    expect(lines.length).toBeLessThanOrEqual(2);
    expect(ended.stderr).not.toMatch(/\n\s+at /);
    expect(scene.readRecord()).toMatchObject({
      state: "ended",
      outcome,
      status_of: "watchdog",
      exit_status: status,
      exit_code: null,
      signal: null,
      child_pid: null,
    });
  }
}, 180_000);

test("A-33: these statuses are the ones that bash gives", async () => {
  for (const { word, status } of REFUSALS) {
    if (word === ".") continue; // a builtin there
    const program = ["bash", "-c", '"$0"', word];
    const { ended } = scene.startProgram(program, { cwd: scene.directory });
    // Shells disagree about a bad interpreter and about a path through a file: bash 126, dash 127.
    const isDisputed = ["./bad-interpreter", "./plain/below"].includes(word);
    const expected: readonly number[] = isDisputed ? [126, 127] : [status];
    expect(expected).toContain((await ended).status);
  }
});

test("a bad interpreter is not blamed on the script alone", async () => {
  const ended = await scene.run(["--log", "off", "--", "./bad-interpreter"], {
    cwd: scene.directory,
  });
  expect(ended.stderr).toContain("bad-interpreter");
});

test("a text file without #! is run by /bin/sh, as every shell does", async () => {
  const ended = await scene.run(["--log", "off", "--", "./no-interpreter-line", "one"], {
    cwd: scene.directory,
  });
  expect([ended.code, ended.stdout.toString(), ended.stderr]).toEqual([7, "script one\n", ""]);
  const empty = await scene.run(["--log", "off", "--", "./empty"], { cwd: scene.directory });
  expect([empty.code, empty.stderr]).toEqual([0, ""]);
});

test("a text file without #! is found in PATH and run by /bin/sh", async () => {
  writeFileSync(scene.path("second/tale"), 'echo "tale $1 $0"\n', { mode: 0o755 });
  const PATH = `${scene.path("first")}:${scene.path("second")}:/usr/bin:/bin`;
  const ended = await scene.run(["--log", "off", "--", "tale", "x"], { env: { PATH } });
  expect(ended.stdout.toString()).toBe(`tale x ${scene.path("second/tale")}\n`);
});

test("PATH is searched beyond a file that cannot be executed", async () => {
  const PATH = `${scene.path("first")}:${scene.path("second")}:/usr/bin:/bin`;
  const found = await scene.run(["--log", "off", "--", "tool"], { env: { PATH } });
  expect([found.code, found.stderr]).toEqual([5, ""]);
  const plain = await scene.run(["--log", "off", "--", "only-plain"], { env: { PATH } });
  expect(plain.code).toBe(126);
  const none = await scene.run(["--log", "off", "--", "absent"], { env: { PATH } });
  expect(none.code).toBe(127);
});

test("PATH is not replaced: without one, execvp's own places are searched", async () => {
  const wrapped = [RELEASE, "run", "--log", "off", "--", "true"];
  const environment = [`WATCHDOG_STATE_DIR=${scene.stateDirectory}`, scene.cookieEntry];
  const ended = await runPrepared(scene, { environment: environment.map(base64) }, wrapped);
  expect([ended.code, ended.stderr]).toEqual([0, ""]);
});

test("an empty command word is a wrong command line, 64, and starts nothing", async () => {
  const ended = await scene.run([...scene.recordTo("empty"), "--", ""]);
  expect(ended.code).toBe(64);
  expect(ended.stderr).toMatch(/^watchdog: error: the command is empty, found "".*\n/);
});

test("an environment that is too large with watchdog's variables gives 125", async () => {
  // execve(2): words and environment together may have a quarter of the stack's limit, and at least
  // 128 KiB of it.
  const limits = { STACK: [1_048_576, 1_048_576] } as const;
  const fill = (bytes: number): string[] => {
    const entries = [scene.cookieEntry, `WATCHDOG_STATE_DIR=${scene.stateDirectory}`];
    for (let left = bytes, index = 0; left > 0; left -= 1_000, index += 1) {
      entries.push(`F${index}=${"x".repeat(Math.min(left, 1_000))}`);
    }
    return entries.map(base64);
  };
  // A short command line, so that the command's variables outweigh the words that it does not get.
  symlinkSync(RELEASE, scene.path("w"));
  const wrapped = ["./w", "run", "--log", "off", "--", "/bin/true"];
  const statusAt = (bytes: number): Promise<Ended> =>
    runPrepared(scene, { limits, environment: fill(bytes), cwd: scene.directory }, wrapped);
  // The largest environment with which watchdog itself can still be started.
  let low = 100_000;
  let high = 262_144;
  while (high - low > 16) {
    const middle = (low + high) >> 1;
    if ((await statusAt(middle)).code === 99) high = middle;
    else low = middle;
  }
  const ended = await statusAt(low);
  expect(ended.code).toBe(125);
  expect(ended.stderr).toMatch(/^watchdog: error: \/bin\/true: .*(E2BIG|too long|too large)/);
  expect(ended.stderr.split("\n").length).toBeLessThanOrEqual(3);
}, 180_000);

rootTest("a file without the right to execute gives 126 to root too", async () => {
  const ended = await scene.run(["--log", "off", "--", scene.path("plain")]);
  expect(ended.code).toBe(126);
});

test("A-34: in a deleted directory Bun ends with 1, and blames no command", async () => {
  const script = `mkdir "$D/gone"; cd "$D/gone"; rmdir "$D/gone"
    "$W" run -- /bin/echo hi; echo $?`;
  const ended = await runShell(scene, script, { env: { D: scene.directory } });
  expect(ended.stdout.toString()).toBe("1\n");
  expect(ended.stderr).not.toContain("/bin/echo");
  expect(ended.stderr).not.toBe("");
});
