/**
 * Who is at work in a checkout, with real processes, directories and files: by what each is found,
 * and what is not held against anybody.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomUUIDv7 } from "bun";
import { mkdirSync, realpathSync, renameSync, rmdirSync, writeFileSync } from "node:fs";
import type { WorktreeUser } from "../../src/core/worktree-users.ts";
import { readStat } from "../../src/os/proc.ts";
import { scanWorktreeInWorker } from "../../src/tree/scan-handle.ts";
import { addPlaces } from "../../src/tree/worktree-places.ts";
import { findWorktreeUsers, type WorktreeQuestion } from "../../src/tree/worktree-users.ts";
import { endAll } from "../support/guarded-scene.ts";
import { PYTHON } from "../support/outside.ts";
import { waitForText } from "../support/processes.ts";
import { openScene, rootTest } from "../support/scene.ts";

/** Orphans: what is below the one who looks is never in its way. */
const orphans: number[] = [];
// Before the scene's own, which looks whether anybody is left.
afterAll(() => endAll(scene, orphans));

const scene = openScene(import.meta.file);
const WORKER = new URL("../../src/tree/scan-worker.ts", import.meta.url);
let repo = "";

beforeAll(() => {
  mkdirSync(scene.path("repo", ".git", "worktrees"), { recursive: true });
  mkdirSync(scene.path("repo", "deep", "er"), { recursive: true });
  mkdirSync(scene.path("repo", "linked", "src"), { recursive: true });
  writeFileSync(scene.path("repo", "linked", ".git"), "gitdir: ../.git/worktrees/linked\n");
  mkdirSync(scene.path("repo-beside"));
  repo = realpathSync(scene.path("repo"));
});

/** A process of a run of its own, which is at its work when this resolves. */
async function work(
  script: string,
  cwd: string,
  env: Readonly<Record<string, string>> = { WATCHDOG_RUN_PATH: randomUUIDv7() },
): Promise<number> {
  const ready = scene.path(`ready-${orphans.length}`);
  const program = [
    "import os, sys, time",
    "if os.fork(): os._exit(0)",
    script,
    `open(${JSON.stringify(ready)}, "w").write(f"{os.getpid()}\\n")`,
    "time.sleep(600)",
  ].join("\n");
  const options = { cwd, env, stdout: "ignore", stderr: "ignore" } as const;
  await scene.startProgram([PYTHON, "-I", "-S", "-c", program], options).ended;
  const pid = Number(await waitForText(ready));
  orphans.push(pid);
  return pid;
}

async function look(changes: Partial<WorktreeQuestion> = {}): Promise<readonly WorktreeUser[]> {
  const users = await findWorktreeUsers(
    {
      topLevel: repo,
      isStrict: false,
      sessionId: readStat(process.pid)?.sessionId ?? 0,
      runsAround: [],
      spared: { runIds: [], members: [] },
      kept: () => ({ identities: new Set(), tokens: new Set() }),
      ...changes,
    },
    (order) => scanWorktreeInWorker(WORKER, order),
  );
  if (users === "unread") throw new Error("the look was unread");
  return users;
}

async function placeOf(pid: number, changes: Partial<WorktreeQuestion> = {}): Promise<unknown> {
  const user = (await look(changes)).find((one) => one.pid === pid);
  return user === undefined ? undefined : [user.by, user.path.replace(repo, "REPO")];
}

const OPENS = (path: string, flags: string): string =>
  `fd = os.open(${JSON.stringify(path)}, os.O_CREAT | ${flags}, 0o600)`;

