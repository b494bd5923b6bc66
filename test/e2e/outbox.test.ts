/**
 * Notices from the outside: receivers that are down, hang, answer with an error, break off, send
 * elsewhere or ask for time. The job starts without delay, ends with its own status, and the
 * message arrives once the receiver is back.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { ask, askJson } from "../support/ask.ts";
import { type Behaviour, findFreePort, openReceivers } from "../support/notice-server.ts";
import { inState, query } from "../support/own-state.ts";
import { waitForCommand } from "../support/processes.ts";
import { openScene, type Scene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const whole = openScene(import.meta.file);
const open = openReceivers();
const LIMIT_MS = 120_000;
/** No machine is so busy that what does not wait takes so long. */
const SOON_MS = 4_000;
const FAILS = ["--", "sh", "-c", "exit 7"];

interface Shown {
  readonly id: number;
  readonly state: string;
  readonly attempts: number;
  readonly next_at: string;
  readonly last_because: string | null;
}

let states = 0;
function newState(): Scene {
  states += 1;
  return inState(whole, `outbox-${states}.state`);
}

async function listAll(scene: Scene): Promise<readonly Shown[]> {
  const { notices } = await askJson(scene, ["notify", "list", "--all", "--limit", "100"]);
  return notices as unknown as readonly Shown[];
}

const DOWN: readonly (readonly [string, Behaviour, string])[] = [
  ["answers 500", { status: 500 }, "server-error: status 500"],
  ["sends elsewhere", { status: 302, headers: { location: "/x" } }, "redirected: status 302"],
  ["breaks off", "reset", "no-answer"],
  ["asks for time", { status: 429, headers: { "retry-after": "7" } }, "rate-limited: status 429"],
];

