/**
 * The last runs of one job or key, or of all, newest first, as the journal has them. Gathers;
 * decides nothing.
 */
import { type JournalRun, readHistory } from "../journal/queries.ts";
import { isGoingOn, showJournalRun, viewAnswer } from "./journal-runs.ts";

export interface HistoryQuestion {
  readonly stateDirectory: string;
  /** The name of a job, a key or the id of a run; undefined: all runs. */
  readonly target: string | undefined;
  readonly limit: number;
}

export interface HistoryRun {
  readonly run: JournalRun;
  /** False also where its end was not written down, or where it runs out of our sight. */
  readonly isGoingOn: boolean;
}

export interface HistoryView {
  readonly target: string | undefined;
  readonly runs: readonly HistoryRun[];
  /** False: there is a journal, and nothing can be had from it. */
  readonly isReadable: boolean;
  readonly troubles: readonly string[];
}

export function readHistoryView({ stateDirectory, target, limit }: HistoryQuestion): HistoryView {
  const found = viewAnswer<JournalRun[]>(readHistory(stateDirectory, { target, limit }), []);
  const runs = found.value.map((run) => ({ run, isGoingOn: isGoingOn(run) }));
  return { target, runs, isReadable: found.isReadable, troubles: found.troubles };
}

/** As `history --json` shows it, `job` being what was asked. A contract; ignore unknown fields. */
export function showHistory(view: HistoryView): Record<string, unknown> {
  return {
    format: 1,
    job: view.target ?? null,
    runs: view.runs.map(({ run }) => showJournalRun(run)),
    troubles: view.troubles,
  };
}
