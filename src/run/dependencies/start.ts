/**
 * The dependencies of a run before its start: asked until they answer, or the start is refused and
 * told. Nothing is started here, no lease granted. State after a crash: none.
 */
import { WatchdogError } from "../../core/errors.ts";
import {
  type Leaving,
  type Outcome,
  outcomeOfDependency,
  outcomeOfUnusableProbe,
} from "../../core/outcome.ts";
import { monotonicNow } from "../../os/clock.ts";
import { say } from "../../os/say.ts";
import { readProbeFiles } from "../../probe/given-values.ts";
import type { Course } from "../course.ts";
import { writeUnstarted } from "../leave-refused.ts";
import { Dependencies, type DependencyStart } from "./dependencies.ts";
import { sentences } from "./sentences.ts";

export type AwaitedDependencies =
  | { readonly kind: "ready"; readonly dependencies: Dependencies }
  | { readonly kind: "refused"; readonly leaving: Leaving };

/** @throws WatchdogError "config.refused" (78), after it was written down */
export function readGivenFiles(course: Course): Course {
  const { options } = course;
  try {
    const probes = readProbeFiles(options.probes);
    const readyProbes = readProbeFiles(options.readyProbes);
    return { ...course, options: { ...options, probes, readyProbes } };
  } catch (error) {
    if (error instanceof WatchdogError) writeRefusal(course, error);
    throw error;
  }
}

/**
 * @throws WatchdogError "probe.refused" (78), after it was written down; no circuit is held then
 */
export async function awaitDependencies(course: Course): Promise<AwaitedDependencies> {
  const dependencies = new Dependencies(course);
  try {
    const start = await dependencies.waitForStart();
    if (start.kind === "ready") return { kind: "ready", dependencies };
    return { kind: "refused", leaving: leaveRefused(course, start) };
  } catch (error) {
    if (error instanceof WatchdogError) writeRefusal(course, error);
    throw error;
  }
}

type Refused = Extract<DependencyStart, { kind: "refused" }>;

function leaveRefused(course: Course, refused: Refused): Leaving {
  const { name, because, last, circuit } = refused;
  const outcome = outcomeOfDependency(because);
  const { state } = circuit;
  const openForMs = state.kind === "closed" ? 0 : monotonicNow() - state.openedAt;
  say(sentences.notStarted(name, because, { last, openForMs }));
  if (state.kind === "open" || state.kind === "permanent") {
    say(sentences.nextTrial(name, state.retryAt - monotonicNow()));
  }
  const found = { because: last?.because ?? null, detail: last?.detail ?? null };
  write(course, outcome, { name, circuit: state.kind, probes: circuit.probes, last_probe: found });
  return outcome.leaving;
}

function writeRefusal(course: Course, { message }: WatchdogError): void {
  write(course, outcomeOfUnusableProbe(), { message });
}

function write(course: Course, outcome: Outcome, data: Readonly<Record<string, unknown>>): void {
  writeUnstarted(course, outcome, { key: null, because: outcome.because, data });
}