describe("a receiver that", () => {
  test.each(DOWN)(
    "%s: the run has its own status and one line, and the message arrives later",
    async (_what, behaviour, because) => {
      const server = await open();
      server.behaviour = behaviour;
      const scene = newState();
      const ended = await scene.run(["--name", "job", "--webhook", server.url(), ...FAILS]);
      expect(ended.status).toBe(7);
      expect(ended.stderr.split("\n")).toEqual([
        expect.stringContaining(`watchdog: 1 notice was not delivered yet: ${because}`),
        "",
      ]);
      expect(server.received).toHaveLength(1);
      const [row] = await listAll(scene);
      expect(row).toMatchObject({ state: "waiting", attempts: 1 });
      expect(row?.last_because).toStartWith(because);
      server.behaviour = { status: 200 };
      await ask(scene, ["notify", "flush"]);
      expect(server.received.map(({ key }) => key)).toEqual(Array(2).fill(server.received[0]?.key));
      expect(await listAll(scene)).toMatchObject([{ state: "delivered", attempts: 2 }]);
    },
    LIMIT_MS,
  );

  test(
    "is not there: the next run delivers, once it is",
    async () => {
      const port = await findFreePort();
      const scene = newState();
      const options = ["--name", "job", "--webhook", `http://127.0.0.1:${port}/hook`];
      expect((await scene.run([...options, ...FAILS])).status).toBe(7);
      const [row] = await listAll(scene);
      const server = await open(port);
      // The twin: before its time a notice is not tried again, which is at most half a minute.
      await waitFor(() => Date.now() >= Date.parse(row?.next_at ?? ""), "the next attempt");
      expect(server.received).toEqual([]);
      expect((await scene.run([...options, "--", "true"])).status).toBe(0);
      expect(server.received.map(({ event }) => event)).toEqual(["failure", "recovered"]);
    },
    LIMIT_MS,
  );

  test(
    "stands in a file that cannot be read is told so, and hears of it once the file is there",
    async () => {
      const server = await open();
      const scene = newState();
      const file = scene.path("webhook-to-come");
      const ended = await scene.run(["--name", "job", "--webhook", `file:${file}`, ...FAILS]);
      expect(ended.status).toBe(7);
      expect(ended.stderr).toContain(`no-target: ${file} cannot be read (ENOENT)`);
      expect(await listAll(scene)).toMatchObject([{ state: "waiting", attempts: 1 }]);
      writeFileSync(file, `${server.url()}\n`);
      await ask(scene, ["notify", "flush"]);
      expect(server.received.map(({ event }) => event)).toEqual(["failure"]);
    },
    LIMIT_MS,
  );

  test(
    "asks for time is not asked again before it",
    async () => {
      const server = await open();
      server.behaviour = { status: 503, headers: { "retry-after": "3600" } };
      const scene = newState();
      const before = Date.now();
      await scene.run(["--name", "job", "--webhook", server.url(), ...FAILS]);
      const [row] = await listAll(scene);
      expect(Date.parse(row?.next_at ?? "") - before).toBeGreaterThanOrEqual(3_600_000);
      await scene.run(["--name", "job", "--webhook", server.url(), "--", "true"]);
      expect(server.received).toHaveLength(1);
    },
    LIMIT_MS,
  );

  test(
    "refuses for good has it given up at once, and the next one is tried",
    async () => {
      const server = await open();
      server.behaviour = { status: 404 };
      const scene = newState();
      const options = ["--name", "job", "--webhook", server.url()];
      const ended = await scene.run([...options, ...FAILS]);
      expect(ended.stderr).toContain("1 notice was given up: rejected: status 404");
      server.behaviour = { status: 200 };
      await scene.run([...options, "--", "true"]);
      expect(server.received.map(({ event }) => event)).toEqual(["failure", "recovered"]);
      const rows = await listAll(scene);
      expect(rows.map(({ state }) => state)).toEqual(["delivered", "dead"]);
      await ask(scene, ["notify", "flush", "--dead"]);
      expect(server.received.map(({ event }) => event)).toEqual([
        "failure",
        "recovered",
        "failure",
      ]);
    },
    LIMIT_MS,
  );

  test(
    "A-72: accepts and never answers costs the limit and no more, and the lease is free meanwhile",
    async () => {
      const server = await open();
      server.behaviour = "hang";
      const scene = newState();
      const began = performance.now();
      const run = scene.start(["--name", "a72", "--webhook", server.url(), ...FAILS]);
      await waitFor(() => server.received.length === 1, "the notice to be sent");
      const { verdict } = await askJson(scene, ["lease", "show", "job:a72"]);
      expect(verdict).toBe("free");
      const ended = await run.ended;
      expect(ended.status).toBe(7);
      expect(performance.now() - began).toBeLessThan(5_000 + SOON_MS);
      expect(ended.stderr).toContain("1 notice was not delivered yet: no-answer");
    },
    LIMIT_MS,
  );

  test(
    "hangs is not waited for once somebody asks us to go, nor where no time is given",
    async () => {
      const server = await open();
      server.behaviour = "hang";
      const scene = newState();
      const options = ["--name", "job", "--webhook", server.url(), "--notify-timeout", "1h"];
      const run = scene.start([...options, ...FAILS]);
      await waitFor(() => server.received.length === 1, "the notice to be sent");
      const asked = performance.now();
      run.kill("SIGTERM");
      expect((await run.ended).status).toBe(7);
      expect(performance.now() - asked).toBeLessThan(SOON_MS);
      const none = ["--name", "other", "--webhook", server.url(), "--notify-timeout", "0"];
      const ended = await scene.run([...none, ...FAILS]);
      expect([ended.status, ended.stderr]).toEqual([7, ""]);
      expect(server.received).toHaveLength(1);
    },
    LIMIT_MS,
  );

  test(
    "hangs since the start keeps nothing from the other receivers of the end",
    async () => {
      const [stuck, well] = [await open(), await open()];
      stuck.behaviour = "hang";
      const scene = newState();
      const heard = scene.path("heard-by-the-hook");
      const options = ["--name", "job", "--ping", stuck.url(), "--webhook", well.url()];
      const hook = ["--on-failure", `echo heard >${heard}`, "--notify-timeout", "3s"];
      const script = `until [ -e ${heard}.asked ]; do sleep 0.02; done; exit 7`;
      const run = scene.start([...options, ...hook, "--", "sh", "-c", script]);
      await waitFor(() => stuck.received.length === 1, "the start to be told");
      writeFileSync(`${heard}.asked`, "");
      const ended = await run.ended;
      expect(ended.status).toBe(7);
      expect(well.received.map(({ event }) => event)).toEqual(["failure"]);
      expect(readFileSync(heard, "utf8")).toBe("heard\n");
      // The twin: its own end waits behind its start, and is not lost.
      expect(stuck.received).toHaveLength(1);
      const left = (await listAll(scene)).filter(({ state }) => state === "waiting");
      expect(left).toHaveLength(1);
    },
    LIMIT_MS,
  );

  test(
    "hangs while the job runs delays neither its start nor its end",
    async () => {
      const server = await open();
      server.behaviour = "hang";
      const scene = newState();
      // One that waits already, and that a start would be told.
      const on = ["--on", "start=sleep 60", "--webhook", server.url()];
      await scene.run([
        "--name",
        "job",
        "--webhook",
        server.url(),
        "--notify-timeout",
        "0",
        ...FAILS,
      ]);
      const mark = scene.path("mark");
      const run = scene.start([
        "--name",
        "job",
        ...on,
        "--notify-timeout",
        "1s",
        "--",
        "touch",
        mark,
      ]);
      const began = performance.now();
      await waitFor(() => Bun.file(mark).exists(), "the command to have run");
      expect((await run.ended).status).toBe(0);
      expect(performance.now() - began).toBeLessThan(1_000 + SOON_MS);
      await waitFor(() => scene.findProcesses().length === 0, "the hook to be gone");
    },
    LIMIT_MS,
  );
});

