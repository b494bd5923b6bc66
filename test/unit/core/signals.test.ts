/** Signals by number and name, against what the system itself calls them. */
import { expect, test } from "bun:test";
import { constants } from "node:os";
import * as signals from "../../../src/core/signals.ts";

const { maskHolds, nameSignal, numberOfSignal } = signals;
const SYSTEM = Object.entries(constants.signals as Readonly<Record<string, number>>);
const ALIASES = ["SIGIOT", "SIGPOLL", "SIGUNUSED", "SIGCLD"];

test("every name of the system is known, both ways", () => {
  expect(SYSTEM.length).toBeGreaterThan(29);
  for (const [name, number] of SYSTEM) {
    if (name === "SIGUNUSED") continue;
    expect([name, numberOfSignal(name)]).toEqual([name, number]);
    if (!ALIASES.includes(name)) expect(`SIG${nameSignal(number)}`).toBe(name);
  }
});

test("every number reads back from its name", () => {
  for (let number = 1; number <= signals.SIGRTMAX; number += 1) {
    expect([number, numberOfSignal(nameSignal(number))]).toEqual([number, number]);
    expect(numberOfSignal(String(number))).toBe(number);
  }
});

test.each([
  ["TERM", 15],
  ["SIGTERM", 15],
  ["sigterm", 15],
  ["kill", 9],
  ["9", 9],
  ["64", 64],
  ["CLD", 17],
  ["IOT", 6],
  ["POLL", 29],
  ["RTMIN", 34],
  ["rtmin+2", 36],
  ["SIGRTMAX-1", 63],
  ["RTMAX", 64],
  ["RTMIN+30", 64],
])("%s is %d", (word, number) => {
  expect(numberOfSignal(word)).toBe(number);
});

test.each([
  [""],
  ["0"],
  ["65"],
  ["-9"],
  ["9.0"],
  ["TERMINATE"],
  ["SIG"],
  ["RTMIN+31"],
  ["RTMIN-1"],
  ["RTMAX+1"],
  ["RTMAX-31"],
  ["RTMIN+"],
  [" TERM"],
  ["constructor"],
  ["__proto__"],
])("%j is no signal", (word) => {
  expect(numberOfSignal(word)).toBeUndefined();
});

test("a mask holds the signals whose bits are set", () => {
  const mask = 0x0000_0000_0000_4001n;
  const held = Array.from({ length: 64 }, (_, index) => index + 1).filter((n) =>
    maskHolds(mask, n),
  );
  expect(held).toEqual([1, 15]);
  expect(maskHolds(1n << 63n, 64)).toBe(true);
});
