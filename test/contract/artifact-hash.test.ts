/**
 * Hashes of artifacts on real file systems: what is read, what is refused and never opened, and
 * that memory and descriptors are bounded.
 */
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  linkSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
} from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { hashArtifact } from "../../src/job/artifacts.ts";
import { DEFAULT_READING } from "../../src/job/survey.ts";
import { MOST_DEPTH } from "../../src/job/walk.ts";
import {
  hashOf,
  isOpening,
  mount,
  openPlaces,
  put,
  putBytes,
  unmount,
} from "../support/artifact-places.ts";
import { openBelow } from "../support/open-files.ts";
import { isRoot, rootTest } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const makePlace = openPlaces();
const FIXTURE = resolve(import.meta.dir, "../fixtures/hashes-an-artifact.ts");
const MEBIBYTE = 1_048_576;

const sha256 = (content: string | Uint8Array): string =>
  createHash("sha256").update(content).digest("hex");

describe("a file", () => {
  test("has the hash that any other program finds, whatever its length", async () => {
    const place = makePlace();
    for (const length of [0, 1, MEBIBYTE - 1, MEBIBYTE, MEBIBYTE + 1, 3 * MEBIBYTE]) {
      const content = Buffer.alloc(length, "Aßc\n\0");
      put(place, "out/file", content);
      const hashing = await hashArtifact(place, "out/file");
      expect(hashing).toEqual({
        kind: "hashed",
        artifact: { path: "out/file", kind: "file", bytes: length, sha256: sha256(content) },
      });
    }
  });

  test("may have any name", async () => {
    const place = makePlace();
    for (const name of ["a b", "new\nline", "ünï", "-rf", "*?[x]", "back\\slash", "..."]) {
      put(place, name, name);
      expect([name, await hashOf(place, name)]).toEqual([name, sha256(name)]);
    }
  });

  test("with a second name is read like any other", async () => {
    const place = makePlace();
    put(place, "one", "same");
    linkSync(join(place, "one"), join(place, "other"));
    expect(await hashOf(place, "other")).toBe(sha256("same"));
    appendFileSync(join(place, "one"), "!");
    expect(await hashOf(place, "other")).toBe(sha256("same!"));
  });

  test("of a gibibyte is read with bounded memory", () => {
    const place = makePlace();
    put(place, "small", "");
    put(place, "large", "");
    truncateSync(join(place, "large"), 1_073_741_824);
    const read = (name: string): { sha256: string; peakBytes: number } =>
      JSON.parse(Bun.spawnSync([process.execPath, FIXTURE, place, name]).stdout.toString());
    const [small, large] = [read("small"), read("large")];
    expect(large.sha256).toBe("49bc20df15e412a64472421e13fe86ff1c5165e18b2afccf160d4dc19fe68a14");
    expect(large.peakBytes - small.peakBytes).toBeLessThan(32 * MEBIBYTE);
  });
});

describe("a place without a hash", () => {
  test("is told apart", async () => {
    const place = makePlace();
    put(place, "out/file");
    put(place, "beyond/secret");
    symlinkSync("file", join(place, "out/link"));
    symlinkSync("nowhere", join(place, "out/dangling"));
    symlinkSync("beyond", join(place, "way"));
    const cases: readonly (readonly [string, string])[] = [
      ["out/none", "missing"],
      ["none/file", "missing"],
      ["out/file/below", "missing"],
      ["out/link", "link"],
      ["out/dangling", "link"],
      ["way/secret", "link"],
      ["way", "link"],
      ["out/../out/file", "outside"],
      ["..", "outside"],
      ["../1/out/file", "outside"],
      [`${place}/out/file`, "outside"],
      ["", "outside"],
      [".", "outside"],
      ["./out", "outside"],
      ["out//file", "outside"],
      ["out/", "outside"],
      ["out/file\0", "outside"],
      ["x".repeat(256), "unreadable"],
      ["x".repeat(10_000), "unreadable"],
    ];
    for (const [path, kind] of cases)
      expect([path, await hashOf(place, path)]).toEqual([path, kind]);
    expect(await hashOf(join(place, "none"), "file")).toBe("unreadable");
    expect(await hashOf(join(place, "way"), "secret")).toBe("unreadable");
    expect(openBelow(place)).toEqual([]);
  });

  test("is a pipe or a socket: neither is opened, nor is a directory with one read", async () => {
    const place = makePlace();
    put(place, "out/file");
    expect(Bun.spawnSync(["mkfifo", join(place, "out/pipe")]).exitCode).toBe(0);
    // Whoever opens the pipe lets this writer go on.
    const writer = Bun.spawn(["sh", "-c", `echo x >"$1"`, "sh", join(place, "out/pipe")], {
      stderr: "ignore",
    });
    const server = createServer().listen(join(place, "socket"));
    await new Promise((listening) => server.once("listening", listening));
    try {
      await waitFor(() => isOpening(writer.pid), "the writer to wait for a reader");
      expect(await hashOf(place, "out/pipe")).toBe("special");
      expect(await hashOf(place, "out")).toBe("special");
      expect(await hashOf(place, "socket")).toBe("special");
      expect(writer.exitCode).toBeNull();
    } finally {
      writer.kill("SIGKILL");
      await writer.exited;
      server.close();
    }
  });

  rootTest("is a device", async () => {
    const place = makePlace();
    expect(Bun.spawnSync(["mknod", join(place, "zero"), "c", "1", "5"]).exitCode).toBe(0);
    expect(await hashOf(place, "zero")).toBe("special");
  });

  test.if(!isRoot)("is one that may not be read", async () => {
    const place = makePlace();
    put(place, "out/file");
    put(place, "out/more/file");
    chmodSync(join(place, "out/file"), 0);
    expect(await hashOf(place, "out/file")).toBe("unreadable");
    expect(await hashOf(place, "out")).toBe("unreadable");
    chmodSync(join(place, "out/more"), 0);
    expect(await hashOf(place, "out/more")).toBe("unreadable");
    expect(await hashOf(place, "out/more/file")).toBe("unreadable");
    // To pass through a directory no right to list it is needed.
    chmodSync(join(place, "out/more"), 0o100);
    expect(await hashOf(place, "out/more/file")).toBe(sha256("x"));
    chmodSync(join(place, "out/more"), 0o700);
    expect(openBelow(place)).toEqual([]);
  });
});

