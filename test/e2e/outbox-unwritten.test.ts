/**
 * Notices where nothing can be written down: a journal and a spool that take nothing, a state
 * directory that cannot be used. A person hears of the end all the same, once it has come.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { ask, askJson } from "../support/ask.ts";
import { GONE_LIMIT_MS, waitUntilNoGuard } from "../support/killing.ts";
import { openReceivers } from "../support/notice-server.ts";
import { inState } from "../support/own-state.ts";
import { waitForText } from "../support/processes.ts";
import { openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const whole = openScene(import.meta.file);
const open = openReceivers();

afterAll(() => waitUntilNoGuard(whole), GONE_LIMIT_MS * 2);
const LIMIT_MS = 60_000;

describe("where neither the journal nor the spool takes the end of a run", () => {
  /** What stands in the place of both is no file and no directory of ours. */
  async function prepare(name: string) {
    const scene = inState(whole, `${name}.state`);
    await scene.run(["--name", "first", "--", "true"]);
    for (const place of ["journal.db", "journal.db-wal", "journal.db-shm", "spool"]) {
      rmSync(`${scene.stateDirectory}/${place}`, { recursive: true, force: true });
    }
    mkdirSync(`${scene.stateDirectory}/journal.db`);
    writeFileSync(`${scene.stateDirectory}/spool`, "");
    return scene;
  }

  test(
    "it is told past them, with its own status",
    async () => {
      const server = await open();
      const scene = await prepare("failed");
      const options = ["--webhook", server.url(), "--ping", server.url("/ping")];
      const ended = await scene.run([...options, "--", "sh", "-c", "echo ran; exit 7"]);
      expect([ended.status, ended.stdout.toString()]).toEqual([7, "ran\n"]);
      expect(server.received.map(({ path }) => path.split("?")[0]).toSorted()).toEqual([
        "/hook",
        "/ping/7",
      ]);
      expect(server.received.find(({ path }) => path === "/hook")?.body).toMatchObject({
        event: "failure",
        exit_status: 7,
        log_tail: "ran\n",
      });
    },
    LIMIT_MS,
  );

  test(
    "a good end is told to a ping alone, and a receiver that is down is a line",
    async () => {
      const server = await open();
      const scene = await prepare("well");
      const options = ["--webhook", server.url(), "--ping", server.url("/ping")];
      expect((await scene.run([...options, "--", "true"])).status).toBe(0);
      expect(server.received.map(({ path }) => path.split("?")[0])).toEqual(["/ping/0"]);
      const lost = await scene.run(["--webhook", "http://127.0.0.1:1/h", "--", "false"]);
      expect(lost.status).toBe(1);
      expect(lost.stderr).toContain("watchdog: 1 notice is lost: not-connected");
    },
    LIMIT_MS,
  );
});

describe("where the spool alone takes the end of a run, and nobody can read it in", () => {
  /** As on a disk that is nearly full, which refuses the journal and takes small files. */
  async function prepare(name: string) {
    const scene = inState(whole, `${name}.state`);
    await scene.run(["--name", "first", "--", "true"]);
    for (const place of ["journal.db", "journal.db-wal", "journal.db-shm"]) {
      rmSync(`${scene.stateDirectory}/${place}`, { force: true });
    }
    mkdirSync(`${scene.stateDirectory}/journal.db`);
    return { scene, free: () => rmSync(`${scene.stateDirectory}/journal.db`, { recursive: true }) };
  }

  test(
    "it is told at once, and later at most under the same key",
    async () => {
      const server = await open();
      const { scene, free } = await prepare("spooled");
      const options = ["--name", "spooled", "--webhook", server.url()];
      const ended = await scene.run([...options, "--", "sh", "-c", "exit 7"]);
      expect(ended.status).toBe(7);
      expect(server.received.map(({ event }) => event)).toEqual(["failure"]);
      free();
      await ask(scene, ["notify", "flush"]);
      expect(new Set(server.received.map(({ key }) => key)).size).toBe(1);
      const { runs } = await askJson(scene, ["history", "spooled"]);
      expect(runs).toMatchObject([{ outcome: "failed" }]);
    },
    LIMIT_MS,
  );

  test(
    "a receiver that is down is a line, and hears of it once the journal is back",
    async () => {
      const server = await open();
      server.behaviour = { status: 500 };
      const { scene, free } = await prepare("spooled-down");
      const options = ["--name", "down", "--webhook", server.url()];
      const ended = await scene.run([...options, "--", "false"]);
      expect(ended.stderr).toContain("watchdog: 1 notice waits in spool/: server-error");
      server.behaviour = { status: 200 };
      free();
      await ask(scene, ["notify", "flush"]);
      expect(server.received.map(({ event }) => event)).toEqual(["failure", "failure"]);
      expect(new Set(server.received.map(({ key }) => key)).size).toBe(1);
    },
    LIMIT_MS,
  );

  test(
    "the guard of a run that was killed tells it, too",
    async () => {
      const server = await open();
      const { scene, free } = await prepare("spooled-killed");
      const ready = scene.path("ready-killed");
      const options = ["--name", "killed", "--webhook", server.url()];
      const run = scene.start([...options, "--", "sh", "-c", `echo >${ready}; sleep 98611`]);
      await waitForText(ready);
      run.kill("SIGKILL");
      await run.ended;
      await waitFor(() => server.received.length > 0, "the word of the guard");
      await waitUntilNoGuard(scene);
      expect(server.received.map(({ event }) => event)).toEqual(["abandoned"]);
      free();
      await ask(scene, ["notify", "flush"]);
      expect(new Set(server.received.map(({ key }) => key)).size).toBe(1);
    },
    LIMIT_MS,
  );
});

describe("a start that was refused by the state directory itself", () => {
  test(
    "is told, with what a person must change",
    async () => {
      const server = await open();
      const place = whole.path("wide");
      mkdirSync(place);
      chmodSync(place, 0o777);
      const words = ["--state-dir", place, "--name", "refused", "--webhook", server.url()];
      const [good, bad] = [whole.path("told-of-good"), whole.path("told-of-bad")];
      const hooks = [`success=touch ${good}`, `failure=touch ${bad}`].flatMap((on) => ["--on", on]);
      const ended = await whole.run([...words, ...hooks, "--", "true"]);
      expect(ended.status).toBe(78);
      expect([good, bad].map((path) => existsSync(path))).toEqual([false, true]);
      expect(server.received.map(({ body }) => body)).toMatchObject([
        { event: "failure", job: "refused", because: "state.refused", details: { status: 78 } },
      ]);
    },
    LIMIT_MS,
  );
});

describe("without a lease", () => {
  test(
    "a state directory that cannot be made costs no notice",
    async () => {
      const server = await open();
      const place = whole.path("closed");
      mkdirSync(place);
      writeFileSync(`${place}/file`, "");
      const options = ["--no-lease", "--state-dir", `${place}/file/state`];
      const ended = await whole.run([...options, "--webhook", server.url(), "--", "false"]);
      expect(ended.status).toBe(1);
      expect(server.received.map(({ event }) => event)).toEqual(["failure"]);
    },
    LIMIT_MS,
  );
});
