/**
 * Attempts as real processes: how often a command is started, what it gets, and with which status
 * all of it ends. Signals and limits are in retry-ends.test.ts, circuits in retry-breaker.test.ts.
 */
import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { MOST_BUFFERED_BYTES } from "../../src/retry/kept-input.ts";
import { openScene } from "../support/scene.ts";
import { makeCounted, startRetry } from "../support/retrying.ts";

const scene = openScene(import.meta.file);

describe("a command", () => {
  test("that never succeeds is tried as often as allowed, and one line says so", async () => {
    const { command, attempts } = makeCounted(scene, "exit 7");
    const { status, stderr, stdout } = await startRetry(scene, {
      command,
      backoff: { maxAttempts: 4 },
    }).ended;
    expect([status, attempts(), stdout.toString()]).toEqual([7, ["1", "2", "3", "4"], ""]);
    expect(stderr).toMatch(
      /^watchdog: retry: gave up after 4 attempts in \d+ ms: the last one exited with status 7\n$/,
    );
  });

  test("that succeeds in the end ends it, and nothing is said", async () => {
    const { command, attempts } = makeCounted(scene, "echo out $N; test $N = 3");
    const { status, stderr, stdout } = await startRetry(scene, { command }).ended;
    expect([status, attempts(), stderr]).toEqual([0, ["1", "2", "3"], ""]);
    expect(stdout.toString()).toBe("out 1\nout 2\nout 3\n");
  });

  test("that succeeds at once is started once", async () => {
    const { command, attempts } = makeCounted(scene, "exit 0");
    const { status, stderr } = await startRetry(scene, { command }).ended;
    expect([status, attempts(), stderr]).toEqual([0, ["1"], ""]);
  });

  test("that dies of a signal is tried again, and its last signal is ours", async () => {
    const { command, attempts } = makeCounted(scene, "kill -KILL $$");
    const { signal, stderr } = await startRetry(scene, { command, backoff: { maxAttempts: 2 } })
      .ended;
    expect([signal, attempts()]).toEqual(["SIGKILL", ["1", "2"]]);
    expect(stderr).toContain("the last one was killed by KILL");
  });

  test("gets no new attempt after the total time", async () => {
    const { command, attempts } = makeCounted(scene, "sleep 0.3; exit 3");
    const backoff = { maxAttempts: 1_000, maxElapsedMs: 1_000 };
    const { status, stderr } = await startRetry(scene, { command, backoff }).ended;
    expect(status).toBe(3);
    // On a busy machine the first one may take as long.
    expect(attempts().length).toBeWithin(1, 6);
    expect(stderr).toContain(" (--max-elapsed): the last one exited with status 3\n");
  });
});

describe("a status", () => {
  test.each([
    ["that --retry-on names is tried again", { retryOn: [7] }, 7, 3],
    ["that it does not name is not", { retryOn: [8] }, 7, 1],
    ["that --no-retry-on names is not", { noRetryOn: [7] }, 7, 1],
    ["that it does not name is tried again", { noRetryOn: [8] }, 7, 3],
    ["of a wrong command line never is", { retryOn: [64, 126, 127] }, 64, 1],
    ["of a shell that finds nothing never is", { retryOn: [64, 126, 127] }, 127, 1],
    ["of a shell that may not start it never is", { retryOn: [64, 126, 127] }, 126, 1],
  ] as const)("%s", async (_, options, code, times) => {
    const { command, attempts } = makeCounted(scene, `exit ${code}`);
    const { status } = await startRetry(scene, { command, options, backoff: { maxAttempts: 3 } })
      .ended;
    expect([status, attempts().length]).toEqual([code, times]);
  });

  test("of a program that is not there is 127 at once, and says why", async () => {
    const record = scene.path("missing.json");
    const options = { retryOn: [127], resultFile: record };
    const { status, stderr } = await startRetry(scene, { command: ["/no/such"], options }).ended;
    expect([status, stderr]).toEqual([
      127,
      "watchdog: error: /no/such: no such file or directory (ENOENT)\n",
    ]);
    const told = JSON.parse(readFileSync(record, "utf8"));
    expect([told.outcome, told.attempts.length]).toEqual(["not_found", 1]);
  });

  test("of a program that may not be started is 126 at once", async () => {
    const program = scene.path("unstartable");
    writeFileSync(program, "#!/bin/sh\n");
    chmodSync(program, 0o600);
    const { status, stderr } = await startRetry(scene, { command: [program] }).ended;
    expect([status, stderr.split("\n").length]).toEqual([126, 2]);
  });
});

