/**
 * Pushes of `watchdog fence git-push` that meet others, with real git and a real bare repository:
 * what the remote's fence was a moment ago is worth nothing.
 */
import { afterEach, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { LANE, openPushing, PUSH, type Pushing } from "../support/git-scene.ts";
import { endHolders, HOLDERS_LIMIT_MS, readFence, writeHook } from "../support/git-scene.ts";
import { findProgram } from "../support/outside.ts";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
afterEach(endHolders, HOLDERS_LIMIT_MS);
const LEASE_LOST = 76;
const LIMIT_MS = 120_000;

/** `before git connects` is for the lease to notice, `after it has` for the remote itself. */
describe.each([
  ["before git connects", writeWrapper],
  ["after it has", writePrePush],
] as const)("a fence that moves between the look and the push, %s,", (when, write) => {
  /** Git of PATH, and the hook that it runs when it has connected, before it sends. */
  function prepare(pushing: Pushing, script: string): string {
    const git = `'${findProgram("git")}' --git-dir='${pushing.remote.path}'`;
    const put = `${git} update-ref ${LANE} $(${git} hash-object -w --stdin)`;
    return write(pushing, `put() ( unset GIT_DIR; ${put}; )\n${script}`);
  }

  test("to a later generation refuses, whatever was expected", async () => {
    const pushing = await openPushing(scene);
    const { remote, holder } = pushing;
    expect((await holder.inside(PUSH)).status).toBe(0);
    const fence = await readFence(remote);
    const later = { ...fence, generation: fence["generation"] + 1, run_id: "later" };
    const before = await remote.ask("rev-parse main");
    const path = prepare(pushing, `echo '${JSON.stringify(later)}' | put`);
    const refused = await holder.inside(`git commit -q --allow-empty -m more; ${path} ${PUSH}`);
    expect([refused.status, refused.text]).toEqual([
      LEASE_LOST,
      expect.stringContaining("run later has pushed"),
    ]);
    expect(await remote.ask("rev-parse main")).toBe(before);
    expect((await readFence(remote))["run_id"]).toBe("later");
    await holder.end();
  });

  test("by a push of the same run is tried again, five times at most", async () => {
    const pushing = await openPushing(scene);
    const { repository, remote, holder } = pushing;
    expect((await holder.inside(PUSH)).status).toBe(0);
    const fence = JSON.stringify(await readFence(remote));
    const times = scene.path(`times ${when}`);
    const counts = `sed "s/}/,\\"n\\":$(wc -l <'${times}')}/"`;
    const moves = `echo x >>'${times}'; echo '${fence}' | ${counts} | put`;
    const twice = `[ $(cat '${times}' 2>/dev/null | wc -l) -ge 2 ] || { ${moves}; }`;
    const path = prepare(pushing, twice);
    const order = `git commit -q --allow-empty -m more; ${path} ${PUSH}`;
    const pushed = await holder.inside(order);
    const retries = (text: string) => text.match(/trying again/g)?.length ?? 0;
    expect([pushed.status, retries(pushed.text)]).toEqual([0, 2]);
    expect(await remote.ask("rev-parse main")).toBe(await repository.ask("rev-parse main"));
    writeFileSync(times, "");
    prepare(pushing, moves);
    const outrun = await holder.inside(order);
    expect([outrun.status, retries(outrun.text)]).toEqual([LEASE_LOST, 5]);
    expect(outrun.text).toContain("came first, 6 times");
    expect(readFileSync(times, "utf8")).toBe("x\n".repeat(6));
    await holder.end();
  });
});

function writePrePush({ repository }: Pushing, script: string): string {
  writeHook(`${repository.hooks}/pre-push`, script);
  return "";
}

/** @returns what puts it before git in PATH */
function writeWrapper({ repository }: Pushing, script: string): string {
  const bin = `${repository.path}/.git/bin`;
  mkdirSync(bin, { recursive: true });
  const git = `'${findProgram("git")}'`;
  writeHook(`${bin}/git`, `[ "$1" = push ] || exec ${git} "$@"\n${script}\nexec ${git} "$@"`);
  return `PATH='${bin}':"$PATH"`;
}

test("a lease that is lost between the looks at the remote and the push refuses it", async () => {
  const { repository, remote, holder } = await openPushing(scene);
  const [record, away] = [`${scene.stateDirectory}/leases/lane/a/lease.json`, scene.path("away")];
  // The last thing that is asked of git before it pushes.
  const loses = `[ "$1" != hash-object ] || mv '${record}' '${away}'`;
  const bin = `${repository.path}/.git/losing`;
  mkdirSync(bin);
  writeHook(`${bin}/git`, `${loses}\nexec '${findProgram("git")}' "$@"`);
  const refused = await holder.inside(`PATH='${bin}':"$PATH" ${PUSH}`);
  renameSync(away, record);
  expect([refused.status, refused.text]).toEqual([
    LEASE_LOST,
    expect.stringContaining("fence refused"),
  ]);
  expect(await remote.ask("for-each-ref")).toBe("");
  // The twin: with the lease it goes through.
  expect((await holder.inside(PUSH)).status).toBe(0);
  await holder.end();
});

describe("pushes of one run", () => {
  test(
    "get through all of them, four at once",
    async () => {
      const { repository, remote, holder } = await openPushing(scene);
      for (const name of ["b1", "b2", "b3", "b4"]) await repository.ask(`branch ${name}`);
      const all = ["b1", "b2", "b3", "b4"].map((name) => `${PUSH} origin ${name} & p${name}=$!`);
      const waits = ["b1", "b2", "b3", "b4"].map((name) => `wait $p${name} || failed=1`);
      const pushed = await holder.inside(`${all.join("; ")}; ${waits.join("; ")}; exit $failed`);
      expect([pushed.status, pushed.text]).toEqual([0, expect.any(String)]);
      expect(await remote.ask("for-each-ref --format=%(refname:short) refs/heads")).toBe(
        "b1\nb2\nb3\nb4",
      );
      await holder.end();
    },
    LIMIT_MS,
  );
});
