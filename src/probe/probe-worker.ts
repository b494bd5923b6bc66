/**
 * Front door of the Worker that probes: an expression that runs away, or a name service that holds
 * up the thread, must not hold up who waits for signals. Decides nothing.
 *
 * The environment here is this Worker's own copy. Of a NODE_TLS_REJECT_UNAUTHORIZED=0 in it nothing
 * is believed (secure.ts), but Bun 1.4.5 warns of it on standard error, which is the command's.
 */
import { probe } from "./probe.ts";
import type { ProbeAnswer, ProbeTask } from "./probe-messages.ts";

declare const self: {
  onmessage: ((event: MessageEvent<ProbeTask>) => void) | null;
  postMessage(answer: ProbeAnswer): void;
};

delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];

const running = new Map<number, AbortController>();

self.onmessage = ({ data: task }) => {
  if (task.kind === "stop") running.get(task.ticket)?.abort();
  else void run(task);
};

async function run({ ticket, order }: Extract<ProbeTask, { kind: "probe" }>): Promise<void> {
  const controller = new AbortController();
  running.set(ticket, controller);
  const onExpression = (source: string): void =>
    self.postMessage({ kind: "expression", ticket, source });
  const result = await probe(order, { signal: controller.signal, onExpression });
  running.delete(ticket);
  self.postMessage({ kind: "result", ticket, result });
}
