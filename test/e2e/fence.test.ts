/**
 * `watchdog fence`: an operation runs only while the run around it still holds its leases, and no
 * grant overlaps it.: an owner that has lost its lease learns so before it writes.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { waitForHolder } from "../support/ask.ts";
import {
  FENCE,
  readEnvironment,
  saveEnvironment,
  startJob,
  startStranger,
} from "../support/fencing.ts";
import { killWithGuard } from "../support/killing.ts";
import { newcomer, placeOf, stealRecord, waitForBeat } from "../support/lease-seen.ts";
import { findProgram } from "../support/outside.ts";
import { findByCommand, readLines, waitForCommand, waitForText } from "../support/processes.ts";
import { openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const [LOCKED, LEASE_LOST] = [75, 76];
/** No beat of the thread's after the first ones: nothing repairs what a test has broken. */
const RARE = ["--heartbeat-interval", "1h"];
/** A job that is to be killed: what it leaves behind keeps no pipe of ours open. */
const SILENT = { stdout: "ignore", stderr: "ignore" } as const;

/** A script that waits for a file of the scene. */
function waitsFor(path: string): string {
  return `until [ -e '${path}' ]; do sleep 0.02; done`;
}

async function runJob(name: string, script: string, words: readonly string[] = []) {
  const { ended } = startJob(scene, name, script, { words });
  const { status, stdout, stderr } = await ended;
  return { status, stdout: stdout.toString(), stderr };
}

describe("an operation of the run", () => {
  test("runs, with its own output and status, and nothing is said", async () => {
    const script = `${FENCE} -- sh -c 'cat; echo err >&2; exit 7'`;
    const { ended } = startJob(scene, "plain", script, { stdin: Buffer.from("given") });
    const { status, stdout, stderr } = await ended;
    expect([status, stdout.toString(), stderr]).toEqual([7, "given", "err\n"]);
  });

  test("gets every byte of its words and environment, and the caller's descriptors", async () => {
    const shows = 'printf "%s|" "$@"; printenv ODD; cat <&5';
    const script =
      `export ODD="$(printf 'x\\377y')"; ` +
      `${FENCE} -- sh -c '${shows}' sh "$(printf 'a\\377b')" "" -- -v 5<<'END'\nfive\nEND\n`;
    const { ended } = startJob(scene, "bytes", script);
    expect((await ended).stdout.toString("latin1")).toBe("a\xffb||--|-v|x\xffy\nfive\n");
  });

  test("keeps the process group and the session of its job", async () => {
    const shows = "ps -o pgid=,sid= -p $$";
    const { stdout } = await runJob("group", `${shows}; ${FENCE} -- sh -c '${shows}; :'`);
    const [outside, inside] = stdout.split("\n").map((line) => line.trim());
    expect(outside).toMatch(/\d/);
    expect(inside).toBe(outside as string);
  });

  test("hands its own death on: by the same signal", async () => {
    const killed = await runJob("killed", `${FENCE} -- sh -c 'kill -USR1 $$'; exit $?`);
    expect(killed.status).toBe(128 + 10);
  });

  test("that cannot be started is 127 or 126, as a shell has it", async () => {
    const plain = scene.path("plain.txt");
    writeFileSync(plain, "text\n", { mode: 0o600 });
    for (const [program, status] of [
      ["no-such-program", 127],
      [plain, 126],
    ] as const) {
      const refused = await runJob("missing", `${FENCE} -- ${program}`);
      expect(refused.status).toBe(status);
      expect(refused.stderr).toStartWith(`watchdog: error: ${program}: `);
    }
  });

  test("may be of several leases, and of a run around this one with --key", async () => {
    const nested = `"$W" run --name inner --log off -- sh -c`;
    const inner = `${FENCE} --key job:outer -v -- true; ${FENCE} -v -- true`;
    const script = `${FENCE} -v -- true; ${nested} '${inner}'`;
    const several = await runJob("outer", script, ["--lane", "gpu"]);
    expect([several.status, several.stderr]).toEqual([
      0,
      "watchdog: fence held: job:outer 1, lane:gpu 1\n" +
        "watchdog: fence held: job:outer 1\n" +
        "watchdog: fence held: job:inner 1\n",
    ]);
  });
});

describe("the bare check", () => {
  test("is 0 for the owner, and says that a grant may follow", async () => {
    const checked = await runJob("bare", FENCE);
    expect([checked.status, checked.stdout]).toEqual([0, ""]);
    expect(checked.stderr).toMatch(
      /^watchdog: fence: current at this moment: job:bare 1; this is check-then-act, [^\n]+\n$/,
    );
  });

  test("holds nothing afterwards", async () => {
    const { fence } = placeOf(scene.stateDirectory, "unheld");
    const script = `${FENCE}; flock -n -x '${fence}' echo free`;
    expect(await runJob("unheld", script)).toMatchObject({ status: 0, stdout: "free\n" });
  });
});

