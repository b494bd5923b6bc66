/**
 * Which runs meet each other: names, lanes, tasks, worktrees, keys of one's own; with which status
 * the second one leaves, and what it says about it, or does not.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { askJson } from "../support/ask.ts";
import { letHoldersGo, startHolder } from "../support/lease-holder.ts";
import { readLines } from "../support/processes.ts";
import { type Ended, openScene, RELEASE, rootTest, type Started } from "../support/scene.ts";
import { openTerminal } from "../support/terminal.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
afterEach(letHoldersGo);
const LOCKED = 75;
const SHOWS = ["--", "sh", "-c", 'echo "$WATCHDOG_LEASE $WATCHDOG_GENERATION"'];

function shown({ status, stdout, stderr }: Ended): [number, string, string] {
  return [status, stdout.toString(), stderr];
}

const REFUSED: [number, string, string] = [LOCKED, "", ""];

describe("a key is met by", () => {
  test.each([
    ["--lane and --lane", ["--lane", "server"], ["--lane", "server"], "lane%3Aserver"],
    ["--lane and --lock", ["--lane", "gpu 0"], ["--lock", "lane:gpu 0"], "lane%3Agpu%200"],
    ["--task and --lock", ["--lock", "task:T42"], ["--task", "T42"], "task%3AT42"],
    ["--lock and --lock", ["--lock", "own:a/b:c"], ["--lock", "own:a/b:c"], "own%3Aa%2Fb%3Ac"],
    ["--lock and --name", ["--lock", "job:by-lock"], ["--name", "by-lock"], "job%3Aby-lock"],
  ])("%s of two runs", async (_, one, two, encoded) => {
    const holder = await startHolder(scene, ["--name", "holds", ...one]);
    expect(shown(await scene.run(["--name", "meets", ...two, ...SHOWS]))).toEqual(REFUSED);
    expect((await holder.finish()).status).toBe(0);
    const [status, text] = shown(await scene.run(["--name", "meets", ...two, ...SHOWS]));
    expect([status, text.split(" ")]).toEqual([0, expect.arrayContaining([encoded])]);
  });

  test.each([
    ["lanes of two names", ["--lane", "north"], ["--lane", "south"]],
    ["a lane and a task of one name", ["--lane", "same"], ["--task", "same"]],
    ["names in two spellings", ["--lane", "Server"], ["--lane", "server"]],
    ["a name and what its encoding looks like", ["--lane", "a b"], ["--lane", "a%20b"]],
    ["runs without a lease", ["--no-lease"], ["--no-lease"]],
  ])("none of %s", async (_, one, two) => {
    const holder = await startHolder(scene, ["--name", "apart-1", ...one]);
    const name = one[0] === "--no-lease" ? "apart-1" : "apart-2";
    const other = await scene.run(["--name", name, ...two, "--", "echo", "had"]);
    expect(shown(other)).toEqual([0, "had\n", ""]);
    await holder.finish();
  });

  test("the same command line in the same directory, which has no name", async () => {
    for (const place of ["here", "there"]) mkdirSync(scene.path(place));
    const [gate, began] = [scene.path("unnamed.gate"), scene.path("unnamed.began")];
    const script = `echo in; echo in >>${began}; until [ -e ${gate} ]; do sleep 0.02; done`;
    const start = (directory: string, word: string): Started =>
      scene.start(["--", "sh", "-c", script, word], { cwd: scene.path(directory) });
    const running = (count: number): Promise<unknown> =>
      waitFor(() => readLines(began).length === count, `${count} commands to run`);
    const first = start("here", "a");
    await running(1);
    expect(shown(await start("here", "a").ended)).toEqual(REFUSED);
    const others = [start("here", "b"), start("there", "a")];
    await running(3);
    writeFileSync(gate, "");
    for (const { ended } of [first, ...others]) expect(shown(await ended)).toEqual([0, "in\n", ""]);
  });
});

test("keys and generations stand in the environment in one order, each once", async () => {
  const keys = ["--lock", "zz:z", "--task", "t", "--lane", "l", "--lock", "aa:a", "--lock", "zz:z"];
  const first = await scene.run(["--name", "order", ...keys, ...SHOWS]);
  const all = "aa%3Aa job%3Aorder lane%3Al task%3At zz%3Az";
  expect(shown(first)).toEqual([0, `${all} 1 1 1 1 1\n`, ""]);
  await scene.run(["--name", "between", "--lane", "l", "--", "true"]);
  const second = await scene.run(["--name", "order", ...keys, ...SHOWS]);
  expect(shown(second)).toEqual([0, `${all} 2 2 3 2 2\n`, ""]);
});

describe("--conflict-exit-code", () => {
  test.each([0, 1, 42, 255])("%d is the status of who is locked out", async (code) => {
    const holder = await startHolder(scene, ["--name", "conflict"]);
    const args = ["--name", "conflict", ...scene.recordTo(`conflict-${code}`), "--", "echo", "RAN"];
    const refused = await scene.run(["--conflict-exit-code", String(code), ...args]);
    expect(shown(refused)).toEqual([code, "", ""]);
    const record = scene.readRecord(`conflict-${code}`);
    expect(record).toMatchObject({ outcome: "locked", exit_status: code, status_of: "watchdog" });
    const env = { WATCHDOG_CONFLICT_EXIT_CODE: String(code) };
    expect(shown(await scene.run(args, { env }))).toEqual([code, "", ""]);
    const waited = ["--conflict-exit-code", String(code), "--wait", "100ms", ...args];
    expect(shown(await scene.run(waited))).toEqual([code, "", ""]);
    await holder.finish();
  });

  test("counts for a key of a run around this one, and never for the command itself", async () => {
    const inner = [RELEASE, "run", "--name", "around", "--conflict-exit-code", "9", "--", "true"];
    expect((await scene.run(["--name", "around", "--", ...inner])).status).toBe(9);
    const own = ["--name", "own", "--conflict-exit-code", "9", "--", "sh", "-c", "exit 75"];
    expect((await scene.run(own)).status).toBe(75);
  });
});

describe("--worktree", () => {
  const tree = scene.path("tree");
  const git = (...words: string[]): Promise<Ended> => scene.startProgram(["git", ...words]).ended;
  const made = (async () => {
    expect((await git("init", "-q", "-b", "main", tree)).stderr).toBe("");
    mkdirSync(`${tree}/deep/er`, { recursive: true });
    symlinkSync(`${tree}/deep`, scene.path("link"));
    cpSync(tree, scene.path("copy"), { recursive: true });
    mkdirSync(scene.path("plain"));
  })();
  const enter = (path: string): Promise<Ended> =>
    scene.run(["--name", "enters", "--worktree", path, ...SHOWS]);

  test("is the top level, from wherever in it and by whatever name it is reached", async () => {
    await made;
    const holder = await startHolder(scene, ["--name", "works", "--worktree", `${tree}/deep`]);
    for (const path of [tree, `${tree}/deep/er`, `${tree}/deep/../deep/`, scene.path("link")]) {
      expect([path, shown(await enter(path))]).toEqual([path, REFUSED]);
    }
    const [status, text] = shown(await enter(scene.path("copy")));
    expect([status, text.includes("worktree%3A")]).toEqual([0, true]);
    const { leases } = await askJson(scene, ["lease", "list"]);
    const keys = leases.map(({ key }: { key: string }) => key);
    expect(keys).toContain(`worktree:${tree}`);
    expect((await holder.finish()).status).toBe(0);
    expect((await enter(tree)).status).toBe(0);
  });

  test("is a directory itself where there is no repository", async () => {
    await made;
    const plain = scene.path("plain");
    const holder = await startHolder(scene, ["--name", "plain", "--worktree", plain]);
    expect(shown(await enter(`${plain}/.`))).toEqual(REFUSED);
    await holder.finish();
  });

  rootTest("of a bind mount of the same tree is the same key, first or second", async () => {
    await made;
    mkdirSync(scene.path("mounted"));
    // In a mount namespace of its own: nothing stays mounted.
    const inMount = (words: readonly string[]): string[] => {
      const script = 'mount --bind "$0" "$1" && shift && exec "$@"';
      const enters = ["sh", "-c", script, tree, scene.path("mounted")];
      return ["unshare", "--mount", ...enters, RELEASE, "run", "--name", "bound", ...words];
    };
    const through = ["--worktree", scene.path("mounted", "deep")];
    const holder = await startHolder(scene, ["--name", "works", "--worktree", tree]);
    const refused = await scene.startProgram(inMount([...through, ...SHOWS])).ended;
    expect(shown(refused)).toEqual(REFUSED);
    await holder.finish();
    const gate = scene.path("bound.gate");
    const script = `echo in >${gate}.in; until [ -e ${gate} ]; do sleep 0.02; done`;
    const bound = scene.startProgram(inMount([...through, "--", "sh", "-c", script]));
    await waitFor(() => existsSync(`${gate}.in`), "the run in the bind mount");
    expect(shown(await enter(tree))).toEqual(REFUSED);
    expect((await enter(scene.path("copy"))).status).toBe(0);
    writeFileSync(gate, "");
    expect((await bound.ended).status).toBe(0);
  });
});

describe("being locked out by a healthy holder", () => {
  const LINE =
    /^watchdog: not started: job:said is held by run [-0-9a-f]{36} \(pid \d+, .+, since .+\)$/;

  test("is told at a terminal and with -v, and not otherwise", async () => {
    const holder = await startHolder(scene, ["--name", "said"]);
    const args = ["--name", "said", "--", "echo", "RAN"];
    expect(shown(await scene.run(args))).toEqual(REFUSED);
    const terminal = openTerminal(scene, [RELEASE, "run", ...args]);
    expect(await terminal.ended).toBe(LOCKED);
    const screen = terminal.screen.trimEnd().split("\n");
    expect(screen).toEqual([expect.stringMatching(LINE)]);
    expect(screen[0]).toContain(`pid ${holder.started.pid},`);
    const verbose = await scene.run(["-v", ...args]);
    expect([verbose.status, verbose.stdout.toString()]).toEqual([LOCKED, ""]);
    const lines = verbose.stderr.trimEnd().split("\n");
    expect(lines[0]).toMatch(LINE);
    expect(lines.slice(1)).toEqual(["watchdog: verdict held (R2 beat-fresh)"]);
    const waited = await scene.run(["-v", "--wait", "200ms", ...args]);
    const [waiting, ...rest] = waited.stderr.trimEnd().split("\n");
    expect(waiting).toMatch(/^watchdog: waiting: job:said is held by run /);
    expect(rest[0]).toMatch(LINE);
    await holder.finish();
  });

  test("is told to everybody where the holder is not healthy but stalled", async () => {
    const beats = ["--heartbeat-interval", "100ms", "--stale-after", "4s"];
    const holder = await startHolder(scene, ["--name", "stalls", ...beats]);
    const isStalled = async (): Promise<boolean> =>
      (await askJson(scene, ["lease", "show", "job:stalls"])).verdict === "stalled";
    expect(await isStalled()).toBe(false);
    holder.started.kill("SIGSTOP");
    await waitFor(isStalled, "the beats of a stopped watchdog to be old");
    const refused = await scene.run(["--name", "stalls", "--", "echo", "RAN"]);
    expect([refused.status, refused.stdout.toString()]).toEqual([LOCKED, ""]);
    expect(refused.stderr).toMatch(/^watchdog: not started: job:stalls is held by .* old\n/);
    holder.started.kill("SIGCONT");
    expect((await holder.finish()).status).toBe(0);
  });
});
