/**
 * The fields of the answers in JSON, by the commands that print them: the contract with whoever
 * reads `status`, `history`, `report`, `why`, `job`, `lease`, `repair`, `patrol`, `circuit`,
 * `probe`, `notify`, `doctor` and `config` with `--json`.
 *
 * Never loaded by an answer; the README's table is made from it, and a test of the real binary
 * (test/e2e/answer-fields.test.ts) holds the two together. Always: a whole comes before its parts;
 * what is described elsewhere is named and not repeated: leases in a list have the fields of
 * `lease show`, circuits in a list those of `circuit show`, runs those of the record
 * (cli/result-schema.ts).
 */

import { CHECKS, PROMISES } from "../core/promises.ts";
import { jobFields, jobPlanFields, jobVerifyFields } from "./job-fields.ts";
import { flushFields, noticeListFields, testFields } from "./notify-fields.ts";
import { reportFields, whyFields } from "./report-fields.ts";
import {
  beatFields,
  previousFields,
  processFields,
  recordFields,
  repairMarkFields,
  treeFields,
  verdictFields,
} from "./lease-fields.ts";
import { configFileFields, findingFields, settingFields } from "./config-fields.ts";
import {
  circuitFields,
  circuitSettingFields,
  type Meanings,
  nameAll,
  probeFields,
} from "./dependency-fields.ts";
import { patrolFields } from "./patrol-fields.ts";

export type AnswerCommandName =
  | "status"
  | "history"
  | "report"
  | "why"
  | "job status"
  | "job plan"
  | "job verify"
  | "lease list"
  | "lease show"
  | "lease explain"
  | "repair"
  | "patrol"
  | "circuit list"
  | "circuit show"
  | "probe"
  | "notify list"
  | "notify test"
  | "notify flush"
  | "doctor"
  | "config show"
  | "config check";

export interface AnswerFieldRow {
  readonly commands: readonly AnswerCommandName[];
  /** `leases`, `leases[].format`, `previous.run_id`. */
  readonly field: string;
  readonly meaning: string;
}

const ABANDONED_BY =
  "who wrote down that it was abandoned: `guard`, `next-run`, `repair` or `patrol`, " +
  "null: it was not; " +
  "not part of the record";
/** The other ones that name what they could not read. */
const TROUBLED = [
  "report",
  "why",
  "job status",
  "job plan",
  "patrol",
  "circuit list",
  "config show",
] as const;
const ABOUT_STATE = ["status", "history", "lease list", "repair"] as const;

