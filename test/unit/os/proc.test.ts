/** The stat line of a process, whatever name it has given itself. */
import { expect, test } from "bun:test";
import { parseStat } from "../../../src/os/proc.ts";

/**
 * proc(5): state ppid pgrp session tty tpgid flags, four fault counts, then times
 */
const REST =
  "S 41 42 43 34816 42 4194304 1 2 3 4 500 60 7000 800 20 0 1 0 987654 4169728 836 1844674407370";

const PARSED = {
  pid: 77,
  state: "S",
  ppid: 41,
  groupId: 42,
  sessionId: 43,
  ownTicks: 560,
  waitedTicks: 7_800,
  threads: 1,
  startTicks: 987_654,
};

test.each([
  ["an ordinary name", "sleep"],
  ["blanks", "tmux: server"],
  ["a bracket", "a) b"],
  ["a whole forged line", "x) R 1 1 1 0 -1 0 0 0 0 0 9 9 9 9 20 0 1 0 1 ("],
  ["a newline", "two\nlines"],
  ["nothing at all", ""],
  ["brackets alone", ")(("],
])("is read although the name has %s", (_, name) => {
  expect(parseStat(77, `77 (${name}) ${REST}\n`)).toEqual(PARSED);
});

test.each(["R", "D", "Z", "T", "t", "X", "I"])("keeps the state %s", (state) => {
  expect(parseStat(77, `77 (x) ${REST.replace("S", state)}`)?.state).toBe(state);
});

test("tells two processes of one pid apart by their start", () => {
  const later = parseStat(77, `77 (x) ${REST.replace("987654", "987655")}`);
  expect(later?.startTicks).toBe(987_655);
});

test.each(["", "77", "77 (x", "77 (x) S 41 42", "nonsense"])(
  "a part of a line, %j, is no process",
  (line) => {
    expect(parseStat(77, line)).toBeUndefined();
  },
);
