/** How the record shows arguments and statuses. */
import { expect, test } from "bun:test";
import { describeCommand, shownStatus } from "../../../src/core/run-record.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test("a status is shown as a shell shows it", () => {
  expect(shownStatus({ kind: "status", code: 0 })).toBe(0);
  expect(shownStatus({ kind: "status", code: 255 })).toBe(255);
  expect(shownStatus({ kind: "signal", signal: 9 })).toBe(137);
  expect(shownStatus({ kind: "signal", signal: 64 })).toBe(192);
});

test("arguments that are text are told as text alone", () => {
  const words = ["sh", "-c", "echo ä\n\u0000", "", "\ufffd", "𝄞"];
  expect(describeCommand(words.map(bytes))).toEqual({ command: words });
  expect(describeCommand([])).toEqual({ command: [] });
});

test("arguments that are not are told as bytes beside it, all of them", () => {
  const raw = Uint8Array.of(0x61, 0xff, 0x62);
  expect(describeCommand([bytes("printf"), raw])).toEqual({
    command: ["printf", "a\ufffdb"],
    command_bytes: ["cHJpbnRm", "Yf9i"],
  });
});

test("the bytes give every argument back", () => {
  const argv = Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte, 0x80));
  const described = describeCommand(argv);
  const back = described.command_bytes?.map((text) => new Uint8Array(Buffer.from(text, "base64")));
  expect(back).toEqual(argv);
});
