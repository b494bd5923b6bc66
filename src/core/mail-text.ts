/**
 * A notice as a mail: headers and body as `sendmail -t` takes them. Pure.
 *
 * Always: nothing of a job becomes a header, because a header is one line of printable ASCII (RFC
 * 5322, 2.2; other letters as encoded words, RFC 2047); the body is ASCII in short lines
 * (quoted-printable, RFC 2045, 6.7), so that no server on the way has to change it.
 */
import { factsOf, tailOf, titleOf } from "./notice-text.ts";
import type { Notice } from "./notice.ts";
import { unprintable } from "./printable.ts";

/** Of the output; a mail is read as a whole. */
const LONGEST_OUTPUT_BYTES = 64 * 1024;

/**
 * `root`, `ops@example.org`: no spaces, nothing that begins an option or another header. What is
 * stranger than that (RFC 5321 knows quoted local parts) is refused.
 */
export function isMailAddress(text: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9._+%=/-]*(@[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)?$/.test(text);
}

/** @param version  of watchdog */
export function renderMail(address: string, notice: Notice, version: string): string {
  const headers = [
    `To: ${address}`,
    `Subject: ${encodeHeader(titleOf(notice))}`,
    ...identify(notice),
    // Nobody's holiday is to answer it (RFC 3834, 5).
    "Auto-Submitted: auto-generated",
    `X-Mailer: watchdog ${version}`,
    `X-Watchdog-Event: ${notice.event}`,
    "MIME-Version: 1.0",
    "Content-Type: text/plain; charset=utf-8",
    "Content-Transfer-Encoding: quoted-printable",
  ];
  return `${headers.join("\n")}\n\n${encodeBody(bodyOf(notice))}`;
}

/** One notice is one mail, however often it is sent: readers drop the second of one id. */
function identify({ id, host }: Notice): string[] {
  const isId =
    /^[A-Za-z0-9._-]{1,100}$/.test(id) && /^[A-Za-z0-9]([A-Za-z0-9.-]{0,200})$/.test(host);
  return isId ? [`Message-ID: <${id}@${host}>`] : [];
}

function bodyOf(notice: Notice): string {
  const { command, cwd, log_tail: tail } = notice;
  const facts = [...factsOf(notice)];
  if (command !== null) facts.push(`command: ${command.join(" ").replace(unprintable(), " ")}`);
  if (cwd !== null) facts.push(`directory: ${cwd.replace(unprintable(), " ")}`);
  facts.push(`host: ${notice.host}, ${notice.at}`);
  const output =
    tail === null ? [] : ["", "The end of its output:", "", tailOf(tail, LONGEST_OUTPUT_BYTES)];
  return [...facts, ...output].join("\n");
}

/** An encoded word is at most 75 characters: 45 bytes in base64, with its frame. */
const ENCODED_BYTES = 42;
const LONGEST_HEADER_BYTES = 400;

function encodeHeader(text: string): string {
  const line = tailOf(text, LONGEST_HEADER_BYTES);
  if (/^[ -~]*$/.test(line) && !line.includes("=?")) return foldPlain(line);
  const words: string[] = [];
  let part = "";
  for (const letter of line) {
    if (Buffer.byteLength(part + letter) > ENCODED_BYTES) {
      words.push(part);
      part = "";
    }
    part += letter;
  }
  words.push(part);
  return words.map((word) => `=?UTF-8?B?${Buffer.from(word).toString("base64")}?=`).join("\n ");
}

const LONGEST_LINE = 78;

/** At blanks (RFC 5322, 2.2.3), with room for the name of the header. */
function foldPlain(text: string): string {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > LONGEST_LINE - "Subject: ".length) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line].join("\n ");
}

const LONGEST_ENCODED_LINE = 76;

function encodeBody(text: string): string {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  return `${lines.map(encodeLine).join("\n")}\n`;
}

function encodeLine(line: string): string {
  const bytes = new TextEncoder().encode(line);
  let encoded = "";
  let room = LONGEST_ENCODED_LINE - 1;
  bytes.forEach((byte, index) => {
    const isLast = index === bytes.length - 1;
    let unit = encodeByte(byte, isLast);
    if (unit.length > room) {
      encoded += "=\n";
      room = LONGEST_ENCODED_LINE - 1;
    }
    if (room === LONGEST_ENCODED_LINE - 1 && isChanged(bytes, index)) unit = encodeHex(byte);
    encoded += unit;
    room -= unit.length;
  });
  return encoded;
}

/** Printable ASCII but `=` stands for itself, a blank only where it is not the last of its line. */
function encodeByte(byte: number, isLast: boolean): string {
  const isPlain = byte >= 0x21 && byte <= 0x7e && byte !== 0x3d;
  const isBlank = (byte === 0x20 || byte === 0x09) && !isLast;
  if (isPlain || isBlank) return String.fromCharCode(byte);
  return encodeHex(byte);
}

function encodeHex(byte: number): string {
  return `=${byte.toString(16).toUpperCase().padStart(2, "0")}`;
}

const FROM = new TextEncoder().encode("From ");
const DOT = 0x2e;

/**
 * At the beginning of a line: `From ` gets a `>` before it in a mailbox (seen with dma), and a dot
 * may end the mail (RFC 2049, 3).
 */
function isChanged(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === DOT || FROM.every((byte, index) => bytes[at + index] === byte);
}
