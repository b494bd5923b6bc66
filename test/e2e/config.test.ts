/**
 * The configuration with the real binary: what a file says holds, nothing in it is passed over, and
 * where a value comes from can be seen.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { type Ended, openScene, RELEASE, rootTest } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);

function write(name: string, text: string): string {
  const path = scene.path(name);
  writeFileSync(path, text);
  chmodSync(path, 0o600);
  return path;
}

async function ask(args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  return scene.startProgram([RELEASE, ...args], { env }).ended;
}

async function askJson(args: readonly string[]): Promise<ReturnType<typeof JSON.parse>> {
  return JSON.parse((await ask(args)).stdout.toString());
}

let plain = "";

beforeAll(() => {
  plain = write("plain.toml", '[run]\nquiet = true\ntimeout = "1h"\nlog = "off"\n');
});

/** The hours of --timeout, as the command hears of it, and whether it hears of a configuration. */
const SHOW = `
  hours=none
  [ -z "$WATCHDOG_DEADLINE" ] ||
    hours=$(( (WATCHDOG_DEADLINE - $(date +%s) + 600) / 3600 ))
  echo "$hours \${WATCHDOG_CONFIG-none}"
  exit 3`;
const show = ["sh", "-c", SHOW];

function isKill({ signal }: { readonly signal: string }): boolean {
  return signal === "KILL";
}

