/** The event of a transition, as the journal tells it, whoever has made it. Pure. */
import type { CircuitState, CircuitTransition } from "./circuit.ts";
import type { EventName, JournalEvent } from "./journal-entry.ts";
import type { SharedCircuit } from "./shared-circuit.ts";

const NAMES: Readonly<Record<CircuitState["kind"], EventName>> = {
  open: "circuit_open",
  "half-open": "circuit_half_open",
  closed: "circuit_closed",
  permanent: "circuit_permanent",
};

export function eventOfTransition(
  circuit: SharedCircuit,
  { from, to, because }: CircuitTransition,
): Pick<JournalEvent, "name" | "because" | "data"> {
  const { name, target, lastProbe, probes, goodProbes } = circuit;
  const isAgain = to === "open" && from === "half-open";
  const last = lastProbe && { because: lastProbe.because, detail: lastProbe.detail };
  return {
    name: isAgain ? "circuit_reopened" : NAMES[to],
    because,
    data: { name, target, from, to, probes, good_probes: goodProbes, last_probe: last },
  };
}
