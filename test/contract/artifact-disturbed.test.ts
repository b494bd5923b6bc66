/**
 * Artifacts that are written, replaced or renamed in the middle of a reading: none of it gives the
 * hash of something that was never there, or of something that lies elsewhere.
 */
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DEFAULT_READING } from "../../src/job/survey.ts";
import {
  actAt,
  countSteps,
  hashOf,
  isOpening,
  mount,
  openPlaces,
  put,
  unmount,
} from "../support/artifact-places.ts";
import { openBelow } from "../support/open-files.ts";
import { rootTest } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const makePlace = openPlaces();
const MEBIBYTE = 1_048_576;

const sha256 = (content: string): string => createHash("sha256").update(content).digest("hex");

describe("a disturbance in the middle", () => {
  /** Content that no chunk of the other has. */
  const OLD = "o".repeat(3 * MEBIBYTE);
  const NEW = "n".repeat(3 * MEBIBYTE);

  test("of a file is seen: grown, cut, rewritten, replaced, its times set back", async () => {
    const place = makePlace();
    const file = join(place, "file");
    const setBack = (): void => utimesSync(file, 1_000_000_000, 1_000_000_000);
    const acts: Record<string, () => void> = {
      grown: () => appendFileSync(file, "!"),
      cut: () => truncateSync(file, 2 * MEBIBYTE),
      emptied: () => truncateSync(file, 0),
      rewritten: () => writeFileSync(file, NEW),
      "set back": () => {
        writeFileSync(file, NEW);
        setBack();
      },
      replaced: () => {
        put(place, "beside", NEW);
        renameSync(join(place, "beside"), file);
      },
      removed: () => rmSync(file),
      linked: () => {
        put(place, "beside", OLD);
        rmSync(file);
        symlinkSync("beside", file);
      },
    };
    put(place, "file", OLD);
    const steps = await countSteps(place, "file");
    expect(steps).toBe(4);
    for (const [name, act] of Object.entries(acts)) {
      for (let step = 1; step <= steps; step += 1) {
        rmSync(file, { force: true });
        writeFileSync(file, OLD);
        setBack();
        const reading = actAt(step, act);
        expect([name, step, await hashOf(place, "file", reading)]).toEqual([
          name,
          step,
          "changing",
        ]);
        expect(reading.hasActed()).toBe(true);
      }
    }
    expect(openBelow(place)).toEqual([]);
  }, 60_000);

  test("of a file that grows as fast as it is read comes to an end", async () => {
    const place = makePlace();
    put(place, "log", OLD);
    const grows = { ...DEFAULT_READING, onStep: () => appendFileSync(join(place, "log"), OLD) };
    expect(await hashOf(place, "log", grows)).toBe("changing");
  });

  test("that happens once costs a second reading, one that goes on three", async () => {
    const place = makePlace();
    put(place, "file", OLD);
    const again = { ...actAt(3, () => put(place, "file", NEW)), mostTries: 2 };
    expect(await hashOf(place, "file", again)).toBe(sha256(NEW));
    let steps = 0;
    const touch = (): void => {
      steps += 1;
      put(place, "file", `${OLD}${steps % 2}`);
    };
    expect(await hashOf(place, "file", { ...DEFAULT_READING, onStep: touch })).toBe("changing");
    const readings = DEFAULT_READING.mostTries;
    expect(steps).toBeGreaterThanOrEqual(readings);
    expect(steps).toBeLessThanOrEqual(readings * 5);
  });

  test("of the way to it leads nowhere else: never the hash of what lies there", async () => {
    const place = makePlace();
    const build = (): void => {
      for (const name of ["out", "aside"])
        rmSync(join(place, name), { recursive: true, force: true });
      put(place, "out/deep/file", OLD);
      put(place, "beyond/deep/file", NEW);
    };
    build();
    const steps = await countSteps(place, "out/deep/file");
    for (let step = 1; step <= steps; step += 1) {
      build();
      const reading = actAt(step, () => {
        renameSync(join(place, "out"), join(place, "aside"));
        symlinkSync("beyond", join(place, "out"));
      });
      expect([step, await hashOf(place, "out/deep/file", reading)]).toEqual([step, "changing"]);
    }
    // The negative twin: through the link the other one is there.
    expect(await Bun.file(join(place, "out/deep/file")).text()).toBe(NEW);
    expect(await hashOf(place, "out/deep/file")).toBe("link");
  });

  /** Both files are written: a hash with one of them old and the other new was never true. */
  const sweeps: Record<string, (place: string) => void> = {
    rewritten: (place) => {
      for (const name of ["a", "b", "c/d"]) put(place, `out/${name}`, "new");
    },
    renamed: (place) => {
      renameSync(join(place, "out/a"), join(place, "swap"));
      renameSync(join(place, "out/b"), join(place, "out/a"));
      renameSync(join(place, "swap"), join(place, "out/b"));
    },
    replaced: (place) => {
      renameSync(join(place, "out"), join(place, "aside"));
      renameSync(join(place, "beside"), join(place, "out"));
    },
    "linked elsewhere": (place) => {
      rmSync(join(place, "out/c"), { recursive: true });
      symlinkSync("../beside", join(place, "out/c"));
    },
    "grown and shrunk": (place) => {
      put(place, "out/e", "new");
      rmSync(join(place, "out/b"));
    },
  };

  function build(place: string): void {
    for (const name of ["out", "aside", "beside"]) {
      rmSync(join(place, name), { recursive: true, force: true });
    }
    put(place, "out/a", "one");
    put(place, "out/b", "two");
    put(place, "out/c/d", "old");
    put(place, "beside/a", "new");
  }

  async function sweep(place: string, act: (place: string) => void): Promise<string[]> {
    build(place);
    const before = await hashOf(place, "out");
    act(place);
    const after = await hashOf(place, "out");
    build(place);
    const steps = await countSteps(place, "out");
    const told: string[] = [];
    for (let step = 1; step <= steps; step += 1) {
      build(place);
      const reading = actAt(step, () => act(place));
      const hash = await hashOf(place, "out", reading);
      told.push(hash === before ? "before" : hash === after ? "after" : hash);
    }
    expect(before).not.toBe(after);
    return told;
  }

  test.each(Object.entries(sweeps))(
    "of a directory, at each step of its reading: %s",
    async (_, act) => {
      const place = makePlace();
      const told = await sweep(place, act);
      expect(told.filter((one) => !["before", "after", "changing"].includes(one))).toEqual([]);
      // From the first file that is read to the last.
      expect(told.slice(4, -4)).toEqual(told.slice(4, -4).map(() => "changing"));
      expect(told.length).toBeGreaterThan(12);
      expect(openBelow(place)).toEqual([]);
    },
  );

  test("by a pipe in the place of a file opens no pipe, at whatever step", async () => {
    const place = makePlace();
    const pipe = join(place, "pipe");
    expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
    // Whoever opens the pipe lets this writer go on.
    const writer = Bun.spawn(["sh", "-c", `echo x >"$1"`, "sh", pipe], { stderr: "ignore" });
    try {
      await waitFor(() => isOpening(writer.pid), "the writer to wait for a reader");
      build(place);
      const steps = await countSteps(place, "out");
      for (let step = 1; step <= steps; step += 1) {
        build(place);
        const reading = actAt(step, () => renameSync(pipe, join(place, "out/a")));
        expect(await hashOf(place, "out", reading)).toBeOneOf(["changing", "special"]);
        renameSync(join(place, "out/a"), pipe);
      }
      expect(isOpening(writer.pid)).toBe(true);
    } finally {
      writer.kill("SIGKILL");
      await writer.exited;
    }
  });

  /** ramfs has the kernel's ticks and nothing finer. */
  rootTest("is seen in the very tick in which the directory was written, too", async () => {
    const place = makePlace();
    mount("-t", "ramfs", "ramfs", place);
    try {
      for (let round = 0; round < 10; round += 1) {
        const told = await sweep(place, sweeps["rewritten"] ?? (() => undefined));
        expect(told.filter((one) => !["before", "after", "changing"].includes(one))).toEqual([]);
      }
    } finally {
      unmount(place);
    }
  });
});