describe("is refused with 76 and one line, and nothing runs,", () => {
  /** @param change  what happens to the lease while its job waits, after the last beat */
  async function expectRefused(
    name: string,
    { change, says }: { change: () => void; says: RegExp },
  ): Promise<void> {
    const [gate, ran] = [scene.path(`${name}.gate`), scene.path(`${name}.ran`)];
    const script = `${waitsFor(gate)}; ${FENCE} -- touch '${ran}'`;
    const run = startJob(scene, name, script, { words: RARE });
    await waitForBeat(place(name), 3);
    change();
    writeFileSync(gate, "");
    const { status, stderr } = await run.ended;
    expect([status, existsSync(ran)]).toEqual([LEASE_LOST, false]);
    const [line] = stderr.split("\n");
    expect(line).toMatch(/^watchdog: fence refused: /);
    expect(line).toMatch(says);
  }

  const place = (name: string) => placeOf(scene.stateDirectory, name);

  test("outside any run, with and without --key, and also the bare check", async () => {
    for (const words of [[], ["--key", "job:x"], ["--", "true"]]) {
      const { status, stderr } = await scene.startProgram([RELEASE, "fence", ...words]).ended;
      expect([status, stderr]).toEqual([
        LEASE_LOST,
        "watchdog: fence refused: this is not inside any run of watchdog " +
          "(WATCHDOG_RUN_PATH names none)\n",
      ]);
    }
  });

  test("without a lease, and where the number in the environment is another", async () => {
    const leaseless = await runJob("leaseless", `${FENCE} -- echo ran`, ["--no-lease"]);
    expect([leaseless.status, leaseless.stdout]).toEqual([LEASE_LOST, ""]);
    expect(leaseless.stderr).toMatch(/^watchdog: fence refused: .* holds no lease .*\n$/);
    const number = await runJob("number", `WATCHDOG_GENERATION=2 ${FENCE} -- echo ran`);
    expect([number.status, number.stdout]).toEqual([LEASE_LOST, ""]);
    expect(number.stderr).toMatch(/generation 1 \(.*\), not for .*, generation 2\n$/);
  });

  test("for a key that this run does not have", async () => {
    const script = `${FENCE} --key lane:nobody -- true && exit 1; [ $? -eq ${LEASE_LOST} ]`;
    expect((await runJob("nokey", script)).status).toBe(0);
  });

  test("A-62: where the record is missing", async () => {
    const change = () => rmSync(place("gone").record);
    await expectRefused("gone", { change, says: /has no record/ });
  });

  test("A-62: where the record is empty", async () => {
    const change = () => writeFileSync(place("empty").record, "");
    await expectRefused("empty", { change, says: /cannot be read: it is empty/ });
  });

  test("A-62: where the record is a link to a sound one", async () => {
    const { record } = place("linked");
    const change = () => {
      renameSync(record, `${record}.real`);
      symlinkSync(`${record}.real`, record);
    };
    await expectRefused("linked", { change, says: /it is a symbolic link/ });
  });

  test("where the fence is gone", async () => {
    const change = () => rmSync(place("nofence").fence);
    await expectRefused("nofence", { change, says: /has no fence/ });
  });

  test("A-62: for an owner whose lease was stolen; a good one commits", async () => {
    const [gate, commit] = [scene.path("a62.gate"), scene.path("a62.commit")];
    const commits = (word: string) => `${FENCE} && echo ${word} >>'${commit}'; exit 0`;
    const run = startJob(scene, "a62", `${waitsFor(gate)}; ${commits("COMMIT")}`, { words: RARE });
    await waitForBeat(place("a62"), 2);
    stealRecord(place("a62"));
    writeFileSync(gate, "");
    const { stderr } = await run.ended;
    expect([existsSync(commit), stderr]).toEqual([false, expect.stringContaining("someone-else")]);
    expect((await runJob("a62b", commits("COMMIT2"))).status).toBe(0);
    expect(readLines(commit)).toEqual(["COMMIT2"]);
  });

  test("for who still carries the environment of a run that is over", async () => {
    const saved = scene.path("over.env");
    await runJob("over", saveEnvironment(saved));
    const stranger = startStranger(scene, await readEnvironment(saved), ["--", "echo", "late"]);
    const { status, stdout, stderr } = await stranger.ended;
    expect([status, stdout.toString()]).toEqual([LEASE_LOST, ""]);
    expect(stderr).toMatch(/job:over was released/);
    // The next grant has another run, and a larger number.
    const gate = scene.path("over.gate");
    const next = startJob(scene, "over", waitsFor(gate));
    await waitForBeat(place("over"), 2, 2);
    const again = startStranger(scene, await readEnvironment(saved), ["--", "echo", "late"]);
    expect((await again.ended).stderr).toMatch(/belongs to run .*, generation 2 .*not to run/);
    writeFileSync(gate, "");
    await next.ended;
  });

  test("for who was left by a killed owner: nobody holds the lock", async () => {
    const saved = scene.path("dead.env");
    const script = `${saveEnvironment(saved)}; exec sleep 93161`;
    const run = startJob(scene, "dead", script, SILENT);
    const environment = await readEnvironment(saved);
    await waitForHolder(scene, "dead");
    await killWithGuard(run);
    const stranger = await startStranger(scene, environment, ["--", "echo", "late"]).ended;
    expect([stranger.status, stranger.stdout.toString()]).toEqual([LEASE_LOST, ""]);
    expect(stranger.stderr).toMatch(/has no living owner/);
    expect((await newcomer(scene, "dead")).status).toBe(0);
  });
});

