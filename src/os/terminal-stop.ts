/**
 * Writing to a terminal from its background. With `tostop` such a write sends TTOU to the whole
 * process group, the command's too, and is tried again for ever while a handler catches it; with
 * TTOU blocked in the writing thread it goes through (termios(3)).
 */
import { SIGTTOU } from "../core/signals.ts";
import { SIGSET_BYTES } from "./inheritance.ts";
import { libc } from "./libc.ts";

const SIG_BLOCK = 0;
const SIG_SETMASK = 2;

/** Blocks TTOU in this thread. @returns puts the mask back. @throws WatchdogError "os.no-ffi" */
export function blockTerminalStop(): () => void {
  const before = new Uint8Array(SIGSET_BYTES);
  const blocked = new Uint8Array(SIGSET_BYTES);
  blocked[(SIGTTOU - 1) >> 3] = 1 << ((SIGTTOU - 1) & 7);
  libc().pthread_sigmask(SIG_BLOCK, blocked, before);
  return () => void libc().pthread_sigmask(SIG_SETMASK, before, null);
}