describe("a run", () => {
  test("does what the file of --config says, and its command does not hear of it", async () => {
    const ended = await scene.run(["--config", plain, "--name", "n", "--", ...show]);
    expect([ended.stdout.toString(), ended.status]).toEqual(["1 none\n", 3]);
    const byVariable = await scene.run(["--name", "n", "--", ...show], {
      env: { WATCHDOG_CONFIG: plain },
    });
    expect(byVariable.stdout.toString()).toBe("1 none\n");
    const silent = await scene.run(["--config", plain, "--", "echo", "x"]);
    expect([silent.stdout.toString(), silent.stderr, silent.status]).toEqual(["", "", 0]);
    const without = await scene.run(["--name", "n", "--log", "off", "--", ...show]);
    expect(without.stdout.toString()).toBe("none none\n");
  });

  test("is beaten by a variable, and that by a flag", async () => {
    const args = ["--config", plain, "--name", "n"];
    const env = { WATCHDOG_TIMEOUT: "2h" };
    const byVariable = await scene.run([...args, "--", ...show], { env });
    expect(byVariable.stdout.toString()).toBe("2 none\n");
    const byFlag = await scene.run([...args, "--timeout", "3h", "--", ...show], { env });
    expect(byFlag.stdout.toString()).toBe("3 none\n");
  });

  test("hears of its job's own table, by the name that it is given or makes itself", async () => {
    const path = write(
      "jobs.toml",
      `[run]
log = "off"
timeout = "1h"
[jobs.nightly]
timeout = "4h"
lock = ["lane:gpu", "db:orders"]
result_file = "${scene.path("nightly.json")}"
`,
    );
    const named = await scene.run(["--config", path, "--name", "nightly", "--", ...show]);
    expect([named.stdout.toString(), named.stderr, named.status]).toEqual(["4 none\n", "", 3]);
    const record = JSON.parse(readFileSync(scene.path("nightly.json"), "utf8"));
    const keys = record.leases.map((key: { kind: string; name: string }) => key.name);
    expect(keys.toSorted()).toEqual(["gpu", "nightly", "orders"]);
    const other = await scene.run(["--config", path, "--name", "other", "--", ...show]);
    expect(other.stdout.toString()).toBe("1 none\n");
    // A run without a name has the one that the status shows.
    const first = await scene.run([...scene.recordTo("first"), "--", ...show]);
    expect(first.status).toBe(3);
    const { job } = scene.readRecord("first");
    const own = write("own.toml", `[jobs.${JSON.stringify(job)}]\ntimeout = "5h"\n`);
    const byOwnName = await scene.run(["--config", own, "--", ...show]);
    expect(byOwnName.stdout.toString()).toBe("5 none\n");
    const elsewhere = await scene.run(["--config", own, "--", ...show, "more"]);
    expect(elsewhere.stdout.toString()).toBe("none none\n");
    const shown = await askJson(["config", "show", "--json", "--config", path]);
    const ofJob = shown.settings.filter(({ key }: { key: string }) => key.startsWith("jobs."));
    expect(ofJob.map(({ key, from }: { key: string; from: string }) => [key, from])).toEqual([
      ["jobs.nightly.lock", path],
      ["jobs.nightly.timeout", path],
      ["jobs.nightly.result_file", path],
    ]);
  });

  test("with kill_after of a file kills after a limit, and no clean-up after TERM", async () => {
    const path = write("grace.toml", '[run]\nkill_after = "300ms"\nlog = "off"\n');
    const words = ["--config", path, "--name", "grace"];
    const ready = scene.path("ready");
    const cleanUp = `trap "sleep 2; echo cleaned; exit 7" TERM; : >"${ready}"; sleep 60 & wait`;
    const asked = scene.start([...words, "--", "sh", "-c", cleanUp]);
    await waitFor(() => existsSync(ready), "the command");
    asked.kill("SIGTERM");
    const ended = await asked.ended;
    expect([ended.stdout.toString(), ended.status]).toEqual(["cleaned\n", 7]);
    const deaf = `trap "" TERM; sleep 60; echo late`;
    const limits = ["--timeout", "2s", ...scene.recordTo("grace")];
    const limited = await scene.run([...words, ...limits, "--", "sh", "-c", deaf]);
    expect([limited.stdout.toString(), limited.status]).toEqual(["", 124]);
    const kill = scene.readRecord("grace")["signals"].find(isKill);
    expect(kill.at_ms).toBeLessThan(9_000); // the grace would be 10 s without the file
  });

  test("does not start where anything in the file is wrong: 78, and what", async () => {
    const wrong: readonly (readonly [string, string])[] = [
      ["[run]\ntiemout = 5\n", "run.tiemout: found an unknown key"],
      ["[run]\ntimeout = true\n", "run.timeout: found true"],
      ["[jobs.x]\ntiemout = 5\n", "jobs.x.tiemout: found an unknown key"],
      ["[job.x]\n", "job: found a key that is not available in this version"],
      ["timeout", "found on line 1: "],
      ["[run]\nno_lease = true\nwait = 5\n", "runs without a lease, found wait of "],
      ["[run]\nresult_file = '/tmp/r.json'\n", "run.result_file: found an option that belongs to"],
      ["[run]\nlane = 'gpu'\n", "run.lane: found an option that belongs to one job"],
    ];
    for (const [text, part] of wrong) {
      const path = write("wrong.toml", text);
      const ended = await scene.run(["--config", path, "--", "echo", "started"]);
      expect([text, ended.status, ended.stdout.toString()]).toEqual([text, 78, ""]);
      expect(ended.stderr).toStartWith("watchdog: error: ");
      expect(ended.stderr).toContain(part);
      expect(ended.stderr).toContain("watchdog: hint: watchdog config ");
    }
    const none = await scene.run(["--config", scene.path("none.toml"), "--", "echo", "x"]);
    expect([none.status, none.stdout.toString()]).toEqual([78, ""]);
    const open = write("open.toml", "[run]\nquiet = true\n");
    chmodSync(open, 0o666);
    const ended = await scene.run(["--config", open, "--", "echo", "x"]);
    expect([ended.status, ended.stdout.toString()]).toEqual([78, ""]);
    expect(ended.stderr).toContain("a file that others may write (mode 0666)");
  });
});

