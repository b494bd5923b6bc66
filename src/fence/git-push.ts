/**
 * `watchdog fence git-push`: pushes under the fence of the run's leases, and together with a ref at
 * the remote that remembers the generation, so that no run of an earlier one pushes after it, from
 * wherever.
 *
 * Guarantees: the branches and the remote's fence move in one transaction of the remote's or not at
 * all, and only while the fence there is the one that allowed it. Non-guarantees: anything about
 * whoever pushes by git alone. Clock: CLOCK_MONOTONIC. State after a crash: the remote has both or
 * neither; a blob that nothing refers to may remain here, which git collects.
 */
import { EXIT, WatchdogError } from "../core/errors.ts";
import type { FenceOptions } from "../core/fence-options.ts";
import {
  decideAfterPush,
  decideRemoteFence,
  exitOfRemote,
  fenceRefOf,
  type Pusher,
  type RemoteReading,
  type RemoteReason,
  readRemoteFence,
  renderRemoteFence,
} from "../core/git-fence.ts";
import { splitRunPath, valueOf } from "../core/environment-entries.ts";
import { renderKey } from "../core/lease-key.ts";
import type { Leaving } from "../core/outcome.ts";
import { faultPoint } from "../os/faults.ts";
import { readMachine } from "../os/machine.ts";
import { say } from "../os/say.ts";
import {
  attempting,
  type FenceSurroundings,
  findFenceState,
  leaveFenceRefused,
  makeOperationEnvironment,
} from "./fence-command.ts";
import { Git } from "./git.ts";
import { gitMessages } from "./git-messages.ts";
import { findRemote, findBranch } from "./git-remote.ts";
import { type HeldFences, holdFences } from "./hold.ts";

/** A push of the same generation that comes first is not ours to fear, and rare. */
const MOST_RETRIES = 5;

export interface GitPushRequest extends FenceSurroundings {
  readonly options: Omit<FenceOptions, "isVerbose"> & {
    readonly remote: string | undefined;
    readonly refspecs: readonly string[];
  };
}

/**
 * @returns as git has left; 76 or 75 where the fence here refused, 76 where a later generation has
 *   pushed, 78 where the remote's fence cannot be compared with ours, 124 at the limit
 * @throws WatchdogError as `holdFences`; "git.refused" (78), "git.unusable" (125)
 */
export async function gitPushCommand(request: GitPushRequest): Promise<Leaving> {
  const { options, inherited } = request;
  const { environment } = inherited;
  const { keys, waitMs, timeoutMs } = options;
  const stateDirectory = findFenceState(options.stateDir, environment);
  const held = await attempting(() => holdFences({ stateDirectory, environment, keys, waitMs }));
  if (held.kind === "refused") return leaveFenceRefused(held);
  const runId = splitRunPath(valueOf(environment, "WATCHDOG_RUN_PATH")).at(-1) ?? "";
  try {
    const git = new Git({
      inherited,
      environment: makeOperationEnvironment(request),
      findKept: (rows) => request.findKept(rows, stateDirectory, runId),
      timeoutMs,
    });
    return await attempting(() => new Push(git, held, stateDirectory).run(options));
  } finally {
    held.release();
  }
}

/** One key at the remote. */
interface FencedRef {
  readonly pusher: Pusher;
  readonly ref: string;
}

/** A step that can end everything: how watchdog must leave, or what the step found. */
type Step<Value> =
  | { readonly kind: "leave"; readonly leaving: Leaving }
  | { readonly kind: "go"; readonly value: Value };

type Oids = readonly (string | undefined)[];

class Push {
  readonly #git: Git;
  readonly #held: HeldFences;
  readonly #refs: readonly FencedRef[];

