/**
 * Secrets planted in the environment, in options, in addresses and in the output of a job: nothing
 * that watchdog writes, says or starts shows them. The release binary, from outside.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { GONE_LIMIT_MS, waitUntilNoGuard } from "../support/killing.ts";
import { readProcText } from "../support/proc-text.ts";
import { findGuardOf, waitForCommand, waitForText } from "../support/processes.ts";
import { openScene, readCommandLine, RELEASE } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);

afterAll(() => waitUntilNoGuard(scene), GONE_LIMIT_MS * 2);

/** Each in a place of its own. */
const SECRETS = {
  variable: "tok_1a2b3c4d5e",
  attached: "tok_att_5f6g7h8i",
  detached: "tok_det_9j0k1l2m",
  user: "Pw_of_user_3n4p5q",
  address: "pw_77_in_address",
  shape: `ghp_${"a1B2".repeat(9)}`,
  pattern: "acct-4711-secret",
  sink: "9f8e7d6c5b4a39281706",
};
const env = { API_TOKEN: SECRETS.variable };
const OPTIONS = [
  "--mask=acct-[0-9]+-[a-z]+",
  `--webhook=https://example.invalid/hook/${SECRETS.sink}`,
  `--on-failure=true # ${SECRETS.shape}`,
];

function commandOf(script: string): string[] {
  const words = [`--api-token=${SECRETS.attached}`, "--password", SECRETS.detached];
  words.push("-u", `me:${SECRETS.user}`);
  const more = [`postgres://app:${SECRETS.address}@db/x`, SECRETS.shape, SECRETS.pattern];
  return ["/bin/sh", "-c", `: ${SECRETS.variable}; ${script}`, "x", ...words, ...more];
}

/** Every file below the directory, with what it holds as bytes. */
function listFiles(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    return entry.isDirectory() ? listFiles(path) : entry.isFile() ? [path] : [];
  });
}

/** `name of secret: where` for each that was found. */
function findLeaks(places: Readonly<Record<string, string>>): string[] {
  return Object.entries(places).flatMap(([place, text]) =>
    Object.entries(SECRETS).flatMap(([name, secret]) =>
      text.includes(secret) || text.includes(secret.slice(4)) ? [`${name}: ${place}`] : [],
    ),
  );
}

function stateFiles(): Record<string, string> {
  // What the job itself has written stays as it is: its output, and its reports while it runs.
  const isOurs = (path: string): boolean => !path.endsWith(".log") && !path.includes("/progress/");
  const files = listFiles(scene.stateDirectory).filter(isOurs);
  return Object.fromEntries(files.map((path) => [path, readFileSync(path, "latin1")]));
}

async function ask(...words: readonly string[]): Promise<string> {
  const { stdout, stderr } = await scene.startProgram([RELEASE, ...words]).ended;
  return `${stdout}${stderr}`;
}

