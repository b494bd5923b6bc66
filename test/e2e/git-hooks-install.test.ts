/**
 * Installing the hooks of git and taking them away, with real git: that nothing of what was there
 * before is lost, and that it goes on being asked.
 */
import { afterEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import {
  GIT_ENV,
  endHolders,
  holdCheckout,
  HOLDERS_LIMIT_MS,
  makeRemote,
  makeRepository,
  type Repository,
  repositoryAt,
  writeHook,
} from "../support/git-scene.ts";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
afterEach(endHolders, HOLDERS_LIMIT_MS);
const HOOKS = ["pre-commit", "pre-push", "reference-transaction"];
const COMMIT = "commit --allow-empty -m more";

function listHooks(repository: Repository): string[] {
  return readdirSync(repository.hooks)
    .filter((name) => !name.endsWith(".sample"))
    .sort();
}

describe("hooks that were there before", () => {
  test("are run too, with the same words and input, and their refusal counts", async () => {
    const repository = await makeRepository(scene);
    await makeRemote(scene, repository);
    const log = scene.path("before.log");
    for (const hook of HOOKS) {
      writeHook(`${repository.hooks}/${hook}`, `echo "$0 $*: $(cat)" >>'${log}'; exit $REFUSES`);
    }
    await repository.install();
    const env = { REFUSES: "0" };
    expect((await repository.git(COMMIT, { env, stdin: Buffer.from("in") })).status).toBe(0);
    expect((await repository.git("push -q origin main", { env })).status).toBe(0);
    const oid = await repository.ask("rev-parse HEAD");
    const origin = await repository.ask("remote get-url origin");
    const lines = readFileSync(log, "utf8");
    expect(lines).toStartWith(".git/hooks/pre-commit : ");
    for (const state of ["prepared", "committed"]) {
      expect(lines).toMatch(
        new RegExp(
          `^.git/hooks/reference-transaction ${state}: \\S+ ${oid} HEAD\n` +
            `\\S+ ${oid} refs/heads/main$`,
          "m",
        ),
      );
    }
    const zero = "0".repeat(40);
    expect(lines).toContain(
      `.git/hooks/pre-push origin ${origin}: refs/heads/main ${oid} refs/heads/main ${zero}\n`,
    );
    expect((await repository.git(COMMIT, { env: { REFUSES: "1" } })).status).toBe(1);
    expect((await repository.git("branch x", { env: { REFUSES: "1" } })).status).not.toBe(0);
  });

  test("are not asked where ours has refused", async () => {
    const repository = await makeRepository(scene);
    const log = scene.path("unasked.log");
    writeHook(`${repository.hooks}/pre-commit`, `echo asked >>'${log}'`);
    await repository.install();
    const holder = await holdCheckout(scene, repository);
    expect((await repository.git(COMMIT)).status).toBe(1);
    expect(existsSync(log)).toBe(false);
    await holder.end();
  });

  test("of a manager of hooks find their own files by their name", async () => {
    const repository = await makeRepository(scene);
    const [managed, own] = [`${repository.path}/.manager/_`, `${repository.path}/.manager`];
    mkdirSync(managed, { recursive: true });
    writeHook(`${managed}/pre-commit`, `. "$(dirname "$0")/h"`, "#!/usr/bin/env sh");
    const finds = ['s="$(dirname "$(dirname "$0")")/$(basename "$0")"', '[ ! -f "$s" ] || . "$s"'];
    writeFileSync(`${managed}/h`, finds.join("\n"));
    writeFileSync(`${own}/pre-commit`, "echo managed >&2; exit 1\n");
    await repository.ask("config core.hooksPath .manager/_");
    const installed = await repository.install();
    expect(installed.stdout.toString()).toContain("core.hooksPath leads here");
    const refused = await repository.git(COMMIT);
    expect([refused.status, refused.stderr]).toEqual([1, "managed\n"]);
    const holder = await holdCheckout(scene, repository);
    expect((await repository.git(COMMIT)).stderr).toContain("watchdog: pre-commit refused");
    await holder.end();
  });

  test("of any other program, or without the right to be run, are as they were", async () => {
    const repository = await makeRepository(scene);
    writeHook(`${repository.hooks}/pre-commit`, "print 'perl'; exit 1;", "#!/usr/bin/perl");
    writeFileSync(`${repository.hooks}/reference-transaction`, "#!/bin/sh\nexit 1\n", {
      mode: 0o644,
    });
    await repository.install();
    const refused = await repository.git(COMMIT);
    expect([refused.status, refused.stdout.toString() + refused.stderr]).toEqual([1, "perl"]);
    expect((await repository.git("branch x")).status).toBe(0);
  });
});

describe("installing", () => {
  test("twice changes nothing; taking away puts back what was there, byte for byte", async () => {
    const repository = await makeRepository(scene);
    const path = `${repository.hooks}/pre-commit`;
    writeFileSync(path, "#!/bin/sh\n\xff\0exit 0\n", { encoding: "latin1", mode: 0o711 });
    const before = readFileSync(path);
    await repository.install();
    const look = () =>
      listHooks(repository).map((name) => {
        const { ino, mtimeMs, mode } = statSync(`${repository.hooks}/${name}`);
        return [name, ino, mtimeMs, mode & 0o777];
      });
    const once = look();
    expect(once.map(([name]) => name)).toEqual([...HOOKS, "pre-commit.before-watchdog"].sort());
    const again = await repository.install();
    expect(again.stdout.toString().match(/: already there$/gm)).toHaveLength(3);
    expect(look()).toEqual(once);
    const renewed = await repository.install(["--key", "lane:x"]);
    expect(renewed.stdout.toString().match(/: renewed/g)).toHaveLength(3);
    const removed = await repository.install(["--uninstall"]);
    expect(removed.status).toBe(0);
    expect(listHooks(repository)).toEqual(["pre-commit"]);
    expect([readFileSync(path), statSync(path).mode & 0o777]).toEqual([before, 0o711]);
    const without = await repository.install(["--uninstall"]);
    expect([without.status, listHooks(repository)]).toEqual([0, ["pre-commit"]]);
  });

  test("goes on where it was cut off between the second name and ours", async () => {
    const repository = await makeRepository(scene);
    writeHook(`${repository.hooks}/pre-commit`, "exit 3");
    await repository.install();
    const kept = `${repository.hooks}/pre-commit.before-watchdog`;
    writeFileSync(`${repository.hooks}/pre-commit`, readFileSync(kept));
    expect((await repository.install()).status).toBe(0);
    expect((await repository.git(COMMIT)).status).toBe(1);
    expect(readFileSync(kept, "utf8")).toContain("exit 3");
  });

  test("refuses a second foreign hook, of which one would be lost", async () => {
    const repository = await makeRepository(scene);
    writeHook(`${repository.hooks}/pre-commit`, "exit 3");
    await repository.install();
    writeHook(`${repository.hooks}/pre-commit`, "exit 4");
    const refused = await repository.install();
    expect([refused.status, refused.stderr]).toEqual([
      78,
      expect.stringContaining("are two hooks that were there before"),
    ]);
    expect(readFileSync(`${repository.hooks}/pre-commit`, "utf8")).toContain("exit 4");
  });

  test("goes where git looks: DIR, core.hooksPath, the hooks of a linked worktree", async () => {
    const repository = await makeRepository(scene);
    await repository.ask("worktree add -q ../linked-install -b linked-install");
    const linked = repositoryAt(scene, scene.path("linked-install"));
    expect((await linked.install()).stdout.toString()).toContain(`${repository.hooks}/pre-push: `);
    const elsewhere = scene.path("elsewhere hooks");
    await repository.git("config core.hooksPath x");
    await scene.startProgram(["git", "config", "core.hooksPath", elsewhere], {
      cwd: repository.path,
      env: GIT_ENV,
    }).ended;
    // From outside, with what git sets for the hooks of another repository.
    const env = { ...GIT_ENV, GIT_DIR: "/nowhere" };
    const installed = await repository.install([repository.path], { cwd: "/", env });
    expect([installed.status, readdirSync(elsewhere).sort()]).toEqual([0, HOOKS]);
    const holder = await holdCheckout(scene, repository);
    expect((await repository.git(COMMIT)).status).toBe(1);
    await holder.end();
  });

  test("is refused where there is no checkout, and where a hook is no file", async () => {
    const repository = await makeRepository(scene);
    const remote = await makeRemote(scene, repository);
    for (const path of [remote.path, scene.directory, scene.path("missing")]) {
      const refused = await repository.install([path]);
      expect([path, refused.status]).toEqual([path, 78]);
      expect(refused.stderr).toContain(`${path} is no checkout of git`);
    }
    rmSync(repository.hooks, { recursive: true });
    mkdirSync(`${repository.hooks}/pre-push`, { recursive: true });
    const refused = await repository.install();
    expect([refused.status, refused.stderr]).toEqual([
      78,
      expect.stringContaining("pre-push is no file"),
    ]);
    renameSync(`${repository.hooks}/pre-push`, scene.path("put-away"));
    expect((await repository.install()).status).toBe(0);
  });
});
