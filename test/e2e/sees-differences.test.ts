/**
 * "Not quite transparent": what the command sees otherwise than without watchdog, each line of the
 * README's table as it is documented there. A difference that is not here is a fault.
 */
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { PYTHON, runBoth, runPrepared, runShell, waitForEach } from "../support/outside.ts";
import { FIXTURES, openScene, RELEASE } from "../support/scene.ts";

const scene = openScene(import.meta.file);

const lineOf = (text: Buffer, key: string): string | undefined =>
  text
    .toString()
    .split("\n")
    .find((line) => line.startsWith(key));

test("exec'ed by a shell, the soft limit of open files is that of its parent", async () => {
  const limits = { NOFILE: [177, 1_999] } as const;
  const raised = { NOFILE: [99, 1_999] } as const;
  const pair = await runBoth(scene, { limits, raise_limits: raised }, [
    "/bin/cat",
    "/proc/self/limits",
  ]);
  expect(lineOf(pair.without.stdout, "Max open files")).toMatch(/ 99 +1999 /);
  expect(lineOf(pair.with.stdout, "Max open files")).toMatch(/ 177 +1999 /);
});

test("a hard limit of open files below the parent's soft one is kept", async () => {
  const limits = { NOFILE: [300, 1_999] } as const;
  const raised = { NOFILE: [50, 100] } as const;
  const pair = await runBoth(scene, { limits, raise_limits: raised }, [
    "/bin/cat",
    "/proc/self/limits",
  ]);
  expect(lineOf(pair.with.stdout, "Max open files")).toMatch(/ 100 +100 /);
});

test("`$_` names watchdog, because a shell set it", async () => {
  const script = `/usr/bin/env | grep ^_=; "$W" run --log off -- /usr/bin/env | grep ^_=`;
  const { ended } = scene.startProgram(["bash", "-c", script], { env: { W: RELEASE } });
  expect((await ended).stdout.toString()).toBe(`_=/usr/bin/env\n_=${RELEASE}\n`);
});

/** Where descriptors 0, 1 and 2 of the command lead, "closed" where nowhere. */
async function lookAtStandardThree(closed: readonly number[], mode?: string): Promise<string[]> {
  const target = scene.path("three");
  const command = [PYTHON, `${FIXTURES}/names-its-standard-descriptors.py`, target];
  const prefix = mode === undefined ? [] : [RELEASE, "run", "--log", mode, "--"];
  const ended = await runPrepared(scene, { close: closed }, [...prefix, ...command]);
  expect(ended.code).toBe(0);
  return readFileSync(target, "utf8").split("\n").slice(0, -1);
}

test("descriptors 0, 1 and 2 that the caller closed stay closed with --log off", async () => {
  for (const closed of [[0], [1], [2], [0, 1, 2]]) {
    const without = await lookAtStandardThree(closed);
    const wrapped = await lookAtStandardThree(closed, "off");
    for (const fd of closed) expect([without[fd], wrapped[fd]]).toEqual(["closed", "closed"]);
  }
}, 180_000);

test("descriptors 1 and 2 that the caller closed lead nowhere while output is copied", async () => {
  for (const mode of ["on", "auto"]) {
    const [zero, one, two] = await lookAtStandardThree([0, 1, 2], mode);
    expect(zero).toBe("closed");
    expect([one, two].map((target) => target?.replace(/\d+/, "N"))).toEqual([
      "pipe:[N]",
      "pipe:[N]",
    ]);
  }
}, 180_000);

test("closed descriptors change no status, and nothing lands in a file of watchdog's", async () => {
  const script = "echo to-one; echo to-two >&2; exit 3";
  for (const mode of ["off", "on", "auto"]) {
    const command = ["--log", mode, ...scene.recordTo("closed"), "--", "/bin/sh", "-c", script];
    const ended = await runPrepared(scene, { close: [0, 1, 2] }, [RELEASE, "run", ...command]);
    expect([mode, ended.code]).toEqual([mode, 3]);
    expect(scene.readRecord("closed").exit_code).toBe(3);
  }
});

test("the core file is the command's alone, and the bit in the status is gone", async () => {
  const directory = scene.path("cores");
  mkdirSync(directory);
  const die = "cd '" + directory + "'; ulimit -c unlimited; kill -ABRT $$";
  const inner = die.replaceAll("$", "\\$");
  const wrapped = `ulimit -c unlimited; exec "${RELEASE}" run --log off -- /bin/sh -c "${inner}"`;
  const [plain, ours] = await waitForEach(scene, [
    ["/bin/sh", "-c", die],
    ["/bin/sh", "-c", wrapped],
  ]);
  expect(plain?.slice(0, 2)).toEqual([null, 6]);
  expect(ours).toEqual([null, 6, false]);
  expect(existsSync(`${process.cwd()}/core`)).toBe(false);
});

test("SIGPIPE and SIGXFSZ are at their default, also where the caller ignored them", async () => {
  const pair = await runBoth(scene, { ignore: [13, 25] }, ["/bin/cat", "/proc/self/status"]);
  expect(lineOf(pair.without.stdout, "SigIgn")).toBe("SigIgn:\t0000000001001000");
  expect(lineOf(pair.with.stdout, "SigIgn")).toBe("SigIgn:\t0000000000000000");
});

