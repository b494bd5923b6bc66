/**
 * Injected faults, in the fault build only: `WATCHDOG_FAULT='<point>[#<nth>]=<act>'` with the acts
 * kill, term, stop, throw, eio, enospc and delay:<ms>. Several are separated by commas. In the
 * release build the body is gone: the constant is replaced at build time and the minifier removes
 * what it guards; a house test searches the binary for it.
 *
 * Before acting a fault leaves its evidence: `<WATCHDOG_FAULT_DIR>/<seq>.json`, written and
 * fsynced, with the point, which time it was, and the state that the code had at that moment. A
 * test believes in a fault only with this file.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from "node:fs";

declare const FAULT_BUILD: boolean;

/** Variables of the fault build stay with the watchdog that they were given to. */
export function isFaultVariable(name: string): boolean {
  if (typeof FAULT_BUILD !== "undefined" && FAULT_BUILD) return name.startsWith("WATCHDOG_FAULT");
  return false;
}

type State = Readonly<Record<string, unknown>>;

interface Fault {
  readonly point: string;
  readonly nth: number;
  readonly act: string;
}

const counts = new Map<string, number>();
let sequence = 0;

/** A place where the fault build can be made to fail. Costs nothing in the release build. */
export function faultPoint(point: string, state: State): void {
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

function strike(point: string, state: State): void {
  const plan = process.env["WATCHDOG_FAULT"];
  if (plan === undefined) return;
  const nth = (counts.get(point) ?? 0) + 1;
  counts.set(point, nth);
  const fault = plan
    .split(",")
    .map(parseFault)
    .find((one) => one.point === point && one.nth === nth);
  if (fault === undefined) return;
  leaveEvidence(fault, state);
  act(fault);
}

function parseFault(text: string): Fault {
  const match = /^([\w.-]+)(?:#(\d+))?=([\w:]+)$/.exec(text.trim());
  if (match === null) throw new Error(`WATCHDOG_FAULT: found '${text}', expected point[#n]=act`);
  return { point: match[1] ?? "", nth: Number(match[2] ?? 1), act: match[3] ?? "" };
}

function leaveEvidence(fault: Fault, state: State): void {
  const directory = process.env["WATCHDOG_FAULT_DIR"];
  if (directory === undefined) throw new Error("WATCHDOG_FAULT needs WATCHDOG_FAULT_DIR");
  mkdirSync(directory, { recursive: true });
  sequence += 1;
  const fd = openSync(
    `${directory}/${process.pid}-${Bun.isMainThread ? 0 : 1}-${sequence}.json`,
    "wx",
  );
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
}
