/**
 * A state directory in which no lease can be had: unwritable, full, read-only, somebody else's, or
 * on a file system without locks. The job has not run without its lease, the message names the
 * place and the reason, and nothing of it stops the next run. And starts that come to it by
 * different ways meet each other there.
 */
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { asUser, shareBinary } from "../support/as-user.ts";
import { askLines } from "../support/ask.ts";
import { holdJob, newcomer, placeOf, readLease, RELEASED } from "../support/lease-seen.ts";
import { waitForText } from "../support/processes.ts";
import { type Ended, isRoot, openScene, RELEASE, rootTest } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LOCKED = 75;
const CONFIG_ERROR = 78;
const WRAPPER_ERROR = 125;
const NOBODY = 65_534;
/** Without an entry in the password database; no other test uses it. */
const NAMELESS = 54_378;
const LIMIT_MS = 180_000;

/** `watchdog run` as an ordinary user of this number. */
async function runAs(uid: number, state: string, words: readonly string[]): Promise<Ended> {
  const prefix = [...asUser(uid), await shareBinary(scene), "run"];
  return scene.startProgram([...prefix, "--state-dir", state, "--log", "off", ...words], {
    cwd: "/",
    env: { HOME: "/nonexistent" },
  }).ended;
}

function runIn(state: string, words: readonly string[]): Promise<Ended> {
  return newcomer(scene, "trouble", words, { env: { WATCHDOG_STATE_DIR: state } });
}

/** One error and one hint, no trace of the command. */
function expectRefused(ended: Ended, status: number, ...parts: readonly (string | RegExp)[]): void {
  expect([ended.status, ended.stdout.toString()]).toEqual([status, ""]);
  const lines = ended.stderr.split("\n");
  expect(lines).toHaveLength(3);
  expect(lines[0]).toMatch(/^watchdog: (error|not started): /);
  expect(lines[1]).toMatch(/^watchdog: hint: /);
  for (const part of parts) expect(lines[0]).toMatch(part);
}

describe("A-51: a state directory that cannot be written", () => {
  rootTest("is told by name and reason, and the job has not run", async () => {
    const roots = scene.path("roots");
    mkdirSync(roots, { mode: 0o755 });
    expectRefused(
      await runAs(NOBODY, `${roots}/new`, ["--", "echo", "ran"]),
      WRAPPER_ERROR,
      `${roots}/new`,
      /permission denied/,
    );
    expectRefused(
      await runAs(NOBODY, roots, ["--", "echo", "ran"]),
      CONFIG_ERROR,
      `${roots}: it belongs to uid 0`,
    );
    const own = scene.path("own");
    mkdirSync(own);
    chownSync(own, NOBODY, NOBODY);
    chmodSync(own, 0o500);
    expectRefused(
      await runAs(NOBODY, own, ["--", "echo", "ran"]),
      WRAPPER_ERROR,
      own,
      /permission denied/,
    );
    expect([readdirSync(own), readdirSync(roots)]).toEqual([[], []]);
    // Without a lease, which is asked for by an option, the job does not depend on it.
    const without = await runAs(NOBODY, own, ["--no-lease", "--", "echo", "ran"]);
    expect([without.status, without.stdout.toString()]).toEqual([0, "ran\n"]);
  });

  test("because a file is above it is told the same way", async () => {
    writeFileSync(scene.path("blocked"), "");
    const state = scene.path("blocked", "state");
    expectRefused(await runIn(state, []), WRAPPER_ERROR, state, /ENOTDIR/);
  });
});

/** The script in a mount namespace of its own, so that nothing stays mounted. */
async function inOwnMounts(script: string): Promise<Ended> {
  const words = isRoot ? ["unshare", "-m"] : ["unshare", "-rm"];
  const env = { W: RELEASE, D: scene.directory };
  return scene.startProgram([...words, "/bin/sh", "-c", script], { env }).ended;
}

const canMount = (await inOwnMounts('mount -t tmpfs -o size=64k x "$D/home"')).status === 0;
if (!canMount) console.error("needs mounts, not run here: A-52, a read-only file system");
const PROBE = `truncate -s 4M "$D/probe" && mkfs.ext4 -q "$D/probe" &&
  mount -o loop "$D/probe" "$D/home"`;
const hasLoop = canMount && isRoot && (await inOwnMounts(PROBE)).status === 0;
if (!hasLoop) console.error("needs root and a loop device, not run here: A-52 on ext4");

