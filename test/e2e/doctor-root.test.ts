/**
 * `watchdog doctor` where only root can prepare the ground: mounts in a namespace of their own,
 * pid namespaces, and real other users.
 */
import { expect, test } from "bun:test";
import { chmodSync, chownSync, mkdirSync, readdirSync, realpathSync } from "node:fs";
import { asUser, shareBinary } from "../support/as-user.ts";
import { ask } from "../support/ask.ts";
import { examine, type Examined, findingsOf } from "../support/doctor-scene.ts";
import { FIXTURES, openScene, rootTest } from "../support/scene.ts";
import { waitForText } from "../support/processes.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
/** No other test uses these numbers, and no database has them. */
const GROUP = 54_380;
const [ANN, BEN] = [54_381, 54_382];

/** A script of mounts, which nobody else sees, and then the program. */
function inMounts(script: string): string[] {
  return ["unshare", "-m", "/bin/sh", "-c", `${script} && exec "$@"`, "sh"];
}

function expectOnly(found: Examined, ...checks: string[]): void {
  expect([findingsOf(found), found.status]).toEqual([checks, 1]);
}

async function leaveState(name: string): Promise<{ state: string; words: string[] }> {
  const state = scene.path(name);
  const words = ["--state-dir", state];
  expect((await scene.run([...words, "--name", name, "--", "true"])).status).toBe(0);
  return { state, words };
}

test("the tests of this file need root, and say so where it is not to be had", () => {
  expect(typeof process.getuid?.()).toBe("number");
});

rootTest(
  "a state directory on a read-only mount is a finding: nothing can be granted",
  async () => {
    const { state, words } = await leaveState("read-only");
    const script = `mount --bind "${state}" "${state}" && mount -o remount,bind,ro "${state}"`;
    const found = await examine(scene, words, { within: inMounts(script) });
    // SQLite needs a -shm beside a journal to read it.
    expectOnly(found, "files", "journal", "repair-files");
    expect(found.seen["files"]).toContain("EROFS");
    expect(found.seen["repair-files"]).toContain("cannot be written");
    expect([found.states["locks"], found.promises["exclusion"]]).toEqual([
      "unknown",
      "unproven: locks",
    ]);
    expect(found.promises["generation"]).toBe("does-not-hold: files");
    expect((await examine(scene, words)).status).toBe(0);
  },
);

rootTest("a full disk is a finding, and so is one without room for names", async () => {
  const state = scene.path("tiny");
  mkdirSync(state, { mode: 0o700 });
  const fill = `head -c 4m /dev/zero >"${state}/fill" 2>/dev/null; true`;
  const full = `mount -t tmpfs -o size=2m,mode=700 x "${state}" && { ${fill}; }`;
  const words = ["--state-dir", state];
  const found = await examine(scene, words, { within: inMounts(full) });
  expectOnly(found, "room", "files");
  expect(found.seen["files"]).toContain("ENOSPC");
  const nameless = `mount -t tmpfs -o size=2m,nr_inodes=20,mode=700 x "${state}"`;
  expectOnly(await examine(scene, words, { within: inMounts(nameless) }), "room");
  const roomy = `mount -t tmpfs -o size=8m,mode=700 x "${state}"`;
  expect((await examine(scene, words, { within: inMounts(roomy) })).status).toBe(0);
});

rootTest("a /proc that hides others is a finding for a user, and none for root", async () => {
  const binary = await shareBinary(scene);
  const state = scene.path("hidden");
  mkdirSync(state, { mode: 0o700 });
  chownSync(state, ANN, ANN);
  const words = ["--state-dir", state];
  const look = (mount: string): Promise<Examined> =>
    examine(scene, words, { within: [...inMounts(mount), ...asUser(ANN)], binary, cwd: "/" });
  for (const hiding of ["hidepid=2", "hidepid=1"]) {
    const found = await look(`mount -t proc -o ${hiding} proc /proc`);
    expectOnly(found, "processes");
    expect(found.promises["exclusion"]).toBe("holds-in-part: processes");
  }
  expect((await look("mount -t proc -o hidepid=0 proc /proc")).status).toBe(0);
  expect((await look(`mount -t proc -o hidepid=2,gid=${ANN} proc /proc`)).status).toBe(0);
  const own = await leaveState("of-root");
  const mount = inMounts("mount -t proc -o hidepid=2 proc /proc");
  expect((await examine(scene, own.words, { within: mount })).status).toBe(0);
});

