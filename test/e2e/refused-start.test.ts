/**
 * A start that is refused ends no process, signals nobody, and changes nothing of a key but what
 * product.md 4 allows: an empty `lock` or `fence` that was missing, the note of an `elsewhere`, and
 * the line of the journal. Each reason for which a start can be refused is made for real.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { askJson } from "../support/ask.ts";
import { killWithGuard } from "../support/killing.ts";
import { placeOf, readLease, waitForBeat } from "../support/lease-seen.ts";
import { PYTHON } from "../support/outside.ts";
import { inState } from "../support/own-state.ts";
import { readLines, readStatusLine, waitForText } from "../support/processes.ts";
import {
  commandOf,
  CONFIG_ERROR,
  endAfterwards,
  endHolding,
  expectRefused,
  hold,
  isThere,
  leaveDead,
  leaveOrphaned,
  markOf,
  NO_PIPES,
  QUIET,
  RARE,
  rememberToEnd,
} from "../support/refusals.ts";
import { type Ended, FIXTURES, openScene, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

endAfterwards();
const scene = openScene(import.meta.file);
const NOTE = ["leases/job/key/seen.json"];

describe("a start is refused, and touches nothing,", () => {
  test("while the key is held, with and without a wait", async () => {
    const holding = await hold(scene, "held");
    const { state, pids, heard } = holding;
    const quiet = { because: "beat-fresh", pids, heard, stderr: QUIET };
    await expectRefused(state, quiet);
    await expectRefused(state, { ...quiet, args: ["--wait", "300ms"] });
    await expectRefused(state, { ...quiet, args: ["--wait", "0"] });
    await endHolding(holding);
  });

  test("by a run around it, at once, however long it would wait", async () => {
    const holding = await hold(scene, "around");
    const { state, pids, heard, runId } = holding;
    const env = { WATCHDOG_RUN_PATH: runId, WATCHDOG_RUN_ID: runId };
    const refusal = { because: "held-by-run-around", pids, heard, args: ["--wait", "10m"] };
    await expectRefused(state, { ...refusal, start: (words) => state.run(words, { env }) });
    await endHolding(holding);
  });

  test("while one of several keys is held: of the others only empty locks are new", async () => {
    const holding = await hold(scene, "several");
    const { state, pids, heard } = holding;
    const quiet = { because: "beat-fresh", pids, heard, stderr: QUIET };
    const args = ["--lock", "db:before", "--lane", "after"];
    const difference = await expectRefused(state, {
      ...quiet,
      args,
      added: ["leases/db", "leases/db/before", "leases/db/before/lock"],
    });
    for (const path of difference.added.filter((one) => one.endsWith("lock"))) {
      expect(readFileSync(`${state.stateDirectory}/${path}`, "utf8")).toBe("");
    }
    await expectRefused(state, { ...quiet, args });
    await endHolding(holding);
    expect((await state.run(["--name", "other", ...args, "--", "true"])).status).toBe(0);
    expect(readLease(placeOf(state.stateDirectory, "before", "db"))["generation"]).toBe(1);
  });

  test("while the key is just being acquired by somebody", async () => {
    const state = inState(scene, "acquired");
    expect((await state.run(["--name", "key", "--", "true"])).status).toBe(0);
    const { lock } = placeOf(state.stateDirectory, "key");
    const notes = scene.path("acquired.notes");
    const locks = state.startProgram([PYTHON, `${FIXTURES}/holds-lock.py`, notes, "0", lock]);
    await waitForText(notes);
    const heard = (): string[] => readLines(notes);
    const refusal = { because: "being-acquired", pids: [locks.pid], heard, stderr: QUIET };
    await expectRefused(state, refusal);
    await expectRefused(state, { ...refusal, args: ["--wait", "200ms"] });
    locks.kill("SIGKILL");
    await locks.ended;
  });

  test("while its owner is stopped: it stays stopped", async () => {
    const beats = ["--heartbeat-interval", "100ms", "--stale-after", "300ms"];
    const holding = await hold(scene, "stalled", beats);
    const { state, run, pids, heard } = holding;
    run.kill("SIGSTOP");
    await waitFor(() => readStatusLine(run.pid, "State")?.startsWith("T"), "a stopped watchdog");
    const look = async (): Promise<boolean> =>
      (await askJson(state, ["lease", "show", "job:key"])).verdict === "stalled";
    await waitFor(look, "a stalled lease");
    const refusal = { because: "beat-old", pids, heard };
    await expectRefused(state, refusal);
    await expectRefused(state, { ...refusal, args: ["--wait", "300ms"] });
    await endHolding(holding);
  });

  test("beside a lock file that was replaced under its living owner", async () => {
    const holding = await hold(scene, "replaced");
    const { state, run, place, pids, heard } = holding;
    run.kill("SIGSTOP");
    await waitFor(() => readStatusLine(run.pid, "State")?.startsWith("T"), "a stopped watchdog");
    renameSync(place.lock, scene.path("replaced.lock"));
    writeFileSync(place.lock, "", { mode: 0o600 });
    await expectRefused(state, { because: "lock-replaced", pids, heard });
    rmSync(place.lock);
    const added = ["leases/job/key/lock"];
    await expectRefused(state, { because: "lock-replaced", pids, heard, added });
    await endHolding(holding);
  });

  test("while suspects are left of a dead owner: neither they nor its members end", async () => {
    const holding = await leaveOrphaned(scene, "suspects");
    const { state, command, heard, runId } = holding;
    const env = { WATCHDOG_RUN_PATH: runId, WATCHDOG_RUN_ID: runId };
    const suspect = state.startProgram(["sleep", "318"], { env });
    const refusal = { because: "suspects", heard };
    await expectRefused(state, { ...refusal, pids: [command, suspect.pid] });
    await expectRefused(state, { ...refusal, pids: [command], args: ["--wait", "300ms"] });
    process.kill(command, "SIGKILL");
    await waitFor(() => !isThere(command), "no member");
    await expectRefused(state, { ...refusal, pids: [suspect.pid] });
    suspect.kill("SIGKILL");
    await suspect.ended;
    const next = await state.run(["--name", "key", "--", "true"]);
    expect([next.status, readLease(holding.place)["generation"]]).toEqual([0, 2]);
  });

  test("below the members of a dead owner: its own ancestors do not end", async () => {
    const state = inState(scene, "ancestor");
    const [up, go, status] = ["up", "go", "status"].map((name) => scene.path(`ancestor.${name}`));
    const script = `echo $$ >${up}; until [ -e ${go} ]; do sleep 0.05; done
      '${RELEASE}' run --name key -- touch ${markOf(state)} 2>${go}; echo $? >${status}
      exec sleep 319`;
    const run = state.start(["--name", "key", ...RARE, "--", "sh", "-c", script], NO_PIPES);
    const shell = Number(await waitForText(String(up)));
    rememberToEnd(run.pid, shell);
    await waitForBeat(placeOf(state.stateDirectory, "key"), 3);
    await waitFor(() => commandOf(state), "the run in the journal");
    await killWithGuard(run);
    const start = async (): Promise<Ended> => {
      writeFileSync(String(go), "");
      const code = Number(await waitForText(String(status)));
      const stderr = readFileSync(String(go), "utf8");
      return { code, status: code, signal: null, stdout: Buffer.alloc(0), stderr };
    };
    await expectRefused(state, { because: "ancestor-of-newcomer", pids: [shell], start });
    process.kill(shell, "SIGKILL");
  });

  test("where the last owner was of another machine: the note is new, and only once", async () => {
    const { state, place } = await leaveDead(scene, "elsewhere");
    const record = { ...readLease(place), boot_id: "another-boot", host: "another-host" };
    writeFileSync(place.record, JSON.stringify(record));
    await expectRefused(state, { because: "other-machine", added: NOTE });
    await expectRefused(state, { because: "other-machine" });
    await expectRefused(state, { because: "other-machine", args: ["--wait", "300ms"] });
  });

  test("where the journal alone remembers the last owner", async () => {
    const { state, place } = await leaveDead(scene, "remembered");
    rmSync(place.record);
    rmSync(place.slot(1));
    await expectRefused(state, { because: "boot-unread", added: NOTE });
    await expectRefused(state, { because: "boot-unread" });
  });

  test("where nothing tells the last generation, or a newer version has written it", async () => {
    const { state, place } = await leaveDead(scene, "unreadable");
    const good = readLease(place);
    rmSync(place.slot(1));
    for (const name of readdirSync(state.stateDirectory).filter((one) =>
      one.startsWith("journal.db"),
    )) {
      rmSync(`${state.stateDirectory}/${name}`);
    }
    // A journal that knows nothing of the key.
    expect((await state.run(["--no-lease", "--", "true"])).status).toBe(0);
    const refusal = { status: CONFIG_ERROR, because: "no-generation" };
    for (const text of ["", "{", "[]", JSON.stringify({ ...good, format: 99 })]) {
      writeFileSync(place.record, text);
      await expectRefused(state, refusal);
    }
    rmSync(place.lock);
    rmSync(place.fence);
    await expectRefused(state, { ...refusal, added: ["leases/job/key/lock"] });
  });
});