/** `$R` runs; `said NAME` prints status and output of the line before it, as one line. */
const BASICS = `
  R="$W run --log off --state-dir $S"
  said() { echo "$1 $? $(tr '\\n' ' ' <"$D/out")"; }
  : until nothing more goes in, for a sync may give back what was only reserved
  fill() {
    part=$1
    while part=$part.1; dd if=/dev/zero of="$M/fill.$part" bs=1k 2>/dev/null; sync
      [ -s "$M/fill.$part" ]; do :; done
  }`;

function linesOf(ended: Ended): string[] {
  return ended.stdout
    .toString()
    .split("\n")
    .slice(0, -1)
    .map((line) => line.trimEnd());
}

test.skipIf(!canMount)(
  "A-52: on a full disk nothing runs, and nothing stays in the way",
  async () => {
    const ended = await inOwnMounts(`M="$D/tiny"; S="$M"; ${BASICS}
    mkdir "$M"; mount -t tmpfs -o size=64k,mode=700 x "$M"; fill 1
    $R --name a52 -- echo ran >"$D/out" 2>&1; said full
    rm "$M"/fill*
    $R --name a52 -- echo ran2 >"$D/out" 2>&1; said free
    grep -h '"generation"' "$S/leases/job/a52/lease.json"`);
    expect(linesOf(ended)).toEqual([
      expect.stringMatching(
        /^full 125 .*watchdog: error: .*\/tiny.*no space left on device.* watchdog: hint: /,
      ),
      // The journal needs more than these 64 KiB: that is told, and costs the job nothing.
      expect.stringMatching(/^free 0 (watchdog: journal: .*)?ran2( watchdog: journal: .*)?$/),
      '  "generation": 1,',
    ]);
  },
);

/**
 * A run that holds a key while the disk fills up; `beat` prints the sequence of its slot. It is in
 * the journal by then: one that meets the full disk there closes it, and that makes room.
 */
const HOLDER = `
  mkfifo "$D/gate"
  $R --name held --heartbeat-interval 150ms -- \\
    sh -c 'echo ready >"$D/held.ready"; read -r _ <"$D/gate"; exit 5' >"$D/held.out" 2>&1 &
  until [ -s "$D/held.ready" ]; do sleep 0.02; done
  until "$W" history --state-dir "$S" --json held | grep -q '"running"'; do sleep 0.02; done
  beat() { od -An -tu8 -j16 -N8 "$S/leases/job/held/beat.1" | tr -d ' '; }`;

test.skipIf(!hasLoop)(
  "A-52: on a full ext4 a free key is refused, a held one lives, and then all are free",
  async () => {
    const ended = await inOwnMounts(`M="$D/ext4"; S="$M/state"; ${BASICS}
      mkdir "$M"; truncate -s 4M "$D/image"
      mkfs.ext4 -q -O ^has_journal -m 0 "$D/image" && mount -o loop "$D/image" "$M"
      $R --name known -- echo first >"$D/out" 2>&1; said first
      ${HOLDER}
      fill 1; full=$(beat)
      $R --name new -- echo ran >"$D/out" 2>&1; said new
      $R --name known -- echo ran >"$D/out" 2>&1; said known
      $R --name held -- echo ran >"$D/out" 2>&1; said held
      until [ "$(beat)" -ge $((full + 5)) ]; do sleep 0.02; done; echo beats
      rm "$S/leases/job/held/lock"
      until [ -e "$S/leases/job/held/lock" ]; do sleep 0.02; done
      $R --name held -- echo ran >"$D/out" 2>&1; said held
      : what a journal gave back is taken too, so that the release meets a full disk
      fill 2; echo go >"$D/gate"; wait $!; echo "ended $?"
      : its journal may have met the full disk before or after
      grep -v '^watchdog: journal: ' "$D/held.out"
      grep -h '"state"' "$S/leases/job/held/lease.json"
      rm "$M"/fill*
      $R --name new -- echo ran >"$D/out" 2>&1; said new
      $R --name known -- echo ran >"$D/out" 2>&1; said known
      $R --name held -- echo ran >"$D/out" 2>&1; said held`);
    expect(linesOf(ended)).toEqual([
      "first 0 first",
      expect.stringMatching(
        /^new 125 .*watchdog: error: .*no space left on device.* watchdog: hint: /,
      ),
      expect.stringMatching(
        /^known 125 .*watchdog: error: .*no space left on device.* watchdog: hint: /,
      ),
      expect.stringMatching(/^held 75 (watchdog: journal: .*)?$/),
      "beats",
      expect.stringMatching(/^held 75 /),
      "ended 5",
      "watchdog: the lock file of job:held was gone or replaced; restored it, the job goes on",
      '  "state": "released",',
      "new 0 ran",
      "known 0 ran",
      "held 0 ran",
    ]);
  },
  LIMIT_MS,
);

