/**
 * What dependencies cost: a probe a second while a run is idle, the requests of many runs that
 * share a circuit, how fast a tree stands still, and the start of `watchdog retry`. The server that
 * is probed is this process. Clock: performance.now for spans; the wall clock of the journal, for
 * both ends of a pause.
 */
import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { beginIdleRun, type LifeRow } from "./lease-life.ts";
import { type Bench, medianOf, timeInterleaved } from "./measure.ts";
import { WATCHDOG } from "./programs.ts";

const SHARING_RUNS = 50;
const FROZEN_PROCESSES = 100;
const FREEZES = 5;
const PERIOD = ["--probe-period", "1s"];

export interface DependencySpans {
  readonly idleSeconds: number;
  readonly settlingSeconds: number;
  readonly sharedSeconds: number;
  readonly rounds: number;
}

export async function measureDependencies(
  spans: DependencySpans,
  bench: Bench,
): Promise<LifeRow[]> {
  const server = new ProbedServer();
  try {
    return [
      ...(await measureProbing(spans, server, bench)),
      await compareRequests(spans.sharedSeconds, server, bench),
      await measureFreezes(server, bench),
      compareRetryStart(spans.rounds, bench),
    ];
  } finally {
    server.stop();
  }
}

/** Answers `/health`, and counts who asks. */
class ProbedServer {
  isUp = true;
  requests = 0;
  readonly #server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => {
      this.requests += 1;
      return new Response("ok", { status: this.isUp ? 200 : 503 });
    },
  });

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/health`;
  }

  stop(): void {
    void this.#server.stop(true);
  }
}

/** Aim: at most 5 s of CPU an hour. Beside one without a probe, at the same time. */
function measureProbing(
  { idleSeconds, settlingSeconds }: DependencySpans,
  { url }: ProbedServer,
  bench: Bench,
): Promise<LifeRow[]> {
  const contestants = [
    ["an idle run without a probe", [], "2 s, 50 MB"],
    ["an idle run with one HTTP probe a second", ["--probe", url, ...PERIOD], "5 s"],
  ] as const;
  return Promise.all(
    contestants.map(async ([measure, options, aim]) => {
      const run = beginIdleRun(measure.replaceAll(" ", "-"), ["--log", "off", ...options], bench);
      const value = await run.measure({ seconds: idleSeconds, settlingSeconds });
      return { measure, value, aim };
    }),
  );
}

/** Aim: at most 1.2 times those of one run. */
async function compareRequests(
  seconds: number,
  server: ProbedServer,
  bench: Bench,
): Promise<LifeRow> {
  const alone = await countRequests(1, seconds, { server, bench });
  const together = await countRequests(SHARING_RUNS, seconds, { server, bench });
  const counts = `${together} to ${alone} in ${seconds} s`;
  return {
    measure: `requests of ${SHARING_RUNS} runs that share a circuit, to those of one`,
    value: `${(together / alone).toFixed(2)} (${counts})`,
    aim: "1.2",
  };
}

interface Counting {
  readonly server: ProbedServer;
  readonly bench: Bench;
}

async function countRequests(
  runs: number,
  seconds: number,
  { server, bench }: Counting,
): Promise<number> {
  const before = server.requests;
  const names = Array.from({ length: runs }, (_, index) => `sharing-${runs}-${index}`);
  const options = ["--log", "off", "--probe", server.url, ...PERIOD];
  const children = names.map((name) => beginIdleRun(name, options, bench));
  await Bun.sleep(seconds * 1_000);
  const requests = server.requests - before;
  await Promise.all(children.map((child) => child.end()));
  if (requests === 0) throw new Error(`${runs} runs sent no request`);
  return requests;
}

async function measureFreezes(server: ProbedServer, bench: Bench): Promise<LifeRow> {
  const spans: number[] = [];
  for (let round = 0; round < FREEZES; round += 1) {
    server.isUp = true;
    spans.push(await freezeOnce(round, { server, bench }));
  }
  server.isUp = true;
  const sorted = spans.toSorted((a, b) => a - b);
  return {
    measure: `from an open circuit until ${FROZEN_PROCESSES} processes stand still`,
    value: `${medianOf(sorted)} ms (median of ${FREEZES}, ${sorted[0]} to ${sorted.at(-1)})`,
    aim: "",
  };
}

async function freezeOnce(round: number, { server, bench }: Counting): Promise<number> {
  const name = `frozen-${round}`;
  const ready = join(bench.scratch, `${name}-ready`);
  const script = `for n in $(seq ${FROZEN_PROCESSES - 1}); do sleep 3600 & done; >'${ready}'; wait`;
  const probe = ["--probe", `${name}=${server.url}`, "--probe-period", "1s", "--on-open", "pause"];
  const words = ["run", "--name", name, "--log", "off", ...probe, "--probe-failure-threshold", "1"];
  const child = Bun.spawn([WATCHDOG, ...words, "--", "sh", "-c", script], {
    env: bench.env,
    stdout: "ignore",
    stderr: "ignore",
  });
  while (!existsSync(ready)) await Bun.sleep(1);
  server.isUp = false;
  const journal = join(bench.env["WATCHDOG_STATE_DIR"] ?? "", "journal.db");
  let paused: Paused | undefined;
  while (paused === undefined) {
    await Bun.sleep(100);
    paused = readPause(journal, name);
  }
  child.kill("SIGTERM");
  await child.exited;
  if (paused.processes !== FROZEN_PROCESSES) {
    throw new Error(`${paused.processes} processes stand still, expected ${FROZEN_PROCESSES}`);
  }
  return paused.spanMs;
}

interface Paused {
  readonly processes: number;
  readonly spanMs: number;
}

/** As the run itself has noted it; undefined: not yet. */
function readPause(path: string, job: string): Paused | undefined {
  const database = new Database(path, { readonly: true });
  try {
    database.run("PRAGMA busy_timeout = 2000");
    const rows = database
      .query<{ name: string; at: number; data: string }, [string]>(
        "SELECT name, at, data FROM events WHERE job = ? AND name IN ('circuit_open', 'paused')",
      )
      .all(job);
    const opened = rows.find(({ name }) => name === "circuit_open");
    const paused = rows.find(({ name }) => name === "paused");
    if (opened === undefined || paused === undefined) return undefined;
    const { processes } = JSON.parse(paused.data) as { processes: number };
    return { processes, spanMs: paused.at - opened.at };
  } finally {
    database.close();
  }
}

function compareRetryStart(rounds: number, bench: Bench): LifeRow {
  const [bare, retried] = ["true", "watchdog retry -- true"] as const;
  const contestants = [
    { name: bare, words: ["/bin/true"] },
    { name: retried, words: [WATCHDOG, "retry", "--", "/bin/true"] },
  ];
  const times = timeInterleaved(contestants, rounds, bench);
  const [bareMs, retriedMs] = [bare, retried].map((name) => medianOf(times.get(name) ?? []));
  if (bareMs === undefined || retriedMs === undefined) throw new Error("nothing was timed");
  const medians = `${retriedMs.toFixed(2)} to ${bareMs.toFixed(2)} ms`;
  return {
    measure: `\`${retried}\`, to \`${bare}\``,
    value: `${(retriedMs / bareMs).toFixed(1)} times (${medians})`,
    aim: "",
  };
}
