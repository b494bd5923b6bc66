/**
 * Secrets on their way to a receiver: what a check quotes, what an item says, and the last words of
 * a job, through the outbox, past it, and on the screen of whoever asks meanwhile. Release binary.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { ask, askJson, waitForHolder } from "../support/ask.ts";
import { openReceivers } from "../support/notice-server.ts";
import { GONE_LIMIT_MS, waitUntilNoGuard } from "../support/killing.ts";
import { inState } from "../support/own-state.ts";
import { waitForCommand } from "../support/processes.ts";
import { openScene, type Scene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const whole = openScene(import.meta.file);
afterAll(() => waitUntilNoGuard(whole), GONE_LIMIT_MS * 2);
const open = openReceivers();
const LIMIT_MS = 60_000;

const SECRET = "tok_1a2b3c4d5e";
const env = { API_TOKEN: SECRET };
const OPTIONS = ["--name", "leaky", "--log", "on", "--fail-match", "^login with"];
/** Said on all ways that there are, of which none is a known shape. */
const SAYS =
  'echo "fail 2 refused $API_TOKEN" >>"$WATCHDOG_PROGRESS"; ' +
  'echo "checkpoint at $API_TOKEN" >>"$WATCHDOG_PROGRESS"; echo "login with $API_TOKEN"';

function textsBelow(directory: string): string {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const paths = entries.filter((one) => one.isFile()).map((one) => `${one.parentPath}/${one.name}`);
  const kept = paths.filter((path) => !path.endsWith(".log") && !path.includes("/progress/"));
  return kept.map((path) => readFileSync(path, "latin1")).join("\n");
}

/** Neither the journal nor the spool takes anything: both are something else. */
async function prepareUnwritable(name: string): Promise<Scene> {
  const scene = inState(whole, name);
  await scene.run(["--name", "first", "--", "true"]);
  for (const place of ["journal.db", "journal.db-wal", "journal.db-shm", "spool"]) {
    rmSync(`${scene.stateDirectory}/${place}`, { recursive: true, force: true });
  }
  mkdirSync(`${scene.stateDirectory}/journal.db`);
  writeFileSync(`${scene.stateDirectory}/spool`, "");
  return scene;
}

