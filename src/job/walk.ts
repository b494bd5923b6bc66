/**
 * All entries below a directory, one after the other, without recursion. Guarantees: no link is
 * followed, nothing but directories is opened; as many descriptors are open as the walk is deep,
 * and none after it, however it ends. The order is that of the file system.
 *
 * Non-guarantee: what is added or renamed meanwhile may be seen or not, as getdents(2) has it.
 * Clock: none. State after a crash: none.
 */
import { type ByteText, joinBytes } from "../core/byte-text.ts";
import {
  closeQuietly,
  type EntryStat,
  isSameNode,
  listSome,
  openToList,
  statEntry,
  statOpen,
} from "../os/entries.ts";
import { type Place, PlaceTrouble, troubleAt } from "./place.ts";

/** Each level costs a descriptor; the least limit of them that a shell sets is 256 in practice. */
export const MOST_DEPTH = 200;

export type Visit = {
  /** From where the walk began, "" for that directory itself. */
  readonly path: ByteText;
  /** The directory that the entry is in. */
  readonly directory: number;
  readonly name: ByteText;
} & (
  | { readonly kind: "entry"; readonly stat: EntryStat }
  /** A directory, opened: what is in it comes next. */
  | { readonly kind: "entered"; readonly stat: EntryStat; readonly fd: number }
  /** All that is in it was visited. */
  | { readonly kind: "left" }
);

export interface WalkLimits {
  readonly mostEntries: number;
  /** Told of each entry: the walk has come further. */
  readonly onStep: () => void;
}

interface Level extends Place {
  readonly fd: number;
  readonly path: ByteText;
  names: readonly ByteText[];
  next: number;
}

/**
 * @param place  of a directory; its descriptor stays the caller's
 * @throws PlaceTrouble `missing`, `changing`, `unreadable` (too many, too deep, EACCES, EMFILE …)
 */
export function* walkBelow(place: Place, limits: WalkLimits): Generator<Visit> {
  const levels: Level[] = [];
  let entries = 0;
  try {
    yield enter(levels, { ...place, path: "" as ByteText }, undefined);
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
      const name = nextName(level);
      if (name === undefined) {
        const { path, directory, name } = level;
        levels.pop();
        closeQuietly(level.fd);
        yield { kind: "left", path, directory, name };
        continue;
      }
      limits.onStep();
      entries += 1;
      if (entries > limits.mostEntries) {
        throw new PlaceTrouble("unreadable", `it holds more than ${limits.mostEntries} entries`);
      }
      const at = { directory: level.fd, name, path: joinBytes(level.path, name) };
      const stat = statEntry(at.directory, name);
      if (typeof stat === "number") throw troubleAt(at.path, stat);
      yield stat.kind === "directory" ? enter(levels, at, stat) : { kind: "entry", ...at, stat };
    }
  } finally {
    for (const { fd } of levels) closeQuietly(fd);
  }
}

function nextName(level: Level): ByteText | undefined {
  if (level.next === level.names.length) {
    const names = listSome(level.fd);
    if (typeof names === "number") throw troubleAt(level.path, names);
    level.names = names;
    level.next = 0;
  }
  const name = level.names[level.next];
  level.next += 1;
  return name;
}

/** @param seen  what it was when it was looked at; another one in its place is not walked */
function enter(
  levels: Level[],
  at: Place & { readonly path: ByteText },
  seen: EntryStat | undefined,
): Visit {
  if (levels.length === MOST_DEPTH) {
    throw new PlaceTrouble("unreadable", `it is deeper than ${MOST_DEPTH} directories`);
  }
  const fd = openToList(at.directory, at.name);
  if (fd < 0) throw troubleAt(at.path, fd);
  levels.push({ ...at, fd, names: [], next: 0 });
  const stat = statOpen(fd);
  if (typeof stat === "number") throw troubleAt(at.path, stat);
  if (seen !== undefined && !isSameNode(seen, stat)) {
    throw new PlaceTrouble("changing", "a directory in it was replaced while it was read");
  }
  return { kind: "entered", ...at, stat, fd };
}
