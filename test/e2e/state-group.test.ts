/**
 * A state directory that a group shares, and two real users who use it: they exclude each other,
 * read each other's runs, take over from each other, and never signal what is not theirs. Whoever
 * is not in the group stays outside.
 */
import { describe, expect, test } from "bun:test";
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, readdirSync } from "node:fs";
import { readFileSync, writeFileSync } from "node:fs";
import { asUser, shareBinary } from "../support/as-user.ts";
import { guardOf } from "../support/killing.ts";
import { placeOf, readLease } from "../support/lease-seen.ts";
import { waitForText } from "../support/processes.ts";
import {
  type Ended,
  findGuards,
  openScene,
  rootTest,
  type RunOptions,
  type Started,
} from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const hasStrace = Bun.which("strace") !== null;
if (!hasStrace) console.error("needs strace, not run here: modes at no moment");
const LOCKED = 75;
const CONFIG_ERROR = 78;
const WRAPPER_ERROR = 125;
/** No other test uses these numbers, and no database has them. */
const GROUP = 54_390;
const [ANN, BEN, STRANGER] = [54_391, 54_392, 54_393];
const LIMIT_MS = 60_000;

interface Shared {
  readonly state: string;
  /** A folder in which everybody of the test may leave marks. */
  readonly marks: string;
  as(uid: number, words: readonly string[], options?: RunOptions): Promise<Started>;
  to(uid: number, words: readonly string[]): Promise<Ended>;
}

/** A directory of this name that is not there yet; its users are in the group but for one. */
function share(name: string): Shared {
  const marks = scene.path(name);
  mkdirSync(marks);
  chmodSync(marks, 0o1777);
  const state = `${marks}/state`;
  const as = async (uid: number, words: readonly string[], options: RunOptions = {}) => {
    const prefix = [...asUser(uid, uid === STRANGER ? [] : [GROUP]), await shareBinary(scene)];
    const env = { WATCHDOG_STATE_DIR: state, HOME: "/nonexistent", ...options.env };
    return scene.startProgram([...prefix, ...words], { cwd: "/", ...options, env });
  };
  return { state, marks, as, to: async (uid, words) => (await as(uid, words)).ended };
}

const ASKED = ["--state-group", String(GROUP)];

function run(name: string, words: readonly string[], options: readonly string[] = []): string[] {
  return ["run", "--name", name, "--log", "on", ...options, "--", ...words];
}

/** A first run of Ann's, which makes the directory. */
async function makeShared(name: string): Promise<Shared> {
  const shared = share(name);
  const ended = await shared.to(ANN, run("first", ["true"], ASKED));
  expect([ended.status, ended.stderr]).toEqual([0, ""]);
  return shared;
}

/** Everything in it is the group's, and nobody's besides. */
function expectShared({ state }: Shared): void {
  const names = ["", ...readdirSync(state, { recursive: true }).map(String)];
  const wrong = names.flatMap((name) => {
    const found = lstatSync(`${state}/${name}`);
    const mode = (found.mode & 0o7777).toString(8);
    const isRight = mode === (found.isDirectory() ? "2770" : "660") && found.gid === GROUP;
    return isRight ? [] : [`${name}: ${mode}, group ${found.gid}`];
  });
  expect(wrong).toEqual([]);
  expect(names.length).toBeGreaterThan(10);
}

interface Holding {
  readonly started: Started;
  /** Of the command. */
  readonly pid: number;
  release(): void;
}

/** A run whose command holds until it is let go. */
async function hold(shared: Shared, uid: number, name: string): Promise<Holding> {
  const [ready, gate] = [`${shared.marks}/${name}.ready`, `${shared.marks}/${name}.gate`];
  const script = `echo $$ >'${ready}'; until [ -e '${gate}' ]; do sleep 0.05; done`;
  const started = await shared.as(uid, run(name, ["sh", "-c", script]));
  const pid = Number(await waitForText(ready));
  return { started, pid, release: () => writeFileSync(gate, "") };
}

