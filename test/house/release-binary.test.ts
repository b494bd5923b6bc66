/**
 * What is in the built binaries: no fault hook in the release, and none of Bun's own variables in
 * either.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DISARMED_CASES, runSmokeCases } from "../support/smoke.ts";
import { ROOT } from "./source-files.ts";

/** Written in `src/os/faults.ts`, and nowhere else in what is built. */
const FAULT_MARKERS = ["WATCHDOG_FAULT", "fault injected at"];

/** Bun's own variables, and the names that the build gives them. */
const ARMED_NAMES = ["BUN_OPTIONS", "BUN_BE_BUN", "BUN_INSPECT"];
const disarmedName = (name: string): string => name.replace("_", "$");

const RELEASE = join(ROOT, "dist", "watchdog");
const WITH_FAULTS = join(ROOT, "dist", "watchdog-faults");

let scratch = "";
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "watchdog-binary-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** The text with every occurrence of a name replaced by one of the same length. */
function replaceAll(bytes: Buffer, name: string, replacement: string): number {
  let count = 0;
  for (let at = bytes.indexOf(name); at !== -1; at = bytes.indexOf(name, at + name.length)) {
    bytes.write(replacement, at, "latin1");
    count += 1;
  }
  return count;
}

describe("the release binary", () => {
  test.each(FAULT_MARKERS)("does not contain %j, which the fault build does", (marker) => {
    expect(readFileSync(WITH_FAULTS).includes(marker)).toBe(true);
    expect(readFileSync(RELEASE).includes(marker)).toBe(false);
  });

  test("ignores WATCHDOG_FAULT, which the fault build obeys or complains about", () => {
    const state = mkdtempSync(`${tmpdir()}/watchdog-test-`);
    const env = { PATH: process.env["PATH"] ?? "", WATCHDOG_FAULT: "no such thing" };
    const words = ["run", "--state-dir", state, "--log", "off", "--", "true"];
    const done = Bun.spawnSync([RELEASE, ...words], { env });
    rmSync(state, { recursive: true });
    expect({ status: done.exitCode, stderr: done.stderr.toString() }).toEqual({
      status: 0,
      stderr: "",
    });
  });

  test("has the hash that is written beside it", () => {
    const hash = new Bun.CryptoHasher("sha256").update(readFileSync(RELEASE)).digest("hex");
    expect(readFileSync(`${RELEASE}.sha256`, "utf8")).toBe(`${hash}  watchdog\n`);
  });

  test("can be run by everybody", () => {
    expect(statSync(RELEASE).mode & 0o777).toBe(0o755);
  });
});

describe.each([
  ["the release binary", RELEASE],
  ["the fault build", WITH_FAULTS],
])("%s", (_, binary) => {
  test("knows none of Bun's own variables", () => {
    const bytes = readFileSync(binary);
    expect(ARMED_NAMES.filter((name) => bytes.includes(name))).toEqual([]);
    expect(ARMED_NAMES.filter((name) => !bytes.includes(disarmedName(name)))).toEqual([]);
  });
});

describe("the smoke tests of the disarmed variables", () => {
  test("all fail on a binary that has its variables back", () => {
    const bytes = readFileSync(RELEASE);
    for (const name of ARMED_NAMES) {
      expect(replaceAll(bytes, disarmedName(name), name)).toBeGreaterThan(0);
    }
    const armed = join(scratch, "watchdog");
    writeFileSync(armed, bytes);
    chmodSync(armed, 0o755);
    const failed = runSmokeCases(armed, DISARMED_CASES).map(({ title }) => title);
    expect(failed).toEqual(DISARMED_CASES.map(({ title }) => title));
  }, 60_000);
});
