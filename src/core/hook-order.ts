/**
 * What a helper is told to run, and how that is told: a hook of the user's, the program that takes
 * mail, the command of a probe. Pure text; stands in memory between the two processes, so that
 * neither the command nor what it is told is seen on a command line.
 */
import { isCount, isObject, isText, orNull } from "./shapes.ts";

/** The word by which the helper is started. */
export const HOOK_COMMAND = "__hook";
/** Where the helper finds its order. */
export const ORDER_DESCRIPTOR = 7;

/** Of a hook, unless the caller says less. */
export const HOOK_LIMIT_MS = 10_000;
/** Between TERM and KILL at the limit. */
export const HOOK_GRACE_MS = 1_000;

/** For a helper to start, and to end what is left. */
const HELPER_MS = 500;
/** With less than this a hook is not begun: it would be ended before it could tell anybody. */
export const SHORTEST_HOOK_MS = 500;

/**
 * How long a hook has where whoever sends it has so long: its own limit, or what the grace leaves,
 * so that it hears TERM, and is not run again for having been cut off. Undefined: there is no time.
 */
export function limitHook(restMs: number): number | undefined {
  if (restMs >= HOOK_LIMIT_MS) return HOOK_LIMIT_MS;
  const leftMs = Math.floor(restMs - HOOK_GRACE_MS - HELPER_MS);
  return leftMs >= SHORTEST_HOOK_MS ? leftMs : undefined;
}

export interface HookOrder {
  /** For the shell, or a program with its arguments, which may work on behind its own status. */
  readonly run:
    | { readonly kind: "shell"; readonly command: string }
    | { readonly kind: "program"; readonly argv: readonly string[] };
  /** What it finds on its standard input; null: nothing, /dev/null. */
  readonly input: string | null;
  /** Where it works, if that is still there, else `/`; null: where the helper does. */
  readonly cwd: string | null;
  /** Beside the environment of the helper. */
  readonly variables: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly graceMs: number;
}

/** What a shell calls the file that it reads a command from. */
const SCRIPT = /\/proc\/self\/fd\/[0-9]+(?=:)/g;

/** What a command has said, with the name that people know it by. */
export function nameScript(said: string, name: string): string {
  return said.replace(SCRIPT, name);
}

export function renderOrder(order: HookOrder): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(order));
}

/** Undefined: it is no order, or not all of one. */
export function parseOrder(bytes: Uint8Array): HookOrder | undefined {
  const value = parse(new TextDecoder().decode(bytes));
  if (!isObject(value) || !isObject(value["run"]) || !isObject(value["variables"]))
    return undefined;
  const { run, input, cwd, variables, timeoutMs, graceMs } = value;
  const isRun = run["kind"] === "shell" ? isText(run["command"]) : isTexts(run["argv"]);
  const isPlaced = orNull(isText)(input) && orNull(isText)(cwd);
  const isWhole = isPlaced && isCount(timeoutMs) && isCount(graceMs);
  const hasTexts = isTexts(Object.values(variables));
  return isRun && isWhole && hasTexts ? (value as unknown as HookOrder) : undefined;
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every(isText);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // SyntaxError: cut short
  }
}