describe("the policy of a file", () => {
  test("lets only those run and repair that its lists name", async () => {
    const uid = process.getuid?.() ?? 0;
    const mine = write("mine.toml", `[policy]\nrun = ["uid:${uid}"]\nrepair = ["uid:${uid}"]\n`);
    const other = write("other.toml", '[policy]\nrun = ["uid:4294967000"]\nrepair = []\n');
    const run = (path: string): Promise<Ended> =>
      scene.run(["--config", path, "--log", "off", "--", "echo", "started"]);
    expect((await run(mine)).stdout.toString()).toBe("started\n");
    const refused = await run(other);
    expect([refused.status, refused.stdout.toString()]).toEqual([77, ""]);
    expect(refused.stderr).toContain(`is not in 'run' of [policy] in ${other}`);
    const repair = ["repair", "--apply", "--config"];
    expect((await ask([...repair, mine])).status).toBe(0);
    const unrepaired = await ask([...repair, other]);
    expect([unrepaired.status, unrepaired.stdout.toString()]).toEqual([77, ""]);
    expect((await ask(["repair", "--config", other])).status).toBe(0);
  });
});

describe("the state directory of a file", () => {
  test("is where every command looks, unless the environment says otherwise", async () => {
    const own = scene.path("own-state");
    const path = write("state.toml", `state_dir = ${JSON.stringify(own)}\n`);
    const bare = { ...process.env, WATCHDOG_STATE_DIR: "" } as Record<string, string>;
    const run = await ask(["run", "--config", path, "--name", "here", "--", "true"], bare);
    expect(run.status).toBe(0);
    const status = await ask(["status", "--config", path, "--json"], bare);
    const found = JSON.parse(status.stdout.toString());
    expect([found.state_directory, found.last_runs[0].job]).toEqual([own, "here"]);
    const other = await ask(["status", "--config", path, "--json"], {
      WATCHDOG_STATE_DIR: scene.stateDirectory,
    });
    expect(JSON.parse(other.stdout.toString()).state_directory).toBe(scene.stateDirectory);
  });
});

describe("config show", () => {
  test("names the source of each value", async () => {
    const shown = await ask(["config", "show", "--config", plain], { WATCHDOG_TIMEOUT: "5" });
    const rows = new Map(
      shown.stdout
        .toString()
        .trimEnd()
        .split("\n")
        .map((line) => line.split(/ {2,}/))
        .map(([key = "", value = "", from = ""]) => [key, [value, from]]),
    );
    expect(rows.get("run.log")).toEqual(["off", plain]);
    expect(rows.get("run.quiet")).toEqual(["on", plain]);
    expect(rows.get("run.timeout")).toEqual(["5", "WATCHDOG_TIMEOUT"]);
    expect(rows.get("run.wait")).toEqual(["do not wait", "default"]);
    expect(rows.get("state_dir")).toEqual([scene.stateDirectory, "WATCHDOG_STATE_DIR"]);
    expect([shown.status, shown.stderr]).toEqual([0, ""]);
  });

  test("tells of a variable that a run would refuse", async () => {
    const shown = await ask(["config", "show"], { WATCHDOG_TIMEOUT: "soon" });
    expect(shown.status).toBe(0);
    expect(shown.stderr).toContain('WATCHDOG_TIMEOUT: found "soon", expected a span');
  });

  test("tells what does not count, because the nearer source says otherwise", async () => {
    const path = write("none-of-it.toml", "[run]\nno_lease = true\n");
    const words = ["config", "show", "--config", path];
    const shown = await ask(words, { WATCHDOG_WAIT: "5" });
    expect(shown.stderr).toBe(
      `watchdog: run.no_lease of ${path} does not count, because of run.wait of WATCHDOG_WAIT\n`,
    );
    expect((await ask(words)).stderr).toBe("");
    const turned = await ask(["config", "show"], { WATCHDOG_NO_LEASE: "on", WATCHDOG_LANE: "" });
    expect(turned.stderr).toBe("");
  });

  test("has nothing to show of a file that cannot be accepted: 78", async () => {
    const shown = await ask(["config", "show", "--config", scene.path("none.toml")]);
    expect([shown.status, shown.stdout.toString()]).toEqual([78, ""]);
  });
});

