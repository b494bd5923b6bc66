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

interface Installing {
  readonly prefix?: string;
  readonly from?: string;
  readonly cwd?: string;
  readonly words?: readonly string[];
  readonly variables?: Record<string, string>;
}

function install(options: Installing = {}): { status: number; stdout: string; stderr: string } {
  const script = join(options.from ?? project, "install.sh");
  const done = Bun.spawnSync(["sh", script, ...(options.words ?? [])], {
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

  test("the undo line can be pasted and leaves nothing", () => {
    const prefix = freshPrefix();
    const undo = /^undo: (.*)$/m.exec(install({ prefix }).stdout)?.[1] ?? "false";
    const pasted = Bun.spawnSync(["sh", "-c", undo], { cwd: "/", env: { PATH: "/usr/bin:/bin" } });
    expect(pasted.exitCode).toBe(0);
    expect(pasted.stdout.toString()).toStartWith(`removed: ${prefix}/bin/watchdog\n`);
    expect(existsSync(prefix)).toBe(false);
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
      expect(done.stderr).toMatch(/^watchdog: error: .*\nwatchdog: hint: sh install.sh --help\n$/);
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
