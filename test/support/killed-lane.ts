/**
 * One lane of rounds: a run of some job is killed at some moment, and the next run under the same
 * key has to be right. Each round judges by what the processes themselves have left behind (ticks,
 * their environment, announced pids), and only then by what the journal says.
 */
import { expect } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { askJson } from "./ask.ts";
import {
  type Announced,
  GONE_LIMIT_MS,
  isStillThere,
  roundEntry,
  roundVariable,
  waitUntilNobodyCarries,
} from "./killing.ts";
import { PYTHON } from "./outside.ts";
import { findCarriers, FIXTURES, type Scene, type Started } from "./scene.ts";
import { findLateTicks, listRuns, readTicks } from "./ticks.ts";
import { waitFor } from "./wait-for.ts";

export type JobKind = "sh" | "node" | "python" | "double-fork" | "title-child" | "title-orphan";
export const JOB_KINDS: readonly JobKind[] = [
  "sh",
  "node",
  "python",
  "double-fork",
  "title-child",
  "title-orphan",
];

/** The words of a job whose processes write ticks and, where they hide, announce themselves. */
function wordsOf(kind: JobKind, ticks: string, announce: string): string[] {
  const writer = [`${FIXTURES}/keeps-writing.sh`, ticks];
  const isolated = [PYTHON, "-I", "-S"];
  const thenWrites = (words: readonly string[]): string[] => [
    "sh",
    "-c",
    `f=$1 t=$2; shift 2; "$@" & exec sh "$f" "$t"`,
    "sh",
    ...writer,
    ...words,
  ];
  switch (kind) {
    case "sh":
      return ["sh", ...writer, "tree"];
    case "python":
      return [...isolated, `${FIXTURES}/keeps-writing.py`, ticks, "tree"];
    case "node":
      return ["node", `${FIXTURES}/keeps-writing.mjs`, ticks, "tree"];
    case "double-fork":
      return thenWrites([...isolated, `${FIXTURES}/daemonizes.py`, announce, "sh", ...writer]);
    case "title-child":
    case "title-orphan": {
      const manner = kind.slice("title-".length);
      return thenWrites([...isolated, `${FIXTURES}/titles-itself.py`, ticks, announce, manner]);
    }
  }
}

/**
 * What the next run runs: whoever of the round before is alive at its first instruction is named;
 * then some ticks, and its id and generation.
 */
const NEXT = `grep -lzsx "$2" /proc/[0-9]*/environ
  for i in 1 2 3 4 5 6 7 8; do echo "$WATCHDOG_RUN_ID $$" >>"$1"; sleep 0.005; done
  echo "$WATCHDOG_RUN_ID $WATCHDOG_GENERATION"`;

interface Row {
  readonly run_id: string;
  readonly outcome: string | null;
}

export interface Round {
  /** What its processes have in their environment; those of earlier ones before. */
  readonly entries: readonly string[];
  readonly run: Started;
  readonly killedAt: number;
  readonly before: number;
}

export class KilledLane {
  readonly #scene: Scene;
  readonly #kind: JobKind;
  readonly #job: string;
  readonly #ticks: string;
  readonly #announce: string;
  #rounds = 0;
  #generation = 0;
  #followed = 0;
  /** Runs whose command has shown life before the kill. */
  begun = 0;
  notBegun = 0;
  /** Rounds in which somebody of the tree lived on after the kill. */
  survived = 0;

  constructor(scene: Scene, kind: JobKind, what: string) {
    this.#scene = scene;
    this.#kind = kind;
    this.#job = `${what}-${kind}`;
    this.#ticks = scene.path(`${this.#job}.ticks`);
    this.#announce = scene.path(`${this.#job}.announced`);
  }

