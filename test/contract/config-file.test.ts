/**
 * Configuration files with real files: which are read, which are refused, and where TOML ends.
 */
import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  checkConfigFiles,
  makeReadSettings,
  ownVariables,
  renderFinding,
} from "../../src/cli/settings.ts";
import { WatchdogError } from "../../src/core/errors.ts";
import type { ConfigFile } from "../../src/core/settings.ts";
import {
  LARGEST_CONFIG_BYTES,
  parseToml,
  readConfigFile,
  USER_CONFIG,
} from "../../src/os/config-file.ts";
import { rootTest } from "../support/scene.ts";

const directory = mkdtempSync(join(tmpdir(), "watchdog-config-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const STRANGER = 65_534;
const UID = process.getuid?.() ?? 0;

let count = 0;

function write(text: string | Uint8Array, mode = 0o600): string {
  count += 1;
  const path = join(directory, `${count}.toml`);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

function refusalOf(path: string): string {
  const reading = readConfigFile(path);
  return reading.kind === "refused" ? reading.found : reading.kind;
}

describe("a file", () => {
  test("of our own is read, also by a link and where others may read it", () => {
    const path = write("a = 1\n", 0o644);
    const expected = { kind: "text", text: "a = 1\n", ownerUid: UID };
    expect(readConfigFile(path)).toEqual({ ...expected, path } as never);
    const link = join(directory, "link");
    symlinkSync(path, link);
    expect(readConfigFile(link)).toEqual({ ...expected, path: link } as never);
  });

  test("that is not there is missing, and one that is no file is refused without a wait", () => {
    expect(refusalOf(join(directory, "none"))).toBe("missing");
    expect(refusalOf(join(directory, "none", "below"))).toBe("missing");
    expect(refusalOf(directory)).toBe("a directory");
    expect(refusalOf("/dev/zero")).toBe("no regular file");
    const fifo = join(directory, "fifo");
    expect(Bun.spawnSync(["mkfifo", fifo]).exitCode).toBe(0);
    expect(refusalOf(fifo)).toBe("no regular file");
    symlinkSync("loop", join(directory, "loop"));
    expect(refusalOf(join(directory, "loop"))).toBe("an error (ELOOP)");
  });

  test("that something stands in the way of is not missing: behind it a policy may lie", () => {
    const gone = join(directory, "gone");
    symlinkSync("/nowhere/p.toml", gone);
    expect(refusalOf(gone)).toBe("a link that leads nowhere");
    expect(refusalOf(join(gone, "config.toml"))).toBe(`no directory at ${gone}`);
    const plain = write("");
    expect(refusalOf(join(plain, "config.toml"))).toBe(`no directory at ${plain}`);
    const away = join(directory, "away");
    symlinkSync(directory, away);
    expect(refusalOf(join(away, "none.toml"))).toBe("missing");
  });

  test("that its group or others may write is refused", () => {
    for (const mode of [0o620, 0o602, 0o666]) {
      expect(refusalOf(write("", mode))).toStartWith("a file that others may write (mode 0");
    }
    expect(refusalOf(write("", 0o644))).toBe("text");
  });

  rootTest("of somebody else is refused, also behind a link of ours", () => {
    const path = write("a = 1\n");
    chownSync(path, STRANGER, STRANGER);
    expect(refusalOf(path)).toBe(`a file of uid ${STRANGER}`);
    const link = join(directory, "foreign");
    symlinkSync(path, link);
    expect(refusalOf(link)).toBe(`a file of uid ${STRANGER}`);
  });

  test("with more than a configuration may have, or with no text, is refused", () => {
    expect(refusalOf(write("#".repeat(LARGEST_CONFIG_BYTES)))).toBe("text");
    expect(refusalOf(write("#".repeat(LARGEST_CONFIG_BYTES + 1)))).toBe("a larger file");
    expect(refusalOf(write(new Uint8Array([0x61, 0xff])))).toBe("bytes that are no text");
  });

  rootTest("of a user's own home is missing where that home may not be entered", () => {
    const home = join(directory, "home");
    mkdirSync(join(home, ".config/watchdog"), { recursive: true });
    const path = join(home, USER_CONFIG);
    writeFileSync(path, "");
    const asStranger = (): string => {
      process.seteuid?.(STRANGER);
      try {
        return refusalOf(path);
      } finally {
        process.seteuid?.(0);
      }
    };
    chmodSync(directory, 0o755);
    chmodSync(home, 0o700);
    expect(asStranger()).toBe("missing");
    chmodSync(home, 0o755);
    chmodSync(path, 0o600);
    expect(asStranger()).toBe("a file that may not be read");
    chmodSync(path, 0o644);
    expect(asStranger()).toBe("text");
  });
});

rootTest("the state directory of another user's run around was not asked for", () => {
  const state = join(directory, "state");
  mkdirSync(state);
  const variables = { WATCHDOG_STATE_DIR: state, WATCHDOG_RUN_ID: "x" };
  const before = { ...process.env };
  Object.assign(process.env, variables);
  try {
    expect(ownVariables(variables)).toBe(variables);
    chownSync(state, STRANGER, STRANGER);
    expect(ownVariables(variables)).toEqual({ ...variables, WATCHDOG_STATE_DIR: undefined });
  } finally {
    for (const name of Object.keys(variables)) {
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
    }
  }
});

test("the line on which TOML ends is told", () => {
  const table: readonly (readonly [string, number])[] = [
    ["a", 1],
    ["a = 1\nb\nc = 3\n", 2],
    ["a = 1\n\n[run\n", 3],
    ["a = 1\na = 2", 2],
    ["x = 1\nlock = [\n'a:b',\n", 2],
    ["a = 1\r\nb = 07\r\n", 2],
  ];
  for (const [text, line] of table)
    expect(parseToml(text)).toMatchObject({ kind: "not-toml", line });
  const many = Array.from({ length: 2_001 }, (_, at) => `a${at} = 1`).join("\n");
  expect(parseToml(`${many}\n???\n`)).toMatchObject({
    line: undefined,
    found: expect.stringMatching(/^behind line 2000: /),
  });
  expect(parseToml("a = 1")).toEqual({ kind: "table", table: { a: 1 } });
});

describe("the settings", () => {
  const read = (machine: string, user: string, asked?: string): ReturnType<typeof Object> =>
    makeReadSettings(() => [machine, user])(asked);
  const missing = join(directory, "none");

  test("are of the machine's file and the user's, or of the one that was asked for", () => {
    const machine = write('[run]\ntimeout = 1\nwait = 1\n[policy]\nrun = ["alice"]\n');
    const user = write("[run]\ntimeout = 2\n");
    const asked = write("[run]\nquiet = true\n");
    const both = read(machine, user);
    expect(both.run.get("timeout")).toMatchObject({ texts: ["2"], file: user });
    expect(both.run.get("wait")).toMatchObject({ texts: ["1"], file: machine });
    const alone = read(machine, user, asked);
    expect([...alone.run.keys()]).toEqual(["quiet"]);
    expect(alone.files.map((file: ConfigFile) => file.isChosen)).toEqual([false, true]);
    expect(alone.policies).toMatchObject([{ path: machine }]);
    expect(read(missing, missing).files).toEqual([]);
  });

  test("are refused with the first finding, of a file that is not heard too", () => {
    const right = write("[run]\ntimeout = 1\n");
    const wrong = write("[run]\ntiemout = 1\n");
    for (const [machine, user, asked] of [
      [wrong, right, undefined],
      [right, wrong, undefined],
      [wrong, right, right],
      [right, right, wrong],
    ] as const) {
      expect(() => read(machine, user, asked)).toThrow(`${wrong}: run.tiemout`);
    }
    expect([...read(right, wrong, right).run.keys()]).toEqual(["timeout"]);
  });

  test("of a file that was asked for and is not there are refused", () => {
    try {
      read(missing, missing, missing);
      throw new Error("not refused");
    } catch (error) {
      if (!(error instanceof WatchdogError)) throw error;
      expect([error.code, error.exitStatus]).toEqual(["config.refused", 78]);
      expect(error.hint).toBe(`watchdog config check --config ${missing}`);
    }
  });

  test("are read once, however often they are asked for", () => {
    const path = write("[run]\ntimeout = 1\n");
    const readSettings = makeReadSettings(() => [path]);
    const first = readSettings(undefined);
    rmSync(path);
    expect(readSettings(undefined)).toBe(first);
  });

  test("are checked file by file with all findings", () => {
    const wrong = write("x = 1\n[run]\ntiemout = 1\n");
    const found = checkConfigFiles(undefined, [wrong, write("a"), missing]);
    const lines = found.map((file) =>
      file.findings.map((finding) => renderFinding(file.path, finding)),
    );
    expect(lines.map((each) => each.length)).toEqual([2, 1, 0]);
    expect(lines[1]?.[0]).toContain("found on line 1: ");
  });
});
