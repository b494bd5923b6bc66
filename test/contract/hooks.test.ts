/**
 * Hooks and mail: what the program of a sink gets, what becomes of its end, and that nothing of it
 * is left. Real processes; the helper is run by Bun itself (fixtures/answers-for-a-command.ts).
 */
import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import type { Sent } from "../../src/core/delivery.ts";
import type { Notice } from "../../src/core/notice.ts";
import { makeSink, type SinkKind } from "../../src/core/sink.ts";
import { sendNotice, type SendTerms } from "../../src/notify/send.ts";
import { readInheritance } from "../../src/os/inheritance.ts";
import { Helpers, type HelpersRequest } from "../../src/tree/own-processes.ts";
import { python, readLines, waitForText } from "../support/processes.ts";
import { sampleNotice } from "../support/sample-notice.ts";
import { FIXTURES, openScene, readCommandLine } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const inherited = readInheritance();
/** Long beside what a hook needs, on any machine. */
const AMPLE_MS = 60_000;
const SHORT_MS = 2_000;

const HELPER = program(
  "helper",
  `exec ${process.execPath} ${FIXTURES}/answers-for-a-command.ts "$@"`,
);

function program(name: string, lines: string): string {
  const path = scene.path(`${name}.sh`);
  writeFileSync(path, `#!/bin/sh\n${lines}\n`);
  chmodSync(path, 0o700);
  return path;
}

function makeHelpers(changes: Partial<HelpersRequest> = {}): Helpers {
  const entries = Object.entries(scene.env).map(([name, value]) => `${name}=${value}`);
  const environment = entries.map((entry) => new TextEncoder().encode(entry));
  return new Helpers({ inherited, environment: () => environment, program: HELPER, ...changes });
}

interface Sending extends Partial<SendTerms> {
  readonly kind?: SinkKind;
  readonly notice?: Partial<Notice>;
}

/** Nobody else collects here: the children of the test run are its own. */
async function send(target: string, sending: Sending = {}): Promise<Sent> {
  const { kind = "command", notice = {}, ...terms } = sending;
  const hooks = makeHelpers();
  const spec = makeSink({ kind, source: { kind: "literal", text: target } });
  const told = sampleNotice({ cwd: scene.directory, ...notice });
  const sent: { value?: Sent } = {};
  void sendNotice({ spec, target }, told, {
    timeoutMs: AMPLE_MS,
    hookTimeoutMs: AMPLE_MS,
    version: "9.9",
    hooks,
    ...terms,
  }).then((value) => (sent.value = value));
  return waitFor(() => {
    hooks.collectOwn();
    return hooks.pids.size === 0 && sent.value;
  }, "an end of the hook");
}

/** Proves at once that the scene is empty: a helper has left only when its tree is gone. */
function expectNothingLeft(): void {
  expect(scene.findProcesses()).toEqual([]);
}

/** By this process, from whoever has started it: what is ours is closed by exec (O_CLOEXEC). */
function isInherited(fd: string): boolean {
  const path = `/proc/self/fdinfo/${fd}`;
  if (Number(fd) <= 2 || fd === "9" || !existsSync(path)) return false;
  const [, flags = "0"] = /^flags:\s*([0-7]+)$/m.exec(readFileSync(path, "utf8")) ?? [];
  return (Number.parseInt(flags, 8) & 0o2000000) === 0;
}