describe("two users of one group", () => {
  rootTest("use one directory in turn, and all that is in it stays the group's", async () => {
    const shared = await makeShared("turns");
    const words = ["--lock", "db:orders", "--worktree", shared.marks];
    for (const [index, uid] of [ANN, BEN, BEN, ANN].entries()) {
      const ended = await shared.to(uid, run("job", ["sh", "-c", "echo ran; umask"], words));
      expect([uid, ended.status, ended.stderr]).toEqual([uid, 0, ""]);
      // The command has the umask of its caller.
      const umask = process.umask().toString(8).padStart(4, "0");
      expect(ended.stdout.toString()).toBe(`ran\n${umask}\n`);
      expect(readLease(placeOf(shared.state, "job"))).toMatchObject({ generation: index + 1, uid });
      expectShared(shared);
    }
    for (const uid of [ANN, BEN]) {
      const history = await shared.to(uid, ["history", "job", "--json"]);
      expect(JSON.parse(history.stdout.toString()).runs).toHaveLength(4);
      const logs = await shared.to(uid, ["logs", "job"]);
      expect([logs.status, logs.stdout.toString().split("\n")[0]]).toEqual([0, "ran"]);
    }
  });

  rootTest("exclude each other, and each sees who holds", async () => {
    const shared = await makeShared("exclude");
    for (const [holder, other] of [
      [ANN, BEN],
      [BEN, ANN],
    ] as const) {
      const name = `held-by-${holder}`;
      const held = await hold(shared, holder, name);
      const refused = await shared.to(other, run(name, ["echo", "STOLEN"]));
      expect([refused.status, refused.stdout.toString()]).toEqual([LOCKED, ""]);
      const shown = await shared.to(other, ["lease", "show", `job:${name}`, "--json"]);
      expect(JSON.parse(shown.stdout.toString())).toMatchObject({ verdict: "held", uid: holder });
      const waiting = await shared.as(other, run(name, ["echo", "mine"], ["--wait", "30s"]));
      held.release();
      const ended = await waiting.ended;
      expect([ended.status, ended.stdout.toString()]).toEqual([0, "mine\n"]);
      expect((await held.started.ended).status).toBe(0);
    }
    expectShared(shared);
  });

  rootTest(
    "who start at once in a directory that is not there make one of it and never overlap",
    async () => {
      const shared = share("at-once");
      const log = `${shared.marks}/log`;
      writeFileSync(log, "");
      chmodSync(log, 0o666);
      const script = `echo in >>'${log}'; sleep 0.05; echo out >>'${log}'`;
      const options = [...ASKED, "--wait", "50s"];
      const starts = await Promise.all(
        [ANN, BEN, ANN, BEN, ANN, BEN, ANN, BEN].map((uid) =>
          shared.to(uid, run("at-once", ["sh", "-c", script], options)),
        ),
      );
      expect(starts.map(({ status, stderr }) => [status, stderr])).toEqual(
        starts.map(() => [0, expect.not.stringContaining("error")]),
      );
      expect(readFileSync(log, "utf8")).toBe("in\nout\n".repeat(starts.length));
      const { generation } = readLease(placeOf(shared.state, "at-once"));
      expect(generation).toBe(starts.length);
      expectShared(shared);
    },
    LIMIT_MS,
  );

  rootTest("take over from each other once all of the other's processes are gone", async () => {
    const shared = await makeShared("take-over");
    const held = await hold(shared, ANN, "taken");
    held.started.kill("SIGKILL");
    await waitFor(() => !existsSync(`/proc/${held.pid}/exe`), "the guard to end the tree");
    await waitFor(() => findGuards(shared.state).length === 0, "the guard to leave");
    const next = await shared.to(BEN, run("taken", ["echo", "mine"]));
    expect([next.status, next.stdout.toString()]).toEqual([0, "mine\n"]);
    expect(readLease(placeOf(shared.state, "taken"))).toMatchObject({ generation: 2, uid: BEN });
    expectShared(shared);
    const history = await shared.to(BEN, ["history", "taken", "--json"]);
    const { runs } = JSON.parse(history.stdout.toString());
    expect(runs.map(({ outcome }: { outcome: string }) => outcome)).toEqual(["ok", "abandoned"]);
  });

  rootTest("wait for survivors of the other that they may not signal", async () => {
    const shared = await makeShared("survivors");
    const held = await hold(shared, ANN, "survived");
    const guard = await waitFor(() => guardOf(held.started.pid), "a guard");
    process.kill(guard, "SIGKILL");
    held.started.kill("SIGKILL");
    await held.started.ended;
    const refused = await shared.to(BEN, run("survived", ["echo", "STOLEN"]));
    expect([refused.status, refused.stdout.toString()]).toEqual([LOCKED, ""]);
    expect(refused.stderr).toContain("job:survived");
    expect(existsSync(`/proc/${held.pid}/exe`)).toBe(true);
    held.release();
    await waitFor(() => !existsSync(`/proc/${held.pid}/exe`), "the survivor to end by itself");
    const next = await shared.to(BEN, run("survived", ["echo", "mine"]));
    expect([next.status, next.stdout.toString()]).toEqual([0, "mine\n"]);
  });

  rootTest("leave a file's mode to the one whose it is", async () => {
    const shared = await makeShared("modes");
    const { lock } = placeOf(shared.state, "first");
    chmodSync(lock, 0o664);
    expect((await shared.to(BEN, run("first", ["true"]))).status).toBe(0);
    expect(lstatSync(lock).mode & 0o777).toBe(0o664);
    expect((await shared.to(ANN, run("first", ["true"]))).status).toBe(0);
    expectShared(shared);
  });

  rootTest("meet in it from within each other's runs", async () => {
    const shared = await makeShared("within");
    const binary = await shareBinary(scene);
    // Root's run, whose command becomes Ben and starts a run of his own.
    const inner = [...asUser(BEN, [GROUP]), binary, ...run("inner", ["echo", "inner"])];
    const outer = ["run", "--state-dir", shared.state, ...ASKED, "--log", "off"];
    const ended = await scene.startProgram([binary, ...outer, "--", ...inner]).ended;
    expect([ended.status, ended.stdout.toString(), ended.stderr]).toEqual([0, "inner\n", ""]);
    expect(readLease(placeOf(shared.state, "inner"))).toMatchObject({ uid: BEN });
    expectShared(shared);
  });
});