describe("a directory", () => {
  test("is its names, kinds, contents and links, and nothing else of it", async () => {
    const place = makePlace();
    const build = (): void => {
      rmSync(join(place, "out"), { recursive: true, force: true });
      put(place, "out/b/file", "text");
      put(place, "out/a", "");
      mkdirSync(join(place, "out/empty"));
      symlinkSync("a", join(place, "out/link"));
    };
    build();
    const first = await hashArtifact(place, "out");
    expect(first).toMatchObject({ artifact: { kind: "directory", bytes: 4 } });
    const known = await hashOf(place, "out");
    // Times and rights are no part of it, nor is the order in which it was made.
    utimesSync(join(place, "out/b/file"), 1, 1);
    chmodSync(join(place, "out/b/file"), 0o600);
    expect(await hashOf(place, "out")).toBe(known);
    const changes: Record<string, () => void> = {
      content: () => put(place, "out/b/file", "tex_"),
      length: () => put(place, "out/b/file", "text\n"),
      added: () => put(place, "out/b/more", ""),
      gone: () => rmSync(join(place, "out/a")),
      renamed: () => renameSync(join(place, "out/a"), join(place, "out/c")),
      moved: () => renameSync(join(place, "out/a"), join(place, "out/b/a")),
      "less empty directories": () => rmSync(join(place, "out/empty"), { recursive: true }),
      "a link elsewhere": () => {
        rmSync(join(place, "out/link"));
        symlinkSync("b", join(place, "out/link"));
      },
      "a file for a link": () => {
        rmSync(join(place, "out/link"));
        put(place, "out/link", "a");
      },
    };
    const seen = new Set([known]);
    for (const change of Object.values(changes)) {
      build();
      expect(await hashOf(place, "out")).toBe(known);
      change();
      seen.add(await hashOf(place, "out"));
    }
    expect(seen.size).toBe(1 + Object.keys(changes).length);
  });

  test("holds names of any bytes, and tells apart those that look alike", async () => {
    const place = makePlace();
    const names = [[0x61, 0x0a], [0xff], [0xfe], [0xc3, 0xa9], [0x65, 0xcc, 0x81], [0x5c, 0x6e]];
    const seen = new Set<string>();
    for (const [index, name] of names.entries()) {
      mkdirSync(join(place, String(index)));
      putBytes(join(place, String(index)), name);
      const hash = await hashOf(place, String(index));
      expect(hash).toHaveLength(64);
      seen.add(hash);
    }
    expect(seen.size).toBe(names.length);
  });

  test("is not left by a link in it", async () => {
    const place = makePlace();
    put(place, "beyond/secret", "one");
    put(place, "out/file");
    symlinkSync("../beyond", join(place, "out/way"));
    symlinkSync("../beyond/secret", join(place, "out/link"));
    const known = await hashOf(place, "out");
    put(place, "beyond/secret", "other");
    expect(await hashOf(place, "out")).toBe(known);
    // The negative twin: were it a file, it would count.
    put(place, "out/file", "other");
    expect(await hashOf(place, "out")).not.toBe(known);
  });

  test(`of ${MOST_DEPTH} levels is read, of one more not, and no descriptor is left`, async () => {
    const place = makePlace();
    const levels = "d/".repeat(MOST_DEPTH - 1).slice(0, -1);
    mkdirSync(join(place, "deep", levels), { recursive: true });
    expect(await hashOf(place, "deep")).toHaveLength(64);
    mkdirSync(join(place, "deep", levels, "e"));
    const hashing = await hashArtifact(place, "deep");
    expect(hashing.kind).toBe("unreadable");
    expect(hashing).toMatchObject({ reason: `it is deeper than ${MOST_DEPTH} directories` });
    expect(openBelow(place)).toEqual([]);
  });

  test("of more entries than are kept is not read", async () => {
    const place = makePlace();
    for (let at = 0; at < 3_000; at += 1) put(place, `wide/f${at}`, "");
    const most = (mostEntries: number) => ({ ...DEFAULT_READING, mostEntries });
    expect(await hashOf(place, "wide", most(2_999))).toBe("unreadable");
    expect(await hashOf(place, "wide", most(3_000))).toHaveLength(64);
    expect(openBelow(place)).toEqual([]);
  });

  rootTest("with a mount in it is read with what is mounted there", async () => {
    const place = makePlace();
    put(place, "beyond/secret", "one");
    mkdirSync(join(place, "out/mounted"), { recursive: true });
    const bare = await hashOf(place, "out");
    mount("--bind", join(place, "beyond"), join(place, "out/mounted"));
    try {
      expect(await hashOf(place, "out")).not.toBe(bare);
      expect(await hashOf(place, "out/mounted/secret")).toBe(sha256("one"));
    } finally {
      unmount(join(place, "out/mounted"));
    }
  });
});
