/** Who we are, and what the databases of this machine call users and groups. */
import { expect, test } from "bun:test";
import { findGroup, isMember, nameGroup, readCaller } from "../../../src/os/users.ts";

function id(...words: string[]): string {
  return Bun.spawnSync(["id", ...words])
    .stdout.toString()
    .trim();
}

test("the caller is who id(1) says, with the groups that it says", () => {
  const { uid, groups } = readCaller();
  expect(String(uid)).toBe(id("-u"));
  const numbers = id("-G").split(" ").map(Number);
  expect(new Set(groups.map(({ gid }) => gid))).toEqual(new Set(numbers));
  expect(groups.find(({ gid }) => String(gid) === id("-g"))?.name).toBe(nameOrNothing("-gn"));
  expect(readCaller().user).toBe(nameOrNothing("-un"));
  for (const gid of numbers) expect(isMember(gid)).toBe(true);
  expect(isMember(54_399)).toBe(false);
});

/** For what is in no database id(1) says the number. */
function nameOrNothing(word: string): string | undefined {
  const name = id(word);
  return /^\d+$/.test(name) ? undefined : name;
}

test("a group is found by its name, else by its number in digits", () => {
  expect(findGroup("root")).toBe(0);
  expect(findGroup("0")).toBe(0);
  expect(findGroup("54399")).toBe(54_399);
  expect(findGroup("4294967294")).toBe(4_294_967_294);
  expect([nameGroup(0), nameGroup(54_399)]).toEqual(["root", "54399"]);
});

test.each(["", "no-such-group-here", "-1", "007", "1.5", "4294967295", "99999999999", "root:"])(
  "%j is no group",
  (word) => {
    expect(findGroup(word)).toBeUndefined();
  },
);
