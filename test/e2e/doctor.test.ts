/**
 * `watchdog doctor`: each check is made to fail for real, and is well where nothing is wrong. What
 * needs root (mounts, other users) is in doctor-root.test.ts.
 */
import { Database } from "bun:sqlite";
import { beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { ask, waitForHolder } from "../support/ask.ts";
import { examine, type Examined, findingsOf, PLAIN } from "../support/doctor-scene.ts";
import { placeOf } from "../support/lease-seen.ts";
import { PYTHON, runShell } from "../support/outside.ts";
import { FIXTURES, openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;

/** A state directory that a run has left. */
async function leaveState(name: string): Promise<{ state: string; words: string[] }> {
  const state = scene.path(name);
  const words = ["--state-dir", state];
  expect((await scene.run([...words, "--name", name, "--", "true"])).status).toBe(0);
  return { state, words };
}

/** Where one system call gives this answer each time. */
function faked(call: string, answer: number): string[] {
  return [PYTHON, `${FIXTURES}/fakes-a-system-call.py`, call, String(answer)];
}

/** Those of no finding, as they are on this machine: in a container some are notes. */
let well: Examined;
beforeAll(async () => {
  well = await examine(scene, ["--state-dir", scene.path("never")]);
}, LIMIT_MS);

function expectOnly(found: Examined, ...checks: string[]): void {
  expect([findingsOf(found), found.status, found.stderr]).toEqual([checks, 1, ""]);
}

describe("where all is well", () => {
  test("nothing is found, 0, and each promise holds as far as this machine lets it", () => {
    expect([well.status, findingsOf(well), well.stderr]).toEqual([0, [], ""]);
    expect(Object.keys(well.states)).toHaveLength(19);
    expect(Object.values(well.states)).not.toContain("unknown");
    const words = Object.values(well.promises).join(" ");
    expect(words).not.toMatch(/does-not-hold|unproven/);
    for (const promise of ["generation", "fence"]) expect(well.promises[promise]).toBe("holds");
  });

  test("no state directory is made, and nothing is left beside its place", async () => {
    expect(existsSync(scene.path("never"))).toBe(false);
    expect(well.seen["state-directory"]).toContain("is not there yet and can be made");
    const before = readdirSync(scene.directory);
    expect(before.filter((name) => name.includes("doctor"))).toEqual([]);
    const { state, words } = await leaveState("used");
    const files = readdirSync(state);
    const found = await examine(scene, words);
    expect([found.status, found.promises]).toEqual([0, well.promises]);
    // SQLite leaves its -wal and -shm behind, as after every reader.
    const own = readdirSync(state).filter((name) => !/^journal\.db-(wal|shm)$/.test(name));
    expect(own).toEqual(files);
    expect(found.seen["journal"]).toMatch(/^whole, version 1\.\d+$/);
    expect(found.stateDirectory).toBe(state);
  });

  test("a living owner may be signalled and read, and runs on", async () => {
    const run = scene.start(["--name", "living", "--", "sleep", "97501"]);
    await waitForHolder(scene, "living");
    const found = await examine(scene);
    expect([found.status, found.seen["owners"]]).toEqual([
      0,
      "1 living owners may be signalled and read",
    ]);
    await waitForHolder(scene, "living");
    run.kill("SIGTERM");
    expect((await run.ended).status).toBe(143);
  });

  test("people get a line for each check and each promise, and the sum", async () => {
    const { status, stdout } = await ask(scene, ["doctor"], { env: PLAIN });
    const lines = stdout.toString().split("\n");
    expect(status).toBe(0);
    expect(lines.filter((line) => /^(ok|note) +[a-z-]+ +\S/.test(line))).toHaveLength(19);
    expect(
      lines.filter((line) => /^(exclusion|generation|fence|recovery|no-harm) /.test(line)),
    ).toHaveLength(5);
    expect(lines.at(-2)).toBe("nothing was found");
  });
});

describe("the state directory", () => {
  test("with a mode that lets others write is a finding, and nothing is tried in it", async () => {
    const { state, words } = await leaveState("open");
    chmodSync(state, 0o777);
    const found = await examine(scene, words);
    expectOnly(found, "state-directory");
    expect(found.seen["state-directory"]).toContain("others may write into it (mode 777)");
    expect([found.states["locks"], found.states["journal"]]).toEqual(["unknown", "unknown"]);
    expect(found.promises["exclusion"]).toBe("does-not-hold: state-directory");
    chmodSync(state, 0o700);
    expect((await examine(scene, words)).status).toBe(0);
  });

  test("that is a link, or below a file, is a finding", async () => {
    symlinkSync(scene.path("used"), scene.path("link"));
    expectOnly(await examine(scene, ["--state-dir", scene.path("link")]), "state-directory");
    writeFileSync(scene.path("file"), "");
    const below = await examine(scene, ["--state-dir", scene.path("file", "state")]);
    expectOnly(below, "state-directory");
  });

  test("that would be made for a group that is not there is a finding", async () => {
    const words = ["--state-dir", scene.path("unmade")];
    const asked = await examine(scene, [...words, "--state-group", "nosuch"]);
    expectOnly(asked, "state-directory");
    expect(asked.seen["state-directory"]).toContain("cannot be made: there is no group 'nosuch'");
    expect(asked.promises["exclusion"]).toStartWith("does-not-hold");
    const env = { WATCHDOG_STATE_GROUP: "nosuch" };
    expectOnly(await examine(scene, words, { env }), "state-directory");
    const own = String(process.getegid?.() ?? 0);
    expect((await examine(scene, [...words, "--state-group", own])).status).toBe(0);
    expect(existsSync(scene.path("unmade"))).toBe(false);
  });

  test("that the asked group does not share is a finding", async () => {
    const { words } = await leaveState("unshared");
    const env = { WATCHDOG_STATE_GROUP: String(process.getegid?.() ?? 0) };
    const found = await examine(scene, words, { env });
    expectOnly(found, "state-directory");
    expect(found.seen["state-directory"]).toContain("is not shared by the group");
  });

  test("that looks like a remote one is a finding", async () => {
    const library = scene.path("pretends-remote.so");
    const source = `${FIXTURES}/pretends-remote.c`;
    const made = await runShell(scene, `cc -shared -fPIC -o "${library}" "${source}" -ldl`);
    expect(made.status).toBe(0);
    const { words } = await leaveState("remote");
    const found = await examine(scene, words, { env: { LD_PRELOAD: library } });
    expectOnly(found, "state-directory", "variables");
    expect(found.seen["state-directory"]).toContain("expected a local file system");
  });
});

describe("the proof of locks", () => {
  test("finds a kernel that grants every lock to everybody", async () => {
    const found = await examine(scene, [], { within: faked("flock", 0) });
    expectOnly(found, "locks");
    expect(found.seen["locks"]).toBe("a lock that is held was given to a second descriptor");
    expect(found.promises["exclusion"]).toBe("does-not-hold: locks");
    expect(found.promises["fence"]).toBe("does-not-hold: locks");
    expect(found.promises["generation"]).toBe("holds");
  });

  test("finds one that has no locks", async () => {
    const found = await examine(scene, [], { within: faked("flock", 37) });
    expectOnly(found, "locks");
    expect(found.seen["locks"]).toContain("ENOLCK");
  });
});

test("a disk that cannot be synced is a finding, and numbers are not promised", async () => {
  const found = await examine(scene, [], { within: faked("fsync", 5) });
  expectOnly(found, "files");
  expect(found.promises["generation"]).toBe("does-not-hold: files");
});

test("without memory files there is no guard, and recovery holds in part", async () => {
  const found = await examine(scene, [], { within: faked("memfd_create", 38) });
  expectOnly(found, "guard");
  expect(found.promises["recovery"]).toMatch(/^holds-in-part: .*guard/);
});

test("without pidfds a note says that check and signal are two steps", async () => {
  const found = await examine(scene, [], { within: faked("pidfd_open", 38) });
  expect([found.status, found.states["pidfd"]]).toEqual([0, "note"]);
  expect(found.promises["no-harm"]).toBe("holds-in-part: pidfd");
});

test("few descriptors are a finding, and what they do not suffice for is unknown", async () => {
  const within = (limit: number): string[] => ["sh", "-c", `ulimit -n ${limit} && exec "$@"`, "sh"];
  const few = await examine(scene, [], { within: within(40) });
  expectOnly(few, "limits");
  expect(few.promises["recovery"]).toMatch(/^holds-in-part: .*limits/);
  const fewer = await examine(scene, [], { within: within(10) });
  expect([fewer.states["locks"], fewer.seen["locks"]]).toEqual([
    "unknown",
    "no descriptors are left to try it",
  ]);
  expect((await examine(scene, [], { within: within(100) })).status).toBe(0);
});

test("without FFI it still answers, and no promise of leases is left", async () => {
  const within = [PYTHON, `${FIXTURES}/denies-write-exec.py`];
  const found = await examine(scene, [], { within });
  expect([found.status, found.states["ffi"]]).toEqual([1, "finding"]);
  for (const promise of ["exclusion", "generation", "fence", "recovery"]) {
    expect(found.promises[promise]).toStartWith("does-not-hold: ffi");
  }
});

describe("the journal", () => {
  test("with a FIFO in its place is a finding, and nobody hangs", async () => {
    const { state, words } = await leaveState("fifo");
    const made = await runShell(scene, `rm "${state}"/journal.db* && mkfifo "${state}/journal.db"`);
    expect(made.status).toBe(0);
    const found = await examine(scene, words);
    expectOnly(found, "journal", "repair-files");
    expect(found.seen["journal"]).toContain("it is not a regular file");
    expect(found.seen["repair-files"]).toContain("journal.db is a FIFO, expected a file");
    expect(found.promises["exclusion"]).toBe(well.promises["exclusion"] ?? "");
  });

  test("that is broken is a finding, and is not touched", async () => {
    const { state, words } = await leaveState("broken");
    for (const name of ["journal.db-wal", "journal.db-shm"])
      rmSync(`${state}/${name}`, { force: true });
    writeFileSync(`${state}/journal.db`, "this is no database, and was never one\n".repeat(200));
    const found = await examine(scene, words);
    expectOnly(found, "journal");
    expect(readdirSync(state).filter((name) => name.includes("broken"))).toEqual([]);
  });

  test("of a newer major version is a finding", async () => {
    const { state, words } = await leaveState("newer");
    const database = new Database(`${state}/journal.db`);
    database.run("PRAGMA user_version = 2001");
    database.close();
    const found = await examine(scene, words);
    expectOnly(found, "journal");
    expect(found.seen["journal"]).toBe("journal.db is of version 2.1");
  });

  test("with writes that wait says so; files that could not be read are a finding", async () => {
    const { state, words } = await leaveState("waits");
    mkdirSync(`${state}/spool`, { mode: 0o700, recursive: true });
    const name = `${state}/spool/0000000001-${crypto.randomUUID()}.json`;
    writeFileSync(name, "{}");
    const waiting = await examine(scene, words);
    expect([waiting.status, waiting.states["journal"]]).toEqual([0, "note"]);
    writeFileSync(`${name}.bad`, "{}");
    expectOnly(await examine(scene, words), "journal");
    rmSync(`${name}.bad`);
    for (let number = 2; number <= 500; number += 1) {
      const digits = String(number).padStart(10, "0");
      writeFileSync(`${state}/spool/${digits}-${crypto.randomUUID()}.json`, "{}");
    }
    const many = await examine(scene, words);
    expectOnly(many, "journal");
    expect(many.seen["journal"]).toBe("500 writes wait in spool/, at most 1000 do");
  });
});

describe("the way of a repair", () => {
  test("is blocked by a FIFO in place of a lock, and by an unreadable record", async () => {
    const { state, words } = await leaveState("blocked");
    const place = placeOf(state, "blocked");
    expect((await runShell(scene, `rm "${place.lock}" && mkfifo "${place.lock}"`)).status).toBe(0);
    writeFileSync(place.record, "{ this is no record");
    const found = await examine(scene, words);
    expectOnly(found, "repair-files");
    expect(found.seen["repair-files"]).toContain("/lock is a FIFO, expected a file");
    expect(found.seen["repair-files"]).toContain("the record of job:blocked cannot be read");
    expect(found.promises["recovery"]).toMatch(/^holds-in-part: repair-files/);
  });

  test("is blocked by a directory in place of its own lock", async () => {
    const { state, words } = await leaveState("own-lock");
    mkdirSync(`${state}/repair.lock`);
    expectOnly(await examine(scene, words), "repair-files");
  });
});

test("a clock that is behind the files of the state directory is a finding", async () => {
  const { state, words } = await leaveState("future");
  const ahead = Date.now() / 1000 + 7 * 86_400;
  utimesSync(`${state}/FORMAT`, ahead, ahead);
  const found = await examine(scene, words);
  expectOnly(found, "clocks");
  expect(found.seen["clocks"]).toContain("FORMAT is newer than that");
});

describe("the environment", () => {
  test.each([
    ["LD_PRELOAD", "libm.so.6", "loads code into watchdog too"],
    ["BUN_JSC_useConcurrentGC", "1", "changes Bun"],
    ["WATCHDOG_TIEMOUT", "5", "is no name of watchdog's"],
  ])("%s is a finding that names it and not its value", async (name, value, words) => {
    const found = await examine(scene, [], { env: { [name]: value } });
    expectOnly(found, "variables");
    expect(found.seen["variables"]).toContain(`${name} ${words}`);
    expect(found.seen["variables"]).not.toContain(value);
    expect(found.advice["variables"]).toBe(`unset ${name}`);
    expect(found.promises["no-harm"]).toMatch(/^holds-in-part: .*variables/);
  });

  test("of a later version's option is refused by runs, and found twice", async () => {
    const found = await examine(scene, [], { env: { WATCHDOG_STORE: "etcd://x" } });
    expectOnly(found, "variables", "configuration");
  });

  test("what does nothing to watchdog is a note", async () => {
    const env = { NODE_OPTIONS: "--no-warnings", MALLOC_ARENA_MAX: "2" };
    const found = await examine(scene, [], { env });
    expect([found.status, found.states["variables"]]).toEqual([0, "note"]);
  });
});

describe("the configuration", () => {
  function write(name: string, text: string): string[] {
    writeFileSync(scene.path(name), text, { mode: 0o600 });
    return ["--config", scene.path(name)];
  }

  test("that is wrong is a finding, each line of it, and nobody knows the rights", async () => {
    const found = await examine(scene, write("wrong.toml", "[run]\ntiemout = 1\nlog = 7\n"));
    expectOnly(found, "configuration");
    expect(found.seen["configuration"]).toContain("run.tiemout: found an unknown key");
    expect(found.seen["configuration"]).toContain("run.log");
    expect(found.states["rights"]).toBe("unknown");
  });

  test("that is not there, or that others may write, is a finding", async () => {
    expectOnly(await examine(scene, ["--config", scene.path("none.toml")]), "configuration");
    const words = write("open.toml", "");
    expect((await examine(scene, words)).status).toBe(0);
    chmodSync(scene.path("open.toml"), 0o666);
    expectOnly(await examine(scene, words), "configuration");
  });

  test("that contradicts a variable is a finding, because every run is refused", async () => {
    const found = await examine(scene, [], { env: { WATCHDOG_TIMEOUT: "soon" } });
    expectOnly(found, "configuration");
    expect(found.seen["configuration"]).toContain("WATCHDOG_TIMEOUT");
  });

  test("names the state directory that is looked at", async () => {
    const state = scene.path("configured");
    const words = write("place.toml", `state_dir = "${state}"\n`);
    const found = await examine(scene, words, { env: { WATCHDOG_STATE_DIR: undefined } });
    expect([found.status, found.stateDirectory]).toEqual([0, state]);
  });

  test("whose policy leaves this user out is a finding; of an approval alone, a note", async () => {
    const refused = await examine(scene, write("policy.toml", '[policy]\nrepair = ["zoe"]\n'));
    expectOnly(refused, "rights");
    expect(refused.seen["rights"]).toContain("not 'repair': ");
    const noted = await examine(scene, write("approve.toml", '[policy]\napprove = ["zoe"]\n'));
    expect([noted.status, noted.states["rights"]]).toEqual([0, "note"]);
  });
});
