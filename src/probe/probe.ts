/** One probe, by the kind of its target. Decides nothing. */
import type { ProbeResult } from "../core/probe-result.ts";
import type { ProbeSettings } from "../core/probe-settings.ts";
import { probeHttp, type ProbeOptions } from "./exchange.ts";
import { probeTcp } from "./tcp.ts";
import { probeUnix } from "./unix.ts";

/** What a probe needs of the settings, and the proxy that chooseProxy gives for them. */
export type ProbeOrder = Pick<ProbeSettings, "target" | "http" | "timeoutMs"> & {
  readonly proxy?: string | undefined;
};

/** @returns for a command `command-not-started`: who starts one reaps it, which is not done here */
export function probe(order: ProbeOrder, given: ProbeOptions = {}): Promise<ProbeResult> {
  const options = { proxy: order.proxy, ...given };
  const { target, http, timeoutMs } = order;
  switch (target.kind) {
    case "http":
    case "https":
      return probeHttp({ target, http, timeoutMs }, options);
    case "tcp":
      return probeTcp({ target, timeoutMs }, options);
    case "unix":
      return probeUnix({ target, http, timeoutMs }, options);
    case "cmd": {
      const detail = "a command is no exchange over a network";
      const because = "command-not-started";
      return Promise.resolve({ isGood: false, because, stages: [], detail });
    }
  }
}
