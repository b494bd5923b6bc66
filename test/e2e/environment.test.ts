/**
 * The environment and the arguments of the command: the caller's bytes, in their order, also those
 * that are no text; and what watchdog itself does with nothing in it.
 */
import { expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { base64, runPrepared } from "../support/outside.ts";
import { openScene, RELEASE } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const ODD = Buffer.from([0xff, 0xfe, 0x62, 0xc3]);
const OF_THE_RUN = [
  "WATCHDOG_RUN_ID",
  "WATCHDOG_RUN_PATH",
  "WATCHDOG_JOB",
  "WATCHDOG_STATE_DIR",
  "WATCHDOG_PROGRESS",
] as const;
const OF_ITS_LEASES = ["WATCHDOG_LEASE", "WATCHDOG_GENERATION"] as const;
const OWN: readonly string[] = [...OF_THE_RUN, ...OF_ITS_LEASES];

function entry(...parts: readonly (string | Uint8Array)[]): string {
  return base64(Buffer.concat(parts.map((part) => Buffer.from(part as string))));
}

/** Entries as latin1 text, one letter a byte. */
function split(block: Buffer): string[] {
  return block.toString("latin1").split("\0").slice(0, -1);
}

function isOwn(line: string): boolean {
  return OWN.includes(line.split("=")[0] ?? "");
}

async function seenBy(entries: readonly string[], options = ["--log", "off"]): Promise<string[]> {
  const wrapped = [RELEASE, "run", ...options, "--", "/bin/cat", "/proc/self/environ"];
  const environment = [...entries, base64(scene.cookieEntry)];
  return split((await runPrepared(scene, { environment }, wrapped)).stdout);
}

const STATE = `WATCHDOG_STATE_DIR=${scene.stateDirectory}`;

test("entries arrive byte by byte and in order, also those that are no text", async () => {
  const entries = [
    entry("PLAIN=1"),
    entry("BAD_VALUE=a", ODD, "b"),
    entry("BAD", ODD, "KEY=v"),
    entry("EMPTY="),
    entry("=odd"),
    entry("no equals sign"),
    entry("LINES=one\ntwo\n"),
    entry("é☃=", "ümlaut"),
    entry("NODE_OPTIONS=--bad"),
    entry("LC_ALL=C"),
  ];
  const seen = await seenBy([...entries, entry(STATE)]);
  const expected = [...entries, base64(scene.cookieEntry)].map((one) =>
    Buffer.from(one, "base64").toString("latin1"),
  );
  expect(seen.filter((line) => !isOwn(line))).toEqual(expected);
});

test("duplicate names arrive, all of them", async () => {
  const entries = ["A=1", "B=x", "A=2", "A=1"].map((line) => entry(line));
  const seen = await seenBy([...entries, entry(STATE)]);
  expect(seen.slice(0, 4)).toEqual(["A=1", "B=x", "A=2", "A=1"]);
});

test("a long value and ten thousand entries arrive", async () => {
  const long = `LONG=${"x".repeat(120_000)}`;
  const many = Array.from({ length: 10_000 }, (_, index) => `V${index}=${index}`);
  const seen = await seenBy([long, ...many, STATE].map((line) => entry(line)));
  expect(seen.slice(0, 10_001)).toEqual([long, ...many]);
});

const AROUND = "01900000-0000-7000-8000-000000000001";
/** What a run around this one has set. */
const STALE = [
  `WATCHDOG_RUN_ID=${AROUND}`,
  `WATCHDOG_RUN_PATH=${AROUND}`,
  "WATCHDOG_JOB=outer",
  "WATCHDOG_LEASE=job%3Aouter",
  "WATCHDOG_GENERATION=77",
];

async function seeOwn(options: readonly string[]): Promise<{
  readonly names: readonly string[];
  readonly values: Readonly<Record<string, string>>;
  readonly others: readonly string[];
}> {
  const entries = [...STALE, ...STALE, STATE].map((line) => entry(line));
  const seen = await seenBy(entries, ["--log", "off", ...options]);
  const own = seen.filter(isOwn);
  return {
    names: own.map((line) => line.split("=")[0] ?? "").sort(),
    values: Object.fromEntries(own.map((line) => line.split(/=(.*)/s).slice(0, 2))),
    others: seen.filter((line) => !isOwn(line)),
  };
}

test("the seven variables of the run are added, each once, and no other", async () => {
  const { names, values, others } = await seeOwn([]);
  expect(names).toEqual([...OWN].sort());
  expect(values["WATCHDOG_RUN_ID"]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}$/);
  expect(values["WATCHDOG_RUN_ID"]).not.toBe(AROUND);
  expect(values["WATCHDOG_RUN_PATH"]).toBe(`${AROUND}/${values["WATCHDOG_RUN_ID"]}`);
  expect(values["WATCHDOG_JOB"]).toMatch(/^cat-[0-9a-f]{8}$/);
  expect(values["WATCHDOG_STATE_DIR"]).toBe(scene.stateDirectory);
  const file = `${scene.stateDirectory}/progress/${values["WATCHDOG_RUN_ID"]}`;
  expect(values["WATCHDOG_PROGRESS"]).toBe(file);
  expect(values["WATCHDOG_LEASE"]).toBe(`job%3A${values["WATCHDOG_JOB"]}`);
  expect(values["WATCHDOG_GENERATION"]).toMatch(/^[1-9]\d*$/);
  expect(others).toEqual([scene.cookieEntry]);
});

