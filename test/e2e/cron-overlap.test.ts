/**
 * Two lines of Debian's real cron that overlap: the second one is locked out, cron has nothing to
 * mail, and the history says what happened.
 *
 * cron has a mount namespace of its own, with its own /etc/cron.d, its own /run and a sendmail that
 * keeps what it is given: a cron of this machine sees no line of the test, and nobody gets mail.
 */
import { expect } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { askJson } from "../support/ask.ts";
import { findProgram } from "../support/outside.ts";
import { readLines } from "../support/processes.ts";
import { openScene, RELEASE, rootTest, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const D = scene.directory;
const RUN = `${RELEASE} run --state-dir ${scene.stateDirectory} --name nightly`;

/** cron starts such lines once, when it starts itself. A `%` would end the line. */
function line(command: string): string {
  return `@reboot root ${command}\n`;
}

const WORK = `${RUN} -- sh -c 'echo in >>${D}/ran; until [ -e ${D}/gate ]; do sleep 0.02; done'`;
const NIGHTLY = line(`${WORK}; echo $? >>${D}/statuses`);
/** The same with a word to say, once the others have met: what cron mails, this test sees. */
const LOUD = line(
  `until [ -s ${D}/statuses ]; do sleep 0.02; done; ${RUN} -v -- true; echo $? >>${D}/loud`,
);

const PRIVATE = `
  mount --bind ${D}/cron.d /etc/cron.d && mount --bind ${D}/crontab /etc/crontab &&
  mount --bind ${D}/crontabs /var/spool/cron/crontabs && mount -t tmpfs none /run &&
  mount --bind ${D}/sbin /usr/sbin && exec /usr/sbin/cron -f`;

function startCron(lines: readonly string[]): Started {
  for (const name of ["cron.d", "crontabs", "sbin", "mail"]) mkdirSync(`${D}/${name}`);
  writeFileSync(`${D}/crontab`, "");
  const head = `${scene.cookieEntry}\nMAILTO=night@localhost\n`;
  writeFileSync(`${D}/cron.d/watchdog-test`, head + lines.join(""));
  copyFileSync(findProgram("cron"), `${D}/sbin/cron`);
  writeFileSync(`${D}/sbin/sendmail`, `#!/bin/sh\ncat >${D}/mail/$$\n`);
  for (const name of ["cron", "sendmail"]) chmodSync(`${D}/sbin/${name}`, 0o755);
  const argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", PRIVATE];
  return scene.startProgram(argv);
}

function readMails(): string[] {
  return readdirSync(`${D}/mail`).map((name) => readFileSync(`${D}/mail/${name}`, "utf8"));
}

rootTest(
  "of two overlapping lines of one name cron runs one; the other gets 75, mails nothing, and the " +
    "history has it as locked",
  async () => {
    const cron = startCron([NIGHTLY, NIGHTLY, LOUD]);
    const statuses = (): string[] => readLines(`${D}/statuses`);
    try {
      await waitFor(
        () => statuses().length > 0 && readLines(`${D}/loud`).length > 0,
        "both refusals",
      );
      expect([statuses(), readLines(`${D}/loud`)]).toEqual([["75"], ["75"]]);
      expect(readLines(`${D}/ran`)).toEqual(["in"]);
      writeFileSync(`${D}/gate`, "");
      await waitFor(() => statuses().length > 1, "the first line to have ended");
      // Only then cron has mailed what there was to mail.
      await waitFor(() => String(scene.findProcesses()) === String(cron.pid), "cron to be alone");
    } finally {
      writeFileSync(`${D}/gate`, "");
      cron.kill("SIGTERM");
      await cron.ended;
    }
    expect(statuses()).toEqual(["75", "0"]);
    const mails = readMails();
    expect(mails).toHaveLength(1);
    expect(mails[0]).toContain("To: night@localhost\n");
    expect(mails[0]).toContain(`${RUN} -v`);
    expect(mails[0]).toMatch(/\n\nwatchdog: not started: job:nightly is held by run /);
    const { runs } = await askJson(scene, ["history", "nightly"]);
    const told = runs.map(({ outcome, exit_status }: (typeof runs)[number]) => [
      outcome,
      exit_status,
    ]);
    expect(told.toSorted()).toEqual([
      ["locked", 75],
      ["locked", 75],
      ["ok", 0],
    ]);
    const winner = runs.find(({ outcome }: (typeof runs)[number]) => outcome === "ok");
    const locked = runs.filter(({ outcome }: (typeof runs)[number]) => outcome === "locked");
    for (const run of locked) {
      expect(run.held_by).toMatchObject({ key: "job:nightly", run_id: winner.run_id });
    }
  },
);