/** As another one of the group, under strace(1), whose words change what its calls answer. */
async function traced(shared: Shared, words: readonly string[], name: string): Promise<Ended> {
  const strace = ["strace", "-f", "-qq", "-o", "/dev/null", ...words];
  const program = [...asUser(BEN, [GROUP]), ...strace, await shareBinary(scene)];
  const env = { WATCHDOG_STATE_DIR: shared.state };
  return scene.startProgram([...program, ...run(name, ["echo", "ran"])], { cwd: "/", env }).ended;
}

describe.skipIf(!hasStrace)("at no moment", () => {
  rootTest("has anything another mode: it is made with the right one", async () => {
    const shared = await makeShared("no-moment");
    const feigned = "inject=?chmod,fchmod,fchmodat,?fchmodat2:retval=0";
    const ended = await traced(shared, ["-e", feigned], "made");
    expect([ended.status, ended.stdout.toString()]).toEqual([0, "ran\n"]);
    expectShared(shared);
  });

  rootTest("does a file that is being made stop one of the group", async () => {
    const shared = await makeShared("being-made");
    const { lock } = placeOf(shared.state, "first");
    const refused = [
      "-P",
      lock,
      "-e",
      "trace=openat",
      "-e",
      "inject=openat:error=EACCES:when=1..2",
    ];
    const ended = await traced(shared, refused, "first");
    expect([ended.status, ended.stdout.toString()]).toEqual([0, "ran\n"]);
    const always = ["-P", lock, "-e", "trace=openat", "-e", "inject=openat:error=EACCES"];
    const never = await traced(shared, always, "first");
    expect([never.status, never.stdout.toString()]).toEqual([WRAPPER_ERROR, ""]);
    expect(never.stderr).toContain(`${lock}`);
  });
});

