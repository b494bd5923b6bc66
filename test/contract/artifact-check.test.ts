/**
 * Artifacts at the end of a step, and at a resume: which of them count as left by the step, and
 * which are no longer what was recorded.
 */
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { ArtifactSpec } from "../../src/core/job-spec.ts";
import {
  checkNew,
  hashArtifact,
  lookAtArtifacts,
  verifyArtifacts,
} from "../../src/job/artifacts.ts";
import type { ArtifactRecord } from "../../src/core/step-record.ts";
import { mount, openPlaces, put, unmount } from "../support/artifact-places.ts";
import { openBelow } from "../support/open-files.ts";
import { isRoot, rootTest } from "../support/scene.ts";

const makePlace = openPlaces();

/** What is said of an artifact when a step does something; "good" or the reason. */
async function judge(
  place: string,
  path: string,
  act: () => unknown,
  more: Partial<ArtifactSpec> = {},
): Promise<string> {
  const specs = [{ path, minBytes: 1, isAnyAge: false, ...more }];
  const before = await lookAtArtifacts(place, specs);
  act();
  const [verdict] = await checkNew(place, specs, before);
  if (verdict === undefined) throw new Error("no verdict");
  return verdict.kind === "good" ? "good" : verdict.because;
}

const nothing = (): void => undefined;

describe("at the end of a step a file", () => {
  test("is its own when it was made, written, made anew or moved in", async () => {
    const place = makePlace();
    for (const name of ["old", "same", "anew", "chosen", "other"]) put(place, name, "abc");
    symlinkSync("other", join(place, "link"));
    const acts: Record<string, () => void> = {
      new: () => put(place, "new"),
      "deep/new": () => put(place, "deep/new"),
      old: () => put(place, "old", "abcd"),
      same: () => put(place, "same", "abc"),
      anew: () => {
        rmSync(join(place, "anew"));
        put(place, "anew", "abc");
      },
      in: () => {
        put(place, "beside");
        utimesSync(join(place, "beside"), 1, 1);
        renameSync(join(place, "beside"), join(place, "in"));
      },
      chosen: () => {
        rmSync(join(place, "chosen"));
        linkSync(join(place, "other"), join(place, "chosen"));
      },
      link: () => {
        rmSync(join(place, "link"));
        put(place, "link");
      },
    };
    for (const [name, act] of Object.entries(acts)) {
      expect([name, await judge(place, name, act)]).toEqual([name, "good"]);
    }
  });

  test("is not when nothing of it was written, unless its age plays no part", async () => {
    const place = makePlace();
    put(place, "out");
    expect(await judge(place, "out", nothing)).toBe("artifact-stale");
    expect(await judge(place, "out", () => put(place, "other"))).toBe("artifact-stale");
    expect(await judge(place, "out", () => readFileSync(join(place, "out")))).toBe(
      "artifact-stale",
    );
    expect(await judge(place, "out", nothing, { isAnyAge: true })).toBe("good");
  });

  test("is none when it is missing, too small, a link, or behind one", async () => {
    const place = makePlace();
    put(place, "out");
    put(place, "real/out");
    expect(await judge(place, "none", nothing)).toBe("artifact-missing");
    expect(await judge(place, "none", nothing, { isAnyAge: true })).toBe("artifact-missing");
    expect(await judge(place, "out", () => put(place, "out", ""))).toBe("artifact-empty");
    expect(await judge(place, "out", () => put(place, "out", ""), { minBytes: 0 })).toBe("good");
    expect(await judge(place, "out", () => put(place, "out", "ab"), { minBytes: 3 })).toBe(
      "artifact-empty",
    );
    expect(await judge(place, "out", () => put(place, "out", "abc"), { minBytes: 3 })).toBe("good");
    const link = (): void => symlinkSync("out", join(place, "link"));
    expect(await judge(place, "link", link)).toBe("artifact-unreadable");
    const way = (): void => symlinkSync("real", join(place, "way"));
    expect(await judge(place, "way/out", way)).toBe("artifact-unreadable");
    expect(await judge(place, "../out", nothing)).toBe("artifact-unreadable");
  });

  test("is unknown where nobody could look before", async () => {
    const place = makePlace();
    put(place, "real/out");
    symlinkSync("real", join(place, "way"));
    const act = (): void => {
      rmSync(join(place, "way"));
      renameSync(join(place, "real"), join(place, "way"));
    };
    expect(await judge(place, "way/out", act)).toBe("artifact-unreadable");
    const specs = [{ path: "way/out", minBytes: 1, isAnyAge: false }];
    const [unseen] = await checkNew(place, specs, []);
    expect(unseen).toMatchObject({ because: "artifact-unreadable" });
  });

  test("says what was found, of each artifact in its order", async () => {
    const place = makePlace();
    const specs = ["good", "none", "small", "link"].map((path) => {
      return { path, minBytes: 3, isAnyAge: false };
    });
    const before = await lookAtArtifacts(place, specs);
    put(place, "good", "abc");
    put(place, "small", "ab");
    symlinkSync("good", join(place, "link"));
    expect(await checkNew(place, specs, before)).toEqual([
      {
        kind: "good",
        artifact: {
          path: "good",
          kind: "file",
          bytes: 3,
          sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        },
      },
      {
        kind: "bad",
        path: "none",
        because: "artifact-missing",
        detail: "none: is not there",
      },
      {
        kind: "bad",
        path: "small",
        because: "artifact-empty",
        detail: "small: 2 bytes, expected at least 3",
      },
      {
        kind: "bad",
        path: "link",
        because: "artifact-unreadable",
        detail: "link: is a symbolic link",
      },
    ]);
  });

  /** ramfs has the kernel's ticks and nothing finer. */
  rootTest("that was written in the tick of the start is told from one that was not", async () => {
    const place = makePlace();
    mount("-t", "ramfs", "ramfs", place);
    try {
      const rewrite = (): void => put(place, "out", "same");
      for (let round = 0; round < 100; round += 1) {
        rewrite();
        expect(await judge(place, "out", rewrite)).toBe("good");
      }
      expect(await judge(place, "out", nothing)).toBe("artifact-stale");
    } finally {
      unmount(place);
    }
  });
});

