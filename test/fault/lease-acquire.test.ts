/**
 * Dying and failing at every numbered step of acquiring and releasing (A1 to A9, R2, R5) and at
 * every write of a record: whatever remains, the next newcomer gets both keys at once, under larger
 * numbers. A row counts only with the marker that the fault itself has written.
 */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readRecord } from "../../src/lease/files/record-file.ts";
import { claim, EMPTY, grant, isFree, openClaimScene } from "../support/claim-scene.ts";

const scene = openClaimScene();
const driver = join(import.meta.dir, "../support/claim-driver.ts");
const root = mkdtempSync(join(tmpdir(), "watchdog-acquire-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

interface Driven {
  readonly status: number | null;
  readonly signal: string;
  readonly answer: Record<string, unknown> | undefined;
  readonly evidence: readonly { point: string; state: Record<string, unknown> }[];
}

let runs = 0;

function drive(
  keys: readonly { kind: string; name: string }[],
  fault: string | undefined,
  env: Readonly<Record<string, string>> = {},
): Driven {
  runs += 1;
  const directory = `${root}/faults-${runs}`;
  mkdirSync(directory);
  const words = keys.map(({ kind, name }) => `${kind}:${name}`);
  const done = Bun.spawnSync(
    [process.execPath, "--define", "FAULT_BUILD=true", driver, scene.directory, "driven", ...words],
    {
      env: {
        ...process.env,
        ...env,
        WATCHDOG_FAULT_DIR: directory,
        ...(fault === undefined ? {} : { WATCHDOG_FAULT: fault }),
      },
    },
  );
  const text = done.stdout.toString();
  return {
    status: done.exitCode,
    signal: String(done.signalCode),
    answer: text === "" ? undefined : JSON.parse(text),
    evidence: readdirSync(directory).map((file) =>
      JSON.parse(readFileSync(`${directory}/${file}`, "utf8")),
    ),
  };
}

/** Point, and the times that it is passed with two keys. */
const BEFORE_GRANT = ["acquire.A1", "acquire.A2", "acquire.A3", "acquire.A4", "acquire.A6"];
const IN_GRANT = ["acquire.A7", "acquire.A8", "acquire.A9"];
const AFTER_GRANT = ["release.R2", "release.R5"];
const FILES = ["file.create", "file.fsync", "file.rename"];
const ALL = [...BEFORE_GRANT, ...IN_GRANT, ...AFTER_GRANT, ...FILES];

/** What was there before the driver: one key used and released, the other of a dead owner. */
let keys: { kind: string; name: string }[] = [];

beforeEach(async () => {
  keys = [scene.key("aa"), scene.key("bb")];
  const [released, dead] = keys;
  if (released === undefined || dead === undefined) throw new Error("no keys");
  const held = await scene.hold([released], { run_id: "released-before" });
  held.markReleased();
  held.close();
  await scene.leaveDead(dead, { run_id: "dead-before" });
});

/** The next newcomer, which must get both keys at once. */
async function comeNext(): Promise<{
  generations: number[];
  verdicts: string[];
  abandoned: (string | undefined)[];
}> {
  for (const key of keys) {
    const place = scene.placeOf(key);
    expect([place.lock, place.fence].map(isFree)).toEqual([true, true]);
  }
  const claimed = await claim(scene.request(keys, { trees: [EMPTY] }));
  const verdicts = claimed.keys.map(({ verdict }) => verdict.name);
  const abandoned = claimed.keys.map((one) => one.abandoned?.runId);
  const held = grant(claimed);
  const generations = held.leases.map(({ generation }) => generation);
  held.close();
  return { generations, verdicts, abandoned };
}

/** The largest number that a record or a slot of a key names. */
function largestKnown(): number[] {
  return keys.map((key) => {
    const { directory, record } = scene.placeOf(key);
    const slots = readdirSync(directory).map((name) =>
      Number(/^beat\.(\d+)$/.exec(name)?.[1] ?? 0),
    );
    const reading = readRecord(record);
    return Math.max(...slots, reading.kind === "read" ? reading.record.generation : 0);
  });
}

function expectEvidence({ evidence }: Driven, point: string): Record<string, unknown> {
  expect(evidence.map((one) => one.point)).toEqual([point]);
  return evidence[0]?.state ?? {};
}

test("without a fault the driver runs once, and leaves no evidence of one", async () => {
  const { answer, evidence } = drive(keys, undefined);
  expect(answer).toEqual({ kind: "ran", generations: [2, 2], unreleased: [] });
  expect(evidence).toEqual([]);
  expect(await comeNext()).toEqual({
    generations: [3, 3],
    verdicts: ["free", "free"],
    abandoned: [undefined, undefined],
  });
});

describe("killed at", () => {
  for (const point of ALL) {
    test.each([1, 2])(`${point}, time %i: the next one has both keys at once`, async (nth) => {
      const driven = drive(keys, `${point}#${nth}=kill`);
      expect([driven.signal, driven.answer]).toEqual(["SIGKILL", undefined]);
      expectEvidence(driven, point);
      const known = largestKnown();
      const next = await comeNext();
      next.generations.forEach((generation, index) => {
        expect(generation).toBe((known[index] ?? 0) + 1);
      });
      expect(next.verdicts.every((name) => ["free", "dead"].includes(name))).toBe(true);
      if (BEFORE_GRANT.includes(point)) {
        expect(next).toEqual({
          generations: [2, 2],
          verdicts: ["free", "dead"],
          abandoned: [undefined, "dead-before"],
        });
      }
    });
  }

  test("A8 the number is taken and the old record still says who is dead", async () => {
    const driven = drive(keys, "acquire.A8#2=kill");
    expect(expectEvidence(driven, "acquire.A8")).toMatchObject({ generation: 2, isTaken: true });
    expect(await comeNext()).toEqual({
      generations: [3, 3],
      verdicts: ["dead", "dead"],
      abandoned: ["driven", "dead-before"],
    });
  });

  test("R2 the run is dead, and its second key too, though the first is released", async () => {
    const driven = drive(keys, "release.R2#2=kill");
    expect(expectEvidence(driven, "release.R2")).toMatchObject({ isReleased: false });
    expect(await comeNext()).toMatchObject({
      verdicts: ["free", "dead"],
      abandoned: [undefined, "driven"],
    });
  });
});

describe("in the middle of ending survivors", () => {
  test.each(["kill", "eio", "enospc", "throw"])(
    "%s: the next one finds all as it was",
    async (act) => {
      const before = keys.map((key) => readFileSync(scene.placeOf(key).record, "utf8"));
      const driven = drive(keys, `acquire.A5=${act}`, { DRIVER_FINDS: "member" });
      expect(expectEvidence(driven, "acquire.A5")).toMatchObject({ isLocked: true, pids: [4711] });
      expect(driven.answer?.["kind"]).toBe(act === "kill" ? undefined : "failed");
      expect(keys.map((key) => readFileSync(scene.placeOf(key).record, "utf8"))).toEqual(before);
      expect(await comeNext()).toEqual({
        generations: [2, 2],
        verdicts: ["free", "dead"],
        abandoned: [undefined, "dead-before"],
      });
    },
  );
});

describe("failing at", () => {
  const failing = [...BEFORE_GRANT, ...IN_GRANT].flatMap((point) =>
    ["eio", "enospc", "throw"].map((act) => [point, act] as const),
  );
  test.each(failing)("%s with %s starts nothing and holds nothing", async (point, act) => {
    for (const nth of [1, 2]) {
      const before = keys.map((key) => readFileSync(scene.placeOf(key).record, "utf8"));
      const driven = drive(keys, `${point}#${nth}=${act}`);
      expectEvidence(driven, point);
      expect(driven.status).toBe(0);
      expect(driven.answer).toMatchObject({
        kind: "failed",
        code: act === "throw" ? "bug" : "lease.unusable",
      });
      const after = keys.map((key) => readFileSync(scene.placeOf(key).record, "utf8"));
      expect(after).toEqual(before);
    }
    const next = await comeNext();
    expect(next.verdicts).toEqual(["free", "dead"]);
    expect(next.abandoned).toEqual([undefined, "dead-before"]);
  });

  test.each(FILES)("%s with EIO puts back what was there", async (point) => {
    const before = keys.map((key) => readFileSync(scene.placeOf(key).record, "utf8"));
    const driven = drive(keys, `${point}#2=eio`);
    expectEvidence(driven, point);
    expect(driven.answer).toMatchObject({ kind: "failed", code: "lease.unusable" });
    expect(keys.map((key) => readFileSync(scene.placeOf(key).record, "utf8"))).toEqual(before);
    await comeNext();
  });

  test("every write on a full disk writes the records in place, and the run goes on", async () => {
    const plan = [1, 2, 3, 4].map((nth) => `file.create#${nth}=enospc`).join();
    const driven = drive(keys, plan);
    expect(driven.evidence).toHaveLength(4);
    expect(driven.answer).toEqual({ kind: "ran", generations: [2, 2], unreleased: [] });
    expect((await comeNext()).verdicts).toEqual(["free", "free"]);
  });

  test.each(["eio", "throw"])(
    "R2 with %s ends all the same, and the lease is dead",
    async (act) => {
      const driven = drive(keys, `release.R2#1=${act}`);
      expectEvidence(driven, "release.R2");
      expect(driven.answer).toMatchObject({ kind: "ran", generations: [2, 2] });
      expect(driven.answer?.["unreleased"]).toHaveLength(1);
      const next = await comeNext();
      expect([next.verdicts, next.abandoned]).toEqual([
        ["dead", "free"],
        ["driven", undefined],
      ]);
    },
  );

  test("R5 closes everything all the same", async () => {
    const driven = drive(keys, "release.R5#1=eio");
    expectEvidence(driven, "release.R5");
    expect(driven.answer).toMatchObject({ kind: "ran", unreleased: [] });
    expect(String(driven.answer?.["closing"])).toContain("EIO");
    expect((await comeNext()).verdicts).toEqual(["free", "free"]);
  });
});

test("of many that are killed at any moment no two are granted one number", async () => {
  const log = `${root}/granted`;
  const words = keys.map(({ kind, name }) => `${kind}:${name}`);
  const env = { ...process.env, DRIVER_LOG: log, DRIVER_WAIT_MS: "100000" };
  const killed = await Promise.all(
    Array.from({ length: 36 }, async (_, index) => {
      const command = [process.execPath, driver, scene.directory, `run-${index}`, ...words];
      await Bun.sleep(index * 12);
      const one = Bun.spawn(command, { env, stdout: "ignore", stderr: "ignore" });
      // Two of three are killed somewhere between their start and, at the latest, their release.
      if (index % 3 !== 0) await Bun.sleep(40 + index * 5).then(() => one.kill("SIGKILL"));
      await one.exited;
      return one.signalCode === "SIGKILL";
    }),
  );
  const granted = readFileSync(log, "utf8").trim().split("\n");
  expect([killed.includes(true), granted.length >= 12]).toEqual([true, true]);
  for (const [key] of keys.entries()) {
    const numbers = granted.map((line) => Number(line.split(" ")[key]));
    expect(numbers).toEqual([...new Set(numbers)].toSorted((one, other) => one - other));
    expect(numbers[0]).toBeGreaterThan(1);
  }
  const last = granted.at(-1)?.split(" ").map(Number) ?? [];
  (await comeNext()).generations.forEach((generation, key) => {
    expect(generation).toBeGreaterThan(last[key] ?? 0);
  });
}, 180_000);

test("the sweep has passed every point that the code names for these steps", () => {
  const directory = join(import.meta.dir, "../../src/lease");
  const files = readdirSync(directory, { recursive: true, encoding: "utf8" });
  const sources = files.filter((file) => file.endsWith(".ts"));
  const named = sources.flatMap((file) =>
    [...readFileSync(`${directory}/${file}`, "utf8").matchAll(/faultPoint\("([\w.]+)"/g)].map(
      (match) => match[1] ?? "",
    ),
  );
  const ours = new Set(named.filter((point) => /^(acquire|release)\./.test(point)));
  expect([...ours].toSorted()).toEqual(
    [...BEFORE_GRANT, "acquire.A5", ...IN_GRANT, ...AFTER_GRANT].toSorted(),
  );
  expect(existsSync(driver)).toBe(true);
});
