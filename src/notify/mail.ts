/**
 * Hands a notice to the mail program of this machine (sendmail(8), as every mail server has one).
 * Refuses to speak SMTP itself. State after a crash: the mail is in the queue, or not sent.
 */
import { accessSync, constants } from "node:fs";
import { decideMailed, type Sent } from "../core/delivery.ts";
import { renderMail } from "../core/mail-text.ts";
import type { Notice } from "../core/notice.ts";
import { type HookRunner, type HookTerms, runProgram } from "./hook.ts";

/** Where it is, whatever PATH says: cron's has neither directory. */
const PLACES = ["/usr/sbin/sendmail", "/usr/lib/sendmail", "/usr/bin/sendmail"];

export interface MailTerms extends HookTerms {
  readonly hooks: HookRunner;
  readonly version: string;
  /** The mail program; tests put another one here. */
  readonly sendmail?: string | undefined;
}

/** Never rejects. */
export function sendMail(address: string, notice: Notice, terms: MailTerms): Promise<Sent> {
  const program = terms.sendmail ?? PLACES.find(isProgram);
  if (program === undefined) {
    const detail = `no mail program: ${PLACES.join(", ")} are not there`;
    return Promise.resolve({ kind: "failed", because: "no-sendmail", detail });
  }
  return runProgram(
    {
      // -i: a line with a lone dot ends nothing. -t: to whom is in the headers. Not -odi, which has
      // exim deliver before it ends: with a slow server behind it, it had no end in time although
      // it had taken the mail (seen with 4.96). Without, it delivers in a process that it leaves
      // behind, as dma does; that has the rest of the time (run/hook-command.ts), and what is not
      // delivered by then is in the queue of the program. Postfix and others leave it to a service.
      run: { kind: "program", argv: [program, "-i", "-t"] },
      input: renderMail(address, notice, terms.version),
      cwd: "/",
      variables: {},
    },
    decideMailed,
    terms,
  );
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // ENOENT, EACCES: the next one
  }
}