describe("who is outside", () => {
  rootTest("a user who is not in the group is refused, by whatever command", async () => {
    const shared = await makeShared("outside");
    const own = await shared.to(STRANGER, run("first", ["echo", "ran"]));
    expect([own.status, own.stdout.toString()]).toEqual([CONFIG_ERROR, ""]);
    expect(own.stderr).toContain(
      `state directory ${shared.state}: it has mode 2770 and group ${GROUP}, which we are not in\n`,
    );
    const asked = await shared.to(STRANGER, run("first", ["echo", "ran"], ASKED));
    expect([asked.status, asked.stdout.toString()]).toEqual([CONFIG_ERROR, ""]);
    expect(asked.stderr).toContain(`we are not in the group '${GROUP}'\n`);
    for (const words of [["status"], ["history", "first"], ["lease", "list"]]) {
      expect([words, (await shared.to(STRANGER, words)).status]).toEqual([words, CONFIG_ERROR]);
    }
  });

  rootTest("root looks into it, and runs in it where its group is asked for", async () => {
    const shared = await makeShared("root");
    const [binary, at] = [await shareBinary(scene), ["--state-dir", shared.state]];
    const ask = (words: string[]): Promise<Ended> => scene.startProgram([binary, ...words]).ended;
    expect((await ask(["status", ...at])).status).toBe(0);
    const echo = ["--name", "first", "--", "echo", "ran"];
    const refused = await ask(["run", ...at, ...echo]);
    expect(refused.status).toBe(CONFIG_ERROR);
    expect(refused.stderr).toMatch(/hint: watchdog run .*--state-group \d+ -- COMMAND\n$/);
    const ended = await ask(["run", ...at, ...ASKED, ...echo]);
    expect([ended.status, ended.stdout.toString(), ended.stderr]).toEqual([0, "ran\n", ""]);
    expectShared(shared);
    expect((await shared.to(BEN, run("first", ["echo", "after"]))).stdout.toString()).toBe(
      "after\n",
    );
  });

  rootTest("a file that is not the group's is refused by its name", async () => {
    const shared = await makeShared("planted");
    const { lock } = placeOf(shared.state, "first");
    chownSync(lock, STRANGER, STRANGER);
    chmodSync(lock, 0o666);
    const ended = await shared.to(BEN, run("first", ["echo", "ran"]));
    expect([ended.status, ended.stdout.toString()]).toEqual([CONFIG_ERROR, ""]);
    expect(ended.stderr).toContain(
      `${lock}: it belongs to uid ${STRANGER} and group ${STRANGER}, ` +
        `expected uid ${BEN} or group ${GROUP}\n`,
    );
  });
});

test("a group that is not there and a directory that is private are refused", async () => {
  const state = scene.path("private");
  const echo = ["--log", "off", "--", "echo", "ran"];
  const at = ["--state-dir", state];
  const unknown = await scene.run([...at, "--state-group", "no-such-group-here", ...echo]);
  expect([unknown.status, unknown.stdout.toString()]).toEqual([CONFIG_ERROR, ""]);
  expect(unknown.stderr).toStartWith(
    `watchdog: error: state directory ${state}: there is no group 'no-such-group-here'\n`,
  );
  expect(existsSync(state)).toBe(false);
  expect((await scene.run([...at, ...echo])).status).toBe(0);
  const own = String(process.getegid?.());
  const asked = await scene.run([...at, "--state-group", own, ...echo]);
  expect([asked.status, asked.stdout.toString()]).toEqual([CONFIG_ERROR, ""]);
  expect(asked.stderr).toContain(`state directory ${state}: it has mode 700 and group `);
  expect(asked.stderr).toMatch(/\nwatchdog: hint: chgrp -R /);
  expect(lstatSync(state).mode & 0o7777).toBe(0o700);
});
