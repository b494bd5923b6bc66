/**
 * A process that records one run as `watchdog run` does: `STATE NUMBER [CLOSE_MS]`. Each trouble
 * that it hears of is a line of its output. With WATCHDOG_FAULT in its environment it is a fault
 * build.
 */
import { writeSync } from "node:fs";

const [state = "", number = "0", closeMs = "5000"] = process.argv.slice(2);
Object.assign(globalThis, { FAULT_BUILD: process.env["WATCHDOG_FAULT"] !== undefined });
process.umask(0);

const { Journal } = await import("../../src/journal/journal.ts");
const { ended, lease, started } = await import("./journal-scene.ts");

const tell = (line: string): void => void writeSync(1, `${line}\n`);
const journal = new Journal(state, tell);
const leases = [lease(`job-${number}`, 1)];
const job = { job: `job-${number}` };
journal.put(started(Number(number), leases, job));
await Bun.sleep(20); // the command runs
journal.put(ended(Number(number), leases, job));
journal.close(Number(closeMs));
