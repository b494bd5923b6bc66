/**
 * Which steps write a path, by the artifacts that the file of their job declares: the path itself,
 * something above it, or something below it. Pure.
 */
import type { StepSpec } from "./job-spec.ts";

/** To whom each artifact belongs, the first one that names it. */
export function ownersOf(steps: readonly StepSpec[]): ReadonlyMap<string, StepSpec> {
  const owners = new Map<string, StepSpec>();
  for (const step of steps) {
    for (const { path } of step.artifacts) if (!owners.has(path)) owners.set(path, step);
  }
  return owners;
}

/** Asked about many paths: what lies below each directory is put together once. */
export class ArtifactOwners {
  readonly #owners: ReadonlyMap<string, StepSpec>;
  readonly #inside: ReadonlyMap<string, ReadonlySet<StepSpec>>;

  constructor(steps: readonly StepSpec[]) {
    this.#owners = ownersOf(steps);
    this.#inside = ownersInside(this.#owners);
  }

  /** @param path  as `pathWithin` gives it */
  writersOf(path: string): Writers {
    const above = [path, ...listAbove(path)].flatMap((each) => this.#owners.get(each) ?? []);
    return new Writers(above, this.#inside.get(path) ?? new Set());
  }
}

/** For each directory the steps with an artifact somewhere below it. */
function ownersInside(owners: ReadonlyMap<string, StepSpec>): ReadonlyMap<string, Set<StepSpec>> {
  const inside = new Map<string, Set<StepSpec>>();
  for (const [path, step] of owners) {
    for (const above of [...listAbove(path), "."]) {
      const known = inside.get(above) ?? new Set();
      inside.set(above, known.add(step));
    }
  }
  return inside;
}

/** The steps that write a path, something above it or something below it. */
export class Writers {
  readonly #above: readonly StepSpec[];
  readonly #inside: ReadonlySet<StepSpec>;

  constructor(above: readonly StepSpec[], inside: ReadonlySet<StepSpec>) {
    this.#above = above;
    this.#inside = inside;
  }

  has(step: StepSpec): boolean {
    return this.#inside.has(step) || this.#above.includes(step);
  }

  find(isWanted: (step: StepSpec) => boolean): StepSpec | undefined {
    return this.#above.find(isWanted) ?? this.#inside.values().find(isWanted);
  }
}

/** The directories above a path, the nearest first: of `a/b/c` `a/b` and `a`. */
export function listAbove(path: string): string[] {
  const above: string[] = [];
  for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) {
    above.push(path.slice(0, at));
  }
  return above;
}

/** An absolute path below the job's directory as it is named there; `.`: the directory. */
export function pathWithin(directory: string, path: string): string {
  if (path === directory) return ".";
  const above = directory.endsWith("/") ? directory : `${directory}/`;
  return path.startsWith(above) ? path.slice(above.length) : path;
}
