/**
 * The order of the steps of a job, who needs whom, and through how many others. Pure; iterative, so
 * that a chain of 20,000 steps is no deep call.
 *
 * A need that names no step counts for nothing here, and of two steps of one name needs mean the
 * first: core/job-check.ts refuses both.
 */

export interface StepNode {
  readonly name: string;
  readonly needs: readonly string[];
}

export type StepOrder<Node extends StepNode> =
  | { readonly kind: "ordered"; readonly steps: readonly Node[] }
  /** Each name needs the one behind it; the first and the last are the same. */
  | { readonly kind: "cycle"; readonly path: readonly string[] };

/**
 * Each step behind all that it needs; of those that could come next the first one in the file. This
 * is the order in which they run where one runs at a time.
 */
export function orderSteps<Node extends StepNode>(steps: readonly Node[]): StepOrder<Node> {
  const { needs, dependents } = linkSteps(steps);
  const open = needs.map((list) => list.length);
  const ready = new IndexHeap();
  for (const [index, count] of open.entries()) if (count === 0) ready.add(index);
  const order: number[] = [];
  for (let index = ready.take(); index !== undefined; index = ready.take()) {
    order.push(index);
    for (const dependent of dependents[index] ?? []) {
      const left = (open[dependent] ?? 0) - 1;
      open[dependent] = left;
      if (left === 0) ready.add(dependent);
    }
  }
  if (order.length < steps.length) return { kind: "cycle", path: findCycle(steps, needs, open) };
  return { kind: "ordered", steps: order.flatMap((index) => steps[index] ?? []) };
}

export interface StepLinks {
  /** By the place of a step in the list: the places of those that it needs. */
  readonly needs: readonly (readonly number[])[];
  /** The places of those that need it. */
  readonly dependents: readonly (readonly number[])[];
}

export function linkSteps(steps: readonly StepNode[]): StepLinks {
  const places = placesOf(steps);
  const needs = steps.map((step) => step.needs.flatMap((name) => places.get(name) ?? []));
  const dependents: number[][] = steps.map(() => []);
  for (const [index, list] of needs.entries()) {
    for (const need of list) dependents[need]?.push(index);
  }
  return { needs, dependents };
}

function placesOf(steps: readonly StepNode[]): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (const [index, { name }] of steps.entries()) {
    if (!places.has(name)) places.set(name, index);
  }
  return places;
}

/** Every step that is left over needs another one that is, so that the way must come back. */
function findCycle(
  steps: readonly StepNode[],
  needs: StepLinks["needs"],
  open: readonly number[],
): string[] {
  const isLeft = (index: number): boolean => (open[index] ?? 0) > 0;
  const seenAt = new Map<number, number>();
  const way: number[] = [];
  let at = open.findIndex((_, index) => isLeft(index));
  while (!seenAt.has(at)) {
    seenAt.set(at, way.length);
    way.push(at);
    at = needs[at]?.find(isLeft) ?? at;
  }
  const cycle = way.slice(seenAt.get(at));
  // Told from the step that stands first in the file, whichever way has led into it.
  const first = cycle.indexOf(cycle.reduce((least, index) => Math.min(least, index)));
  const turned = [...cycle.slice(first), ...cycle.slice(0, first)];
  return [...turned, ...turned.slice(0, 1)].flatMap((index) => steps[index]?.name ?? []);
}

/** All that these need, through however many others; without themselves, but in a cycle. */
export function needsOf(steps: readonly StepNode[], names: Iterable<string>): ReadonlySet<string> {
  return reach(steps, linkSteps(steps).needs, names);
}

/** All that need one of these, through however many others; without themselves, as above. */
export function dependentsOf(
  steps: readonly StepNode[],
  names: Iterable<string>,
): ReadonlySet<string> {
  return reach(steps, linkSteps(steps).dependents, names);
}

function reach(
  steps: readonly StepNode[],
  next: readonly (readonly number[])[],
  names: Iterable<string>,
): ReadonlySet<string> {
  const asked = new Set(names);
  const from = steps.flatMap(({ name }, index) => (asked.has(name) ? [index] : []));
  const found = mark(next, from);
  return new Set(steps.flatMap(({ name }, index) => (found[index] === 1 ? [name] : [])));
}

/** Of so many steps it is remembered who needs them; each takes a byte for every step. */
const MOST_REMEMBERED = 64;

/**
 * Whether one step needs another, asked many times: cheap where it is asked of few others, such as
 * a first step on which all of them build.
 */
export class NeedsFinder {
  readonly #links: StepLinks;
  readonly #places: ReadonlyMap<string, number>;
  /** By the place of a step: 1 at the place of each one that needs it. */
  readonly #dependents = new Map<number, Uint8Array>();

  constructor(steps: readonly StepNode[]) {
    this.#links = linkSteps(steps);
    this.#places = placesOf(steps);
  }

  has(name: string, other: string): boolean {
    const [from, to] = [this.#places.get(name), this.#places.get(other)];
    if (from === undefined || to === undefined) return false;
    if (this.#links.needs[from]?.includes(to) === true) return true;
    return this.#dependentsOf(to)[from] === 1;
  }

  #dependentsOf(place: number): Uint8Array {
    const known = this.#dependents.get(place);
    if (known !== undefined) return known;
    const found = mark(this.#links.dependents, [place]);
    const [oldest] = this.#dependents.keys();
    if (oldest !== undefined && this.#dependents.size >= MOST_REMEMBERED) {
      this.#dependents.delete(oldest);
    }
    this.#dependents.set(place, found);
    return found;
  }
}

/** 1 at each place that is reached from these, themselves only where a way comes back. */
function mark(next: readonly (readonly number[])[], from: readonly number[]): Uint8Array {
  const found = new Uint8Array(next.length);
  const open = [...from];
  for (let index = open.pop(); index !== undefined; index = open.pop()) {
    for (const other of next[index] ?? []) {
      if (found[other] === 1) continue;
      found[other] = 1;
      open.push(other);
    }
  }
  return found;
}

/** Numbers, of which always the least is taken: a binary heap. */
class IndexHeap {
  readonly #items: number[] = [];

  add(item: number): void {
    const items = this.#items;
    let at = items.length;
    for (;;) {
      const above = (at - 1) >> 1;
      const parent = items[above];
      if (at === 0 || parent === undefined || parent <= item) break;
      items[at] = parent;
      at = above;
    }
    items[at] = item;
  }

  take(): number | undefined {
    const items = this.#items;
    const least = items[0];
    const last = items.pop();
    if (last !== undefined && items.length > 0) this.#sink(last);
    return least;
  }

  /** Puts an item at the top, and lower until none below it is less. */
  #sink(item: number): void {
    const items = this.#items;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const [one, other] = [items[left], items[left + 1]];
      if (one === undefined) break;
      const isOther = other !== undefined && other < one;
      const least = isOther ? other : one;
      if (least >= item) break;
      items[at] = least;
      at = isOther ? left + 1 : left;
    }
    items[at] = item;
  }
}
