/**
 * Servers that hang, or answer without an end, while a job waits for its start: whatever they do,
 * the start is refused within its bound, the lease is free again, and watchdog stays small.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { askJson } from "../support/ask.ts";
import { inState } from "../support/own-state.ts";
import { readStatusLine } from "../support/processes.ts";
import { answering, type Behaviour, ProbeScene, silent } from "../support/probe-servers.ts";
import { openScene, RELEASE, rootTest, type Started } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const whole = openScene(import.meta.file);
const DOWN = 69;
const TIMEOUT_MS = 300;
const ATTEMPTS = 3;
const LONGEST_WAIT_MS = 50;
/** So long beyond its bound nothing takes, however busy the machine. */
const LATE_MS = 20_000;
const BOUNDED = [
  `--probe-timeout=${TIMEOUT_MS}ms`,
  `--probe-max-attempts=${ATTEMPTS}`,
  `--probe-backoff=10ms..${LONGEST_WAIT_MS}ms`,
];
/** What a start with such a probe needs, and one run of the collector leaves behind. */
const MOST_GROWTH_BYTES = 40_000_000;

let servers: ProbeScene;
beforeEach(() => {
  servers = new ProbeScene();
});
afterEach(() => servers.close());

/** Of a process that goes on, the most that it ever had in memory (proc(5), VmHWM). */
function readPeakBytes(pid: number): number | undefined {
  const [kilobytes] = readStatusLine(pid, "VmHWM")?.split(" ") ?? [];
  return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
}

/** Resolves with the last that was seen before its end. */
async function watchPeak(run: Started): Promise<number> {
  let peak = 0;
  await waitFor(
    () => {
      const seen = readPeakBytes(run.pid);
      peak = Math.max(peak, seen ?? 0);
      return seen === undefined;
    },
    "its end",
    { stepMs: 2 },
  );
  return peak;
}

interface Refusal {
  readonly spentMs: number;
  readonly peakBytes: number;
  readonly said: string;
}

/** A start that is to be refused. */
async function refuse(job: string, words: readonly string[]): Promise<Refusal> {
  const scene = inState(whole, `${job}.state`);
  const began = performance.now();
  const named = ["--name", job, ...scene.recordTo(job), ...BOUNDED];
  const run = scene.start([...named, ...words, "--", "echo", "ran"]);
  const [ended, peakBytes] = await Promise.all([run.ended, watchPeak(run)]);
  const spentMs = performance.now() - began;
  expect([ended.status, ended.stdout.toString()]).toEqual([DOWN, ""]);
  expect(scene.readRecord(job)).toMatchObject({ outcome: "dependency_down", child_pid: null });
  const { verdict } = await askJson(scene, ["lease", "show", `job:${job}`]);
  expect(verdict).toBe("free");
  return { spentMs, peakBytes, said: ended.stderr };
}

const at = async (behave: Behaviour): Promise<string> =>
  `http://127.0.0.1:${(await servers.serve(behave)).port}/`;

function drip(text: string): Behaviour {
  return (socket) => {
    socket.write(text);
    const timer = setInterval(() => socket.write("x"), 20);
    socket.on("close", () => clearInterval(timer));
  };
}

describe("a start whose dependency hangs is refused within its bound", () => {
  const HANGS: readonly (readonly [stage: string, said: string, url: () => Promise<string>])[] = [
    [
      "a full queue of connections",
      "no connection to",
      async () => `http://127.0.0.1:${await servers.fullQueue()}/`,
    ],
    [
      "no handshake of TLS",
      "no TLS handshake within 300 ms",
      async () => (await at(silent)).replace("http", "https"),
    ],
    ["no answer", "no answer within 300 ms", () => at(silent)],
    ["a head without an end", "its head had no end", () => at(drip("HTTP/1.1 200 OK\r\nX: "))],
    [
      "one byte after the other",
      "its body had no end",
      () => at(drip("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")),
    ],
  ];

  test.each(HANGS)("%s", async (stage, said, makeUrl) => {
    const job = stage.replaceAll(" ", "-");
    const url = await makeUrl();
    const refusal = await refuse(job, ["--probe", url]);
    expect(refusal.said).toStartWith("watchdog: not started: ");
    expect(refusal.said).toContain(said);
    const boundMs = ATTEMPTS * TIMEOUT_MS + (ATTEMPTS - 1) * LONGEST_WAIT_MS;
    expect(refusal.spentMs).toBeGreaterThanOrEqual(ATTEMPTS * TIMEOUT_MS - ATTEMPTS);
    expect(refusal.spentMs).toBeLessThan(boundMs + LATE_MS);
  });

  test("negative twin: a head that has its end in time is good", async () => {
    const url = await at((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n");
      setTimeout(() => socket.write("Content-Length: 0\r\n\r\n"), 50);
    });
    const words = ["--probe-period", "60s", "--probe-timeout", "60s", "--probe", url];
    const { status, stdout } = await whole.run([...words, "--", "echo", "ran"]);
    expect([status, stdout.toString()]).toEqual([0, "ran\n"]);
  });
});

