/**
 * Expected files on real file systems: what is seen of them, what counts as changed, and the one
 * tick of the kernel's clock in which a change would not show.
 */
import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { FileExpectation } from "../../src/core/expectations.ts";
import { decideFile } from "../../src/core/file-changes.ts";
import { fileClockNow } from "../../src/os/clock.ts";
import { awaitNextTick, type TickClock } from "../../src/os/file-tick.ts";
import { lookAtFiles, MOST_FILES } from "../../src/run/checks/expected-files.ts";
import type { Course } from "../../src/run/course.ts";
import { lookBefore } from "../../src/run/judging.ts";
import { isRoot, rootTest } from "../support/scene.ts";

const root = mkdtempSync(join(tmpdir(), "watchdog-files-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let places = 0;

/** A directory of its own for each test. */
function makePlace(): string {
  places += 1;
  const place = join(root, String(places));
  mkdirSync(place);
  return place;
}

function put(place: string, name: string, text = "x"): void {
  mkdirSync(dirname(join(place, name)), { recursive: true });
  writeFileSync(join(place, name), text);
}

/** What is said of a target when something happens between the two looks; null: it is good. */
async function judge(
  place: string,
  target: string,
  act: () => void,
  more: Partial<FileExpectation> = {},
): Promise<string | null> {
  const expectation = { target, minBytes: 1, isAnyAge: false, minRatio: undefined, ...more };
  const [before] = await lookAtFiles(place, [expectation], "start");
  if (before === undefined) throw new Error("no look");
  await awaitNextTick(before.newest);
  act();
  const [after] = await lookAtFiles(place, [expectation], "end");
  if (after === undefined) throw new Error("no look");
  return decideFile({
    expectation,
    isDirectory: after.isDirectory,
    before: before.sight,
    after: after.sight,
    startedAt: 0,
    lastGoodBytes: undefined,
  }).because;
}

describe("one file", () => {
  test("counts when it is made, written, made anew, moved in, or behind a link", async () => {
    const place = makePlace();
    for (const name of ["old", "same", "anew", "target-1", "target-2"]) put(place, name, "abc");
    symlinkSync("target-1", join(place, "link"));
    const old = new Date("2001-01-01T00:00:00Z");
    const acts: Record<string, () => void> = {
      new: () => put(place, "new"),
      old: () => put(place, "old", "abcd"),
      same: () => put(place, "same", "abc"),
      anew: () => {
        rmSync(join(place, "anew"));
        put(place, "anew", "abc");
      },
      in: () => {
        put(place, "beside");
        utimesSync(join(place, "beside"), old, old);
        renameSync(join(place, "beside"), join(place, "in"));
      },
      link: () => {
        rmSync(join(place, "link"));
        symlinkSync("target-2", join(place, "link"));
      },
    };
    for (const [name, act] of Object.entries(acts)) {
      expect([name, await judge(place, name, act)]).toEqual([name, null]);
    }
    expect(await judge(place, join(place, "absolute"), () => put(place, "absolute"))).toBeNull();
  });

  test("does not count when it is only read, or only beside one that changes", async () => {
    const place = makePlace();
    put(place, "out");
    expect(await judge(place, "out", () => put(place, "other"))).toBe("file-unchanged");
    expect(await judge(place, "out", () => undefined, { isAnyAge: true })).toBeNull();
    expect(await judge(place, "none", () => undefined)).toBe("file-missing");
    expect(await judge(place, "out/below", () => undefined)).toBe("file-missing");
    expect(await judge(place, "out", () => put(place, "out", ""))).toBe("file-empty");
    expect(await judge(place, "out", () => rmSync(join(place, "out")))).toBe("file-missing");
  });

  test("that is a device or a pipe holds nothing", async () => {
    expect(await judge("/", "/dev/null", () => undefined, { isAnyAge: true })).toBe("file-empty");
  });

  test("whose directory is gone, or was none, is told apart", async () => {
    const expectation = { target: "x", minBytes: 1, isAnyAge: false, minRatio: undefined };
    const [look] = await lookAtFiles(undefined, [expectation], "start");
    expect(look?.sight).toEqual({ kind: "unread", reason: "the working directory is gone" });
    const place = makePlace();
    const make = () => put(place, "made/by/the/job");
    expect(await judge(place, "made/by/the/job", make)).toBeNull();
  });

  test.if(!isRoot)("in a directory that may not be read is no success", async () => {
    const place = makePlace();
    put(place, "closed/out");
    chmodSync(join(place, "closed"), 0);
    expect(await judge(place, "closed/out", () => undefined)).toBe("file-unread");
    chmodSync(join(place, "closed"), 0o700);
  });
});

describe("a pattern", () => {
  test("finds names, deep ones too, and only files that are not hidden", async () => {
    const place = makePlace();
    for (const name of ["a-1.gz", ".a-2.gz", "b/c/a-3.gz", "d.gz/inside"]) put(place, name);
    const seen = async (target: string): Promise<string[]> => {
      const expectation = { target, minBytes: 1, isAnyAge: false, minRatio: undefined };
      const [look] = await lookAtFiles(place, [expectation], "start");
      if (look?.sight.kind !== "seen") throw new Error("unread");
      return [...look.sight.files.keys()].map((path) => path.slice(place.length + 1)).toSorted();
    };
    expect(await seen("*.gz")).toEqual(["a-1.gz"]);
    expect(await seen("**/*.gz")).toEqual(["a-1.gz", "b/c/a-3.gz"]);
    expect(await seen("b/*/a-[0-9].gz")).toEqual(["b/c/a-3.gz"]);
    expect(await seen("a-?.gz")).toEqual(["a-1.gz"]);
    expect(await seen(join(place, "a-*"))).toEqual(["a-1.gz"]);
    expect(await seen("none/*.gz")).toEqual([]);
    expect(await seen("!a*")).toEqual([]);
    // Braces are letters.
    put(place, "{a-1,x}.gz");
    expect(await seen("{a-1,x}.g?")).toEqual(["{a-1,x}.gz"]);
    expect(await seen("[{]a*.gz")).toEqual(["{a-1,x}.gz"]);
  });

  test("needs one that has changed, and a name that is there is meant as it is", async () => {
    const place = makePlace();
    put(place, "r-1.txt");
    expect(await judge(place, "r-*.txt", () => undefined)).toBe("file-unchanged");
    expect(await judge(place, "r-*.txt", () => put(place, "r-2.txt"))).toBeNull();
    expect(await judge(place, "r-*.txt", () => put(place, "r-2.txt", ""))).toBe("file-empty");
    put(place, "r[1].txt");
    expect(await judge(place, "r[1].txt", () => put(place, "r1.txt"))).toBe("file-unchanged");
    expect(await judge(place, "r[1].txt", () => put(place, "r[1].txt", "y"))).toBeNull();
    expect(await judge(place, "s[1].txt", () => put(place, "s1.txt"))).toBeNull();
  });
});

describe("a directory", () => {
  test("counts as all files below it", async () => {
    const place = makePlace();
    put(place, "out/deep/.hidden", "abc");
    put(place, "out/empty", "");
    expect(await judge(place, "out", () => undefined)).toBe("file-unchanged");
    expect(await judge(place, "out", () => put(place, "out/deep/.hidden", "abd"))).toBeNull();
    expect(await judge(place, "out", () => put(place, "out/more", ""))).toBeNull();
    expect(await judge(place, "out", () => rmSync(join(place, "out/more")))).toBe("file-unchanged");
    const min = { minBytes: 5 };
    expect(await judge(place, "out", () => put(place, "out/b", "y"), min)).toBe("file-too-small");
    expect(await judge(place, "out", () => put(place, "out/b", "yy"), min)).toBeNull();
    expect(await judge(place, "bare", () => mkdirSync(join(place, "bare")))).toBe("file-empty");
  });

  test(`of more than ${MOST_FILES} files is not looked at`, async () => {
    const place = makePlace();
    mkdirSync(join(place, "many"));
    for (let at = 0; at <= MOST_FILES; at += 1) writeFileSync(join(place, "many", `f${at}`), "");
    expect(await judge(place, "many", () => undefined)).toBe("file-unread");
    rmSync(join(place, "many/f0"));
    expect(await judge(place, "many", () => put(place, "many/f1", "x"))).toBeNull();
  }, 60_000);
});

describe("the tick of the kernel's clock", () => {
  const ms = (count: number): bigint => BigInt(count) * 1_000_000n;
  const START = 1_800_000_000_123_456_789n;

  /** A clock that steps; how often was it waited for? */
  async function waitsOf(newest: bigint, step: bigint, from = START): Promise<number> {
    let now = from;
    let waits = 0;
    const clock: TickClock = {
      now: () => now,
      pause: () => {
        waits += 1;
        now += step;
        return Promise.resolve();
      },
    };
    await awaitNextTick(newest, clock);
    return waits;
  }

  test("is waited for only where a file was changed in it", async () => {
    expect(await waitsOf(START - 1n, ms(4))).toBe(0);
    expect(await waitsOf(0n, ms(4))).toBe(0);
    expect(await waitsOf(START, ms(4))).toBe(1);
    // A finer stamp within the tick (multigrain timestamps, Linux 6.13).
    expect(await waitsOf(START + ms(3), ms(4))).toBe(1);
  });

  test("is whole seconds where a file system keeps no fractions, two on FAT", async () => {
    const odd = 1_800_000_001_000_000_000n;
    expect(await waitsOf(odd, ms(100), odd + ms(350))).toBe(7);
    expect(await waitsOf(odd, ms(100), odd + ms(1_000))).toBe(0);
    const even = 1_800_000_002_000_000_000n;
    expect(await waitsOf(even, ms(100), even + ms(1_050))).toBe(10);
  });

  test("of another machine, or of a clock that was set back, is not waited for", async () => {
    expect(await waitsOf(START + ms(60_000), ms(4))).toBe(0);
    const clock = { now: () => undefined, pause: () => Promise.reject(new Error("waited")) };
    await awaitNextTick(START, clock);
  });

  /** ramfs has the kernel's ticks and nothing finer. */
  rootTest("hides no change that comes after it, 200 times", async () => {
    const place = join(root, "ramfs");
    mkdirSync(place);
    expect(Bun.spawnSync(["mount", "-t", "ramfs", "ramfs", place]).exitCode).toBe(0);
    try {
      const file = join(place, "out");
      const rewrite = (): void => writeFileSync(file, "same");
      const unchanged = { waited: 0, at_once: 0 };
      const expectation = { target: file, minBytes: 1, isAnyAge: false, minRatio: undefined };
      for (let round = 0; round < 200; round += 1) {
        rewrite();
        if ((await judge(place, file, rewrite)) !== null) unchanged.waited += 1;
        rewrite();
        const [before] = await lookAtFiles(place, [expectation], "start");
        rewrite();
        const [after] = await lookAtFiles(place, [expectation], "end");
        if (Bun.deepEquals(before?.sight, after?.sight)) unchanged.at_once += 1;
      }
      expect(unchanged.waited).toBe(0);
      // The negative twin: without the wait it does.
      expect(unchanged.at_once).toBeGreaterThan(0);
    } finally {
      Bun.spawnSync(["umount", place]);
    }
  });
});

test("no command is started in the tick in which its file was last changed", async () => {
  const place = makePlace();
  const expectation = { target: "out", minBytes: 1, isAnyAge: false, minRatio: undefined };
  const options = { expectFiles: [expectation] };
  const course = { options, identity: { cwd: place } } as unknown as Course;
  // Of a hundred looks without a pause many would end within the tick.
  for (let round = 0; round < 100; round += 1) {
    put(place, "out");
    const [before] = await lookBefore(course);
    expect(before?.sight.kind).toBe("seen");
    const { ctimeNs } = statSync(join(place, "out"), { bigint: true });
    expect((fileClockNow() ?? 0n) > ctimeNs).toBe(true);
  }
});
