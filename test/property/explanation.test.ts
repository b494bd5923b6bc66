/**
 * What follows from each verdict, for a newcomer and for a repair, against tables written by hand
 * (the two last columns of the rules), and the rules told one by one against the verdict itself.
 * The decisions take the first case that fits; in a table exactly one line fits each combination.
 */
import { expect, test } from "bun:test";
import type { Fact, FoundProcess, LeaseEvidence } from "../../src/core/evidence.ts";
import { explainRules, type RuleMiss } from "../../src/core/explained-rules.ts";
import { decideVerdict } from "../../src/core/lease-verdict.ts";
import {
  decideNewcomer,
  type NewcomerDecision,
  type NewcomerFacts,
} from "../../src/core/newcomer.ts";
import { decideRepair, type RepairFacts } from "../../src/core/repair-plan.ts";
import type { SurvivorPolicy } from "../../src/core/run-options.ts";

/** `a|b`: one of these; `!a`: anything but that; `*`: anything. The rest of a line is decided. */
const NEWCOMER = `
verdict                         around policy below note        decided
free.R4.*|dead.*.*              *      *      *     *           acquire, same
held.R2.*|stalled.R2.*          no     *      *     *           locked, same, waits
*.R7.lock-replaced              no     *      *     *           locked, same, waits
held.R2.*|stalled.R2.*          yes    *      *     *           locked, held-by-run-around
*.R7.lock-replaced              yes    *      *     *           locked, held-by-run-around
held.R3.being-acquired          *      *      *     *           locked, same, waits
orphaned.*.tree-unread          *      *      *     *           locked, same, waits
orphaned.*.suspects             *      *      *     *           locked, same, waits
orphaned.*.ancestor-of-newcomer *      *      *     *           locked, same
orphaned.*.members              *      kill   *     *           end-survivors
orphaned.*.members              *      !kill  *     *           locked, survivors-alive, waits
orphaned.*.unsignalable         *      kill   *     *           locked, same, waits
orphaned.*.unsignalable         *      !kill  no    *           locked, survivors-alive, waits
orphaned.*.unsignalable         *      !kill  yes   *           locked, ancestor-of-newcomer
elsewhere.*.*                   *      *      *     old         acquire, note-old
elsewhere.*.*                   *      *      *     young       locked, same, waits
elsewhere.*.*                   *      *      *     none|unread locked, same, waits, notes
*.R1.lock-unaskable             *      *      *     *           config_error, same
*.R8.no-generation              *      *      *     *           config_error, same
`;

/** Weak: what forbids to end members and suspects, the worse of it. */
const REPAIR = `
verdict                         note        weak         decided
free.*.*|held.*.*               *           *            none
orphaned.*.tree-unread          *           *            none
orphaned.*.unsignalable         *           *            none
orphaned.*.ancestor-of-newcomer *           *            none
orphaned.*.members              *           *            apply end-survivors
orphaned.*.suspects             *           none         approval end-suspects
orphaned.*.suspects             *           ancestor     none ancestor-of-newcomer
orphaned.*.suspects             *           unsignalable none unsignalable
dead.*.*                        *           *            apply mark
elsewhere.*.other-machine       old         *            apply mark note-old
elsewhere.*.machine-unread      old         *            apply mark note-old
elsewhere.*.boot-unread         old         *            none note-old
elsewhere.*.owner-unread        old         *            none note-old
elsewhere.*.other-namespace|*.*.namespace-unread|*.*.members-not-compared old *       none note-old
elsewhere.*.*                   young       *            none note-young
elsewhere.*.*                   none|unread *            apply note
unknowable.R1.lock-unaskable    *           *            none
unknowable.R8.no-generation     *           *            approval set-generation
`;

/** The same where an owner lives or may live, who is seen if it is counted as we count. */
const OWNER = `
verdict                        seen state   signal       decided
stalled.R2.*|*.*.lock-replaced no   *       *            none owner-unseen
stalled.R2.*|*.*.lock-replaced yes  unread  *            none owner-unseen
stalled.R2.*|*.*.lock-replaced yes  gone    *            none owner-gone
stalled.R2.*|*.*.lock-replaced yes  alive.* another-user none owner-of-another-user
stalled.R2.*|*.*.lock-replaced yes  alive.* ancestor     none owner-is-ancestor
stalled.R2.*|*.*.lock-replaced yes  alive.* process-one  none owner-is-process-one
stalled.R2.*|*.*.lock-replaced yes  alive.* self         none owner-is-self
stalled.R2.*|*.*.lock-replaced yes  alive.* unread       none owner-unseen
stalled.R2.*|*.*.lock-replaced yes  alive   allowed      approval end-owner
stalled.R2.*|*.*.lock-replaced yes  alive.T allowed      continue-owner; approval end-owner
`;