test("SIGCHLD is at its default, also where the caller ignored it", async () => {
  const pair = await runBoth(scene, { ignore: [17] }, ["/bin/cat", "/proc/self/status"]);
  expect(lineOf(pair.without.stdout, "SigIgn")).toBe("SigIgn:\t0000000000010000");
  expect(lineOf(pair.with.stdout, "SigIgn")).toBe("SigIgn:\t0000000000000000");
  const script = `trap "" CHLD; "$W" run --log on -- sh -c 'exit 7'; echo $?`;
  const { ended } = scene.startProgram(["bash", "-c", script], { env: { W: RELEASE } });
  expect((await ended).stdout.toString()).toBe("7\n");
});

test("A-34: in a directory that was deleted nothing is started", async () => {
  const script = `mkdir "$D/gone"; cd "$D/gone"; rmdir "$D/gone"
    "$W" run -- touch "$D/started"; echo $?; timeout 5 touch "$D/started-without"; echo $?`;
  const ended = await runShell(scene, script, { env: { D: scene.directory } });
  expect(ended.stdout.toString()).toBe("1\n0\n");
  expect(existsSync(scene.path("started"))).toBe(false);
});

test("descriptors 1 and 2 are pipes while copied, the caller's own if not", async () => {
  const script = "readlink /proc/$$/fd/1 /proc/$$/fd/2";
  const target = scene.path("target");
  const look = async (mode: string): Promise<string[]> => {
    const line = `"$W" run --log ${mode} -- sh -c '${script}' >"$T" 2>>"$T.err"`;
    await runShell(scene, line, { env: { T: target } });
    return readFileSync(target, "utf8").split("\n").slice(0, -1);
  };
  expect(await look("off")).toEqual([target, `${target}.err`]);
  for (const mode of ["on", "auto"]) {
    const [one, two] = await look(mode);
    expect(one).toMatch(/^pipe:\[\d+\]$/);
    expect(two).toMatch(/^pipe:\[\d+\]$/);
  }
});

test("without a terminal the command has a process group of its own", async () => {
  const pair = await runBoth(scene, { fresh_session: true }, ["/bin/cat", "/proc/self/stat"]);
  const ids = (text: Buffer): number[] => {
    const [pid, rest] = [text.toString().split(" ")[0], text.toString().split(") ")[1]];
    return [Number(pid), ...(rest ?? "").split(" ").slice(1, 4).map(Number)];
  };
  const [pid, parent, group, session] = ids(pair.with.stdout);
  expect(group).toBe(pid);
  expect(session).toBe(parent);
});

test("the parent is watchdog, which has the pid that the command would have had", async () => {
  const script = `echo $$; exec "$W" run --log off -- sh -c 'echo $PPID'`;
  const [shell, parent] = (await runShell(scene, script)).stdout.toString().split("\n");
  expect(parent).toBe(shell);
});

test("orphans of the command are watchdog's children, not process 1's", async () => {
  const script = `(sh -c 'echo $$ >"$D/orphan"; sleep 91077' & )
    until grep -q . "$D/orphan" 2>/dev/null; do sleep 0.02; done
    until [ "$(cut -d" " -f4 /proc/$(cat "$D/orphan")/stat)" != $$ ]; do sleep 0.02; done
    cut -d" " -f4 /proc/$(cat "$D/orphan")/stat; echo $PPID`;
  const ended = await scene.run(["--log", "off", "--kill-after", "0", "--", "sh", "-c", script], {
    env: { D: scene.directory },
  });
  const [parent, watchdog] = ended.stdout.toString().split("\n");
  expect(parent).toBe(watchdog);
}, 180_000);

test("LISTEN_PID and LISTEN_FDS are taken away, because they name another process", async () => {
  const env = { LISTEN_PID: "1", LISTEN_FDS: "1", LISTEN_FDNAMES: "x", NOTIFY_SOCKET: "/run/n" };
  const ended = await scene.run(["--log", "off", "--", "env"], { env });
  const lines = ended.stdout.toString().split("\n");
  expect(
    lines.filter((line) => line.startsWith("LISTEN_P") || line.startsWith("LISTEN_FDS")),
  ).toEqual([]);
  expect(lines).toContain("NOTIFY_SOCKET=/run/n");
});

test("a directory that cannot be entered by name any more does not matter", async () => {
  const inner = scene.path("moved");
  mkdirSync(inner);
  const script = `cd "$D/moved" && mv "$D/moved" "$D/elsewhere" &&
    "$W" run --log off -- /bin/pwd -P`;
  const ended = await runShell(scene, script, { env: { D: scene.directory } });
  expect([ended.stdout.toString(), ended.stderr]).toEqual([`${scene.path("elsewhere")}\n`, ""]);
});

test("output that cannot be written ends the command by SIGPIPE, and is told", async () => {
  const write = "while echo x; do sleep 0.01; done; exit 7";
  for (const [mode, expected] of [
    ["off", "7\n"],
    ["on", "141\n"],
  ] as const) {
    const script = `"$W" run --log ${mode} -- sh -c '${write}' >/dev/full 2>"$D/full"; echo $?`;
    const ended = await runShell(scene, script, { env: { D: scene.directory } });
    expect([mode, ended.stdout.toString()]).toEqual([mode, expected]);
    const isTold = readFileSync(scene.path("full"), "utf8").includes("ENOSPC");
    expect([mode, isTold]).toEqual([mode, mode === "on"]);
  }
}, 180_000);