  constructor(git: Git, held: HeldFences, stateDirectory: string) {
    this.#git = git;
    this.#held = held;
    const machineId = hideMachineId(readMachine().machineId);
    this.#refs = held.keys.map(({ key, generation, runId }) => ({
      pusher: { key, generation, runId, machineId, stateDirectory },
      ref: fenceRefOf(key),
    }));
  }

  async run(options: GitPushRequest["options"]): Promise<Leaving> {
    const remote = await findRemote(this.#git, options.remote);
    if (remote.kind === "leave") return remote.leaving;
    const { name, url } = remote.value;
    const refspecs = options.refspecs.length > 0 ? options.refspecs : [await findBranch(this.#git)];
    for (let retries = 0; ; retries += 1) {
      const read = await this.#readRemote(url);
      if (read.kind === "leave") return read.leaving;
      const pushed = await this.#push(name, refspecs, read.value);
      if (pushed.kind === "leave") return pushed.leaving;
      const now = await this.#listRemote(url);
      if (now.kind === "leave") return now.leaving;
      if (decideAfterPush(read.value, now.value) === "git-decides") return pushed.value;
      if (retries === MOST_RETRIES) return this.#leaveRefused(gitMessages.outrun(MOST_RETRIES));
      say(gitMessages.again(retries + 1, MOST_RETRIES));
    }
  }

  /** What the remote has, where all of it lets us push. */
  async #readRemote(url: string): Promise<Step<Oids>> {
    for (let looks = 0; looks <= MOST_RETRIES; looks += 1) {
      const listed = await this.#listRemote(url);
      if (listed.kind === "leave") return listed;
      const readings = await this.#readBlobs(url, listed.value);
      if (readings.kind === "leave") return readings;
      if (readings.value === "changed") continue;
      for (const [index, { pusher, ref }] of this.#refs.entries()) {
        const reading = readings.value[index] ?? { kind: "none" };
        const decided = decideRemoteFence(pusher, reading);
        if (decided.kind === "refuse")
          return this.#refuse(decided.because, { pusher, ref, reading });
      }
      return listed;
    }
    return { kind: "leave", leaving: this.#leaveRefused(gitMessages.outrun(MOST_RETRIES)) };
  }

  /** The object of each of our refs there; undefined: it has none. */
  async #listRemote(url: string): Promise<Step<Oids>> {
    const refs = this.#refs.map(({ ref }) => ref);
    const listed = await this.#git.ask(["ls-remote", "--refs", "--", url, ...refs]);
    if (listed.kind === "failed") return { kind: "leave", leaving: listed.leaving };
    const oids = new Map<string, string>();
    for (const line of listed.text.split("\n")) {
      // A pattern matches the end of longer names, too.
      const found = /^([0-9a-f]{40,64})\t(.+)$/.exec(line);
      if (found?.[1] !== undefined && found[2] !== undefined) oids.set(found[2], found[1]);
    }
    return { kind: "go", value: refs.map((ref) => oids.get(ref)) };
  }

  async #readBlobs(url: string, oids: Oids): Promise<Step<RemoteReading[] | "changed">> {
    const readings: RemoteReading[] = [];
    for (const [index, oid] of oids.entries()) {
      const ref = this.#refs[index]?.ref ?? "";
      const reading = oid === undefined ? NONE_THERE : await this.#readBlob({ url, ref, oid });
      if (reading.kind === "leave") return reading;
      if (reading.value === "changed") return { kind: "go", value: "changed" };
      readings.push(reading.value);
    }
    return { kind: "go", value: readings };
  }

  async #readBlob(at: {
    readonly url: string;
    readonly ref: string;
    readonly oid: string;
  }): Promise<Step<RemoteReading | "changed">> {
    const { url, ref, oid } = at;
    const isHere = await this.#git.ask(["cat-file", "-t", oid], { isQuiet: true });
    if (isHere.kind === "failed") {
      const fetched = await this.#git.ask([...FETCH, url, ref]);
      if (fetched.kind === "failed") {
        const now = await this.#listRemote(url);
        if (now.kind === "leave") return now;
        const isChanged = now.value[this.#refs.findIndex((one) => one.ref === ref)] !== oid;
        return isChanged ? CHANGED : { kind: "leave", leaving: fetched.leaving };
      }
    }
    const kind = await this.#git.ask(["cat-file", "-t", oid], { isQuiet: true });
    if (kind.kind === "failed") return CHANGED;
    if (kind.text.trim() !== "blob") {
      const reason = `it is a ${kind.text.trim()}, expected a blob`;
      return { kind: "go", value: { kind: "unreadable", reason } };
    }
    const blob = await this.#git.ask(["cat-file", "blob", oid]);
    if (blob.kind === "failed") return { kind: "leave", leaving: blob.leaving };
    return { kind: "go", value: readRemoteFence(blob.text) };
  }

  /** One try. "go": git has failed, with this. */
  async #push(remote: string, refspecs: readonly string[], old: Oids): Promise<Step<Leaving>> {
    const blobs: string[] = [];
    for (const { pusher } of this.#refs) {
      const blob = await this.#writeBlob(pusher);
      if (blob.kind === "leave") return blob;
      blobs.push(blob.value);
    }
    const refused = this.#held.check();
    if (refused !== undefined) return { kind: "leave", leaving: leaveFenceRefused(refused) };
    const leases = this.#refs.map(
      ({ ref }, index) => `--force-with-lease=${ref}:${old[index] ?? ""}`,
    );
    const moves = this.#refs.map(({ ref }, index) => `${blobs[index] ?? ""}:${ref}`);
    const words = ["push", "--atomic", ...leases, "--", remote, ...refspecs, ...moves];
    const named = this.#refs.map(({ pusher }) => ({
      key: renderKey(pusher.key),
      generation: pusher.generation,
    }));
    faultPoint("fence.F4", { leases: named, isFenced: true });
    const leaving = await this.#git.act(words, this.#held.descriptors);
    const isGits = leaving.kind === "status" && leaving.code !== 0 && !OF_OURS.has(leaving.code);
    return isGits ? { kind: "go", value: leaving } : { kind: "leave", leaving };
  }

  async #writeBlob(pusher: Pusher): Promise<Step<string>> {
    const { key, ...rest } = pusher;
    const fence = { ...rest, key: renderKey(key), pushId: crypto.randomUUID() };
    const words = ["hash-object", "-w", "--stdin"];
    const written = await this.#git.ask(words, { input: renderRemoteFence(fence) });
    if (written.kind === "failed") return { kind: "leave", leaving: written.leaving };
    const oid = written.text.trim();
    if (/^[0-9a-f]{40,64}$/.test(oid)) return { kind: "go", value: oid };
    throw new WatchdogError("git.unusable", "git hash-object has not answered with a name");
  }

  #refuse(
    because: RemoteReason,
    seen: FencedRef & { readonly reading: RemoteReading },
  ): Step<never> {
    say(gitMessages.refused(because, seen));
    return { kind: "leave", leaving: { kind: "status", code: EXIT[exitOfRemote(because)] } };
  }

  #leaveRefused(line: string): Leaving {
    say(line);
    return { kind: "status", code: EXIT.lease_lost };
  }
}

const NONE_THERE = { kind: "go", value: { kind: "none" } } as const;
const CHANGED = { kind: "go", value: "changed" } as const;

/** Machine-id(5): the id itself is confidential, so that a keyed hash of it stands for it. */
function hideMachineId(machineId: string | null): string | null {
  if (machineId === null) return null;
  return new Bun.CryptoHasher("sha256", machineId).update(APPLICATION).digest("hex").slice(0, 32);
}

const APPLICATION = "watchdog git fence";
/** The limit, and a git that was not started. */
const OF_OURS: ReadonlySet<number> = new Set([EXIT.timeout, EXIT.not_executable, EXIT.not_found]);
/** The object and nothing else: no tag, no head, no pruning, nobody who tidies up. */
const FETCH = [
  "fetch",
  "--quiet",
  "--no-tags",
  "--no-prune",
  "--no-write-fetch-head",
  "--no-recurse-submodules",
  "--no-auto-maintenance",
  "--",
] as const;
