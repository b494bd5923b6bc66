/**
 * Smoke tests of a finished binary: a table of shell lines with what each must print. `build.ts`
 * runs them on both binaries before it puts them in place, so that no broken binary ever gets the
 * name `dist/watchdog`.
 *
 * Refuses to know anything of src/: the binary is a path, and everything is seen from outside.
 * Always holds: each case runs in a directory of its own, with a time limit, and leaves nothing
 * behind.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A shell line with the binary in `$W`, and what it must print and return. */
export interface SmokeCase {
  readonly title: string;
  readonly script: string;
  readonly stdout: string | RegExp;
  readonly stderr?: string | RegExp;
  readonly status?: number;
}

export interface SmokeFailure {
  readonly title: string;
  readonly found: string;
}

/** No case takes a second; a debugger port that waits for its client would take for ever. */
const CASE_LIMIT_MS = 20_000;

/**
 * What a hostile working directory holds: both files take effect in a Bun binary that loads them.
 * The second variable is an option of watchdog's own, with a value that is refused.
 */
const PLANT_HOSTILE_DIRECTORY = `
  printf 'FROM_DOTENV=evil\\nWATCHDOG_TIMEOUT=evil\\n' >.env
  echo 'preload = ["./evil.ts"]' >bunfig.toml
  echo 'require("node:fs").writeFileSync("planted", ""); console.log("PRELOAD RAN")' >evil.ts
`;

/**
 * A binary that obeys this stands still until a debugger comes: certain to be seen, unlike an open
 * port.
 */
const WAIT_FOR_DEBUGGER = `BUN_INSPECT="ws+unix://$PWD/port?wait=1"`;

const PLAIN_CASES: readonly SmokeCase[] = [
  {
    title: "--version prints the name and the version",
    script: `"$W" --version`,
    stdout: /^watchdog \d+\.\d+\.\d+\b.*\n$/,
  },
  {
    title: "--help into a pipe is plain text",
    script: `{ "$W" --help; echo "status $?"; } | cat`,
    stdout: /^[^\x1b]*watchdog run[^\x1b]*\nstatus 0\n$/,
  },
  {
    title: "the status of the command is passed through",
    script: `"$W" run -- sh -c 'exit 42'; echo $?`,
    stdout: "42\n",
  },
  {
    title: "a file that is not executable gives 126",
    script: `echo x >plain; chmod 644 plain; "$W" run -- ./plain 2>/dev/null; echo $?`,
    stdout: "126\n",
  },
  {
    title: "a command that does not exist gives 127",
    script: `"$W" run -- ./no-such-command 2>/dev/null; echo $?`,
    stdout: "127\n",
  },
  {
    title: "a command that died of TERM shows 143 and no word of ours",
    script: `"$W" run -- sh -c 'kill -TERM $$'; echo $?`,
    stdout: "143\n",
    stderr: /^(Terminated\n)?$/,
  },
  {
    title: "stdin through a pipe arrives byte by byte",
    script: `printf 'a\\000b\\377c' | "$W" run -- od -An -tx1`,
    stdout: " 61 00 62 ff 63\n",
  },
  {
    title: "output through the copy keeps its bytes, with the log and without",
    script: `for mode in on off; do
        printf 'a\\000\\377' | "$W" run --log $mode -- cat | od -An -tx1
      done`,
    stdout: " 61 00 ff\n 61 00 ff\n",
  },
  {
    title: "a program named --help is run, not read as an option",
    script: `mkdir bin; printf '#!/bin/sh\necho "I am --help, $1"\n' >bin/--help
      chmod 755 bin/--help
      "$W" run -- ./bin/--help one && PATH="$PWD/bin:$PATH" "$W" run -- --help two`,
    stdout: "I am --help, one\nI am --help, two\n",
  },
  {
    title: ".env and bunfig.toml of the working directory have no effect",
    script: `${PLANT_HOSTILE_DIRECTORY}
      "$W" run -- sh -c 'echo "found: $FROM_DOTENV"'; test ! -e planted && echo quiet`,
    stdout: "found: \nquiet\n",
  },
];