describe("the standard input", () => {
  const script = "cat; exit 1";
  const input = Buffer.from("a\0\xffb\n", "latin1");
  const backoff = { maxAttempts: 3 };

  test("is the first attempt's, and the others read nothing", async () => {
    const { command } = makeCounted(scene, 'read -r L; echo "<$L>"; exit 1');
    const stdin = Buffer.from("one\ntwo\nthree\n");
    const { stdout } = await startRetry(scene, { command, backoff }, { stdin }).ended;
    expect(stdout.toString()).toBe("<one>\n<>\n<>\n");
  });

  test("is each attempt's from its beginning with --buffer-stdin", async () => {
    const { command } = makeCounted(scene, `head -c 2 >>'${scene.path("heads")}'; ${script}`);
    const options = { buffersStdin: true };
    const { stdout } = await startRetry(scene, { command, backoff, options }, { stdin: input })
      .ended;
    expect(stdout).toEqual(Buffer.concat([1, 2, 3].map(() => input.subarray(2))));
    expect(readFileSync(scene.path("heads"), "latin1")).toBe("a\0a\0a\0");
  });

  test("of one attempt cannot be changed for the next one", async () => {
    const { command } = makeCounted(scene, "echo spoilt 2>&- 1<>/dev/stdin; cat; exit 1");
    const options = { buffersStdin: true };
    const { stdout } = await startRetry(scene, { command, backoff, options }, { stdin: input })
      .ended;
    expect(stdout).toEqual(Buffer.concat([input, input, input]));
  });

  test("that is longer than can be kept is refused before anything is started", async () => {
    const { command, attempts } = makeCounted(scene, "exit 0");
    const options = { buffersStdin: true };
    const stdin = new Uint8Array(MOST_BUFFERED_BYTES + 1);
    const { status, stderr } = await startRetry(scene, { command, options }, { stdin }).ended;
    expect([status, attempts()]).toEqual([78, []]);
    expect(stderr).toContain(`more than ${MOST_BUFFERED_BYTES} bytes`);
  });
});

describe("the result file", () => {
  test("says running while an attempt runs, and at the end all that has happened", async () => {
    const [path, seen] = [scene.path("result.json"), scene.path("seen.json")];
    const { command } = makeCounted(scene, `cp '${path}' '${seen}'; exit $((2 - N))`);
    await startRetry(scene, { command, options: { resultFile: path } }).ended;
    expect(JSON.parse(readFileSync(seen, "utf8"))).toMatchObject({
      state: "running",
      outcome: null,
      attempts: [],
    });
    const record = JSON.parse(readFileSync(path, "utf8"));
    expect(record).toMatchObject({
      format: 1,
      state: "ended",
      outcome: "ok",
      because: "exited",
      exit_status: 0,
      status_of: "command",
      command,
      attempt_count: 2,
      circuit: null,
      attempts: [
        { attempt: 1, exit_code: 1, signal: null, status: 1, because: "failed", waited_ms: 0 },
        { attempt: 2, exit_code: 0, signal: null, status: 0, because: "succeeded" },
      ],
    });
  });

  test("says by which bound it was given up", async () => {
    const path = scene.path("given-up.json");
    const { command } = makeCounted(scene, "exit 9");
    const plan = { command, options: { resultFile: path }, backoff: { maxAttempts: 2 } };
    await startRetry(scene, plan).ended;
    const { outcome, because, exit_status } = JSON.parse(readFileSync(path, "utf8"));
    expect([outcome, because, exit_status]).toEqual(["failed", "max-attempts", 9]);
  });

  test("that cannot be written is told once, and changes nothing", async () => {
    const { command, attempts } = makeCounted(scene, "exit $((2 - N))");
    const options = { resultFile: scene.path("none/result.json") };
    const { status, stderr } = await startRetry(scene, { command, options }).ended;
    expect([status, attempts().length, stderr.match(/could not be written/g)?.length]).toEqual([
      0, 2, 1,
    ]);
    expect(existsSync(scene.path("none"))).toBe(false);
  });
});

test("with -v each attempt and each wait has a line", async () => {
  const { command } = makeCounted(scene, "exit $((2 - N))");
  const { stderr } = await startRetry(scene, { command, options: { isVerbose: true } }).ended;
  expect(stderr).toMatch(
    new RegExp(
      "^watchdog: retry: attempt 1 exited with status 1 after \\d+ ms \\(failed\\)\n" +
        "watchdog: retry: waiting \\d+ ms before attempt 2 of at most 5\n" +
        "watchdog: retry: attempt 2 exited with status 0 after \\d+ ms \\(succeeded\\)\n$",
    ),
  );
});
