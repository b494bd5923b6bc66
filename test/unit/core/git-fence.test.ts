/** The fence at a git remote: what it is called, what it says, and whom it lets push. */
import { describe, expect, test } from "bun:test";
import {
  decideAfterPush,
  decideRemoteFence,
  exitOfRemote,
  fenceRefOf,
  type Pusher,
  type RemoteFence,
  readRemoteFence,
  renderRemoteFence,
} from "../../../src/core/git-fence.ts";
import { LONGEST_KEY_NAME } from "../../../src/core/lease-key.ts";

const OWN: Pusher = {
  key: { kind: "job", name: "night" },
  generation: 7,
  runId: "run-7",
  machineId: "m1",
  stateDirectory: "/s",
};
const THERE: RemoteFence = {
  key: "job:night",
  generation: 7,
  runId: "run-7",
  machineId: "m1",
  stateDirectory: "/s",
  pushId: "p",
};

function decide(changes: Partial<RemoteFence>, own: Partial<Pusher> = {}) {
  return decideRemoteFence({ ...OWN, ...own }, { kind: "read", fence: { ...THERE, ...changes } });
}

describe("the ref of a key", () => {
  test("has nothing in it but letters, digits, dashes, underscores and percent signs", () => {
    const refs = ["night", "a.lock", "..", "/srv/r s", "é~^:?*[\\@{", "-x", "."].map((name) =>
      fenceRefOf({ kind: "job", name }),
    );
    for (const ref of refs) expect(ref).toMatch(/^refs\/watchdog\/fence\/job\/[A-Za-z0-9_%-]+$/);
    expect(new Set(refs).size).toBe(refs.length);
    expect(refs.slice(0, 3)).toEqual([
      "refs/watchdog/fence/job/night",
      "refs/watchdog/fence/job/a%2Elock",
      "refs/watchdog/fence/job/%2E%2E",
    ]);
  });

  test("is the name of a file whatever the length of the key, and another one for each", () => {
    const long = "/".repeat(LONGEST_KEY_NAME - 1);
    const refs = ["a", "b"].map((end) => fenceRefOf({ kind: "job", name: long + end }));
    for (const ref of refs) expect((ref.split("/").at(-1) ?? "").length).toBeLessThan(250);
    expect(refs[0]).not.toBe(refs[1]);
  });
});

describe("what the blob says", () => {
  test("is read as it was written, with what a later version adds", () => {
    for (const fence of [THERE, { ...THERE, machineId: null, stateDirectory: undefined }]) {
      expect(readRemoteFence(renderRemoteFence(fence))).toEqual({ kind: "read", fence });
    }
    const added = { ...JSON.parse(renderRemoteFence(THERE)), more: 1 };
    expect(readRemoteFence(JSON.stringify(added))).toEqual({ kind: "read", fence: THERE });
  });

  test("is unreadable where anything of it is missing or of the wrong shape", () => {
    const whole = JSON.parse(renderRemoteFence(THERE));
    const broken: unknown[] = [
      null,
      7,
      [],
      "x",
      { ...whole, format: 2 },
      { ...whole, format: "1" },
    ];
    for (const name of ["format", "key", "generation", "run_id", "machine_id", "push_id"]) {
      broken.push({ ...whole, [name]: undefined }, { ...whole, [name]: {} });
    }
    broken.push({ ...whole, generation: 0 }, { ...whole, generation: 1.5 });
    broken.push({ ...whole, generation: "7" }, { ...whole, state_directory: 1 });
    for (const value of broken) {
      expect([value, readRemoteFence(JSON.stringify(value)).kind]).toEqual([value, "unreadable"]);
    }
    for (const text of ["", "\0\0", "generation 7"]) {
      expect(readRemoteFence(text).kind).toBe("unreadable");
    }
  });
});

describe("a push", () => {
  test("is let through at a fresh remote, after the same run and after earlier ones", () => {
    expect(decideRemoteFence(OWN, { kind: "none" })).toEqual({ kind: "push" });
    expect(decide({})).toEqual({ kind: "push" });
    expect(decide({ generation: 6, runId: "run-6" })).toEqual({ kind: "push" });
    expect(decide({ stateDirectory: undefined })).toEqual({ kind: "push" });
    expect(decide({ machineId: null }, { machineId: null })).toEqual({ kind: "push" });
  });

  test("is refused by each thing that is not so, by one number for each kind of reason", () => {
    const refused = [
      [decide({ generation: 8 }), "later-generation", "lease_lost"],
      [decide({ runId: "run-x" }), "same-generation-of-another-run", "lease_lost"],
      [decide({ machineId: "m2", generation: 1 }), "another-machine", "config_error"],
      [decide({ machineId: null, generation: 1 }), "another-machine", "config_error"],
      [decide({ stateDirectory: "/t", generation: 1 }), "another-state", "config_error"],
      [decide({ key: "job:day", generation: 1 }), "another-key", "config_error"],
      [
        decideRemoteFence(OWN, { kind: "unreadable", reason: "it is no JSON" }),
        "unreadable",
        "config_error",
      ],
    ] as const;
    for (const [decided, because, exit] of refused) {
      expect(decided).toEqual({ kind: "refuse", because });
      expect(exitOfRemote(because)).toBe(exit);
    }
  });

  test("that failed is git's matter, unless one of the fences has moved meanwhile", () => {
    expect(decideAfterPush(["a", undefined], ["a", undefined])).toBe("git-decides");
    expect(decideAfterPush(["a", undefined], ["a", "b"])).toBe("look-again");
    expect(decideAfterPush(["a"], ["b"])).toBe("look-again");
    expect(decideAfterPush(["a"], [undefined])).toBe("look-again");
  });
});