test("each lease is named with its number in the same order, percent-encoded", async () => {
  const two = ["--name", "of two keys", "--lock", "lane:gpu 1"];
  const first = await seeOwn([...two, "--lock", "db:a%b"]);
  expect(first.values["WATCHDOG_LEASE"]).toBe("db%3Aa%25b job%3Aof%20two%20keys lane%3Agpu%201");
  expect(first.values["WATCHDOG_GENERATION"]).toBe("1 1 1");
  const second = await seeOwn(two);
  expect(second.values["WATCHDOG_LEASE"]).toBe("job%3Aof%20two%20keys lane%3Agpu%201");
  expect(second.values["WATCHDOG_GENERATION"]).toBe("2 2");
  const third = await seeOwn([...two, "--lock", "db:a%b"]);
  expect(third.values["WATCHDOG_GENERATION"]).toBe("2 3 3");
});

test("with --no-lease there is none about leases, not even of a run around", async () => {
  const { names, values, others } = await seeOwn(["--no-lease"]);
  expect(names).toEqual([...OF_THE_RUN].sort());
  expect(values["WATCHDOG_RUN_PATH"]).toBe(`${AROUND}/${values["WATCHDOG_RUN_ID"]}`);
  expect(others).toEqual([scene.cookieEntry]);
});

test("variables of options work, and are taken away from the command", async () => {
  const options = {
    WATCHDOG_TIMEOUT: "1h",
    WATCHDOG_LOG: "off",
    WATCHDOG_NAME: "outer",
    WATCHDOG_KILL_AFTER: "3",
    WATCHDOG_RESULT_FILE: scene.path("result.json"),
    WATCHDOG_QUIET: "off",
    WATCHDOG_VERBOSE: "",
  };
  const ended = await scene.run(["--", "env"], { env: options });
  const lines = ended.stdout.toString().split("\n");
  const names = lines.map((line) => line.split("=")[0] ?? "");
  for (const name of Object.keys(options)) expect(names).not.toContain(name);
  expect(lines).toContain("WATCHDOG_JOB=outer");
  expect(scene.readRecord()).toMatchObject({ job: "outer", limits: { timeout_ms: 3_600_000 } });
  const deadline = Number(/^WATCHDOG_DEADLINE=(\d+)$/m.exec(ended.stdout.toString())?.[1]);
  expect(Math.abs(deadline - (Date.now() / 1_000 + 3_600))).toBeLessThan(120);
});

test("systemd's WATCHDOG_USEC and WATCHDOG_PID pass, because they are not ours", async () => {
  const env = { WATCHDOG_USEC: "30000000", WATCHDOG_PID: "1", WATCHDOG_DEVICE: "/dev/watchdog" };
  const ended = await scene.run(["--log", "off", "--", "env"], { env });
  const lines = ended.stdout.toString().split("\n");
  for (const [name, value] of Object.entries(env)) expect(lines).toContain(`${name}=${value}`);
});

test("without --timeout there is no WATCHDOG_DEADLINE, and one of a run around stays", async () => {
  const plain = await scene.run(["--log", "off", "--", "env"]);
  expect(plain.stdout.toString()).not.toContain("WATCHDOG_DEADLINE");
  const env = { WATCHDOG_DEADLINE: "1000" };
  const nested = await scene.run(["--log", "off", "--timeout", "1h", "--", "env"], { env });
  expect(nested.stdout.toString().match(/^WATCHDOG_DEADLINE=.*$/gm)).toEqual([
    "WATCHDOG_DEADLINE=1000",
  ]);
});

