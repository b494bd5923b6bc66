/**
 * The verdict over every combination of evidence, against a table written by hand. The decision
 * takes the first rule that fits; in the table exactly one line fits each combination.
 */
import { expect, test } from "bun:test";
import type { Fact, FoundProcess, LeaseEvidence, TreeFinding } from "../../src/core/evidence.ts";
import { decideVerdict } from "../../src/core/lease-verdict.ts";

/**
 * `a|b`: one of these; `!a`: anything but that; `*`, or no such column: anything. A line that
 * begins with `##` holds for all lines below it.
 */
const TABLE = `
## lock=unaskable
because
unknowable R1 lock-unaskable

## lock=held
source                   journal owner boot beat   because
open                     !yes    !no   !no  fresh  held R2 beat-fresh
open                     !yes    !no   !no  unread held R2 beat-unread
open                     !yes    !no   !no  old    stalled R2 beat-old
none|unreadable|released *       *     *    *      held R3 being-acquired
open                     yes     *     *    *      held R3 being-acquired
open                     !yes    *     no   *      held R3 being-acquired
open                     !yes    no    !no  *      held R3 being-acquired

## lock=free
source               journal history because
released             *       *       free R4 released
none|unreadable|open yes     *       free R4 released-by-journal
none                 no      no      free R4 never-held
none                 unread  no      free R4 nothing-recorded
none                 !yes    !no     unknowable R8 no-generation
unreadable           !yes    *       unknowable R8 no-generation

## lock=free source=open journal=!yes
owner  boot   machine inode namespace tree         because
*      no     yes     *     *         *            dead R5 other-boot
*      no     no      *     *         *            elsewhere R5 other-machine
*      no     unread  *     *         *            elsewhere R5 machine-unread
*      unread *       *     *         unread       orphaned R5 tree-unread
*      unread *       *     *         empty|blind  elsewhere R5 boot-unread
*      unread *       *     *         members      orphaned R5 members
*      unread *       *     *         unsignalable orphaned R5 unsignalable
*      unread *       *     *         suspects     orphaned R5 suspects
*      unread *       *     *         ancestor     orphaned R5 ancestor-of-newcomer
*      yes    *       yes   no        *            elsewhere R6 other-namespace
*      yes    *       yes   unread    *            elsewhere R6 namespace-unread
*      yes    *       yes   yes       unread       orphaned R6 tree-unread
*      yes    *       yes   yes       empty        dead R6 tree-empty
*      yes    *       yes   yes       blind        elsewhere R6 members-not-compared
*      yes    *       yes   yes       members      orphaned R6 members
*      yes    *       yes   yes       unsignalable orphaned R6 unsignalable
*      yes    *       yes   yes       suspects     orphaned R6 suspects
*      yes    *       yes   yes       ancestor     orphaned R6 ancestor-of-newcomer
yes    yes    *       !yes  *         *            unknowable R7 lock-replaced
unread yes    *       !yes  *         *            elsewhere R7 owner-unread
no     yes    *       !yes  no        *            elsewhere R7 other-namespace
no     yes    *       !yes  unread    *            elsewhere R7 namespace-unread
no     yes    *       !yes  yes       unread       orphaned R7 tree-unread
no     yes    *       !yes  yes       empty        dead R7 tree-empty
no     yes    *       !yes  yes       blind        elsewhere R7 members-not-compared
no     yes    *       !yes  yes       members      orphaned R7 members
no     yes    *       !yes  yes       unsignalable orphaned R7 unsignalable
no     yes    *       !yes  yes       suspects     orphaned R7 suspects
no     yes    *       !yes  yes       ancestor     orphaned R7 ancestor-of-newcomer
`;

const FACTS: readonly Fact[] = ["yes", "no", "unread"];

type Part = Partial<LeaseEvidence>;

/** What one value of a column stands for: each of these pieces of evidence. */
interface Choice {
  readonly word: string;
  readonly evidence: Part;
}

