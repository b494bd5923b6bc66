/**
 * The output of the command: every byte, in order, at once, whatever the bytes are and however
 * many; with the log on, automatic and off.
 */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { PYTHON, runShell } from "../support/outside.ts";
import { inRounds, limitOf } from "../support/rounds.ts";
import { FIXTURES, openScene, ROUNDS } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const MODES = ["on", "auto", "off"];
const D = scene.directory;
/** A flood may be faster than the disk: that costs bytes of the log, and is told; never output. */
const SLOW_DISK = /^watchdog: \d+ bytes are missing in the log: slow disk\n$/;

/**
 * What a line of sh prints, with the binary in $W, a directory in $D and the mode of the log in
 * $MODE.
 */
async function print(script: string, MODE: string): Promise<string> {
  const ended = await runShell(scene, script, { env: { D, MODE, F: FIXTURES, PYTHON } });
  expect(ended.stderr.replace(SLOW_DISK, "")).toBe("");
  return ended.stdout.toString();
}

const SHORTEST = ROUNDS * 2;

test(
  "a command that ends at once loses none of its output",
  async () => {
    const words = ["sh", "-c", 'printf "out %s\\n" "$0"; printf "err\\n" >&2'];
    for (const mode of MODES) {
      await inRounds(SHORTEST, async (round) => {
        const ended = await scene.run(["--log", mode, "--", ...words, String(round)]);
        expect([ended.stdout.toString(), ended.stderr]).toEqual([`out ${round}\n`, "err\n"]);
      });
    }
  },
  limitOf(SHORTEST * MODES.length, 40),
);

test("1 GiB of random bytes arrives equal", async () => {
  const script = `mkfifo "$D/copy" 2>/dev/null; sha256sum <"$D/copy" >"$D/sum" &
    "$W" run --log $MODE -- sh -c 'head -c 1073741824 /dev/urandom | tee "$1"' sh "$D/copy" |
      sha256sum
    wait; cat "$D/sum"`;
  for (const mode of ["on", "off"]) {
    const [arrived, sent] = (await print(script, mode)).split("\n");
    expect(arrived).toMatch(/^[0-9a-f]{64} /);
    expect(arrived).toBe(sent);
  }
}, 180_000);

test("A-26: bytes that are no text and a missing last newline arrive as they are", async () => {
  const bytes = Buffer.from("a\0b\xff\xfe\xc3(\x1b[31m\r\r\n\n\x7f\x80no newline", "latin1");
  await Bun.write(scene.path("odd"), bytes);
  for (const mode of MODES) {
    const ended = await scene.run([
      "--log",
      mode,
      "--",
      "sh",
      "-c",
      'cat "$0"; cat "$0" >&2; exit 7',
      scene.path("odd"),
    ]);
    expect(ended.code).toBe(7);
    expect(ended.stdout).toEqual(bytes);
    expect(ended.stderr).toBe(bytes.toString());
  }
});

test("A-26: three megabytes that are no text arrive, and the record stays JSON", async () => {
  await runShell(scene, 'head -c 3000000 /dev/urandom >"$D/noise"', { env: { D } });
  const ended = await scene.run([
    ...scene.recordTo(),
    "--log",
    "on",
    "--",
    "cat",
    scene.path("noise"),
  ]);
  expect(ended.stdout.equals(readFileSync(scene.path("noise")))).toBe(true);
  expect(scene.readRecord().output.stdout_bytes).toBe(3_000_000);
});

test("A-24: lines longer than 64 KiB arrive whole", async () => {
  const program = `import sys
w = sys.stdout.write; w("alpha\\n"); w("x"*70000+"\\n"); w("y"*5000000); sys.stdout.flush()
w("\\nomega\\n")`;
  for (const mode of MODES) {
    const ended = await scene.run(["--log", mode, "--", PYTHON, "-c", program]);
    const { stdout } = ended;
    expect([ended.code, stdout.length, stdout.toString("latin1", stdout.length - 7)]).toEqual([
      0,
      5_070_014,
      "\nomega\n",
    ]);
  }
});

test("a line of 64 MiB arrives whole", async () => {
  const make = `head -c 67108864 /dev/zero | tr '\\0' x`;
  const script = `"$W" run --log $MODE -- sh -c "${make}" | sha256sum; ${make} | sha256sum`;
  for (const mode of MODES) {
    const [arrived, sent] = (await print(script, mode)).split("\n");
    expect(arrived).toBe(sent);
  }
}, 180_000);

