/** Job files with real files: which are read, where they are, and which are not waited for. */

import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadJob } from "../../src/cli/load-job.ts";
import { WatchdogError } from "../../src/core/errors.ts";
import { LARGEST_JOB_BYTES, readJobFile } from "../../src/os/job-file.ts";

const directory = realpathSync(mkdtempSync(join(tmpdir(), "watchdog-job-file-")));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const JOB = "name: j\nsteps: { a: { command: x, side_effects: none } }\n";

let count = 0;

function write(text: string | Uint8Array, name = "job.yaml"): string {
  count += 1;
  const path = join(directory, String(count), name);
  mkdirSync(join(directory, String(count)));
  writeFileSync(path, text);
  return path;
}

function foundAt(path: string): string {
  const reading = readJobFile(path);
  return reading.kind === "text" ? "read" : reading.found;
}

describe("a job file", () => {
  test("is read by whoever may read it, though others may write it", () => {
    const path = write(JOB);
    chmodSync(path, 0o666);
    expect(readJobFile(path)).toEqual({ kind: "text", path, text: JOB });
  });

  test("lies where its links lead, and there its steps run", () => {
    const path = write(JOB);
    const link = join(directory, "link.json");
    symlinkSync(path, link);
    expect(loadJob(link)).toMatchObject({
      file: path,
      directory: join(directory, String(count)),
    });
  });

  test("may have 4 MiB, and not a byte more", () => {
    const padding = (bytes: number) => `${JOB}${"#".repeat(bytes - JOB.length - 1)}\n`;
    expect(foundAt(write(padding(LARGEST_JOB_BYTES)))).toBe("read");
    expect(foundAt(write(padding(LARGEST_JOB_BYTES + 1)))).toBe("a larger file");
  });

  test("is a file that can be read as text, and nothing that would be waited for", () => {
    expect(foundAt(join(directory, "nothing.yaml"))).toBe("no file");
    expect(foundAt(join(write(JOB), "x"))).toBe("no file");
    expect(foundAt(directory)).toBe("a directory");
    expect(foundAt("/dev/null")).toBe("no regular file");
    expect(foundAt(write(new Uint8Array([0x61, 0xff])))).toBe("bytes that are no text");
    const fifo = join(directory, "fifo");
    expect(Bun.spawnSync(["mkfifo", fifo]).exitCode).toBe(0);
    expect(foundAt(fifo)).toBe("no regular file");
    const loop = join(directory, "loop");
    symlinkSync(loop, loop);
    expect(foundAt(loop)).toBe("an error (ELOOP)");
  });

  test("that may not be read is told so", () => {
    if (process.geteuid?.() === 0) return; // root reads all
    const path = write(JOB);
    chmodSync(path, 0o000);
    expect(foundAt(path)).toBe("a file that may not be read");
  });

  test("with anything wrong is refused with 78, the first of it, and how many there are", () => {
    const path = write("name: j\nsteps:\n  a: { command: x }\n  b: { comand: x }\n");
    try {
      loadJob(path);
      throw new Error("not refused");
    } catch (error) {
      if (!(error instanceof WatchdogError)) throw error;
      expect(error.exitStatus).toBe(78);
      expect(error.message).toBe(
        `${path}:4:6: steps.b.command: found no command, expected a text for sh -c, or a list of ` +
          "a program and its arguments, each in quotes (and 1 more)",
      );
      expect(error.hint).toBe(`watchdog job verify ${path}`);
    }
  });
});
