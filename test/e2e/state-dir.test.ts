/**
 * The state directory: which kinds are refused with 78 before anything starts, what is only a
 * warning, and where it lies by default, whatever HOME and XDG say.
 */
import { expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { dirname } from "node:path";
import { runShell } from "../support/outside.ts";
import { type Ended, FIXTURES, openScene, RELEASE, rootTest } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const NOBODY = 65_534;
/** An ordinary user without a password entry. */
const NAMELESS = 54_321;

let tries = 0;

interface Tried {
  readonly code: number | null;
  readonly hasRun: boolean;
  readonly stderr: string;
  readonly hasRecord: boolean;
}

async function runWith(state: string, extra: readonly string[] = []): Promise<Tried> {
  const name = `try-${(tries += 1)}`;
  const mark = scene.path(`${name}.mark`);
  const args = ["--state-dir", state, ...scene.recordTo(name), ...extra];
  const ended = await scene.run([...args, "--", "sh", "-c", 'echo ran >"$0"; exit 9', mark]);
  const hasRecord = existsSync(scene.path(`${name}.json`));
  return { code: ended.code, hasRun: existsSync(mark), stderr: ended.stderr, hasRecord };
}

async function expectRefused(
  state: string,
  reason: string,
  advice = "watchdog help run",
): Promise<void> {
  for (const log of ["on", "off"]) {
    const tried = await runWith(state, ["--log", log]);
    expect([state, tried.code, tried.hasRun, tried.hasRecord]).toEqual([state, 78, false, false]);
    const [error = "", hint = "", end] = tried.stderr.split("\n");
    expect(error).toBe(`watchdog: error: state directory ${state}: ${reason}`);
    expect(hint).toBe(`watchdog: hint: ${advice}`);
    expect(end).toBe("");
  }
}

test("a symbolic link is refused, also one to a good directory of one's own", async () => {
  mkdirSync(scene.path("good"), { mode: 0o700 });
  symlinkSync(scene.path("good"), scene.path("link"));
  symlinkSync(scene.path("nowhere"), scene.path("dangling"));
  await expectRefused(scene.path("link"), "it is a symbolic link");
  await expectRefused(scene.path("dangling"), "it is a symbolic link");
  expect(readdirSync(scene.path("good"))).toEqual([]);
});

test("a link with a slash behind it is refused too", async () => {
  mkdirSync(scene.path("behind"), { mode: 0o700 });
  symlinkSync(scene.path("behind"), scene.path("slashed"));
  const tried = await runWith(`${scene.path("slashed")}/`);
  expect([tried.code, tried.hasRun]).toEqual([78, false]);
});

test("a file, a fifo and a directory that others may write to are refused", async () => {
  await Bun.write(scene.path("file"), "");
  await scene.startProgram(["mkfifo", scene.path("fifo")]).ended;
  await expectRefused(scene.path("file"), "it is not a directory");
  await expectRefused(scene.path("fifo"), "it is not a directory");
  for (const mode of [0o720, 0o702, 0o770, 0o777, 0o1777, 0o2775, 0o3770]) {
    const path = scene.path(`open-${mode.toString(8)}`);
    mkdirSync(path);
    chmodSync(path, mode);
    await expectRefused(path, `others may write into it (mode ${mode.toString(8)})`);
  }
});

const compiler = Bun.which("cc");
if (compiler === null) console.error("needs cc, not run here: a remote file system is refused");

test.skipIf(compiler === null)("a remote file system is refused, made before or not", async () => {
  const shim = scene.path("pretends-remote.so");
  const source = `${FIXTURES}/pretends-remote.c`;
  await scene.startProgram([compiler ?? "cc", "-shared", "-fPIC", "-o", shim, source]).ended;
  for (const name of ["remote", "remote"]) {
    const state = scene.path(name);
    const args = ["--state-dir", state, "--", "touch", scene.path("remote-ran")];
    const ended = await scene.run(args, { env: { LD_PRELOAD: shim } });
    expect([ended.code, existsSync(scene.path("remote-ran"))]).toEqual([78, false]);
    expect(ended.stderr).toContain(
      `${state}: it is on NFS, expected a local file system (or --assume-local-state)\n`,
    );
  }
});

test("a directory that others may read is taken: nobody else can change it", async () => {
  const path = scene.path("readable");
  mkdirSync(path);
  chmodSync(path, 0o755);
  const tried = await runWith(path, ["--log", "on"]);
  expect([tried.code, tried.hasRun, tried.stderr]).toEqual([9, true, ""]);
});

rootTest("somebody else's directory is refused", async () => {
  const path = scene.path("foreign");
  mkdirSync(path, { mode: 0o700 });
  chownSync(path, NOBODY, NOBODY);
  await expectRefused(path, `it belongs to uid ${NOBODY}, expected uid 0`, "su -s /bin/sh nobody");
});

test("a relative directory is made absolute for the command", async () => {
  const args = [
    "--state-dir",
    "relative/state",
    "--log",
    "off",
    "--",
    "sh",
    "-c",
    "echo $WATCHDOG_STATE_DIR",
  ];
  const ended = await scene.run(args, { cwd: scene.directory });
  expect(ended.stdout.toString()).toBe(`${scene.path("relative/state")}\n`);
  expect(statSync(scene.path("relative/state")).mode & 0o7777).toBe(0o700);
});

/** In a working directory whose name holds a byte that is no UTF-8; answers the status. */
function runInOddDirectory(line: string): Promise<Ended> {
  const script = `N=$(printf 'n\\377'); mkdir -p "$D/odd/$N" && cd "$D/odd/$N" || exit 99
    ${line}; echo "$?"; ls -A; cd ..; ls | wc -l`;
  return runShell(scene, script, { env: { D: scene.directory } });
}

test("a relative directory below a name that is not UTF-8 is refused, and not made", async () => {
  const run = `"$W" run --log on`;
  for (const line of [
    `${run} --state-dir rel -- touch ran`,
    `WATCHDOG_STATE_DIR=rel ${run} -- touch ran`,
    `${run} --log off --state-dir rel -- touch ran`,
  ]) {
    const ended = await runInOddDirectory(line);
    expect([line, ended.stdout.toString()]).toEqual([line, "78\n1\n"]);
    expect(ended.stderr).toBe(
      "watchdog: error: state directory rel: the name of the working directory is not UTF-8, " +
        "expected an absolute path\nwatchdog: hint: watchdog help run\n",
    );
  }
  const absolute = `${run} --state-dir '${scene.path("absolute")}' -- touch ran`;
  const ended = await runInOddDirectory(absolute);
  expect([ended.stdout.toString(), ended.stderr]).toEqual(["0\nran\n1\n", ""]);
  expect(existsSync(scene.path("absolute"))).toBe(true);
});

test("a directory that cannot be made is 125: no lease can be had, and nothing runs", async () => {
  await Bun.write(scene.path("blocked"), "");
  const state = scene.path("blocked", "state");
  for (const log of ["on", "off"]) {
    const tried = await runWith(state, ["--log", log]);
    expect([log, tried.code, tried.hasRun, tried.hasRecord]).toEqual([log, 125, false, false]);
    expect(tried.stderr).toMatch(
      /^watchdog: error: state directory .*blocked.*ENOTDIR.*\nwatchdog: hint: watchdog .*\n$/,
    );
  }
});

test("with --no-lease it is a warning: the job runs, without a log", async () => {
  await Bun.write(scene.path("blocked"), "");
  const state = scene.path("blocked", "state");
  const tried = await runWith(state, ["--no-lease", "--log", "on"]);
  expect([tried.code, tried.hasRun, tried.hasRecord]).toEqual([9, true, true]);
  expect(tried.stderr).toMatch(/^watchdog: no log is kept: .*blocked.*ENOTDIR.*\n$/);
  expect(scene.readRecord(`try-${tries}`)).toMatchObject({ outcome: "failed", exit_code: 9 });
  expect(scene.readRecord(`try-${tries}`).degraded).toContain("state-unusable");
});

test("control characters of its path are not printed raw", async () => {
  const bad = scene.path("no\x1b[31m\nsuch");
  await Bun.write(bad, "");
  const tried = await runWith(bad);
  expect(tried.code).toBe(78);
  expect(tried.stderr).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f]/);
  expect(tried.stderr.split("\n").length).toBe(3);
});

