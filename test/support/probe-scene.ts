/** What probes meet (probe-servers.ts), and settings for them. */
import { DEFAULT_HTTP, type HttpDetails } from "../../src/core/probe-settings.ts";
import { parseProbeTarget } from "../../src/core/probe-target.ts";
import type { ProbeOrder } from "../../src/probe/probe.ts";

export * from "./probe-servers.ts";

export function orderFor(
  url: string,
  changes: Partial<HttpDetails> & { timeoutMs?: number } = {},
): ProbeOrder {
  const parsed = parseProbeTarget(url);
  if (parsed.kind === "refused") throw new Error(`${url}: ${parsed.because}`);
  const { timeoutMs = 5_000, ...http } = changes;
  return { target: parsed.target, timeoutMs, http: { ...DEFAULT_HTTP, ...http } };
}
