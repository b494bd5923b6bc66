/**
 * An owner that is killed between the fork and the exec of its command. Until its exec(2) the child
 * has the open file of the lock (O_CLOEXEC) and nothing by which it is known, and on a machine
 * under load that takes its time: here it is stopped there, by a PATH on which each look is long.
 */
import { afterEach, expect, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import {
  killAlone,
  readChildren,
  roundEntry,
  roundVariable,
  waitForGuard,
  waitUntilNobodyCarries,
  waitUntilNoGuard,
} from "../support/killing.ts";
import { stateOf } from "../support/movement.ts";
import {
  findCarriers,
  findGuards,
  killQuietly,
  openScene,
  readCommandLine,
  RELEASE,
} from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;
/** Of 40 that the kernel follows in one path (path_resolution(7)). */
const LINKS = 38;
/** As many as one link has room for (4,095 bytes). */
const DETOURS = 480;
/** The search takes about a second; a variable has room for 128 KiB. */
const DIRECTORIES = 1_500;
const SLOW_PATH = makeSlowPath();
const entries: string[] = [];

afterEach(() => {
  for (const pid of entries.splice(0).flatMap(findCarriers)) killQuietly(pid);
});

/** Each word of it leads to the same directory, on a very long way. */
function makeSlowPath(): string {
  const [deep, links] = [scene.path("deep"), scene.path("links")];
  for (const directory of [deep, links]) mkdirSync(directory);
  const detour = "../deep/".repeat(DETOURS);
  symlinkSync(detour, `${links}/0`);
  for (let at = 1; at < LINKS; at += 1)
    symlinkSync(`${detour}../links/${at - 1}`, `${links}/${at}`);
  const words = Array.from({ length: DIRECTORIES }, () => `${links}/${LINKS - 1}`);
  return [...words, process.env["PATH"]].join(":");
}

interface Unborn {
  readonly pid: number;
  readonly guard: number;
}

/** Starts a run, stops its child before its exec, and kills the run's watchdog. */
async function killBeforeExec(name: string, alsoGuard: boolean): Promise<Unborn> {
  entries.push(roundEntry(name));
  const env = { ...roundVariable(name), PATH: SLOW_PATH };
  const words = ["nohup", RELEASE, "run", "--name", name, "--", "sleep", "92005"];
  const owner = scene.startProgram(words, { env, stdout: "ignore", stderr: "ignore" });
  const guard = await waitForGuard(owner.pid);
  const find = (): number | undefined => {
    const ownWords = readCommandLine(owner.pid);
    return readChildren(owner.pid).find((pid) => readCommandLine(pid) === ownWords);
  };
  const pid = await waitFor(find, "a child before its exec", { stepMs: 1 });
  await stop(pid);
  if (alsoGuard) process.kill(guard, "SIGKILL");
  await killAlone(owner);
  // To a group that stands still and has lost whoever was above it, the kernel sends HUP and CONT
  // (setpgid(2)).
  await stop(pid);
  expect(await isLockFree(name)).toBe(false);
  return { pid, guard };
}

async function stop(pid: number): Promise<void> {
  process.kill(pid, "SIGSTOP");
  await waitFor(() => stateOf(pid) === "T", "it to stand still");
}

async function isLockFree(name: string): Promise<boolean> {
  const lock = `${scene.stateDirectory}/leases/job/${name}/lock`;
  return (await scene.startProgram(["flock", "--nonblock", lock, "true"]).ended).status === 0;
}

test(
  "the next run has the key as soon as the child has let it go, and not before",
  async () => {
    const name = "next";
    const { pid } = await killBeforeExec(name, true);
    const refused = await scene.run(["-v", "--name", name, "--", "true"]);
    const because = expect.stringContaining("being-acquired");
    expect([refused.status, refused.stderr]).toEqual([75, because]);
    expect(stateOf(pid)).toBe("T");

    const next = scene.start(["--name", name, "--", "echo", "begun"]);
    await Bun.sleep(100);
    process.kill(pid, "SIGCONT");
    const ended = await next.ended;
    expect([ended.status, ended.stdout.toString()]).toEqual([0, "begun\n"]);
    await waitUntilNobodyCarries(roundEntry(name));
    expect(await isLockFree(name)).toBe(true);
  },
  LIMIT_MS,
);

test(
  "the guard waits until the child is a program of its own, and ends it",
  async () => {
    const name = "guarded";
    const { pid, guard } = await killBeforeExec(name, false);
    // The child has the pipe of the guard open, too, so that a burial begins after its exec.
    const refused = await scene.run(["--name", name, "--", "true"]);
    expect([refused.status, stateOf(pid)]).toEqual([75, "T"]);
    expect(findGuards(scene.stateDirectory)).toEqual([guard]);
    process.kill(pid, "SIGCONT");
    await waitUntilNoGuard(scene);
    // Whether its new parent has collected it is its own matter.
    expect(stateOf(pid)).toMatch(/^[XZ]$/);
    expect(await isLockFree(name)).toBe(true);
  },
  LIMIT_MS,
);