function choose(word: string, evidence: Part): Choice {
  return { word, evidence };
}

function chooseFact(name: keyof LeaseEvidence): Choice[] {
  return FACTS.map((fact) => choose(fact, { [name]: fact }));
}

function find(marks = ""): FoundProcess {
  return {
    pid: 4711,
    start_time: 5,
    command: "sleep 60",
    isSignalable: !marks.includes("u"),
    isAncestor: marks.includes("a"),
  };
}

function chooseTree(
  word: string,
  members: string[],
  suspects: string[],
  more: Partial<TreeFinding> = {},
): Choice {
  const tree: TreeFinding = { members: members.map(find), suspects: suspects.map(find), ...more };
  return choose(word, { tree });
}

/** In the marks of a process, `u` is unsignalable and `a` an ancestor of the newcomer. */
const TREES: readonly Choice[] = [
  choose("unread", { tree: "unread" }),
  chooseTree("empty", [], []),
  chooseTree("blind", [], [], { isBlind: true }),
  chooseTree("members", [""], [], { isBlind: true }),
  chooseTree("suspects", [], [""], { isBlind: true }),
  chooseTree("members", [""], []),
  chooseTree("members", ["", ""], []),
  chooseTree("unsignalable", ["", "u"], []),
  chooseTree("unsignalable", ["u", ""], [""]),
  chooseTree("unsignalable", ["ua"], []),
  chooseTree("unsignalable", ["a", "u"], ["a"]),
  chooseTree("suspects", [], [""]),
  chooseTree("suspects", [], ["u"]),
  chooseTree("suspects", [], ["a"]),
  chooseTree("suspects", [""], [""]),
  chooseTree("suspects", ["a"], [""]),
  chooseTree("ancestor", ["a"], []),
  chooseTree("ancestor", ["", "a"], []),
];

const STALE_MS = 40_000;

const BEATS: readonly Choice[] = (
  [
    ["unread", undefined],
    ["unread", -1],
    ["unread", Number.NaN],
    ["fresh", 0],
    ["fresh", STALE_MS],
    ["old", STALE_MS + 0.5],
    ["old", 4_800_000],
  ] as const
).map(([word, beatAgeMs]) => choose(word, { beatAgeMs }));

function chooseRead(word: string, isReleased: boolean): Choice {
  const read = { kind: "read", from: "record", generation: 7, isReleased, runId: "r" } as const;
  return choose(word, { source: read });
}

const COLUMNS: Readonly<Record<string, readonly Choice[]>> = {
  lock: [
    choose("held", { lock: { kind: "held" } }),
    choose("free", { lock: { kind: "free" } }),
    choose("unaskable", { lock: { kind: "unaskable", reason: "ENOLCK" } }),
  ],
  source: [
    choose("none", { source: { kind: "none" } }),
    choose("unreadable", { source: { kind: "unreadable", reason: "no JSON" } }),
    chooseRead("released", true),
    chooseRead("open", false),
  ],
  journal: chooseFact("isReleasedByJournal"),
  history: chooseFact("hasHistory"),
  owner: chooseFact("ownerAlive"),
  boot: chooseFact("sameBoot"),
  machine: chooseFact("sameMachine"),
  inode: chooseFact("sameLockInode"),
  namespace: chooseFact("namespaceContained"),
  tree: TREES,
  beat: BEATS,
};

const NAMES = Object.keys(COLUMNS);

interface Line {
  /** By column: the words that fit; undefined: all. */
  readonly fits: readonly (ReadonlySet<string> | undefined)[];
  readonly because: string;
}

function wordsOf(name: string, cell: string): ReadonlySet<string> | undefined {
  if (cell === "*") return undefined;
  const known = new Set((COLUMNS[name] ?? []).map(({ word }) => word));
  const named = new Set(cell.replace("!", "").split("|"));
  for (const word of named) if (!known.has(word)) throw new Error(`${name} is never ${word}`);
  return cell.startsWith("!") ? known.difference(named) : named;
}