describe("config check", () => {
  test("lists all that is wrong, on stdout, and leaves with 1", async () => {
    const path = write("many.toml", 'x = 1\n[run]\ntiemout = 5\nlock = ["a:b"]\n');
    const checked = await ask(["config", "check", "--config", path]);
    expect([checked.status, checked.stderr]).toEqual([1, ""]);
    expect(checked.stdout.toString().trimEnd().split("\n").length).toBe(3);
    const json = await askJson(["config", "check", "--json", "--config", path]);
    expect(json.findings.map((each: { key: string }) => each.key)).toEqual([
      "x",
      "run.tiemout",
      "run.lock",
    ]);
  });

  test("finds nothing in a right file, and what contradicts itself in another", async () => {
    expect((await ask(["config", "check", "--config", plain])).status).toBe(0);
    const path = write("spans.toml", '[run]\nstale_after = "8s"\nheartbeat_interval = "6s"\n');
    const checked = await ask(["config", "check", "--config", path]);
    expect(checked.status).toBe(1);
    expect(checked.stdout.toString()).toContain("expected at least 12s");
  });

  test("finds names that nobody has here: they would never let anybody in", async () => {
    const path = write(
      "names.toml",
      'state_group = "nosuch"\n[policy]\nrun = ["root", "alcie", "uid:7", "@nogrp", "@0"]\n',
    );
    const json = await askJson(["config", "check", "--json", "--config", path]);
    const found = json.findings.map((each: Record<string, string>) => [each["key"], each["found"]]);
    expect(found).toEqual([
      ["state_group", '"nosuch"'],
      ["policy.run", '"alcie"'],
      ["policy.run", '"@nogrp"'],
    ]);
  });
});

/** In a mount namespace, so that the machine's own files are neither seen nor touched. */
function startWith(files: { machine: string; user: string }, words: string[]): Promise<Ended> {
  const place = mkdtempSync(scene.path("files-"));
  const [etc, home] = [`${place}/etc`, `${place}/home`];
  mkdirSync(`${etc}/watchdog`, { recursive: true });
  mkdirSync(`${home}/.config/watchdog`, { recursive: true });
  for (const name of ["passwd", "group", "nsswitch.conf", "ld.so.cache", "machine-id"]) {
    if (existsSync(`/etc/${name}`)) copyFileSync(`/etc/${name}`, `${etc}/${name}`);
  }
  writeFileSync(`${etc}/watchdog/config.toml`, files.machine);
  writeFileSync(`${home}/.config/watchdog/config.toml`, files.user);
  const script = `
    mount --bind "$1" /etc && mount --bind "$2" "$3" && shift 3 && exec "$@"`;
  const passwd = readFileSync("/etc/passwd", "utf8");
  const [, ownHome = "/root"] = /^[^:]*:[^:]*:0:[^:]*:[^:]*:([^:]*):/m.exec(passwd) ?? [];
  const argv = ["unshare", "-m", "sh", "-c", script, "sh", etc, home, ownHome, ...words];
  return scene.startProgram(argv, { env: { HOME: "/nowhere" } }).ended;
}

describe("the files that nobody names", () => {
  rootTest("are the machine's and the user's, and the user's is the stronger", async () => {
    const machine = '[run]\ntimeout = "1h"\nno_lease = true\n';
    const files = { machine, user: '[run]\ntimeout = "2h"\n' };
    const lease = 'echo "${WATCHDOG_LEASE-no lease}";';
    const words = [RELEASE, "run", "--name", "n", "--log", "off", "--", "sh", "-c", lease + SHOW];
    const ended = await startWith(files, words);
    expect([ended.stdout.toString(), ended.stderr]).toEqual(["no lease\n2 none\n", ""]);
  });

  rootTest("may break during a run: fence and keep go on, what needs them does not", async () => {
    const script = `
      echo x=1 >/etc/watchdog/config.toml
      "$0" fence -- echo fenced; echo $?
      "$0" keep -- true; echo $?
      "$0" status; echo $?
      "$0" fence --config /etc/watchdog/config.toml -- echo fenced; echo $?`;
    const words = [
      RELEASE,
      "run",
      "--name",
      "n",
      "--log",
      "off",
      "--",
      "sh",
      "-c",
      script,
      RELEASE,
    ];
    const ended = await startWith({ machine: "", user: "" }, words);
    expect(ended.stdout.toString()).toBe("fenced\n0\n0\n78\n78\n");
  });
});