test("A-81: arguments are bytes, and arrive unchanged in any locale", async () => {
  const words = [
    ODD,
    Buffer.from("é☃"),
    Buffer.from(""),
    Buffer.from("a\nb"),
    Buffer.from("--"),
    Buffer.from("x"),
  ];
  const environment = [base64("LC_ALL=C"), base64(STATE), base64(scene.cookieEntry)];
  for (const mode of ["off", "on"]) {
    const prefix = [RELEASE, "run", "--log", mode, ...scene.recordTo("bytes"), "--"];
    const ended = await runPrepared(
      scene,
      { environment, words: words.map((word) => base64(word)) },
      [...prefix, "/bin/cat", "/proc/self/cmdline", "/dev/null"],
    );
    // cat takes the rest for files that are not there; its own command line is what counts.
    const seen = split(ended.stdout).slice(-words.length);
    expect(seen).toEqual(words.map((word) => word.toString("latin1")));
    const record = scene.readRecord("bytes");
    const bytes = (record.command_bytes as string[]).map((one) => Buffer.from(one, "base64"));
    expect(bytes.slice(-words.length)).toEqual(words);
  }
});

test("A-81: a directory and a name that are not ASCII work under LC_ALL=C", async () => {
  const directory = scene.path("tëst☃");
  await scene.startProgram(["mkdir", directory]).ended;
  const script = `printf %s "$1" | od -An -tx1; pwd`;
  const args = [...scene.recordTo("snow"), "--name", "nächt☃", "--log", "on", "--"];
  const ended = await scene.run([...args, "sh", "-c", script, "x", "é☃"], {
    cwd: directory,
    env: { LC_ALL: "C" },
  });
  expect(ended.stdout.toString()).toBe(` c3 a9 e2 98 83\n${directory}\n`);
  expect([ended.code, ended.stderr]).toEqual([0, ""]);
  expect(scene.readRecord("snow")).toMatchObject({ job: "nächt☃", cwd: directory });
});

test("A-79: an empty environment gains the documented variables only", async () => {
  const state = scene.path("bare-state");
  const wrapped = [RELEASE, "run", "--state-dir", state, "--", "/usr/bin/env"];
  const ended = await runPrepared(scene, { environment: [base64(scene.cookieEntry)] }, wrapped);
  const lines = ended.stdout.toString().split("\n").slice(0, -1);
  expect(lines.map((line) => line.split("=")[0] ?? "").sort()).toEqual(
    [...OWN, scene.cookieEntry.split("=")[0] ?? ""].sort(),
  );
  expect([ended.code, ended.stderr]).toEqual([0, ""]);
});

test("A-79: with --no-lease it gains one variable less for each about leases", async () => {
  const state = scene.path("bare-state");
  const wrapped = [RELEASE, "run", "--no-lease", "--state-dir", state, "--", "/usr/bin/env"];
  const ended = await runPrepared(scene, { environment: [base64(scene.cookieEntry)] }, wrapped);
  const lines = ended.stdout.toString().split("\n").slice(0, -1);
  expect(lines.map((line) => line.split("=")[0] ?? "").sort()).toEqual(
    [...OF_THE_RUN, scene.cookieEntry.split("=")[0] ?? ""].sort(),
  );
});

test("A-79: a PATH alone is passed on as it is", async () => {
  const environment = ["PATH=/usr/bin:/bin", STATE, scene.cookieEntry].map(base64);
  const wrapped = [RELEASE, "run", "--", "sh", "-c", "echo $PATH"];
  const ended = await runPrepared(scene, { environment, cwd: scene.directory }, wrapped);
  expect([ended.code, ended.stdout.toString()]).toEqual([0, "/usr/bin:/bin\n"]);
});

test("nothing is written to the working directory or the home directory", async () => {
  const directory = scene.path("empty-directory");
  await scene.startProgram(["mkdir", directory]).ended;
  await scene.run(["--", "echo", "x"], { cwd: directory });
  await scene.run(["--quiet", "--", "sh", "-c", "echo x; exit 1"], { cwd: directory });
  expect(readdirSync(directory)).toEqual([]);
  expect(existsSync(scene.path("home/.local"))).toBe(false);
  expect(readdirSync(scene.path("home"))).toEqual([]);
});

test("a megabyte of arguments arrives", async () => {
  const words = Array.from({ length: 10 }, (_, index) => String(index).repeat(110_000));
  const script = 'for a; do printf "%s " ${#a}; done; printf "%s" "$@" | sha256sum';
  const plain = await scene.startProgram(["sh", "-c", script, "sh", ...words]).ended;
  const ended = await scene.run(["--log", "off", "--", "sh", "-c", script, "sh", ...words]);
  expect(ended.stdout.toString()).toBe(plain.stdout.toString());
  expect(ended.stdout.toString()).toStartWith("110000 110000 ");
});