describe("what a job has said of its secret is hidden", () => {
  test(
    "in the notice, in the answers and in each file but the raw log",
    async () => {
      const server = await open();
      const scene = inState(whole, "outbox.state");
      const ended = await scene.run(
        [...OPTIONS, "--webhook", server.url(), "--", "sh", "-c", SAYS],
        { env },
      );
      expect(ended.status).toBe(65);
      const [{ body } = { body: {} }] = server.received;
      expect(body).toMatchObject({ because: "match-forbidden", log_tail: "login with ***\n" });
      const sent = JSON.stringify(server.received);
      expect(sent).toContain('found":"\\"login with ***\\""');
      expect(sent).toContain("refused ***");
      // The last words themselves are those of the raw log: whoever asks knows no values.
      const [why = ""] = (await ask(scene, ["why", "leaky"])).stdout.toString().split("the last");
      const report = (await ask(scene, ["report", "--json"])).stdout.toString();
      const files = textsBelow(scene.stateDirectory);
      for (const text of [sent, why, report, files, ended.stderr]) {
        expect(text).not.toContain(SECRET);
      }
    },
    LIMIT_MS,
  );

  test(
    "where a check quotes the beginning of a line, and it is cut in the middle",
    async () => {
      const scene = inState(whole, "quoted.state");
      const script = `echo "E: ${"x".repeat(145)} $API_TOKEN and more of it"`;
      const words = ["--name", "quoted", "--fail-match", "^E:", ...scene.recordTo("quoted")];
      const ended = await scene.run([...words, "--", "sh", "-c", script], { env });
      expect(ended.status).toBe(65);
      const [check] = scene.readRecord("quoted")["checks"];
      expect(check.found).toContain("x *** and");
      const files = textsBelow(scene.stateDirectory);
      for (const text of [ended.stderr, check.found, files]) expect(text).not.toContain("tok_");
    },
    LIMIT_MS,
  );

  test(
    "in the notice that is told past an outbox that takes nothing",
    async () => {
      const server = await open();
      const scene = await prepareUnwritable("unwritable.state");
      const words = [...OPTIONS, "--webhook", server.url(), "--", "sh", "-c", SAYS, SECRET];
      expect((await scene.run(words, { env })).status).toBe(65);
      const [{ body } = { body: {} }] = server.received;
      expect(body).toMatchObject({
        because: "match-forbidden",
        command: ["sh", "-c", SAYS, "***"],
        log_tail: "login with ***\n",
      });
      expect(JSON.stringify(server.received)).not.toContain(SECRET);
    },
    LIMIT_MS,
  );

  test(
    "by the guard of a killed run, also where a message is cut in the middle of it",
    async () => {
      const scene = inState(whole, "killed.state");
      // The secret begins shortly before the end of what is kept of a message.
      const says = `echo "fail 2 ${"x".repeat(190)} $API_TOKEN" >>"$WATCHDOG_PROGRESS"`;
      const script = `${says}; exec sleep 9417612`;
      const words = ["--name", "killed", ...scene.recordTo("killed")];
      const run = scene.start([...words, "--", "sh", "-c", script], { env });
      await waitForCommand(scene, "sleep 9417612");
      run.kill("SIGKILL");
      await run.ended;
      const ends = (): boolean => scene.readRecord("killed")["outcome"] === "abandoned";
      await waitFor(ends, "the guard's word");
      await waitUntilNoGuard(scene);
      const { items } = scene.readRecord("killed");
      expect(items).toMatchObject({ failed: 2 });
      expect(items.last_message).toStartWith("xxx");
      const files = textsBelow(scene.stateDirectory);
      expect([files.includes("tok_"), JSON.stringify(items).includes("tok_")]).toEqual([
        false,
        false,
      ]);
    },
    LIMIT_MS,
  );

  test(
    "where a probe's answer is quoted in part, and the cut is in the middle of it",
    async () => {
      const answers = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch: () => Response.json({ state: `${"x".repeat(110)} ${SECRET} and more of it` }),
      });
      const says = `head -c 503 /dev/zero | tr '\\0' x; printf ' %s ' "$API_TOKEN"`;
      const long = `${says}; head -c 3000 /dev/zero | tr '\\0' y; exit 1`;
      const http = [`--probe`, `api=http://127.0.0.1:${answers.port}/`];
      const rows = [
        ["api", ...http, "--probe-expect-json", "state=ok"],
        ["login", "--probe", `login=cmd:${long}`],
      ];
      for (const [name = "", ...probe] of rows) {
        const scene = inState(whole, `probed-${name}.state`);
        const words = ["--name", name, ...probe, "--probe-startup-wait", "1s"];
        const ended = await scene.run([...words, "--", "true"], { env });
        expect(ended.status).toBe(69);
        expect(ended.stderr).toContain("xxx");
        const said = ended.stderr + textsBelow(scene.stateDirectory);
        expect([name, said.includes("tok_")]).toEqual([name, false]);
      }
      await answers.stop(true);
    },
    LIMIT_MS,
  );

  test(
    "in the notice of a start that was refused",
    async () => {
      const server = await open();
      const place = whole.path(`wide-${SECRET}`);
      mkdirSync(place);
      chmodSync(place, 0o777);
      const words = ["--state-dir", place, "--name", "refused", "--webhook", server.url()];
      const ended = await whole.run([...words, "--", "true"], { env });
      expect(ended.status).toBe(78);
      const [told] = server.received;
      expect(told?.body).toMatchObject({ because: "state.refused" });
      const sent = JSON.stringify(told);
      expect(sent).toContain("wide-***");
      for (const text of [sent, ended.stderr]) expect(text).not.toContain(SECRET);
    },
    LIMIT_MS,
  );

  test(
    "in what is shown of a run that goes on",
    async () => {
      const scene = inState(whole, "running.state");
      const run = scene.start([...OPTIONS, "--", "sh", "-c", `${SAYS}; exec sleep 9417611`], {
        env,
      });
      await waitForHolder(scene, "leaky");
      const shown = await waitFor(async () => {
        const { leases } = await askJson(scene, ["status"]);
        return leases[0]?.progress?.last_message && JSON.stringify(leases);
      }, "what its items say to be shown");
      const lease = (await ask(scene, ["lease", "show", "job:leaky", "--json"])).stdout.toString();
      const files = textsBelow(scene.stateDirectory);
      run.kill("SIGTERM");
      await run.ended;
      expect(shown).toContain("refused ***");
      expect(shown).toContain("at ***");
      for (const text of [shown, lease, files]) expect(text).not.toContain(SECRET);
    },
    LIMIT_MS,
  );
});
