/**
 * Hooks, pings and webhooks of a whole run, from the outside: what they are told, that the run has
 * its own status, and that nothing of a hook is left. The release binary.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { GONE_LIMIT_MS, waitUntilNoGuard } from "../support/killing.ts";
import { findByCommand, readLines, waitForText } from "../support/processes.ts";
import { openScene } from "../support/scene.ts";
import { openSinkServer, type SinkServer } from "../support/sink-server.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const servers: SinkServer[] = [];
const LIMIT_MS = 60_000;

afterAll(async () => {
  for (const server of servers) await server.close();
  await waitUntilNoGuard(scene);
}, GONE_LIMIT_MS * 2);

async function openServer(): Promise<SinkServer> {
  const server = await openSinkServer();
  servers.push(server);
  return server;
}

function hook(name: string, lines: string): string {
  const path = scene.path(name);
  writeFileSync(path, `#!/bin/sh\n${lines}\n`);
  chmodSync(path, 0o700);
  return path;
}

const FAILS = ["--", "/bin/sh", "-c", "exit 5"];

describe("A-75: a failure hook", () => {
  test(
    "that hangs and ignores TERM is over within its time, and the status is the run's",
    async () => {
      const hangs = hook("hangs", "trap '' TERM; sleep 451; sleep 451");
      const began = performance.now();
      const ended = await scene.run(["--name", "a75-hangs", "--on-failure", hangs, ...FAILS]);
      expect(ended.status).toBe(5);
      expect(performance.now() - began).toBeLessThan(60_000);
      expect(ended.stderr.trim().split("\n")).toHaveLength(1);
      // On a machine that is too busy for that, its sender had no more time before.
      expect(ended.stderr).toMatch(/hook-timeout|stopped before it was over/);
      expect(findByCommand(scene, "sleep 451")).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    "that leaves something in the background has told, and that is ended",
    async () => {
      const leaves = hook("leaves", "sleep 452 & setsid sleep 452 & exit 0");
      const ended = await scene.run(["--name", "a75-leaves", "--on-failure", leaves, ...FAILS]);
      expect([ended.status, ended.stderr]).toEqual([5, ""]);
      expect(findByCommand(scene, "sleep 452")).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    "that is not there is one line, and no new status",
    async () => {
      const ended = await scene.run([
        "--name",
        "a75-no",
        "--on-failure",
        "/no/such/hook",
        ...FAILS,
      ]);
      expect(ended.status).toBe(5);
      expect(ended.stderr).toContain("hook: 1: /no/such/hook: not found");
      expect(ended.stderr.trim().split("\n")).toHaveLength(1);
    },
    LIMIT_MS,
  );
});

describe("a hook", () => {
  test(
    "works in the directory of the run, with the notice as it is",
    async () => {
      const cwd = scene.path("work");
      mkdirSync(cwd);
      const on = "cat >notice.json; env | grep ^WATCHDOG_EVENT >variables; pwd >place";
      const line = ["--name", "told", "--log", "on", "--on-failure", on];
      await scene.run([...line, "--", "/bin/sh", "-c", "echo out; exit 5"], { cwd });
      const notice = JSON.parse(readFileSync(`${cwd}/notice.json`, "utf8"));
      expect(notice).toMatchObject({
        format: 1,
        event: "failure",
        job: "told",
        outcome: "failed",
        exit_status: 5,
        status_of: "command",
        cwd,
        log_tail: "out\n",
      });
      expect(readLines(`${cwd}/place`)).toEqual([cwd]);
      expect(readLines(`${cwd}/variables`)).toContain("WATCHDOG_EVENT_EXIT_STATUS=5");
      rmSync(cwd, { recursive: true });
    },
    LIMIT_MS,
  );

  test(
    "of the start runs beside the job, and is none of its processes",
    async () => {
      const [started, go] = [scene.path("hook-started"), scene.path("hook-go")];
      const on = `start=echo >${started}; until [ -e ${go} ]; do sleep 0.05; done`;
      const run = scene.start(
        ["--name", "beside", ...scene.recordTo("beside"), "--on", on, "--"].concat(
          "/bin/sh",
          "-c",
          `until [ -s ${started} ]; do sleep 0.05; done; exit 0`,
        ),
      );
      await waitForText(started);
      writeFileSync(go, "");
      const ended = await run.ended;
      expect([ended.status, ended.stderr]).toEqual([0, ""]);
      expect(scene.readRecord("beside")).toMatchObject({ leftovers: [], left_alone: [] });
    },
    LIMIT_MS,
  );

  test(
    "hears from the guard that the run was killed",
    async () => {
      const [ready, told] = [scene.path("ready-killed"), scene.path("told-killed")];
      const on = `echo "$WATCHDOG_EVENT $WATCHDOG_EVENT_JOB" >${told}`;
      const command = ["--", "/bin/sh", "-c", `echo >${ready}; exec sleep 453`];
      const run = scene.start(["--name", "killed", "--on-failure", on, ...command]);
      await waitForText(ready);
      run.kill("SIGKILL");
      await run.ended;
      expect(await waitForText(told)).toBe("abandoned killed\n");
      await waitUntilNoGuard(scene);
      expect(findByCommand(scene, "sleep 453")).toEqual([]);
    },
    LIMIT_MS,
  );

  test(
    "ends with a watchdog that is killed while it runs",
    async () => {
      const begun = scene.path("begun-twice");
      const on = `[ -e ${begun} ] || { echo >${begun}; exec sleep 454; }`;
      const run = scene.start(["--name", "killed-late", "--on-failure", on, ...FAILS]);
      await waitForText(begun);
      run.kill("SIGKILL");
      await run.ended;
      await waitFor(() => findByCommand(scene, "sleep 454").length === 0, "the end of the hook");
    },
    LIMIT_MS,
  );
});

describe("a ping", () => {
  test(
    "goes through the sequence of its protocol, with one rid a run",
    async () => {
      const server = await openServer();
      server.answer({ status: 200, headers: { "Ping-Body-Limit": "60" }, body: "OK" });
      const line = ["--name", "pinged", "--log", "on", "--ping", `${server.url}/ping/u?create=1`];
      const long = "i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); done; exit";
      await scene.run([...line, ...scene.recordTo("ok"), "--", "/bin/sh", "-c", `${long} 0`]);
      await scene.run([...line, ...scene.recordTo("bad"), "--", "/bin/sh", "-c", `${long} 7`]);
      const [good, bad] = [scene.readRecord("ok")["run_id"], scene.readRecord("bad")["run_id"]];
      expect(server.received.map(({ method, target }) => `${method} ${target}`)).toEqual([
        `POST /ping/u/start?create=1&rid=${good}`,
        `POST /ping/u/0?create=1&rid=${good}`,
        `POST /ping/u/start?create=1&rid=${bad}`,
        `POST /ping/u/7?create=1&rid=${bad}`,
      ]);
      const bodies = server.received.map(({ body }) => body);
      expect([bodies[0], bodies[2]]).toEqual(["", ""]);
      expect(bodies[3]).toEndWith("line 38\nline 39\n");
      expect(Buffer.byteLength(bodies[3] ?? "")).toBeLessThanOrEqual(60);
    },
    LIMIT_MS,
  );
});

describe("a webhook in the shape of a service", () => {
  test(
    "gets fields that it documents, and no secret of the job",
    async () => {
      const server = await openServer();
      const shapes = ["slack", "discord", "ntfy", "json"];
      const sinks = shapes.flatMap((shape) => ["--webhook", `${shape}:${server.url}/${shape}`]);
      const script = "printf '%s ' '@everyone' \"$API_TOKEN\" '``` <!channel>'; exit 3";
      const command = ["--", "/bin/sh", "-c", script, "x", "--password", "pw_of_it"];
      const env = { API_TOKEN: "tok_1a2b3c4d5e" };
      await scene.run(["--name", "shapes", "--log", "on", ...sinks, ...command], { env });
      const bodies = Object.fromEntries(
        server.received.map(({ target, body }) => [target, JSON.parse(body)]),
      );
      expect(Object.keys(bodies).toSorted()).toEqual(["/", "/discord", "/json", "/slack"]);
      expect(bodies["/slack"]).toMatchObject({ blocks: [{ type: "header" }, {}, {}] });
      expect(bodies["/discord"]).toMatchObject({ allowed_mentions: { parse: [] }, flags: 4 });
      expect(bodies["/"]).toMatchObject({ topic: "ntfy", priority: 4 });
      expect(bodies["/json"]).toMatchObject({ event: "failure", log_tail: expect.any(String) });
      const all = server.received.map(({ body }) => body).join("\n");
      expect(all).toContain("@everyone *** ");
      expect(all).not.toMatch(/tok_1a2b3c4d5e|pw_of_it/);
      expect(existsSync(scene.stateDirectory)).toBe(true);
    },
    LIMIT_MS,
  );
});

describe("in a directory that the job itself removes", () => {
  const REMOVES = (rest: string): string[] => ["--", "/bin/sh", "-c", `rmdir "$PWD"; ${rest}`];

  test(
    "the failure hook is run all the same, in /",
    async () => {
      const cwd = scene.path("removed-by-its-job");
      mkdirSync(cwd);
      const heard = scene.path("heard-in-root");
      const options = ["--name", "removes", "--on-failure", `pwd >${heard}`];
      const ended = await scene.run([...options, ...REMOVES("exit 5")], { cwd });
      expect([ended.status, ended.stderr]).toEqual([5, ""]);
      expect(readFileSync(heard, "utf8")).toBe("/\n");
    },
    LIMIT_MS,
  );

  test(
    "a command that is asked whether a dependency is well goes on saying so",
    async () => {
      const cwd = scene.path("removed-while-probed");
      mkdirSync(cwd);
      const asked = scene.path("asked-without-a-directory");
      const probe = ["--probe", `removed=cmd:echo asked >>${asked}`, "--probe-period", "2s"];
      const times = ["--probe-timeout", "2s", "--probe-failure-threshold", "1"];
      const waits = `until [ -e ${asked}.more ]; do sleep 0.05; done; exit 0`;
      const words = ["--name", "probed", ...probe, ...times, ...REMOVES(waits)];
      const run = scene.start(words, { cwd });
      await waitFor(() => !existsSync(cwd), "the directory to be gone");
      const before = readLines(asked).length;
      // One of them may have been on its way.
      const askedTwice = waitFor(() => readLines(asked).length > before + 1, "two more");
      await Promise.race([askedTwice, run.ended]);
      writeFileSync(`${asked}.more`, "");
      expect((await run.ended).status).toBe(0);
    },
    LIMIT_MS,
  );
});
