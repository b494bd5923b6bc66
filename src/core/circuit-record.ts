/**
 * A shared circuit as text, for the table `circuits` of the journal, and back. Pure; the clocks of
 * whoever writes and reads are handed in.
 *
 * Always: what is read is the circuit that was written, on the clock of the reader; a text of a
 * newer version and one that is no circuit are told apart, and neither becomes a circuit. Instants
 * are of CLOCK_MONOTONIC, which begins anew with a boot and is moved in a time namespace
 * (time_namespaces(7)): across those the wall clock tells how much time went by, and if it went
 * back, none did. Instants of the wall clock are for people and stay as they are.
 *
 * What only people read is cut where it is long, so that a text is never too long to be read.
 */
import {
  isSettings,
  type Move,
  parseSettings,
  parseState,
  renderSettings,
  renderState,
  type SettingsText,
  STATE_KINDS,
} from "./circuit-fields.ts";
import { PROBE_FAILURES, type ProbeReason } from "./probe-result.ts";
import {
  type Fields,
  isCount,
  isInstant,
  isObject,
  isPositive,
  isText,
  isWord,
  object,
  orNull,
  type Shape,
} from "./shapes.ts";
import type { ProbeNote, SharedCircuit, TrialHolder } from "./shared-circuit.ts";
import type { MonotonicAt, WallAt } from "./time.ts";

export const CIRCUIT_FORMAT = 1;
/** A window of a thousand answers and the longest name of a job have their place in it twice. */
export const LONGEST_CIRCUIT_TEXT = 32_768;
/** Letters of a detail, and of a target. */
export const LONGEST_FOR_PEOPLE = 300;

export interface CircuitClock {
  readonly bootId: string;
  readonly timeNamespace: string | null;
  readonly nowMs: MonotonicAt;
  readonly wallMs: WallAt;
}

export type CircuitReading =
  | { readonly kind: "read"; readonly circuit: SharedCircuit }
  /** Written by a newer version: not to be understood, and never to be written over. */
  | { readonly kind: "newer"; readonly format: number }
  /** Reason for people. */
  | { readonly kind: "unreadable"; readonly reason: string };

/** The name is not in it: it is the key under which the text is kept. */
export function renderCircuit(circuit: SharedCircuit, clock: CircuitClock): string {
  const { target, job, lastProbe, trialBy } = circuit;
  return JSON.stringify({
    format: CIRCUIT_FORMAT,
    boot_id: clock.bootId,
    time_namespace: clock.timeNamespace,
    monotonic_ms: clock.nowMs,
    wall_ms: clock.wallMs,
    ...renderState(circuit.state),
    changed_wall_ms: circuit.changedAt,
    settings: renderSettings(circuit.settings),
    settings_hash: circuit.settingsHash,
    target: target === null ? null : cutForPeople(target),
    job,
    probes: circuit.probes,
    good_probes: circuit.goodProbes,
    last_good_at_ms: circuit.lastGoodAt,
    last_probe: lastProbe === null ? null : renderNote(lastProbe),
    trial_by: trialBy === null ? null : renderTrial(trialBy),
  });
}

/** Never within a character. */
export function cutForPeople(text: string): string {
  const letters = Array.from(text.slice(0, 2 * LONGEST_FOR_PEOPLE + 1));
  if (letters.length <= LONGEST_FOR_PEOPLE) return text;
  return `${letters.slice(0, LONGEST_FOR_PEOPLE - 1).join("")}…`;
}

function renderNote({ because, detail, at, wallAt }: ProbeNote): NoteText {
  return { because, detail: cutForPeople(detail), at_ms: at, wall_ms: wallAt };
}

function renderTrial({ pid, start_time, boot_id, pid_namespace, at }: TrialHolder): TrialText {
  return { pid, start_time, boot_id, pid_namespace, at_ms: at };
}

export function parseCircuit(text: string, name: string, clock: CircuitClock): CircuitReading {
  if (text.length > LONGEST_CIRCUIT_TEXT) return unreadable("it is too long");
  const fields = parseObject(text);
  if (fields === undefined) return unreadable("it is no JSON object");
  const format = fields["format"];
  if (isCount(format) && format > CIRCUIT_FORMAT) return { kind: "newer", format };
  const wrong = Object.entries(SHAPES).find(([field, fits]) => !fits(fields[field]))?.[0];
  if (wrong !== undefined) return unreadable(`field '${wrong}' is missing or of the wrong shape`);
  const whole = fields as unknown as CircuitText; // by SHAPES, field by field
  const move = moveFrom(whole, clock);
  const state = parseState(fields, move);
  return state === undefined
    ? unreadable(`it has not the fields of a circuit that is '${whole.state}'`)
    : { kind: "read", circuit: { name, state, ...readWhole(whole, move) } };
}

