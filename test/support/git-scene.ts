/**
 * Real repositories of git below a scene, and git as a person calls it: without anything of a run.
 * Trusts nothing that watchdog says.
 */
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { FENCE, startJob } from "./fencing.ts";
import { waitForText } from "./processes.ts";
import { waitFor } from "./wait-for.ts";
import { type Ended, RELEASE, type RunOptions, type Scene, type Started } from "./scene.ts";

/** Nothing of this machine's configuration, and somebody to be the author. */
export const GIT_ENV: Readonly<Record<string, string>> = {
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a@b",
  GIT_COMMITTER_NAME: "c",
  GIT_COMMITTER_EMAIL: "c@d",
};

export interface Repository {
  readonly path: string;
  readonly hooks: string;
  /** `git WORDS` there, by somebody outside of every run. */
  git(words: string, options?: RunOptions): Promise<Ended>;
  /** The same, where it must be fine. @returns what it prints, trimmed */
  ask(words: string): Promise<string>;
  /** `watchdog fence install-git-hooks WORDS`. */
  install(words?: readonly string[], options?: RunOptions): Promise<Ended>;
}

let made = 0;
const holding: Started[] = [];
/** TERM, the grace of the run, and KILL. */
export const HOLDERS_LIMIT_MS = 60_000;

/**
 * For `afterEach`: a test that fails must not leave its lane or checkout taken, which the next one
 * would wait for.
 */
export async function endHolders(): Promise<void> {
  for (const run of holding.splice(0)) {
    run.kill("SIGTERM");
    await run.ended;
  }
}

/** A checkout with one commit on `main`. */
export async function makeRepository(scene: Scene): Promise<Repository> {
  const repository = repositoryAt(scene, scene.path(`repository-${(made += 1)}`));
  mkdirSync(repository.path);
  await repository.ask("init -q -b main");
  await repository.ask("commit -q --allow-empty -m first");
  return repository;
}

/** A bare repository, known as `origin` to the other one. */
export async function makeRemote(scene: Scene, repository: Repository): Promise<Repository> {
  const remote = repositoryAt(scene, scene.path(`remote-${(made += 1)}.git`));
  mkdirSync(remote.path);
  await remote.ask("init -q -b main --bare");
  await repository.ask(`remote add origin ${remote.path}`);
  return remote;
}

export function repositoryAt(scene: Scene, path: string): Repository {
  const options = { cwd: path, env: GIT_ENV };
  const git = (words: string, changes: RunOptions = {}): Promise<Ended> =>
    scene.startProgram(["git", ...words.split(" ")], {
      ...options,
      ...changes,
      env: { ...GIT_ENV, ...changes.env },
    }).ended;
  return {
    path,
    hooks: `${path}/.git/hooks`,
    git,
    ask: async (words) => {
      const { status, stdout, stderr } = await git(words);
      if (status !== 0) throw new Error(`git ${words}: ${status}: ${stderr}`);
      return stdout.toString().trim();
    },
    install: (words = [], changes = {}) =>
      scene.startProgram([RELEASE, "fence", "install-git-hooks", ...words], {
        ...options,
        ...changes,
      }).ended,
  };
}

/** A hook of somebody else's. */
export function writeHook(path: string, script: string, shebang = "#!/bin/sh"): void {
  writeFileSync(path, `${shebang}\n${script}\n`, { mode: 0o755 });
}

export interface Holder {
  readonly run: Started;
  /** Does `script` inside the run, to its end. @returns its status and what it has printed */
  inside(script: string): Promise<{ readonly status: number; readonly text: string }>;
  end(): Promise<Ended>;
}

/** A run that holds the checkout, with its working directory there, and does what it is told. */
export async function holdCheckout(
  scene: Scene,
  repository: Repository,
  words: readonly string[] = ["--worktree", "."],
  options: RunOptions = {},
): Promise<Holder> {
  const name = `holder-${(made += 1)}`;
  const orders = scene.path(name);
  mkdirSync(orders);
  // Each order is a file; "end" is the last one.
  const script =
    `n=1; touch ${orders}/up; while :; do ` +
    `until [ -e ${orders}/$n.sh ] || [ -e ${orders}/end ]; do sleep 0.02; done; ` +
    `[ -e ${orders}/$n.sh ] || exit 0; ` +
    `sh ${orders}/$n.sh >${orders}/$n.text 2>&1; echo $? >${orders}/$n.new; ` +
    `mv ${orders}/$n.new ${orders}/$n.status; n=$((n+1)); done`;
  const run = startJob(scene, name, script, {
    ...options,
    words,
    cwd: repository.path,
    env: { ...GIT_ENV, ...options.env },
  });
  holding.push(run);
  await Promise.race([waitFor(() => existsSync(`${orders}/up`), name), failIfEnded(run)]);
  let count = 0;
  return {
    run,
    inside: async (order) => {
      const base = `${orders}/${(count += 1)}`;
      writeFileSync(`${base}.sh.new`, `fence() { ${FENCE} "$@"; }\n${order}\n`);
      renameSync(`${base}.sh.new`, `${base}.sh`);
      await waitForText(`${base}.status`);
      const [status, text] = await Promise.all([
        Bun.file(`${base}.status`).text(),
        Bun.file(`${base}.text`).text(),
      ]);
      return { status: Number(status), text };
    },
    end: () => {
      writeFileSync(`${orders}/end`, "");
      return run.ended;
    },
  };
}

async function failIfEnded(run: Started): Promise<never> {
  const { status, stderr } = await run.ended;
  throw new Error(`the holder has ended: ${status}: ${stderr}`);
}

/** The lease that pushes are fenced by, and its ref at the remote. */
export const LANE = "refs/watchdog/fence/lane/a";
/** With the lane alone: one ref to be looked at. */
export const PUSH = "fence git-push --key lane:a";

export interface Pushing {
  readonly repository: Repository;
  readonly remote: Repository;
  readonly holder: Holder;
}

/** A run that has `lane:a` and `job:…` and works in a checkout with a fresh remote. */
export async function openPushing(scene: Scene): Promise<Pushing> {
  const repository = await makeRepository(scene);
  const remote = await makeRemote(scene, repository);
  return { repository, remote, holder: await holdLane(scene, repository) };
}

export function holdLane(scene: Scene, repository: Repository): Promise<Holder> {
  return holdCheckout(scene, repository, ["--lane", "a", "--wait", "1m"]);
}

/** What the remote's fence says. */
export async function readFence(
  remote: Repository,
): Promise<Record<string, ReturnType<typeof JSON.parse>>> {
  return JSON.parse(await remote.ask(`cat-file blob ${LANE}`));
}
