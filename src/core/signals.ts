/**
 * Signals by number and name (signal(7), the numbers of x64 and arm64). Pure tables.
 */

const NAMES = [
  "",
  "HUP",
  "INT",
  "QUIT",
  "ILL",
  "TRAP",
  "ABRT",
  "BUS",
  "FPE",
  "KILL",
  "USR1",
  "SEGV",
  "USR2",
  "PIPE",
  "ALRM",
  "TERM",
  "STKFLT",
  "CHLD",
  "CONT",
  "STOP",
  "TSTP",
  "TTIN",
  "TTOU",
  "URG",
  "XCPU",
  "XFSZ",
  "VTALRM",
  "PROF",
  "WINCH",
  "IO",
  "PWR",
  "SYS",
] as const;

export const SIGHUP = 1;
export const SIGINT = 2;
export const SIGQUIT = 3;
export const SIGKILL = 9;
export const SIGUSR1 = 10;
export const SIGUSR2 = 12;
export const SIGPIPE = 13;
export const SIGALRM = 14;
export const SIGTERM = 15;
export const SIGCHLD = 17;
export const SIGCONT = 18;
export const SIGSTOP = 19;
export const SIGTSTP = 20;
export const SIGTTIN = 21;
export const SIGTTOU = 22;
export const SIGXCPU = 24;
export const SIGXFSZ = 25;
export const SIGVTALRM = 26;
export const SIGPROF = 27;
export const SIGWINCH = 28;
export const SIGIO = 29;

/** The first real-time signal that programs may use; 32 and 33 belong to the C library. */
export const SIGRTMIN = 34;
export const SIGRTMAX = 64;

/** `TERM` for 15, `RTMIN+2` for 36; `32` for a number without a name. */
export function nameSignal(number: number): string {
  const name = NAMES[number];
  if (name !== undefined && name !== "") return name;
  if (number === SIGRTMAX) return "RTMAX";
  if (number === SIGRTMIN) return "RTMIN";
  if (number > SIGRTMIN && number < SIGRTMAX) return `RTMIN+${number - SIGRTMIN}`;
  return String(number);
}

/**
 * The number of `TERM`, `SIGTERM`, `term`, `15`, `RTMIN+2` or `RTMAX-1`; undefined if there is no
 * such signal.
 */
export function numberOfSignal(word: string): number | undefined {
  const name = word.toUpperCase().replace(/^SIG/, "");
  if (/^\d{1,2}$/.test(name)) {
    const number = Number(name);
    return number >= 1 && number <= SIGRTMAX ? number : undefined;
  }
  const realTime = /^RT(MIN|MAX)(?:([+-])(\d{1,2}))?$/.exec(name);
  if (realTime) return numberOfRealTime(realTime);
  const alias = { POLL: "IO", IOT: "ABRT", CLD: "CHLD" }[name] ?? name;
  const index = (NAMES as readonly string[]).indexOf(alias);
  return index > 0 ? index : undefined;
}

function numberOfRealTime(match: RegExpExecArray): number | undefined {
  const base = match[1] === "MIN" ? SIGRTMIN : SIGRTMAX;
  const step = Number(match[3] ?? 0) * (match[2] === "-" ? -1 : 1);
  const number = base + step;
  return number >= SIGRTMIN && number <= SIGRTMAX ? number : undefined;
}

/**
 * Whether a mask as `/proc/PID/status` prints it (hexadecimal, bit 0 = signal 1) holds this signal.
 */
export function maskHolds(mask: bigint, signal: number): boolean {
  return ((mask >> BigInt(signal - 1)) & 1n) === 1n;
}
