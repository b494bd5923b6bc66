/**
 * The progress file of a run with a real disk: made, followed whatever the job does to it, and
 * cleared away only where the kernel proves that its watchdog is dead.
 */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { LOCK_UN, sys } from "../../src/os/sys.ts";
import { countDead } from "../../src/progress/dead-progress.ts";
import { ProgressFollower } from "../../src/progress/follower.ts";
import {
  makeProgressFile,
  type ProgressFile,
  progressPath,
  removeDead,
  removeProgressFile,
  sweepProgress,
} from "../../src/progress/place.ts";
import { countOpen } from "../support/open-files.ts";

const STATE = mkdtempSync(`${tmpdir()}/watchdog-progress-`);
chmodSync(STATE, 0o700);
const NO_LIMITS = { maxFailRate: undefined, maxConsecutiveFails: undefined };
const ALWAYS = 60_000;
let made = 0;
const open: ProgressFile[] = [];

afterEach(() => {
  for (const file of open.splice(0)) removeProgressFile(file);
});
afterAll(() => rmSync(STATE, { recursive: true, force: true }));

function runId(): string {
  made += 1;
  return `01999999-0000-7000-8000-${String(made).padStart(12, "0")}`;
}

function make(): ProgressFile {
  const file = makeProgressFile(STATE, runId());
  open.push(file);
  return file;
}

interface Look {
  readonly reading: "caught-up" | "behind";
  readonly ok: number;
  readonly failed: number;
  readonly ignored: number;
  readonly wasOverwritten: boolean;
}

/** A file, who follows it, and what a look finds. */
function follow(limits = {}) {
  const file = make();
  const follower = new ProgressFollower(file, { ...NO_LIMITS, ...limits });
  const look = (): Look => {
    const reading = follower.look(ALWAYS);
    const { ok, failed, ignored } = follower.counts;
    return { reading, ok, failed, ignored, wasOverwritten: follower.wasOverwritten };
  };
  return { ...file, follower, look, append: (text: string) => appendFileSync(file.path, text) };
}

const FINE: Look = { reading: "caught-up", ok: 0, failed: 0, ignored: 0, wasOverwritten: false };

describe("the file of a run", () => {
  test("is its owner's alone, in a directory that is, too", () => {
    const { path } = make();
    expect(statSync(path).mode & 0o7777).toBe(0o600);
    expect(statSync(`${STATE}/progress`).mode & 0o7777).toBe(0o700);
    expect(statSync(path).size).toBe(0);
  });

  test("is gone with the run, and its directory may be taken away at any time", () => {
    const file = makeProgressFile(STATE, runId());
    removeProgressFile(file);
    expect(existsSync(file.path)).toBe(false);
    rmSync(`${STATE}/progress`, { recursive: true });
    expect(existsSync(make().path)).toBe(true);
  });

  test("is not made over what is there", () => {
    make(); // and its directory
    const id = runId();
    writeFileSync(progressPath(STATE, id), "somebody's");
    expect(() => makeProgressFile(STATE, id)).toThrow("EEXIST");
    unlinkSync(progressPath(STATE, id));
  });
});

describe("clearing away", () => {
  test("takes what a dead run has left, and nothing of a living one", () => {
    const living = make();
    const [dead, stranger] = [progressPath(STATE, runId()), `${STATE}/progress/notes.txt`];
    writeFileSync(dead, "ok\n");
    writeFileSync(stranger, "mine");
    expect(sweepProgress(STATE)).toBe(1);
    expect([dead, stranger, living.path].map((path) => existsSync(path))).toEqual([
      false,
      true,
      true,
    ]);
    // The negative twin: the lock is all that has protected it.
    sys.flock(living.fd, LOCK_UN);
    expect(removeDead(living.path)).toBe(true);
    expect(existsSync(living.path)).toBe(false);
    unlinkSync(stranger);
  });

  test("follows no link, and stays out of what is no file", () => {
    make(); // and its directory
    const target = `${STATE}/precious`;
    writeFileSync(target, "precious");
    symlinkSync(target, progressPath(STATE, runId()));
    expect(sweepProgress(STATE)).toBe(0);
    expect(existsSync(target)).toBe(true);
    expect(sweepProgress(`${STATE}/nowhere`)).toBe(0);
    for (const name of readdirSync(`${STATE}/progress`)) unlinkSync(`${STATE}/progress/${name}`);
  });

  test("of a killed run counts first what it had reported", () => {
    make(); // and its directory
    const id = runId();
    writeFileSync(progressPath(STATE, id), "total 9\nok 3\nfail");
    expect(countDead(STATE, id)).toMatchObject({ ok: 3, failed: 1, total: 9 });
    expect(countDead(STATE, runId())).toBeUndefined();
    unlinkSync(progressPath(STATE, id));
  });
});