rootTest("without /bin/sh there is no guard, and recovery holds in part", async () => {
  const hide = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"'];
  const found = await examine(scene, [], { within: [...hide, realpathSync("/bin")] });
  expectOnly(found, "guard");
  expect(found.seen["guard"]).toContain("no such file or directory (ENOENT)");
  expect(found.promises["recovery"]).toMatch(/^holds-in-part: .*guard/);
});

rootTest("a shell that does not become the program is no guard either", async () => {
  for (const shell of ["/bin/false", "/bin/true"]) {
    const within = inMounts(`mount --bind ${shell} /bin/sh`);
    expectOnly(await examine(scene, [], { within }), "guard");
  }
});

rootTest("in a pid namespace of its own exclusion holds in part, which is a note", async () => {
  const within = ["unshare", "-pf", "--mount-proc", "--kill-child"];
  const found = await examine(scene, [], { within });
  expect([found.status, found.states["namespaces"]]).toEqual([0, "note"]);
  expect(found.promises["exclusion"]).toBe("holds-in-part: namespaces");
});

rootTest(
  "a /proc in which this process is not to be found is one that proves nothing",
  async () => {
    // A pid that nobody has outside, and the /proc of outside: that of a namespace of its own, in
    // which only the first few have somebody.
    const far = `echo 31000 >/proc/sys/kernel/ns_last_pid && "$@"; exit $?`;
    const outside = ["unshare", "-pf", "--mount-proc", "--kill-child"];
    const within = [...outside, "unshare", "-pf", "--kill-child", "/bin/sh", "-c", far, "sh"];
    const found = await examine(scene, [], { within });
    expectOnly(found, "processes", "workers");
    expect(found.promises["recovery"]).toBe("does-not-hold: workers");
    expect(found.promises["exclusion"]).toStartWith("holds-in-part: processes");
  },
);

rootTest("without a cgroup a note says that bearers are never proven", async () => {
  const found = await examine(scene, [], {
    within: inMounts("mount --bind /dev/null /proc/$$/cgroup"),
  });
  expect([found.status, found.states["cgroup"]]).toEqual([0, "note"]);
  expect(found.promises["recovery"]).toMatch(/^holds-in-part: .*cgroup/);
});

rootTest("the state directory of another user is a finding, and nothing is written", async () => {
  const state = scene.path("of-ann");
  mkdirSync(state, { mode: 0o700 });
  chownSync(state, ANN, ANN);
  const found = await examine(scene, ["--state-dir", state]);
  expect(findingsOf(found)).toContain("state-directory");
  expect(found.seen["state-directory"]).toContain(`it belongs to uid ${ANN}, expected uid 0`);
  expect(found.states["files"]).toBe("unknown");
});

rootTest("root has a directory looked at that others share, as it may repair there", async () => {
  const state = scene.path("of-a-group");
  mkdirSync(state);
  chownSync(state, ANN, GROUP);
  chmodSync(state, 0o2770);
  const words = ["--state-dir", state];
  const found = await examine(scene, words);
  expect([found.status, found.states["state-directory"], found.states["files"]]).toEqual([
    0,
    "note",
    "ok",
  ]);
  expect(found.seen["state-directory"]).toContain(`runs only with --state-group ${GROUP}`);
  expect(found.promises["exclusion"]).toBe("holds");
  const asked = await examine(scene, [...words, "--state-group", String(GROUP)]);
  expect([asked.status, asked.states["state-directory"]]).toEqual([0, "ok"]);
  expectOnly(await examine(scene, [...words, "--state-group", String(BEN)]), "state-directory");
  chmodSync(state, 0o2775);
  expect(findingsOf(await examine(scene, words))).toContain("state-directory");
});

rootTest("who is in the group of a shared directory finds its files in order", async () => {
  const binary = await shareBinary(scene);
  const state = scene.path("of-two");
  mkdirSync(state);
  chownSync(state, ANN, GROUP);
  chmodSync(state, 0o2770);
  const words = ["--state-dir", state];
  const run = ["run", ...words, "--name", "two", "--log", "off", "--", "true"];
  const ann = scene.startProgram([...asUser(ANN, [GROUP]), binary, ...run], { cwd: "/" });
  expect((await ann.ended).status).toBe(0);
  const found = await examine(scene, words, { within: asUser(BEN, [GROUP]), binary, cwd: "/" });
  expect(found.states["repair-files"]).toBe("ok");
  expectOnly(found, "rights");
});

