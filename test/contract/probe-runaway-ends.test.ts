/** An expression that has run away and ends at last is tried again. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ProbeHandle } from "../../src/probe/probe-handle.ts";
import { orderFor } from "../support/probe-scene.ts";
import { waitFor } from "../support/wait-for.ts";

const root = mkdtempSync(join(tmpdir(), "watchdog-runaway-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A Worker whose expression has no end in the first probe, until the gate is there. */
function workerUntil(gate: string): string {
  const source = `
    const { existsSync } = process.getBuiltinModule("node:fs");
    self.onmessage = ({ data: { ticket, order } }) => {
      postMessage({ kind: "expression", ticket, source: order.http.expectBody });
      while (order.timeoutMs === 100 && !existsSync(${JSON.stringify(gate)}));
      postMessage({ kind: "result", ticket, result: { because: "good" } });
    };`;
  return URL.createObjectURL(new Blob([source], { type: "application/javascript" }));
}

test("an expression that has ended is tried again, and not before", async () => {
  const gate = join(root, "gate");
  const handle = new ProbeHandle(workerUntil(gate));
  const ask = async (timeoutMs: number): Promise<string> => {
    const order = orderFor("http://127.0.0.1:1/", { expectBody: "slow", timeoutMs });
    return (await handle.probe(order)).because;
  };
  try {
    expect([await ask(100), await ask(20_000)]).toEqual(Array(2).fill("expression-too-slow"));
    writeFileSync(gate, "");
    const isTried = async (): Promise<boolean> => (await ask(20_000)) === "good";
    await waitFor(isTried, "the expression to be tried again", { limitMs: 20_000 });
  } finally {
    writeFileSync(gate, "");
    handle.close();
  }
}, 60_000);
