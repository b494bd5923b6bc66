/**
 * Every small policy against what the contract says of it, written another way: rights are what all
 * lists agree on, and nobody gets one from a file that he could have written or picked himself.
 */
import { expect, test } from "bun:test";
import {
  type Caller,
  decideRight,
  type Policy,
  type PolicyFile,
  type Right,
  RIGHTS,
} from "../../src/core/policy.ts";

const UIDS = [0, 1, 2] as const;
const STATE_OWNER = 1;
/** Not there, empty, with each subset of the three users. */
const LISTS: readonly (readonly number[] | undefined)[] = [
  undefined,
  ...Array.from({ length: 8 }, (_, bits) => UIDS.filter((uid) => (bits & (1 << uid)) !== 0)),
];

interface Plain {
  readonly list: readonly number[] | undefined;
  readonly ownerUid: number;
  readonly isChosen: boolean;
}

const FILES: readonly Plain[] = LISTS.flatMap((list) =>
  UIDS.flatMap((ownerUid) => [false, true].map((isChosen) => ({ list, ownerUid, isChosen }))),
);

function fileOf({ list, ownerUid, isChosen }: Plain, right: Right): PolicyFile {
  const lists =
    list === undefined ? {} : { [right]: list.map((uid) => ({ kind: "uid" as const, uid })) };
  return { path: "/f", ownerUid, isChosen, lists };
}

/** The set of those who have the right. */
function oracle(right: Right, files: readonly Plain[]): ReadonlySet<number> {
  const isBeyondReach = (one: Plain): boolean =>
    !one.isChosen && [0, STATE_OWNER].includes(one.ownerUid);
  const speaking = files.filter(({ list }) => list !== undefined);
  const isGiven = speaking.some(isBeyondReach);
  const start = isGiven || right === "run" ? [...UIDS] : [0, STATE_OWNER];
  return new Set(start.filter((uid) => speaking.every(({ list }) => list?.includes(uid))));
}

function granted(right: Right, files: readonly Plain[]): ReadonlySet<number> {
  const policy: Policy = {
    stateDirectory: "/s",
    stateOwnerUid: STATE_OWNER,
    files: files.map((one) => fileOf(one, right)),
  };
  const callers = UIDS.map((uid): Caller => ({ uid, user: undefined, groups: [] }));
  const those = callers.filter((who) => decideRight(right, who, policy).kind === "granted");
  return new Set(those.map(({ uid }) => uid));
}

test.each([...RIGHTS])(
  "every policy of two files gives '%s' to just those whom the contract names",
  (right) => {
    const pairs = FILES.flatMap((first) => FILES.map((second) => [first, second]));
    const wrong = pairs.filter((files) => {
      return granted(right, files).symmetricDifference(oracle(right, files)).size > 0;
    });
    expect(wrong).toEqual([]);
    expect(pairs.length).toBe(54 * 54);
    expect(pairs.some((files) => granted(right, files).has(2))).toBe(true);
  },
);