rootTest("a directory that may not be written by this user is a finding", async () => {
  const binary = await shareBinary(scene);
  const state = scene.path("unwritable");
  mkdirSync(state, { mode: 0o700 });
  chownSync(state, ANN, ANN);
  chmodSync(state, 0o500);
  const words = ["--state-dir", state];
  const found = await examine(scene, words, { within: asUser(ANN), binary, cwd: "/" });
  expectOnly(found, "files", "repair-files");
  expect(found.seen["files"]).toContain("EACCES");
  const beside = ["--state-dir", scene.path("shared", "state")];
  const unmade = await examine(scene, beside, { within: asUser(ANN), binary, cwd: "/" });
  expectOnly(unmade, "state-directory");
  expect(unmade.seen["state-directory"]).toContain("cannot be made");
});

rootTest("a user whose home is not there has a place in /var/tmp, which is a note", async () => {
  const binary = await shareBinary(scene);
  const env = { WATCHDOG_STATE_DIR: undefined };
  const found = await examine(scene, [], { within: asUser(ANN), binary, cwd: "/", env });
  expect([found.status, found.states["state-directory"], found.stateDirectory]).toEqual([
    0,
    "note",
    `/var/tmp/watchdog-${ANN}`,
  ]);
  expect(readdirSync("/var/tmp").filter((name) => name.includes("doctor"))).toEqual([]);
});

rootTest("few processes for a user are a finding, and none for root", async () => {
  const binary = await shareBinary(scene);
  const few = ["prlimit", "--nproc=60:60"];
  const env = { WATCHDOG_STATE_DIR: undefined };
  const look = { binary, cwd: "/", env };
  expectOnly(await examine(scene, [], { within: [...few, ...asUser(ANN)], ...look }), "limits");
  expect((await examine(scene, [], { within: few })).status).toBe(0);
});

rootTest("of a living owner of another user it says that nobody may signal him", async () => {
  const binary = await shareBinary(scene);
  const marks = scene.path("marks");
  mkdirSync(marks);
  chmodSync(marks, 0o1777);
  const state = `${marks}/state`;
  const words = ["--state-dir", state];
  const ann = asUser(ANN, [GROUP]);
  const command = ["--name", "hers", "--log", "off", "--", "sleep", "97511"];
  const run = scene.startProgram(
    [...ann, binary, "run", ...words, "--state-group", String(GROUP), ...command],
    { cwd: "/" },
  );
  await waitFor(async () => {
    const shown = await ask(scene, ["lease", "show", "job:hers", "--json", ...words]);
    return shown.status === 0 && JSON.parse(shown.stdout.toString()).verdict === "held";
  }, "a holder");
  const look = (within: readonly string[]): Promise<Examined> =>
    examine(scene, words, { within, binary, cwd: "/" });
  const ben = await look(asUser(BEN, [GROUP]));
  expectOnly(ben, "owners", "rights");
  expect(ben.seen["owners"]).toMatch(/^the owner of job:hers \(pid \d+\) may not be signalled$/);
  expect(ben.promises["recovery"]).toMatch(/^holds-in-part: .*owners/);
  const own = await look(ann);
  expect([own.status, own.seen["owners"]]).toEqual([
    0,
    "1 living owners may be signalled and read",
  ]);
  run.kill("SIGTERM");
  expect((await run.ended).status).toBe(143);
});

const compiler = Bun.which("cc");
if (compiler === null) console.error("needs a C compiler, not run here: members of other rights");

if (compiler !== null) {
  rootTest("a member of an own run that has more rights is a note that names it", async () => {
    const binary = await shareBinary(scene);
    const place = scene.path("rights");
    mkdirSync(place);
    const [helper, file] = [`${place}/becomes-root`, `${place}/pid`];
    const made = [compiler, "-O2", "-o", helper, `${FIXTURES}/becomes-root.c`];
    expect(Bun.spawnSync(made).success).toBe(true);
    chmodSync(helper, 0o4755);
    chmodSync(place, 0o777);
    const words = ["--state-dir", `${place}/state`];
    const quick = ["--heartbeat-interval", "100ms", "--log", "off", "--name", "rights"];
    const run = scene.startProgram(
      [...asUser(ANN), binary, "run", ...words, ...quick, "--", helper, "60", file],
      { cwd: "/" },
    );
    const pid = Number(await waitForText(file));
    const look = (): Promise<Examined> =>
      examine(scene, words, { within: asUser(ANN), binary, cwd: "/" });
    const found = await waitFor(async () => {
      const seen = await look();
      return seen.states["owners"] === "note" && seen;
    }, "a beat with the member");
    expect([found.status, found.seen["owners"]]).toEqual([
      0,
      `members of job:rights may not be signalled by this user (pid ${pid})`,
    ]);
    process.kill(pid, "SIGKILL");
    expect((await run.ended).status).toBe(137);
    expect((await look()).states["owners"]).toBe("ok");
  });
}
