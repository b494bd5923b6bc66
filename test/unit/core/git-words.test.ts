/** Git's own words: who has asked for no hooks, and which transaction is of a checkout. */
import { describe, expect, test } from "bun:test";
import { isGit, movesBranch, skipsVerify } from "../../../src/core/git-words.ts";

describe("a command line of git", () => {
  test.each([
    ["git commit --no-verify"],
    ["git commit -n"],
    ["git commit -anm text"],
    ["git commit -m text --no-veri"],
    ["/usr/lib/git-core/git commit --no-verify --allow-empty"],
    ["git-commit --no-verify"],
    ["git -C /r -c a.b=c --git-dir=/g --work-tree /w commit -n"],
    ["git merge --no-verify b"],
    ["git rebase --no-verify main"],
    ["git pull --no-verify"],
    ["git push origin main --no-verify"],
    ["git am -n"],
    ["git commit --verify --no-verify"],
  ])("%j says --no-verify", (line) => {
    expect(skipsVerify(line.split(" "))).toBe(true);
  });

  test.each([
    ["git commit -m --no-verify"],
    ["git commit -m -n"],
    ["git commit -mn"],
    ["git commit -am --no-verify"],
    ["git commit --message --no-verify"],
    ["git commit --author -n -m x"],
    ["git commit -Sn"],
    ["git commit -un"],
    ["git commit -- --no-verify"],
    ["git commit --no-ver"],
    ["git commit --no-verify --verify"],
    ["git merge -n b"],
    ["git rebase -n main"],
    ["git push -n"],
    ["git rebase -x --no-verify main"],
    ["git -c --no-verify commit"],
    ["git branch --no-verify"],
    ["git --no-verify"],
    ["git"],
    ["git commit"],
  ])("%j does not", (line) => {
    expect(skipsVerify(line.split(" "))).toBe(false);
  });

  test("is known by the name of the program", () => {
    for (const name of ["git", "/usr/bin/git", "git-receive-pack"]) {
      expect([name, isGit([name, "commit"])]).toEqual([name, true]);
    }
    for (const name of ["", "sh", "gitk", "/opt/git/sh", "legit", "watchdog"]) {
      expect([name, isGit([name, "commit"])]).toEqual([name, false]);
    }
    expect(isGit([])).toBe(false);
  });
});

describe("a transaction of refs", () => {
  const [OLD, NEW] = ["1".repeat(40), "2".repeat(40)];

  test.each([["HEAD"], ["refs/heads/main"], ["refs/heads/a b"]])("of %j moves a branch", (name) => {
    expect(movesBranch(`${OLD} ${NEW} refs/tags/v1\n${OLD} ${NEW} ${name}\n`)).toBe(true);
  });

  test.each([
    ["ORIG_HEAD"],
    ["FETCH_HEAD"],
    ["refs/remotes/origin/HEAD"],
    ["refs/remotes/origin/refs/heads/x"],
    ["refs/tags/refs/heads/x"],
    ["refs/stash"],
    ["refs/watchdog/fence/job/x"],
    ["refs/heads"],
  ])("of %j does not", (name) => {
    expect(movesBranch(`${OLD} ${NEW} ${name}\n`)).toBe(false);
  });

  test("without lines moves nothing", () => {
    expect([movesBranch(""), movesBranch("\n")]).toEqual([false, false]);
  });
});
