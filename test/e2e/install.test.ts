/**
 * `install.sh` as a user calls it, on a copy of the built binary: never on the real `dist/`, which
 * other tests use. Always holds: nothing is written outside one temporary directory.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rootTest } from "../support/scene.ts";

const ROOT = join(import.meta.dir, "..", "..");

let base = "";
let project = "";
let count = 0;

/** A project as it looks after a build: the script and `dist/`, and no sources to build from. */
beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), "watchdog-install-"));
  project = makeProject("project");
});

afterAll(() => rmSync(base, { recursive: true, force: true }));

function makeProject(name: string): string {
  const directory = join(base, name);
  mkdirSync(join(directory, "dist"), { recursive: true });
  copyFileSync(join(ROOT, "install.sh"), join(directory, "install.sh"));
  for (const file of ["watchdog", "watchdog.sha256"]) {
    copyFileSync(join(ROOT, "dist", file), join(directory, "dist", file));
  }
  // As after a download: the script alone makes it executable.
  chmodSync(join(directory, "dist", "watchdog"), 0o600);
  return directory;
}

function freshPrefix(): string {
  count += 1;
  return join(base, `prefix ${count}`);
}

interface Calling {
  readonly prefix?: string;
  readonly cwd?: string;
  readonly variables?: Record<string, string>;
}

interface Installing extends Calling {
  readonly from?: string;
  readonly words?: readonly string[];
}