describe("following", () => {
  test("takes each line once, as it comes, and half a line when it is whole", () => {
    const { look, append } = follow();
    expect(look()).toEqual(FINE);
    append("ok\nok 3\nfa");
    expect(look()).toMatchObject({ ok: 4, failed: 0 });
    expect(look()).toMatchObject({ ok: 4, failed: 0 });
    append("il 2\n");
    expect(look()).toEqual({ ...FINE, ok: 4, failed: 2 });
  });

  test("counts garbage and goes on", () => {
    const { look, append } = follow();
    append(`ok\n${"\0".repeat(100)}\n${"x".repeat(100_000)}\nok\n\xff\xfe\nok\n`);
    expect(look()).toEqual({ ...FINE, ok: 3, ignored: 3 });
  });

  test("of a huge file takes a part at a time, and all of it in the end", () => {
    const { follower, append } = follow();
    append("ok\nfail\n".repeat(400_000));
    let looks = 1;
    while (follower.look(0) === "behind") looks += 1;
    expect(follower.counts).toMatchObject({ ok: 400_000, failed: 400_000, ignored: 0 });
    // One piece each, because no time was left for a second.
    expect(looks).toBe(Math.ceil((400_000 * 8) / 65_536));
  });

  test("begins again where the file was cut off or written over, and says so", () => {
    const cut = follow();
    cut.append("ok 5\n");
    cut.look();
    truncateSync(cut.path);
    expect(cut.look()).toEqual({ ...FINE, ok: 5, wasOverwritten: true });
    cut.append("ok 2\n");
    expect(cut.look()).toMatchObject({ ok: 7 });

    // Within one tick of the file's clock only the size tells.
    const quick = follow();
    quick.append("ok 5\n");
    utimesSync(quick.path, 7, 7);
    quick.look();
    truncateSync(quick.path);
    utimesSync(quick.path, 7, 7);
    expect(quick.look()).toEqual({ ...FINE, ok: 5, wasOverwritten: true });

    const over = follow();
    over.append("ok\nok\n");
    over.look();
    writeFileSync(over.path, "fail\nfail\nfail\n");
    expect(over.look()).toEqual({ ...FINE, ok: 2, failed: 3, wasOverwritten: true });
  });

  test("suspects a file of the same size when it was touched and has not grown since", () => {
    const { path, look, append } = follow();
    append("ok\n");
    look();
    writeFileSync(path, "ok\n");
    utimesSync(path, 1, 1);
    expect(look()).toEqual({ ...FINE, ok: 1 });
    expect(look()).toEqual({ ...FINE, ok: 1, wasOverwritten: true });
  });

  test("does not wait for a next look once nobody is left who writes", () => {
    const { path, look, append, follower } = follow();
    append("ok\n");
    look();
    writeFileSync(path, "ok\n");
    utimesSync(path, 1, 1);
    look();
    expect(follower.wasOverwritten).toBe(false);
    follower.end();
    expect(follower.wasOverwritten).toBe(true);
  });

  test("does not suspect one that grows a moment after its time was set", () => {
    const { path, look, append } = follow();
    for (let time = 1; time < 5; time += 1) {
      append("ok\n");
      look();
      utimesSync(path, time, time);
      expect(look().wasOverwritten).toBe(false);
    }
  });

  test("goes on in a file that was put in its place, and keeps it from being cleared away", () => {
    const { path, look, append } = follow();
    append("ok 4\n");
    look();
    writeFileSync(`${STATE}/new`, "ok 1\nfail\n");
    renameSync(`${STATE}/new`, path);
    expect(look()).toEqual({ ...FINE, ok: 5, failed: 1, wasOverwritten: true });
    expect(removeDead(path)).toBe(false);
    append("ok\n");
    expect(look()).toMatchObject({ ok: 6 });
  });

  test("reads on after the file was removed, follows no link, and takes what comes anew", () => {
    const { path, look, append } = follow();
    append("ok\n");
    unlinkSync(path);
    expect(look()).toEqual({ ...FINE, ok: 1 });
    symlinkSync("/etc/passwd", path);
    // What is reported into it is lost.
    expect(look()).toEqual({ ...FINE, ok: 1, wasOverwritten: true });
    unlinkSync(path);
    writeFileSync(path, "ok\nok\n");
    expect(look()).toMatchObject({ ok: 3, ignored: 0 });
  });

  test("keeps the first failure, whatever comes behind it", () => {
    const { follower, append } = follow({ maxConsecutiveFails: 3 });
    append("fail\nfail\nok\nfail\nfail\n");
    follower.look(ALWAYS);
    expect(follower.failure).toBeUndefined();
    append(`fail\n${"ok\n".repeat(1_000)}`);
    follower.look(ALWAYS);
    expect(follower.failure).toMatchObject({
      because: "too-many-failed-in-row",
      failed: 5,
      done: 6,
    });
  });

  test("leaves no descriptor open", () => {
    const before = countOpen();
    const file = makeProgressFile(STATE, runId());
    const follower = new ProgressFollower(file, NO_LIMITS);
    writeFileSync(`${STATE}/new`, "ok\n");
    renameSync(`${STATE}/new`, file.path);
    follower.look(ALWAYS);
    follower.close();
    removeProgressFile(file);
    expect(countOpen()).toBe(before);
    closeSync(openSync("/dev/null", "r"));
  });
});