describe("a hook", () => {
  test("gets the notice on its input, to the last byte, however long it is", async () => {
    const tail = "line of the output\n".repeat(20_000);
    const file = scene.path("notice.json");
    expect(await send(`cat >${file}`, { notice: { log_tail: tail } })).toEqual({
      kind: "delivered",
    });
    const notice = sampleNotice({ cwd: scene.directory, log_tail: tail });
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ format: 1, ...notice });
  });

  test("need not read it", async () => {
    const notice = { log_tail: "x".repeat(1_000_000) };
    expect(await send("exit 0", { notice })).toEqual({ kind: "delivered" });
  });

  test("gets the notice in variables, each in one line", async () => {
    const file = scene.path("variables");
    const summary = "two\nlines \u001b[1m and a \u202e turn";
    await send(`env | grep ^WATCHDOG_EVENT | sort >${file}`, { notice: { summary } });
    const variables = readLines(file);
    expect(variables).toContain("WATCHDOG_EVENT=failure");
    expect(variables).toContain("WATCHDOG_EVENT_ID=0193-a");
    expect(variables).toContain("WATCHDOG_EVENT_JOB=nightly");
    expect(variables).toContain("WATCHDOG_EVENT_EXIT_STATUS=3");
    expect(variables).toContain("WATCHDOG_EVENT_SINCE=");
    expect(variables).toContain("WATCHDOG_EVENT_SUMMARY=two\\nlines \\x1b[1m and a \\u{202e} turn");
    expect(variables.every((line) => line.startsWith("WATCHDOG_EVENT"))).toBe(true);
  });

  test("works in the directory of the run, or in / where that is gone", async () => {
    const file = scene.path("place");
    await send(`pwd >${file}`);
    expect(readLines(file)).toEqual([scene.directory]);
    const gone = scene.path("gone");
    mkdirSync(gone);
    rmdirSync(gone);
    await send(`pwd >${file}`, { notice: { cwd: gone } });
    expect(readLines(file)).toEqual(["/"]);
    await send(`pwd >${file}`, { notice: { cwd: null } });
    expect(readLines(file)).toEqual(["/"]);
  });

  test("is on no command line, and holds nothing of ours but its own text", async () => {
    const file = scene.path("seen");
    const secret = "tok_of_a_hook_1a2b";
    const lines = [
      `SECRET=${secret}`,
      `exec >${file}`,
      "cat /proc/$$/cmdline /proc/$PPID/cmdline | tr '\\0' ' '",
      // Into no pipe and no file of its own: the shell would have copies of both.
      "ls -m /proc/$$/fd",
      "cut -d' ' -f7 /proc/$$/stat",
    ];
    expect(await send(lines.join("\n"))).toEqual({ kind: "delivered" });
    const seen = readFileSync(file, "utf8");
    expect(seen).not.toContain(secret);
    expect(seen).toContain("/bin/sh /proc/self/fd/9 ");
    expect(seen).toContain(" __hook ");
    expect(seen).toEndWith("\n0\n");
    const [, open = ""] = / __hook (.*)$/m.exec(seen) ?? [];
    // 10: the shell's own descriptor of what it reads. Whoever runs this test may have left some.
    const others = open.split(", ").filter((fd) => fd !== "10" && !isInherited(fd));
    expect(others).toEqual(["0", "1", "2", "9"]);
  });

  test.each([
    ["exit 5", "refused", "hook-failed", "status 5, expected status 0"],
    ["echo no; exit 75", "failed", "hook-failed", "status 75, expected status 0; it said: no"],
    ["kill -SEGV $$", "refused", "hook-failed", "signal SEGV, expected status 0"],
  ] as const)("that ends by `%s` is %s: %s", async (line, kind, because, detail) => {
    expect(await send(line)).toEqual({ kind, because, detail } as Sent);
  });

  test("that is not there is told as the shell has it", async () => {
    const sent = await send("/no/such/hook");
    expect(sent).toMatchObject({ kind: "refused", because: "hook-failed" });
    expect(JSON.stringify(sent)).toMatch(/status 127.*hook: 1: \/no\/such\/hook: not found/);
  });

  test("that leaves something in the background is delivered, and that is ended", async () => {
    for (const line of ["sleep 351 & exit 0", "setsid sleep 352 & exit 0"]) {
      expect(await send(line)).toEqual({ kind: "delivered" });
      expectNothingLeft();
    }
  });

  test("that is killed together with its helper is tried again", async () => {
    expect(await send("kill -9 $PPID")).toMatchObject({
      kind: "failed",
      because: "hook-not-started",
    });
    expectNothingLeft();
  });
});

/** What each leaves, having said so: a file, and a process that does not want to go. */
const TREES: readonly (readonly [string, string])[] = [
  ["ignores TERM", "trap '' TERM; echo >FILE; sleep 361; sleep 361"],
  ["has a child that ignores TERM", "sh -c \"trap '' TERM; echo >FILE; sleep 362 & wait\"; wait"],
  ["stops itself", "echo >FILE; kill -STOP $$"],
  ["has a child in another session", "setsid sh -c \"trap '' TERM; echo >FILE; sleep 363\""],
  [
    "has forked twice",
    `${python("daemonizes.py", "FILE").join(" ")} ` +
      "sh -c \"trap '' TERM; while :; do sleep 364; done\"; sleep 365",
  ],
  ["writes without an end", "echo >FILE; exec yes"],
];

describe("at its limit a hook", () => {
  test.each(TREES)("that %s is ended with all that it has started", async (title, line) => {
    const file = scene.path(`begun-${title.replaceAll(" ", "-")}`);
    const began = performance.now();
    const sent = await send(line.replaceAll("FILE", file), { hookTimeoutMs: SHORT_MS });
    expect(existsSync(file)).toBe(true);
    expect(sent).toMatchObject({ kind: "refused", because: "hook-timeout" });
    const tookMs = performance.now() - began;
    expect(tookMs).toBeGreaterThan(SHORT_MS);
    expectNothingLeft();
  });

  test("is over soon after it and its grace", async () => {
    const began = performance.now();
    await send("trap '' TERM; sleep 366; sleep 366", { hookTimeoutMs: 100 });
    expect(performance.now() - began).toBeLessThan(100 + 1_000 + AMPLE_MS / 2);
    expectNothingLeft();
  });
});

