/**
 * The addresses of a name. Knows nothing of ports and connections.
 *
 * Asked is getaddrinfo(3), as the job itself would ask: nsswitch.conf(5) holds. Bun 1.4.5 asks it
 * in as many threads as there are cores, so that (measured on two cores) two lookups of names whose
 * name server is dead, 10 s each, hold up every other one, even of `localhost`. Therefore: an
 * address is no name and is not asked for, a name is asked for once at a time, and who has no
 * answer after LIBC_ALONE_MS asks the resolver without threads (c-ares: /etc/hosts and DNS) too.
 *
 * Always: at least one address, or the reason why there is none; `localhost` is this machine and
 * has both addresses, whatever the name server or /etc/hosts leaves out (RFC 6761, section 6.3).
 * Non-guarantee: a lookup cannot be stopped; it goes on unseen after the limit. State after a
 * crash: none.
 */
import { isIP } from "node:net";
import { findFfiTrouble } from "../os/libc.ts";
import { findSocketTrouble, isOfResources } from "../os/sockets.ts";
import { wakeAfter } from "../os/timers.ts";
import type { TimeLimit } from "./time-limit.ts";

/** Long for /etc/hosts and a name server near by, short beside a limit of 1 s. */
export const LIBC_ALONE_MS = 100;
/** Of one name: more are not tried. */
export const MOST_ADDRESSES = 16;

const LOOPBACK = ["127.0.0.1", "::1"];

type Backend = "libc" | "c-ares";

export type LookUp = (name: string, backend: Backend) => Promise<readonly string[]>;

const askOnce = oncePerName(async (name, backend) => {
  const answers = await Bun.dns.lookup(name, { backend });
  return answers.map(({ address }) => address);
});

export type Addresses =
  | { readonly kind: "found"; readonly addresses: readonly string[] }
  | {
      readonly kind: "failed";
      readonly because: "name-unresolved" | "name-timeout" | "out-of-resources" | "stopped";
      readonly detail: string;
    };

/** @param host  a name, an IPv4 address, or an IPv6 address with or without brackets */
export function findAddresses(
  host: string,
  limit: TimeLimit,
  lookUp: LookUp = askOnce,
): Promise<Addresses> {
  const literal = host.startsWith("[") ? host.replace(/^\[(.*)\]$/, "$1") : host;
  if (isIP(literal) !== 0) return Promise.resolve({ kind: "found", addresses: [literal] });
  return new Promise((resolve) => {
    const isLocal = /^(.*\.)?localhost\.?$/i.test(host);
    const settle = (answer: Addresses): void => {
      second.cancel();
      forget();
      resolve(isLocal && answer.kind === "found" ? addLoopback(answer.addresses) : answer);
    };
    const ask = async (backend: Backend): Promise<void> => {
      try {
        const addresses = await lookUp(host, backend);
        if (addresses.length > 0) settle(found(addresses));
        else fail(backend, "no address");
      } catch (error) {
        fail(backend, codeOf(error));
      }
    };
    const fail = (backend: Backend, found: string): void => {
      if (backend === "c-ares") return; // libc may know more: nsswitch.conf(5)
      if (isLocal) return settle({ kind: "found", addresses: LOOPBACK });
      const ours = findOwnTrouble();
      if (ours !== undefined) return settle(ours);
      const detail = `the name ${host} has no address (${found})`;
      settle({ kind: "failed", because: "name-unresolved", detail });
    };
    const second = wakeAfter(LIBC_ALONE_MS, () => {
      if (isLocal) return settle({ kind: "found", addresses: LOOPBACK });
      void ask("c-ares");
    });
    const forget = limit.onEnd((end) => {
      const because = end === "time" ? "name-timeout" : "stopped";
      const detail = `no address for the name ${host} within ${limit.shown}`;
      queueMicrotask(() => settle({ kind: "failed", because, detail }));
    });
    void ask("libc");
  });
}

/** Whoever resolves names says that there is none, also where he could ask nobody. */
function findOwnTrouble(): Extract<Addresses, { kind: "failed" }> | undefined {
  if (findFfiTrouble() !== undefined) return undefined;
  const code = findSocketTrouble();
  if (code === undefined || !isOfResources(code)) return undefined;
  const detail = `this machine has nothing left to ask for a name with (${code})`;
  return { kind: "failed", because: "out-of-resources", detail };
}

function found(addresses: readonly string[]): Addresses {
  return { kind: "found", addresses: [...new Set(addresses)].slice(0, MOST_ADDRESSES) };
}

function addLoopback(addresses: readonly string[]): Addresses {
  return found([...addresses, ...LOOPBACK]);
}

/** A probe a second for a name that hangs for ten is one lookup, not ten. */
export function oncePerName(lookUp: LookUp): LookUp {
  const inFlight = new Map<string, Promise<readonly string[]>>();
  return (name, backend) => {
    const key = `${backend} ${name}`;
    const running = inFlight.get(key);
    if (running !== undefined) return running;
    const asked = lookUp(name, backend).finally(() => inFlight.delete(key));
    inFlight.set(key, asked);
    return asked;
  };
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown }).code;
  return typeof code === "string" ? code.replace(/^DNS_/, "") : String(error);
}
