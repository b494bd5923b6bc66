/** The cases: how often something is tried, and how long is waited between. */
import { describe, expect, test } from "bun:test";
import { ask } from "../support/ask.ts";
import { openServers } from "../support/counting-server.ts";
import { readLines } from "../support/processes.ts";
import { openScene } from "../support/scene.ts";
import { DOWN } from "../support/shared-circuit.ts";

const scene = openScene(import.meta.file);
const openServer = openServers();
const LIMIT_MS = 120_000;

describe("A-69: a start that waits for a server that answers 500", () => {
  const NOISE_MS = 200;

  test(
    "asks once and so many times more as are allowed, at waits that grow to the cap and are spread",
    async () => {
      const server = openServer();
      server.goDown();
      const backoff = ["--probe-backoff", "100ms..400ms", "--probe-timeout", "1s"];
      const waits: number[] = [];
      for (let round = 1; round <= 3; round += 1) {
        const { status, stdout, stderr } = await scene.run([
          "--name",
          "a69",
          "--probe",
          server.url,
          ...backoff,
          "--probe-max-attempts",
          "6",
          "--",
          "echo",
          "ran",
        ]);
        expect([status, stdout.toString(), server.count]).toEqual([DOWN, "", 6 * round]);
        expect(stderr).toMatch(/, no good answer in as many probes as are allowed: status 500/);
        const times = server.times.slice(-6);
        waits.push(...times.slice(1).map((at, index) => at - (times[index] ?? 0)));
      }
      // 100, 200, 400, 400, 400 ms bound them. A machine that stands still does so once, not
      // thrice.
      const shortest = [0, 1, 2, 3, 4].map((n) => Math.min(...waits.filter((_, i) => i % 5 === n)));
      const isBounded = shortest.map((wait, n) => wait < Math.min(400, 100 * 2 ** n) + NOISE_MS);
      expect([waits.length, isBounded]).toEqual([15, Array(5).fill(true)]);
      const capped = waits.filter((_, index) => index % 5 >= 2);
      expect(Math.max(...capped)).toBeGreaterThan(100);
      // Nine waits under the same bound: by full jitter they are as far apart once in a million.
      expect(Math.max(...capped) - Math.min(...capped)).toBeGreaterThan(50);
    },
    LIMIT_MS,
  );

  test("waits no longer than the cap, however often it asks", async () => {
    const server = openServer();
    server.goDown();
    // Twice as long each time it would be an hour.
    const backoff = ["--probe-backoff", "10ms..20ms", "--probe-max-attempts", "20"];
    const { status } = await scene.run(["--probe", server.url, ...backoff, "--", "true"]);
    expect([status, server.count]).toEqual([DOWN, 20]);
  });

  test(
    "is bounded by its time as well, whichever comes first",
    async () => {
      const server = openServer();
      server.goDown();
      const backoff = ["--probe-backoff", "50ms..50ms", "--probe-max-attempts", "100000"];
      const words = [...backoff, "--probe-timeout", "100ms"];
      for (const [bound, says] of [
        ["--probe-startup-wait", "within --probe-startup-wait"],
        ["--probe-max-elapsed", "within the time that is allowed"],
      ] as const) {
        const began = performance.now();
        const job = [...words, bound, "1s", "--", "echo", "ran"];
        const { status, stdout, stderr } = await scene.run(["--probe", server.url, ...job]);
        expect([status, stdout.toString()]).toEqual([DOWN, ""]);
        expect(stderr).toContain(`no good answer ${says}`);
        // No attempt begins that could not end within it.
        expect(performance.now() - began).toBeGreaterThan(800);
      }
    },
    LIMIT_MS,
  );
});

describe("A-71: what cannot get better", () => {
  const RETRY = ["retry", "--max-attempts", "4", "--backoff", "10ms..40ms"];

  test("is not tried again: a command that is not there is 127 after one attempt", async () => {
    const path = scene.path("not-there.json");
    const { status, stderr } = await ask(scene, [
      ...RETRY,
      "--result-file",
      path,
      "--",
      "/no/such/cmd",
    ]);
    expect(status).toBe(127);
    expect(stderr).toMatch(/^watchdog: error: \/no\/such\/cmd: [^\n]+\n$/);
    const record = JSON.parse(readLines(path).join("\n"));
    expect(record).toMatchObject({ exit_status: 127 });
    expect(record.attempts).toHaveLength(1);
  });

  test("can be tried four times: the job's own status, and one record of them all", async () => {
    const [tries, path] = [scene.path("tries"), scene.path("four.json")];
    const { status, stderr } = await ask(scene, [
      ...RETRY,
      "--result-file",
      path,
      "--",
      "sh",
      "-c",
      `echo try >>'${tries}'; exit 9`,
    ]);
    expect([status, readLines(tries).length]).toEqual([9, 4]);
    expect(stderr).toMatch(/^watchdog: retry: gave up after 4 attempts in [^\n]+ status 9\n$/);
    const record = JSON.parse(readLines(path).join("\n"));
    const statuses = record.attempts.map((attempt: { status: number }) => attempt.status);
    expect([statuses, record.exit_status, record.because]).toEqual([
      [9, 9, 9, 9],
      9,
      "max-attempts",
    ]);
  });
});