/** What stands in the places of the files, where that is what a repair goes by. */
const FILES = `
verdict                       lock  fence record decided
unknowable.R1.lock-unaskable  wrong *     *      approval set-aside-lock lock-of-wrong-kind
unknowable.R1.lock-unaskable  right wrong *      approval set-aside-lock fence-of-wrong-kind
unknowable.R1.lock-unaskable  right right *      none
unknowable.R8.no-generation   *     *     newer  none record-newer
unknowable.R8.no-generation   *     *     !newer approval set-generation
`;

interface Line {
  readonly cells: readonly string[];
  readonly decided: string;
}

function parse(table: string): Line[] {
  const [header = "", ...rows] = table.trim().split("\n");
  const width = header.split(/ +/).length - 1;
  return rows.map((row) => {
    const words = row.split(/ +/);
    return { cells: words.slice(0, width), decided: words.slice(width).join(" ") };
  });
}

function fits(cell: string, word: string): boolean {
  if (cell.startsWith("!")) return !fits(cell.slice(1), word);
  return cell.split("|").some((one) => {
    const [parts, found] = [one.split("."), word.split(".")];
    const isWhole = one === "*" || parts.length >= found.length;
    return isWhole && parts.every((part, at) => part === "*" || part === found[at]);
  });
}

/** Counts in how many ways each line fits, and collects what is decided otherwise. */
class Oracle {
  readonly #lines: readonly Line[];
  readonly #counts: number[];
  readonly #checked = new Set<string>();
  readonly wrong: unknown[] = [];

  constructor(table: string) {
    this.#lines = parse(table);
    this.#counts = this.#lines.map(() => 0);
  }