rootTest("a start whose name server does not answer is refused within its bound", async () => {
  const address = "127.0.0.77";
  const nameServer = await Bun.udpSocket({ hostname: address, port: 53, socket: {} });
  try {
    const configuration = whole.path("resolv.conf");
    writeFileSync(configuration, `nameserver ${address}\noptions timeout:30 attempts:1\n`);
    const mount = `mount --bind '${configuration}' /etc/resolv.conf && exec "$@"`;
    const within = ["unshare", "-m", "sh", "-c", mount, "sh"];
    const words = ["run", ...BOUNDED, "--probe", "http://items.example/", "--", "echo", "ran"];
    const began = performance.now();
    const { status, stderr } = await whole.startProgram([...within, RELEASE, ...words]).ended;
    expect(status).toBe(DOWN);
    expect(stderr).toContain("no address for the name items.example within 300 ms");
    expect(performance.now() - began).toBeLessThan(ATTEMPTS * 1_000 + LATE_MS);
  } finally {
    nameServer.close();
  }
});

describe("a start whose dependency answers without an end leaves watchdog small", () => {
  async function expectSmall(job: string, words: readonly string[]): Promise<Refusal> {
    // The same with an answer that is short, and as wrong.
    const small = await at(answering("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"));
    const usual = await refuse(`${job}-usual`, ["--probe", small, ...words.slice(2)]);
    const refusal = await refuse(job, words);
    expect(refusal.peakBytes).toBeLessThan(usual.peakBytes + MOST_GROWTH_BYTES);
    return refusal;
  }

  test("a body that goes on and on", async () => {
    const chunk = Buffer.alloc(256 * 1024, "x");
    let sent = 0;
    const url = await at((socket) => {
      const pour = (): void => {
        while (!socket.destroyed && socket.write(chunk)) sent += chunk.length;
      };
      socket.on("drain", pour);
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      pour();
    });
    const { said } = await expectSmall("endless", ["--probe", url]);
    expect(said).toContain("more than 1048576 bytes");
    expect(sent).toBeLessThan(ATTEMPTS * 50_000_000);
  });

  const bomb = gzipSync(Buffer.alloc(400_000_000));
  const headOf = (body: Uint8Array): string =>
    `HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${body.length}\r\n\r\n`;
  const explode: Behaviour = (socket) => {
    socket.write(headOf(bomb));
    socket.write(bomb);
  };

  test.each([
    ["--probe-expect-body", "ok"],
    ["--probe-expect-json", "status=ok"],
  ])("a gzip bomb, where the body is looked at by %s", async (option, wanted) => {
    const job = `bomb${option}`;
    const { said } = await expectSmall(job, ["--probe", await at(explode), option, wanted]);
    expect(said).toContain("1048576 bytes");
  });

  test("negative twin: a body that is packed, and small, is read", async () => {
    const packed = gzipSync("ok");
    const url = await at((socket) => {
      socket.write(headOf(packed));
      socket.write(packed);
    });
    const words = ["--probe-timeout", "10s", "--probe-expect-body", "^ok$", "--probe", url];
    const { status, stdout } = await whole.run([...words, "--", "echo", "ran"]);
    expect([status, stdout.toString()]).toEqual([0, "ran\n"]);
  });
});
