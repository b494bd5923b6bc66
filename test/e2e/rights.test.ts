/** The policy of the configuration in front of `run`: who is not in its list starts nothing. */
import { expect, test } from "bun:test";
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { writeFileSync } from "node:fs";
import { asUser, shareBinary } from "../support/as-user.ts";
import { type Ended, openScene, rootTest } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const RIGHTS_MISSING = 77;
/** No other test uses it, and no database has it. */
const BEN = 54_395;
const OWN_UID = process.geteuid?.() ?? 0;

function configure(name: string, policy: string): string {
  const path = scene.path(`${name}.toml`);
  writeFileSync(path, `[policy]\n${policy}\n`, { mode: 0o644 });
  return path;
}

test("who is not in the list is told what is missing, and nothing is started or made", async () => {
  const config = configure("other", `run = ["uid:${BEN}"]`);
  const mark = scene.path("mark");
  const place = ["--state-dir", scene.path("never-made")];
  for (const lease of [[], ["--no-lease"]]) {
    const words = [...place, "--config", config, ...lease];
    const ended = await scene.run([...words, "--", "touch", mark]);
    expect([ended.status, existsSync(mark)]).toEqual([RIGHTS_MISSING, false]);
    expect(ended.stderr).toMatch(/^watchdog: error: right 'run' is missing: .*\n/);
    expect(ended.stderr).toContain(`is not in 'run' of [policy] in ${config}; `);
  }
  expect(existsSync(scene.path("never-made"))).toBe(false);
});

test("who is in it runs, and a policy without the list says nothing of it", async () => {
  for (const policy of [`run = ["zoe", "uid:${OWN_UID}"]`, 'approve = ["zoe"]', "run = ['*']"]) {
    const config = configure("own", policy);
    const ended = await scene.run(["--config", config, "--log", "off", "--", "echo", "ran"]);
    const isWrong = policy.includes("*");
    expect([policy, ended.status]).toEqual([policy, isWrong ? 78 : 0]);
    expect(ended.stdout.toString()).toBe(isWrong ? "" : "ran\n");
  }
});

rootTest("a user and a group by its number are known by the kernel's ids", async () => {
  const binary = await shareBinary(scene);
  const marks = scene.path("marks");
  mkdirSync(marks);
  chmodSync(marks, 0o1777);
  const state = `${marks}/state`;
  const runAs = (groups: readonly number[], config: string): Promise<Ended> => {
    const words = ["run", "--state-dir", state, "--config", config, "--no-lease", "--log", "off"];
    const argv = [...asUser(BEN, groups), binary, ...words, "--", "echo", "ran"];
    return scene.startProgram(argv, { cwd: "/" }).ended;
  };
  const config = configure("group", 'run = ["@54396"]');
  expect((await runAs([54_396], config)).stdout.toString()).toBe("ran\n");
  expect((await runAs([54_397], config)).status).toBe(RIGHTS_MISSING);
});

rootTest(
  "a right is granted by the machine's file, and never by one that the caller names",
  async () => {
    const binary = await shareBinary(scene);
    const group = 54_397;
    const state = scene.path("shared", "state");
    mkdirSync(state);
    chownSync(state, OWN_UID, group);
    chmodSync(state, 0o2770);
    const config = configure("chosen", `repair = ["uid:${BEN}"]`);
    const etc = scene.path("etc");
    mkdirSync(`${etc}/watchdog`, { recursive: true });
    writeFileSync(`${etc}/watchdog/config.toml`, readFileSync(config), { mode: 0o644 });
    const mount = [
      "unshare",
      "-m",
      "sh",
      "-c",
      'mount --bind "$1" /etc && shift && exec "$@"',
      "sh",
    ];
    const repair = (before: readonly string[], more: readonly string[]): Promise<Ended> => {
      const argv = [...before, ...asUser(BEN, [group]), binary, "repair", "--apply"];
      return scene.startProgram([...argv, "--state-dir", state, ...more], { cwd: "/" }).ended;
    };
    const chosen = await repair([], ["--config", config]);
    expect([chosen.status, chosen.stderr.split("\n")]).toEqual([
      RIGHTS_MISSING,
      [
        expect.stringContaining(
          `${config} cannot grant it (a file of --config or WATCHDOG_CONFIG `,
        ),
        `watchdog: hint: watchdog doctor --state-dir ${state} --config ${config}`,
        "",
      ],
    ]);
    expect((await repair([...mount, etc], [])).status).toBe(0);
    const forbidding = configure("forbidding", "repair = []");
    const taken = await repair([...mount, etc], ["--config", forbidding]);
    expect(taken.stderr).toContain(`is not in 'repair' of [policy] in ${forbidding}`);
  },
);