interface Default {
  readonly state: string;
  readonly stderr: string;
}

/**
 * A run of an ordinary user with the state that it has by default, with this environment; prints
 * where it lies. The binary must be readable for everybody.
 */
function runByDefault(
  uid: number,
  environment: readonly string[],
  options: readonly string[],
): Promise<Ended> {
  return scene.startProgram([
    "setpriv",
    `--reuid=${uid}`,
    `--regid=${uid}`,
    "--clear-groups",
    "env",
    "-i",
    "-C",
    "/",
    scene.cookieEntry,
    ...environment,
    scene.path("shared", "watchdog"),
    "run",
    "--log",
    "off",
    ...options,
    "--",
    "sh",
    "-c",
    "echo $WATCHDOG_STATE_DIR",
  ]).ended;
}

async function findDefault(
  uid: number,
  environment: readonly string[],
  options: readonly string[] = [],
): Promise<Default> {
  const ended = await runByDefault(uid, environment, options);
  expect([environment, ended.code]).toEqual([environment, 0]);
  return { state: ended.stdout.toString().trimEnd(), stderr: ended.stderr };
}

async function shareBinary(): Promise<void> {
  const script = `chmod 711 "$D"; mkdir -p "$D/shared"; cp "$W" "$D/shared/watchdog"
    chmod -R a+rX "$D/shared"`;
  await runShell(scene, script, { env: { D: scene.directory } });
}

