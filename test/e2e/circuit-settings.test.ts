/**
 * Probes with settings that cannot be: refused before anything is started, asked or leased, with
 * the relation that does not hold and a line that can be pasted; and one circuit with two settings.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { ask, askLines } from "../support/ask.ts";
import { openServers } from "../support/counting-server.ts";
import { inState } from "../support/own-state.ts";
import { type Ended, openScene, RELEASE, type Scene } from "../support/scene.ts";
import { Announcing, circuitOf, PATIENT } from "../support/shared-circuit.ts";

const scene = openScene(import.meta.file);
const openServer = openServers();
const server = openServer();
const USAGE_ERROR = 64;
const CONFIG_ERROR = 78;
const MARK = scene.path("never-ran");

/** `watchdog` for lines that are pasted. */
const BIN = scene.path("bin");
beforeAll(() => {
  mkdirSync(BIN);
  writeFileSync(`${BIN}/watchdog`, `#!/bin/sh\nexec '${RELEASE}' "$@"\n`, { mode: 0o755 });
});

/** Pastes the hint of an answer into a shell; no server of it need be there. */
function paste(state: Scene, { stderr }: Ended): Promise<Ended> {
  const [, hint = "exit 99"] = /^watchdog: hint: ([^\n]+)$/m.exec(stderr) ?? [];
  const env = { PATH: `${BIN}:${scene.env["PATH"]}`, WATCHDOG_PROBE_MAX_ATTEMPTS: "1" };
  return state.startProgram(["sh", "-c", hint], { env }).ended;
}

const URL_OK = `dep=${server.url}`;
const FILES = ["missing", "directory", "empty"] as const;
type GivenFile = (typeof FILES)[number];

function givenFile(kind: GivenFile): string {
  const path = scene.path(`given-${kind}`);
  if (kind === "directory") mkdirSync(path, { recursive: true });
  if (kind === "empty") writeFileSync(path, "");
  return path;
}

interface Row {
  readonly title: string;
  readonly words: readonly string[];
  readonly status: number;
  readonly says: RegExp;
}

const usage = (title: string, words: readonly string[], says: RegExp): Row => ({
  title,
  words,
  says,
  status: USAGE_ERROR,
});
const config = (title: string, words: readonly string[], says: RegExp): Row => ({
  title,
  words,
  says,
  status: CONFIG_ERROR,
});

const ROWS: readonly Row[] = [
  usage(
    "a period of 0",
    ["--probe", URL_OK, "--probe-period", "0"],
    /--probe-period: found "0", expected .*above 0$/m,
  ),
  usage(
    "a cap below the first delay",
    ["--probe", URL_OK, "--probe-backoff", "3s..1s"],
    /--probe-backoff: found a cap of 1s below a first delay of 3s, expected/,
  ),
  usage(
    "a time that is shorter than the first delay",
    ["--probe", URL_OK, "--probe-backoff", "10s..20s", "--probe-max-elapsed", "5s"],
    /a total time of 5000 ms below a first delay of 10000 ms, expected/,
  ),
  usage(
    "a timeout above the period",
    ["--probe", URL_OK, "--probe-timeout", "20s"],
    /a timeout of 20000 ms above a period of 10000 ms, expected/,
  ),
  usage(
    "an unknown scheme",
    ["--probe", "dep=ftp://127.0.0.1/"],
    /--probe: found "dep=ftp:\/\/127\.0\.0\.1\/", expected http:/,
  ),
  usage(
    "two probes of one name",
    ["--probe", URL_OK, "--probe", "dep=tcp://127.0.0.1:1"],
    /--probe: found two with the name "dep", expected each once/,
  ),
  usage(
    "the same target twice",
    ["--probe", server.url, "--probe", server.url],
    /--probe: found two with the name "http:.*", expected each once/,
  ),
  usage(
    "an option about probes without one",
    ["--on-open", "pause"],
    /--on-open is about [^\n]*, found none, expected --probe/,
  ),
  config(
    "authorities in a file that is not there",
    ["--probe", "dep=https://127.0.0.1:1/", "--probe-ca-file", givenFile("missing")],
    /given-missing cannot be read \(ENOENT\)/,
  ),
  config(
    "authorities in a file that holds none",
    ["--probe", "dep=https://127.0.0.1:1/", "--probe-ca-file", givenFile("empty")],
    /given-empty holds no certificate/,
  ),
  config(
    "credentials in a directory",
    ["--probe", URL_OK, "--probe-credentials", `file:${givenFile("directory")}`],
    /given-directory/,
  ),
  config(
    "credentials in a file that is empty",
    ["--probe", URL_OK, "--probe-credentials", `file:${givenFile("empty")}`],
    /given-empty is empty, expected USER:PASSWORD/,
  ),
  config(
    "a header in a file that is not there",
    ["--probe", URL_OK, "--probe-header", `X-Key: file:${givenFile("missing")}`],
    /given-missing cannot be read \(ENOENT\)/,
  ),
];