describe("A-77: the same rule for all channels", () => {
  test("a run that fails leaves no secret but in its raw log, for its user alone", async () => {
    const items = `fail 1 ${SECRETS.variable}\\ncheckpoint ${SECRETS.shape}\\n`;
    const report = `printf '${items}' >>"$WATCHDOG_PROGRESS"`;
    const script = `echo "calling with ${SECRETS.variable}"; ${report}; exit 3`;
    const ended = await scene.run(
      [
        "--name",
        "a77",
        "--log",
        "on",
        "-v",
        ...OPTIONS,
        ...scene.recordTo("a77"),
        "--",
        ...commandOf(script),
      ],
      { env },
    );
    expect(ended.status).toBe(3);
    const record = readFileSync(scene.path("a77.json"), "utf8");
    expect(findLeaks({ record, stderr: ended.stderr, ...stateFiles() })).toEqual([]);
    expect(record).toContain('"--api-token=***"');
    expect(record).toContain("postgres://app:***@db/x");
    expect(record).toContain('"me:***"');
    // The twin: the log has what the command has printed, and nobody else may read it.
    const logs = listFiles(scene.stateDirectory).filter((path) => path.endsWith(".log"));
    expect(logs.map((path) => readFileSync(path, "utf8")).join("")).toContain(SECRETS.variable);
    // Other tests of this state have left theirs.
    expect(new Set(logs.map((path) => statSync(path).mode & 0o777))).toEqual(new Set([0o600]));
  });

  test("what a run has found in its output and its files is told without them", async () => {
    const checks = [
      [`--expect-match=with ${SECRETS.variable}$`, `--fail-match=${SECRETS.shape}`],
      ["--expect-file", scene.path(`out-${SECRETS.variable}`)],
    ].flat();
    const script = `echo "calling ${SECRETS.pattern} with ${SECRETS.variable}"`;
    const line = ["--name", "a77f", ...OPTIONS, ...checks, ...scene.recordTo("a77f"), "--"];
    const ended = await scene.run([...line, ...commandOf(script)], { env });
    expect(ended.status).toBe(65);
    const record = readFileSync(scene.path("a77f.json"), "utf8");
    expect(JSON.parse(record).checks).toHaveLength(3);
    expect(record).toContain("calling *** with ***");
    expect(findLeaks({ record, stderr: ended.stderr, ...stateFiles() })).toEqual([]);
  });

  test("a secret that is a common word takes neither a job nor a sink from a run", async () => {
    const words = { POSTGRES_PASSWORD: "postgres", A_TOKEN: "webhook", B_TOKEN: "run-ended" };
    const out = scene.path("postgres.dump");
    const line = ["--name", "postgres-dump", "--webhook", "http://127.0.0.1:1/h"];
    const ask65 = ["--expect-file", `${out}:min-ratio=0.5`, "--notify-timeout", "0", "--"];
    const run = (script: string) =>
      scene.run([...line, ...ask65, "/bin/sh", "-c", script], { env: words });
    expect((await run(`printf 1234567890 >${out}`)).status).toBe(0);
    const shrunk = await run(`printf 1 >${out}`);
    expect([shrunk.status, shrunk.stderr]).toEqual([65, expect.stringContaining("1 bytes, 10")]);
    expect(await ask("history", "postgres-dump", "--json")).toContain('"file-shrunk"');
    expect(await ask("notify", "list", "--json")).toContain("postgres-dump");
  });

  test("while a run lasts its lease, what others ask, and its helpers show none", async () => {
    const ready = scene.path("ready");
    const report = `echo checkpoint ${SECRETS.shape} >>"$WATCHDOG_PROGRESS"`;
    const script = `${report}; echo >${ready}; exec sleep 411`;
    const run = scene.start(["--name", "a77b", ...OPTIONS, "--", ...commandOf(script)], { env });
    await waitForText(ready);
    const isShown = async () => /"checkpoint": ?"/.test(await ask("status", "--json"));
    await waitFor(isShown, "a beat that shows its items");
    const guard = findGuardOf(run.pid) ?? 0;
    const asked = {
      explain: await ask("lease", "explain", "job:a77b"),
      shown: await ask("lease", "show", "job:a77b", "--json"),
      status: await ask("status", "--json"),
      why: await ask("why", "a77b"),
      report: await ask("report", "--json"),
    };
    const ofGuard = readProcText(guard, "environ");
    const answers = { ...asked, guard: readCommandLine(guard), ofGuard, ...stateFiles() };
    run.kill("SIGTERM");
    await run.ended;
    expect(findLeaks(answers)).toEqual([]);
    // The twin: each of them has answered, and of this run.
    for (const text of Object.values(asked)) expect(text).toContain("a77b");
    expect(answers.guard).toContain("watchdog");
  });

  test("what a command leaves behind is named without them", async () => {
    const told = `${SECRETS.variable} https://example.invalid/hook/${SECRETS.sink}`;
    const left = `sh -c 'sleep 412; :' ${told} --token=${SECRETS.attached}`;
    const ended = await scene.run(
      [
        "--name",
        "a77c",
        ...OPTIONS,
        ...scene.recordTo("a77c"),
        "--",
        "/bin/sh",
        "-c",
        `${left} & sleep 0.1`,
      ],
      { env },
    );
    expect(ended.stderr).toContain("left by the command");
    const record = readFileSync(scene.path("a77c.json"), "utf8");
    expect(record).toContain("leftovers");
    expect(findLeaks({ record, stderr: ended.stderr, ...stateFiles() })).toEqual([]);
  });

  test("what a probe has said goes into no record and no circuit with them", async () => {
    const probe = `cmd:echo cannot log in with ${SECRETS.variable}; exit 1`;
    const ended = await scene.run(
      [
        "--name",
        "a77e",
        ...OPTIONS,
        "--probe",
        `login=${probe}`,
        "--probe-startup-wait",
        "1s",
      ].concat(...scene.recordTo("a77e"), "--", "true"),
      { env },
    );
    expect(ended.status).toBe(69);
    expect(ended.stderr).toContain("cannot log in with ***");
    const shown = await ask("circuit", "show", "login", "--json");
    expect(shown).toContain("cannot log in with ***");
    const record = readFileSync(scene.path("a77e.json"), "utf8");
    expect(findLeaks({ record, shown, stderr: ended.stderr, ...stateFiles() })).toEqual([]);
  });

  test("the guard of a killed run knows what to hide, though it has no environment", async () => {
    const ready = scene.path("ready-killed");
    const report = `echo fail 1 ${SECRETS.variable} >>"$WATCHDOG_PROGRESS"`;
    const shown = `${SECRETS.variable} ${SECRETS.pattern}`;
    const inner = `sh -c '${report}; echo >${ready}; sleep 413; :' ${shown}`;
    const run = scene.start(
      [
        "--name",
        "a77d",
        ...OPTIONS,
        ...scene.recordTo("a77d"),
        "--",
        "/bin/sh",
        "-c",
        `${inner}; :`,
      ],
      { env },
    );
    await waitForText(ready);
    run.kill("SIGKILL");
    await run.ended;
    await waitFor(() => scene.readRecord("a77d")["state"] === "ended", "the burial");
    await waitUntilNoGuard(scene);
    const record = readFileSync(scene.path("a77d.json"), "utf8");
    expect(JSON.parse(record).outcome).toBe("abandoned");
    expect(JSON.parse(record).leftovers.length).toBeGreaterThan(0);
    expect(JSON.parse(record).items.failed).toBe(1);
    expect(findLeaks({ record, ...stateFiles() })).toEqual([]);
  });
});