export const ANSWER_FIELDS: readonly AnswerFieldRow[] = [
  ...rowsOf(
    [
      ...ABOUT_STATE,
      "report",
      "why",
      "job status",
      "job plan",
      "job verify",
      "lease show",
      "lease explain",
      "patrol",
      "circuit list",
      "circuit show",
      "probe",
      "notify list",
      "notify test",
      "notify flush",
      "doctor",
      "config show",
      "config check",
    ],
    {
      format: "format of the answer; a larger number: another contract",
    },
  ),
  ...rowsOf(["status", "lease list", "repair", "patrol", "circuit list", "notify list", "report"], {
    state_directory: "the state directory that was asked, as an absolute path",
  }),
  ...rowsOf(["status", "lease list", "repair"], {
    "leases[].format": "format of the record of this lease, null where none was read",
  }),
  ...rowsOf(["status", "lease list"], {
    leases: "leases that ever were, free ones too, each with the fields of `lease show`",
  }),
  ...rowsOf(["status"], {
    runs: "runs that go on and hold no lease, each a record",
    "runs[].pid_start_time": "start of its watchdog, in ticks since boot; not part of the record",
    last_runs:
      "how each job last ended, newest first, each a record; " +
      "`state` is `running` where the watchdog is gone and nobody wrote the end down",
    "last_runs[].abandoned_by": ABANDONED_BY,
    circuits:
      "circuits that are not closed, each with the fields of `circuit show`; nobody's lock is " +
      "asked for it",
  }),
  ...rowsOf(["history"], {
    job: "what was asked for: a job, a key or a run; null: all runs",
    runs: "the runs, newest first, each a record; of an unreadable one only what else is known",
    "runs[].abandoned_by": ABANDONED_BY,
  }),
  ...rowsOf(["report"], reportFields()),
  ...rowsOf(["why"], whyFields()),
  ...rowsOf(["job status"], jobFields()),
  ...rowsOf(["job plan"], jobPlanFields()),
  ...rowsOf(["job verify"], jobVerifyFields()),
  ...rowsOf([...ABOUT_STATE, ...TROUBLED], {
    troubles: "lines about what could not be read, as on stderr",
  }),
  ...rowsOf(["lease show"], {
    ...verdictFields(),
    ...recordFields(),
    ...previousFields(),
    ...repairMarkFields(),
    ...beatFields(),
    ...treeFields(),
  }),
  ...rowsOf(["lease explain"], { ...explainedFields(), ...outlookFields() }),
  ...rowsOf(["repair"], { ...repairFields(), ...planFields(), ...actFields() }),
  ...rowsOf(["patrol"], patrolFields()),
  ...rowsOf(["circuit list"], {
    circuits: "all of them, by name, each with the fields of `circuit show`",
  }),
  ...rowsOf(["circuit show"], { ...circuitFields(), ...circuitSettingFields() }),
  ...rowsOf(["probe"], probeFields()),
  ...rowsOf(["notify list"], noticeListFields()),
  ...rowsOf(["notify test"], testFields()),
  ...rowsOf(["notify flush"], flushFields()),
  ...rowsOf(["doctor"], checkupFields()),
  ...rowsOf(["config show", "config check"], configFileFields()),
  ...rowsOf(["config show"], settingFields()),
  ...rowsOf(["config check"], findingFields()),
];

function rowsOf(commands: readonly AnswerCommandName[], meanings: Meanings): AnswerFieldRow[] {
  return Object.entries(meanings).map(([field, meaning]) => ({ commands, field, meaning }));
}

function explainedFields(): Meanings {
  return {
    key: "the key, as kind:name",
    verdict: "as in `lease show`",
    rule: "the rule that gave the verdict, `R1` to `R8`",
    because: "the reason within that rule",
    trouble: "why the lock cannot be asked or the record not be read, null: both are fine",
    signals: "each fact that the verdict can depend on",
    "signals[].name":
      "`lock-taken`, `fence-taken`, `generation-known`, `released`, `released-by-journal`, " +
      "`used-before`, " +
      "`same-boot`, `same-machine`, `same-lock-file`, `owner-alive`, `namespace-contained`, " +
      "`pids-comparable`, `beat-fresh`, `tree-empty` or `note-old`",
    "signals[].says": "`yes`, `no` or `unread`",
    "signals[].raw": "what was read, for people",
    rules: "the rules in order",
    "rules[].rule": "`R1` to `R8`",
    "rules[].state": "`missed`, `decided` or `not-asked`: an earlier one has decided",
    "rules[].misses": "what of it is not so; none where it decided or was not asked",
    survivors: "as in `lease show`",
    ...processFields("survivors"),
    "survivors[].is_ancestor": "whether it is an ancestor of whoever asks",
    suspects: "as in `lease show`",
    ...processFields("suspects"),
    "suspects[].is_ancestor": "whether it is an ancestor of whoever asks",
  };
}

function outlookFields(): Meanings {
  return {
    newcomer: "what a run that wants the key would do here, for each `--on-survivors`",
    "newcomer[].on_survivors": "`kill`, `wait` or `refuse`",
    "newcomer[].does":
      "`acquire`, `end-survivors`, `wait` (for survivors or an operation, as long as it takes) " +
      "or `refuse`",
    "newcomer[].because": "the reason",
    "newcomer[].outcome": "`locked` or `config_error`, null: it is not refused",
    "newcomer[].can_wait": "whether `--wait` makes it wait, null: it is not refused",
    "newcomer[].leaves_note":
      "whether it notes the time, so that one `--stale-after` later takes the lease",
    cooldown_ms: "for so long nobody is granted it after a repair has ended its living owner",
    plans: "what a repair may do about it, the gentlest first",
    "plans[].plan_id": "as in `repair`, null: nothing is done, or it needs a generation",
    "plans[].action": "as in `repair`",
    "plans[].needs": "as in `repair`",
    "plans[].because": "the reason",
  };
}

