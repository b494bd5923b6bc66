/** Facts about the machine and its processes, beside what other programs say about the same. */
import { afterAll, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  isAlive,
  isKnownSubreaper,
  readAdopters,
  readCgroup,
  readMachine,
  readProcessIdentity,
} from "../../../src/os/machine.ts";
import { readStat } from "../../../src/os/proc.ts";
import { waitFor } from "../../support/wait-for.ts";

const NEW_NAMESPACE = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc"];

const started: Bun.Subprocess[] = [];

afterAll(async () => {
  for (const child of started) child.kill("SIGKILL");
  await Promise.all(started.map((child) => child.exited));
});

/** Starts a program that says a pid on its first line, and ends with its input, as we do. */
async function startAndRead(...words: string[]): Promise<number> {
  const child = Bun.spawn(words, { stdin: "pipe", stdout: "pipe", stderr: "ignore" });
  started.push(child);
  let text = "";
  const reader = child.stdout.getReader();
  while (!text.includes("\n")) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`${words.join(" ")} said only ${text}`);
    text += new TextDecoder().decode(value);
  }
  return Number(text.trim());
}

function identify(pid: number) {
  const identity = readProcessIdentity(pid);
  if (identity === undefined) throw new Error(`there is no process ${pid}`);
  return identity;
}

function run(...words: string[]): string {
  return Bun.spawnSync(words).stdout.toString().trim();
}

const canUnshare = run(...NEW_NAMESPACE, "echo", "possible") === "possible";
if (!canUnshare) console.error("needs unshare(1), not run here: process 1 of a pid namespace");

describe("this machine", () => {
  const machine = readMachine();

  test("is told by its boot, its name and its namespaces", () => {
    expect(machine.bootId).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(machine.host).toBe(run("uname", "-n"));
    expect(`pid:[${machine.pidNamespace}]`).toBe(readlinkSync("/proc/self/ns/pid"));
    expect(machine.isInitialPidNamespace).toBe(machine.pidNamespace === "4026531836");
    expect(machine.timeNamespace).toMatch(/^\d+$/);
    expect(machine.machineId ?? "0".repeat(32)).toMatch(/^[0-9a-f]{32}$/);
  });

  test("is told by its user, whatever the environment says", () => {
    const before = process.env["USER"];
    process.env["USER"] = "somebody-else";
    expect(readMachine().user).toBe(run("id", "-un"));
    if (before === undefined) delete process.env["USER"];
    else process.env["USER"] = before;
    expect(String(machine.uid)).toBe(run("id", "-u"));
  });

  test("counts pids as its /proc does", () => {
    expect(machine.seesOwnProc).toBe(true);
  });

  test("has a cgroup where there is a unified hierarchy, and else none", () => {
    const text = readFileSync("/proc/self/cgroup", "utf8");
    const line = text.split("\n").find((one) => one.startsWith("0::"));
    expect(machine.cgroup).toBe(line === undefined ? null : line.slice(3));
    expect(readCgroup(process.pid)).toBe(machine.cgroup ?? undefined);
    expect(readCgroup(2 ** 22 + 1)).toBeUndefined();
  });
});

