/**
 * What of a grant and of a release is on the disk before the next step may happen, as the kernel is
 * told it (strace(1)): after a power cut no number is given twice.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { placeOf } from "../support/lease-seen.ts";
import { openScene, RELEASE } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const hasStrace = Bun.which("strace") !== null;
if (!hasStrace) console.error("needs strace, not run here: what is synced, seen from outside");

const CALLS = "trace=openat,fsync,rename,execve";

/** Each call on the files of one lease, in order, by the words that a person would use. */
function readSteps(trace: string, directory: string): string[] {
  return readFileSync(trace, "utf8")
    .split("\n")
    .flatMap((line) => {
      if (line.includes(`execve("/bin/true"`)) return ["the command"];
      if (line.includes("= -1 ")) return [];
      const synced = /fsync\(\d+<([^>]+)>/.exec(line)?.[1] ?? "";
      if (synced === directory) return ["sync directory"];
      if (synced.startsWith(`${directory}/.lease.json.`)) return ["sync record"];
      if (line.includes(`rename("${directory}/.lease.json.`)) return ["rename record"];
      const made = /openat\(.*?"([^"]+)", [A-Z_|]*O_EXCL/.exec(line)?.[1];
      if (made === undefined || !made.startsWith(`${directory}/`)) return [];
      return [made.slice(directory.length + 1).startsWith("beat.") ? "take number" : "make record"];
    });
}

test.skipIf(!hasStrace)(
  "a number is synced before its record is made, and both before the command starts",
  async () => {
    const trace = scene.path("durable.trace");
    const strace = ["strace", "-f", "-y", "-s", "4096", "--seccomp-bpf", "-e", CALLS, "-o", trace];
    const run = [RELEASE, "run", "--name", "durable", "--log", "off", "--", "/bin/true"];
    const ended = await scene.startProgram([...strace, ...run]).ended;
    expect([ended.status, ended.stderr]).toEqual([0, ""]);
    const directory = placeOf(scene.stateDirectory, "durable").directory;
    const record = ["make record", "sync record", "rename record", "sync directory"];
    expect(readSteps(trace, directory)).toEqual([
      "take number",
      "sync directory",
      ...record,
      "the command",
      ...record,
    ]);
  },
);
