/**
 * The mask of this process: every text that leaves it for a record, a table, a message or another
 * process goes through the same one.
 *
 * Made at its first use from our own environment, unless a run has said more by then (its command,
 * its sinks, its patterns). Always: there is one; a text that was masked elsewhere stays as it is.
 * What a guard must know is handed on in memory, never on a disk.
 */
import { makeMask, type Mask, type MaskOptions } from "../core/masking.ts";

let mask: Mask | undefined;

export function setMask(options: MaskOptions): void {
  mask = makeMask(options);
}

export function ownMask(): Mask {
  mask ??= makeMask({ environment: listOwnEnvironment() });
  return mask;
}

function listOwnEnvironment(): readonly string[] {
  return Object.entries(process.env).map(([name, value]) => `${name}=${value ?? ""}`);
}