function repairFields(): Meanings {
  return {
    mode: "`dry-run`, `apply` or `approve`",
    is_busy: "whether another repair was at work at that moment",
    leases:
      "leases that are suspicious or were asked for, each with the fields of `lease show`, as " +
      "found before anything was done",
    "leases[].lock_file":
      "what stands in the place of the lock: `regular`, `missing`, `fifo`, `link`, `directory`, " +
      "`special` or `unread`",
    "leases[].fence_file": "the same of the fence",
    "leases[].record_file": "the record: `read`, `none`, `unreadable` or `newer`",
    "leases[].owner_state": "its watchdog: `running`, `stopped`, `gone` or `unread`",
    "leases[].owner_signal":
      "whether it may be signalled: `allowed`, `another-user`, `ancestor`, `process-one`, `self` " +
      "or `unread`",
    "leases[].least_generation":
      "the least number that --set-generation takes here, null: it is of no use here",
    "leases[].stopped_by":
      "why --apply does nothing now: `repair-interval` or `max-repairs`, null: nothing stops it",
    "leases[].stopped_for_ms": "for how long, null: until a person has looked, or not at all",
  };
}

function planFields(): Meanings {
  return {
    "leases[].plans": "what may be done about it, the gentlest first",
    "leases[].plans[].plan_id": "the id for --approve, null: nothing can be done",
    "leases[].plans[].action":
      "`continue-owner`, `end-owner`, `end-survivors`, `end-suspects`, `mark`, `note`, " +
      "`set-aside-lock`, `set-generation` or `none`",
    "leases[].plans[].needs": "`apply`, `approval` or `nothing`",
    "leases[].plans[].because": "the reason",
  };
}

function actFields(): Meanings {
  return {
    interrupted: "acts of earlier repairs that never came to an end",
    "interrupted[].plan_id": "its plan",
    "interrupted[].key": "the key that it was about",
    "interrupted[].generation": "the generation that it was about, null: not known",
    "interrupted[].action": "what was to be done, as in `leases[].plans[].action`",
    "interrupted[].by": "who did it, as user@host",
    "interrupted[].pid": "pid of the repair that has begun it",
    "interrupted[].at": "when it was begun (wall clock, UTC)",
    "interrupted[].settled":
      "`open`: nothing is written now; `at-work`: another repair does it now; " +
      "`completed`: only its last line was missing; " +
      "`given-up`: judged anew",
    "interrupted[].asked_run_id":
      "run whose owner it has asked to end and that still has the key, null: none",
    acts: "what this repair has done",
    "acts[].key": "the key",
    "acts[].action": "as in `leases[].plans[].action`",
    "acts[].plan_id": "its plan, null: the evidence had changed and nothing was begun",
    "acts[].end": "`done`, `failed` or `refused`",
    "acts[].because": "the reason",
    "acts[].text": "the same for people",
  };
}

function checkupFields(): Meanings {
  return {
    state_directory: "the state directory that was looked at, null: its name cannot be told",
    checks: "each check, in order",
    "checks[].check": `its name: ${nameAll(CHECKS)}`,
    "checks[].state":
      "`ok`; `note`: nothing is wrong, but not all is to be had here; `finding`; `unknown`: it " +
      "could not be tried",
    "checks[].seen": "what was seen, for people",
    "checks[].advice": "what to do about it, for people, null: nothing",
    promises: "what watchdog promises, and whether it holds here",
    "promises[].promise": nameAll(PROMISES),
    "promises[].state": "`holds`, `holds-in-part`, `unproven` or `does-not-hold`",
    "promises[].because": "the checks that it is for; none where it holds",
  };
}
