/**
 * `watchdog fence git-push`, with real git and real bare repositories: the branch and the remote's
 * fence move together or not at all, and never after a push of a later generation.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { readEnvironment, saveEnvironment, startStranger } from "../support/fencing.ts";
import { GIT_ENV, holdLane, LANE, openPushing, PUSH } from "../support/git-scene.ts";
import { endHolders, HOLDERS_LIMIT_MS } from "../support/git-scene.ts";
import { readFence, type Repository, writeHook } from "../support/git-scene.ts";
import { openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
afterEach(endHolders, HOLDERS_LIMIT_MS);
const [LOCKED, LEASE_LOST, CONFIG_ERROR, TIMEOUT] = [75, 76, 78, 124];
type Parsed = ReturnType<typeof JSON.parse>;

/** Puts another fence there, as anybody may who can write to the remote. */
async function forge(remote: Repository, text: string): Promise<void> {
  const { stdout } = await remote.git("hash-object -w --stdin", { stdin: Buffer.from(text) });
  await remote.ask(`update-ref ${LANE} ${stdout.toString().trim()}`);
}

describe("to a fresh remote", () => {
  test("makes the branch and the fence of each lease, which says whose it is", async () => {
    const { repository, remote, holder } = await openPushing(scene);
    const pushed = await holder.inside("fence git-push origin main");
    expect([pushed.status, pushed.text]).toEqual([0, expect.stringContaining("main -> main")]);
    const refs = (await remote.ask("for-each-ref --format=%(refname)")).split("\n");
    expect(refs).toEqual([
      "refs/heads/main",
      expect.stringMatching(/^refs\/watchdog\/fence\/job\/holder-\d+$/),
      LANE,
    ]);
    const record = JSON.parse(
      readFileSync(`${scene.stateDirectory}/leases/lane/a/lease.json`, "utf8"),
    );
    const fence = await readFence(remote);
    expect(fence).toEqual({
      format: 1,
      key: "lane:a",
      generation: record.generation,
      run_id: record.run_id,
      machine_id: expect.stringMatching(/^[0-9a-f]{32}$/),
      state_directory: scene.stateDirectory,
      push_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect(fence["machine_id"]).not.toBe(record.machine_id);
    expect(await remote.ask("rev-parse main")).toBe(await repository.ask("rev-parse main"));
    await holder.end();
  });

  test("without words pushes the branch that is checked out, to the remote of git", async () => {
    const { repository, remote, holder } = await openPushing(scene);
    await repository.ask("remote rename origin upstream");
    await repository.ask("config remote.pushDefault upstream");
    await repository.ask("checkout -q -b topic/x");
    expect((await holder.inside(PUSH)).status).toBe(0);
    expect(await remote.ask("for-each-ref --format=%(refname) refs/heads")).toBe(
      "refs/heads/topic/x",
    );
    await repository.ask("checkout -q --detach");
    const detached = await holder.inside(PUSH);
    expect([detached.status, detached.text]).toEqual([
      CONFIG_ERROR,
      expect.stringContaining("HEAD is detached"),
    ]);
    await holder.end();
  });
});

describe("again", () => {
  test("the fence is another blob each time, also where no branch moves", async () => {
    const { remote, holder } = await openPushing(scene);
    const seen = new Set<string>();
    for (const order of [PUSH, PUSH, `git commit -q --allow-empty -m more; ${PUSH}`]) {
      expect((await holder.inside(order)).status).toBe(0);
      seen.add(await remote.ask(`rev-parse ${LANE}`));
    }
    expect(seen.size).toBe(3);
    await holder.end();
  });

  test("by the next run the number grows, and the earlier run is refused here", async () => {
    const { repository, remote, holder } = await openPushing(scene);
    const saved = scene.path("earlier.env");
    await holder.inside(`${PUSH}; ${saveEnvironment(saved)}`);
    const env = { ...(await readEnvironment(saved)), ...GIT_ENV };
    const { generation } = await readFence(remote);
    await holder.end();
    const next = await holdLane(scene, repository);
    expect((await next.inside(PUSH)).status).toBe(0);
    expect((await readFence(remote))["generation"]).toBe(generation + 1);
    const words = ["git-push", "--key", "lane:a", "origin", "main"];
    const stale = startStranger(scene, env, words, { cwd: repository.path });
    const { status, stderr } = await stale.ended;
    expect([status, stderr]).toEqual([LEASE_LOST, expect.stringContaining("fence refused")]);
    await next.end();
  });
});

describe("is refused, and nothing moves there,", () => {
  async function expectRefused(
    change: (fence: Record<string, Parsed>) => string,
    { status, says }: { status: number; says: string },
  ): Promise<void> {
    const { remote, holder } = await openPushing(scene);
    expect((await holder.inside(PUSH)).status).toBe(0);
    await forge(remote, change(await readFence(remote)));
    const before = await remote.ask("for-each-ref");
    const refused = await holder.inside(`git commit -q --allow-empty -m more; ${PUSH}`);
    const lines = refused.text.split("\n").filter((line) => line.startsWith("watchdog:"));
    expect([refused.status, lines]).toEqual([status, [expect.stringContaining(says)]]);
    expect(await remote.ask("for-each-ref")).toBe(before);
    await holder.end();
  }

  test("where a later generation has pushed", () =>
    expectRefused(
      (fence) => JSON.stringify({ ...fence, generation: fence["generation"] + 1, run_id: "later" }),
      { status: LEASE_LOST, says: "run later has pushed" },
    ));

  test("where another run of the same number has", () =>
    expectRefused((fence) => JSON.stringify({ ...fence, run_id: "other" }), {
      status: LEASE_LOST,
      says: "of the same number",
    }));

  test("where another machine has, whatever its number", () =>
    expectRefused(
      (fence) => JSON.stringify({ ...fence, machine_id: "f".repeat(32), generation: 1 }),
      {
        status: CONFIG_ERROR,
        says: `hint: if nobody else pushes any more: git push REMOTE :${LANE}`,
      },
    ));

  test("where another state directory has, whatever its number", () =>
    expectRefused(
      (fence) => JSON.stringify({ ...fence, state_directory: "/other", generation: 1 }),
      {
        status: CONFIG_ERROR,
        says: "of another state directory (/other",
      },
    ));

  test("where the fence cannot be read", () =>
    expectRefused(() => "generation 1\n", { status: CONFIG_ERROR, says: "it is no JSON" }));

  test("where it is no blob", async () => {
    const { remote, holder } = await openPushing(scene);
    expect((await holder.inside(PUSH)).status).toBe(0);
    await remote.ask(`update-ref ${LANE} main`);
    const refused = await holder.inside(PUSH);
    expect([refused.status, refused.text]).toEqual([
      CONFIG_ERROR,
      expect.stringContaining("it is a commit, expected a blob"),
    ]);
    await holder.end();
  });

  test("outside of every run", async () => {
    const { repository, remote, holder } = await openPushing(scene);
    const outside = startStranger(scene, GIT_ENV, ["git-push"], { cwd: repository.path });
    const { status, stderr } = await outside.ended;
    expect([status, stderr]).toEqual([LEASE_LOST, expect.stringContaining("not inside any run")]);
    expect(await remote.ask("for-each-ref")).toBe("");
    await holder.end();
  });

  test("while the lease is being granted", async () => {
    const { holder } = await openPushing(scene);
    const fence = `${scene.stateDirectory}/leases/lane/a/fence`;
    const refused = await holder.inside(`flock -x '${fence}' sh -c '"$W" ${PUSH} --wait 0'`);
    expect(refused.status).toBe(LOCKED);
    await holder.end();
  });
});

describe("is git's own matter", () => {
  test("a branch that is no fast-forward: git's status and words, the fence stays", async () => {
    const { repository, remote, holder } = await openPushing(scene);
    await holder.inside(PUSH);
    const before = await remote.ask("for-each-ref");
    await repository.ask("commit -q --amend --allow-empty -m other");
    const plain = await repository.git("push origin main");
    const refused = await holder.inside(`${PUSH} origin main`);
    expect([refused.status, plain.status]).toEqual([1, 1]);
    expect(refused.text).toContain("[rejected]");
    expect(refused.text).not.toContain("watchdog:");
    expect(await remote.ask("for-each-ref")).toBe(before);
    await holder.end();
  });

  test("a remote that is not there, a branch that is not, no repository, no git", async () => {
    const { holder } = await openPushing(scene);
    for (const [order, status, says] of [
      [`${PUSH} /nowhere main`, 128, "does not appear to be a git repository"],
      [`${PUSH} origin nothing`, 1, "src refspec nothing does not match any"],
      [`cd /; ${PUSH}`, 128, "not a git repository"],
      [`PATH=/nowhere; ${PUSH}`, 127, "watchdog: error: git: "],
    ] as const) {
      const failed = await holder.inside(order);
      expect([order, failed.status, failed.text]).toEqual([
        order,
        status,
        expect.stringContaining(says),
      ]);
    }
    await holder.end();
  });

  test("a remote with two addresses is refused: a fence is of one", async () => {
    const { repository, remote, holder } = await openPushing(scene);
    await repository.ask(`remote set-url --add --push origin ${remote.path}`);
    expect((await holder.inside(PUSH)).status).toBe(0);
    await repository.ask("remote set-url --add --push origin /another");
    const refused = await holder.inside(PUSH);
    expect([refused.status, refused.text]).toEqual([
      CONFIG_ERROR,
      expect.stringContaining("2 addresses"),
    ]);
    await holder.end();
  });
});

describe("a push that hangs", () => {
  test("keeps every grant waiting until it has ended, also when watchdog is killed", async () => {
    const { repository, holder } = await openPushing(scene);
    const [gate, up, pid] = ["gate", "gate.up", "gate.pid"].map((name) => scene.path(name));
    const waits = `until [ -e '${gate}' ]; do sleep 0.02; done`;
    writeHook(`${repository.hooks}/pre-push`, `echo up >'${up}'; ${waits}`);
    const fence = `${scene.stateDirectory}/leases/lane/a/fence`;
    const isFree = async (): Promise<boolean> => {
      const { ended } = scene.startProgram(["flock", "-n", "-x", fence, "true"]);
      return (await ended).status === 0;
    };
    const pushing = holder.inside(`"$W" ${PUSH} & echo $! >'${pid}'; wait $!`);
    await waitFor(() => Bun.file(up ?? "").exists(), "the hook");
    expect(await isFree()).toBe(false);
    process.kill(Number(readFileSync(pid ?? "", "utf8")), "SIGKILL");
    expect((await pushing).status).toBe(128 + 9);
    expect(await isFree()).toBe(false);
    writeFileSync(gate ?? "", "");
    await waitFor(isFree, "the fence to be free");
    await holder.end();
  });

  test("is ended at --timeout with all that it has started, and nothing was written", async () => {
    const { repository, remote, holder } = await openPushing(scene);
    writeHook(`${repository.hooks}/pre-push`, "sleep 600");
    const ended = await holder.inside(`${PUSH} --timeout 1s`);
    expect(ended.status).toBe(TIMEOUT);
    expect(await remote.ask("for-each-ref")).toBe("");
    await holder.end();
  });

  test("gets the signals that are sent to watchdog, after other gits that have ended", async () => {
    const { repository, holder } = await openPushing(scene);
    const up = scene.path("hook.up");
    writeHook(`${repository.hooks}/pre-push`, `echo up >'${up}'; exec sleep 600`);
    const pid = scene.path("push.pid");
    const pushing = holder.inside(`"$W" ${PUSH} & echo $! >'${pid}'; wait $!`);
    await waitFor(() => Bun.file(up).exists(), "the hook");
    process.kill(Number(readFileSync(pid, "utf8")), "SIGTERM");
    expect((await pushing).status).toBe(128 + 15);
    await holder.end();
  });
});

test("the state directory is that of the run's variable, and --state-dir beats it", async () => {
  const { repository, holder } = await openPushing(scene);
  const elsewhere = `export WATCHDOG_STATE_DIR='${scene.path("elsewhere")}'`;
  expect((await holder.inside(`${elsewhere}; ${PUSH}`)).status).toBe(LEASE_LOST);
  const done = await holder.inside(`${elsewhere}; ${PUSH} --state-dir '${scene.stateDirectory}'`);
  expect(done.status).toBe(0);
  await holder.end();
  expect(await repository.ask("status --porcelain")).toBe("");
});
