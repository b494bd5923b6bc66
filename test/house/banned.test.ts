/** Calls that the code must not make, with the reason; each ban is seen to catch a planted call. */
import { describe, expect, test } from "bun:test";
import { listTypeScript, readSource, withoutComments } from "./source-files.ts";

interface Ban {
  readonly title: string;
  readonly pattern: RegExp;
  /** A call that the ban must find. */
  readonly planted: string;
  /** The folder or file that wraps the call once; undefined: nobody may. */
  readonly allowedIn: string | undefined;
}

const BANS: readonly Ban[] = [
  {
    title: "the wall clock is read in os/ alone",
    pattern: /\bDate\.now\b|\bnew Date(\(\)|(?!\s*\())/,
    planted: "const at = Date.now() + new Date().getTime();",
    allowedIn: "src/os/",
  },
  {
    title: "no process-relative clock is used for instants",
    pattern: /\bperformance\.now\b|\bprocess\.hrtime\b|\bBun\.nanoseconds\b/,
    planted: "const at = performance.now();",
    allowedIn: "src/os/",
  },
  {
    title: "dice are thrown in os/ alone",
    pattern: /\bMath\.random\b/,
    planted: "const n = Math.random();",
    allowedIn: "src/os/",
  },
  {
    title: "timers are set in os/ alone",
    pattern: /\bset(Timeout|Interval|Immediate)\b|\bBun\.sleep(Sync)?\b/,
    planted: "setTimeout(() => undefined, 5);",
    allowedIn: "src/os/",
  },
  {
    title: "signals are sent in os/ alone",
    pattern: /\bprocess\.kill\b/,
    planted: "process.kill(1, 0);",
    allowedIn: "src/os/",
  },
  {
    title: "nothing leaves by process.exit: it writes old terminal settings back",
    pattern: /\bprocess\.(exit|abort)\b/,
    planted: "process.exit(0);",
    allowedIn: undefined,
  },
  {
    title: "the way out without FFI is taken in os/leave.ts alone",
    pattern: /\bprocess\.reallyExit\b/,
    planted: "process.reallyExit(0);",
    allowedIn: "src/os/leave.ts",
  },
  {
    title: "no stream of Bun's is put on descriptors 0 to 2: it makes the caller's non-blocking",
    pattern: /\bprocess\.(stdin|stdout|stderr)\b|\bBun\.(stdin|stdout|stderr|write)\b/,
    planted: "process.stdout.write('x');",
    allowedIn: undefined,
  },
  {
    title: "the console is not used",
    pattern: /\bconsole\.\w/,
    planted: "console.log('x');",
    allowedIn: undefined,
  },
  {
    title: "processes start by posix_spawn: Bun's own spawn beside the reaper loses statuses",
    pattern: /\bBun\.(spawn|spawnSync|\$)|node:child_process/,
    planted: "Bun.spawn(['true']);",
    allowedIn: "src/os/degraded-spawn.ts",
  },
  {
    title: "homes are read from the password database: os.userInfo trusts HOME",
    pattern: /\b(userInfo|homedir)\s*\(/,
    planted: "homedir();",
    allowedIn: undefined,
  },
];

function callers(ban: Ban, paths: readonly string[]): string[] {
  return paths.filter((path) => ban.pattern.test(withoutComments(readSource(path))));
}

describe("in src/", () => {
  const paths = listTypeScript("src");

  test("there is something to search", () => {
    expect(paths.length).toBeGreaterThan(10);
  });

  test.each(BANS.map((ban) => [ban.title, ban] as const))("%s", (_, ban) => {
    expect(ban.pattern.test(withoutComments(ban.planted))).toBe(true);
    const { allowedIn } = ban;
    const searched = paths.filter((path) => allowedIn === undefined || !path.startsWith(allowedIn));
    expect(callers(ban, searched)).toEqual([]);
  });

  test("core/ waits for nothing", () => {
    const waiting = /\b(async|await|Promise)\b/;
    expect(waiting.test("async () => undefined")).toBe(true);
    const core = paths.filter((path) => path.startsWith("src/core/"));
    expect(core.length).toBeGreaterThan(0);
    expect(core.filter((path) => waiting.test(withoutComments(readSource(path))))).toEqual([]);
  });

  test("a comment about a banned call is not taken for one", () => {
    const source = "// process.exit(1) would be wrong\nexport const a = 1; /* Date.now() */\n";
    expect(BANS.some((ban) => ban.pattern.test(withoutComments(source)))).toBe(false);
  });
});

describe("in test/", () => {
  /** Put together here, so that this file does not find itself. */
  const focused = new RegExp(`\\b(test|it|describe)\\.(${["only", "skip", "todo"].join("|")})\\b`);
  const paths = listTypeScript("test");

  test("no test is focused, skipped or put off", () => {
    expect(focused.test(`test${".only"}("x", () => undefined);`)).toBe(true);
    expect(focused.test("test.skipIf(isRoot)")).toBe(false);
    expect(paths.filter((path) => focused.test(readSource(path)))).toEqual([]);
  });

  test("no test is tried again until it passes", () => {
    const retried = new RegExp(`\\b${"retry"}:\\s*\\d|--${"retry"}(?![\\w-])`);
    expect(retried.test(`{ ${"retry"}: 3 }`)).toBe(true);
    expect(paths.filter((path) => retried.test(readSource(path)))).toEqual([]);
  });
});
