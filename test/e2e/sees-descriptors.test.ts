/**
 * Descriptors of the command: the caller's, all of them, and none of watchdog's. Also those that
 * look like watchdog's own, an eventfd and an epoll.
 */
import { expect, test } from "bun:test";
import { runBoth, runShell, type Surroundings } from "../support/outside.ts";
import { openScene, RELEASE } from "../support/scene.ts";

const scene = openScene(import.meta.file);

/** `ls` opens one of its own for the listing, in both runs the lowest that is free. */
async function list(surroundings: Surroundings, mode = "off"): Promise<string[][]> {
  const command = ["ls", "-l", "/proc/self/fd"];
  const pair = await runBoth(scene, surroundings, command, ["--log", mode]);
  return [pair.without, pair.with].map(({ stdout }) =>
    stdout
      .toString()
      .split("\n")
      .map((line) => /(\d+) -> (.*)$/.exec(line)?.slice(1).join(" ") ?? "")
      .filter((line) => line !== "")
      // Each run has its own numbers, and the test's own pipes are sockets where they are not
      // copied.
      .map((line) => line.replace(/(pipe|socket):\[\d+\]/, "stream"))
      .map((line) => line.replace(/\/proc\/\d+/, "/proc/self")),
  );
}

test("A-22: the command has 0, 1 and 2, and nothing of watchdog's", async () => {
  for (const mode of ["off", "on", "auto"]) {
    const [without = [], wrapped = []] = await list({}, mode);
    expect(wrapped).toEqual(without);
    expect(wrapped.length).toBe(4);
  }
});

test("descriptors of the caller arrive, whatever they are", async () => {
  for (const open of [
    ["pipe"],
    ["eventfd"],
    ["epoll"],
    ["epoll-of-eventfd"],
    ["pipe", "eventfd", "epoll-of-eventfd", "pipe"],
    ["epoll-of-eventfd", "eventfd", "eventfd", "pipe"],
  ]) {
    for (const mode of ["off", "on"]) {
      const [without = [], wrapped = []] = await list({ open }, mode);
      expect([open, wrapped]).toEqual([open, without]);
      expect(wrapped.length).toBeGreaterThan(4);
    }
  }
}, 180_000);

test("two hundred descriptors of the caller arrive", async () => {
  const open = Array.from({ length: 100 }, () => "pipe");
  const [without = [], wrapped = []] = await list({ open });
  expect(wrapped).toEqual(without);
  expect(wrapped.length).toBe(204);
});

test("a descriptor that the caller closes on exec is not revived", async () => {
  const script = `exec 5</dev/null; exec 7<>"$D/seven"; "$W" run --log off -- ls /proc/self/fd`;
  const ended = await runShell(scene, script, { env: { D: scene.directory } });
  expect(ended.stdout.toString().split("\n").slice(0, -1).map(Number)).toEqual([0, 1, 2, 3, 5, 7]);
});

test("`<(…)` of bash works, and its writer is not one of the job's processes", async () => {
  const script = `"$W" run --log off -- cat <(echo one) <(sleep 0.1; echo two); echo $?`;
  const { ended } = scene.startProgram(["bash", "-c", script], { env: { W: RELEASE } });
  const found = await ended;
  expect([found.stdout.toString(), found.stderr]).toEqual(["one\ntwo\n0\n", ""]);
}, 180_000);

test("output through `>(…)` of bash arrives, with a log and without", async () => {
  for (const mode of ["on", "off"]) {
    const script = `"$W" run --log ${mode} -- sh -c 'echo out; echo err >&2; echo five >&5' \
      5> >(sed s/^/five:/) 2> >(sed s/^/err:/ >&1); wait`;
    const { ended } = scene.startProgram(["bash", "-c", script], { env: { W: RELEASE } });
    const lines = (await ended).stdout.toString().split("\n").sort();
    expect(lines).toEqual(["", "err:err", "five:five", "out"]);
  }
}, 180_000);

test("the jobserver of `make -j` reaches a make below watchdog", async () => {
  await Bun.write(
    scene.path("Makefile"),
    [
      "all: one",
      `one:\n\t+"$(W)" run --log $(MODE) -- $(MAKE) -f Makefile inner`,
      "inner: a b c d",
      "a b c d:\n\t@echo $@",
      "",
    ].join("\n"),
  );
  for (const MODE of ["on", "off"]) {
    const { ended } = scene.startProgram(["make", "-s", "-j3", "-f", "Makefile", "all"], {
      cwd: scene.directory,
      env: { W: RELEASE, MODE },
    });
    const found = await ended;
    expect(found.stderr).toBe("");
    expect(
      found.stdout
        .toString()
        .split("\n")
        .filter((line) => /^[abcd]$/.test(line))
        .sort(),
    ).toEqual(["a", "b", "c", "d"]);
    expect(found.status).toBe(0);
  }
}, 180_000);

test("a lock of flock(1) that the caller holds is the command's too", async () => {
  const script = `exec 9>"$D/lock"; flock 9
    "$W" run --log on -- sh -c 'readlink /proc/$$/fd/9
      ! flock -n "$D/lock" true && flock -n 9 && echo held'`;
  const ended = await runShell(scene, script, { env: { D: scene.directory } });
  expect(ended.stdout.toString()).toBe(`${scene.path("lock")}\nheld\n`);
});

test("A-22: a second run is not held up by a daemon that the first one left", async () => {
  const script = "setsid sleep 91022 >/dev/null 2>&1 </dev/null &";
  const first = await scene.run(["--leftovers", "leave", "--log", "off", "--", "sh", "-c", script]);
  expect(first.code).toBe(0);
  const second = await scene.run(["--log", "on", "--", "echo", "second"]);
  expect([second.code, second.stdout.toString()]).toEqual([0, "second\n"]);
  const [daemon = 0, ...others] = scene.findProcesses();
  expect(others).toEqual([]);
  const listed = await scene.startProgram(["ls", "-l", `/proc/${daemon}/fd`]).ended;
  expect([...(listed.stdout.toString().match(/ -> .*/g) ?? [])]).toEqual(
    Array(3).fill(" -> /dev/null"),
  );
  process.kill(daemon, "SIGKILL");
}, 180_000);

test("nothing is read from standard input but what the command reads", async () => {
  for (const MODE of ["on", "off"]) {
    const script = `printf 'one\\ntwo\\n' | {
      "$W" run --log $MODE -- sh -c 'read -r x; echo "[$x]"'; cat; }`;
    const ended = await runShell(scene, script, { env: { MODE } });
    expect(ended.stdout.toString()).toBe("[one]\ntwo\n");
  }
});
