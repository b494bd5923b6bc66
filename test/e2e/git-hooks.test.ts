/**
 * The hooks of `watchdog fence install-git-hooks`, with real git: who may commit in a checkout, and
 * that nothing of what was there before is lost.
 */
import { afterEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { readEnvironment, saveEnvironment, startJob } from "../support/fencing.ts";
import {
  endHolders,
  holdCheckout,
  HOLDERS_LIMIT_MS,
  makeRemote,
  makeRepository,
  type Repository,
  repositoryAt,
} from "../support/git-scene.ts";
import { killWithGuard, waitUntilNoGuard } from "../support/killing.ts";
import { inState } from "../support/own-state.ts";
import { openScene, readCommandLine, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
afterEach(endHolders, HOLDERS_LIMIT_MS);
const HOOKS = ["pre-commit", "pre-push", "reference-transaction"];
const COMMIT = "commit --allow-empty -m more";
const LIMIT_MS = 120_000;

async function makeGuarded(words: readonly string[] = []): Promise<Repository> {
  const repository = await makeRepository(scene);
  const { status, stderr } = await repository.install(words);
  expect([status, stderr]).toEqual([0, ""]);
  return repository;
}

function countCommits(repository: Repository): Promise<string> {
  return repository.ask("rev-list --count HEAD");
}

describe("while nobody holds the checkout", () => {
  test("anybody commits, and nothing is made for a key that was never held", async () => {
    const own = inState(scene, "never");
    const repository = repositoryAt(own, (await makeRepository(scene)).path);
    expect((await repository.install()).status).toBe(0);
    const committed = await repository.git(COMMIT);
    expect([committed.status, committed.stderr]).toEqual([0, ""]);
    expect(existsSync(own.stateDirectory)).toBe(false);
  });

  test("anybody commits after the run that held it", async () => {
    const repository = await makeGuarded();
    const holder = await holdCheckout(scene, repository);
    expect((await repository.git(COMMIT)).status).toBe(1);
    await holder.end();
    expect((await repository.git(COMMIT)).status).toBe(0);
    // And a look makes nothing for a checkout beside it that nobody has held.
    const other = await makeGuarded();
    expect((await other.git(COMMIT)).status).toBe(0);
    const keys = readdirSync(`${scene.stateDirectory}/leases/worktree`);
    expect(keys.filter((name) => name.includes("repository"))).not.toContain(
      encodeURIComponent(other.path),
    );
  });
});

describe("while a run holds the checkout", () => {
  test(
    "an outsider is refused by one line that names the holder, and nothing is written",
    async () => {
      const repository = await makeGuarded();
      const remote = await makeRemote(scene, repository);
      await repository.ask("branch other");
      const holder = await holdCheckout(scene, repository);
      for (const words of [COMMIT, "branch new", "reset --hard HEAD", "branch -D other"]) {
        const refused = await repository.git(words);
        expect([words, refused.status === 0]).toEqual([words, false]);
        const lines = refused.stderr.split("\n").filter((line) => line.includes("watchdog"));
        expect(lines).toHaveLength(1);
        expect(lines[0]).toMatch(
          /^watchdog: (pre-commit|reference-transaction) refused: worktree:\S+ is held by run /,
        );
        expect(lines[0]).toMatch(
          / generation 1 \(\S+@\S+, pid \d+: .* and this is not inside it .*--no-verify/,
        );
      }
      const pushed = await repository.git("push origin main");
      expect([pushed.status, pushed.stderr]).toEqual([
        1,
        expect.stringContaining("watchdog: pre-push refused: worktree:"),
      ]);
      expect(await countCommits(repository)).toBe("1");
      expect(await repository.ask("for-each-ref --format=%(refname)")).toBe(
        "refs/heads/main\nrefs/heads/other",
      );
      expect(await remote.ask("for-each-ref")).toBe("");
      await holder.end();
    },
    LIMIT_MS,
  );

  test(
    "its own processes commit and push, and those of runs within it",
    async () => {
      const repository = await makeGuarded();
      await makeRemote(scene, repository);
      const holder = await holdCheckout(scene, repository);
      const nested = `"$W" run --log off`;
      for (const order of [
        `git ${COMMIT}`,
        `${nested} --name inner -- git ${COMMIT}`,
        `${nested} --no-lease -- git ${COMMIT}`,
        "git push origin main",
        "fence -- git branch new",
      ]) {
        const done = await holder.inside(order);
        expect([order, done.status, done.text.includes("watchdog:")]).toEqual([order, 0, false]);
      }
      expect(await countCommits(repository)).toBe("4");
      await holder.end();
    },
    LIMIT_MS,
  );

  test("who carries the environment of an earlier run is an outsider", async () => {
    const repository = await makeGuarded();
    const saved = scene.path("earlier.env");
    const words = ["--worktree", repository.path];
    await startJob(scene, "earlier", saveEnvironment(saved), { words }).ended;
    const env = await readEnvironment(saved);
    const holder = await holdCheckout(scene, repository);
    const stale = await repository.git(COMMIT, { env });
    expect([stale.status, stale.stderr]).toEqual([1, expect.stringContaining("is held by run")]);
    await holder.end();
  });

  test(
    "--no-verify passes by every one of the hooks",
    async () => {
      const repository = await makeGuarded();
      await makeRemote(scene, repository);
      await repository.ask("checkout -q -b side");
      await repository.ask("commit -q --allow-empty -m side");
      await repository.ask("checkout -q main");
      await repository.ask("config alias.ci commit\\ --no-verify");
      const holder = await holdCheckout(scene, repository);
      for (const words of [
        "commit --allow-empty --no-verify -m a",
        "commit --allow-empty -nm b",
        "merge --no-verify --no-edit side",
        "push --no-verify origin main",
        "-c core.hooksPath=/dev/null branch new",
      ]) {
        const done = await repository.git(words);
        expect([words, done.status, done.stderr.includes("watchdog:")]).toEqual([words, 0, false]);
      }
      expect((await repository.git("commit --allow-empty -m --no-verify")).status).toBe(1);
      await holder.end();
    },
    LIMIT_MS,
  );

  test("a checkout below it or beside it is another one: a linked worktree", async () => {
    const repository = await makeGuarded();
    const linked = repositoryAt(scene, `${repository.path}/linked`);
    await repository.ask("worktree add -q linked -b linked");
    const inMain = await holdCheckout(scene, repository);
    expect((await linked.git(COMMIT)).status).toBe(0);
    expect((await repository.git(COMMIT)).status).toBe(1);
    await inMain.end();
    const inLinked = await holdCheckout(scene, linked);
    expect((await linked.git(COMMIT)).status).toBe(1);
    expect((await repository.git(COMMIT)).status).toBe(0);
    expect((await inLinked.inside(`git ${COMMIT}`)).status).toBe(0);
    await inLinked.end();
  });

  test("who has no WATCHDOG_STATE_DIR is asked all the same: the hooks know it", async () => {
    const repository = await makeGuarded();
    const holder = await holdCheckout(scene, repository);
    for (const variable of [undefined, scene.path("elsewhere")]) {
      const env = { WATCHDOG_STATE_DIR: variable };
      expect((await repository.git(COMMIT, { env })).status).toBe(1);
    }
    await holder.end();
  });

  test("the way into it does not matter: a directory below, a link", async () => {
    const repository = await makeGuarded();
    mkdirSync(`${repository.path}/deep/er`, { recursive: true });
    symlinkSync(repository.path, scene.path("way"));
    const holder = await holdCheckout(scene, repository);
    for (const cwd of [`${repository.path}/deep/er`, scene.path("way")]) {
      expect((await repository.git(COMMIT, { cwd })).status).toBe(1);
    }
    await holder.end();
  });
});

describe("a key of --key", () => {
  test("is looked at beside that of the checkout", async () => {
    const repository = await makeGuarded(["--key", "lane:it's", "--key", "lane:b"]);
    const holder = await holdCheckout(scene, repository, ["--lane", "it's"]);
    const refused = await repository.git(COMMIT);
    expect([refused.status, refused.stderr]).toEqual([
      1,
      expect.stringContaining("watchdog: pre-commit refused: lane:it's is held by run"),
    ]);
    expect((await holder.inside(`git ${COMMIT}`)).status).toBe(0);
    await holder.end();
    expect((await repository.git(COMMIT)).status).toBe(0);
  });
});

describe("an owner that was killed", () => {
  test(
    "hinders while a process of its tree lives, and nobody afterwards",
    async () => {
      const repository = await makeGuarded();
      const silent = { stdout: "ignore", stderr: "ignore" } as const;
      const holder = await holdCheckout(scene, repository, ["--worktree", "."], silent);
      const { text } = await holder.inside("sleep 600 >/dev/null 2>&1 & echo $!");
      await killWithGuard(holder.run);
      const refused = await repository.git(COMMIT);
      expect([refused.status, refused.stderr]).toEqual([
        1,
        expect.stringContaining("whose watchdog is dead"),
      ]);
      for (const pid of scene.findProcesses()) process.kill(pid, "SIGKILL");
      await waitFor(() => !existsSync(`/proc/${Number(text)}`), "the survivor to be gone");
      await waitFor(() => scene.findProcesses().length === 0, "the tree to be gone");
      const committed = await repository.git(COMMIT);
      expect([committed.status, committed.stderr]).toEqual([0, ""]);
      await waitUntilNoGuard(scene);
    },
    LIMIT_MS,
  );
});

describe("a key that somebody is just acquiring", () => {
  test(
    "is looked at again for a moment, and refused where it stays so",
    async () => {
      const repository = await makeGuarded();
      await (await holdCheckout(scene, repository)).end();
      const [gate, up] = [scene.path("acquired"), scene.path("acquiring")];
      const waits = `touch '${up}'; until [ -e '${gate}' ]; do sleep 0.02; done`;
      const starter = scene.startProgram(["flock", "-x", lockOf(repository), "sh", "-c", waits]);
      await waitFor(() => existsSync(up), "the lock to be taken");
      const refused = await repository.git(COMMIT);
      expect([refused.status, refused.stderr]).toEqual([
        1,
        expect.stringContaining("is being acquired by somebody"),
      ]);
      const committing = repository.git(COMMIT);
      const asks = (): boolean =>
        scene.findProcesses().some((pid) => readCommandLine(pid).includes("__git-hook"));
      await waitFor(asks, "the hook to ask");
      writeFileSync(gate, "");
      expect((await committing).status).toBe(0);
      await starter.ended;
    },
    LIMIT_MS,
  );
});

describe("what cannot be told is refused", () => {
  test("a lock that cannot be asked", async () => {
    const repository = await makeGuarded();
    await (await holdCheckout(scene, repository)).end();
    const lock = lockOf(repository);
    rmSync(lock);
    mkdirSync(lock);
    const refused = await repository.git(COMMIT);
    expect([refused.status, refused.stderr]).toEqual([
      1,
      expect.stringContaining("nobody can tell"),
    ]);
  });

  test("a state directory that is not to be trusted", async () => {
    const own = inState(scene, "open");
    mkdirSync(own.stateDirectory);
    chmodSync(own.stateDirectory, 0o777);
    const repository = repositoryAt(own, (await makeRepository(scene)).path);
    expect((await repository.install()).status).toBe(0);
    const refused = await repository.git(COMMIT);
    expect([refused.status, refused.stderr]).toEqual([
      1,
      expect.stringContaining("others may write"),
    ]);
    expect((await repository.git(`${COMMIT} --no-verify`)).status).toBe(0);
  });

  test("a watchdog that is gone; one of PATH takes its place", async () => {
    const repository = await makeGuarded();
    for (const hook of HOOKS) {
      const path = `${repository.hooks}/${hook}`;
      writeFileSync(path, readFileSync(path, "utf8").replace(RELEASE, "/nowhere/watchdog"));
    }
    const refused = await repository.git(COMMIT);
    expect([refused.status, refused.stderr]).toEqual([
      1,
      expect.stringContaining("there is no watchdog any more"),
    ]);
    const bin = scene.path("bin");
    mkdirSync(bin);
    symlinkSync(RELEASE, `${bin}/watchdog`);
    const env = { PATH: `${bin}:${process.env["PATH"]}` };
    expect((await repository.git(COMMIT, { env })).status).toBe(0);
  });
});

function lockOf({ path }: Repository): string {
  const kind = `${scene.stateDirectory}/leases/worktree`;
  const name = readdirSync(kind).find((one) => decodeURIComponent(one) === path);
  return `${kind}/${name}/lock`;
}