interface Called {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

function install(options: Installing = {}): Called {
  const script = join(options.from ?? project, "install.sh");
  return call(["sh", script, ...(options.words ?? [])], options);
}

/** A line as a user types it; `$S` is the script. */
function paste(line: string, options: Calling = {}): Called {
  const variables = { S: join(project, "install.sh"), ...options.variables };
  return call(["sh", "-c", line], { ...options, variables });
}

function call(words: readonly string[], options: Calling): Called {
  const done = Bun.spawnSync([...words], {
    cwd: options.cwd ?? base,
    env: {
      PATH: "/usr/local/bin:/usr/bin:/bin",
      HOME: base,
      ...(options.prefix === undefined ? {} : { PREFIX: options.prefix }),
      ...options.variables,
    },
    stdin: "ignore",
  });
  return {
    status: done.exitCode,
    stdout: done.stdout.toString(),
    stderr: done.stderr.toString(),
  };
}

describe("install.sh", () => {
  test("installs a working binary, and says what it did and how to undo it", () => {
    const prefix = freshPrefix();
    const done = install({ prefix });
    const target = `${prefix}/bin/watchdog`;
    expect(done).toMatchObject({ status: 0, stderr: "" });
    expect(done.stdout).toStartWith(`installed: ${target} (watchdog `);
    expect(done.stdout).toContain(
      `undo: PREFIX='${prefix}' sh ${project}/install.sh --uninstall\n`,
    );
    const run = Bun.spawnSync([target, "run", "--log", "off", "--", "echo", "it works"]);
    expect(run.stdout.toString()).toBe("it works\n");
    expect(readdirSync(join(prefix, "bin"))).toEqual(["watchdog"]);
  });

  test("prints a crontab line with the absolute path, quoted for cron", () => {
    const prefix = join(base, "50% of prefixes");
    const { stdout } = install({ prefix });
    expect(stdout).toContain(`  15 3 * * * '${base}/50\\% of prefixes/bin/watchdog' run -- `);
  });

  test("the undo line can be pasted, and takes the file away and no directory", () => {
    const prefix = freshPrefix();
    mkdirSync(join(prefix, "bin"), { recursive: true });
    const pasted = paste(undoLineOf(install({ prefix })), { cwd: "/" });
    expect(pasted).toMatchObject({ status: 0, stderr: "" });
    expect(pasted.stdout).toStartWith(`removed: ${prefix}/bin/watchdog\n`);
    expect(readdirSync(join(prefix, "bin"))).toEqual([]);
    expect(paste(undoLineOf(pasted), { cwd: "/" }).stdout).toStartWith("installed: ");
  });

  rootTest("the undo line for PREFIX=/ names that one, not the default", () => {
    const root = join(base, "root");
    for (const name of ["bin", "dev", "proc", "usr", "project"]) {
      mkdirSync(join(root, name), { recursive: true });
    }
    for (const name of ["lib", "lib64"]) symlinkSync(`usr/${name}`, join(root, name));
    const mounts = ["/dev dev", "/proc proc", "/usr usr", `'${project}' project`]
      .map((pair) => `mount --rbind ${pair}`)
      .join(" && ");
    const enter = `cd '${root}' && ${mounts} && exec /usr/sbin/chroot . /usr/bin/sh -c "$0"`;
    const inRoot = (line: string) => call(["unshare", "-m", "sh", "-c", enter, line], {});
    const done = inRoot("PREFIX=/ /usr/bin/sh /project/install.sh");
    expect(done).toMatchObject({ status: 0, stderr: "" });
    expect(done.stdout).toStartWith("installed: /bin/watchdog (");
    expect(undoLineOf(done)).toBe("PREFIX=/ sh /project/install.sh --uninstall");
    const undone = inRoot(undoLineOf(done));
    expect(undone.stdout).toStartWith("removed: /bin/watchdog\n");
    expect(undoLineOf(undone)).toBe("PREFIX=/ sh /project/install.sh");
    expect(readdirSync(join(root, "bin"))).toEqual([]);
  });

  test("uninstall leaves a neighbour's file alone, and a second one is no error", () => {
    const prefix = freshPrefix();
    install({ prefix });
    writeFileSync(join(prefix, "bin", "other"), "");
    expect(install({ prefix, words: ["--uninstall"] }).status).toBe(0);
    expect(readdirSync(join(prefix, "bin"))).toEqual(["other"]);
    const again = install({ prefix, words: ["--uninstall"] });
    expect(again).toMatchObject({ status: 0, stderr: "" });
    expect(again.stdout).toStartWith("nothing to remove: ");
  });

  test("a second install says that it replaced", () => {
    const prefix = freshPrefix();
    install({ prefix });
    expect(install({ prefix }).stdout).toStartWith(`replaced: ${prefix}/bin/watchdog (`);
  });

  test("mode is 0755 whatever the umask, and a relative PREFIX is made absolute", () => {
    const script = `umask 077; PREFIX=./relative sh '${project}/install.sh'`;
    const done = Bun.spawnSync(["sh", "-c", script], { cwd: base, env: { PATH: "/usr/bin:/bin" } });
    expect(done.stdout.toString()).toContain(`${base}/relative/bin/watchdog run -- `);
    expect(statSync(join(base, "relative/bin/watchdog")).mode & 0o7777).toBe(0o755);
    expect(statSync(join(base, "relative/bin")).mode & 0o7777).toBe(0o755);
  });

  test("says that the directory is not on PATH, and is silent about it when it is", () => {
    const prefix = freshPrefix();
    expect(install({ prefix }).stdout).toContain("is not on your PATH");
    const variables = { PATH: `/usr/bin:/bin:${prefix}/bin` };
    expect(install({ prefix, variables }).stdout).not.toContain("on your PATH");
  });

  test("replaces a binary that runs, and the run goes on with its old file", async () => {
    const prefix = freshPrefix();
    install({ prefix });
    const target = join(prefix, "bin", "watchdog");
    const running = Bun.spawn([target, "run", "--log", "off", "--", "sh", "-c", WAITS], {
      stdin: "pipe",
      stdout: "pipe",
    });
    const reader = running.stdout.getReader();
    const first = await reader.read();
    expect(Buffer.from(first.value ?? []).toString()).toBe("ready\n");
    expect(install({ prefix }).status).toBe(0);
    expect(readlinkSync(`/proc/${running.pid}/exe`)).toBe(`${target} (deleted)`);
    running.stdin.write("go\n");
    running.stdin.end();
    expect(await running.exited).toBe(7);
    expect(Bun.spawnSync([target, "--version"]).exitCode).toBe(0);
  });

  test("follows no link: the link is replaced, what it points to stays", () => {
    const prefix = freshPrefix();
    mkdirSync(join(prefix, "bin"), { recursive: true });
    const elsewhere = join(base, "elsewhere");
    writeFileSync(elsewhere, "names WATCHDOG_RUN_ID, so it counts as ours");
    symlinkSync(elsewhere, join(prefix, "bin", "watchdog"));
    expect(install({ prefix }).status).toBe(0);
    expect(readFileSync(elsewhere, "utf8")).toStartWith("names");
    expect(statSync(join(prefix, "bin", "watchdog")).size).toBeGreaterThan(1_000_000);
  });
});

function undoLineOf(done: Called): string {
  return /^undo: (.*)$/m.exec(done.stdout)?.[1] ?? "false";
}

/**
 * Announces itself, then waits for a line on stdin and ends with a status that nothing else has.
 */
const WAITS = "echo ready; read -r line; exit 7";

describe("install.sh refuses", () => {
  test("a damaged binary by its checksum, and the old one stays", () => {
    const damaged = makeProject("damaged");
    const prefix = freshPrefix();
    install({ prefix });
    const before = statSync(join(prefix, "bin", "watchdog")).ino;
    appendFileSync(join(damaged, "dist", "watchdog"), "x");
    const done = install({ prefix, from: damaged });
    expect(done).toMatchObject({ status: 1, stdout: "" });
    expect(done.stderr).toMatch(
      /^watchdog: error: dist\/watchdog is damaged: found sha256 \w{64}, expected \w{64}\n/,
    );
    expect(done.stderr).toContain("watchdog: hint: rm -r ");
    expect(statSync(join(prefix, "bin", "watchdog")).ino).toBe(before);
    expect(readdirSync(join(prefix, "bin"))).toEqual(["watchdog"]);
  });

  test("a binary without a checksum", () => {
    const unsigned = makeProject("unsigned");
    rmSync(join(unsigned, "dist", "watchdog.sha256"));
    const prefix = freshPrefix();
    const done = install({ prefix, from: unsigned });
    expect(done).toMatchObject({ status: 1, stdout: "" });
    expect(done.stderr).toContain("found no checksum");
    expect(existsSync(prefix)).toBe(false);
  });

  test("another program of that name, in both directions", () => {
    const prefix = freshPrefix();
    const target = join(prefix, "bin", "watchdog");
    mkdirSync(join(prefix, "bin"), { recursive: true });
    writeFileSync(target, "#!/bin/sh\n");
    chmodSync(target, 0o755);
    for (const words of [[], ["--uninstall"]]) {
      const done = install({ prefix, words });
      expect(done).toMatchObject({ status: 73, stdout: "" });
      expect(done.stderr).toContain("is another program, not this watchdog\n");
    }
    expect(readFileSync(target, "utf8")).toBe("#!/bin/sh\n");
  });

  test("a directory in the binary's place", () => {
    const prefix = freshPrefix();
    mkdirSync(join(prefix, "bin", "watchdog"), { recursive: true });
    const done = install({ prefix });
    expect(done).toMatchObject({ status: 73, stdout: "" });
    expect(done.stderr).toContain("is a directory, expected a file or nothing\n");
  });

  test.each([[["--uninstal"]], [["/usr"]], [["--uninstall", "now"]]])(
    "the words %p with 64, and writes nothing",
    (words) => {
      const prefix = freshPrefix();
      const done = install({ prefix, words });
      expect(done).toMatchObject({ status: 64, stdout: "" });
      expect(done.stderr).toMatch(/^watchdog: error: .*\nwatchdog: hint: .*\n$/);
      expect(done.stderr).toEndWith(`watchdog: hint: sh ${project}/install.sh --help\n`);
      expect(existsSync(prefix)).toBe(false);
    },
  );

  test("to do anything when only half of the script has arrived", () => {
    const half = makeProject("half");
    const whole = readFileSync(join(half, "install.sh"), "utf8");
    writeFileSync(join(half, "install.sh"), whole.slice(0, whole.lastIndexOf("main ")));
    const prefix = freshPrefix();
    expect(install({ prefix, from: half })).toEqual({ status: 0, stdout: "", stderr: "" });
    expect(existsSync(prefix)).toBe(false);
  });
});

/** A binary that passes the check of its sum and ends with an error. */
const FAKES_BINARY = "echo 'exit 1' >dist/watchdog; sha256sum dist/watchdog >dist/watchdog.sha256";

describe("install.sh that fails", () => {
  const CASES = [
    ["a damaged binary", "is damaged", "echo x >>dist/watchdog", ":"],
    ["a full disk", "cannot write in", "", "trap '' XFSZ; ulimit -f 100"],
    ["an unwritable place", "cannot create", "", `PREFIX=$PREFIX/${"x".repeat(300)}`],
    ["a binary that does not start", "does not start", FAKES_BINARY, ":"],
  ] as const;

  test.each(CASES)("because of %s takes away what it made alone", (name, says, spoil, before) => {
    const from = makeProject(name);
    expect(paste(spoil, { cwd: from }).status).toBe(0);
    const there = freshPrefix();
    mkdirSync(join(there, "bin"), { recursive: true });
    for (const prefix of [there, `${there}/it's new/a/../b`]) {
      const done = paste(`${before}; sh install.sh`, { prefix, cwd: from });
      expect(done.status).toBeOneOf([1, 73]);
      expect(done.stderr).toMatch(new RegExp(`^(cp: .*\n)?watchdog: error: .*${says}`));
      expect(readdirSync(there)).toEqual(["bin"]);
    }
    expect(readdirSync(join(there, "bin"))).toEqual([]);
  });

  test("to build hints a command that exists where there is Bun and no npm", () => {
    const from = join(base, "bun's alone");
    const programs = join(base, "programs");
    mkdirSync(programs);
    for (const name of ["sh", "dirname", "readlink", "sed", "id"]) {
      symlinkSync(Bun.which(name) ?? name, join(programs, name));
    }
    for (const name of ["test/support", "node_modules/.bin", "node_modules/zod"]) {
      mkdirSync(join(from, name), { recursive: true });
    }
    mkdirSync(join(from, "node_modules/consola"));
    for (const name of ["install.sh", "package.json", "test/support/toolchain.sh"]) {
      copyFileSync(join(ROOT, name), join(from, name));
    }
    const fails = `[ "$1" != --version ] || { echo ${Bun.version}; exit; }; echo $1 fails; exit 9`;
    writeFileSync(join(from, "node_modules/.bin/bun"), `#!/bin/sh\n${fails}\n`, { mode: 0o755 });
    const variables = { PATH: programs };
    const done = install({ prefix: freshPrefix(), from, variables });
    expect(done).toMatchObject({ status: 1, stdout: "building dist/watchdog ...\n" });
    const [output, error, hint] = done.stderr.split("\n");
    expect([output, error]).toEqual([
      "build.ts fails",
      "watchdog: error: the build failed, see above",
    ]);
    const pasted = paste(hint?.replace("watchdog: hint: ", "") ?? "", { cwd: "/", variables });
    expect(pasted).toEqual({ status: 9, stdout: "build.ts fails\n", stderr: "" });
  });
});

describe("install.sh called", () => {
  const NOT_IN_A_CLONE = [
    "watchdog: error: found nothing to install beside this script: it was piped or copied alone",
    "watchdog: hint: cd /path/to/watchdog && sh install.sh",
    "",
  ].join("\n");

  test("through links from elsewhere finds its project, and the undo line names that", () => {
    const place = join(base, "links");
    mkdirSync(place);
    symlinkSync("../project/install.sh", join(place, "relative"));
    symlinkSync(join(place, "relative"), join(base, "it's linked"));
    const prefix = freshPrefix();
    const done = paste(`sh "it's linked"`, { prefix });
    expect(done).toMatchObject({ status: 0, stderr: "" });
    expect(undoLineOf(done)).toBe(`PREFIX='${prefix}' sh ${project}/install.sh --uninstall`);
  });

  test("by a relative name is not led astray by CDPATH", () => {
    mkdirSync(join(base, "astray", "project"), { recursive: true });
    const variables = { CDPATH: join(base, "astray") };
    const done = paste("sh project/install.sh", { prefix: freshPrefix(), variables });
    expect(done).toMatchObject({ status: 0, stderr: "" });
  });

  test.each([
    ['sh "$S" --help', true],
    ['cp "$S" lone.sh && sh lone.sh --help', false],
    ['ln -s "$S" linked.sh && sh linked.sh --help', true],
    ['cat "$S" | sh -s -- --help', false],
  ])("as %p prints the help, with lines to paste there", (line, isClone) => {
    const done = paste(line);
    expect(done).toMatchObject({ status: 0, stderr: "" });
    expect(done.stdout).toContain("usage: sh install.sh ");
    expect(done.stdout.includes(` sh ${project}/install.sh\n`)).toBe(isClone);
  });

  test.each(['cat "$S" | sh', 'sh <"$S" -s', 'cp "$S" alone.sh && sh alone.sh'])(
    "as %p says in one sentence that it needs its project, and makes nothing",
    (line) => {
      const prefix = freshPrefix();
      expect(paste(line, { prefix })).toEqual({ status: 1, stdout: "", stderr: NOT_IN_A_CLONE });
      expect(existsSync(prefix)).toBe(false);
    },
  );
});
