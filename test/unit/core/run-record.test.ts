/** How the record shows arguments and statuses. */
import { expect, test } from "bun:test";
import { describeCommand, shownStatus } from "../../../src/core/run-record.ts";
import { makeMask } from "../../../src/core/masking.ts";

const mask = makeMask();

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test("a status is shown as a shell shows it", () => {
  expect(shownStatus({ kind: "status", code: 0 })).toBe(0);
  expect(shownStatus({ kind: "status", code: 255 })).toBe(255);
  expect(shownStatus({ kind: "signal", signal: 9 })).toBe(137);
  expect(shownStatus({ kind: "signal", signal: 64 })).toBe(192);
});

test("arguments that are text are told as text alone", () => {
  const words = ["sh", "-c", "echo ä\n\u0000", "", "\ufffd", "𝄞"];
  expect(describeCommand(words.map(bytes), mask)).toEqual({ command: words });
  expect(describeCommand([], mask)).toEqual({ command: [] });
});

test("arguments that are not are told as bytes beside it, all of them", () => {
  const raw = Uint8Array.of(0x61, 0xff, 0x62);
  expect(describeCommand([bytes("printf"), raw], mask)).toEqual({
    command: ["printf", "a\ufffdb"],
    command_bytes: ["cHJpbnRm", "Yf9i"],
  });
});

test("the bytes give every argument back", () => {
  const argv = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte, 0x80));
  const described = describeCommand(argv, mask);
  const back = described.command_bytes?.map((text) => new Uint8Array(Buffer.from(text, "base64")));
  expect(back).toEqual(argv);
});

test("hides what an option names as a secret, in its bytes too", () => {
  const raw = Uint8Array.of(0xff, 0xfe);
  const words = ["curl", "--api-token", "tok_1a2b3c", "--password=x1y2z3w4"].map(bytes);
  const hiding = makeMask({ command: ["--api-token", "tok_1a2b3c"] });
  const described = describeCommand([...words, raw], hiding);
  expect(described.command).toEqual([
    "curl",
    "--api-token",
    "***",
    "--password=***",
    "\ufffd\ufffd",
  ]);
  const decoded = (described.command_bytes ?? []).map((word) => Buffer.from(word, "base64"));
  expect(decoded[4]).toEqual(Buffer.from(raw));
  const text = decoded.map(String).join(" ");
  expect(text).not.toContain("tok_1a2b3c");
  expect(text).not.toContain("x1y2z3w4");
});