test(
  "what others have left is sent by a run that tells nobody itself, however short it is",
  async () => {
    const server = await open();
    server.delayMs = 300;
    const scene = newState();
    const left = ["--name", "job", "--webhook", server.url(), "--notify-timeout", "0", ...FAILS];
    await scene.run(left);
    query(scene, "UPDATE outbox SET next_at = 0");
    expect((await scene.run(["--name", "other", "--", "true"])).status).toBe(0);
    expect(server.received.map(({ event }) => event)).toEqual(["failure"]);
    expect(await listAll(scene)).toMatchObject([{ state: "delivered", attempts: 1 }]);
  },
  LIMIT_MS,
);

test(
  "what others have left for a receiver that hangs holds a run up for a second at most",
  async () => {
    const server = await open();
    server.behaviour = "hang";
    const scene = newState();
    const left = ["--name", "job", "--webhook", server.url(), "--notify-timeout", "0", ...FAILS];
    await scene.run(left);
    query(scene, "UPDATE outbox SET next_at = 0");
    const began = performance.now();
    expect((await scene.run(["--name", "other", "--", "true"])).status).toBe(0);
    expect(performance.now() - began).toBeLessThan(1_000 + SOON_MS);
    // The twin: it has tried, and the notice is not lost.
    expect(server.received).toHaveLength(1);
    expect(await listAll(scene)).toMatchObject([{ state: "waiting", attempts: 1 }]);
  },
  LIMIT_MS,
);

describe("A-73: a monitoring service that is down", () => {
  test(
    "the job runs all the same, with its own status",
    async () => {
      const server = await open();
      server.behaviour = { status: 500 };
      const scene = newState();
      const runs = [
        [server.url(), "exit 0", 0],
        [server.url(), "exit 7", 7],
        ["http://127.0.0.1:1/h", "exit 7", 7],
      ] as const;
      for (const [url, script, status] of runs) {
        const words = ["--name", "a73", "--webhook", url, "--", "sh", "-c", `echo ran; ${script}`];
        const ended = await scene.run(words);
        expect([ended.status, ended.stdout.toString()]).toEqual([status, "ran\n"]);
      }
      const rows = await listAll(scene);
      expect(rows.map(({ state, attempts }) => [state, attempts])).toEqual([
        ["waiting", 1],
        ["waiting", 1],
      ]);
    },
    LIMIT_MS,
  );
});

