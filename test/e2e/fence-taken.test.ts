/**
 * A key that is free, with an operation still in progress under its fence: who has the fence is
 * told by every command that is asked about the key, and a start waits for it as it was told to,
 * with nothing held meanwhile.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync } from "node:fs";
import { askJson } from "../support/ask.ts";
import { FENCE, startJob } from "../support/fencing.ts";
import { placeOf } from "../support/lease-seen.ts";
import { findByCommand } from "../support/processes.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LOCKED = 75;

/** A run that has ended and has left a sleep of so many seconds under its fence: its pid. */
async function leaveFenced(name: string, seconds: number): Promise<number> {
  const command = `sleep ${seconds}`;
  const begun = `until pgrep -fx "${command}" >/dev/null; do :; done`;
  const script = `${FENCE} -- sh -c '${command} >/dev/null 2>&1 & ${begun}'`;
  const { ended } = startJob(scene, name, script, { words: ["--leftovers", "leave"] });
  expect((await ended).status).toBe(0);
  const [pid = 0] = findByCommand(scene, command);
  return pid;
}

/** As the kernel lists it: who tries for it himself is in the way of others. */
function isLocked(path: string): boolean {
  const { ino } = statSync(path);
  return readFileSync("/proc/locks", "latin1").includes(`:${ino} 0 EOF`);
}

async function ask(...words: string[]): Promise<string> {
  const { ended } = scene.startProgram([RELEASE, ...words]);
  return (await ended).stdout.toString();
}

function enter(name: string, ...options: string[]) {
  return scene.start(["--name", name, "--log", "off", ...options, "--", "echo", "in"]);
}

test("who has the fence of a free key is told by every command that is asked", async () => {
  const pid = await leaveFenced("told", 94101);
  const named = `${pid} sleep 94101`;
  const told = await askJson(scene, ["lease", "explain", "job:told"]);
  expect(told).toMatchObject({ verdict: "free", because: "released" });
  expect(told["signals"]).toContainEqual({ name: "fence-taken", says: "yes", raw: named });
  const because = "fenced-operation";
  expect(told["newcomer"]).toMatchObject([
    { on_survivors: "kill", does: "refuse", because, outcome: "locked", can_wait: true },
    { on_survivors: "wait", does: "wait", because, outcome: null },
    { on_survivors: "refuse", does: "refuse", because, outcome: "locked", can_wait: true },
  ]);
  expect(told["plans"]).toMatchObject([{ action: "none", because }]);
  expect(await askJson(scene, ["lease", "show", "job:told"])).toMatchObject({
    verdict: "free",
    fence_taken: "yes",
    fenced_by: [{ pid, command: "sleep 94101" }],
  });
  const explained = await ask("lease", "explain", "job:told");
  expect(explained).toContain(`fence     taken by ${named}`);
  expect(explained).toContain("kill    waits 30 s for whoever has the fence, or as --wait says");
  expect(explained).not.toContain("takes the lease");
  for (const words of [
    ["repair"],
    ["repair", "job:told"],
    ["status"],
    ["lease", "show", "job:told"],
  ]) {
    expect([words, (await ask(...words)).includes(String(pid))]).toEqual([words, true]);
  }
  process.kill(pid, "SIGKILL");
  const isFree = async () =>
    (await askJson(scene, ["lease", "show", "job:told"]))["fence_taken"] === "no";
  await waitFor(isFree, "its end");
  expect(await ask("lease", "explain", "job:told")).toContain("takes the lease (released)");
  expect(await ask("repair")).toBe("nothing is to be repaired\n");
});

describe("a start of such a key", () => {
  test("is refused at the end of --wait, names the holder, and held nothing", async () => {
    const pid = await leaveFenced("waits", 94102);
    const { lock } = placeOf(scene.stateDirectory, "waits");
    const began = performance.now();
    const started = enter("waits", "--wait", "3s", "--lane", "with");
    const other = placeOf(scene.stateDirectory, "with", "lane").lock;
    await waitFor(() => existsSync(other), "the first look");
    let [free, isOver] = [0, false];
    void started.ended.then(() => (isOver = true));
    await waitFor(() => {
      free += isLocked(lock) || isLocked(other) ? 0 : 1;
      return isOver;
    }, "the end of the wait");
    const ended = await started.ended;
    process.kill(pid, "SIGKILL");
    expect([ended.status, ended.stdout.toString()]).toEqual([LOCKED, ""]);
    expect(performance.now() - began).toBeLessThan(15_000);
    expect(ended.stderr).toContain(`operation in progress under its fence: ${pid} sleep 94102`);
    // One that keeps a lock while it waits lets it go at its end only: one look or two.
    expect(free).toBeGreaterThan(4);
  });

  test("is refused at once with --on-survivors refuse, and is held by nobody's run", async () => {
    const name = "at-once";
    const pid = await leaveFenced(name, 94103);
    const began = performance.now();
    const words = ["--result-file", scene.path(`${name}.json`)];
    const ended = await enter(name, "--on-survivors", "refuse", ...words).ended;
    expect(ended.status).toBe(LOCKED);
    expect(performance.now() - began).toBeLessThan(10_000);
    const record = JSON.parse(await Bun.file(scene.path(`${name}.json`)).text());
    const because = "fenced-operation";
    expect(record.held_by).toMatchObject({ key: `job:${name}`, because, run_id: null, pid });
    process.kill(pid, "SIGKILL");
    await waitFor(() => !isLocked(placeOf(scene.stateDirectory, name).fence), "its end");
  });

  test("begins when the operation has ended", async () => {
    const pid = await leaveFenced("begins", 94104);
    const started = enter("begins", "--on-survivors", "wait");
    const { lock } = placeOf(scene.stateDirectory, "begins");
    await waitFor(() => isLocked(lock), "a look");
    process.kill(pid, "SIGKILL");
    const ended = await started.ended;
    expect([ended.status, ended.stdout.toString()]).toEqual([0, "in\n"]);
  });

  test("that is a part of the operation is refused at once: it would wait for itself", async () => {
    const gate = scene.path("part.gate");
    const start = 'exec "$W" run --name part --wait 60s -- echo in';
    const inner = `until [ -e '${gate}' ]; do sleep 0.02; done; ${start}`;
    const words = ["--leftovers", "leave"];
    const log = scene.path("part.log");
    const script = `${FENCE} -- sh -c '(${inner.replaceAll("'", '"')}) >"${log}" 2>&1 & :'`;
    const { ended } = startJob(scene, "part", script, { words });
    expect((await ended).status).toBe(0);
    await Bun.write(gate, "");
    const text = await waitFor(async () => {
      const said = await Bun.file(log).text();
      return said.includes("\n") && said;
    }, "an answer");
    expect(text).toContain("watchdog: not started: job:part has an operation in progress under");
    expect(text).toContain("this run is a part of it: it would wait for itself");
  });
});