test("A-25: text without a newline is shown at once, and none is added", async () => {
  for (const mode of MODES) {
    // The command waits for the reader, who answers only after he has seen it.
    const script = `mkfifo "$D/answer-$MODE"
      "$W" run --log $MODE --timeout 20 -- \\
        sh -c 'printf abc; read -r word <"$0"; printf "$word"' "$D/answer-$MODE" |
        { head -c 3; echo seen >"$D/answer-$MODE"; cat; }`;
    expect(await print(script, mode)).toBe("abcseen");
  }
}, 180_000);

test("A-27: a character that is cut between two writes is not damaged", async () => {
  const program = `import os, time
for b in "h\\u00e9llo \\u20ac\\u2603 \\u6f22\\u5b57 \\U0001F680\\n".encode():
  os.write(1, bytes([b])); time.sleep(0.005)`;
  for (const mode of MODES) {
    const ended = await scene.run([
      ...scene.recordTo(),
      "--log",
      mode,
      "--",
      PYTHON,
      "-c",
      program,
    ]);
    expect(ended.stdout.toString()).toBe("héllo €☃ 漢字 🚀\n");
    expect(JSON.stringify(scene.readRecord())).not.toContain("\ufffd");
  }
});

test("both streams flooding at the same time arrive whole, each on its own", async () => {
  const flood = (letter: string): string => `yes ${letter.repeat(40)} | head -c 100000000`;
  const script = `"$W" run --log $MODE -- sh -c '${flood("o")} & ${flood("e")} >&2; wait' \
      2>"$D/errors" | sha256sum
    ${flood("o")} | sha256sum; head -c 100000000 "$D/errors" | sha256sum; ${flood("e")} | sha256sum
    tail -c +100000001 "$D/errors" >&2; rm "$D/errors"`;
  for (const mode of MODES) {
    const [out, expectedOut, err, expectedErr] = (await print(script, mode)).split("\n");
    expect([out, err]).toEqual([expectedOut, expectedErr]);
    expect(out).not.toBe(err);
  }
}, 120_000);

test("with 2>&1 the common order of both streams is exact over 10,000 lines", async () => {
  const script = `"$W" run --log $MODE -- "$PYTHON" "$F/alternates-streams.py" 10000 \\
    >"$D/both" 2>&1; cat "$D/both"`;
  const expected = Array.from({ length: 10_000 }, (_, index) => `${index}\n`).join("");
  for (const mode of MODES) expect(await print(script, mode)).toBe(expected);
}, 180_000);

test("a pipe shared by both streams keeps their order too", async () => {
  const script = `"$W" run --log $MODE -- "$PYTHON" "$F/alternates-streams.py" 10000 2>&1 | cat`;
  const expected = Array.from({ length: 10_000 }, (_, index) => `${index}\n`).join("");
  for (const mode of MODES) expect(await print(script, mode)).toBe(expected);
}, 180_000);

test("an appended file is appended to, by both streams", async () => {
  const script = `echo first >"$D/log-$MODE"
    "$W" run --log $MODE -- sh -c 'echo out; echo err >&2; echo out' >>"$D/log-$MODE" 2>&1
    echo last >>"$D/log-$MODE"; cat "$D/log-$MODE"`;
  for (const mode of MODES) expect(await print(script, mode)).toBe("first\nout\nerr\nout\nlast\n");
});

test("A-28: two gigabytes pass in bounded memory, and the log stays bounded", async () => {
  const args = [...scene.recordTo("flood"), "--log", "on", "--"];
  const started = scene.start([...args, "sh", "-c", "yes 0123456789abcdef | head -c 2000000000"], {
    stdout: "ignore",
  });
  let peak = 0;
  const watch = setInterval(() => {
    peak = Math.max(peak, readPeakKib(started.pid));
  }, 100);
  const ended = await started.ended;
  clearInterval(watch);
  expect([ended.code, ended.stderr.replace(SLOW_DISK, "")]).toEqual([0, ""]);
  expect(peak).toBeGreaterThan(10_000);
  expect(peak).toBeLessThan(200_000);
  const record = scene.readRecord("flood");
  expect(record.output.stdout_bytes).toBe(2_000_000_000);
  expect(record.log.kept_bytes).toBeLessThanOrEqual(10 * 1024 * 1024);
  const sizes = readdirSync(dirname(record.log.path)).map(
    (name) => statSync(join(dirname(record.log.path), name)).size,
  );
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(11 * 1024 * 1024);
}, 120_000);

function readPeakKib(pid: number): number {
  try {
    return Number(
      /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0,
    );
  } catch {
    return 0; // it has just ended
  }
}
