/**
 * Wrong command lines: 64, one sentence that says what was found and expected, a hint that works
 * when it is pasted; nothing started, nothing written.
 */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { openScene, RELEASE } from "../support/scene.ts";

const scene = openScene(import.meta.file);

interface Wrong {
  readonly words: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Parts of the one sentence. */
  readonly says: readonly string[];
}

/** The command of every line: it would leave a mark. */
const TOUCH = ["touch", scene.path("started")];

const wrongValue = (flag: string, found: string, expected: string): Wrong => ({
  words: ["run", flag, found, ...TOUCH],
  says: [`${flag}: found "${found}"`, `expected ${expected}`],
});

const WRONG: readonly Wrong[] = [
  { words: [], says: ["no command"] },
  { words: ["run"], says: ["no command to run", "expected watchdog run"] },
  { words: ["run", "--"], says: ["no command to run"] },
  { words: ["run", "--quiet"], says: ["no command to run"] },
  { words: ["run", "--", "", "x"], says: ['the command is empty, found ""'] },
  { words: ["keep"], says: ["no command to keep"] },
  { words: ["runn", "--", ...TOUCH], says: ['unknown command "runn"', "the nearest is run"] },
  { words: TOUCH, says: ['unknown command "touch"', "expected a command of watchdog"] },
  { words: ["--", ...TOUCH], says: ['found "--"'] },
  { words: ["-v"], says: ['found "-v"'] },
  { words: ["--foo"], says: ['unknown option "--foo"'] },
  { words: ["--timeout", "5", ...TOUCH], says: ['"--timeout" is an option of a command'] },
  { words: ["help", "rum"], says: ['help knows no command "rum"', "run, keep, fence"] },
  { words: ["--version", "x"], says: ["--version stands alone"] },
  { words: ["run", "--timout", "5", ...TOUCH], says: ['unknown option "--timout"', "--timeout"] },
  { words: ["run", "--timout=5", ...TOUCH], says: ['unknown option "--timout"', "--timeout"] },
  { words: ["run", "-timeout", "5", ...TOUCH], says: ['"-timeout"', "the nearest is --timeout"] },
  { words: ["run", "--quite", ...TOUCH], says: ['"--quite"', "the nearest is --quiet"] },
  { words: ["run", "--leftover", "kill", ...TOUCH], says: ["the nearest is --leftovers"] },
  { words: ["run", "-x", ...TOUCH], says: ['unknown option "-x"'] },
  { words: ["run", "--foo", ...TOUCH], says: ['unknown option "--foo"'] },
  { words: ["run", "--quiet=yes", ...TOUCH], says: ["--quiet takes no value"] },
  { words: ["run", "--timeout"], says: ["--timeout needs a value"] },
  {
    words: ["run", "--name", "--quiet", ...TOUCH],
    says: ["--name needs a value", "--name=--quiet"],
  },
  {
    words: ["keep", "--timeout", "5", ...TOUCH],
    says: ['unknown option "--timeout"', "watchdog keep"],
  },
  {
    words: ["run", "--store", "etcd://x", ...TOUCH],
    says: ["--store is not available in this version"],
  },
  { words: ["run", "--store", "etcd://x/", ...TOUCH], says: ["--store is not available"] },
  { words: ["job"], says: ["job alone asks nothing"] },
  wrongValue("--timeout", "5x", "a span such as"),
  wrongValue("--timeout", "-5", "a span such as"),
  wrongValue("--timeout", "1e3", "a span such as"),
  wrongValue("--timeout", "99999d", "a span such as"),
  wrongValue("--timeout", "", "a span such as"),
  wrongValue("--idle-timeout", "soon", "a span such as"),
  wrongValue("--idle-cpu", "0", "a percentage"),
  wrongValue("--idle-io", "10M", "a size such as"),
  wrongValue("--not-after", "24:00", "a time of the day"),
  wrongValue("--signal", "TREM", "a signal such as"),
  wrongValue("--signal", "0", "a signal such as"),
  wrongValue("--kill-after", "x", "a span such as"),
  wrongValue("--leftovers", "keep", "one of kill, wait, leave"),
  wrongValue("--log", "yes", "one of auto, on, off"),
  wrongValue("--log-max", "0", "a size such as"),
  wrongValue("--log-keep", "much", "a size such as"),
  wrongValue("--name", "", "a name of"),
  wrongValue("--result-file", "", "a path of"),
  wrongValue("--state-dir", "", "a path of"),
  wrongValue("--success-exit-codes", "256", "exit codes from 0 to 255"),
  wrongValue("--success-exit-codes", "3-1", "exit codes from 0 to 255"),
  wrongValue("--lock", "gpu", "a key such as"),
  wrongValue("--lane", "", "a name of"),
  wrongValue("--task", "", "a name of"),
  wrongValue("--wait", "soon", "a span such as"),
  wrongValue("--conflict-exit-code", "256", "an exit code from 0 to 255"),
  wrongValue("--heartbeat-interval", "50ms", "a span from 100ms"),
  wrongValue("--guard-grace", "x", "a span such as"),
  wrongValue("--on-survivors", "leave", "one of kill, wait, refuse"),
  wrongValue("--repair-cooldown", "x", "a span such as"),
  {
    words: ["run", "--no-lease", "--lane", "gpu", ...TOUCH],
    says: ["--no-lease runs without a lease", "found --lane"],
  },
  {
    words: ["run", "--heartbeat-interval", "10s", "--stale-after", "15s", ...TOUCH],
    says: ["--stale-after: found 15s", "expected at least 20s"],
  },
  {
    words: ["run", ...TOUCH],
    env: { WATCHDOG_TIMEOUT: "5x" },
    says: ['WATCHDOG_TIMEOUT: found "5x"', "expected a span"],
  },
  {
    words: ["run", ...TOUCH],
    env: { WATCHDOG_QUIET: "maybe" },
    says: ['WATCHDOG_QUIET: found "maybe"', "expected one of"],
  },
  {
    words: ["run", ...TOUCH],
    env: { WATCHDOG_STORE: "etcd://x" },
    says: ["WATCHDOG_STORE (--store)"],
  },
  {
    words: ["run", ...TOUCH],
    env: { WATCHDOG_WAIT: "soon" },
    says: ['WATCHDOG_WAIT: found "soon"', "expected a span"],
  },
];

