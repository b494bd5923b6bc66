/** Kept output with real files: which log is meant, and that its parts are read as if joined. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WatchdogError } from "../../src/core/errors.ts";
import { closeLog, copyLog, openLog } from "../../src/inspect/log-parts.ts";
import { findLog } from "../../src/inspect/logs.ts";
import { Journal } from "../../src/journal/journal.ts";
import { encodeName } from "../../src/os/state-dir.ts";
import { joinSegments, renderOmission, renderSegmentName } from "../../src/output/log-segments.ts";
import { sampleRunRecord } from "../support/lease-views.ts";

const root = mkdtempSync(join(tmpdir(), "watchdog-logs-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const IDS = [1, 2, 3].map((number) => `01900000-0000-7000-8000-00000000000${number}`);
const [FIRST = "", SECOND = "", THIRD = ""] = IDS;
let count = 0;
let state = root;

/** A state directory of its own for each test. */
beforeEach(() => {
  count += 1;
  state = join(root, String(count));
  mkdirSync(state);
});

function writeLog(job: string, runId: string, content: string | Uint8Array): string {
  const directory = join(state, "logs", encodeName(job));
  mkdirSync(directory, { recursive: true });
  const path = join(directory, `${runId}.log`);
  writeFileSync(path, content);
  return path;
}

/** The journal's rows: ended runs of these jobs, in this order. */
function writeRuns(runs: readonly (readonly [job: string, runId: string])[]): void {
  const journal = new Journal(state, (line) => expect(line).toBe("no trouble"));
  for (const [at, [job, run_id]] of runs.entries()) {
    const run = sampleRunRecord({ job, run_id, run_path: run_id });
    journal.put({ kind: "run-ended", at, run, runPath: run_id, leases: [], isReleased: true });
  }
  journal.close(1_000);
}

function read(path: string): string {
  const log = openLog(path);
  if (log === undefined) throw new Error(`found no log at ${path}`);
  const parts: string[] = [];
  copyLog(log, (bytes) => {
    parts.push(Buffer.from(bytes).toString("latin1"));
    return true;
  });
  closeLog(log);
  return parts.join("");
}

describe("the parts of a log", () => {
  test("are read as one file, byte for byte", () => {
    const bytes = Uint8Array.from({ length: 200_000 }, (_, index) => (index * 7 + 3) % 256);
    const path = writeLog("backup", FIRST, bytes);
    expect(read(path)).toBe(Buffer.from(bytes).toString("latin1"));
  });

  /** Head of 4 bytes, segments of 3. */
  function writeParts(offsets: readonly number[]): string {
    const path = writeLog("backup", FIRST, "head");
    for (const offset of offsets) {
      const name = renderSegmentName(`${FIRST}.log`, 4, offset);
      writeFileSync(join(path, "..", name), `<${String(offset).padStart(2, "0").slice(-1)}>`);
    }
    return path;
  }

  test.each([[[4]], [[4, 7]], [[10, 13]], [[1_000_003, 1_000_006]]])(
    "with segments at %j are read as whoever joins them writes them",
    (offsets) => {
      const path = writeParts(offsets);
      const seen = read(path);
      expect(joinSegments(path).kind).toBe("joined");
      expect(seen).toBe(readFileSync(path, "latin1"));
      expect(seen.includes("omitted")).toBe(offsets[0] !== 4);
    },
  );

  test("are not read twice where the log is joined already and a segment was left over", () => {
    const path = writeParts([7]);
    const joined = `head${renderOmission(3)}<7>`;
    writeFileSync(path, joined);
    expect(read(path)).toBe(joined);
  });

  test("of another run in the same directory are left alone", () => {
    const path = writeParts([4]);
    const other = writeLog("backup", SECOND, "o");
    expect([read(path), read(other)]).toEqual(["head<4>", "o"]);
  });

  test("can be left in the middle", () => {
    const log = openLog(writeParts([4, 7]));
    const seen: number[] = [];
    if (log === undefined) throw new Error("found no log");
    copyLog(log, (bytes) => seen.push(bytes.length) < 2);
    closeLog(log);
    expect(seen).toEqual([4, 3]);
  });

  test("are not followed through a link, and nothing but a file is read", () => {
    const path = writeLog("backup", FIRST, "secret");
    const link = join(path, "..", `${SECOND}.log`);
    symlinkSync(path, link);
    expect(() => openLog(link)).toThrow(WatchdogError);
    expect(() => openLog(link)).toThrow("ELOOP");
    mkdirSync(join(path, "..", `${THIRD}.log`));
    expect(() => openLog(join(path, "..", `${THIRD}.log`))).toThrow("not a regular file");
    expect(openLog(`${path}.none`)).toBeUndefined();
  });
});