describe("A-74: every kind of bad ending", () => {
  test(
    "gives exactly one notice, with a word that tells them apart",
    async () => {
      const server = await open();
      const scene = newState();
      const to = (path: string): string[] => ["--name", "a74", "--webhook", server.url(`/${path}`)];
      await scene.run([...to("exit"), "--", "sh", "-c", "exit 3"]);
      const limit = ["--timeout", "500ms", "--kill-after", "1s"];
      await scene.run([...to("timeout"), ...limit, "--", "sleep", "60"]);
      await scene.run([...to("signal"), "--", "sh", "-c", "kill -9 $$"]);
      await scene.run([...to("nostart"), "--", "/no/such"]);
      const run = scene.start([...to("term"), "--", "sleep", "9417460"]);
      await waitForCommand(scene, "sleep 9417460");
      run.kill("SIGTERM");
      await run.ended;
      await scene.run([...to("ok"), "--", "true"]);
      const holder = scene.start(["--name", "a74", "--", "sleep", "9417461"]);
      await waitForCommand(scene, "sleep 9417461");
      expect((await scene.run([...to("locked"), "--", "true"])).status).toBe(75);
      holder.kill("SIGTERM");
      await holder.ended;
      expect(server.received.map(({ path, outcome }) => [path, outcome])).toEqual([
        ["/exit", "failed"],
        ["/timeout", "timeout"],
        ["/signal", "signaled"],
        ["/nostart", "not_found"],
        ["/term", "stopped"],
      ]);
    },
    LIMIT_MS,
  );

  test(
    "is told to one receiver once each, however often they come",
    async () => {
      const server = await open();
      const scene = newState();
      const options = ["--name", "job", "--webhook", server.url()];
      const bad = ["exit 3", "kill -9 $$", "exit 4", "kill -9 $$"];
      for (const script of bad) await scene.run([...options, "--", "sh", "-c", script]);
      await scene.run([...options, "--", "true"]);
      expect(server.received.map(({ event, outcome }) => `${event} ${outcome}`)).toEqual([
        "failure failed",
        "failure signaled",
        "recovered ok",
      ]);
      // The twin: with no span between them each one is told.
      const each = ["--remind-every", "0", ...options];
      for (const script of bad) await scene.run([...each, "--", "sh", "-c", script]);
      expect(server.received.slice(3).map(({ outcome }) => outcome)).toEqual([
        "failed",
        "signaled",
        "failed",
        "signaled",
      ]);
    },
    LIMIT_MS,
  );
});

describe("A-98: a job that takes longer than its interval", () => {
  test(
    "overlapping starts are told to nobody",
    async () => {
      const server = await open();
      const scene = newState();
      const options = ["--name", "a98", "--webhook", server.url(), "--ping", server.url("/ping")];
      const holder = scene.start([...options, "--", "sleep", "9419801"]);
      await waitForCommand(scene, "sleep 9419801");
      await waitFor(() => server.received.length === 1, "the start to be told");
      for (let count = 0; count < 4; count += 1) {
        expect((await scene.run([...options, "--", "true"])).status).toBe(75);
      }
      holder.kill("SIGTERM");
      await holder.ended;
      const pings = server.received.filter(({ path }) => path.startsWith("/ping"));
      expect(pings.map(({ path }) => path.split("?")[0])).toEqual(["/ping/start", "/ping/143"]);
      expect(server.received).toHaveLength(3);
    },
    LIMIT_MS,
  );
});
