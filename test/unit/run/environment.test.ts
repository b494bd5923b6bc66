/** What the command finds in its environment: the caller's bytes, and the variables of its run. */
import { describe, expect, test } from "bun:test";
import { splitRunPath, valueOf } from "../../../src/core/environment-entries.ts";
import type { WallAt } from "../../../src/core/time.ts";
import {
  extendRunPath,
  LONGEST_RUN_PATH,
  makeEnvironment,
  type RunVariables,
} from "../../../src/run/environment.ts";

const RUN_ID = "01930000-0000-7000-8000-00000000000a";
const AROUND = "01930000-0000-7000-9000-00000000000b";
const VARIABLES = {
  runId: RUN_ID,
  jobName: "nightly",
  stateDirectory: "/srv/state",
  deadlineAt: undefined,
  pausesOn: [],
  progressPath: undefined,
  isStep: false,
  leases: [],
};
const OWN = [
  `WATCHDOG_RUN_ID=${RUN_ID}`,
  `WATCHDOG_RUN_PATH=${RUN_ID}`,
  "WATCHDOG_JOB=nightly",
  "WATCHDOG_STATE_DIR=/srv/state",
];
const isOption = (name: string): boolean => name === "WATCHDOG_TIMEOUT";

const bytes = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, "latin1"));

function make(entries: readonly string[], more: Partial<RunVariables> = {}): string[] {
  const made = makeEnvironment(entries.map(bytes), isOption, { ...VARIABLES, ...more });
  return made.map((entry) => Buffer.from(entry).toString("latin1"));
}

describe("the environment of the command", () => {
  test("is the caller's, in order, with the variables of the run behind it", () => {
    expect(make(["PATH=/bin", "A=1"])).toEqual(["PATH=/bin", "A=1", ...OWN]);
    expect(make([])).toEqual(OWN);
  });

  test("has no number of an attempt that is somebody else's, but for a step's own", () => {
    expect(make(["WATCHDOG_ATTEMPT=2"])).toEqual(OWN);
    const kept = make(["WATCHDOG_ATTEMPT=2"], { isStep: true });
    expect(kept).toEqual(["WATCHDOG_ATTEMPT=2", ...OWN]);
  });

  test("has no leases of a run around it, but for those of the job around a step", () => {
    const job = ["WATCHDOG_LEASE=job%3Anight", "WATCHDOG_GENERATION=7"];
    expect(make(job)).toEqual(OWN);
    expect(make(job, { isStep: true })).toEqual([...job, ...OWN]);
  });

  test("keeps every byte, duplicates and what is no variable at all", () => {
    const odd = [
      "A=1",
      "A=2",
      "NU\xff K=\x80\xfe",
      "no equals sign",
      "=C:=C:\\",
      "EMPTY=",
      "E=a=b",
      "",
    ];
    expect(make(odd)).toEqual([...odd, ...OWN]);
  });

  test("loses what stands for an option, and what names another pid", () => {
    const lost = ["WATCHDOG_TIMEOUT=5", "LISTEN_PID=7", "LISTEN_FDS=1"];
    const like = [
      "WATCHDOG_TIMEOUTS=5",
      "watchdog_timeout=5",
      "LISTEN_FDNAMES=x",
      "MY_LISTEN_PID=7",
    ];
    expect(make([...lost, ...like])).toEqual([...like, ...OWN]);
  });

  test("leaves the variables of others' watchdogs alone", () => {
    const others = ["WATCHDOG_USEC=3000", "WATCHDOG_PID=4", "NOTIFY_SOCKET=/run/x"];
    expect(make(others)).toEqual([...others, ...OWN]);
  });

  test("has the variables of the run once, whatever the caller had", () => {
    const theirs = [
      "WATCHDOG_JOB=outer",
      "WATCHDOG_RUN_ID=x",
      "WATCHDOG_JOB=again",
      "WATCHDOG_STATE_DIR=/x",
    ];
    expect(make(theirs)).toEqual(OWN);
  });
});

