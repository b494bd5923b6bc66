/**
 * `--mail` through a real mail server of this machine (Debian's dma, in a mount namespace of the
 * test's own) into a real mailbox, which Python's reader of mail reads: what arrives, how often,
 * and what becomes of a notice that the server does not take. The release binary, as root.
 */
import { beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { type Mail, MailOffice } from "../support/mail-office.ts";
import { inState } from "../support/own-state.ts";
import { isRoot, openScene, RELEASE, rootTest, type Scene } from "../support/scene.ts";

const whole = openScene(import.meta.file);
const OFFICE_LIMIT_MS = 120_000;
const LIMIT_MS = 60_000;
/** Of a machine under load, whose deliveries are waited for. */
const AMPLE = ["--notify-timeout", "30s"];

let office: MailOffice;
beforeAll(async () => {
  if (isRoot) office = await MailOffice.open(whole);
}, OFFICE_LIMIT_MS);

interface Place {
  readonly user: string;
  readonly scene: Scene;
  readonly fails: (job: string, script: string, env?: Record<string, string>) => Promise<number>;
  readonly ask: (...words: readonly string[]) => Promise<string>;
  readonly mails: () => Promise<readonly Mail[]>;
}

/** @param user  known to every Debian; each test has a mailbox and a state directory of its own */
function openPlace(user: string): Place {
  const scene = inState(whole, `state-${user}`);
  office.openMailbox(user);
  const watchdog = async (words: readonly string[], env: Record<string, string> = {}) =>
    office.run([RELEASE, ...words], { env: { ...scene.env, ...env } });
  return {
    user,
    scene,
    fails: async (job, script, env) => {
      const sink = ["--mail", user, ...AMPLE];
      const words = ["run", "--name", job, "--log", "on", ...sink, "--", "sh", "-c", script];
      return (await watchdog(words, env)).status;
    },
    ask: async (...words) => (await watchdog(words)).stdout.toString(),
    mails: () => office.readMails(user),
  };
}

function header(mail: Mail | undefined, name: string): readonly string[] {
  return mail?.headers[name] ?? [];
}

const LONG = "0123456789 ".repeat(40);
/** What a server or a mailbox might change on the way. */
const DELICATE = ["From the start", ".", "..", "tschüß = 😀 ", LONG, "=41", "\tx"];

describe("a mail by the server of this machine", () => {
  rootTest(
    "has the letters, lines and headers that it was given, and no secret",
    async () => {
      const { fails, mails } = openPlace("root");
      const secret = "tok_in_a_mail_7x8y";
      const said = DELICATE.map((line) => `printf '%s\\n' '${line}'`).join("; ");
      const script = `${said}; echo "token $API_TOKEN"; exit 7`;
      expect(await fails("nächtlich", script, { API_TOKEN: secret })).toBe(7);
      const found = await mails();
      expect(found).toHaveLength(1);
      const [mail] = found;
      expect(header(mail, "to")).toEqual(["root"]);
      expect(header(mail, "subject")[0]).toMatch(/^nächtlich: failure on \S+$/);
      expect(header(mail, "from")[0]).toMatch(/^<?root@[^\s>]+>?$/);
      expect(header(mail, "auto-submitted")).toEqual(["auto-generated"]);
      expect(header(mail, "x-watchdog-event")).toEqual(["failure"]);
      expect(header(mail, "message-id")).toHaveLength(1);
      expect(header(mail, "date")).toHaveLength(1);
      const [facts = "", output = ""] = (mail?.body ?? "").split("The end of its output:\n\n");
      expect(facts).toContain("failed with status 7");
      expect(output.trimEnd().split("\n")).toEqual([...DELICATE, "token ***"]);
      expect(readFileSync(office.path("mail", "root"), "utf8")).not.toContain(secret);
    },
    LIMIT_MS,
  );

  rootTest(
    "arrives once, before watchdog has ended, and again when the job is well",
    async () => {
      const { fails, mails, ask } = openPlace("daemon");
      // The server works on when it has told its status: nothing of that is cut off.
      for (const job of ["a", "b", "c", "d"]) expect(await fails(job, "exit 3")).toBe(3);
      expect(await fails("a", "exit 3")).toBe(3);
      const subjects = async (): Promise<string[]> =>
        (await mails()).map((mail) => header(mail, "subject")[0]?.replace(/ on .*/, "") ?? "");
      expect(await subjects()).toEqual(["a", "b", "c", "d"].map((job) => `${job}: failure`));
      expect(await fails("a", "exit 0")).toBe(0);
      expect((await subjects()).slice(4)).toEqual(["a: recovered"]);
      const ids = (await mails()).flatMap((mail) => header(mail, "message-id"));
      expect(new Set(ids).size).toBe(5);
      expect(office.listQueue()).toEqual([]);
      expect(await ask("notify", "list")).toBe("no notice waits\n");
    },
    LIMIT_MS,
  );

  rootTest(
    "is what `notify test` sends, too",
    async () => {
      const { ask, mails } = openPlace("games");
      expect(await ask("notify", "test", "--mail", "games", ...AMPLE)).toMatch(
        /^mail games +delivered\n$/,
      );
      const [mail] = await mails();
      expect(mail?.body).toContain("this is a test of watchdog");
    },
    LIMIT_MS,
  );
});

describe("a mail that the server does not take", () => {
  rootTest(
    "waits, costs the run nothing, and arrives once when the server takes it",
    async () => {
      const { fails, mails, ask } = openPlace("man");
      office.shut();
      try {
        expect(await fails("early", "exit 3")).toBe(3);
        expect(await mails()).toEqual([]);
        expect(await ask("notify", "list")).toMatch(
          /^1 {2}waiting, 1 attempt, .* mail man +hook-failed: status 7[0-9], .*spool\/dma/,
        );
      } finally {
        office.reopen();
      }
      const { notices } = JSON.parse(await ask("notify", "list", "--json"));
      expect(await ask("notify", "flush")).toBe("delivered 1 notice\n");
      expect(await ask("notify", "flush")).toBe("delivered 0 notices\n");
      const found = await mails();
      expect(found.map((mail) => header(mail, "subject")[0])).toEqual([
        expect.stringMatching(/^early: failure on /),
      ]);
      expect(header(found[0], "message-id")[0]).toStartWith(`<${notices[0].key}@`);
      expect(office.listQueue()).toEqual([]);
    },
    LIMIT_MS,
  );

  rootTest(
    "because it knows nobody of that name is given up, and stays for a person to see",
    async () => {
      const { ask, scene } = openPlace("news");
      const words = ["run", "--name", "lost", "--mail", "nobody-of-that-name", ...AMPLE];
      const env = { ...scene.env };
      const ended = await office.run([RELEASE, ...words, "--", "false"], { env });
      expect([ended.status, ended.stderr]).toEqual([
        1,
        expect.stringContaining("1 notice was given up: hook-failed: status 6"),
      ]);
      expect(await ask("notify", "list")).toMatch(/^1 {2}dead, 1 attempt /);
    },
    LIMIT_MS,
  );
});

rootTest("nothing of the server is left on this machine", () => {
  expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain(whole.directory);
});
