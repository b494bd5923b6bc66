/**
 * Incident B with a real server and a real batch: a server of items that dies, hangs or fails after
 * some of them, the script that works through 1,800, and what both of them, the journal and the
 * kernel tell about it. Asks watchdog nothing but what its journal says.
 */
import { expect } from "bun:test";
import { existsSync } from "node:fs";
import { databaseOf, inState, query } from "./own-state.ts";
import { readStatusLine, readWholeLines, waitForText } from "./processes.ts";
import { FIXTURES, type Scene, type Started } from "./scene.ts";
import { areStopped } from "./shared-circuit.ts";
import { waitFor } from "./wait-for.ts";

export const ITEMS = 1_800;
/** So many have succeeded when the server goes. */
export const GOOD_ITEMS = 40;
export const WAYS = ["dies", "hangs", "fails"] as const;
export type Way = (typeof WAYS)[number];

const SERVER = `${FIXTURES}/serves-items.ts`;
const SCRIPT = `${FIXTURES}/works-through-items.sh`;

export const PERIOD_MS = 400;
/** As long as it may be: a busy machine must not be taken for a server that is away. */
export const TIMEOUT_MS = PERIOD_MS;
export const THRESHOLD = 3;
/** In which it is found out on a machine with nothing else to do. */
export const FOUND_OUT_MS = PERIOD_MS * THRESHOLD + TIMEOUT_MS;
/** How many times as long a busy machine may take for it. */
export const LATE = 15;

/** With short waits, so that it is soon seen that a server is back; the bound is far away. */
export const PROBING: readonly string[] = [
  `--probe-period ${PERIOD_MS}ms --probe-timeout ${TIMEOUT_MS}ms`,
  `--probe-failure-threshold ${THRESHOLD} --probe-backoff 100ms..400ms`,
  "--probe-max-attempts 1000",
].flatMap((words) => words.split(" "));

export interface Asked {
  readonly at: number;
  readonly kind: string;
  readonly path: string;
}

export interface ServerPlan {
  readonly way: Way;
  /** So many, and then it goes that way. */
  readonly goodItems?: number;
}

interface ServerParts {
  readonly scene: Scene;
  readonly way: Way;
  readonly goodItems: number;
  readonly log: string;
  readonly port: number;
}

/** The server, in a process of its own. */
export class ItemServer {
  readonly #parts: ServerParts;
  #process: Started;

  static async start(
    scene: Scene,
    name: string,
    { way, goodItems = GOOD_ITEMS }: ServerPlan,
  ): Promise<ItemServer> {
    const log = scene.path(`${name}.requests`);
    const started = launch(scene, ["0", log, `${goodItems}`, way]);
    const [, , port] = (await waitForText(log)).trim().split(" ");
    return new ItemServer({ scene, way, goodItems, log, port: Number(port) }, started);
  }

  private constructor(parts: ServerParts, started: Started) {
    this.#parts = parts;
    this.#process = started;
  }

  get port(): number {
    return this.#parts.port;
  }

  /** Of a probe. */
  get url(): string {
    return `http://127.0.0.1:${this.port}/health`;
  }