describe("a process", () => {
  test("lives as the one with its start time, and as no other", () => {
    const own = identify(process.pid);
    expect(own).toEqual({ pid: process.pid, start_time: readStat(process.pid)?.startTicks ?? -1 });
    expect(isAlive(own)).toBe("yes");
    expect(isAlive({ ...own, start_time: own.start_time + 1 })).toBe("no");
  });

  test("that never was has no identity and does not live", () => {
    const pid = 2 ** 22 + 1; // above the largest pid_max, proc(5)
    expect(readProcessIdentity(pid)).toBeUndefined();
    expect(isAlive({ pid, start_time: 1 })).toBe("no");
  });

  test("of somebody else, which may not be signalled, lives", () => {
    expect(isAlive(identify(1))).toBe("yes");
  });

  test("that is stopped lives", async () => {
    const pid = await startAndRead("sh", "-c", "echo $$; exec cat");
    run("kill", "-STOP", String(pid));
    await waitFor(() => readStat(pid)?.state === "T", `${pid} to be stopped`);
    expect(isAlive(identify(pid))).toBe("yes");
  });

  test("that is a zombie nobody collects is dead", async () => {
    const pid = await startAndRead("sh", "-c", "sleep 0 & echo $!; exec cat");
    await waitFor(() => readStat(pid)?.state === "Z", `${pid} to be a zombie`);
    expect(isAlive(identify(pid))).toBe("no");
  });

  test("whose first thread has ended lives as long as another goes on", async () => {
    // exit(2) ends the calling thread alone; 60 on x64, 93 on arm64.
    const number = process.arch === "arm64" ? 93 : 60;
    const program = [
      "import ctypes, os, sys, threading",
      "threading.Thread(target=sys.stdin.read).start()",
      "print(os.getpid(), flush=True)",
      `ctypes.CDLL(None).syscall(${number}, 0)`,
    ].join("\n");
    const pid = await startAndRead("python3", "-c", program);
    await waitFor(() => readStat(pid)?.state === "Z", `the first thread of ${pid} to end`);
    expect(isAlive(identify(pid))).toBe("yes");
  });
});

describe("the adopters among our ancestors", () => {
  test("are ancestors, living ones, without process 1", () => {
    const adopters = readAdopters();
    const chain: number[] = [];
    for (let pid = process.ppid; pid > 1; pid = readStat(pid)?.ppid ?? 0) chain.push(pid);
    expect(adopters.filter(({ pid }) => !chain.includes(pid))).toEqual([]);
    expect(adopters.filter((one) => isAlive(one) === "no")).toEqual([]);
  });

  /** What a new process of Bun's says, started through `words`. */
  function askBelow(...words: readonly string[]): { pid: number; start_time: number }[] {
    const module = new URL("../../../src/os/machine.ts", import.meta.url).pathname;
    const program = `
      const { readAdopters } = await import(${JSON.stringify(module)});
      require("fs").writeSync(1, JSON.stringify(readAdopters()));`;
    return JSON.parse(run(...words, process.execPath, "-e", program)) as {
      pid: number;
      start_time: number;
    }[];
  }

  test("are those that run our own program: a watchdog around this one", () => {
    expect(askBelow().map(({ pid }) => pid)).toContain(process.pid);
    expect(askBelow()).toContainEqual(identify(process.pid));
  });

  /** A shell under another name, which waits for what it starts. */
  function askBelowShell(name: string, ...around: readonly string[]): number {
    const directory = mkdtempSync(join(tmpdir(), "watchdog-machine-"));
    try {
      copyFileSync(realpathSync("/bin/sh"), join(directory, name));
      return askBelow(...around, join(directory, name), "-c", '"$@"; true', "systemd").length;
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  }

  test("are known programs by their file, and not shells or words on a command line", () => {
    expect(askBelowShell("conmon")).toBe(askBelow().length + 1);
    expect(askBelowShell("conmons")).toBe(askBelow().length);
  });

  test.skipIf(!canUnshare)("do not name process 1: everybody's orphans come to it", () => {
    expect(askBelowShell("conmon", ...NEW_NAMESPACE)).toBe(0);
    expect(askBelowShell("conmon", ...NEW_NAMESPACE, "sh", "-c", '"$@"; true', "x")).toBe(1);
  });

  test.each([
    ["/usr/lib/systemd/systemd", "(sd-pam)", true],
    ["/usr/bin/bash", "systemd", false],
    [undefined, "systemd", true],
    [undefined, "containerd-shim", true],
    [undefined, "bash", false],
    [undefined, "systemd-logind", false],
    [undefined, undefined, false],
  ])("the program %p with the short name %p: %p", (program, comm, isOne) => {
    expect(isKnownSubreaper({ program, comm })).toBe(isOne);
  });
});
