/**
 * The night of the README as real programs: a database of a shop, the job file as it is printed
 * there, and the server outside to which it uploads, which counts what really came.
 */
import { Database } from "bun:sqlite";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { inState } from "./own-state.ts";
import { RELEASE, type Scene } from "./scene.ts";

const README = resolve(import.meta.dir, "../../README.md");
const PRINTED_URL = "http://backup.example/nightly";

/** When the client is cut off in its first upload. */
export type CutOff = "never" | "before-it-counts" | "after-it-counted";

export interface Uploads {
  /** For a place of its own below it. */
  urlOf(place: string): string;
  cutOff(place: string, when: CutOff): void;
  /** Requests that came, whatever became of them. */
  tries(place: string): number;
  /** What has happened: each body that came to its end, unpacked. */
  received(place: string): string[];
  close(): Promise<void>;
}

export function serveUploads(): Uploads {
  const cuts = new Map<string, CutOff>();
  const tries = new Map<string, number>();
  const received = new Map<string, string[]>();
  const kept = new Set<string>();

  async function take(request: Request, place: string, path: string): Promise<Response> {
    const count = (tries.get(place) ?? 0) + 1;
    tries.set(place, count);
    const cut = count === 1 ? (cuts.get(place) ?? "never") : "never";
    if (cut === "before-it-counts") return await untilItIsGone(request);
    const body = new Uint8Array(await request.arrayBuffer());
    kept.add(path);
    const text = Buffer.from(Bun.gunzipSync(body)).toString();
    received.set(place, [...(received.get(place) ?? []), text]);
    if (cut === "after-it-counted") return await untilItIsGone(request);
    return new Response("", { status: 201 });
  }

  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: (request) => {
      const path = new URL(request.url).pathname;
      if (request.method === "PUT") return take(request, path.split("/")[1] ?? "", path);
      return new Response("", { status: kept.has(path) ? 200 : 404 });
    },
  });
  return {
    urlOf: (place) => `http://127.0.0.1:${server.port}/${place}`,
    cutOff: (place, when) => void cuts.set(place, when),
    tries: (place) => tries.get(place) ?? 0,
    received: (place) => received.get(place) ?? [],
    close: () => server.stop(true),
  };
}

/** The client never hears an answer. */
async function untilItIsGone({ signal }: Request): Promise<Response> {
  await new Promise<void>((gone) => signal.addEventListener("abort", () => gone(), { once: true }));
  return new Response("", { status: 500 });
}

export interface Night {
  readonly name: string;
  readonly scene: Scene;
  readonly directory: string;
  /** `watchdog job run …/nightly.yaml`, as a crontab has it too. */
  readonly line: readonly string[];
  /** What the upload has to hold. */
  readonly expected: string;
  path(...parts: readonly string[]): string;
}

/** The job file is that of the README; its server alone is another. */
export function prepareNight(scene: Scene, name: string, uploads: Uploads): Night {
  const directory = scene.path(name);
  mkdirSync(directory);
  const own = inState(scene, `state-${name}`);
  const expected = makeShop(join(directory, "app.db"));
  const file = join(directory, "nightly.yaml");
  const text = readNight();
  if (text.split(PRINTED_URL).length !== 2) throw new Error(`found no ${PRINTED_URL} once`);
  writeFileSync(file, text.replace(PRINTED_URL, uploads.urlOf(name)));
  return {
    name,
    scene: own,
    directory,
    line: [RELEASE, "job", "run", "--state-dir", own.stateDirectory, file],
    expected,
    path: (...parts) => join(directory, ...parts),
  };
}

/** The block of YAML that uploads. */
function readNight(): string {
  const blocks = readFileSync(README, "utf8").matchAll(/^```yaml\n(.*?)^```$/gms);
  const found = [...blocks].map(([, text]) => text ?? "").find((one) => one.includes("UPLOADS"));
  if (found === undefined) throw new Error("the README has no night");
  return found;
}

function makeShop(path: string): string {
  const database = new Database(path);
  database.run("CREATE TABLE orders (day TEXT, state TEXT, cents INTEGER)");
  const insert = database.prepare("INSERT INTO orders VALUES (?, ?, ?)");
  const days = Array.from(
    { length: 28 },
    (_, day) => `2025-02-${String(day + 1).padStart(2, "0")}`,
  );
  database.transaction(() => {
    for (const [number, day] of days.entries()) {
      for (let order = 0; order < 100; order += 1) {
        insert.run(day, order % 4 === 0 ? "cancelled" : "paid", number + 1);
      }
    }
  })();
  database.close();
  const rows = days.map((day, number) => `${day},${(number + 1) * 75}`);
  return `${["day,cents", ...rows].join("\r\n")}\r\n`.replaceAll("\r", "");
}