describe("at the end of a step a directory", () => {
  test("is all that lies below it", async () => {
    const place = makePlace();
    put(place, "out/deep/file", "abc");
    put(place, "out/empty", "");
    expect(await judge(place, "out", nothing)).toBe("artifact-stale");
    expect(await judge(place, "out", () => put(place, "out/deep/file", "abd"))).toBe("good");
    expect(await judge(place, "out", () => put(place, "out/new", ""))).toBe("good");
    expect(await judge(place, "out", () => rmSync(join(place, "out/new")))).toBe("artifact-stale");
    const link = (): void => symlinkSync("x", join(place, "out/link"));
    expect(await judge(place, "out", link)).toBe("good");
    const min = { minBytes: 5 };
    expect(await judge(place, "out", () => put(place, "out/b", "y"), min)).toBe("artifact-empty");
    expect(await judge(place, "out", () => put(place, "out/b", "yy"), min)).toBe("good");
  });

  test("without a file is empty, and may be where that is allowed", async () => {
    const place = makePlace();
    const make = (name: string) => () => mkdirSync(join(place, name, "below"), { recursive: true });
    expect(await judge(place, "one", make("one"))).toBe("artifact-empty");
    expect(await judge(place, "other", make("other"), { minBytes: 0 })).toBe("good");
    expect(await judge(place, "other", nothing, { minBytes: 0 })).toBe("artifact-stale");
  });

  test("in the place of a file is another artifact", async () => {
    const place = makePlace();
    put(place, "out");
    const act = (): void => {
      renameSync(join(place, "out"), join(place, "beside"));
      mkdirSync(join(place, "out"));
      renameSync(join(place, "beside"), join(place, "out/file"));
    };
    expect(await judge(place, "out", act)).toBe("good");
  });
});

