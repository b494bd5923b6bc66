/**
 * Cases of the field about probes: a server that says 200 and does not work, accepts and does not
 * answer, drips, sends elsewhere, listens on one address alone, or dies under way.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { networkInterfaces } from "node:os";
import { askJson } from "../support/ask.ts";
import { eventOf, readEvents } from "../support/incident-b.ts";
import { inState } from "../support/own-state.ts";
import { findByCommand, waitForCommand } from "../support/processes.ts";
import { answering, type Behaviour, ok, ProbeScene, silent } from "../support/probe-servers.ts";
import { type Ended, openScene, type Scene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const whole = openScene(import.meta.file);
const DOWN = 69;
/** For a machine that is busy, where a test waits for no limit. */
const AMPLE = ["--probe-period", "60s", "--probe-timeout", "60s"];
const ONCE = ["--probe-max-attempts", "1"];
/** So long beyond its limit nothing takes, however busy the machine. */
const LATE_MS = 20_000;

let servers: ProbeScene;
beforeEach(() => {
  servers = new ProbeScene();
});
afterEach(() => servers.close());

async function serve(behave: Behaviour, host = "127.0.0.1"): Promise<string> {
  const { port } = await servers.serve(behave, { host });
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}/health`;
}

/** A state directory of its own: circuits of one name with other settings are no matter here. */
const sceneOf = (job: string): Scene => inState(whole, `${job}.state`);

/** `echo ran` behind a probe. */
function runBehind(job: string, words: readonly string[]): Promise<Ended> {
  const scene = sceneOf(job);
  return scene.run(["--name", job, ...scene.recordTo(job), ...words, "--", "echo", "ran"]);
}

async function expectRefused(job: string, ended: Ended, because: string): Promise<void> {
  expect([ended.status, ended.stdout.toString()]).toEqual([DOWN, ""]);
  expect(whole.readRecord(job)).toMatchObject({
    outcome: "dependency_down",
    because,
    status_of: "watchdog",
    child_pid: null,
  });
  const { verdict } = await askJson(sceneOf(job), ["lease", "show", `job:${job}`]);
  expect(verdict).toBe("free");
}

describe("A-63: a server that says 200 and does not work", () => {
  const SICK = '{"status":false,"error":"no session"}';

  test("is good where nothing but its status is looked at", async () => {
    const ended = await runBehind("a63", [...AMPLE, "--probe", await serve(answering(ok(SICK)))]);
    expect([ended.status, ended.stdout.toString(), ended.stderr]).toEqual([0, "ran\n", ""]);
  });

  test.each([
    ["--probe-expect-json", "status=true", "status is false, expected true"],
    [
      "--probe-expect-body",
      '"status":\\s*true',
      'the body "{"status":false,"error":"no session"}" does not match /"status":\\s*true/',
    ],
  ])("is caught by %s, and the mismatch quoted", async (option, wanted, quoted) => {
    const url = await serve(answering(ok(SICK)));
    const words = [...AMPLE, ...ONCE, option, wanted, "--probe", `api=${url}`];
    const ended = await runBehind(`a63${option}`, words);
    await expectRefused(`a63${option}`, ended, "max-attempts");
    expect(ended.stderr).toBe(
      `watchdog: not started: api is down, no good answer in as many probes as are allowed: ` +
        `${quoted}\n`,
    );
  });

  test("negative twin: the same rules let a healthy one pass", async () => {
    const rules = [
      "--probe-expect-json",
      "status=true",
      "--probe-expect-body",
      '"status":\\s*true',
    ];
    const url = await serve(answering(ok('{"status": true}')));
    const ended = await runBehind("a63c", [...AMPLE, ...ONCE, ...rules, "--probe", url]);
    expect([ended.status, ended.stdout.toString()]).toEqual([0, "ran\n"]);
  });

  /** The door is open to everybody; work is only done, and well, where it is sent. */
  const model = (answer: string): Behaviour => {
    return (socket, request) => {
      const isWork = request.startsWith("POST ") && request.endsWith('{"prompt":"2+2="}');
      socket.write(ok(isWork ? answer : "ok"));
    };
  };
  const CANARY = [
    "--probe-method=POST",
    '--probe-body={"prompt":"2+2="}',
    "--probe-header=Content-Type: application/json",
    "--probe-expect-json=choices[0].text=4",
  ];

  test("is caught by a canary, a request that is real work", async () => {
    const url = await serve(model('{"choices":[{"text":"<unk>"}]}'));
    const ended = await runBehind("a63d", [...AMPLE, ...ONCE, ...CANARY, "--probe", url]);
    await expectRefused("a63d", ended, "max-attempts");
    expect(ended.stderr).toEndWith('choices[0].text is "<unk>", expected 4\n');
  });

  test("negative twin: the canary sings where the work is done", async () => {
    const url = await serve(model('{"choices":[{"text":"4"}]}'));
    const ended = await runBehind("a63e", [...AMPLE, ...ONCE, ...CANARY, "--probe", url]);
    expect([ended.status, ended.stdout.toString()]).toEqual([0, "ran\n"]);
  });

  test("is caught under way, where the canary stops singing", async () => {
    let text = "4";
    const url = await serve((socket, request) =>
      model(`{"choices":[{"text":"${text}"}]}`)(socket, request),
    );
    const often = ["--probe-period", "300ms", "--probe-timeout", "300ms"];
    const scene = sceneOf("a63f");
    const words = ["--name", "a63f", ...often, ...CANARY, "--probe", `api=${url}`];
    const run = scene.start([...words, "--", "sleep", "91063"]);
    await waitForCommand(scene, "sleep 91063");
    text = "";
    const { status, stderr } = await run.ended;
    expect([status, findByCommand(scene, "sleep 91063")]).toEqual([DOWN, []]);
    expect(stderr).toBe(
      'watchdog: api is down, the job is stopped: choices[0].text is "", expected 4\n',
    );
  });
});

describe("A-64: a port that accepts, and nobody answers", () => {
  test("is down after as many attempts as are allowed, each within its limit", async () => {
    const url = await serve(silent);
    const quick = ["--probe-timeout", "400ms", "--probe-backoff", "50ms..100ms"];
    const began = performance.now();
    const words = [...quick, "--probe-max-attempts", "2", "--probe", url];
    const ended = await runBehind("a64", words);
    expect(performance.now() - began).toBeLessThan(2 * 400 + 100 + LATE_MS);
    await expectRefused("a64", ended, "max-attempts");
    expect(ended.stderr).toEndWith("no answer within 400 ms\n");
    expect(servers.connectionCount).toBe(2);
    expect(eventOf(readEvents(sceneOf("a64"), "a64"), "refused").data).toMatchObject({ probes: 2 });
  });
});

describe("A-65: a body that drips", () => {
  test("is over at the limit of the whole exchange", async () => {
    const url = await serve((socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
      const timer = setInterval(() => socket.write("x"), 20);
      socket.on("close", () => clearInterval(timer));
    });
    const began = performance.now();
    const words = ["--probe-timeout", "400ms", ...ONCE, "--probe", url];
    const ended = await runBehind("a65", words);
    expect(performance.now() - began).toBeLessThan(400 + LATE_MS);
    await expectRefused("a65", ended, "max-attempts");
    expect(ended.stderr).toMatch(/ \d+ bytes of an answer within 400 ms, its body had no end\n$/);
  });
});

describe("A-66: a redirect to a login page", () => {
  const redirect = (to: string): string =>
    `HTTP/1.1 302 Found\r\nLocation: ${to}\r\nContent-Length: 0\r\n\r\n`;

  test("is not followed, and not good; the message has its target", async () => {
    const login = await servers.serve(answering(ok()));
    const target = `http://127.0.0.1:${login.port}/login`;
    const url = await serve(answering(redirect(target)));
    const ended = await runBehind("a66", [...AMPLE, ...ONCE, "--probe", url]);
    await expectRefused("a66", ended, "max-attempts");
    expect(ended.stderr).toEndWith(`status 302, redirect to "${target}", expected 200-299\n`);
    expect(login.connections).toEqual([]);
  });

  test("negative twin: it is good where it is expected, and not followed either", async () => {
    const login = await servers.serve(answering(ok()));
    const url = await serve(answering(redirect(`http://127.0.0.1:${login.port}/login`)));
    const wanted = ["--probe-expect-status", "302"];
    const ended = await runBehind("a66b", [...AMPLE, ...ONCE, ...wanted, "--probe", url]);
    expect([ended.status, ended.stdout.toString()]).toEqual([0, "ran\n"]);
    expect(login.connections).toEqual([]);
  });
});

