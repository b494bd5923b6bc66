/**
 * A process that uses the circuits of a state directory: `STATE NAME read` prints what it finds,
 * `STATE NAME COUNT` counts so many probes, one change each, and prints `done`. Each trouble that
 * it hears of is a line of its output. With WATCHDOG_FAULT in its environment it is a fault build.
 */
import { writeSync } from "node:fs";

const [state = "", name = "", what = "read"] = process.argv.slice(2);
Object.assign(globalThis, { FAULT_BUILD: process.env["WATCHDOG_FAULT"] !== undefined });

const { openCircuitStore } = await import("../../src/journal/circuit-rows.ts");
const { pauseThread } = await import("../../src/os/timers.ts");
const { CIRCUIT } = await import("./circuit-samples.ts");

const print = (line: string): void => void writeSync(1, `${line}\n`);
const store = openCircuitStore(state, print);

function countOnce(): string {
  const change = store.change(name, (found) => {
    const circuit = found ?? { ...CIRCUIT, name, probes: 0 };
    return { ...circuit, probes: circuit.probes + 1 };
  });
  if (change.kind === "unwritten") print(change.reason);
  return change.kind;
}

if (what === "read") print(JSON.stringify(store.read(name)));
for (let left = Number(what); left > 0; left -= 1) {
  while (countOnce() === "busy") pauseThread(1);
}
store.close();
print("done");