/**
 * Bun's own variables: each would take over an ordinary compiled binary, and must still reach the
 * command.
 */
export const DISARMED_CASES: readonly SmokeCase[] = [
  {
    title: "BUN_OPTIONS reaches the command and does nothing to watchdog",
    script: `BUN_OPTIONS=--version "$W" run -- sh -c 'echo "$BUN_OPTIONS"'`,
    stdout: "--version\n",
  },
  {
    title: "BUN_BE_BUN reaches the command and does nothing to watchdog",
    script: `export BUN_BE_BUN=1; "$W" run --log off -- sh -c 'echo "$BUN_BE_BUN"'`,
    stdout: "1\n",
  },
  {
    title: "BUN_INSPECT reaches the command and opens no debugger port",
    script: `${WAIT_FOR_DEBUGGER} timeout -s KILL 5 "$W" run -- \
      sh -c 'echo "\${BUN_INSPECT##*[?]}"'`,
    stdout: "wait=1\n",
  },
  {
    title: "BUN_INSPECT_PRELOAD reaches the command and is not loaded",
    script: `${PLANT_HOSTILE_DIRECTORY}
      ${WAIT_FOR_DEBUGGER} BUN_INSPECT_PRELOAD=$PWD/evil.ts timeout -s KILL 5 "$W" run -- \
        sh -c 'test -e planted || basename "$BUN_INSPECT_PRELOAD"'`,
    stdout: "evil.ts\n",
  },
];

export const SMOKE_CASES: readonly SmokeCase[] = [...PLAIN_CASES, ...DISARMED_CASES];

/** The variables of a case: nothing of the builder's own, except where programs are found. */
function environmentOf(binary: string, directory: string): Record<string, string> {
  return {
    PATH: process.env["PATH"] ?? "/usr/bin:/bin",
    HOME: directory,
    LC_ALL: "C",
    W: binary,
    WATCHDOG_STATE_DIR: join(directory, "state"),
  };
}

function matches(text: string, expected: string | RegExp): boolean {
  return typeof expected === "string" ? text === expected : expected.test(text);
}

/** Runs one case in a fresh directory; returns what differed, or undefined when nothing did. */
export function runSmokeCase(binary: string, smokeCase: SmokeCase): SmokeFailure | undefined {
  const directory = mkdtempSync(join(tmpdir(), "watchdog-smoke-"));
  try {
    const done = Bun.spawnSync(["sh", "-c", smokeCase.script], {
      cwd: directory,
      env: environmentOf(binary, directory),
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: CASE_LIMIT_MS,
      killSignal: "SIGKILL",
    });
    const stdout = done.stdout.toString("latin1");
    const stderr = done.stderr.toString("latin1");
    const isRight =
      matches(stdout, smokeCase.stdout) &&
      matches(stderr, smokeCase.stderr ?? "") &&
      done.exitCode === (smokeCase.status ?? 0);
    if (isRight) return undefined;
    const found = { status: done.exitCode, signal: done.signalCode ?? null, stdout, stderr };
    return { title: smokeCase.title, found: JSON.stringify(found) };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Runs the cases one after the other and returns those that failed. */
export function runSmokeCases(
  binary: string,
  cases: readonly SmokeCase[] = SMOKE_CASES,
): SmokeFailure[] {
  assertCases(cases);
  const failures: SmokeFailure[] = [];
  for (const smokeCase of cases) {
    const failure = runSmokeCase(binary, smokeCase);
    if (failure !== undefined) failures.push(failure);
  }
  return failures;
}

/** An empty table would pass every binary. */
function assertCases(cases: readonly SmokeCase[]): void {
  if (cases.length === 0) throw new Error("no smoke case to run");
}