describe("A-76: a target by a variable or a file", () => {
  test("is on no command line and in no file of the state directory", async () => {
    const hook = scene.path("hook-url");
    writeFileSync(hook, `https://example.invalid/h?token=${SECRETS.detached}\n`, { mode: 0o600 });
    const ready = scene.path("ready-76");
    const run = scene.start(
      [
        "--name",
        "a76",
        "--ping",
        `file:${hook}`,
        "--",
        "/bin/sh",
        "-c",
        `echo >${ready}; sleep 414`,
      ],
      { env: { WATCHDOG_WEBHOOK: `http://127.0.0.1:1/h?token=${SECRETS.variable}` } },
    );
    await waitForText(ready);
    const lines = scene.findProcesses().map((pid) => readCommandLine(pid));
    const seen = { lines: lines.join("\n"), ...stateFiles() };
    run.kill("SIGTERM");
    await run.ended;
    expect(lines.length).toBeGreaterThan(1);
    expect(findLeaks({ ...seen, ...stateFiles() })).toEqual([]);
  });
});

test("what a configuration says to run is on no command line while it runs", async () => {
  const [asked, told] = [scene.path("asked"), scene.path("told")];
  const config = scene.path("commands.toml");
  const wait = `: ${SECRETS.shape} ${SECRETS.sink}; echo >FILE; sleep 415`;
  const text = [
    "[probes.waiting]",
    `url = "cmd:${wait.replace("FILE", asked)}"`,
    'timeout = "20s"',
    "[sinks.ops]",
    `command = "${wait.replace("FILE", told)}"`,
    'events = ["start"]',
  ];
  writeFileSync(config, `${text.join("\n")}\n`, { mode: 0o600 });
  const line = ["--config", config, "--name", "a76b"];
  const probe = ["--probe-period", "20s", "--probe", "waiting"];
  const probing = scene.start([...line, ...probe, "--", "true"]);
  await waitForText(asked);
  const telling = scene.start([...line, "--no-lease", "--", "/bin/sleep", "416"]);
  await waitForText(told);
  // Until then it may be a copy of its shell, with the words of that.
  await waitForCommand(scene, "sleep 415", 2);
  const lines = scene.findProcesses().map((pid) => readCommandLine(pid));
  for (const run of [probing, telling]) {
    run.kill("SIGTERM");
    await run.ended;
  }
  expect(lines.filter((each) => each.includes("/proc/self/fd/9")).length).toBe(2);
  expect(findLeaks({ lines: lines.join("\n"), ...stateFiles() })).toEqual([]);
}, 120_000);

describe("a line that is refused", () => {
  test.each([
    ["--webhook", `ftp://user:${SECRETS.address}@h/x`],
    ["--webhook", `slack:example.invalid/${SECRETS.sink}`],
    ["--ping", `hc-ping.com/${SECRETS.variable}`],
    ["--on", `nightly=curl -H 'Authorization: Bearer ${SECRETS.variable}'`],
  ])("says what is wrong with %s, and not what was given", async (flag, value) => {
    const ended = await scene.run([flag, value, "--", "true"]);
    expect(ended.status).toBe(64);
    expect(ended.stderr).toContain(flag);
    expect(findLeaks({ stderr: ended.stderr })).toEqual([]);
  });

  test("of a configuration neither", async () => {
    const config = scene.path("config", "config.toml");
    mkdirSync(scene.path("config"));
    const write = (text: string): void => writeFileSync(config, text, { mode: 0o600 });
    write(`[sinks.ops]\nwebhook = "ftp://user:${SECRETS.address}@h/x"\n`);
    const refused = await scene.run(["--config", config, "--", "true"]);
    expect(refused.status).toBe(78);
    expect(refused.stderr).toContain("sinks.ops.webhook: found");
    write(`[sinks.ops]\nwebhook = "https://user:${SECRETS.address}@h/x?k=${SECRETS.variable}"\n`);
    const shown = await ask("config", "show", "--config", config);
    expect(shown).toContain("sinks.ops.webhook");
    expect(findLeaks({ stderr: refused.stderr, shown })).toEqual([]);
  });
});