function unreadable(reason: string): CircuitReading {
  return { kind: "unreadable", reason };
}

function parseObject(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined; // SyntaxError: nothing that renderCircuit has written
  }
}

interface NoteText {
  readonly because: string;
  readonly detail: string;
  readonly at_ms: number;
  readonly wall_ms: number;
}

interface TrialText {
  readonly pid: number;
  readonly start_time: number;
  readonly boot_id: string;
  readonly pid_namespace: string | null;
  readonly at_ms: number;
}

/** All but the fields of the state. */
interface CircuitText {
  readonly format: number;
  readonly boot_id: string;
  readonly time_namespace: string | null;
  readonly monotonic_ms: number;
  readonly wall_ms: number;
  readonly state: string;
  readonly changed_wall_ms: number;
  readonly settings: SettingsText;
  readonly settings_hash: string | null;
  readonly target: string | null;
  readonly job: string | null;
  readonly probes: number;
  readonly good_probes: number;
  readonly last_good_at_ms: number | null;
  readonly last_probe: NoteText | null;
  readonly trial_by: TrialText | null;
}

const SHAPES = {
  format: (value) => value === CIRCUIT_FORMAT,
  boot_id: isWord,
  time_namespace: orNull(isText),
  monotonic_ms: isInstant,
  wall_ms: isInstant,
  state: (value) => STATE_KINDS.includes(value),
  changed_wall_ms: isInstant,
  settings: isSettings,
  settings_hash: orNull(isWord),
  target: orNull(isText),
  job: orNull(isText),
  probes: isCount,
  good_probes: isCount,
  last_good_at_ms: orNull(isInstant),
  last_probe: orNull(
    object({ because: isWord, detail: isText, at_ms: isInstant, wall_ms: isInstant }),
  ),
  trial_by: orNull(
    object({
      pid: isPositive,
      start_time: isCount,
      boot_id: isWord,
      pid_namespace: orNull(isText),
      at_ms: isInstant,
    }),
  ),
} as const satisfies Record<keyof CircuitText, Shape>;

function moveFrom(whole: CircuitText, clock: CircuitClock): Move {
  const isOurs = whole.boot_id === clock.bootId && whole.time_namespace === clock.timeNamespace;
  const ageMs = Math.max(0, clock.wallMs - whole.wall_ms);
  const offsetMs = isOurs ? 0 : clock.nowMs - ageMs - whole.monotonic_ms;
  return (instant) => (instant + offsetMs) as MonotonicAt;
}

function readWhole(whole: CircuitText, move: Move): Omit<SharedCircuit, "name" | "state"> {
  const { last_good_at_ms: lastGoodAt, last_probe: note, trial_by: trial } = whole;
  return {
    settings: parseSettings(whole.settings),
    settingsHash: whole.settings_hash,
    target: whole.target,
    job: whole.job,
    changedAt: whole.changed_wall_ms as WallAt,
    probes: whole.probes,
    goodProbes: whole.good_probes,
    lastGoodAt: lastGoodAt === null ? null : move(lastGoodAt),
    lastProbe: note === null ? null : readNote(note, move),
    trialBy: trial === null ? null : readTrial(trial, move),
  };
}

const REASONS: readonly string[] = ["good", ...PROBE_FAILURES];

/** A word that a later version has added costs the note alone: what follows from it is there. */
function readNote({ because, detail, at_ms, wall_ms }: NoteText, move: Move): ProbeNote | null {
  if (!REASONS.includes(because)) return null;
  const word = because as ProbeReason;
  return { because: word, detail, at: move(at_ms), wallAt: wall_ms as WallAt };
}

function readTrial(trial: TrialText, move: Move): TrialHolder {
  const { pid, start_time, boot_id, pid_namespace, at_ms } = trial;
  return { pid, start_time, boot_id, pid_namespace, at: move(at_ms) };
}