  check(words: readonly string[], decided: string): void {
    const name = `${words.join(" ")} ${decided}`;
    if (this.#checked.has(name)) return;
    this.#checked.add(name);
    const fitting = this.#lines.flatMap(({ cells }, at) =>
      cells.every((cell, column) => fits(cell, words[column] ?? "")) ? [at] : [],
    );
    for (const at of fitting) this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    const expected = fitting.map((at) => this.#lines[at]?.decided);
    const isRight = expected.length === 1 && expected[0] === decided;
    if (!isRight && this.wrong.length < 3) this.wrong.push({ words, decided, expected });
  }

  get unused(): readonly Line[] {
    return this.#lines.filter((_, at) => this.#counts[at] === 0);
  }
}

const FACTS: readonly Fact[] = ["yes", "no", "unread"];
const NOTES = ["none", "young", "old", "unread"] as const;
const POLICIES: readonly SurvivorPolicy[] = ["kill", "wait", "refuse"];

function find(marks: string): FoundProcess {
  const [isSignalable, isAncestor] = [!marks.includes("u"), marks.includes("a")];
  return { pid: 4711, start_time: 5, command: "sleep 60", isSignalable, isAncestor };
}

const SOME = [[], [""], ["", ""], ["u"], ["a"], ["", "a"], ["ua"], ["u", "a"]].map((marks) =>
  marks.map(find),
);
const TREES: readonly LeaseEvidence["tree"][] = [
  "unread",
  ...SOME.flatMap((members) => SOME.map((suspects) => ({ members, suspects }))),
  { members: [], suspects: [], isBlind: true },
];

const READ = { kind: "read", from: "record", generation: 3, runId: "r" } as const;
const PLAIN: LeaseEvidence = {
  key: { kind: "job", name: "x" },
  lock: { kind: "free" },
  source: { ...READ, isReleased: false },
  record: undefined,
  slot: undefined,
  hasHistory: "yes",
  isReleasedByJournal: "no",
  ownerAlive: "no",
  sameBoot: "yes",
  sameMachine: "yes",
  sameLockInode: "yes",
  namespaceContained: "yes",
  recordedPids: "ours",
  beatAgeMs: 5,
  staleAfterMs: 10,
  note: "none",
  tree: "unread",
};

type Part = Partial<LeaseEvidence>;

/** One part of each list, in every combination. */
function* combine(lists: readonly (readonly Part[])[], first: Part = {}): Generator<Part> {
  const [list, ...rest] = lists;
  if (list === undefined) yield first;
  else for (const part of list) yield* combine(rest, { ...first, ...part });
}

const facts = (name: keyof LeaseEvidence): Part[] => FACTS.map((fact) => ({ [name]: fact }));

const LOCKS: Part[] = [
  { lock: { kind: "held" } },
  { lock: { kind: "free" } },
  { lock: { kind: "unaskable", reason: "EACCES" } },
];
const SOURCES: Part[] = [
  { source: { kind: "none" } },
  { source: { kind: "unreadable", reason: "cut" } },
  { source: { ...READ, isReleased: true } },
  { source: { ...READ, isReleased: false } },
];
const JUDGED = [
  LOCKS,
  SOURCES,
  facts("ownerAlive"),
  facts("sameBoot"),
  facts("sameMachine"),
  facts("sameLockInode"),
  facts("isReleasedByJournal"),
  [{ beatAgeMs: 5 }, { beatAgeMs: 50 }, { beatAgeMs: undefined }],
];

function* listEvidence(more: readonly (readonly Part[])[]): Generator<LeaseEvidence> {
  for (const part of combine([...JUDGED, ...more])) yield { ...PLAIN, ...part };
}

function nameVerdict(evidence: LeaseEvidence): string {
  const { name, rule, because } = decideVerdict(evidence);
  return `${name}.${rule}.${because}`;
}

function tellNewcomer(decision: NewcomerDecision, because: string): string {
  if (decision.kind === "end-survivors") return "end-survivors";
  const reason = decision.because === because ? "same" : decision.because;
  if (decision.kind === "acquire") return `acquire, ${reason}`;
  const { status, canWait, leavesNote } = decision;
  const ends = [...(canWait ? ["waits"] : []), ...(leavesNote ? ["notes"] : [])];
  return [status, reason, ...ends].join(", ");
}

/** All that a newcomer can be asked with, as far as its verdict can depend on it. */
function listAsked(evidence: LeaseEvidence): Omit<NewcomerFacts, "evidence">[] {
  const { name } = decideVerdict(evidence);
  const notes = name === "elsewhere" ? NOTES : (["none", "old"] as const);
  const around = name === "orphaned" ? [false] : [false, true];
  const policies = name === "orphaned" ? POLICIES : (["kill"] as const);
  return notes.flatMap((note) =>
    around.flatMap((isHeldByRunAround) =>
      policies.map((onSurvivors) => ({ note, isHeldByRunAround, onSurvivors })),
    ),
  );
}

test("a newcomer does what the one line of the table says, about every verdict", () => {
  const oracle = new Oracle(NEWCOMER);
  const trees = TREES.map((tree) => ({ tree }));
  for (const evidence of listEvidence([trees])) {
    const verdict = decideVerdict(evidence);
    const members = evidence.tree === "unread" ? [] : evidence.tree.members;
    const below = members.some(({ isAncestor }) => isAncestor) ? "yes" : "no";
    const name = nameVerdict(evidence);
    for (const asked of listAsked(evidence)) {
      const decision = decideNewcomer(verdict, { ...asked, evidence });
      const around = asked.isHeldByRunAround ? "yes" : "no";
      const words = [name, around, asked.onSurvivors, below, asked.note];
      oracle.check(words, tellNewcomer(decision, verdict.because));
    }
  }
  expect(oracle.wrong).toEqual([]);
  expect(oracle.unused).toEqual([]);
}, 600_000);

const FILES_PLAIN: RepairFacts = {
  bootId: "b",
  lockFile: "regular",
  lockInode: "1:2",
  fenceFile: "regular",
  recordFile: "read",
  owner: { state: "running", signal: "allowed" },
};

function tellRepair(evidence: LeaseEvidence, known: RepairFacts): string {
  const verdict = decideVerdict(evidence);
  const { options } = decideRepair({ evidence, verdict, facts: known });
  const told = options.map(({ needs, action, because }) => {
    const words = action === "none" ? [needs === "nothing" ? "none" : needs] : [needs, action];
    return [...words, ...(because === verdict.because ? [] : [because])].join(" ");
  });
  return told.join("; ");
}

function weaknessOf({ tree }: LeaseEvidence): string {
  const all = tree === "unread" ? [] : [...tree.members, ...tree.suspects];
  if (all.some(({ isSignalable }) => !isSignalable)) return "unsignalable";
  return all.some(({ isAncestor }) => isAncestor) ? "ancestor" : "none";
}

const STATES = { stopped: "alive.T", running: "alive", gone: "gone", unread: "unread" } as const;
const SIGNALS = ["allowed", "another-user", "ancestor", "process-one", "self", "unread"] as const;
const OWNERS = (["stopped", "running", "gone", "unread"] as const).flatMap((state) =>
  SIGNALS.map((signal) => ({ state, signal })),
);
const PIDS = (["ours", "below-ours", "incomparable"] as const).map((one) => ({
  recordedPids: one,
}));

function hasOwner(name: string): boolean {
  return name.startsWith("stalled") || name.endsWith("lock-replaced");
}

test("a repair may do what the one line of the table says, about every verdict", () => {
  const oracle = new Oracle(REPAIR);
  const notes = NOTES.map((note) => ({ note }));
  for (const evidence of listEvidence([TREES.map((tree) => ({ tree })), notes])) {
    const name = nameVerdict(evidence);
    if (hasOwner(name)) continue;
    const decided = tellRepair(evidence, FILES_PLAIN);
    oracle.check([name, evidence.note, weaknessOf(evidence)], decided);
  }
  expect(oracle.wrong).toEqual([]);
  expect(oracle.unused).toEqual([]);
}, 600_000);

test("a repair ends or continues an owner only where it is seen, and never unasked", () => {
  const oracle = new Oracle(OWNER);
  for (const evidence of listEvidence([PIDS])) {
    const name = nameVerdict(evidence);
    const isSeen = evidence.ownerAlive === "yes" && evidence.recordedPids === "ours";
    for (const owner of hasOwner(name) ? OWNERS : []) {
      const decided = tellRepair(evidence, { ...FILES_PLAIN, owner }).replace(
        "approval continue-owner owner-stopped",
        "continue-owner",
      );
      oracle.check([name, isSeen ? "yes" : "no", STATES[owner.state], owner.signal], decided);
    }
  }
  expect(oracle.wrong).toEqual([]);
  expect(oracle.unused).toEqual([]);
}, 600_000);

const KINDS = ["regular", "missing", "fifo", "link", "directory", "special", "unread"] as const;
const PLACES = KINDS.flatMap((lockFile) =>
  KINDS.flatMap((fenceFile) =>
    (["read", "none", "unreadable", "newer"] as const).map((recordFile) => ({
      lockFile,
      fenceFile,
      recordFile,
    })),
  ),
);

test("a repair goes by what stands in the place of the files, where nothing else tells", () => {
  const oracle = new Oracle(FILES);
  const side = (kind: string): string =>
    ["regular", "missing", "unread"].includes(kind) ? "right" : "wrong";
  for (const evidence of listEvidence([])) {
    const name = nameVerdict(evidence);
    if (!name.endsWith("lock-unaskable") && !name.endsWith("no-generation")) continue;
    for (const places of PLACES) {
      const words = [name, side(places.lockFile), side(places.fenceFile), places.recordFile];
      oracle.check(words, tellRepair(evidence, { ...FILES_PLAIN, ...places }));
    }
  }
  expect(oracle.wrong).toEqual([]);
  expect(oracle.unused).toEqual([]);
}, 600_000);

/** Whether that is so which a rule is said to miss. */
const IS_SO: Readonly<Record<RuleMiss, (evidence: LeaseEvidence) => boolean>> = {
  "lock-askable": ({ lock }) => ["held", "free"].includes(lock.kind),
  "lock-free": ({ lock }) => lock.kind === "free",
  released: ({ source }) => source.kind === "read" && source.isReleased,
  "released-by-journal": (evidence) => evidence.isReleasedByJournal === "yes",
  "not-released": ({ source, isReleasedByJournal: journal }) =>
    source.kind === "read" && !source.isReleased && journal !== "yes",
  "used-before": ({ source, hasHistory }) => source.kind === "none" && hasHistory !== "no",
  "record-unreadable": ({ source }) => source.kind === "unreadable",
  "generation-unknown": ({ source }) => source.kind !== "read",
  "same-boot": ({ sameBoot }) => sameBoot === "yes",
  "other-boot": ({ sameBoot }) => sameBoot === "no",
  "owner-gone": ({ ownerAlive }) => ownerAlive === "no",
  "other-lock-file": ({ sameLockInode }) => sameLockInode === "no",
  "lock-file-unread": ({ sameLockInode }) => sameLockInode === "unread",
};

function complainOfRules(evidence: LeaseEvidence): string | undefined {
  const { rule } = decideVerdict(evidence);
  const rules = explainRules(evidence);
  const at = rules.findIndex(({ state }) => state === "decided");
  if (rules[at]?.rule !== rule) return `${rules[at]?.rule} instead of ${rule}`;
  const isSilent = rules.slice(0, at).some(({ misses }) => misses.length === 0);
  if (isSilent || rules[at].misses.length > 0) return "misses and decides at once";
  if (rules.slice(at + 1).some(({ state }) => state !== "not-asked")) return "asked on";
  const untrue = rules.flatMap(({ misses }) => misses).find((miss) => !IS_SO[miss](evidence));
  return untrue === undefined ? undefined : `${untrue} is not so`;
}

test("the rules that are told come to the verdict, and what they miss is so", () => {
  const wrong: unknown[] = [];
  const told = new Set<string>();
  for (const evidence of listEvidence([facts("hasHistory")])) {
    const complaint = complainOfRules(evidence);
    if (complaint !== undefined && wrong.length < 3) wrong.push({ complaint, evidence });
    for (const { misses } of explainRules(evidence)) for (const miss of misses) told.add(miss);
  }
  expect(wrong).toEqual([]);
  expect([...told].toSorted()).toEqual(Object.keys(IS_SO).toSorted());
}, 600_000);
