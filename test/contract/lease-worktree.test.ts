/** The key of a checkout: one tree, one key, whichever path leads to it. */
import { afterAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { WatchdogError } from "../../src/core/errors.ts";
import { findWorktreeKey, resolveWorktreeKey } from "../../src/lease/worktree-place.ts";
import { holdPlace, isFree, openClaimScene } from "../support/claim-scene.ts";

const scene = openClaimScene();
const root = mkdtempSync(join(tmpdir(), "watchdog-trees-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let trees = 0;

function makeTree(): string {
  trees += 1;
  const tree = `${root}/tree-${trees}`;
  mkdirSync(`${tree}/src/deep`, { recursive: true });
  mkdirSync(`${tree}/.git`);
  writeFileSync(`${tree}/.git/HEAD`, "ref: refs/heads/feature/night\n");
  return tree;
}

function resolveKey(path: string) {
  return resolveWorktreeKey(scene.directory, path);
}

function placeFile(key: { kind: string; name: string }): string {
  return `${scene.placeOf(key).directory}/place`;
}

function failureOf(work: () => unknown): WatchdogError {
  try {
    work();
  } catch (error) {
    return error as WatchdogError;
  }
  throw new Error("no failure");
}

describe("the key of a checkout", () => {
  test("is the real path of its top level, with the branch", () => {
    const tree = makeTree();
    expect(resolveKey(tree)).toEqual({
      key: { kind: "worktree", name: tree },
      worktree: tree,
      branch: "feature/night",
    });
  });

  test("is the same from a directory below, and through a link", () => {
    const tree = makeTree();
    symlinkSync(`${tree}/src`, `${tree}-link`);
    for (const path of [`${tree}/src/deep`, `${tree}/src/../src`, `${tree}-link`]) {
      expect([path, resolveKey(path).key.name]).toEqual([path, tree]);
    }
  });

  test("without git is the path itself, and two of them are two", () => {
    const [one, two] = [`${root}/plain`, `${root}/plain/below`];
    mkdirSync(two, { recursive: true });
    expect([one, two].map((path) => resolveKey(path))).toEqual(
      [one, two].map((path) => ({
        key: { kind: "worktree", name: path },
        worktree: path,
        branch: null,
      })),
    );
  });

  test("tells the branch of a linked worktree, and none where HEAD is detached", () => {
    const [main, linked] = [makeTree(), `${root}/linked`];
    mkdirSync(`${main}/.git/worktrees/linked`, { recursive: true });
    writeFileSync(`${main}/.git/worktrees/linked/HEAD`, "ref: refs/heads/other\n");
    mkdirSync(linked);
    writeFileSync(`${linked}/.git`, `gitdir: ${main}/.git/worktrees/linked\n`);
    expect(resolveKey(linked)).toMatchObject({ worktree: linked, branch: "other" });
    writeFileSync(`${main}/.git/HEAD`, "0123456789abcdef0123456789abcdef01234567\n");
    expect(resolveKey(main).branch).toBe(null);
  });

  test("needs a directory that is there, and a name that a key can have", () => {
    const failure = failureOf(() => resolveKey(`${root}/absent`));
    expect([failure.code, failure.exitStatus]).toEqual(["lease.refused", 78]);
    expect(failure.message).toContain(`worktree ${root}/absent: ENOENT`);
    const long = `${root}/${Array.from({ length: 6 }, () => "x".repeat(200)).join("/")}`;
    mkdirSync(long, { recursive: true });
    expect(failureOf(() => resolveKey(long)).message).toContain("more than 1024 characters");
  });
});

describe("a tree that has another path", () => {
  test("by a bind mount has the key of the first path", () => {
    const [tree, mount] = [makeTree(), `${root}/mount`];
    mkdirSync(mount);
    resolveKey(tree);
    const script = `
      const { resolveWorktreeKey } = await import(${JSON.stringify(WORKTREE_MODULE)});
      const [state, path, answer] = ${JSON.stringify([scene.directory, mount, `${root}/answer`])};
      const { key, worktree } = resolveWorktreeKey(state, path);
      await Bun.write(answer, JSON.stringify([key.name, worktree]));
    `;
    const inside = ["sh", "-c", 'mount --bind "$1" "$2" && exec "$3" -e "$4"', "sh"];
    const words = [...inside, tree, mount, process.execPath, script];
    const done = Bun.spawnSync(["unshare", "-rm", ...words]);
    expect([done.exitCode, done.stderr.toString()]).toEqual([0, ""]);
    expect(JSON.parse(readFileSync(`${root}/answer`, "utf8"))).toEqual([tree, mount]);
    // Without the mount the second path is a directory of its own.
    expect(resolveKey(mount).key.name).toBe(mount);
  });

  test("because it was moved keeps its key as long as a run holds it", () => {
    const tree = makeTree();
    const { key } = resolveKey(tree);
    const release = holdPlace(scene.placeOf(key));
    renameSync(tree, `${tree}-moved`);
    expect(resolveKey(`${tree}-moved`).key).toEqual(key);
    // A new tree under the old name meets the same key, and does not take the place over.
    mkdirSync(tree);
    const before = readFileSync(placeFile(key), "utf8");
    expect(resolveKey(tree).key).toEqual(key);
    expect(readFileSync(placeFile(key), "utf8")).toBe(before);
    release();
    expect(resolveKey(`${tree}-moved`).key.name).toBe(`${tree}-moved`);
    expect(existsSync(placeFile(key))).toBe(false);
    expect(resolveKey(tree).key).toEqual(key);
    expect(isFree(scene.placeOf(key).lock)).toBe(true);
  });

  test("keeps the key of an owner that is dead and was not released", async () => {
    const tree = makeTree();
    const { key } = resolveKey(tree);
    await scene.leaveDead(key);
    renameSync(tree, `${tree}-moved`);
    expect(resolveKey(`${tree}-moved`).key).toEqual(key);
  });

  test("after a boot is known by its path alone: device numbers mean nothing then", () => {
    const tree = makeTree();
    const { key } = resolveKey(tree);
    const file = placeFile(key);
    const place = JSON.parse(readFileSync(file, "utf8"));
    const release = holdPlace(scene.placeOf(key));
    writeFileSync(file, JSON.stringify({ ...place, boot_id: "other" }));
    renameSync(tree, `${tree}-moved`);
    expect(resolveKey(`${tree}-moved`).key.name).toBe(`${tree}-moved`);
    release();
  });

  test("whose place cannot be read is taken by its path", () => {
    const tree = makeTree();
    const { key } = resolveKey(tree);
    for (const broken of ["", "null", "{", '{"format":1,"inode":7}']) {
      writeFileSync(placeFile(key), broken);
      expect(resolveKey(tree).key).toEqual(key);
      expect(JSON.parse(readFileSync(placeFile(key), "utf8"))).toMatchObject({ path: tree });
    }
  });
});

const WORKTREE_MODULE = join(import.meta.dir, "../../src/lease/worktree-place.ts");

describe("the key for whoever only looks", () => {
  test("is the one that a run would have, and nothing is made for it", () => {
    const tree = makeTree();
    symlinkSync(tree, `${tree}-way`);
    for (const path of [tree, `${tree}/src/deep`, `${tree}-way/src`]) {
      const key = findWorktreeKey(scene.directory, path);
      expect(key).toEqual({ kind: "worktree", name: tree });
      expect(existsSync(scene.placeOf(key).directory)).toBe(false);
    }
    const { key } = resolveKey(tree);
    const before = readFileSync(placeFile(key), "utf8");
    expect(findWorktreeKey(scene.directory, tree)).toEqual(key);
    expect(readFileSync(placeFile(key), "utf8")).toBe(before);
  });

  test("of a tree that was moved while a run holds it is the key of that run", () => {
    const tree = makeTree();
    const { key } = resolveKey(tree);
    const held = holdPlace(scene.placeOf(key));
    renameSync(tree, `${tree}-moved`);
    expect(findWorktreeKey(scene.directory, `${tree}-moved`)).toEqual(key);
    held();
    // And what nobody runs in any more is left to the next run to tidy up.
    const moved = { kind: "worktree", name: `${tree}-moved` };
    expect(findWorktreeKey(scene.directory, `${tree}-moved`)).toEqual(moved);
    expect(existsSync(placeFile(key))).toBe(true);
  });

  test("needs no state directory, and a directory that is there", () => {
    const tree = makeTree();
    expect(findWorktreeKey(`${root}/no-state`, tree)).toEqual({ kind: "worktree", name: tree });
    expect(existsSync(`${root}/no-state`)).toBe(false);
    expect(failureOf(() => findWorktreeKey(scene.directory, `${tree}/none`)).code).toBe(
      "lease.refused",
    );
  });
});
