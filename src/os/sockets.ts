/**
 * Connections by the system calls themselves (socket(2), connect(2)): addresses as bytes,
 * descriptors, error codes. Refuses to know who waits for them.
 *
 * Always: a descriptor is close-on-exec and non-blocking, and whoever gets it has to close it;
 * where none is given back none is open. Clock: none. State after a crash: the kernel closes what
 * was open.
 */
import { isIPv4, isIPv6 } from "node:net";
import { constants } from "node:os";
import { EAGAIN, EINTR, sys } from "./sys.ts";

const { EALREADY, EINPROGRESS } = constants.errno;

/** Of an address to connect to: the connection is undone (connect(2)). */
const AF_UNSPEC = 0;
const AF_UNIX = 1;
const AF_INET = 2;
const AF_INET6 = 10;
/** ip(7), ipv6(7): family, port, IPv6 then 4 bytes of flow, the address, 4 bytes of scope. */
const IPV4_BYTES = 16;
const IPV6_BYTES = 28;
const IPV6_OFFSET = 8;
const IPV6_GROUPS = 8;

/** A `struct sockaddr` of one of three families. */
export interface SocketAddress {
  readonly family: number;
  readonly bytes: Uint8Array;
}

/** Whoever asks a server once a second asks for the same address each time. */
let latest: Known | undefined;

interface Known {
  readonly host: string;
  readonly port: number;
  readonly address: SocketAddress;
}

/** @returns undefined: no address, or one with a scope (`fe80::1%eth0`), which libc resolves */
export function addressOf(host: string, port: number): SocketAddress | undefined {
  if (latest?.host === host && latest.port === port) return latest.address;
  const address = encodeAddress(host, port);
  if (address !== undefined) latest = { host, port, address };
  return address;
}

function encodeAddress(host: string, port: number): SocketAddress | undefined {
  if (isIPv4(host)) return encode(AF_INET, IPV4_BYTES, { port, at: 4, address: parseIPv4(host) });
  if (!isIPv6(host) || host.includes("%")) return undefined;
  return encode(AF_INET6, IPV6_BYTES, { port, at: IPV6_OFFSET, address: parseIPv6(host) });
}

/** @param path  at most 107 bytes (unix(7)) */
export function addressOfPath(path: string): SocketAddress {
  const text = new TextEncoder().encode(path);
  const bytes = new Uint8Array(2 + text.length + 1);
  new DataView(bytes.buffer).setUint16(0, AF_UNIX, true);
  bytes.set(text, 2);
  return { family: AF_UNIX, bytes };
}

interface Place {
  readonly port: number;
  readonly at: number;
  readonly address: readonly number[];
}

function encode(family: number, length: number, { port, at, address }: Place): SocketAddress {
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, family, true); // of this machine: x64 and arm64 are little-endian
  view.setUint16(2, port, false);
  bytes.set(address, at);
  return { family, bytes };
}

function parseIPv4(text: string): number[] {
  return text.split(".").map(Number);
}

/** RFC 4291, section 2.2: groups, `::` once for as many zeros as are missing, a dotted end. */
function parseIPv6(text: string): number[] {
  const [head = "", tail] = text.split("::");
  const before = parseGroups(head);
  const after = tail === undefined ? [] : parseGroups(tail);
  const missing = Array<number>(2 * IPV6_GROUPS - before.length - after.length).fill(0);
  return [...before, ...missing, ...after];
}

function parseGroups(text: string): number[] {
  if (text === "") return [];
  return text.split(":").flatMap((group) => {
    if (group.includes(".")) return parseIPv4(group);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}

export type Begun =
  /** Not standing yet: it becomes writable when it does, and has an error when it never will. */
  | { readonly kind: "begun"; readonly fd: number; readonly isStanding: boolean }
  /** As errno(3) names it: `ECONNREFUSED`. */
  | { readonly kind: "failed"; readonly code: string };

/**
 * On this machine it stands, or was refused, at once: asked a second time, connect(2) says so.
 *
 * Where nobody listens at a port of those that the kernel gives to whoever connects (ip(7),
 * ip_local_port_range), the connection may be given that same one, and then it stands, with itself
 * at the other end (RFC 9293, section 3.5, simultaneous open). It is refused here, and undone in a
 * way that leaves no TIME_WAIT behind: whoever wants to listen there could not for a minute.
 *
 * @throws WatchdogError "os.no-ffi"
 */
export function beginConnection({ family, bytes }: SocketAddress): Begun {
  const fd = sys.streamSocket(family);
  if (fd < 0) return { kind: "failed", code: codeOf(fd) };
  let result = sys.connect(fd, bytes);
  if (result === -EINPROGRESS) result = sys.connect(fd, bytes);
  if (result >= 0 && isWithItself(fd, family)) {
    sys.connect(fd, encode(AF_UNSPEC, IPV4_BYTES, { port: 0, at: 4, address: [] }).bytes);
    sys.close(fd);
    return { kind: "failed", code: "ECONNREFUSED" };
  }
  if (result >= 0) return { kind: "begun", fd, isStanding: true };
  if (result === -EALREADY) return { kind: "begun", fd, isStanding: false };
  sys.close(fd);
  return { kind: "failed", code: codeOf(result) };
}

function isWithItself(fd: number, family: number): boolean {
  const ends = family === AF_UNIX ? undefined : sys.endsOfSocket(fd);
  return ends !== undefined && Buffer.compare(ends.own, ends.other) === 0;
}

/** @returns how much was taken; 0 where that has to be waited for, or it broke: reading says so */
export function sendNow(fd: number, bytes: Uint8Array): number {
  return Math.max(0, sys.write(fd, bytes, bytes.length));
}

/** Of socket(2), connect(2) and epoll_ctl(2): what says nothing about the other side. */
const OF_RESOURCES: readonly string[] = ["EMFILE", "ENFILE", "ENOMEM", "ENOBUFS", "ENOSPC"];

export function isOfResources(code: string): boolean {
  return OF_RESOURCES.includes(code);
}

/** As errno(3) names it, where no socket is to be had at the moment; undefined: one is. */
export function findSocketTrouble(): string | undefined {
  const fd = sys.streamSocket(AF_INET);
  if (fd < 0) return codeOf(fd);
  sys.close(fd);
  return undefined;
}

export type Received =
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  | { readonly kind: "ended" | "broken" | "nothing-yet" };

const chunk = new Uint8Array(65_536);

/** Stands still for `waitMs` at most. @param waitMs  whole milliseconds */
export function receiveWithin(fd: number, waitMs: number): Received {
  if (sys.pollReadable(fd, waitMs) <= 0) return { kind: "nothing-yet" };
  const count = sys.read(fd, chunk, chunk.length);
  if (count > 0) return { kind: "bytes", bytes: Buffer.from(chunk.subarray(0, count)) };
  if (count === 0) return { kind: "ended" };
  return { kind: count === -EAGAIN || count === -EINTR ? "nothing-yet" : "broken" };
}

export function closeSocket(fd: number): void {
  sys.close(fd);
}

function codeOf(result: number): string {
  const found = Object.entries(constants.errno).find(([, number]) => number === -result);
  return found?.[0] ?? `errno ${-result}`;
}
