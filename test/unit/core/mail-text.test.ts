/** A notice as a mail: what of a job reaches a header, and how the body is written. */
import { describe, expect, test } from "bun:test";
import { isMailAddress, renderMail } from "../../../src/core/mail-text.ts";
import type { Notice } from "../../../src/core/notice.ts";
import { sampleNotice } from "../../support/sample-notice.ts";

function render(changes: Partial<Notice> = {}): { headers: string[]; body: string } {
  const mail = renderMail("root", sampleNotice(changes), "9.9");
  const end = mail.indexOf("\n\n");
  return { headers: mail.slice(0, end).split(/\n(?! )/), body: mail.slice(end + 2) };
}

/** As a reader of mail does (RFC 2045, 6.7; RFC 2047). */
function decodeBody(body: string): string {
  const joined = body.replaceAll("=\n", "");
  const bytes = joined.replace(/=([0-9A-F]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  return Buffer.from(bytes, "latin1").toString("utf8");
}

function decodeSubject(headers: readonly string[]): string {
  const line = headers.find((header) => header.startsWith("Subject: ")) ?? "";
  const words = line.slice("Subject: ".length).split("\n ");
  const isEncoded = line.includes("=?UTF-8?B?");
  return words
    .map((word) =>
      word.replace(/=\?UTF-8\?B\?([^?]*)\?=/g, (_, text: string) =>
        Buffer.from(text, "base64").toString("utf8"),
      ),
    )
    .join(isEncoded ? "" : " ");
}

const NAMES = [
  "nightly",
  "a\r\nBcc: evil@example.org",
  "sauvegarde é 😀 " + "ü".repeat(80),
  "word ".repeat(60),
  "=?UTF-8?B?QmNj?=",
  "\u0000\u001b[1m\u2028\u202e",
];

describe("headers", () => {
  test.each(NAMES)("of a job called %j are these and no others", (job) => {
    const { headers } = render({ job });
    expect(headers.map((line) => line.split(":")[0])).toEqual([
      "To",
      "Subject",
      "Message-ID",
      "Auto-Submitted",
      "X-Mailer",
      "X-Watchdog-Event",
      "MIME-Version",
      "Content-Type",
      "Content-Transfer-Encoding",
    ]);
    for (const line of headers.flatMap((header) => header.split("\n"))) {
      expect(line).toMatch(/^[ -~]*$/);
      expect(line.length).toBeLessThanOrEqual(78);
    }
  });

  test("tell a title that looks encoded as it stands, and a bounded part of a long one", () => {
    const encoded = "=?UTF-8?B?QmNj?=";
    expect(decodeSubject(render({ job: encoded }).headers)).toBe(`${encoded}: failure on host1`);
    const subject = decodeSubject(render({ job: "word ".repeat(2_000) }).headers);
    expect(subject.length).toBeLessThanOrEqual(400);
    expect(subject).toEndWith("failure on host1");
  });

  test("tell the title as it is, in whatever letters", () => {
    expect(decodeSubject(render().headers)).toBe("nightly: failure on host1");
    expect(decodeSubject(render({ job: "sauvegarde é 😀" }).headers)).toBe(
      "sauvegarde é 😀: failure on host1",
    );
  });

  test("have an id of the notice only where it can be one", () => {
    expect(render().headers).toContain("Message-ID: <0193-a@host1>");
    const broken = render({ id: "a>\nX: y" }).headers;
    expect(broken.some((line) => line.startsWith("Message-ID"))).toBe(false);
    const nowhere = render({ host: "no host" }).headers;
    expect(nowhere.some((line) => line.startsWith("Message-ID"))).toBe(false);
  });
});

describe("the body", () => {
  const texts = [
    "plain\n",
    "é😀 \t\n.\nFrom x\n=3D\n",
    `${"ab.".repeat(90)}`,
    `${"x".repeat(500)}\n${"é".repeat(300)}`,
  ];

  test.each(texts)("is short lines of ASCII that read as %j", (text) => {
    const { body } = render({ log_tail: text });
    for (const line of body.split("\n")) {
      expect(line).toMatch(/^[\t -~]*$/);
      expect(line.length).toBeLessThanOrEqual(76);
      expect(line).not.toMatch(/[ \t]$/);
      // What a server or a mailbox would change.
      expect(line).not.toMatch(/^(From |\.)/);
    }
    expect(decodeBody(body)).toEndWith(`The end of its output:\n\n${text}\n`);
  });

  test("shows no sign of a command or a directory that is none, and makes no line of it", () => {
    const { body } = render({ command: ["a\nb", "\u001b[2J"], cwd: "/c\nd\u202e" });
    const decoded = decodeBody(body);
    expect(decoded).toContain("command: a b");
    expect(decoded).toContain("directory: /c d");
    expect(decoded).not.toMatch(/[\u001b\u202e]/);
  });

  test("tells what has happened, and no more of a long output than a person reads", () => {
    const { body } = render({ log_tail: "line\n".repeat(100_000) });
    const decoded = decodeBody(body);
    expect(decoded).toStartWith("nightly ended with status 3\noutcome: failed, exited\n");
    expect(decoded).toContain("command: ./nightly.sh --all\ndirectory: /srv/app\n");
    expect(decoded.length).toBeLessThan(66_000);
  });
});

test.each([
  ["root", true],
  ["ops@example.org", true],
  ["first.last+tag@sub.example.org", true],
  ["_svc@host", true],
  ["-oQ/tmp", false],
  ["a b@c", false],
  ["a@b, c@d", false],
  ["a@b\nBcc: c@d", false],
  ["<a@b>", false],
  ["|sh", false],
  ["/tmp/file", false],
  ["a@-b", false],
  ["", false],
])("%j as an address: %p", (text, isOne) => {
  expect(isMailAddress(text)).toBe(isOne);
});