rootTest(
  "A-80: the default depends on the user alone, whatever HOME and XDG say",
  async () => {
    await shareBinary();
    const passwd = readFileSync("/etc/passwd", "utf8").split("\n");
    const daemon =
      passwd.map((line) => line.split(":")).find((fields) => fields[0] === "daemon") ?? [];
    const [uid, home] = [Number(daemon[2]), daemon[5] ?? ""];
    const expected = `${home}/.local/state/watchdog`;
    for (const environment of [
      [],
      ["HOME=/", "PATH=/usr/bin:/bin"],
      ["HOME=/nowhere", "XDG_STATE_HOME=/tmp/xdg", "PATH=/usr/bin:/bin"],
      ["HOME=", "USER=root", "LOGNAME=root"],
    ]) {
      const { state, stderr } = await findDefault(uid, environment, ["--no-lease"]);
      expect([environment, state]).toEqual([environment, expected]);
      // The home of this user is not its own: it says so, and the job runs.
      expect(stderr).toMatch(/^watchdog: no log is kept: .*\n$/);
      // With a lease to be had there, it names the place and runs nothing.
      const leased = await runByDefault(uid, environment, []);
      expect([environment, leased.code, leased.stdout.length]).toEqual([environment, 125, 0]);
      expect(leased.stderr).toStartWith(`watchdog: error: state directory ${expected} cannot be`);
    }
    expect(existsSync("/tmp/xdg")).toBe(false);
  },
  180_000,
);

rootTest(
  "a user without a password entry, or whose home is gone, gets a private place in /var/tmp",
  async () => {
    await shareBinary();
    const expected = `/var/tmp/watchdog-${NAMELESS}`;
    try {
      const { state, stderr } = await findDefault(NAMELESS, ["HOME=/tmp", "PATH=/usr/bin:/bin"]);
      expect([state, stderr]).toEqual([expected, ""]);
      const found = statSync(expected);
      expect([found.uid, found.mode & 0o7777]).toEqual([NAMELESS, 0o700]);
    } finally {
      await scene.startProgram(["rm", "-rf", expected]).ended;
    }
    const nobody = await findDefault(NOBODY, ["HOME=/tmp"]);
    expect(nobody.state).toBe(`/var/tmp/watchdog-${NOBODY}`);
    await scene.startProgram(["rm", "-rf", `/var/tmp/watchdog-${NOBODY}`]).ended;
  },
  180_000,
);

rootTest(
  "A-80: an ordinary user with the state of root is told, by the name of the directory",
  async () => {
    await shareBinary();
    const state = scene.path("roots");
    mkdirSync(state, { mode: 0o755 });
    const argv = [
      "setpriv",
      `--reuid=${NOBODY}`,
      "--clear-groups",
      scene.path("shared", "watchdog"),
      "run",
    ];
    const ended = await scene.startProgram([...argv, "--state-dir", state, "--", "true"], {
      cwd: "/",
    }).ended;
    expect(ended.code).toBe(78);
    expect(ended.stderr).toContain(
      `state directory ${state}: it belongs to uid 0, expected uid ${NOBODY}`,
    );
    const below = ["--state-dir", `${state}/new`, "--", "echo", "ran"];
    const stopped = await scene.startProgram([...argv, ...below], { cwd: "/" }).ended;
    expect([stopped.code, stopped.stdout.length]).toEqual([125, 0]);
    expect(stopped.stderr).toMatch(
      /^watchdog: error: .*roots\/new.*EACCES.*\nwatchdog: hint: .*\n$/,
    );
    const unleased = [...argv, "--no-lease", ...below];
    const warned = await scene.startProgram(unleased, { cwd: "/" }).ended;
    expect([warned.code, warned.stdout.toString()]).toEqual([0, "ran\n"]);
    expect(warned.stderr).toMatch(/^watchdog: no log is kept: .*roots\/new.*EACCES.*\n$/);
    expect(dirname(RELEASE)).not.toBe(state);
  },
  180_000,
);