describe("a record", () => {
  async function record(place: string, path: string): Promise<ArtifactRecord> {
    const hashing = await hashArtifact(place, path);
    if (hashing.kind !== "hashed") throw new Error(hashing.reason);
    return { step: "pack", ...hashing.artifact };
  }

  /** What is told of an artifact that something has happened to. */
  async function verdictOn(place: string, path: string, act: () => unknown): Promise<string> {
    const known = await record(place, path);
    expect(await verifyArtifacts(place, [known])).toEqual([
      { step: "pack", path, kind: "same", detail: null },
    ]);
    act();
    const [check] = await verifyArtifacts(place, [known]);
    return `${check?.kind}: ${check?.detail}`;
  }

  test("of a file holds until it is tampered with, cut, deleted or replaced", async () => {
    const place = makePlace();
    const file = join(place, "out/file");
    const acts: Record<string, readonly [() => unknown, string]> = {
      tampered: [
        () => {
          writeFileSync(file, "abd");
          utimesSync(file, 1, 1);
        },
        "changed: has as many bytes as before, and other ones",
      ],
      cut: [() => truncateSync(file, 2), "changed: has 2 bytes, had 3"],
      deleted: [() => rmSync(file), "missing: is not there"],
      "deleted with its directory": [
        () => rmSync(join(place, "out"), { recursive: true }),
        "missing: there is no directory 'out'",
      ],
      "replaced by a link": [
        () => {
          renameSync(file, join(place, "beside"));
          symlinkSync("../beside", file);
        },
        "link: is a symbolic link",
      ],
      "its directory replaced by a link": [
        () => {
          renameSync(join(place, "out"), join(place, "aside"));
          symlinkSync("aside", join(place, "out"));
        },
        "link: 'out' on the way is a symbolic link",
      ],
      "replaced by a directory": [
        () => {
          rmSync(file);
          mkdirSync(file);
        },
        "changed: is a directory, was a file",
      ],
      "only touched": [() => utimesSync(file, 1, 1), "same: null"],
      "replaced by its like": [
        () => {
          rmSync(file);
          put(place, "out/file", "abc");
        },
        "same: null",
      ],
    };
    for (const [name, [act, said]] of Object.entries(acts)) {
      for (const old of ["out", "aside"])
        rmSync(join(place, old), { recursive: true, force: true });
      put(place, "out/file", "abc");
      expect([name, await verdictOn(place, "out/file", act)]).toEqual([name, said]);
    }
    expect(openBelow(place)).toEqual([]);
  });

  test("of a directory holds until anything in it is another", async () => {
    const place = makePlace();
    put(place, "out/a/file", "abc");
    expect(await verdictOn(place, "out", () => put(place, "out/a/file", "abd"))).toBe(
      "changed: has as many bytes as before, and other ones",
    );
    expect(await verdictOn(place, "out", () => put(place, "out/more", "x"))).toBe(
      "changed: has 4 bytes, had 3",
    );
    const move = (): void => renameSync(join(place, "out/more"), join(place, "out/other"));
    expect(await verdictOn(place, "out", move)).toBe(
      "changed: has as many bytes as before, and other ones",
    );
  });

  test("is looked at whatever became of the others, in their order", async () => {
    const place = makePlace();
    for (const name of ["one", "two", "three"]) put(place, name);
    const records = await Promise.all(["one", "two", "three"].map((name) => record(place, name)));
    rmSync(join(place, "one"));
    put(place, "two", "y");
    const checks = await verifyArtifacts(place, records);
    expect(checks.map(({ path, kind }) => [path, kind])).toEqual([
      ["one", "missing"],
      ["two", "changed"],
      ["three", "same"],
    ]);
  });

  test.if(!isRoot)("of a file that may no longer be read does not hold", async () => {
    const place = makePlace();
    put(place, "out");
    expect(await verdictOn(place, "out", () => chmodSync(join(place, "out"), 0))).toBe(
      "unreadable: permission denied (EACCES)",
    );
  });
});