describe("A-67: localhost, and a server on one address alone", () => {
  const hasSix = Object.values(networkInterfaces()).some((all) =>
    all?.some(({ address }) => address === "::1"),
  );

  async function expectRan(host: string, name: string): Promise<void> {
    const { port } = await servers.serve(answering(ok()), { host });
    const words = [...AMPLE, ...ONCE, "--probe", `http://${name}:${port}/`];
    const { status, stdout, stderr } = await runBehind("a67", words);
    expect([status, stdout.toString(), stderr]).toEqual([0, "ran\n", ""]);
  }

  test("that of IPv4 is found", () => expectRan("127.0.0.1", "localhost"));

  // Whatever /etc/hosts leaves out: localhost is both (RFC 6761, section 6.3).
  test.skipIf(!hasSix)("that of IPv6 is found", () => expectRan("::1", "localhost"));

  test.skipIf(!hasSix)("that of IPv6 is found by its number", () => expectRan("::1", "[::1]"));
});

describe("A-68: a dependency that dies in the middle of a batch", () => {
  test("is noticed while the batch waits for it, told once, and the tree ended", async () => {
    const url = await serve(answering(ok()));
    const often = ["--probe-period", "300ms", "--probe-timeout", "300ms"];
    const scene = sceneOf("a68");
    const words = ["--name", "a68", ...often, "--timeout", "100s", "--probe", `api=${url}`];
    const run = scene.start([...words, "--", "sh", "-c", "sleep 91068; :"]);
    await waitForCommand(scene, "sleep 91068");
    const before = servers.connectionCount;
    await waitFor(() => servers.connectionCount >= before + 2, "probes under way");
    await servers.close();
    const { status, stderr } = await run.ended;
    expect([status, findByCommand(scene, "sleep 91068")]).toEqual([DOWN, []]);
    expect(stderr).toMatch(/^watchdog: api is down, the job is stopped: .*connection refused\n$/);
    const names = readEvents(scene, "a68").map(({ name }) => name);
    expect(names).toEqual(["circuit_open", "dependency_down"]);
    const { runs } = await askJson(scene, ["history", "a68"]);
    expect(runs[0]).toMatchObject({ outcome: "dependency_down", because: "circuit-opened" });
  });
});
