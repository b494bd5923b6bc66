/**
 * The night of the README, with real programs: a database is dumped, transformed, compressed,
 * uploaded (unsafe), and what is left over is cleaned up. Killed in the middle, it is finished by
 * the next start of the same line, and the server has had exactly one upload.
 */
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { type Night, prepareNight, serveUploads } from "../support/night.ts";
import { findProgram } from "../support/outside.ts";
import { query } from "../support/own-state.ts";
import { readProcText } from "../support/proc-text.ts";
import { readLines } from "../support/processes.ts";
import {
  findGuards,
  openScene,
  readCommandLine,
  RELEASE,
  rootTest,
  type Started,
} from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const uploads = serveUploads();
afterAll(() => uploads.close());
const scene = openScene(import.meta.file);
const D = scene.directory;

const needed = ["sqlite3", "curl", "gzip", "sha256sum"].filter((name) => Bun.which(name) === null);
if (needed.length > 0) console.error(`needs ${needed.join()}, not run here: the night`);
const nightTest = test.skipIf(needed.length > 0);

/** Where watchdog is killed, how many uploads are tried in all, and which step runs twice. */
interface Killing {
  readonly where: string;
  readonly tries: number;
  readonly attempts: readonly string[];
  /** Before the first start. @returns is it there now? */
  prepare(night: Night): { isThere(): boolean; release(): void };
}

const ALL = ["dump", "transform", "compress", "upload", "clean"];
const attemptsWith = (name: string, count: number): string[] =>
  ALL.map((step) => `${step} done ${step === name ? count : 1}`);

const KILLINGS: readonly Killing[] = [
  {
    where: "in-the-dump",
    tries: 1,
    attempts: attemptsWith("dump", 2),
    prepare: (night) => {
      const holder = new Database(night.path("app.db"));
      holder.run("BEGIN EXCLUSIVE");
      const isDump = (pid: number): boolean => readCommandLine(pid).startsWith("sqlite3 ");
      return {
        isThere: () => findIn(night, isDump).length > 0,
        release: () => holder.close(true),
      };
    },
  },
  {
    where: "before-it-has-uploaded",
    tries: 2,
    attempts: attemptsWith("upload", 2),
    prepare: (night) => {
      uploads.cutOff(night.name, "before-it-counts");
      return { isThere: () => uploads.tries(night.name) === 1, release: () => undefined };
    },
  },
  {
    where: "after-it-has-uploaded",
    tries: 1,
    attempts: attemptsWith("upload", 1),
    prepare: (night) => {
      uploads.cutOff(night.name, "after-it-counted");
      return { isThere: () => uploads.received(night.name).length === 1, release: () => undefined };
    },
  },
];

/** Of the programs that work in the directory of a night. */
function findIn(night: Night, isMeant: (pid: number) => boolean): number[] {
  const isThere = (pid: number): boolean => {
    try {
      return readProcText(pid, "environ").includes(night.scene.stateDirectory);
    } catch {
      return false; // ENOENT, ESRCH: gone
    }
  };
  return scene.findProcesses().filter((pid) => isThere(pid) && isMeant(pid));
}

function expectGoodNight(night: Night, { tries, attempts }: Omit<Killing, "where" | "prepare">) {
  const rows = query(night.scene, "SELECT step, state, attempt FROM steps ORDER BY position");
  expect(rows.map((row) => row.join(" "))).toEqual([...attempts]);
  expect(query(night.scene, "SELECT count(*), max(state) FROM jobs")).toEqual([[1, "done"]]);
  expect([uploads.tries(night.name), uploads.received(night.name)]).toEqual([
    tries,
    [night.expected],
  ]);
  expect([existsSync(night.path("work")), existsSync(night.path("out/days.csv.gz"))]).toEqual([
    false,
    true,
  ]);
}

nightTest("undisturbed it uploads once, and so does each night after it", async () => {
  const night = prepareNight(scene, "quiet", uploads);
  const first = await night.scene.startProgram(night.line).ended;
  expect([first.status, first.stderr]).toEqual([0, ""]);
  expectGoodNight(night, { tries: 1, attempts: attemptsWith("", 0) });
  const verified = await night.scene.startProgram([RELEASE, "job", "verify", night.line.at(-1)!])
    .ended;
  expect([verified.status, verified.stderr]).toEqual([0, ""]);
  expect((await night.scene.startProgram(night.line).ended).status).toBe(0);
  expect(uploads.received("quiet")).toEqual([night.expected, night.expected]);
});

