/**
 * A real mail server of a test's own: Debian's dma, which delivers into files in /var/mail,
 * unpacked beside the test and never installed. Whoever is to have it runs in a mount namespace
 * where it is the sendmail of the machine, with a queue and mailboxes of the scene: nothing of the
 * machine's own mail is touched, and the namespace goes with its last process. Needs root.
 */
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { python } from "./processes.ts";
import type { Ended, RunOptions, Scene } from "./scene.ts";

export interface Mail {
  /** By their names in small letters, decoded. */
  readonly headers: Readonly<Record<string, readonly string[]>>;
  /** Decoded. */
  readonly body: string;
}

/** User and group `mail` of every Debian, as which dma works. */
const MAIL_ID = 8;
const FILE_MODE = 0o660;

/** Of the machine, if it can; else from lists of our own, which costs some seconds. */
const FETCH = `
  cd "$D/office" && mkdir -p lists/partial cache/archives/partial || exit 1
  own="-o APT::Sandbox::User=root -o Dir::State::Lists=$PWD/lists -o Dir::Cache=$PWD/cache"
  apt-get -q -o APT::Sandbox::User=root download dma ||
    { apt-get -q $own update && apt-get -q $own download dma; } || exit 1
  dpkg-deb -x dma_*.deb package && cp -a package/usr/sbin/. sbin/`;

/** Nobody's aliases lead a mail elsewhere. */
const PRIVATE = `
  mount --bind "$D/office/sbin" /usr/sbin && mount --bind "$D/office/spool" /var/spool &&
  mount --bind "$D/office/mail" /var/mail || exit 99
  [ ! -e /etc/aliases ] || mount --bind "$D/office/aliases" /etc/aliases || exit 99
  exec "$@"`;

const SENDMAIL = "/usr/sbin/sendmail";

function expectOf({ status, stdout, stderr }: Ended, what: string): void {
  if (status !== 0) throw new Error(`${what}: status ${status}\n${stdout.toString()}${stderr}`);
}

export class MailOffice {
  readonly #scene: Scene;

  private constructor(scene: Scene) {
    this.#scene = scene;
  }

  /** @throws Error with what apt-get has said, where the package cannot be had or does not run */
  static async open(scene: Scene): Promise<MailOffice> {
    const office = new MailOffice(scene);
    for (const name of ["sbin", "spool", "spool/dma", "mail"]) {
      mkdirSync(office.path(name), { recursive: true });
      chmodSync(office.path(name), 0o755);
    }
    writeFileSync(office.path("aliases"), "");
    office.#giveToMail("spool/dma", 0o770);
    const env = { D: scene.directory };
    const fetched = await scene.startProgram(["sh", "-c", FETCH], { env }).ended;
    expectOf(fetched, "this test needs Debian's package dma, which cannot be had");
    // Its libraries are there, and so is what it needs of the machine.
    expectOf(await office.run([SENDMAIL, "-bp"]), "Debian's dma does not run here");
    return office;
  }

  path(...parts: readonly string[]): string {
    return this.#scene.path("office", ...parts);
  }

  #giveToMail(name: string, mode: number): void {
    chmodSync(this.path(name), mode);
    chownSync(this.path(name), MAIL_ID, MAIL_ID);
  }

  /** An empty mailbox of a user who is known to the machine. */
  openMailbox(user: string): void {
    writeFileSync(this.path("mail", user), "");
    this.#giveToMail(`mail/${user}`, FILE_MODE);
  }

  /** The server takes no mail any more: it cannot write its queue. */
  shut(): void {
    chmodSync(this.path("spool/dma"), 0);
    chownSync(this.path("spool/dma"), 0, 0);
  }

  reopen(): void {
    this.#giveToMail("spool/dma", 0o770);
  }

  /** A program to its end, on a machine that has this server. */
  run(words: readonly string[], options: RunOptions = {}): Promise<Ended> {
    const within = ["unshare", "--mount", "--propagation", "private", "sh", "-c", PRIVATE, "sh"];
    const env = { ...options.env, D: this.#scene.directory };
    return this.#scene.startProgram([...within, ...words], { ...options, env }).ended;
  }

  /** What the server has taken and not delivered. */
  listQueue(): string[] {
    return readdirSync(this.path("spool/dma"));
  }

  async readMails(user: string): Promise<readonly Mail[]> {
    if (!existsSync(this.path("mail", user))) return [];
    const words = python("reads-mailbox.py", this.path("mail", user));
    const { status, stdout, stderr } = await this.#scene.startProgram(words).ended;
    if (status !== 0) throw new Error(`the mailbox cannot be read: ${stderr}`);
    return JSON.parse(stdout.toString());
  }
}
