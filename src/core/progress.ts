/**
 * Whether a job works, as its run shows it to whoever asks: what it has reported, when it last
 * wrote, what its tree uses. Plain data; a heartbeat says that a process lives, and stands beside
 * it (lease-record.ts).
 *
 * Instants are of CLOCK_MONOTONIC, in milliseconds, as of the run's boot.
 */

export interface ItemsProgress {
  readonly ok: number;
  readonly failed: number;
  /** Null: the job has not said how many there are. */
  readonly total: number | null;
  readonly checkpoint: string | null;
  readonly lastMessage: string | null;
  /** Of the last minutes; null: too little is known. */
  readonly ratePerMinute: number | null;
  /** When they last changed, as far as it was looked at. */
  readonly reportedMs: number;
}

/** What the processes of the tree had used, and within the time since it was measured before. */
export interface TreeUse {
  readonly measuredMs: number;
  /** Of the whole run. */
  readonly cpuMs: number;
  readonly ioBytes: number;
  readonly windowMs: number;
  readonly windowCpuMs: number;
  readonly windowIoBytes: number;
}

export interface Progress {
  /** Null: the job has reported nothing. */
  readonly items: ItemsProgress | null;
  /** Null: it has written nothing that was seen. */
  readonly lastOutputMs: number | null;
  /** When a file that it is expected to write was last seen to have changed; null: none was. */
  readonly filesChangedMs: number | null;
  /** Null: not measured yet. */
  readonly use: TreeUse | null;
}

export const NO_PROGRESS: Progress = {
  items: null,
  lastOutputMs: null,
  filesChangedMs: null,
  use: null,
};

/** So many bytes of a text that the job has told stand in a slot. */
export const SHOWN_CHECKPOINT_BYTES = 100;
export const SHOWN_MESSAGE_BYTES = 200;

/** UTF-8, cut at a letter. */
export function cutBytes(text: string, longest: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= longest) return text;
  let end = longest;
  // 0b10xxxxxx: in the middle of a letter (RFC 3629).
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return new TextDecoder().decode(bytes.subarray(0, end));
}
