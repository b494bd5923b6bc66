/**
 * What is told while a run goes on, what is not told any more, by whom, and what of an address is
 * kept: with real hooks and receivers.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { ask, askJson } from "../support/ask.ts";
import { findFreePort, openReceivers } from "../support/notice-server.ts";
import { inState } from "../support/own-state.ts";
import { waitForCommand } from "../support/processes.ts";
import { openScene, type Scene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const whole = openScene(import.meta.file);
const open = openReceivers();
const LIMIT_MS = 60_000;

let states = 0;
function newState(): Scene {
  states += 1;
  return inState(whole, `events-${states}.state`);
}

async function listStates(scene: Scene): Promise<string[]> {
  const { notices } = await askJson(scene, ["notify", "list", "--all"]);
  return (notices as unknown as readonly { event: string; state: string }[])
    .map(({ event, state }) => `${event} ${state}`)
    .toReversed();
}

describe("while a run goes on", () => {
  test(
    "a dependency that goes away and comes back is told at once",
    async () => {
      const server = await open();
      const scene = newState();
      const there = whole.path("there");
      writeFileSync(there, "");
      const probe = ["--probe", `db=cmd:test -e ${there}`, "--probe-period", "1s"];
      const options = ["--on-open", "notify", "--probe-failure-threshold", "1"];
      const backoff = ["--probe-backoff", "100ms..100ms"];
      const words = [...probe, ...options, ...backoff, "--webhook", server.url()];
      const run = scene.start(["--name", "job", ...words, "--", "sleep", "9417601"]);
      await waitForCommand(scene, "sleep 9417601");
      rmSync(there);
      await waitFor(() => server.received.length === 1, "the open circuit to be told");
      writeFileSync(there, "");
      await waitFor(() => server.received.length === 2, "the closed circuit to be told");
      // The twin: it is still the same run.
      expect((await askJson(scene, ["lease", "show", "job:job"])).verdict).toBe("held");
      run.kill("SIGTERM");
      await run.ended;
      expect(server.received.map(({ event }) => event)).toEqual([
        "circuit_open",
        "circuit_closed",
        "failure",
      ]);
      expect(server.received[0]?.body["summary"]).toContain("the dependency db is down");
    },
    LIMIT_MS,
  );

  test(
    "a start that could not be told is not told after its end",
    async () => {
      const scene = newState();
      const port = await findFreePort();
      const go = whole.path("go");
      const script = `while [ ! -e ${go} ]; do sleep 0.02; done`;
      const ping = ["--ping", `http://127.0.0.1:${port}/ping`];
      const run = scene.start(["--name", "job", ...ping, "--", "sh", "-c", script]);
      await waitFor(async () => {
        const { notices } = await askJson(scene, ["notify", "list"]);
        return (notices as unknown as readonly { next_at: string; attempts: number }[]).some(
          ({ attempts }) => attempts > 0,
        );
      }, "the start to be tried");
      const server = await open(port);
      writeFileSync(go, "");
      expect(await run.ended).toMatchObject({ status: 0, stderr: "" });
      expect(server.received.map(({ path }) => path.split("?")[0])).toEqual(["/ping/0"]);
      expect(await listStates(scene)).toEqual(["start superseded", "success delivered"]);
    },
    LIMIT_MS,
  );
});

describe("the guard of a killed watchdog", () => {
  test(
    "runs a hook with the end of the output, without what is secret in it",
    async () => {
      const scene = newState();
      const told = whole.path("told.json");
      const on = ["--on", `abandoned=cat >${told}.new; mv ${told}.new ${told}`];
      const script = "echo before; echo $API_TOKEN; exec sleep 9417602";
      const run = scene.start(["--name", "job", ...on, "--", "sh", "-c", script], {
        env: { API_TOKEN: "tok_1a2b3c4d5e" },
      });
      await waitForCommand(scene, "sleep 9417602");
      await waitFor(() => {
        const [log] = [...new Bun.Glob("logs/job/*.log").scanSync(scene.stateDirectory)];
        const path = `${scene.stateDirectory}/${log ?? ""}`;
        return log !== undefined && readFileSync(path, "utf8").includes("tok_");
      }, "the output to be kept");
      run.kill("SIGKILL");
      await run.ended;
      await waitFor(() => existsSync(told), "the hook to have run");
      expect(JSON.parse(readFileSync(told, "utf8"))).toMatchObject({
        event: "abandoned",
        job: "job",
        log_tail: "before\n***\n",
      });
    },
    LIMIT_MS,
  );
});

describe("the guard of a watchdog with an address from a variable or on its line", () => {
  test.each(["variable", "line"])(
    "tells it there at once (%s), as it is",
    async (place) => {
      const scene = newState();
      const server = await open();
      const url = server.url("/hook?token=tok_9f8e7d6c5b");
      const [words, env] =
        place === "line" ? [["--webhook", url], {}] : [[], { WATCHDOG_WEBHOOK: url }];
      const name = ["--name", "job", ...words];
      const run = scene.start([...name, "--", "sleep", "9417603"], { env });
      await waitForCommand(scene, "sleep 9417603");
      run.kill("SIGKILL");
      await run.ended;
      await waitFor(() => server.received.length > 0, "the guard to tell it");
      expect(server.received.map(({ path, event }) => [path, event])).toEqual([
        ["/hook?token=tok_9f8e7d6c5b", "abandoned"],
      ]);
      await waitFor(() => scene.findProcesses().length === 0, "nobody to be left");
    },
    LIMIT_MS,
  );
});

describe("an address with a secret in it", () => {
  const filesWith = (scene: Scene, text: string): string[] =>
    readdirSync(scene.stateDirectory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => `${entry.parentPath}/${entry.name}`)
      .filter((path) => readFileSync(path, "latin1").includes(text));

  test(
    "stands in no file, and whoever has the same sink delivers what waits",
    async () => {
      const scene = newState();
      const port = await findFreePort();
      const url = `http://me:pw_77_xyz@127.0.0.1:${port}/hook?token=tok_9f8e7d6c5b`;
      const env = { WATCHDOG_WEBHOOK: url };
      const ended = await scene.run(["--name", "job", "--", "sh", "-c", "exit 7"], { env });
      expect(ended.status).toBe(7);
      expect(ended.stderr).not.toMatch(/pw_77_xyz|tok_9f8e7d6c5b/);
      for (const secret of ["pw_77_xyz", "tok_9f8e7d6c5b"]) {
        expect(filesWith(scene, secret)).toEqual([]);
      }
      // The twin of the search: what is no secret is found.
      expect(filesWith(scene, `127.0.0.1:${port}/hook`)).not.toEqual([]);
      const server = await open(port);
      const without = await ask(scene, ["notify", "flush"]);
      expect([without.status, server.received.length]).toEqual([0, 0]);
      await ask(scene, ["notify", "flush", "--webhook", url]);
      expect(server.received.map(({ path, event }) => [path, event])).toEqual([
        ["/hook?token=tok_9f8e7d6c5b", "failure"],
      ]);
    },
    LIMIT_MS,
  );

  test(
    "of a variable that names another one by now: what waits for the first is not sent there",
    async () => {
      const scene = newState();
      const [port, other] = [await findFreePort(), await open()];
      const env = { WATCHDOG_WEBHOOK: `http://127.0.0.1:${port}/first` };
      await scene.run(["--name", "job", "--", "false"], { env });
      const moved = { WATCHDOG_WEBHOOK: other.url("/second") };
      await ask(scene, ["notify", "flush"], { env: moved });
      await scene.run(["--name", "other", "--", "true"], { env: moved });
      expect(other.received).toEqual([]);
      const server = await open(port);
      await ask(scene, ["notify", "flush"], { env });
      expect(server.received.map(({ path, event }) => [path, event])).toEqual([
        ["/first", "failure"],
      ]);
    },
    LIMIT_MS,
  );

  test(
    "on the line is hidden in the outbox, and said to be so",
    async () => {
      const scene = newState();
      const port = await findFreePort();
      const url = `http://127.0.0.1:${port}/hook?token=tok_9f8e7d6c5b`;
      await scene.run(["--name", "job", "--webhook", url, "--", "false"]);
      expect(filesWith(scene, "tok_9f8e7d6c5b")).toEqual([]);
      await open(port);
      const flushed = await ask(scene, ["notify", "flush"]);
      expect(flushed.stdout.toString()).toContain("1 of them is for a secret address");
      const mine = await ask(scene, ["notify", "flush", "--webhook", url]);
      expect(mine.stdout.toString()).toBe("delivered 1 notice\n");
    },
    LIMIT_MS,
  );
});
