/**
 * Injected faults, in the fault build only: `WATCHDOG_FAULT='<point>[@<step>][#<nth>]=<act>'` with
 * the acts kill, term, stop, throw, eio, enospc, delay:<ms> and hold. With a step it is the nth
 * time that the point is reached for that step of a job (`step` of its state). Several are
 * separated by commas; hold holds the thread until there is a file `<WATCHDOG_FAULT_DIR>.go`, or
 * for two minutes. In the release build the body is gone: the constant is replaced at build time
 * and the minifier removes what it guards; a house test searches the binary for it.
 *
 * Before acting a fault leaves its evidence: `<WATCHDOG_FAULT_DIR>/<seq>.json`, written and
 * fsynced, with the point, which time it was, and the state that the code had at that moment. A
 * test believes in a fault only with this file.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeSync,
} from "node:fs";

declare const FAULT_BUILD: boolean;

/** Variables of the fault build stay with the watchdog that they were given to. */
export function isFaultVariable(name: string): boolean {
  if (typeof FAULT_BUILD !== "undefined" && FAULT_BUILD) return name.startsWith("WATCHDOG_FAULT");
  return false;
}

type State = Readonly<Record<string, unknown>>;

interface Fault {
  readonly point: string;
  /** Undefined: of whichever step, and of what is none. */
  readonly step: string | undefined;
  readonly nth: number;
  readonly act: string;
}

const counts = new Map<string, number>();
let sequence = 0;
const HOLD_LOOK_MS = 5;
const MOST_HOLD_LOOKS = 120_000 / HOLD_LOOK_MS;

/**
 * A place where the fault build can be made to fail. Costs nothing in the release build.
 * @param state  a function where it takes more than what is known anyway: it is called only where a
 *   fault names the point
 */
export function faultPoint(point: string, state: State | (() => State)): void {
  if (typeof FAULT_BUILD !== "undefined" && FAULT_BUILD) strike(point, state);
}

/**
 * Milliseconds by which BOOTTIME and the wall clock are ahead, as after a suspend: the number in
 * the file that WATCHDOG_FAULT_CLOCK names. 0 in the release build.
 */
export function injectedSuspendMs(): number {
  if (typeof FAULT_BUILD !== "undefined" && FAULT_BUILD) return readSuspend();
  return 0;
}

function readSuspend(): number {
  const path = process.env["WATCHDOG_FAULT_CLOCK"];
  if (path === undefined) return 0;
  try {
    return Number(readFileSync(path, "utf8"));
  } catch {
    return 0; // ENOENT: the test has not suspended anything yet
  }
}

function strike(point: string, given: State | (() => State)): void {
  const plan = process.env["WATCHDOG_FAULT"];
  if (plan === undefined) return;
  const faults = plan
    .split(",")
    .map(parseFault)
    .filter((fault) => fault.point === point);
  if (faults.length === 0) return;
  const state = typeof given === "function" ? given() : given;
  const step = typeof state["step"] === "string" ? state["step"] : undefined;
  const nth = countOne(point);
  const nthOfStep = step === undefined ? 0 : countOne(`${point}@${step}`);
  const fault = faults.find((one) =>
    one.step === undefined ? one.nth === nth : one.step === step && one.nth === nthOfStep,
  );
  if (fault === undefined) return;
  leaveEvidence(fault, state);
  act(fault);
}

function countOne(what: string): number {
  const nth = (counts.get(what) ?? 0) + 1;
  counts.set(what, nth);
  return nth;
}

function parseFault(text: string): Fault {
  const match = /^([\w.-]+)(?:@([^#=,]+))?(?:#(\d+))?=([\w:]+)$/.exec(text.trim());
  if (match === null) {
    throw new Error(`WATCHDOG_FAULT: found '${text}', expected point[@step][#n]=act`);
  }
  const [, point = "", step, nth = "1", kind = ""] = match;
  return { point, step, nth: Number(nth), act: kind };
}

function leaveEvidence(fault: Fault, state: State): void {
  const directory = process.env["WATCHDOG_FAULT_DIR"];
  if (directory === undefined) throw new Error("WATCHDOG_FAULT needs WATCHDOG_FAULT_DIR");
  mkdirSync(directory, { recursive: true });
  sequence += 1;
  // A pid may be given again while what its last owner has left is still there.
  const own = `${process.pid}-${Bun.isMainThread ? 0 : 1}-${sequence}-${crypto.randomUUID()}`;
  const fd = openSync(`${directory}/${own}.json`, "wx");
  writeSync(fd, JSON.stringify({ ...fault, state }));
  fsyncSync(fd);
  closeSync(fd);
}

function act(fault: Fault): void {
  const [kind, argument] = fault.act.split(":");
  if (kind === "kill") process.kill(process.pid, "SIGKILL");
  if (kind === "term") process.kill(process.pid, "SIGTERM");
  if (kind === "stop") process.kill(process.pid, "SIGSTOP");
  if (kind === "throw") throw new Error(`fault injected at ${fault.point}`);
  if (kind === "eio" || kind === "enospc") {
    throw Object.assign(new Error(`${kind.toUpperCase()}: fault injected at ${fault.point}`), {
      code: kind.toUpperCase(),
      errno: kind === "eio" ? -5 : -28,
    });
  }
  if (kind === "delay") Bun.sleepSync(Number(argument ?? 0));
  if (kind === "hold") hold(`${process.env["WATCHDOG_FAULT_DIR"]}.go`);
}

function hold(go: string): void {
  for (let look = 0; look < MOST_HOLD_LOOKS && !existsSync(go); look += 1) {
    Bun.sleepSync(HOLD_LOOK_MS);
  }
}
