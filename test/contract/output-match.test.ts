/**
 * Expressions on real output: through pipes and Workers, with everything that can be slow, dead or
 * too long. Not a byte is missed, and nothing holds the output up for ever.
 */
import { describe, expect, test } from "bun:test";
import { openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import type { CopyPlan, MatchReport } from "../../src/output/copy.ts";
import { RING_BYTES } from "../../src/output/chunk-ring.ts";
import { threadCpuMs } from "../../src/os/clock.ts";
import { sys } from "../../src/os/sys.ts";
import { cutChunks, matchChunks } from "../support/matching.ts";
import {
  hashFile,
  makePipe,
  openForWriting,
  openOutputScene,
  runInto,
  WORKERS,
} from "../support/output-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openOutputScene();
let files = 0;

/** Copies what a program prints to a file, with the expressions. */
function copyOf(argv: readonly string[], plan: Partial<CopyPlan>) {
  const { readEnd, writeEnd } = makePipe();
  runInto(writeEnd, argv);
  files += 1;
  const path = scene.path(`out-${files}`);
  const stream = { name: "stdout", pipeFd: readEnd, destinationFd: openForWriting(path) } as const;
  return { copy: scene.start([stream], plan), path };
}

function statuses(report: MatchReport): string {
  return report.patterns.map(({ status }) => status).join(" ");
}

/** Threads of this process with SCHED_IDLE, field 41 of proc_pid_stat(5). */
function countIdleThreads(): number {
  const policies = readdirSync("/proc/self/task").map((thread) => {
    const stat = readFileSync(`/proc/self/task/${thread}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[38];
  });
  return policies.filter((policy) => policy === "5").length;
}

const python = (source: string): string[] => ["python3", "-c", source];

/** A Worker in the place of the match Worker. */
function fakeWorker(source: string): string {
  return URL.createObjectURL(new Blob([source], { type: "application/javascript" }));
}

describe("expressions on output", () => {
  test("see the first and the last byte of 200 MB, in lines of every length", async () => {
    const source = `
import os, random
random.seed(7)
os.write(1, b"FIRST\\n")
left = 200_000_000
while left > 0:
    piece = b"".join(b"x" * random.choice([0, 1, 80, 4096, 70_000]) + b"\\n" for _ in range(20))
    os.write(1, piece[: random.randint(1, len(piece))])
    left -= len(piece)
os.write(1, b"\\nLAST")`;
    const { copy } = copyOf(python(source), {
      patterns: ["^FIRST$", "^LAST$", "y", "x{70}", "[^x\\n]x(?!.)"],
    });
    const report = await copy.matched;
    expect([report.isComplete, statuses(report)]).toEqual([true, "found found open found open"]);
    expect(report.patterns[1]?.line).toBe("LAST");
    await copy.ended;
  }, 120_000);

  test("see both streams, and lines of one do not run into the other", async () => {
    const [out, err] = [makePipe(), makePipe()];
    const source = 'import os\nfor i in range(200):\n os.write(1, b"a" * 9); os.write(2, b"b" * 9)';
    const child = Bun.spawn(python(source), {
      stdin: "ignore",
      stdout: out.writeEnd,
      stderr: err.writeEnd,
    });
    for (const { writeEnd } of [out, err]) sys.close(writeEnd);
    const destinationFd = openSync("/dev/null", "w");
    const copy = scene.start(
      [
        { name: "stdout", pipeFd: out.readEnd, destinationFd },
        { name: "stderr", pipeFd: err.readEnd, destinationFd },
      ],
      { patterns: ["^a+$", "^b+$", "ab|ba"] },
    );
    expect(statuses(await copy.matched)).toBe("found found open");
    await Promise.all([copy.ended, child.exited]);
  });

  test("leave output and log as they are without them", async () => {
    const source = "import os\nfor i in range(30_000): os.write(1, b'%d\\n' % i)";
    const log = scene.logPlan();
    const { copy, path } = copyOf(python(source), { patterns: ["^29999$", "^30000$"], log });
    expect(statuses(await copy.matched)).toBe("found open");
    const { log: kept } = await copy.ended;
    const wanted = Array.from({ length: 30_000 }, (_, index) => `${index}\n`).join("");
    expect(readFileSync(path, "utf8")).toBe(wanted);
    expect([kept?.droppedBytes, kept?.keptBytes]).toEqual([0, wanted.length]);
    expect(readFileSync(String(kept?.path), "utf8")).toBe(wanted);
  });

  test("are answered before a quiet run has its verdict", async () => {
    const plan = { patterns: ["^hidden$"], spoolDirectory: scene.path("spool") };
    const { copy, path } = copyOf(["echo", "hidden"], plan);
    expect(statuses(await copy.matched)).toBe("found");
    expect(readFileSync(path, "utf8")).toBe("");
    copy.finish("replay");
    await copy.ended;
    expect(readFileSync(path, "utf8")).toBe("hidden\n");
  });

  test("of a command that prints nothing need no Worker", async () => {
    const workerUrls = { ...WORKERS, match: fakeWorker("throw new Error('started')") };
    const { copy } = copyOf(["true"], { patterns: ["x"], workerUrls });
    expect(await copy.matched).toMatchObject({ isComplete: true });
    expect(statuses(await copy.matched)).toBe("open");
    await copy.ended;
  });

  test("that have all their answers hold nothing up any more", async () => {
    const source =
      "import os\nos.write(1, b'A\\n')\nfor i in range(400): os.write(1, b'x' * 65536)";
    const { copy } = copyOf(python(source), { patterns: ["^A$"] });
    expect(statuses(await copy.matched)).toBe("found");
    expect((await copy.ended).readBytes).toBe(400 * 65_536 + 2);
  });
});

describe("an expression that is too slow", () => {
  const SLOW = ["sh", "-c", "head -c 70000 /dev/zero | tr '\\0' a; echo; seq 100000; echo END"];

  test("is given up after five seconds; the output and the others go on", async () => {
    const { copy, path } = copyOf(SLOW, { patterns: ["a*a*b", "^END$", "^99999$", "NEVER"] });
    const report = await copy.matched;
    expect(statuses(report)).toBe("abandoned found found open");
    expect(report.patterns[0]?.reason).toContain("5 s");
    const { readBytes, streams } = await copy.ended;
    expect(streams[0]?.writtenBytes).toBe(readBytes);
    const child = Bun.spawnSync(SLOW);
    const wanted = new Bun.CryptoHasher("sha256").update(child.stdout).digest("hex");
    expect(await hashFile(path)).toBe(wanted);
  }, 120_000);

  test("goes on only where nobody else wants the CPU", async () => {
    const before = countIdleThreads();
    const { copy } = copyOf(SLOW, { patterns: ["a*a*b"] });
    expect(statuses(await copy.matched)).toBe("abandoned");
    expect(countIdleThreads()).toBe(before + 1);
    await copy.ended;
  }, 120_000);

  test("takes each of several away in turn", async () => {
    const patterns = ["a*a*b", "^END$", "a*?a*?b", "[ab]*[ab]*c"];
    const { copy } = copyOf(SLOW, { patterns });
    expect(statuses(await copy.matched)).toBe("abandoned found abandoned abandoned");
    await copy.ended;
  }, 120_000);

  const backtracking = Buffer.from(`${"a".repeat(40)}b\n`);
  // It does match: the engine takes too many steps with the first half, and says "no".
  const wrongly = "^(?:(a+)+$|a*b$)";

  test("is not believed where the engine has given up by itself", () => {
    expect(new RegExp(wrongly).test(`${"a".repeat(40)}b`)).toBe(false);
    expect(matchChunks([wrongly], [backtracking], threadCpuMs)[0]?.status).toBe("abandoned");
    // Without a clock it would be.
    expect(matchChunks([wrongly], [backtracking], () => 0)[0]?.status).toBe("open");
  }, 120_000);

  test("is tried place by place where many steps are spread over a long line", () => {
    const line = Buffer.concat([Buffer.alloc(30_000, "a"), Buffer.from("\n")]);
    const chunks = cutChunks(line, [65_536]);
    expect(matchChunks(["a*b"], chunks, threadCpuMs)[0]?.status).toBe("open");
    const hit = Buffer.concat([Buffer.alloc(30_000, "a"), Buffer.from("b\n")]);
    expect(matchChunks(["a*b$"], cutChunks(hit, [65_536]), threadCpuMs)[0]?.status).toBe("found");
  }, 30_000);
});

describe("the thread that looks", () => {
  test("that dies leaves no answer, and the output goes on", async () => {
    const workerUrls = {
      ...WORKERS,
      match: fakeWorker("onmessage = () => { throw new Error(); }"),
    };
    const { copy, path } = copyOf(["seq", "1000000"], { patterns: ["^1$", "^7$"], workerUrls });
    const report = await copy.matched;
    expect(statuses(report)).toBe("abandoned abandoned");
    expect(report.patterns[0]?.reason).toContain("died");
    const { readBytes } = await copy.ended;
    expect(readFileSync(path, "latin1")).toHaveLength(readBytes);
    expect(readBytes).toBe(6_888_896);
  });

  test("makes the command wait where it is slow, and has it all in the end", async () => {
    const gate = scene.path("gate");
    const workerUrls = {
      ...WORKERS,
      match: fakeWorker(`
        const { existsSync } = process.getBuiltinModule("node:fs");
        onmessage = ({ data }) => {
          while (!existsSync(${JSON.stringify(gate)}));
          postMessage({ kind: "ended" });
        };`),
    };
    const { copy } = copyOf(["head", "-c", "50000000", "/dev/zero"], {
      patterns: ["x"],
      workerUrls,
    });
    await waitFor(() => copy.counters().readBytes >= RING_BYTES, "a full ring");
    const stalled = copy.counters().readBytes;
    // Longer than the longest wait of a feed, many times.
    const until = Date.now() + 500;
    await waitFor(() => Date.now() > until, "the copy to have had its time");
    expect(copy.counters().readBytes).toBe(stalled);
    writeFileSync(gate, "");
    await copy.matched;
    expect((await copy.ended).readBytes).toBe(50_000_000);
  }, 30_000);

  test("is waited for no more when nobody waits for the output", async () => {
    const { readEnd, writeEnd } = makePipe();
    const { readEnd: unread, writeEnd: destinationFd } = makePipe();
    runInto(writeEnd, ["seq", "1000000"]);
    const stream = { name: "stdout", pipeFd: readEnd, destinationFd } as const;
    const copy = scene.start([stream], { patterns: ["^1$", "^1000000$"] });
    await waitFor(
      () => copy.counters().streams[0]?.writeStartedAt !== undefined,
      "a stalled write",
    );
    copy.drain();
    copy.abandon("everything");
    const report = await copy.matched;
    expect([report.isComplete, report.patterns[1]?.status]).toEqual([false, "abandoned"]);
    await copy.ended;
    sys.close(unread);
  });
});