for (const killing of KILLINGS) {
  nightTest(`killed ${killing.where}, the same line finishes it: one upload`, async () => {
    const night = prepareNight(scene, `by-hand-${killing.where}`, uploads);
    const middle = killing.prepare(night);
    const first = night.scene.startProgram(night.line);
    await waitFor(middle.isThere, killing.where);
    first.kill("SIGKILL");
    expect((await first.ended).status).toBe(137);
    await waitFor(() => isOver(night), "the guard to have ended all");
    middle.release();
    const second = await night.scene.startProgram(night.line).ended;
    expect([second.status, second.stderr]).toEqual([0, expect.stringContaining("goes on where")]);
    expectGoodNight(night, killing);
  });
}

const isOver = (night: Night): boolean =>
  findIn(night, () => true).length === 0 && findGuards(night.scene.stateDirectory).length === 0;

/** A mount namespace of its own (cron-overlap.test.ts): no other cron sees a line of this test. */
const PRIVATE = `
  mount --bind ${D}/cron.d /etc/cron.d && mount --bind ${D}/crontab /etc/crontab &&
  mount --bind ${D}/crontabs /var/spool/cron/crontabs && mount -t tmpfs none /run &&
  exec ${D}/cron -f`;

/** The same line for each minute; the third one and all later ones are not to begin a night. */
function cronLine(night: Night): string {
  const statuses = night.path("statuses");
  const isTwice = `[ "$(cat ${statuses} 2>/dev/null | wc -l)" -ge 2 ]`;
  const run = `${night.line.join(" ")} >>${night.path("log")} 2>&1; echo $? >>${statuses}`;
  return `* * * * * root ${isTwice} || { ${run}; }\n`;
}

function startCron(nights: readonly Night[]): Started {
  for (const name of ["cron.d", "crontabs"]) mkdirSync(`${D}/${name}`);
  writeFileSync(`${D}/crontab`, "");
  const lines = nights.map(cronLine).join("");
  writeFileSync(`${D}/cron.d/watchdog-test`, `${scene.cookieEntry}\nMAILTO=""\n${lines}`);
  copyFileSync(findProgram("cron"), `${D}/cron`);
  chmodSync(`${D}/cron`, 0o755);
  return scene.startProgram([
    "unshare",
    "--mount",
    "--propagation",
    "private",
    "sh",
    "-c",
    PRIVATE,
  ]);
}

/** As cron started it: its words begin with the binary, those of its shell do not. */
function findWatchdog(night: Night): number | undefined {
  return scene.findProcesses().find((pid) => readCommandLine(pid) === night.line.join(" "));
}

async function killInTheMiddle(
  night: Night,
  middle: ReturnType<Killing["prepare"]>,
): Promise<void> {
  await waitFor(middle.isThere, `${night.name} under cron`, { limitMs: 120_000 });
  const watchdog = findWatchdog(night);
  if (watchdog === undefined) throw new Error(`${night.name}: found no watchdog`);
  process.kill(watchdog, "SIGKILL");
  await waitFor(() => isOver(night) && readLines(night.path("statuses")).length > 0, "its end");
  middle.release();
}

if (needed.length === 0) {
  rootTest(
    "A-91: under cron, killed in the middle, the next minute's line finishes it",
    async () => {
      const places = KILLINGS.map((killing) => {
        const night = prepareNight(scene, `cron-${killing.where}`, uploads);
        return { killing, night, middle: killing.prepare(night) };
      });
      const cron = startCron(places.map(({ night }) => night));
      const statuses = (): string[][] =>
        places.map(({ night }) => readLines(night.path("statuses")));
      try {
        await Promise.all(places.map(({ night, middle }) => killInTheMiddle(night, middle)));
        expect(statuses()).toEqual(places.map(() => ["137"]));
        await waitFor(() => statuses().every(({ length }) => length > 1), "the next minute", {
          limitMs: 120_000,
        });
      } finally {
        for (const { middle } of places) middle.release();
        cron.kill("SIGTERM");
        await cron.ended;
      }
      expect(statuses()).toEqual(places.map(() => ["137", "0"]));
      for (const { night, killing } of places) {
        expectGoodNight(night, killing);
        expect(readFileSync(night.path("log"), "utf8")).toContain("job shop-nightly goes on");
      }
    },
    300_000,
  );
}
