/**
 * Pids that are used again, forced in a pid namespace of its own: a stranger has the pid of the
 * dead owner, of its command or of a recorded member, and even the same start tick. It is neither
 * believed nor signalled: not by a newcomer, a repair, the fence, `stop`, nor the guard. Where no
 * pid was used again nothing was tested, and the test fails.
 *
 * A same start is no invention: 268 of 300 pids that were used again at once had it. Of an owner it
 * cannot happen, because its record is written later than in its first tick: there the record is
 * given the start of the stranger.
 */
import { describe, expect } from "bun:test";
import { mkdirSync } from "node:fs";
import { FAULTS, FIXTURES, openScene, RELEASE, rootTest } from "../support/scene.ts";

const scene = openScene(import.meta.file);
const NAMESPACE = ["unshare", "-pf", "--mount-proc", "--kill-child"];
const PYTHON = ["/usr/bin/python3", "-I", "-S"];
const LEASE_LOST = 76;
/** As many tries as it takes: 13 to 40 as a rule, and 437 were seen on a busy machine. */
const LIMIT_MS = 900_000;

interface Asked {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface Told {
  readonly is_reused: boolean;
  readonly tries: number;
  /** Of a member that was as young as that: a beat has named it. */
  readonly is_named?: boolean;
  readonly name: string;
  readonly stranger: number;
  readonly dry?: Asked;
  readonly stop?: Asked;
  readonly fence?: Asked;
  readonly repair?: Asked;
  readonly next: Asked;
  readonly is_untouched: boolean;
  readonly heard: readonly string[];
}

type Whose = "owner" | "main" | "member";
type Start = "later" | "same";
type Act = "newcomer" | "repair" | "guard";

let count = 0;

async function reuse(whose: Whose, start: Start, act: Act): Promise<Told> {
  const directory = scene.path(`reuse-${(count += 1)}`);
  mkdirSync(directory);
  const words = [`${FIXTURES}/reuses-pids.py`, whose, start, act, RELEASE, FAULTS, directory];
  const env = { WATCHDOG_STATE_DIR: `${directory}/state` };
  const { stdout, stderr } = await scene.startProgram([...NAMESPACE, ...PYTHON, ...words], { env })
    .ended;
  if (stdout.length === 0) throw new Error(stderr);
  const told = JSON.parse(stdout.toString()) as Told;
  // Without it nothing was tested.
  expect(told.is_reused).toBe(true);
  const named = told.is_named === false ? ", by no beat named so young" : "";
  console.error(`pid of the ${whose}, ${start} start: used again in ${told.tries} tries${named}`);
  return told;
}

/** Alive under its pid and start, and it has heard nothing. */
function expectUntouched({ stranger, heard, is_untouched: isUntouched }: Told): void {
  expect([isUntouched, heard]).toEqual([true, [`${stranger} ready`]]);
}

function expectTakenOver({ next, name }: Told): void {
  expect([next.status, next.stdout]).toEqual([0, "ok\n"]);
  expect(next.stderr).toMatch(
    new RegExp(`^watchdog: took over job:${name} from run [^\\n]+ \\(R6 tree-empty\\)\\n$`),
  );
}

const TITLES: Readonly<Record<Whose, string>> = {
  owner: "the dead owner",
  main: "its dead command",
  member: "a dead recorded member",
};
const STARTS: Readonly<Record<Start, string>> = { later: "", same: " and its start tick" };

for (const whose of ["owner", "main", "member"] as const) {
  for (const start of ["later", "same"] as const) {
    describe(`a stranger that has the pid of ${TITLES[whose]}${STARTS[start]}`, () => {
      rootTest(
        "is neither believed nor signalled by a newcomer",
        async () => {
          const told = await reuse(whose, start, "newcomer");
          expectUntouched(told);
          expectTakenOver(told);
        },
        LIMIT_MS,
      );

      rootTest(
        "is neither believed nor signalled by repair, fence and stop",
        async () => {
          const told = await reuse(whose, start, "repair");
          const { dry, stop, fence, repair, next, name } = told;
          const [lease] = JSON.parse(dry?.stdout ?? "").leases;
          expect(lease).toMatchObject({
            verdict: "dead",
            because: "tree-empty",
            survivors: [],
            suspects: [],
            plans: [{ action: "mark" }],
          });
          expect(stop?.status).toBe(1);
          const left = `its lease job:${name} was not given back: its watchdog is dead; `;
          expect(stop?.stderr).toContain(left);
          // The command of some of them has put down its environment.
          if (fence !== undefined) {
            expect([fence.status, fence.stdout]).toEqual([LEASE_LOST, ""]);
            expect(fence.stderr).toContain(`job:${name} has no living owner`);
          }
          expect([repair?.status, repair?.stderr]).toEqual([0, ""]);
          expectUntouched(told);
          expect([next.status, next.stdout]).toEqual([0, "ok\n"]);
          expect(next.stderr).toBe("");
        },
        LIMIT_MS,
      );
    });
  }
}

describe("a stranger that has the pid of its dead command and its start tick", () => {
  rootTest(
    "is neither believed nor signalled by the guard",
    async () => {
      const told = await reuse("main", "same", "guard");
      expectUntouched(told);
      expect([told.next.status, told.next.stdout]).toEqual([0, "ok\n"]);
    },
    LIMIT_MS,
  );
});