test.skipIf(!canMount)(
  "on a read-only file system nothing runs, and status still answers",
  async () => {
    const ended = await inOwnMounts(`M="$D/frozen"; S="$M/state"; ${BASICS}
    mkdir "$M"; mount -t tmpfs -o size=16m,mode=700 x "$M"
    $R --name frozen -- echo first >"$D/out" 2>&1; said first
    mount -o remount,ro "$M"
    $R --name frozen -- echo ran >"$D/out" 2>&1; said known
    $R --name unknown -- echo ran >"$D/out" 2>&1; said unknown
    "$W" status --state-dir "$S" frozen >"$D/out" 2>&1; said status
    mount -o remount,rw "$M"
    $R --name frozen -- echo ran >"$D/out" 2>&1; said again`);
    expect(linesOf(ended)).toEqual([
      "first 0 first",
      expect.stringMatching(
        /^known 125 .*watchdog: error: .*\/frozen\/lock: EROFS: read-only file system/,
      ),
      expect.stringMatching(/^unknown 125 .*watchdog: error: .*EROFS.* watchdog: hint: /),
      expect.stringMatching(/^status 0 job:frozen {2}free since /),
      "again 0 ran",
    ]);
  },
);

describe("A-53: root first, then an ordinary user, and the reverse", () => {
  rootTest(
    "in a sticky folder each is told whose the directory is, and is never locked",
    async () => {
      const sticky = scene.path("sticky");
      mkdirSync(sticky);
      chmodSync(sticky, 0o1777);
      const echo = (word: string): string[] => ["--name", "a53", "--", "echo", word];
      const root = await runIn(`${sticky}/root`, []);
      expect([root.status, root.stdout.toString()]).toEqual([0, "STOLEN\n"]);
      expectRefused(
        await runAs(NOBODY, `${sticky}/root`, echo("user")),
        CONFIG_ERROR,
        `${sticky}/root: it belongs to uid 0, expected uid ${NOBODY}`,
      );
      const user = await runAs(NOBODY, `${sticky}/user`, echo("user"));
      expect([user.status, user.stdout.toString(), user.stderr]).toEqual([0, "user\n", ""]);
      expectRefused(
        await runIn(`${sticky}/user`, []),
        CONFIG_ERROR,
        `${sticky}/user: it belongs to uid ${NOBODY}, expected uid 0`,
      );
      // Whose it is can go on: the other one has left nothing in it.
      const again = await runAs(NOBODY, `${sticky}/user`, echo("again"));
      expect([again.status, again.stdout.toString(), again.stderr]).toEqual([0, "again\n", ""]);
    },
  );

  rootTest("the sticky folder itself is no state directory, for either of them", async () => {
    const sticky = scene.path("sticky-itself");
    mkdirSync(sticky);
    chmodSync(sticky, 0o1777);
    expectRefused(await runIn(sticky, []), CONFIG_ERROR, /others may write into it \(mode 1777\)/);
    const user = await runAs(NOBODY, sticky, ["--", "echo", "ran"]);
    expectRefused(user, CONFIG_ERROR, `${sticky}: it belongs to uid 0`);
    expect(readdirSync(sticky)).toEqual([]);
  });

  rootTest("a file of somebody else's below a good directory is refused by its name", async () => {
    const state = scene.path("mixed");
    expect((await runIn(state, [])).status).toBe(0);
    const place = placeOf(state, "trouble");
    for (const path of [place.lock, place.fence]) {
      chownSync(path, NOBODY, NOBODY);
      expectRefused(
        await runIn(state, []),
        CONFIG_ERROR,
        `${path}: it belongs to uid ${NOBODY}, expected uid 0`,
      );
      chownSync(path, 0, 0);
    }
    expect((await runIn(state, [])).status).toBe(0);
  });
});

const strace = Bun.which("strace");
if (strace === null) console.error("needs strace, not run here: A-54");

/** A newcomer whose flock(2) answers this, each time or as `when` says. */
function runWithFlock(name: string, error: string): Promise<Ended> {
  const injects = ["-e", "trace=flock", "-e", `inject=flock:error=${error}`];
  const run = [RELEASE, "run", "--name", name, "--log", "off", "--", "echo", "STOLEN"];
  return scene.startProgram(["strace", "-f", "-qq", "-o", "/dev/null", ...injects, ...run]).ended;
}

