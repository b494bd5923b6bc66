/**
 * A member of the tree that may not be signalled, because it has other rights: watchdog ends by
 * itself, names it, ends everybody else, and claims nothing. Needs root and a C compiler to make
 * such a process, and says so where it has not got them.
 */
import { beforeAll, expect } from "bun:test";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { findByCommand, isDead, waitForText } from "../support/processes.ts";
import { FIXTURES, isRoot, openScene, RELEASE, rootTest } from "../support/scene.ts";
import type { Ended } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 180_000;
const NOBODY = "54402";
const HELPER_S = "40";

const compiler = Bun.which("cc");
if (compiler === null) console.error("needs a C compiler, not run here: members of other rights");

const shared = scene.path("shared");
const helper = `${shared}/becomes-root`;
const binary = `${shared}/watchdog`;

/** A directory where an ordinary user finds the binary, the set-uid helper, and room to write. */
function prepare(): void {
  if (!isRoot || compiler === null) return;
  mkdirSync(shared);
  chmodSync(scene.directory, 0o755);
  const source = `${FIXTURES}/becomes-root.c`;
  expect(Bun.spawnSync([compiler, "-O2", "-o", helper, source]).success).toBe(true);
  chmodSync(helper, 0o4755);
  copyFileSync(RELEASE, binary);
  chmodSync(binary, 0o755);
  chmodSync(shared, 0o777);
}

beforeAll(prepare, LIMIT_MS);

async function runAsNobody(name: string, args: readonly string[], script: string) {
  const resultFile = `${shared}/${name}.json`;
  const drop = ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", "--"];
  const run = [binary, "run", "--log", "off", "--result-file", resultFile, ...args, "--"];
  const ended: Ended = await scene.startProgram([...drop, ...run, "sh", "-c", script], {
    cwd: shared,
    env: { HOME: shared, WATCHDOG_STATE_DIR: `${shared}/state` },
  }).ended;
  return { ended, record: JSON.parse(readFileSync(resultFile, "utf8")) };
}

/** Ends the helper, as only root can, and proves that it was still there. */
async function endHelper(pidFile: string): Promise<number> {
  const pid = Number(await waitForText(pidFile));
  expect(existsSync(`/proc/${pid}`)).toBe(true);
  process.kill(pid, "SIGKILL");
  return pid;
}

if (compiler !== null) {
  rootTest(
    "A-13: a member that may not be signalled is named, and nobody waits for it for ever",
    async () => {
      const pidFile = `${shared}/a13.pid`;
      const { ended, record } = await runAsNobody(
        "a13",
        ["--timeout", "1s", "--kill-after", "500ms"],
        `exec ${helper} ${HELPER_S} ${pidFile}`,
      );
      const pid = await endHelper(pidFile);
      const command = `${helper} ${HELPER_S} ${pidFile}`;
      expect(ended.status).toBe(124);
      expect(record["outcome"]).toBe("timeout");
      expect(record["unsignalable"]).toEqual([{ pid, command }]);
      // Sooner than the ten seconds that a member which was hit may take to die.
      expect(record["duration_ms"]).toBeLessThan(9_000);
      expect(ended.stderr).toBe(
        "watchdog: ended by --timeout: sent TERM to the whole tree\n" +
          "watchdog: 1 process of the command could not be ended and may still run: " +
          `${pid} ${command}\n`,
      );
    },
    LIMIT_MS,
  );

  rootTest(
    "who may be signalled is ended, also below one that may not be",
    async () => {
      const pidFile = `${shared}/below.pid`;
      const marker = `(trap "" TERM; exec sleep 92701) >/dev/null 2>&1 &`;
      const { ended, record } = await runAsNobody(
        "below",
        ["--timeout", "1s", "--kill-after", "500ms"],
        `${marker} exec ${helper} ${HELPER_S} ${pidFile}`,
      );
      const left = findByCommand(scene, "sleep 92701");
      const pid = await endHelper(pidFile);
      for (const one of left) process.kill(one, "SIGKILL");
      expect(left).toEqual([]);
      expect(ended.status).toBe(124);
      expect(record["unsignalable"]).toMatchObject([{ pid }]);
    },
    LIMIT_MS,
  );

  rootTest(
    "while it lives its lease goes to nobody, who says so, and right after to the next run",
    async () => {
      const pidFile = `${shared}/kept-out.pid`;
      const named = ["--name", "kept-out", "--kill-after", "500ms"];
      const command = `${helper} ${HELPER_S} ${pidFile}`;
      const script = `${command} & until [ -s ${pidFile} ]; do :; done; exit 4`;
      const first = await runAsNobody("kept-out", named, script);
      expect(first.ended.status).toBe(4);
      const refused = await runAsNobody("refused", named, `echo ran`);
      expect([refused.ended.status, refused.ended.stdout.length]).toEqual([75, 0]);
      expect(refused.ended.stderr).toStartWith("watchdog: not started: job:kept-out ");
      const pid = await endHelper(pidFile);
      expect(refused.ended.stderr).toContain(String(pid));
      expect(refused.record).toMatchObject({ outcome: "locked", exit_status: 75 });
      await waitFor(() => isDead(pid), "the end of the helper");
      const next = await runAsNobody("next", named, `echo ran`);
      expect([next.ended.status, next.ended.stdout.toString()]).toEqual([0, "ran\n"]);
    },
    LIMIT_MS,
  );

  rootTest(
    "a leftover that may not be signalled does not change the command's own status",
    async () => {
      const pidFile = `${shared}/left.pid`;
      const start = `${helper} ${HELPER_S} ${pidFile} & until [ -s ${pidFile} ]; do :; done`;
      const { ended, record } = await runAsNobody(
        "left",
        ["--kill-after", "500ms"],
        `${start}; exit 4`,
      );
      const pid = await endHelper(pidFile);
      expect(ended.status).toBe(4);
      expect(record["unsignalable"]).toMatchObject([{ pid }]);
      expect(record["leftovers"]).toMatchObject([{ pid, ended_by: null }]);
      expect(ended.stderr).not.toContain("ended 1 process");
      expect(ended.stderr).toContain(`could not be ended and may still run: ${pid} `);
    },
    LIMIT_MS,
  );
}