describe("a process of another run is found", () => {
  test.each([
    ["at the top level", "repo", "REPO"],
    ["deep in it", "repo/deep/er", "REPO/deep/er"],
    ["in git's own directory", "repo/.git", "REPO/.git"],
  ])("by its working directory, %s", async (_, cwd, path) => {
    const runId = randomUUIDv7();
    const pid = await work("", scene.path(cwd), { WATCHDOG_RUN_PATH: runId });
    const user = (await look()).find((one) => one.pid === pid);
    expect(user).toMatchObject({ by: "cwd", runId, start_time: readStat(pid)?.startTicks });
    expect([user?.path.replace(repo, "REPO"), user?.command.includes("time.sleep(600)")]).toEqual([
      path,
      true,
    ]);
  });

  test.each([
    ["O_WRONLY", "deep/written"],
    ["O_RDWR", "read-and-written"],
    ["O_WRONLY | os.O_APPEND", "appended"],
  ])("by a file that it has open with %s", async (flags, name) => {
    const pid = await work(OPENS(`${repo}/${name}`, `os.${flags}`), "/");
    expect(await placeOf(pid)).toEqual(["file", `REPO/${name}`]);
  });

  test("by a directory and by a file that are gone", async () => {
    mkdirSync(`${repo}/gone`);
    const inIt = await work("", `${repo}/gone`);
    rmdirSync(`${repo}/gone`);
    const path = `${repo}/unlinked`;
    const atIt = await work(
      `${OPENS(path, "os.O_WRONLY")}; os.unlink(${JSON.stringify(path)})`,
      "/",
    );
    expect(await placeOf(inIt)).toEqual(["cwd", "REPO/gone (deleted)"]);
    expect(await placeOf(atIt)).toEqual(["file", "REPO/unlinked (deleted)"]);
  });

  test("by the directory itself, and not by its name", async () => {
    mkdirSync(scene.path("moved"));
    const pid = await work("", scene.path("moved"));
    renameSync(scene.path("moved"), `${repo}/moved`);
    expect(await placeOf(pid)).toEqual(["cwd", "REPO/moved"]);
    renameSync(`${repo}/moved`, scene.path("moved"));
    expect(await placeOf(pid)).toBeUndefined();
  });

  rootTest("through a bind mount, and in a mount namespace of its own", async () => {
    mkdirSync(scene.path("mounted"));
    const mount = [
      "import ctypes",
      "libc = ctypes.CDLL(None, use_errno=True)",
      "os.unshare(os.CLONE_NEWNS) if hasattr(os, 'unshare') else libc.unshare(0x20000)",
      "assert libc.mount(b'none', b'/', None, 0x44000, None) == 0", // MS_REC | MS_PRIVATE
      `assert libc.mount(${bytes(repo)}, ${bytes(scene.path("mounted"))}, None, 4096, None) == 0`,
      `os.chdir(${JSON.stringify(scene.path("mounted"))})`,
    ];
    const pid = await work(mount.join("\n"), "/");
    expect(await placeOf(pid)).toEqual(["cwd", scene.path("mounted")]);
    // The twin: the same path, seen from here, is another directory.
    const twin = await work("", scene.path("mounted"));
    expect(await placeOf(twin)).toBeUndefined();
  });
});

function bytes(text: string): string {
  return `${JSON.stringify(text)}.encode()`;
}

describe("a process of another run is not found", () => {
  test.each([
    ["beside it, under a name that begins alike", "", "repo-beside"],
    ["in a linked worktree below it", "", "repo/linked/src"],
  ])("that works %s", async (_, script, cwd) => {
    expect(await placeOf(await work(script, scene.path(cwd)))).toBeUndefined();
  });

  test.each([
    ["reads a file", "os.O_RDONLY", "read"],
    ["writes in git's own directory, as a linked worktree does", "os.O_WRONLY", ".git/objects"],
    ["writes in a linked worktree below", "os.O_WRONLY", "linked/src/a"],
  ])("that only %s", async (_, flags, name) => {
    expect(await placeOf(await work(OPENS(`${repo}/${name}`, flags), "/"))).toBeUndefined();
  });

  test("that has a directory, a FIFO or a name of it open", async () => {
    const fifo = JSON.stringify(`${repo}/fifo`);
    const opens = [
      `os.open(${JSON.stringify(repo)}, os.O_RDONLY)`,
      `os.mkfifo(${fifo}); os.open(${fifo}, os.O_RDWR)`,
      `os.open(${JSON.stringify(`${repo}/named`)}, os.O_CREAT | os.O_WRONLY)`,
      `p = os.open(${JSON.stringify(`${repo}/named`)}, os.O_PATH)`,
      "os.close(p - 1)",
    ];
    expect(await placeOf(await work(opens.join("\n"), "/"))).toBeUndefined();
  });
});

test("a process without a cookie, in a session of its own, is found by a strict look", async () => {
  const pid = await work("os.setsid()", repo, {});
  expect(await placeOf(pid)).toBeUndefined();
  expect(await placeOf(pid, { isStrict: true })).toEqual(["cwd", "REPO"]);
  const inOurs = await work("", repo, {});
  expect(await placeOf(inOurs, { isStrict: true })).toBeUndefined();
});

test("nobody is found in a directory that is not there", async () => {
  await work("", repo);
  expect(await look({ topLevel: `${repo}/nothing`, isStrict: true })).toEqual([]);
});

test("a look that fails says so, and so does one that takes too long", async () => {
  const order = { topLevel: repo, isStrict: false };
  expect(addPlaces("unread", order)).toBe("unread");
  expect(await scanWorktreeInWorker(WORKER, order, 0)).toBe("unread");
  expect(await scanWorktreeInWorker(new URL("./no-such.ts", import.meta.url), order)).toBe(
    "unread",
  );
  const scan = await scanWorktreeInWorker(WORKER, order);
  expect(scan === "unread" ? scan : scan.processes.some(({ pid }) => pid === process.pid)).toBe(
    true,
  );
});