describe("A-54: where the lock call itself is refused", () => {
  const straceTest = test.skipIf(strace === null);

  straceTest("a first start is refused with 78, and the directory is no promise", async () => {
    const env = { WATCHDOG_STATE_DIR: scene.path("no-locks") };
    const words = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=flock"];
    const inject = ["-e", "inject=flock:error=ENOLCK"];
    const run = [RELEASE, "run", "--log", "off", "--", "echo", "STOLEN"];
    const ended = await scene.startProgram([...words, ...inject, ...run], { env }).ended;
    expectRefused(ended, CONFIG_ERROR, scene.path("no-locks"), "flock");
    expect(readdirSync(scene.path("no-locks"))).toEqual([]);
    expect((await runIn(scene.path("no-locks"), [])).status).toBe(0);
  });

  straceTest("neither a held nor a free key is taken, and the reason is named", async () => {
    const { run, place, release } = await holdJob(scene, "a54");
    expect((await newcomer(scene, "a54-free")).status).toBe(0);
    for (const name of ["a54", "a54-free", "a54-new"]) {
      const ended = await runWithFlock(name, "ENOLCK");
      const path = placeOf(scene.stateDirectory, name).lock;
      expectRefused(ended, CONFIG_ERROR, `job:${name} cannot be asked for: ${path}: `);
    }
    release();
    expect((await run.ended).status).toBe(RELEASED);
    expect(readLease(place)).toMatchObject({ generation: 1, state: "released" });
    for (const name of ["a54", "a54-free", "a54-new"]) {
      expect([name, (await newcomer(scene, name)).status]).toEqual([name, 0]);
    }
  });

  straceTest("a call that is only interrupted is made again", async () => {
    const ended = await runWithFlock("a54-eintr", "EINTR:when=1..20");
    expect([ended.status, ended.stdout.toString(), ended.stderr]).toEqual([0, "STOLEN\n", ""]);
  });

  straceTest("the reason has the name that people know", async () => {
    const ended = await runWithFlock("a54-named", "ENOLCK");
    expectRefused(ended, CONFIG_ERROR, /ENOLCK|no locks available/i);
  });
});

/** A default state directory's user with an environment of this kind. */
async function asNameless(environment: readonly string[], words: readonly string[]) {
  const env = ["env", "-i", "-C", "/", scene.cookieEntry, ...environment];
  return [...asUser(NAMELESS), ...env, await shareBinary(scene), ...words];
}

rootTest("A-80: starts whose HOME and XDG differ exclude each other", async () => {
  const state = `/var/tmp/watchdog-${NAMELESS}`;
  const shell = ["HOME=/home/one", "XDG_STATE_HOME=/tmp/xdg", "PATH=/usr/bin:/bin", "USER=one"];
  const cron = ["HOME=/", "SHELL=/bin/sh", "PATH=/usr/bin:/bin", "LOGNAME=other"];
  const [ready, gate] = [scene.path("homes.ready"), scene.path("homes", "gate")];
  mkdirSync(scene.path("homes"));
  chmodSync(scene.path("homes"), 0o755);
  writeFileSync(ready, "");
  chownSync(ready, NAMELESS, NAMELESS);
  const holds = `echo ready >'${ready}'; until [ -e '${gate}' ]; do sleep 0.05; done; exit 5`;
  try {
    const words = ["run", "--name", "homes", "--", "sh", "-c", holds];
    const holder = scene.startProgram(await asNameless(shell, words));
    await waitForText(ready);
    const second = ["run", "--name", "homes", "--", "echo", "STOLEN"];
    for (const environment of [cron, shell, [...cron, "XDG_STATE_HOME="], []]) {
      const { status, stdout } = await scene.startProgram(await asNameless(environment, second))
        .ended;
      expect([environment, status, stdout.toString()]).toEqual([environment, LOCKED, ""]);
    }
    writeFileSync(gate, "");
    expect((await holder.ended).status).toBe(5);
    expect((await scene.startProgram(await asNameless(cron, second)).ended).status).toBe(0);
    expect(readLease(placeOf(state, "homes"))).toMatchObject({ generation: 2, state: "released" });
  } finally {
    rmSync(state, { recursive: true, force: true });
  }
});

test("two paths to one state directory exclude each other", async () => {
  symlinkSync(scene.directory, scene.path("other-way"));
  const { run, place, release } = await holdJob(scene, "paths");
  const env = { WATCHDOG_STATE_DIR: `${scene.path("other-way")}/state` };
  expect((await newcomer(scene, "paths", [], { env })).status).toBe(LOCKED);
  const lines = await askLines(scene, ["status", "--state-dir", env.WATCHDOG_STATE_DIR, "paths"]);
  expect(lines[0]).toMatch(/^job:paths {2}held since /);
  release();
  await run.ended;
  expect((await newcomer(scene, "paths", [], { env })).status).toBe(0);
  expect(readLease(place)).toMatchObject({ generation: 2, state: "released" });
});
