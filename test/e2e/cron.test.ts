/**
 * Debian's real cron runs a real backup with watchdog in front of it and without, in the same
 * minute: the logs are equal byte by byte, the backups are good, the environment is cron's.
 */
import { expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { findProgram, PYTHON, runShell } from "../support/outside.ts";
import { FIXTURES, openScene, RELEASE, rootTest, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const D = scene.directory;
const ENTRY = `/etc/cron.d/watchdog-test-${process.pid}`;
const FILES = 20_000;
const WAYS = ["without", "with"] as const;
const OWN_VARIABLE = /^WATCHDOG_(RUN_ID|RUN_PATH|JOB|STATE_DIR|LEASE|GENERATION|PROGRESS)=/;

/** cron reads a `%` as the end of the line; there is none in these. */
function line(way: (typeof WAYS)[number], command: string, name: string): string {
  const prefix =
    way === "with"
      ? `${RELEASE} run --state-dir ${D}/state --result-file ${D}/${name}.json -- `
      : "";
  const target = `${D}/${way}`;
  const at = `${target}/${name}`;
  const once = `[ -e ${at}.begun ] || { : >${at}.begun; `;
  const run = `${prefix}${command.replaceAll("TARGET", target)} >>${at}.log 2>&1`;
  return `* * * * * root ${once}${run}; echo $? >${at}.status; }\n`;
}

async function prepare(): Promise<Started> {
  const writer = scene.startProgram([PYTHON, `${FIXTURES}/writes-database.py`, `${D}/live.db`]);
  const script = `mkdir "$D/files" "$D/with" "$D/without" &&
    cd "$D/files" && seq ${FILES} | split -l 1 -a 5 -d`;
  const made = await runShell(scene, script, { env: { D } });
  expect([made.code, made.stderr]).toEqual([0, ""]);
  await waitFor(() => existsSync(`${D}/live.db`) && statSync(`${D}/live.db`).size > 20_000, "rows");
  return writer;
}

function findCrons(): string[] {
  return Bun.spawnSync(["pgrep", "-x", "cron"]).stdout.toString().split("\n").filter(Boolean);
}

/** One with a mount namespace of its own has a crontab of its own: another test's. */
function seesOurFiles(pid: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/ns/mnt`) === readlinkSync("/proc/self/ns/mnt");
  } catch {
    return false; // ENOENT: gone
  }
}

/** Starts cron with our entry; one that runs already takes it up by itself. */
function startCron(): Started | undefined {
  const backup = `${FIXTURES}/backs-up.sh ${D}/live.db ${D}/files TARGET`;
  const lines = WAYS.flatMap((way) => [
    line(way, backup, "backup"),
    line(way, "/usr/bin/env", "env"),
  ]);
  writeFileSync(ENTRY, `${scene.cookieEntry}\n${lines.join("")}`);
  chmodSync(ENTRY, 0o644);
  return findCrons().some(seesOurFiles)
    ? undefined
    : scene.startProgram([findProgram("cron"), "-f"]);
}

function read(way: string, name: string): Buffer {
  return readFileSync(`${D}/${way}/${name}`);
}

async function expectGoodBackup(way: string): Promise<void> {
  const script = `mkdir "$T/unpacked" && tar -xf "$T/files.tar" -C "$T/unpacked" &&
    diff -r "$D/files" "$T/unpacked" && find "$T/unpacked" -type f | wc -l &&
    sqlite3 "$T/copy.db" 'pragma integrity_check'`;
  const ended = await runShell(scene, script, { env: { D, T: `${D}/${way}` } });
  expect([way, ended.stdout.toString(), ended.stderr]).toEqual([way, `${FILES}\nok\n`, ""]);
}

rootTest(
  "under Debian's cron a backup works, and its log is byte-equal to one without watchdog",
  async () => {
    const writer = await prepare();
    const cron = startCron();
    try {
      const parts = WAYS.flatMap((way) =>
        ["backup", "env"].map((name) => `${D}/${way}/${name}.status`),
      );
      await waitFor(() => parts.every(existsSync), "all four lines of the crontab to have ended", {
        limitMs: 170_000,
        stepMs: 100,
      });
    } finally {
      rmSync(ENTRY, { force: true });
      cron?.kill("SIGTERM");
      await cron?.ended;
      writer.kill("SIGKILL");
      await writer.ended;
    }
    expect(existsSync(ENTRY)).toBe(false);
    expect(scene.findProcesses()).toEqual([]);
    for (const way of WAYS) {
      expect([way, read(way, "backup.status").toString()]).toEqual([way, "3\n"]);
      await expectGoodBackup(way);
    }
    const log = read("with", "backup.log");
    expect(log.equals(read("without", "backup.log"))).toBe(true);
    expect(log.toString()).toStartWith(
      "backup starts\nnote: the database is in use\nintegrity: ok\n./\n",
    );
    expect(log.toString()).toEndWith(`packed ${FILES} files\nbackup ends\n`);
    expect(log.toString()).toContain("./x00100\nseen ./x00100\n./x00101\n");
    const record = scene.readRecord("backup");
    expect(record).toMatchObject({ outcome: "failed", exit_code: 3, leftovers: [], degraded: [] });
    expect(readFileSync(record.log.path).equals(log)).toBe(true);
    const variables = (way: string): string[] =>
      read(way, "env.log")
        .toString()
        .split("\n")
        .filter((one) => !OWN_VARIABLE.test(one));
    expect(variables("with")).toEqual(variables("without"));
    expect(variables("with")).toContain("PATH=/usr/bin:/bin");
    expect(read("with", "env.log").toString()).toContain("WATCHDOG_RUN_ID=");
  },
  240_000,
);

test("A-80: no terminal, a short PATH, HOME=/ and the C locale do not matter", async () => {
  const state = scene.path("short-state");
  mkdirSync(state, { mode: 0o700 });
  const environment = ["HOME=/", "LOGNAME=nobody", "SHELL=/bin/sh", "PATH=/usr/bin:/bin", "LANG=C"];
  const script = "echo ran; tty; nosuchtool_a80";
  const ended = await scene.startProgram([
    "setsid",
    "-w",
    "env",
    "-i",
    scene.cookieEntry,
    ...environment,
    RELEASE,
    "run",
    "--state-dir",
    state,
    "--",
    "sh",
    "-c",
    script,
  ]).ended;
  expect([ended.code, ended.stdout.toString()]).toEqual([127, "ran\nnot a tty\n"]);
  expect(ended.stderr).toMatch(/^sh: .*nosuchtool_a80: not found\n$/);
  expect(ended.stderr).not.toContain("\x1b");
});