describe("the run path", () => {
  test("names the runs around this one, outermost first, and then this one", () => {
    const made = make([`WATCHDOG_RUN_PATH=${AROUND}`]);
    expect(made).toContain(`WATCHDOG_RUN_PATH=${AROUND}/${RUN_ID}`);
    expect(splitRunPath(`${AROUND}/${RUN_ID}`)).toEqual([AROUND, RUN_ID]);
  });

  test.each([
    [undefined],
    [""],
    ["/"],
    ["junk"],
    ["../../etc/passwd"],
    [AROUND.toUpperCase()],
    [`${AROUND} `],
    ["01930000-0000-4000-8000-00000000000b"],
  ])("of %j holds nobody else's id", (around) => {
    expect(extendRunPath(around, RUN_ID)).toBe(RUN_ID);
  });

  test("drops the outermost when it gets too long", () => {
    const ids = Array.from(
      { length: LONGEST_RUN_PATH + 5 },
      (_, index) => AROUND.slice(0, -2) + String(index + 10),
    );
    const path = extendRunPath(ids.join("/"), RUN_ID).split("/");
    expect(path).toHaveLength(LONGEST_RUN_PATH);
    expect(path.slice(-2)).toEqual([String(ids.at(-1)), RUN_ID]);
  });
});

describe("the circuits that the run stands still for", () => {
  const pausesOf = (entries: readonly string[], pausesOn: readonly string[]) =>
    make(entries, { pausesOn }).filter((entry) => entry.startsWith("WATCHDOG_PAUSES_ON="));

  test("are named behind those of the run around it, each once", () => {
    expect(pausesOf([], ["a b", "c"])).toEqual(["WATCHDOG_PAUSES_ON=a%20b c"]);
    const around = ["WATCHDOG_PAUSES_ON=c d%25"];
    expect(pausesOf(around, ["a", "c"])).toEqual(["WATCHDOG_PAUSES_ON=c d%25 a"]);
    expect(pausesOf(around, [])).toEqual(around);
    expect(pausesOf([], [])).toEqual([]);
  });

  test("take the place of what is no list of names", () => {
    expect(pausesOf(["WATCHDOG_PAUSES_ON=%zz"], ["a"])).toEqual(["WATCHDOG_PAUSES_ON=a"]);
  });
});

describe("the deadline", () => {
  const deadlineAt = 1_700_000_000_400 as WallAt;
  const deadlineOf = (entries: readonly string[]) =>
    make(entries, { deadlineAt }).filter((entry) => entry.startsWith("WATCHDOG_DEADLINE="));

  test("is told in whole seconds, and not before it is reached", () => {
    expect(deadlineOf([])).toEqual(["WATCHDOG_DEADLINE=1700000001"]);
  });

  test("is that of the run around this one where that comes first", () => {
    expect(deadlineOf(["WATCHDOG_DEADLINE=1699999999"])).toEqual(["WATCHDOG_DEADLINE=1699999999"]);
    expect(deadlineOf(["WATCHDOG_DEADLINE=1800000000"])).toEqual(["WATCHDOG_DEADLINE=1700000001"]);
  });

  test.each(["", "0", "-5", "soon", "NaN"])("is not taken from %j", (value) => {
    expect(deadlineOf([`WATCHDOG_DEADLINE=${value}`])).toEqual(["WATCHDOG_DEADLINE=1700000001"]);
  });

  test("of a run around this one stays when this one has none", () => {
    expect(make(["WATCHDOG_DEADLINE=1699999999"])).toContain("WATCHDOG_DEADLINE=1699999999");
  });
});

test("a value is the first one of its name, as getenv finds it", () => {
  const entries = ["AB=0", "A=1", "A=2", "E=", "noequals", "U=ä"].map((text) =>
    new TextEncoder().encode(text),
  );
  expect(valueOf(entries, "A")).toBe("1");
  expect(valueOf(entries, "E")).toBe("");
  expect(valueOf(entries, "U")).toBe("ä");
  expect(valueOf(entries, "B")).toBeUndefined();
});