  /**
   * Starts the job and kills its watchdog at that moment.
   *
   * @param earlier  the round before, which no run has followed yet
   */
  async kill(
    momentMs: number,
    how: (run: Started) => Promise<void>,
    earlier?: Round,
  ): Promise<Round> {
    this.#rounds += 1;
    const mark = `${this.#job}-${this.#rounds}`;
    const before = earlier?.before ?? listRuns(readTicks(this.#ticks)).length;
    const entries = [...(earlier?.entries ?? []), roundEntry(mark)];
    rmSync(this.#announce, { force: true });
    rmSync(this.#scene.path(`${this.#job}.json`), { force: true });
    // Who leaves the session and hides within one beat is not promised to be found (README).
    const kind = earlier === undefined ? this.#kind : "sh";
    const words = ["--name", this.#job, "--heartbeat-interval", "100ms"];
    const run = this.#scene.start(
      [
        [...words, ...this.#scene.recordTo(this.#job), "--"],
        wordsOf(kind, this.#ticks, this.#announce),
      ].flat(),
      { env: roundVariable(mark), stdout: "ignore", stderr: "ignore" },
    );
    if (kind === "title-orphan") await this.#waitUntilRecorded();
    await Bun.sleep(momentMs);
    const killedAt = performance.now();
    await how(run);
    return { entries, run, killedAt, before };
  }

  async #waitUntilRecorded(): Promise<void> {
    const daemon = await waitFor(() => this.#readAnnounced(), "a daemon with a title");
    await waitFor(async () => {
      const lease = await askJson(this.#scene, ["lease", "show", `job:${this.#job}`]);
      return lease.children?.some(({ pid }: { pid: number }) => pid === daemon.pid);
    }, "a beat that has recorded the daemon");
  }

  #readAnnounced(): Announced | undefined {
    if (!existsSync(this.#announce)) return undefined;
    const [pid, startTicks] = readFileSync(this.#announce, "utf8").trim().split(" ").map(Number);
    return pid === undefined || startTicks === undefined ? undefined : { pid, startTicks };
  }

  /** Everybody of the round is gone, soon; the hidden daemon too. */
  async waitUntilGone({ entries, killedAt }: Round): Promise<void> {
    for (const entry of entries) await waitUntilNobodyCarries(entry, killedAt);
    const daemon = this.#readAnnounced();
    if (daemon === undefined) return;
    await waitFor(() => !isStillThere(daemon), `daemon ${daemon.pid} gone`, {
      limitMs: GONE_LIMIT_MS,
    });
  }

  /** Whoever of the round lives, right now. */
  countAlive({ entries }: Round): number {
    const daemon = this.#readAnnounced();
    const hidden = daemon !== undefined && isStillThere(daemon) ? 1 : 0;
    return entries.reduce((sum, entry) => sum + findCarriers(entry).length, hidden);
  }

  /** The next run under the key: it starts, alone, with a larger generation. */
  async runNext({ entries, before }: Round): Promise<void> {
    // Each line of a pattern is one of its own (grep(1)).
    const command = ["sh", "-c", NEXT, "sh", this.#ticks, entries.join("\n")];
    const next = await this.#scene.run(["--name", this.#job, "--", ...command]);
    const said = next.stdout.toString();
    expect({ entries, status: next.status, said, stderr: next.stderr }).toMatchObject({
      status: 0,
      said: expect.stringMatching(/^[0-9a-f-]{36} \d+\n$/),
    });
    this.#followed += 1;
    const [id = "", generation] = said.trim().split(" ");
    expect(Number(generation)).toBeGreaterThan(this.#generation);
    this.#generation = Number(generation);
    const ticks = readTicks(this.#ticks);
    expect(findLateTicks(ticks)).toEqual([]);
    const runs = listRuns(ticks).slice(before);
    expect(runs.at(-1)).toBe(id);
    this.begun += runs.length - 1;
    this.notBegun += entries.length + 1 - runs.length;
    await this.#waitForRows([
      ...runs.slice(0, -1).map((killed) => `${killed} abandoned`),
      `${id} ok`,
    ]);
  }

  /** Rows of the journal: a death is written down by the guard or by the next run. */
  async #waitForRows(wanted: readonly string[]): Promise<void> {
    let found: string[] = [];
    await waitFor(
      async () => {
        const { runs } = await askJson(this.#scene, ["history", this.#job, "--limit", "5"]);
        found = runs.map((run: Row) => `${run.run_id} ${run.outcome}`);
        return wanted.every((row) => found.includes(row));
      },
      `${wanted.join(", ")} in the journal of ${this.#job}`,
      { limitMs: GONE_LIMIT_MS },
    ).catch((error: unknown) => {
      throw new Error(`the journal says: ${found.join(", ")}`, { cause: error });
    });
  }

  /** The result file, where the killed run had come so far as to write one. */
  async waitForResult(): Promise<void> {
    const path = this.#scene.path(`${this.#job}.json`);
    if (!existsSync(path)) return;
    await waitFor(() => this.#scene.readRecord(this.#job)["state"] === "ended", "the result file", {
      limitMs: GONE_LIMIT_MS,
    });
    expect(this.#scene.readRecord(this.#job)).toMatchObject({
      outcome: "abandoned",
      because: "watchdog-killed",
      exit_status: null,
      status_of: null,
    });
  }

  /** At the end of the lane nobody's row says that it still runs, and its key is tidy. */
  async expectSettled(): Promise<void> {
    const { runs } = await askJson(this.#scene, ["history", this.#job, "--limit", "100000"]);
    expect(runs.length).toBeGreaterThanOrEqual(this.#followed);
    const outcomes = new Set(runs.map((run: Row) => run.outcome));
    expect(outcomes.isSubsetOf(new Set(["ok", "abandoned"]))).toBe(true);
    const lease = await askJson(this.#scene, ["lease", "show", `job:${this.#job}`]);
    expect(lease).toMatchObject({ verdict: "free", because: "released", lock: "free" });
    const names = readdirSync(`${this.#scene.stateDirectory}/leases/job/${this.#job}`);
    expect(names.filter((name) => name.startsWith("beat."))).toEqual([`beat.${this.#generation}`]);
  }
}