describe("by the name of a job", () => {
  test("the last run is meant that kept something", () => {
    writeLog("backup", FIRST, "1");
    const path = writeLog("backup", SECOND, "2");
    writeLog("other", THIRD, "3");
    expect(findLog(state, "backup")).toEqual({
      kind: "found",
      runId: SECOND,
      path,
      silentLast: undefined,
    });
  });

  test("a later run that kept nothing is told", () => {
    writeLog("backup", FIRST, "1");
    writeRuns([
      ["backup", FIRST],
      ["backup", SECOND],
    ]);
    const found = findLog(state, "backup");
    expect(found).toMatchObject({ kind: "found", runId: FIRST });
    expect(found.kind === "found" && found.silentLast?.runId).toBe(SECOND);
  });

  test("a name with a slash or a very long one is found where its run has put it", () => {
    for (const job of ["../up", "a/b", "x".repeat(400)]) {
      const path = writeLog(job, FIRST, job);
      expect(findLog(state, job)).toMatchObject({ kind: "found", path });
    }
  });

  test("a job of which nothing was kept is known where the journal knows it", () => {
    writeRuns([["backup", FIRST]]);
    expect(findLog(state, "backup")).toMatchObject({ kind: "none", run: { runId: FIRST } });
    expect(findLog(state, "other")).toMatchObject({ kind: "none", run: undefined });
  });
});

describe("by the id of a run", () => {
  test("its own log is meant, whatever its job is called", () => {
    writeLog("backup", FIRST, "1");
    const path = writeLog("a/b", SECOND, "2");
    writeLog("backup", THIRD, "3");
    expect(findLog(state, SECOND)).toMatchObject({ kind: "found", runId: SECOND, path });
  });

  test("the beginning of one is enough, where it is that of one run alone", () => {
    writeLog("backup", FIRST, "1");
    writeRuns([["backup", FIRST]]);
    expect(findLog(state, FIRST.slice(0, 12))).toMatchObject({ kind: "found", runId: FIRST });
    writeRuns([["backup", SECOND]]);
    expect(findLog(state, FIRST.slice(0, 12))).toMatchObject({ kind: "none", run: undefined });
  });

  test("nothing is found, and nothing made, where there is no state", () => {
    const nowhere = join(state, "none");
    expect(findLog(nowhere, FIRST)).toEqual({ kind: "none", run: undefined, troubles: [] });
    expect(findLog(state, FIRST)).toMatchObject({ kind: "none" });
  });
});

describe("by a key", () => {
  const gpu = { kind: "lane", name: "gpu", generation: 1 };

  function writeRun(job: string, run_id: string, generation: number): void {
    const journal = new Journal(state, (line) => expect(line).toBe("no trouble"));
    const run = sampleRunRecord({ job, run_id, run_path: run_id });
    const leases = [{ ...gpu, generation }];
    journal.put({ kind: "run-ended", at: 1, run, runPath: run_id, leases, isReleased: true });
    journal.close(1_000);
  }

  test("the last run that held it is meant, whatever its job", () => {
    writeRun("train", FIRST, 1);
    writeRun("render", SECOND, 2);
    const first = writeLog("train", FIRST, "1");
    const found = findLog(state, "lane:gpu");
    expect(found).toMatchObject({ kind: "found", path: first, silentLast: { runId: SECOND } });
    const second = writeLog("render", SECOND, "2");
    expect(findLog(state, "lane:gpu")).toMatchObject({ path: second, silentLast: undefined });
    expect(findLog(state, "lane:cpu")).toMatchObject({ kind: "none", run: undefined });
  });

  test("of a job, that job is meant", () => {
    const path = writeLog("backup", FIRST, "1");
    expect(findLog(state, "job:backup")).toMatchObject({ kind: "found", path });
  });
});

describe("something else in the place of logs is told in a line", () => {
  const expectUnreadable = (target: string, reason: string): void => {
    const act = () => {
      const found = findLog(state, target);
      return found.kind === "found" ? openLog(found.path) : undefined;
    };
    expect(act).toThrow(WatchdogError);
    expect(act).toThrow(reason);
  };

  test("where a directory is expected", () => {
    mkdirSync(join(state, "logs"));
    writeFileSync(join(state, "logs", "backup"), "a file");
    symlinkSync("/", join(state, "logs", "linked"));
    expectUnreadable("backup", "logs/backup cannot be read: it is not a directory");
    expectUnreadable("linked", "logs/linked cannot be read: it is a symbolic link");
    // Of a run by its id it is only a place where its log is not.
    expect(findLog(state, FIRST)).toMatchObject({ kind: "none" });
    rmSync(join(state, "logs"), { recursive: true });
    writeFileSync(join(state, "logs"), "a file");
    for (const target of ["backup", FIRST]) expectUnreadable(target, "is not a directory");
  });

  test("where a log is expected", () => {
    mkdirSync(join(state, "logs", "backup", `${FIRST}.log`), { recursive: true });
    for (const target of ["backup", FIRST]) expectUnreadable(target, "it is not a regular file");
  });
});
