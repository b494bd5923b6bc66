/** A probe by HTTP/1.1 over a socket in the file system; all else is as in exchange.ts. */
import type { ProbeResult } from "../core/probe-result.ts";
import type { HttpDetails } from "../core/probe-settings.ts";
import type { UnixTarget } from "../core/probe-target.ts";
import { connectToPath } from "./connect.ts";
import { exchangeHttp, type ProbeOptions } from "./exchange.ts";

export function probeUnix(
  settings: {
    readonly target: UnixTarget;
    readonly http: HttpDetails;
    readonly timeoutMs: number;
  },
  options: ProbeOptions = {},
): Promise<ProbeResult> {
  const { target, http, timeoutMs } = settings;
  const request = {
    // As curl and docker say it: such a socket has no name.
    host: "localhost",
    path: target.path,
    userInfo: undefined,
    tlsHost: undefined,
    http,
    timeoutMs,
  };
  return exchangeHttp(
    request,
    ({ times, limit }, open) => {
      times.begin("connect");
      return connectToPath(target.socketPath, { limit, open });
    },
    options,
  );
}