test("75 where the fence cannot be had in time, and the wait is over with the grant", async () => {
  const { fence } = placeOf(scene.stateDirectory, "busy");
  const ready = scene.path("busy.ready");
  const holds = `flock -x --no-fork '${fence}' sh -c 'echo ready >"${ready}"; exec sleep 93162' &`;
  const script =
    `${holds} holder=$!; until [ -s '${ready}' ]; do sleep 0.02; done; ` +
    `${FENCE} --wait 0.2s -- echo early; echo status $?; ` +
    `(sleep 0.3; kill $holder) & ${FENCE} -- echo late; wait`;
  const { stdout, stderr } = await runJob("busy", script);
  expect(stdout).toBe(`status ${LOCKED}\nlate\n`);
  expect(stderr).toContain("job:busy is being granted: its fence could not be had within 0.2 s\n");
});

describe("while an operation goes on", () => {
  test("a member's is ended with its dead owner's tree: the next one need not wait", async () => {
    const log = scene.path("member.log");
    const operation = `echo begin >>"${log}"; sleep 93164; echo end >>"${log}"`;
    const run = startJob(scene, "member", `${FENCE} -- sh -c '${operation}'`, SILENT);
    await waitForCommand(scene, "sleep 93164");
    await waitForHolder(scene, "member");
    await killWithGuard(run);
    const next = await newcomer(scene, "member");
    expect([next.status, next.stdout.toString()]).toEqual([0, "STOLEN\n"]);
    expect([readLines(log), findByCommand(scene, "sleep 93164")]).toEqual([["begin"], []]);
  });

  /** An operation of a process outside the tree, which has the environment of a run. */
  async function fencedByStranger(name: string) {
    const path = (end: string) => scene.path(`${name}.${end}`);
    const [saved, gate, over, log] = [path("env"), path("gate"), path("over"), path("log")];
    const script = `${saveEnvironment(saved)}; ${waitsFor(over)}`;
    const run = startJob(scene, name, script, SILENT);
    const operation = `echo begin >>'${log}'; ${waitsFor(gate)}; echo end >>'${log}'`;
    await waitForHolder(scene, name);
    const words = ["--", "sh", "-c", operation];
    const stranger = startStranger(scene, await readEnvironment(saved), words);
    await waitFor(() => existsSync(log), "the operation");
    const next = ["--name", name, "--log", "off", "--", "sh", "-c", `echo next >>'${log}'`];
    return { run, stranger, next, log, open: () => writeFileSync(gate, ""), over };
  }

  test("outside the tree of an owner that has ended, a grant waits for its end", async () => {
    const { run, stranger, next, log, open, over } = await fencedByStranger("ended");
    writeFileSync(over, "");
    await run.ended;
    const newcomer = scene.start(next);
    const { lock, fence } = placeOf(scene.stateDirectory, "ended");
    await waitFor(() => isLocked(lock), "a newcomer that has the lock");
    expect([isLocked(fence), readLines(log)]).toEqual([true, ["begin"]]);
    open();
    expect([(await stranger.ended).status, (await newcomer.ended).status]).toEqual([0, 0]);
    expect(readLines(log)).toEqual(["begin", "end", "next"]);
  });

  test("outside the tree of a killed owner, nobody is granted anything nor signalled", async () => {
    const { run, stranger, next, log, open } = await fencedByStranger("killed");
    await killWithGuard(run);
    const refused = await scene.run(next);
    expect([refused.status, readLines(log)]).toEqual([LOCKED, ["begin"]]);
    expect(refused.stderr).toContain(`${stranger.pid} `);
    open();
    expect((await stranger.ended).status).toBe(0);
    expect((await scene.run(next)).status).toBe(0);
    expect(readLines(log)).toEqual(["begin", "end", "next"]);
  });

  test("a fence that is killed leaves it to its operation", async () => {
    const [gate, ready] = [scene.path("orphan.gate"), scene.path("orphan.ready")];
    const operation = `echo ready >"${ready}"; ${waitsFor(gate).replaceAll("'", '"')}`;
    const fenced = `${FENCE} -- sh -c '${operation}' & echo $! >'${ready}.pid'`;
    const script = `${fenced}; wait $!; ${waitsFor(gate)}`;
    const run = startJob(scene, "orphan", script, SILENT);
    await waitForText(ready);
    process.kill(Number(await waitForText(`${ready}.pid`)), "SIGKILL");
    const { fence } = placeOf(scene.stateDirectory, "orphan");
    await waitFor(() => findByCommand(scene, `${RELEASE} fence`).length === 0, "its end");
    expect(isLocked(fence)).toBe(true);
    writeFileSync(gate, "");
    await run.ended;
    expect(isLocked(fence)).toBe(false);
  });

  test("what it leaves in the background keeps the fence until the run ends it", async () => {
    const { fence } = placeOf(scene.stateDirectory, "left");
    const holds = `flock -n -x '${fence}' true || echo held`;
    const begun = `until pgrep -fx "sleep 93165" >/dev/null; do :; done`;
    const script = `${FENCE} -v -- sh -c 'sleep 93165 >/dev/null 2>&1 & ${begun}'; ${holds}`;
    const left = await runJob("left", script);
    expect([left.status, left.stdout]).toEqual([0, "held\n"]);
    expect(left.stderr).toMatch(/these go on and keep the fence until they end: \d+ sleep 93165\n/);
    expect(left.stderr).toMatch(/ended 1 process left by the command: \d+ sleep 93165/);
    expect(isLocked(fence)).toBe(false);
  });

  test("what --leftovers leave leaves of it keeps the fence, and a start waits", async () => {
    const { fence } = placeOf(scene.stateDirectory, "leave");
    const words = ["--leftovers", "leave"];
    const begun = `until pgrep -fx "sleep 93166" >/dev/null; do :; done`;
    const script = `${FENCE} -- sh -c 'sleep 93166 >/dev/null 2>&1 & ${begun}'`;
    expect((await runJob("leave", script, words)).status).toBe(0);
    const [left, ...more] = findByCommand(scene, "sleep 93166");
    const next = scene.start(["--name", "leave", "--log", "off", "--", "echo", "next"]);
    const { lock } = placeOf(scene.stateDirectory, "leave");
    await waitFor(() => isLocked(lock), "a newcomer that has the lock");
    expect([left !== undefined, more, isLocked(fence)]).toEqual([true, [], true]);
    if (left !== undefined) process.kill(left, "SIGKILL");
    const { status, stdout } = await next.ended;
    expect([status, stdout.toString()]).toEqual([0, "next\n"]);
  });

  test("A-61: its stalled owner is not robbed: both end well, no A comes after a B", async () => {
    const [log, gate] = [scene.path("a61.log"), scene.path("a61.gate")];
    const beats = ["--heartbeat-interval", "100ms", "--stale-after", "300ms"];
    const writes = (word: string) => `sh -c 'echo ${word} >>"${log}"'`;
    const script = `until [ -e '${gate}' ]; do ${FENCE} -- ${writes("A")} || exit; done`;
    const run = startJob(scene, "a61", script, { words: beats });
    await waitFor(() => readLines(log).length > 0, "the first A");
    run.kill("SIGSTOP");
    const stolen = ["--name", "a61", "--log", "off", "--", "sh", "-c", `echo B >>'${log}'`];
    const refused = await waitFor(async () => {
      const { status, stderr } = await scene.run(stolen);
      expect(status).toBe(LOCKED);
      return stderr.includes("old") && stderr;
    }, "a verdict of old beats");
    expect(refused).toMatch(/heartbeat is \d+ s old/);
    const before = readLines(log).length;
    await waitFor(() => readLines(log).length > before, "an operation of the stalled owner's");
    run.kill("SIGCONT");
    writeFileSync(gate, "");
    expect((await run.ended).status).toBe(0);
    expect(new Set(readLines(log))).toEqual(new Set(["A"]));
    expect((await scene.run(stolen)).status).toBe(0);
    expect(readLines(log).slice(-2)).toEqual(["A", "B"]);
  });
});

/** Whether the lock of a file is taken, asked as a reader does. */
function isLocked(path: string): boolean {
  const asked = Bun.spawnSync([findProgram("flock"), "-n", "-x", path, "true"]);
  return asked.exitCode !== 0;
}