function parseTable(): Line[] {
  const lines: Line[] = [];
  for (const section of TABLE.trim().split("\n\n")) {
    const [heading = "", header = "", ...rows] = section.split("\n");
    const fixed = heading
      .slice(3)
      .split(" ")
      .map((pair) => pair.split("="));
    const names = header.trim().split(/ +/).slice(0, -1);
    for (const row of rows) {
      const words = row.trim().split(/ +/);
      const cells = new Map(names.map((name, index) => [name, words[index] ?? "*"]));
      for (const [name = "", cell = "*"] of fixed) cells.set(name, cell);
      const fits = NAMES.map((name) => wordsOf(name, cells.get(name) ?? "*"));
      lines.push({ fits, because: words.slice(names.length).join(" ") });
    }
  }
  return lines;
}

const PLAIN: LeaseEvidence = {
  key: { kind: "job", name: "nightly" },
  lock: { kind: "free" },
  source: { kind: "none" },
  record: undefined,
  slot: undefined,
  hasHistory: "no",
  isReleasedByJournal: "no",
  ownerAlive: "no",
  sameBoot: "yes",
  sameMachine: "yes",
  sameLockInode: "yes",
  namespaceContained: "yes",
  recordedPids: "ours",
  beatAgeMs: undefined,
  staleAfterMs: STALE_MS,
  note: "none",
  tree: "unread",
};

/** Counts through all combinations; `visit` gets the choice of each column. */
function forEachCombination(visit: (chosen: readonly Choice[], evidence: Part) => void): void {
  const chosen: Choice[] = [];
  const descend = (column: number, evidence: Part): void => {
    const choices = COLUMNS[NAMES[column] ?? ""];
    if (choices === undefined) return visit(chosen, evidence);
    for (const choice of choices) {
      chosen[column] = choice;
      descend(column + 1, { ...evidence, ...choice.evidence });
    }
  };
  descend(0, PLAIN);
}

test("fits the one line of the table, for each of all combinations", () => {
  const lines = parseTable();
  const counts = lines.map(() => 0);
  const wrong: unknown[] = [];
  let count = 0;
  forEachCombination((chosen, evidence) => {
    count += 1;
    const verdict = decideVerdict(evidence as LeaseEvidence);
    const decided = `${verdict.name} ${verdict.rule} ${verdict.because}`;
    const fitting: string[] = [];
    for (const [index, { fits, because }] of lines.entries()) {
      if (!chosen.every(({ word }, column) => fits[column]?.has(word) ?? true)) continue;
      counts[index] = (counts[index] ?? 0) + 1;
      fitting.push(because);
    }
    const isRight = fitting.length === 1 && fitting[0] === decided;
    if (!isRight && wrong.length < 3) wrong.push({ chosen, decided, fitting });
  });
  expect(wrong).toEqual([]);
  expect(count).toBe(3 * 4 * 3 ** 7 * TREES.length * BEATS.length);
  expect(lines.filter((_, index) => counts[index] === 0)).toEqual([]);
}, 600_000);

test("does not depend on who tells it, on a note, or on what the record says beside", () => {
  const others: Part[] = [
    { key: { kind: "lane", name: "server" } },
    ...(["young", "old", "unread"] as const).map((note) => ({ note })),
    ...(["slot", "journal"] as const).map((from) => ({
      source: { kind: "read", from, generation: 9, isReleased: false, runId: "s" } as const,
    })),
  ];
  let count = 0;
  const open = COLUMNS["source"]?.at(-1)?.evidence ?? {};
  for (const tree of TREES) {
    for (const boot of FACTS) {
      const plain = { ...PLAIN, ...open, ...tree.evidence, sameBoot: boot };
      for (const other of others) {
        count += 1;
        expect(decideVerdict({ ...plain, ...other })).toEqual(decideVerdict(plain));
      }
    }
  }
  expect(count).toBe(TREES.length * 3 * 6);
});