  /** In the order in which they came, in all of its lives. */
  asked(kind: "item" | "probe" | "listens" | "well"): Asked[] {
    return readWholeLines(this.#parts.log)
      .map((line) => line.split(" "))
      .map(([at, word = "", path = ""]) => ({ at: Number(at), kind: word, path }))
      .filter((one) => one.kind === kind);
  }

  /** Resolves with the moment at which the first item came that it did not serve. */
  async waitUntilGone(): Promise<number> {
    const { at } = await waitFor(() => this.asked("item")[this.#parts.goodItems], "it to go");
    return at;
  }

  /** Well again, on the same port; resolves with the moment from which on it is. */
  async comeBack(): Promise<number> {
    const { scene, way, log } = this.#parts;
    if (way !== "dies") {
      this.#process.kill("SIGUSR1");
      return (await waitFor(() => this.asked("well")[0], "the server to be well")).at;
    }
    await this.#process.ended;
    this.#process = launch(scene, [`${this.port}`, log, `${ITEMS * 2}`, way]);
    return (await waitFor(() => this.asked("listens")[1], "the server to listen again")).at;
  }

  async end(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.ended;
  }
}

/** A state directory, a server and a batch of a test's own; the server ends with `act`. */
export async function withBatch(
  whole: Scene,
  name: string,
  plan: ServerPlan & Pick<BatchOrder, "items" | "wrapper">,
  act: (parts: { scene: Scene; server: ItemServer; batch: Batch }) => Promise<void>,
): Promise<void> {
  const scene = inState(whole, `${name}.state`);
  const server = await ItemServer.start(scene, name, plan);
  try {
    await act({ scene, server, batch: new Batch(scene, name, { ...plan, server }) });
  } finally {
    await server.end();
  }
}

function launch(scene: Scene, words: readonly string[]): Started {
  return scene.startProgram([process.execPath, SERVER, ...words], { stdout: "ignore" });
}

/** What the script has noted about one item; instants are wall-clock milliseconds. */
export interface Item {
  readonly number: number;
  readonly beganAt: number;
  readonly askedAt: readonly number[];
  readonly end: "ok" | "fail" | undefined;
  readonly endedAt: number;
}

interface BatchOrder {
  readonly server: ItemServer;
  readonly items?: number;
  /** Words before each call. */
  readonly wrapper?: readonly string[];
}

/** The script, and what it notes. */
export class Batch {
  readonly #notes: string;
  readonly command: readonly string[];

  constructor(scene: Scene, name: string, { server, items = ITEMS, wrapper = [] }: BatchOrder) {
    this.#notes = scene.path(`${name}.notes`);
    this.command = ["bash", SCRIPT, `${server.port}`, `${items}`, this.#notes, ...wrapper];
  }

  /** @throws where an item was begun or ended twice, or ended without having been begun */
  readItems(): Item[] {
    const items = new Map<number, Item>();
    for (const line of readWholeLines(this.#notes)) {
      const [word = "", number = 0, at = 0] = line
        .split(" ")
        .map((part, index) => (index === 0 ? part : Number(part))) as [string, number, number];
      const item = applyNote(items.get(number), { word, number, at: at / 1_000 });
      if (item === undefined) throw new Error(`out of order: ${line}`);
      items.set(number, item);
    }
    return [...items.values()];
  }

  count(end: "ok" | "fail"): number {
    return this.readItems().filter((item) => item.end === end).length;
  }
}

function applyNote(
  item: Item | undefined,
  { word, number, at }: { readonly word: string; readonly number: number; readonly at: number },
): Item | undefined {
  if (word === "begin") {
    const begun = { number, beganAt: at, askedAt: [], end: undefined, endedAt: Infinity };
    return item === undefined ? begun : undefined;
  }
  if (item === undefined || item.end !== undefined) return undefined;
  if (word === "ask") return { ...item, askedAt: [...item.askedAt, at] };
  return word === "ok" || word === "fail" ? { ...item, end: word, endedAt: at } : undefined;
}

export interface SeenEvent {
  readonly at: number;
  readonly name: string;
  readonly because: string | null;
  /** Whatever was written down: each test judges the fields that it names. */
  readonly data: ReturnType<typeof JSON.parse>;
}

/** What the journal has about a job, in order. */
export function readEvents(scene: Scene, job: string): SeenEvent[] {
  if (!existsSync(databaseOf(scene))) return [];
  const isMade = query(scene, "SELECT 1 FROM sqlite_schema WHERE name = 'events'").length > 0;
  if (!isMade) return [];
  const columns = "at, name, because, data";
  const rows = query(scene, `SELECT ${columns} FROM events WHERE job = '${job}' ORDER BY id`);
  return rows.map(([at, name, because, data]) => ({
    at: Number(at),
    name: String(name),
    because: because === null ? null : String(because),
    data: JSON.parse(String(data)),
  }));
}

/** The only one of this name. */
export function eventOf(events: readonly SeenEvent[], name: string): SeenEvent {
  const found = events.filter((event) => event.name === name);
  if (found.length !== 1) throw new Error(`${found.length} of ${name}: ${JSON.stringify(events)}`);
  return found[0]!;
}

/** When all stood still. */
export interface Frozen {
  readonly at: number;
  /** The event is told in whole milliseconds: whatever is not before this was after it. */
  readonly until: number;
}

/** Waits for the journal to say that the tree stands still. */
export async function waitForPause(scene: Scene, job: string): Promise<Frozen> {
  const { at } = await waitFor(
    () => readEvents(scene, job).find(({ name }) => name === "paused"),
    `a pause of ${job}`,
  );
  return { at, until: at + 1 };
}

/** The kernel says of each of them that it stands still. */
export function expectNothingMoved(pids: readonly number[]): void {
  expect(pids.length).toBeGreaterThan(0);
  const moving = pids.filter((pid) => !areStopped([pid]));
  expect(moving.map((pid) => [pid, readStatusLine(pid, "State")])).toEqual([]);
}