describe("settings that cannot be", () => {
  test.each(ROWS.map((row) => [row.title, row] as const))(
    "%s: told, with a hint to be pasted, and nothing is started, asked or leased",
    async (title, { words, status, says }) => {
      const state = inState(scene, `bad-${ROWS.findIndex((row) => row.title === title)}`);
      const before = server.count;
      const ended = await state.run(["--name", "bad", ...words, "--", "touch", MARK]);
      expect([ended.status, ended.stdout.toString(), existsSync(MARK)]).toEqual([
        status,
        "",
        false,
      ]);
      expect(ended.stderr).toMatch(/^watchdog: error: [^\n]+\nwatchdog: hint: [^\n]+\n$/);
      expect(ended.stderr).toMatch(says);
      const isLeased = existsSync(`${state.stateDirectory}/leases`);
      expect([server.count - before, isLeased]).toEqual([0, false]);
      // What is pasted is the corrected line, and may start the command.
      const pasted = await paste(state, ended);
      rmSync(MARK, { force: true });
      expect([USAGE_ERROR, CONFIG_ERROR, 99, 126, 127]).not.toContain(pasted.status);
    },
  );

  test("the same lines with settings that can be start the command", async () => {
    const good = ["--probe-period", "2s", "--probe-backoff", "1s..3s", "--probe-timeout", "2s"];
    const words = ["--name", "good", "--probe", URL_OK, "--probe", `too=${server.url}`, ...good];
    const ended = await inState(scene, "good").run([...words, "--", "sh", "-c", "exit 3"]);
    expect([ended.status, ended.stderr]).toEqual([3, ""]);
  });
});

/** As a person writes it. */
function dependsOn(more: readonly string[]): string[] {
  return ["--log", "off", "--probe", URL_OK, ...more];
}

describe("one circuit with two settings", () => {
  const OTHER = ["--probe-period", "2s"];

  function run(state: Scene, job: string, more: readonly string[] = []): Promise<Ended> {
    const words = ["--name", job, ...dependsOn(more), "--", "sh", "-c", "exit 3"];
    return state.run(words);
  }

  test("of two jobs is refused: both are named, and what shows and resets it", async () => {
    const state = inState(scene, "two");
    expect((await run(state, "first")).status).toBe(3);
    const before = server.count;
    const refused = await run(state, "second", OTHER);
    expect([refused.status, server.count - before]).toEqual([CONFIG_ERROR, 0]);
    expect(refused.stderr).toBe(
      "watchdog: error: circuit dep has other settings than job second: those of job first, " +
        "until `watchdog circuit reset dep` has it forget them\n" +
        "watchdog: hint: watchdog circuit show dep\n",
    );
    const pasted = await paste(state, refused);
    expect([pasted.status, pasted.stdout.toString()]).toEqual([
      0,
      expect.stringContaining(", of job first\n"),
    ]);
    // The one whose settings it has goes on as before.
    expect((await run(state, "first")).status).toBe(3);
  });

  test("is allowed after a reset, and then it is the first that is refused", async () => {
    const state = inState(scene, "reset");
    expect((await run(state, "first")).status).toBe(3);
    expect(await askLines(state, ["circuit", "reset", "dep"])).toEqual([
      "dep: was closed, is closed; its settings are forgotten: the next probe brings its own",
    ]);
    expect((await run(state, "second", OTHER)).status).toBe(3);
    expect(await circuitOf(state)).toMatchObject({ job: "second", state: "closed" });
    const refused = await run(state, "first");
    expect([refused.status, refused.stderr]).toEqual([
      CONFIG_ERROR,
      expect.stringContaining("other settings than job first: those of job second, until"),
    ]);
  });

  test("of one job is an edited line: allowed while nobody else probes", async () => {
    const state = inState(scene, "edited");
    const job = new Announcing(scene, "edited");
    expect((await run(state, "same")).status).toBe(3);
    expect((await run(state, "same", PATIENT)).status).toBe(3);
    expect((await circuitOf(state)).job).toBe("same");
    const words = ["--name", "other", ...dependsOn(PATIENT), ...job.command];
    const going = state.start(words);
    await job.waitForAll(1);
    const refused = await run(state, "same", OTHER);
    expect(refused.status).toBe(CONFIG_ERROR);
    expect(refused.stderr).toBe(
      "watchdog: error: circuit dep has other settings than job same: those of job same, " +
        "which probes with them now\n" +
        "watchdog: hint: watchdog circuit show dep\n",
    );
    // Beside whoever probes a reset leaves the settings, too.
    await ask(state, ["circuit", "reset", "dep"]);
    expect((await run(state, "same", OTHER)).status).toBe(CONFIG_ERROR);
    going.kill("SIGTERM");
    await going.ended;
    expect((await run(state, "same", OTHER)).status).toBe(3);
  });

  test("what each job has of its own is none of it: its policy, its waits at start", async () => {
    const state = inState(scene, "own");
    expect((await run(state, "first")).status).toBe(3);
    const own = [
      "--on-open",
      "notify",
      "--probe-startup-wait",
      "5s",
      "--probe-initial-delay",
      "1s",
    ];
    expect((await run(state, "second", own)).status).toBe(3);
  });
});
