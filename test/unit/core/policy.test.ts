/** Who may run, repair and approve: by the lists, by the default, and by which files count. */
import { describe, expect, test } from "bun:test";
import {
  type Caller,
  decideRight,
  parsePolicyEntry,
  type Policy,
  type PolicyEntry,
  type PolicyFile,
  RIGHTS,
} from "../../../src/core/policy.ts";

const ROOT = 0;
const OWNER = 1000;
const ANN = 1001;

const ann: Caller = {
  uid: ANN,
  user: "ann",
  groups: [
    { gid: 100, name: "users" },
    { gid: 555, name: undefined },
  ],
};
const owner: Caller = { uid: OWNER, user: "olga", groups: [] };
const root: Caller = { uid: ROOT, user: "root", groups: [{ gid: 0, name: "root" }] };

function entries(...words: string[]): PolicyEntry[] {
  return words.map((word) => {
    const entry = parsePolicyEntry(word);
    if (entry === undefined) throw new Error(`${word} is no entry`);
    return entry;
  });
}

function file(lists: PolicyFile["lists"], parts: Partial<PolicyFile> = {}): PolicyFile {
  return { path: "/etc/w.toml", ownerUid: ROOT, isChosen: false, lists, ...parts };
}

function policy(...files: PolicyFile[]): Policy {
  return { stateDirectory: "/srv/state", stateOwnerUid: OWNER, files };
}

describe("without a list", () => {
  test("whoever can open the directory may run", () => {
    for (const who of [ann, owner, root]) {
      expect(decideRight("run", who, policy())).toEqual({
        kind: "granted",
        because: "no-list-and-open",
      });
    }
  });

  test.each(["repair", "approve"] as const)("only its owner and root may %s", (right) => {
    expect(decideRight(right, owner, policy())).toMatchObject({ because: "no-list-and-owner" });
    expect(decideRight(right, root, policy())).toMatchObject({ because: "no-list-and-root" });
    expect(decideRight(right, ann, policy())).toEqual({
      kind: "missing",
      because: "no-list-and-not-owner",
      what:
        `ann (uid 1001) may not ${right}: no [policy] has a list '${right}'; uid 1000, the owner ` +
        "of /srv/state, or root can do it or grant it",
    });
  });

  test("a directory that is not there yet belongs to whoever makes it", () => {
    const nowhere = { ...policy(), stateOwnerUid: undefined };
    expect(decideRight("approve", ann, nowhere)).toMatchObject({ because: "no-list-and-owner" });
  });

  test("the list of another right says nothing", () => {
    const others = policy(file({ run: entries("ann"), approve: entries("ann") }));
    expect(decideRight("repair", ann, others).kind).toBe("missing");
  });
});

describe("with a list", () => {
  test.each(["ann", "uid:1001", "@users", "@555"])("%s is ann", (word) => {
    for (const right of RIGHTS) {
      const answer = decideRight(right, ann, policy(file({ [right]: entries("zoe", word) })));
      expect([right, answer]).toEqual([right, { kind: "granted", because: "listed" }]);
    }
  });

  test.each(["olga", "uid:1000", "@ann", "@100", "uid:100", "users"])("%s is not ann", (word) => {
    for (const right of RIGHTS) {
      const answer = decideRight(right, ann, policy(file({ [right]: entries(word) })));
      expect([right, answer.kind]).toEqual([right, "missing"]);
    }
  });

  test("who is not in it is told so, the owner and root too, and who can change it", () => {
    const listed = policy(file({ approve: entries("ann") }));
    expect(decideRight("approve", owner, listed)).toEqual({
      kind: "missing",
      because: "not-listed",
      what:
        "olga (uid 1000) is not in 'approve' of [policy] in /etc/w.toml; root can add 'uid:N', " +
        "a user or '@group' there",
    });
    expect(decideRight("approve", root, listed).kind).toBe("missing");
    const ofOwner = policy(file({ approve: [] }, { ownerUid: OWNER }));
    const answer = decideRight("approve", { ...ann, user: undefined }, ofOwner);
    expect(answer).toMatchObject({
      what: expect.stringMatching(/^uid 1001 is not in .*; uid 1000 or root can add /),
    });
  });

  test("each file that has it must contain the caller", () => {
    const [yes, no] = [file({ run: entries("ann") }), file({ run: entries("zoe") })];
    expect(decideRight("run", ann, policy(yes, yes)).kind).toBe("granted");
    expect(decideRight("run", ann, policy(yes, no)).kind).toBe("missing");
    expect(decideRight("run", ann, policy(no, yes)).kind).toBe("missing");
    expect(decideRight("run", ann, policy(yes, file({ repair: [] }))).kind).toBe("granted");
  });
});

describe("a file that root and the owner do not have in hand", () => {
  const mine = { ownerUid: ANN, path: "/home/ann/w.toml" };

  test("cannot grant what the default does not", () => {
    const own = file({ approve: entries("ann") }, mine);
    expect(decideRight("approve", ann, policy(own))).toMatchObject({
      because: "no-list-and-not-owner",
      what: expect.stringContaining(
        "'approve' of [policy] in /home/ann/w.toml cannot grant it (it belongs to uid 1001)",
      ),
    });
    const chosen = file({ approve: entries("ann") }, { isChosen: true });
    expect(decideRight("approve", ann, policy(chosen))).toMatchObject({
      because: "no-list-and-not-owner",
      what: expect.stringContaining("/etc/w.toml cannot grant it (a file of --config or WATCHDOG_"),
    });
  });

  test("can still take away, and does not stand in the way of one that grants", () => {
    const granting = file({ approve: entries("ann") });
    const own = file({ approve: entries("ann") }, mine);
    const forbidding = file({ approve: entries("zoe"), run: [] }, mine);
    expect(decideRight("approve", ann, policy(granting, own)).kind).toBe("granted");
    expect(decideRight("approve", ann, policy(granting, forbidding)).kind).toBe("missing");
    expect(decideRight("run", ann, policy(forbidding)).kind).toBe("missing");
  });

  test("grants where it belongs to the owner of the directory", () => {
    const own = file({ approve: entries("ann") }, { ownerUid: OWNER });
    expect(decideRight("approve", ann, policy(own))).toMatchObject({ because: "listed" });
  });
});

test.each([
  ["ann", { kind: "user", name: "ann" }],
  ["backup-2", { kind: "user", name: "backup-2" }],
  ["uid:0", { kind: "uid", uid: 0 }],
  ["uid:4294967294", { kind: "uid", uid: 4_294_967_294 }],
  ["@ops", { kind: "group", name: "ops" }],
  ["@1234", { kind: "group", name: "1234" }],
])("%j is read", (word, entry) => {
  expect(parsePolicyEntry(word)).toEqual(entry as PolicyEntry);
});

test.each(["", "@", "@@ops", "1000", "uid:", "uid:-1", "uid:01", "uid:4294967295", "uid:1x"])(
  "%j is no entry",
  (word) => {
    expect(parsePolicyEntry(word)).toBeUndefined();
  },
);

test.each(["a b", "a,b", "gid:5", "user:ann", "a\n", "a/b", "@a b", "*", "!ann", "@*", "-a"])(
  "%j is none either",
  (word) => {
    expect(parsePolicyEntry(word)).toBeUndefined();
  },
);
