/**
 * Where a push goes and what of, where nobody has said it: as `git push` itself would find the
 * remote, and the branch that is checked out. Reads git's configuration by git.
 *
 * Always: one remote, one address: a fence at one of two addresses would say nothing about the
 * other.
 */
import { WatchdogError } from "../core/errors.ts";
import type { Leaving } from "../core/outcome.ts";
import type { Git } from "./git.ts";

export interface RemotePlace {
  /** As `git push` is told it. */
  readonly name: string;
  /** Where that pushes to: `pushurl` may be another place than the one that is fetched from. */
  readonly url: string;
}

type Found =
  | { readonly kind: "go"; readonly value: RemotePlace }
  | { readonly kind: "leave"; readonly leaving: Leaving };

/** @throws WatchdogError "git.refused": several addresses */
export async function findRemote(git: Git, asked: string | undefined): Promise<Found> {
  // Whoever is not in a repository hears it from git itself, and leaves with its status.
  const here = await git.ask(["rev-parse", "--git-dir"]);
  if (here.kind === "failed") return { kind: "leave", leaving: here.leaving };
  const name = asked ?? (await findUsualRemote(git));
  const urls = await askLines(git, ["remote", "get-url", "--push", "--all", "--", name]);
  const [url = name, another] = urls;
  if (another !== undefined) {
    throw new WatchdogError(
      "git.refused",
      `remote ${name} has ${urls.length} addresses to push to, expected one`,
      { hint: `watchdog fence git-push ${url}` },
    );
  }
  return { kind: "go", value: { name, url } };
}

/**
 * git-push(1): `branch.<name>.pushRemote`, `remote.pushDefault`, `branch.<name>.remote`, and
 * `origin`.
 */
async function findUsualRemote(git: Git): Promise<string> {
  const [branch] = await askLines(git, ["symbolic-ref", "--quiet", "--short", "HEAD"]);
  const names =
    branch === undefined
      ? ["remote.pushDefault"]
      : [`branch.${branch}.pushRemote`, "remote.pushDefault", `branch.${branch}.remote`];
  for (const name of names) {
    const [remote] = await askLines(git, ["config", "--get", name]);
    if (remote !== undefined) return remote;
  }
  return "origin";
}

/**
 * The refspec of the branch that is checked out.
 * @throws WatchdogError "git.refused": none is
 */
export async function findBranch(git: Git): Promise<string> {
  const [ref] = await askLines(git, ["symbolic-ref", "--quiet", "HEAD"]);
  if (ref !== undefined) return `${ref}:${ref}`;
  throw new WatchdogError("git.refused", "no branch is checked out: HEAD is detached", {
    hint: "watchdog fence git-push origin HEAD:BRANCH",
  });
}

/** None where git says no. */
async function askLines(git: Git, words: readonly string[]): Promise<string[]> {
  const answer = await git.ask(words, { isQuiet: true });
  if (answer.kind === "failed") return [];
  return answer.text.split("\n").filter((line) => line !== "");
}
