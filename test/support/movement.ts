/**
 * The independent judge of whether anything in a tree moves: what the kernel counts for each thread
 * (CPU time, and how often it was put on a processor) and the files that its processes write. Knows
 * nothing of who makes it stand still, and trusts nothing that is said of it.
 */
import { readdirSync, readFileSync } from "node:fs";
import { FIXTURES } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

/** The words of the program; the file comes after them. */
export const COUNTER: readonly string[] = ["python3", `${FIXTURES}/counts-up.py`];

/** Everything below a process, the dead left out. */
export function listBelow(root: number): number[] {
  const found: number[] = [];
  const queue = [root];
  for (let pid = queue.pop(); pid !== undefined; pid = queue.pop()) {
    const below = childrenOf(pid);
    found.push(...below);
    queue.push(...below);
  }
  return found.filter((pid) => !"ZX".includes(stateOf(pid)));
}

function childrenOf(pid: number): number[] {
  return readAll(`/proc/${pid}/task`, "children").flatMap((text) =>
    text.split(" ").filter(Boolean).map(Number),
  );
}

/** The state letter, that of a living thread where the first has ended; X: gone. */
export function stateOf(pid: number): string {
  const states = readAll(`/proc/${pid}/task`, "status").flatMap(
    (text) => /^State:\s*(\S)/m.exec(text)?.[1] ?? [],
  );
  return states.find((one) => one !== "Z") ?? states[0] ?? "X";
}

/** The letters of all of them, in the order of the alphabet. */
export function statesOf(pids: readonly number[]): string {
  return pids.map(stateOf).toSorted().join("");
}

/** One file of each thread. */
function readAll(directory: string, name: string): string[] {
  try {
    return readdirSync(directory).map((task) =>
      readFileSync(`${directory}/${task}/${name}`, "utf8"),
    );
  } catch {
    return []; // ENOENT, ESRCH: gone
  }
}

/** What grows when a thread of the process runs. */
function traceOf(pid: number): string {
  const times = readAll(`/proc/${pid}/task`, "stat").map((line) =>
    line
      .slice(line.lastIndexOf(")") + 2)
      .split(" ")
      .slice(11, 15),
  );
  const switches = readAll(`/proc/${pid}/task`, "status").map((text) =>
    text.split("\n").filter((line) => line.includes("ctxt_switches")),
  );
  return JSON.stringify([times, switches]);
}

const LOOKS = 12;
const BETWEEN_LOOKS_MS = 25;

/**
 * Who below it has moved while it was looked at, by pid with what was seen before and after, and
 * which of the files have changed, by their paths.
 */
export async function findMoving(root: number, files: readonly string[] = []): Promise<string[]> {
  const moved = new Map<string, string>();
  const look = (): Map<string, string> =>
    new Map([
      ...listBelow(root).map((pid) => [`${pid}`, traceOf(pid)] as const),
      ...files.map((path) => [path, readFileSync(path, "utf8")] as const),
    ]);
  const first = look();
  for (let count = 0; count < LOOKS; count += 1) {
    await Bun.sleep(BETWEEN_LOOKS_MS);
    for (const [name, trace] of look()) {
      const before = first.get(name);
      if (before !== trace)
        moved.set(name, files.includes(name) ? name : `${name} ${before}→${trace}`);
    }
  }
  return [...moved.values()];
}

/** Waits until each of the files has changed. */
export async function waitForGrowth(files: readonly string[]): Promise<void> {
  const first = files.map((path) => readFileSync(path, "utf8"));
  await waitFor(
    () => files.every((path, index) => readFileSync(path, "utf8") !== first[index]),
    `growth of ${files.join(", ")}`,
  );
}
