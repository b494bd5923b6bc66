/**
 * `seen.json`: the note of a newcomer that was refused because the last owner cannot be seen from
 * here. It says since when somebody waits for that generation, so that a later newcomer can act.
 * Knows nothing of what follows from it (core/newcomer.ts).
 *
 * Guarantees: an age is only told of the same generation, boot and time namespace. Non-guarantees:
 * that the first note survives; of two first newcomers the later one's note stays. Clock: MONOTONIC
 * of the writer, compared with that of the reader. Crash behaviour: the old note or the new one.
 */
import { unlinkSync } from "node:fs";
import type { SeenNote } from "../../core/evidence.ts";
import { replaceFile } from "../../os/files.ts";
import { fileModeAt } from "../../os/state-sharing.ts";
import { codeOf, readOwnFile } from "./own-file.ts";
import type { LeasePlace } from "./places.ts";

const NOTE_FORMAT = 1;
const LONGEST_NOTE_BYTES = 4096;

/** What a newcomer writes down when it is refused for the first time. */
export interface NoteContent {
  readonly generation: number;
  readonly bootId: string;
  readonly timeNamespace: string | null;
  /** CLOCK_MONOTONIC, milliseconds. */
  readonly monotonicMs: number;
}

/** The generation asked about; who asks, and when. */
export interface NoteQuestion {
  readonly generation: number;
  readonly bootId: string;
  readonly timeNamespace: string | null;
  /** CLOCK_MONOTONIC, milliseconds. */
  readonly nowMs: number;
  readonly staleAfterMs: number;
}

/**
 * How old the note about this generation is: `old` from `staleAfterMs` on.
 *
 * A note of another generation, boot or time namespace, of the future, or that is no note at all is
 * `none`: the next refused newcomer writes it anew. `unread`: the system does not let us read it.
 */
export function readNote(place: LeasePlace, asked: NoteQuestion): SeenNote {
  const file = readOwnFile(place.note, LONGEST_NOTE_BYTES);
  if (file.kind === "missing") return "none";
  if (file.kind !== "read") return "unread";
  const seenMs = parseNote(new TextDecoder().decode(file.bytes), asked);
  if (seenMs === undefined || seenMs > asked.nowMs) return "none";
  return asked.nowMs - seenMs >= asked.staleAfterMs ? "old" : "young";
}

/** The instant of a note that answers the question. */
function parseNote(text: string, asked: NoteQuestion): number | undefined {
  let note: Readonly<Record<string, unknown>> | null;
  try {
    note = JSON.parse(text);
  } catch {
    return undefined; // SyntaxError: cut off, zeroed or edited; it is written anew
  }
  const isAnswer =
    note?.["format"] === NOTE_FORMAT &&
    note["generation"] === asked.generation &&
    note["boot_id"] === asked.bootId &&
    note["time_namespace"] === asked.timeNamespace;
  const seenMs = note?.["monotonic_ms"];
  return isAnswer && typeof seenMs === "number" ? seenMs : undefined;
}

/** Replaces any note. @throws the error of the system call: then the next newcomer tries again */
export function writeNote(place: LeasePlace, content: NoteContent): void {
  const note = {
    format: NOTE_FORMAT,
    generation: content.generation,
    boot_id: content.bootId,
    time_namespace: content.timeNamespace,
    monotonic_ms: content.monotonicMs,
  };
  replaceFile(place.note, `${JSON.stringify(note)}\n`, fileModeAt(place.note));
}

/** Fine if there is none. @throws the error of the system call */
export function removeNote(place: LeasePlace): void {
  try {
    unlinkSync(place.note);
  } catch (cause) {
    if (codeOf(cause) !== "ENOENT") throw cause;
  }
}
