/**
 * What main tells a Worker once, at its start, and what a Worker tells main in a word or two.
 * Everything between is in shared memory. Plain data only.
 */

export interface CopyTask {
  readonly kind: "copy";
  readonly pipeFd: number;
  readonly destinationFd: number;
  /**
   * Readable when main has an order: it only ends a wait, the order itself is in the shared words.
   */
  readonly wakeFd: number;
  readonly state: SharedArrayBuffer;
  /** Present where output is logged. */
  readonly feed: { readonly ring: SharedArrayBuffer; readonly log: SharedArrayBuffer } | undefined;
  /** Present for a quiet run: where its spool may lie. */
  readonly spoolDirectory: string | undefined;
}

export interface LogTask {
  readonly kind: "log";
  readonly log: SharedArrayBuffer;
  readonly sources: readonly {
    readonly state: SharedArrayBuffer;
    readonly ring: SharedArrayBuffer;
  }[];
  readonly directory: string;
  readonly fileName: string;
  readonly maxBytes: number;
  /** All logs of the state directory together. */
  readonly keepBytes: number;
  readonly logsRoot: string;
}

/**
 * "started": the first byte is in the ring, a log is needed now. "ended": the last message; the
 * Worker has nothing more to do and holds no descriptor any more.
 */
export type WorkerMessage = "started" | "ended";
