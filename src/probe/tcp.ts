/**
 * A probe by TCP: whether one of the addresses takes a connection. It is closed at once, without a
 * byte; whether anybody works behind it is not asked.
 */
import type { ProbeResult } from "../core/probe-result.ts";
import type { TcpTarget } from "../core/probe-target.ts";
import { Course, reachHost, type ProbeOptions } from "./exchange.ts";
import { openPlainWire } from "./plain-wire.ts";

export async function probeTcp(
  settings: { readonly target: TcpTarget; readonly timeoutMs: number },
  options: ProbeOptions = {},
): Promise<ProbeResult> {
  const course = new Course(settings.timeoutMs, options.signal);
  const { lookUp } = options;
  const connected = await reachHost(settings.target, course, { lookUp, open: openPlainWire });
  if (connected.kind === "failed") return course.finish(connected);
  connected.wire.close();
  course.address = connected.address;
  return course.finish({ because: "good", detail: "connected" });
}
