/**
 * Removing what a step has left: all of it, and nothing else, whatever leads out of the job's
 * directory or is mounted in it.
 */
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { removeArtifacts } from "../../src/job/artifacts.ts";
import type { Removal } from "../../src/job/removal.ts";
import type { Reading } from "../../src/job/survey.ts";
import { DEFAULT_READING } from "../../src/job/survey.ts";
import { actAt, mount, openPlaces, put, putBytes, unmount } from "../support/artifact-places.ts";
import { openBelow } from "../support/open-files.ts";
import { isRoot, rootTest } from "../support/scene.ts";

const makePlace = openPlaces();

function remove(place: string, path: string, reading?: Reading): Removal {
  const [removal] = removeArtifacts(place, [path], reading);
  if (removal === undefined) throw new Error("no answer");
  return removal;
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

test("removes a file, a link, a pipe and a whole directory, and what is absent stays so", () => {
  const place = makePlace();
  put(place, "out/file");
  put(place, "out/deep/er/file");
  putBytes(join(place, "out/deep"), [0xff, 0x0a]);
  put(place, "out/wide/0");
  for (let at = 0; at < 3_000; at += 1) writeFileSync(join(place, `out/wide/f${at}`), "");
  put(place, "kept/file");
  symlinkSync("kept", join(place, "link"));
  expect(Bun.spawnSync(["mkfifo", join(place, "pipe")]).exitCode).toBe(0);
  expect(removeArtifacts(place, ["out/file", "link", "pipe", "out", "none", "none/x"])).toEqual([
    { path: "out/file", kind: "removed", reason: null },
    { path: "link", kind: "removed", reason: null },
    { path: "pipe", kind: "removed", reason: null },
    { path: "out", kind: "removed", reason: null },
    { path: "none", kind: "absent", reason: null },
    { path: "none/x", kind: "absent", reason: null },
  ]);
  expect(readdirSync(place)).toEqual(["kept"]);
  expect(readdirSync(join(place, "kept"))).toEqual(["file"]);
  expect(openBelow(place)).toEqual([]);
});

test("removes what was added in the middle of it, too", () => {
  const place = makePlace();
  let tries = 0;
  for (let hasActed = true; hasActed;) {
    tries += 1;
    for (const name of ["a", "b/c", "d"]) put(place, `out/${name}`);
    const reading = actAt(tries, () => {
      if (isThere(join(place, "out/b"))) put(place, "out/b/more");
      if (isThere(join(place, "out"))) put(place, "out/more");
    });
    expect([tries, remove(place, "out", reading).kind]).toEqual([tries, "removed"]);
    expect(readdirSync(place)).toEqual([]);
    hasActed = reading.hasActed();
  }
  expect(tries).toBeGreaterThan(8);
});

test("leaves the directories above what it removes", () => {
  const place = makePlace();
  put(place, "out/deep/file");
  expect(remove(place, "out/deep/file").kind).toBe("removed");
  expect(readdirSync(join(place, "out/deep"))).toEqual([]);
});

describe("never leaves the job's directory", () => {
  test("by its path", () => {
    const above = makePlace();
    put(above, "job/file");
    put(above, "other/file");
    const place = join(above, "job");
    for (const path of ["../other/file", `${above}/other`, "..", ".", "", "x/../../other"]) {
      expect([path, remove(place, path).kind]).toEqual([path, "refused"]);
    }
    expect(existsSync(join(above, "other/file"))).toBe(true);
    expect(existsSync(join(place, "file"))).toBe(true);
  });

  test("by a link on the way, at its end or below it", () => {
    const place = makePlace();
    put(place, "beyond/deep/file");
    symlinkSync("beyond", join(place, "way"));
    expect(remove(place, "way/deep")).toEqual({
      path: "way/deep",
      kind: "refused",
      reason: "'way' on the way is a symbolic link",
    });
    put(place, "out/file");
    symlinkSync("../beyond", join(place, "out/link"));
    expect(remove(place, "out").kind).toBe("removed");
    expect(remove(place, "way").kind).toBe("removed");
    expect(readdirSync(place)).toEqual(["beyond"]);
    expect(existsSync(join(place, "beyond/deep/file"))).toBe(true);
  });

  test("by a directory that becomes a link at any step", () => {
    const place = makePlace();
    let steps = 0;
    for (let step = 1; ; step += 1) {
      put(place, "out/c/d/file");
      put(place, "out/a");
      put(place, "beyond/d/file");
      const reading = actAt(step, () => {
        if (!isThere(join(place, "out/c"))) return;
        renameSync(join(place, "out/c"), join(place, `aside${step}`));
        symlinkSync("../beyond", join(place, "out/c"));
      });
      remove(place, "out", reading);
      expect([step, existsSync(join(place, "beyond/d/file"))]).toEqual([step, true]);
      steps = step;
      if (!reading.hasActed()) break;
      expect(remove(place, "out").kind).not.toBe("refused");
    }
    expect(steps).toBeGreaterThan(6);
    expect(openBelow(place)).toEqual([]);
  });
});

describe("refuses, and says why,", () => {
  rootTest("a directory with a mount in it, before anything of it is gone", () => {
    const place = makePlace();
    put(place, "beyond/file");
    put(place, "out/a/file");
    mkdirSync(join(place, "out/mounted"));
    put(place, "out/z/file");
    mount("--bind", join(place, "beyond"), join(place, "out/mounted"));
    try {
      expect(remove(place, "out")).toEqual({
        path: "out",
        kind: "refused",
        reason: "'mounted' in it is a mount point",
      });
      expect(remove(place, "out/mounted")).toMatchObject({ reason: "it is a mount point" });
      expect(readdirSync(join(place, "out")).toSorted()).toEqual(["a", "mounted", "z"]);
      expect(existsSync(join(place, "out/a/file"))).toBe(true);
      expect(existsSync(join(place, "beyond/file"))).toBe(true);
      // What is mounted on the way is the user's place for it.
      expect(remove(place, "out/mounted/file").kind).toBe("removed");
    } finally {
      unmount(join(place, "out/mounted"));
    }
    // The negative twin.
    expect(remove(place, "out").kind).toBe("removed");
  });

  rootTest("a file that something is mounted on", () => {
    const place = makePlace();
    put(place, "beyond");
    put(place, "out/file", "");
    mount("--bind", join(place, "beyond"), join(place, "out/file"));
    try {
      expect(remove(place, "out/file").kind).toBe("refused");
      expect(remove(place, "out").kind).toBe("refused");
      expect(existsSync(join(place, "beyond"))).toBe(true);
    } finally {
      unmount(join(place, "out/file"));
    }
    expect(remove(place, "out").kind).toBe("removed");
  });

  rootTest("what is mounted while it is removed", () => {
    const place = makePlace();
    let isMounted = false;
    put(place, "beyond/file");
    // Two passes look at each entry: the mount comes between them.
    for (let at = 0; at < 4; at += 1) put(place, `out/${at}/file`);
    const target = join(place, "out/mounted");
    mkdirSync(target);
    const reading = actAt(10, () => {
      if (!existsSync(target)) return;
      mount("--bind", join(place, "beyond"), target);
      isMounted = true;
    });
    try {
      expect(remove(place, "out", reading).kind).toBe("refused");
      expect(existsSync(join(place, "beyond/file"))).toBe(true);
      expect(isMounted).toBe(true);
    } finally {
      if (isMounted) unmount(target);
    }
  });

  test("one that is filled again as fast as it is emptied", () => {
    const place = makePlace();
    put(place, "out/a");
    let files = 0;
    const onStep = (): void => {
      files += 1;
      // A listing that sees what comes meanwhile would go on for long.
      if (files < 5_000 && isThere(join(place, "out"))) put(place, `out/more${files}/x`);
    };
    const removal = remove(place, "out", { ...DEFAULT_READING, onStep });
    expect(removal.kind).toBe("refused");
  });

  test.if(!isRoot)("what may not be removed, and the rest is removed all the same", () => {
    const place = makePlace();
    put(place, "closed/file");
    put(place, "open/file");
    chmodSync(join(place, "closed"), 0o500);
    expect(removeArtifacts(place, ["closed", "open"])).toEqual([
      { path: "closed", kind: "refused", reason: "'file': permission denied (EACCES)" },
      { path: "open", kind: "removed", reason: null },
    ]);
    chmodSync(join(place, "closed"), 0o700);
  });
});
