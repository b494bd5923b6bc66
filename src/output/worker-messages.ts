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
  /** Present where patterns are tried on the output. */
  readonly match:
    | {
        readonly ring: SharedArrayBuffer;
        readonly state: SharedArrayBuffer;
        readonly patternCount: number;
      }
    | undefined;
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

export interface MatchTask {
  readonly kind: "match";
  readonly state: SharedArrayBuffer;
  readonly patterns: readonly string[];
  readonly sources: readonly {
    readonly state: SharedArrayBuffer;
    readonly ring: SharedArrayBuffer;
    readonly window: SharedArrayBuffer;
  }[];
}

/** A pattern was found; "ended" is the last message. */
export type MatchMessage =
  | { readonly kind: "found"; readonly pattern: number; readonly line: string }
  | { readonly kind: "ended" };

/**
 * "started": the first byte is in a ring, its reader is needed now. "read": nothing comes any more
 * (told where somebody waits for that alone). "ended": the last message; the Worker has nothing
 * more to do and holds no descriptor any more.
 */
export type WorkerMessage = "started" | "read" | "ended";