/** Their hints name a key, a file or a run around that is not there: right, and not to be tried. */
const WRONG_ELSEWHERE: readonly Wrong[] = [
  { words: ["fence", ...TOUCH], says: ['found "touch"', "expected -- before the operation"] },
  { words: ["repair", "nightly"], says: ['found "nightly"', "a key such as lane:gpu"] },
  { words: ["repair", "--approve", "x"], says: ['found "x"', "ten hex digits"] },
  { words: ["config", "shwo"], says: ['found "shwo" behind config'] },
  wrongValue("--state-group", "", "a name of"),
  wrongValue("--config", "", "a path of"),
];

const work = scene.path("work");
mkdirSync(work);

function start(words: readonly string[], env: Readonly<Record<string, string>> = {}) {
  return scene.startProgram([RELEASE, ...words], { cwd: work, env });
}

function expectNothingWritten(words: readonly string[]): void {
  const found = [
    existsSync(scene.path("started")),
    existsSync(scene.stateDirectory),
    readdirSync(work),
  ];
  expect([words, ...found]).toEqual([words, false, false, []]);
}

test("every wrong line gives 64, a sentence and a hint, and starts nothing", async () => {
  for (const { words, env, says } of [...WRONG, ...WRONG_ELSEWHERE]) {
    const ended = await start(words, env).ended;
    expect([words, ended.code, ended.stdout.length]).toEqual([words, 64, 0]);
    const [error = "", hint = "", end] = ended.stderr.split("\n");
    expect(error).toStartWith("watchdog: error: ");
    expect(hint).toStartWith("watchdog: hint: ");
    expect([words, end, ended.stderr.split("\n").length]).toEqual([words, "", 3]);
    for (const part of says) expect(error).toContain(part);
    expect(error).not.toMatch(/\.$/);
    expectNothingWritten(words);
  }
}, 120_000);

test("the result file of a wrong line is neither written nor replaced", async () => {
  await Bun.write(scene.path("old.json"), "old");
  for (const name of ["old.json", "new.json"]) {
    const words = ["run", "--result-file", scene.path(name), "--timeout", "5x", ...TOUCH];
    expect((await start(words).ended).code).toBe(64);
  }
  expect(await Bun.file(scene.path("old.json")).text()).toBe("old");
  expect(existsSync(scene.path("new.json"))).toBe(false);
});

test("every hint works when it is pasted: it runs the command or shows help", async () => {
  // Pasted hints say `watchdog`, so a directory with that name in it is put in front of PATH.
  const bin = scene.path("bin");
  const pasting = scene.path("pasting");
  mkdirSync(pasting);
  mkdirSync(bin, { recursive: true });
  await Bun.write(`${bin}/watchdog`, `#!/bin/sh\nexec "${RELEASE}" "$@"\n`);
  await scene.startProgram(["chmod", "755", `${bin}/watchdog`]).ended;
  const pasted = new Map<string, string>();
  for (const { words, env } of WRONG) {
    const { stderr } = await start(words, env).ended;
    const hint = /^watchdog: hint: (.*)$/m.exec(stderr)?.[1] ?? "no hint";
    // The variables that were wrong are still there when a person pastes the hint.
    pasted.set(
      `${Object.entries(env ?? {})
        .map(([key, value]) => `export ${key}=${value};`)
        .join(" ")} ${hint}`,
      hint,
    );
  }
  expect(pasted.size).toBeGreaterThan(20);
  const paths = {
    PATH: `${bin}:${process.env["PATH"]}`,
    WATCHDOG_STATE_DIR: scene.path("hint-state"),
  };
  for (const line of pasted.keys()) {
    const safe = line.replaceAll("/var/lib/watchdog", scene.path("hint-state"));
    const ended = await scene.startProgram(["sh", "-c", safe], { cwd: pasting, env: paths }).ended;
    const isHelp = /help|--version/.test(line);
    expect([line, ended.code, ended.stderr]).toEqual([line, 0, ""]);
    if (isHelp) expect([line, ended.stdout.length > 10]).toEqual([line, true]);
    else expect([line, existsSync(scene.path("started"))]).toEqual([line, true]);
    await scene.startProgram(["rm", "-f", scene.path("started")]).ended;
  }
}, 120_000);

test("options of the command are the command's, whatever they look like", async () => {
  const env = { WATCHDOG_STATE_DIR: scene.path("other-state") };
  for (const words of [
    ["run", "--log", "off", "echo", "--timeout", "5x", "--help", "--"],
    ["run", "--log", "off", "--", "echo", "--timeout", "5x", "--help", "--"],
  ]) {
    const ended = await scene.startProgram([RELEASE, ...words], { cwd: work, env }).ended;
    expect([ended.code, ended.stdout.toString()]).toEqual([0, "--timeout 5x --help --\n"]);
  }
});
