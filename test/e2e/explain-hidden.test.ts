/**
 * Where a mount of /proc with `hidepid` shows living processes as gone: that nobody is seen there
 * proves nothing, so that the key of a dead owner stays with whoever is hidden. Needs root, to make
 * such mounts and users.
 */
import { expect } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { asUser, shareBinary } from "../support/as-user.ts";
import { identify } from "../support/guarded-scene.ts";
import { isStillThere, killWithGuard, readChildren, waitForGuard } from "../support/killing.ts";
import { placeOf, waitForBeat } from "../support/lease-seen.ts";
import { readStatusLine, waitForText } from "../support/processes.ts";
import { FIXTURES, openScene, rootTest, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
/** No other test uses these numbers, and no database has them. */
const GROUP = 54_590;
const [ANN, BEN] = [54_591, 54_592];
const HIDDEN = "mount -t proc -o hidepid=2 proc /proc";
const LOCKED = 75;
/** The beat by which main names the command, after that of the grant: before it, anybody may be. */
const NAMES_COMMAND = 2;

const compiler = Bun.which("cc");
if (compiler === null) console.error("needs a C compiler, not run here: a hidden set-uid member");

/** A directory of that group with one run in it. */
async function makeShared(name: string) {
  const place = scene.path(name);
  mkdirSync(place);
  chmodSync(place, 0o1777);
  const binary = await shareBinary(scene);
  const at = { cwd: "/", env: { WATCHDOG_STATE_DIR: `${place}/state`, HOME: "/nonexistent" } };
  const as = (uid: number, words: readonly string[]): string[] => [
    ...asUser(uid, [GROUP]),
    binary,
    ...words,
  ];
  const begin = (uid: number, words: readonly string[]): Started => {
    const ignored = { stdout: "ignore", stderr: "ignore" } as const;
    return scene.startProgram(as(uid, words), { ...at, ...ignored });
  };
  /** What a user is told there, and what a run of his does. */
  const ask = async (uid: number, isHidden: boolean) => {
    const shell = ["unshare", "-m", "sh", "-c", `${isHidden ? HIDDEN : ":"} && exec "$@"`, "sh"];
    const words = ["lease", "explain", "job:theirs", "--json"];
    const answer = await scene.startProgram([...shell, ...as(uid, words)], at).ended;
    const { verdict, rule, because } = JSON.parse(answer.stdout.toString());
    return { shell, said: [verdict, rule, because] };
  };
  const enter = async (uid: number, shell: readonly string[]) => {
    const words = as(uid, ["run", "--name", "theirs", "--", "echo", "mine"]);
    const { status, stdout } = await scene.startProgram([...shell, ...words], at).ended;
    return [status, stdout.toString()];
  };
  const first = begin(ANN, ["run", "--name", "first", "--state-group", `${GROUP}`, "--", "true"]);
  expect((await first.ended).status).toBe(0);
  return { place, held: placeOf(`${place}/state`, "theirs"), begin, ask, enter };
}

rootTest("a child that was born after the last beat is hidden from another user", async () => {
  const { place, held, begin, ask, enter } = await makeShared("born-late");
  const [ready, gate, born] = ["ready", "gate", "born"].map((name) => `${place}/${name}`);
  const waits = `echo x >'${ready}'; until [ -e '${gate}' ]; do sleep 0.05; done`;
  // Whoever was recorded is dead in the end, but for this one.
  const script = `${waits}; sleep 96901 & echo $! >'${born}'`;
  const run = begin(ANN, ["run", "--name", "theirs", "--", "sh", "-c", script]);
  await waitForText(ready ?? "");
  await waitForGuard(run.pid);
  await waitForBeat(held, NAMES_COMMAND);
  const recorded = readChildren(run.pid);
  run.kill("SIGSTOP");
  await waitFor(() => readStatusLine(run.pid, "State")?.startsWith("T"), "a stopped watchdog");
  writeFileSync(gate ?? "", "");
  const child = identify(Number(await waitForText(born ?? "")));
  await killWithGuard(run);
  // One that nobody has collected yet answers the null signal, too.
  const isGone = (pid: number): boolean => !existsSync(`/proc/${pid}`);
  await waitFor(() => recorded.every(isGone), "the end of whoever was recorded");
  const { shell, said } = await ask(BEN, true);
  expect(said).toEqual(["elsewhere", "R6", "members-not-compared"]);
  expect(await enter(BEN, shell)).toEqual([LOCKED, ""]);
  expect(isStillThere(child)).toBe(true);
  process.kill(child.pid, "SIGKILL");
});

if (compiler !== null) {
  rootTest("a member that has become another user's is hidden from its own", async () => {
    const { place, held, begin, ask, enter } = await makeShared("set-uid");
    const [helper, file] = [`${place}/becomes-root`, `${place}/pid`];
    const words = [compiler, "-O2", "-o", helper, `${FIXTURES}/becomes-root.c`];
    expect(Bun.spawnSync(words).success).toBe(true);
    chmodSync(helper, 0o4755);
    const run = begin(ANN, ["run", "--name", "theirs", "--", helper, "40", file]);
    const member = identify(Number(await waitForText(file)));
    await waitForGuard(run.pid);
    await waitForBeat(held, NAMES_COMMAND);
    await killWithGuard(run);
    expect(readFileSync(`/proc/${member.pid}/comm`, "utf8")).toBe("becomes-root\n");
    expect((await ask(ANN, false)).said).toEqual(["orphaned", "R6", "unsignalable"]);
    const { shell, said } = await ask(ANN, true);
    expect(said).toEqual(["elsewhere", "R6", "members-not-compared"]);
    expect(await enter(ANN, shell)).toEqual([LOCKED, ""]);
    expect(isStillThere(member)).toBe(true);
    process.kill(member.pid, "SIGKILL");
  });
}