test("a sender that has little time gives a hook what is left, or begins none", async () => {
  const file = scene.path("little");
  const line = `trap 'echo TERM >${file}; exit 0' TERM; echo >${file}; sleep 372 & wait`;
  const ended = await send(line, { timeoutMs: 8_000, hookTimeoutMs: undefined });
  expect(ended).toMatchObject({ kind: "refused", because: "hook-timeout" });
  expect(readLines(file)).toEqual(["TERM"]);
  const unbegun = await send(`echo x >${file}`, { timeoutMs: 1_000, hookTimeoutMs: undefined });
  expect(unbegun).toMatchObject({ kind: "failed", because: "stopped" });
  expect(readLines(file)).toEqual(["TERM"]);
  expectNothingLeft();
});

test("a sender that stops waits no longer, and the hook goes with it", async () => {
  const file = scene.path("stopped");
  const stop = new AbortController();
  const sending = send(`echo >${file}; sleep 371`, { signal: stop.signal });
  await waitForText(file);
  stop.abort();
  expect(await sending).toMatchObject({ kind: "failed", because: "stopped" });
  expectNothingLeft();
});

test("without an order the helper does nothing", async () => {
  const ended = await scene.startProgram([HELPER, "__hook"]).ended;
  expect(ended.status).toBe(64);
});

describe("mail", () => {
  const outbox = scene.path("mail");
  const sendmail = program("sendmail", `echo "$@" >${outbox}; cat >>${outbox}`);

  test("is handed to sendmail with headers and text", async () => {
    expect(await send("ops@example.org", { kind: "mail", sendmail })).toEqual({
      kind: "delivered",
    });
    const [args, ...mail] = readLines(outbox);
    expect(args).toBe("-i -t");
    expect(mail).toContain("To: ops@example.org");
    expect(mail).toContain("Subject: nightly: failure on host1");
    expect(mail).toContain("nightly ended with status 3");
    expect(mail).toContain("last line");
  });

  test("of a name with a line end has the headers of any other", async () => {
    await send("root", { kind: "mail", sendmail, notice: { job: "a\nBcc: evil@example.org" } });
    const mail = readLines(outbox);
    const end = mail.indexOf("");
    expect(mail.slice(0, end).some((line) => line.startsWith("Bcc"))).toBe(false);
    expect(mail.slice(0, end)).toContain("Subject: a Bcc: evil@example.org: failure on host1");
  });

  test("to what is no address is refused, and starts nothing", async () => {
    for (const address of ["-oQ/tmp", "a b", "a@b\nBcc: c", "<a@b>", ""]) {
      const sent = await send(address, { kind: "mail", sendmail: "/no/such" });
      expect(sent).toMatchObject({ kind: "refused", because: "not-an-address" });
    }
  });

  test("is delivered by what the program leaves behind, which has the time for it", async () => {
    const late = program("late", `cat >${outbox}; (sleep 0.5; echo sent >>${outbox}) & exit 0`);
    expect(await send("root", { kind: "mail", sendmail: late })).toEqual({ kind: "delivered" });
    expect(readLines(outbox).at(-1)).toBe("sent");
    expectNothingLeft();
  });

  test("is taken where what the program leaves behind has no end, and that is ended", async () => {
    const endless = program("endless", "sleep 382 & exit 0");
    const sending = { kind: "mail", sendmail: endless, hookTimeoutMs: SHORT_MS } as const;
    expect(await send("root", sending)).toEqual({ kind: "delivered" });
    expectNothingLeft();
  });

  test("that the program fails to take is tried again, unless it will never take it", async () => {
    for (const [status, kind] of [
      [1, "failed"],
      [68, "failed"],
      [78, "failed"],
      [64, "refused"],
      [65, "refused"],
      [67, "refused"],
    ] as const) {
      const away = program("away", `exit ${status}`);
      const sent = await send("root", { kind: "mail", sendmail: away });
      expect([status, sent]).toMatchObject([status, { kind, because: "hook-failed" }]);
    }
  });

  test("whose program has no end is tried again, and nothing of it is left", async () => {
    const slow = program("slow", "sleep 383");
    const sending = { kind: "mail", sendmail: slow, hookTimeoutMs: SHORT_MS } as const;
    expect(await send("root", sending)).toMatchObject({ kind: "failed", because: "hook-timeout" });
    expectNothingLeft();
  });

  test("that has no place in the queue now is tried again", async () => {
    const busy = program("busy", "exit 75");
    const sent = await send("root", { kind: "mail", sendmail: busy });
    expect(sent).toMatchObject({ kind: "failed", because: "hook-failed" });
    const none = await send("root", { kind: "mail", sendmail: "/no/such/sendmail" });
    expect(none).toMatchObject({ kind: "failed", because: "hook-not-started" });
  });
});

test("no process of the helpers is seen with what it was told", async () => {
  const file = scene.path("waiting");
  const stop = new AbortController();
  const secret = "tok_in_the_order";
  const sending = send(`: ${secret}; echo >${file}; sleep 381`, { signal: stop.signal });
  await waitForText(file);
  // The helper, the shell, and what that runs.
  const lines = await waitFor(() => {
    const seen = scene.findProcesses().map((pid) => readCommandLine(pid));
    return seen.length > 2 && seen;
  }, "all three");
  stop.abort();
  await sending;
  expect(lines.join("\n")).not.toContain(secret);
});
