/**
 * What earlier attempts have left running. It is none of the attempt of now, whose limit must not
 * end it.
 *
 * Non-guarantee: a process that such a one has started and left within one look and the next counts
 * as the attempt's of now. Clock: none. State after a crash: none.
 */
import { identify, type ProcessRow } from "../core/tree-members.ts";
import { readChildren } from "../os/proc.ts";
import { findDescendants } from "../tree/find.ts";

export class EarlierAttempts {
  #known: Set<string> = new Set();

  /** Called while no attempt runs: everybody who is below this process now is left. */
  note(): void {
    const hasAny = readChildren("self").length > 0;
    this.#known = new Set(hasAny ? findDescendants(process.pid).map(identify) : []);
  }

  /** Those of the rows that are left from earlier attempts, and whoever is below them. */
  find(rows: readonly ProcessRow[]): ReadonlySet<number> {
    const found = new Set<number>();
    if (this.#known.size === 0) return found;
    // Parents stand before their children.
    for (const row of rows) {
      if (!this.#known.has(identify(row)) && !found.has(row.ppid)) continue;
      found.add(row.pid);
      this.#known.add(identify(row));
    }
    return found;
  }
}
