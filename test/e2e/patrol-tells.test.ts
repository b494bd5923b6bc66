/** What a patrol finds reaches people: notices of jobs, and the ping that patrols go on. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { waitForRow } from "../support/ask.ts";
import { endAll } from "../support/guarded-scene.ts";
import { GONE_LIMIT_MS, killWithGuard, waitUntilNoGuard } from "../support/killing.ts";
import {
  ageJob,
  HOUR_MS,
  patrol,
  waitForQuietJournal,
  withJournal,
} from "../support/patrol-scene.ts";
import { findByCommand, waitForCommand } from "../support/processes.ts";
import * as scenery from "../support/repair-scene.ts";
import { inState } from "../support/own-state.ts";
import { openScene, type Scene, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const base = openScene(import.meta.file);
const LINE = "sleep 98603";
let scene: Scene = base;
let count = 0;

interface Heard {
  readonly path: string;
  readonly key: string | null;
  readonly event: string;
  readonly summary: string;
}

const heard: Heard[] = [];
let isDown = false;
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: async (request) => {
    const text = await request.text();
    if (isDown) return new Response("down", { status: 503 });
    const notice = text.startsWith("{") ? JSON.parse(text) : {};
    heard.push({
      path: new URL(request.url).pathname,
      key: request.headers.get("idempotency-key"),
      event: String(notice.event ?? ""),
      summary: String(notice.summary ?? text),
    });
    return new Response("OK");
  },
});
const url = (path: string) => `http://127.0.0.1:${server.port}${path}`;

beforeEach(() => {
  count += 1;
  heard.length = 0;
  isDown = false;
  scene = inState(base, `state-${count}`);
});
const started: Started[] = [];
afterEach(async () => {
  for (const run of started.splice(0)) {
    run.kill("SIGCONT");
    run.kill("SIGTERM");
    await run.ended;
  }
  await endAll(base, findByCommand(base, LINE));
});
afterAll(async () => {
  await server.stop(true);
  await waitUntilNoGuard(base);
}, GONE_LIMIT_MS * 2);

function countDelivered(): number {
  return withJournal(scene, (db) => {
    const sql = "SELECT count(*) AS count FROM outbox WHERE state = 'delivered'";
    return db.query<{ count: number }, []>(sql).get()?.count ?? 0;
  });
}

const events = () => heard.map(({ event }) => event);

async function runNightly(command: string, ...words: readonly string[]): Promise<void> {
  const declared = ["--name", "nightly", "--every", "24h", "--webhook", url("/hook"), ...words];
  await scene.run([...declared, "--", ...command.split(" ")]);
}

describe("a job that is overdue", () => {
  test("is told once by however many patrols, and its recovery by its next good run", async () => {
    await runNightly("true");
    ageJob(scene, "nightly", 26 * HOUR_MS);
    for (const _ of [1, 2, 3]) expect((await patrol(scene)).status).toBe(0);
    expect(events()).toEqual(["overdue"]);
    expect(heard[0]?.summary).toContain("nightly");
    await runNightly("true");
    expect(events()).toEqual(["overdue", "recovered"]);
    expect(new Set(heard.map(({ key }) => key)).size).toBe(2);
  });

  test("is told though its command was never started", async () => {
    await runNightly("./nope");
    expect(events()).toEqual(["failure"]);
    ageJob(scene, "nightly", 26 * HOUR_MS);
    await patrol(scene);
    expect(events()).toEqual(["failure", "overdue"]);
  });

  test("is told by a later patrol where nobody heard the first", async () => {
    await runNightly("true");
    ageJob(scene, "nightly", 26 * HOUR_MS);
    isDown = true;
    await patrol(scene);
    expect(events()).toEqual([]);
    isDown = false;
    await waitFor(async () => {
      await patrol(scene);
      return heard.length > 0;
    }, "a notice that was tried again");
    expect(events()).toEqual(["overdue"]);
  });

  test("is told to a receiver whose address is not stored, by whoever has it", async () => {
    const secret = `${url("/hook")}?token=s3cr3t-0123456789abcdef`;
    const config = scene.path(`sinks-${count}.toml`);
    writeFileSync(config, `[sinks.team]\nwebhook = "${secret}"\n`, { mode: 0o600 });
    const words = ["--name", "nightly", "--every", "24h", "--config", config];
    expect((await scene.run([...words, "--", "true"])).status).toBe(0);
    ageJob(scene, "nightly", 26 * HOUR_MS);
    await patrol(scene);
    expect(events()).toEqual([]);
    await patrol(scene, ["--config", config]);
    expect(events()).toEqual(["overdue"]);
  });
});

describe("a run", () => {
  test("whose watchdog and guard were killed is told by the patrol, once", async () => {
    const words = ["--name", "killed", ...scenery.QUICK, "--webhook", url("/hook")];
    const run = scene.start([...words, "--", ...LINE.split(" ")], {
      env: { WATCHDOG_STATE_DIR: scene.stateDirectory },
      stdout: "ignore",
      stderr: "ignore",
    });
    await waitForCommand(base, LINE);
    await waitForRow(scene, "killed", "running");
    await killWithGuard(run);
    for (const _ of [1, 2]) await patrol(scene);
    expect(events()).toEqual(["abandoned"]);
    expect(findByCommand(base, LINE)).toHaveLength(1);
  });

  test("that is stalled is told, and that it beats again, while it goes on", async () => {
    const words = ["--webhook", url("/hook"), "--ping", url("/check")];
    const env = { WATCHDOG_STATE_DIR: scene.stateDirectory };
    const run = scene.start(
      ["--name", "slow", ...scenery.QUICK, ...words, "--", ...LINE.split(" ")],
      { env, stdout: "ignore", stderr: "ignore" },
    );
    started.push(run);
    await waitForCommand(base, LINE);
    await waitForRow(scene, "slow", "running");
    await waitFor(() => countDelivered() === 1, "the ping of its start, and its row");
    await waitForQuietJournal(scene);
    await scenery.stopStill(run);
    await scenery.waitForVerdict(scene, "job:slow", "stalled");
    const told = () => heard.filter(({ path }) => path === "/hook").map(({ event }) => event);
    for (const _ of [1, 2]) await patrol(scene);
    expect(told()).toEqual(["stalled"]);
    run.kill("SIGCONT");
    await waitFor(async () => {
      await patrol(scene);
      return told().length > 1;
    }, "its recovery");
    expect(told()).toEqual(["stalled", "recovered"]);
    // To the service that counts runs neither is an end of one.
    const pinged = heard.map(({ path }) => path).filter((path) => path.startsWith("/check"));
    expect(pinged).toEqual(["/check/start", "/check/log"]);
  });
});

describe("the ping of a patrol", () => {
  test("comes after each, at the plain address, with what was found", async () => {
    await runNightly("true");
    ageJob(scene, "nightly", 26 * HOUR_MS);
    for (const _ of [1, 2]) await patrol(scene, ["--ping", url("/patrol")]);
    const pings = heard.filter(({ path }) => path.startsWith("/patrol"));
    expect(pings).toMatchObject([{ path: "/patrol" }, { path: "/patrol" }]);
    expect(pings[0]?.summary).toContain("1 finding");
  });

  test("is not that of a job: WATCHDOG_PING is none of a patrol", async () => {
    await runNightly("true");
    heard.length = 0;
    const env = { WATCHDOG_STATE_DIR: scene.stateDirectory, WATCHDOG_PING: url("/job") };
    expect((await patrol(scene, [], { env })).status).toBe(0);
    expect(heard).toEqual([]);
  });

  test("that nobody hears is told, and the answer stays what it is", async () => {
    await runNightly("true");
    isDown = true;
    const { status, stdout, stderr } = await patrol(scene, ["--ping", url("/patrol")]);
    expect([status, stdout.toString().startsWith("all is well")]).toEqual([0, true]);
    expect(stderr).toMatch(/^watchdog: ping http:\/\/127\.0\.0\.1.*503/m);
  });

  test("reads its address from a file", async () => {
    await runNightly("true");
    const file = scene.path("ping-address");
    writeFileSync(file, `${url("/from-file")}\n`, { mode: 0o600 });
    await patrol(scene, ["--ping", `file:${file}`]);
    expect(heard.map(({ path }) => path)).toContain("/from-file");
  });
});
