/** Asking `watchdog doctor`, in surroundings of the test's making. */
import { RELEASE, type RunOptions, type Scene } from "./scene.ts";

export interface Examined {
  readonly status: number;
  readonly stderr: string;
  readonly stateDirectory: string | null;
  /** `ok`, `note`, `finding` or `unknown`, by the name of the check. */
  readonly states: Readonly<Record<string, string>>;
  readonly seen: Readonly<Record<string, string>>;
  readonly advice: Readonly<Record<string, string | null>>;
  /** State and reasons of a promise: `holds`, `does-not-hold: locks`. */
  readonly promises: Readonly<Record<string, string>>;
}

interface Surroundings extends RunOptions {
  /** Words in front of the program. */
  readonly within?: readonly string[];
  readonly binary?: string;
}

/** A variable of the tests has a name that a doctor does not know. */
export const PLAIN = { WATCHDOG_TEST_COOKIE: undefined } as const;

export async function examine(
  scene: Scene,
  words: readonly string[] = [],
  surroundings: Surroundings = {},
): Promise<Examined> {
  const { within = [], binary = RELEASE, env, ...options } = surroundings;
  const argv = [...within, binary, "doctor", "--json", ...words];
  const ended = await scene.startProgram(argv, { ...options, env: { ...PLAIN, ...env } }).ended;
  return readExamined(ended.status, ended.stdout.toString(), ended.stderr);
}

function readExamined(status: number, stdout: string, stderr: string): Examined {
  if (!stdout.startsWith("{")) throw new Error(`doctor: ${status} ${stdout} ${stderr}`);
  const answer = JSON.parse(stdout);
  const pick = (field: string): Record<string, never> =>
    Object.fromEntries(answer.checks.map((one: Record<string, never>) => [one.check, one[field]]));
  return {
    status,
    stderr,
    stateDirectory: answer.state_directory,
    states: pick("state"),
    seen: pick("seen"),
    advice: pick("advice"),
    promises: Object.fromEntries(answer.promises.map(readPromise)),
  };
}

interface ShownPromise {
  readonly promise: string;
  readonly state: string;
  readonly because: readonly string[];
}

function readPromise({ promise, state, because }: ShownPromise): [string, string] {
  return [promise, because.length === 0 ? state : `${state}: ${because.join(" ")}`];
}

/** The checks that are findings, in order. */
export function findingsOf({ states }: Examined): string[] {
  return Object.keys(states).filter((check) => states[check] === "finding");
}
