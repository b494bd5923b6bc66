/**
 * The settings of a probe: what they are, what they are where nobody says otherwise, and which
 * circuit they belong to. Pure; reads no file, so that credentials and a CA are paths here.
 *
 * Words, units and defaults are those of the Kubernetes probes (kubernetes.io, "Configure Liveness,
 * Readiness and Startup Probes"); where ours differ it is said.
 *
 * Always: the hash depends on what is asked and on how the answers are counted, and neither on the
 * order of fields nor on the credentials of an address or a header: it stands in names and records,
 * where a short password could be found by trying.
 */
import type { Backoff } from "./backoff.ts";
import type { CircuitSettings, FailureWindow } from "./circuit.ts";
import { renderCanonical } from "./plan-id.ts";
import { renderTarget } from "./probe-target.ts";
import type { ProbeTarget } from "./probe-target.ts";

/**
 * `startup`: before the job, repeated with the backoff. `liveness`: during the run, opens the
 * circuit. `readiness`: during the run, never opens it.
 */
export type ProbeRole = "startup" | "liveness" | "readiness";

export type OnOpen = "stop" | "pause" | "notify";
export type OnUnready = "pause" | "notify";

/** Both ends belong to it. */
export interface StatusRange {
  readonly from: number;
  readonly to: number;
}

export interface ProbeHeader {
  readonly name: string;
  /** Empty where it stands in a file that was not read yet. */
  readonly value: string;
  /** Path of the file with the value, which is neither shown nor hashed then. */
  readonly file?: string;
}

export interface JsonExpectation {
  /** As parseJsonPath (json-path.ts) reads it. */
  readonly path: string;
  readonly value: string;
}

/** How HTTP is spoken, over a network or a unix socket, and which answer is a good one. */
export interface HttpDetails {
  readonly method: string;
  readonly headers: readonly ProbeHeader[];
  /** Undefined: none is sent, or it stands in a file that was not read yet. */
  readonly body: string | undefined;
  /** Path of the file with the body, which is neither shown nor hashed then. */
  readonly bodyFile: string | undefined;
  readonly expectStatus: readonly StatusRange[];
  /** The source of a regular expression; see compileBodyPattern. */
  readonly expectBody: string | undefined;
  readonly expectJson: readonly JsonExpectation[];
  /** Path of a PEM file that takes the place of the authorities of the system. */
  readonly caFile: string | undefined;
  /** The certificate is not looked at. */
  readonly isInsecure: boolean;
  /** Whether the proxy variables of the environment count. */
  readonly usesProxy: boolean;
  /** Of the answer's body, as it is after decompression. */
  readonly maxBytes: number;
  /** Path of a file with `user:password`, or with the value of an Authorization header. */
  readonly credentialsFile: string | undefined;
}

/** What differs before the job: there an answer may take longer than while the job runs. */
export interface ProbeStartup {
  /** For the whole of one exchange. */
  readonly timeoutMs: number;
  readonly backoff: Backoff;
}

export interface ProbeSettings {
  /** Undefined: the circuit is named after the target (circuitNameOf). */
  readonly name: string | undefined;
  readonly role: ProbeRole;
  readonly target: ProbeTarget;
  readonly periodMs: number;
  /** For the whole of one exchange. */
  readonly timeoutMs: number;
  readonly initialDelayMs: number;
  /** In a row. */
  readonly failureThreshold: number;
  readonly failureWindow: FailureWindow | undefined;
  /** In a row, of trials. Kubernetes has 1 for startup and liveness, and nothing else. */
  readonly successThreshold: number;
  /** How long the start of a job waits for it. */
  readonly startupWaitMs: number;
  readonly backoff: Backoff;
  /** Undefined: a start asks as the run does (see startupOf). */
  readonly startup?: ProbeStartup;
  readonly onOpen: OnOpen;
  readonly onUnready: OnUnready;
  readonly http: HttpDetails;
}

export const DEFAULT_PROBE_BACKOFF: Backoff = {
  initialMs: 1_000,
  capMs: 30_000,
  factor: 2,
  maxAttempts: 20,
  maxElapsedMs: 300_000,
};

/** Of a circuit that only calls have used (`watchdog retry`): the defaults of a probe. */
export const CALL_SETTINGS: CircuitSettings = {
  failureThreshold: 3,
  failureWindow: undefined,
  successThreshold: 1,
  backoff: DEFAULT_PROBE_BACKOFF,
};

/**
 * Kubernetes takes 200–399 for good. As redirects are not followed here, a 302 to a page for
 * logging in would be taken for health: it is a failure unless somebody expects it.
 */
const DEFAULT_STATUS: readonly StatusRange[] = [{ from: 200, to: 299 }];

export const DEFAULT_HTTP: HttpDetails = {
  method: "GET",
  headers: [],
  body: undefined,
  bodyFile: undefined,
  expectStatus: DEFAULT_STATUS,
  expectBody: undefined,
  expectJson: [],
  caFile: undefined,
  isInsecure: false,
  usesProxy: false,
  maxBytes: 1_048_576,
  credentialsFile: undefined,
};

export function defaultProbeSettings(role: ProbeRole, target: ProbeTarget): ProbeSettings {
  return {
    name: undefined,
    role,
    target,
    periodMs: 10_000,
    timeoutMs: 1_000,
    initialDelayMs: 0,
    failureThreshold: 3,
    failureWindow: undefined,
    successThreshold: 1,
    startupWaitMs: 60_000,
    backoff: DEFAULT_PROBE_BACKOFF,
    onOpen: "stop",
    onUnready: "pause",
    http: DEFAULT_HTTP,
  };
}

/** How a start asks. */
export function startupOf({ startup, timeoutMs, backoff }: ProbeSettings): ProbeStartup {
  return startup ?? { timeoutMs, backoff };
}

/** `200`, `200-299,302`; undefined: it is no list of statuses. Whether they exist is a check. */
export function parseStatusRanges(text: string): readonly StatusRange[] | undefined {
  const ranges: StatusRange[] = [];
  for (const part of text.split(",")) {
    const [, from, to] = /^([0-9]{3})(?:-([0-9]{3}))?$/.exec(part.trim()) ?? [];
    if (from === undefined) return undefined;
    ranges.push({ from: Number(from), to: Number(to ?? from) });
  }
  return ranges;
}

export function expectsStatus(ranges: readonly StatusRange[], status: number): boolean {
  return ranges.some(({ from, to }) => from <= status && status <= to);
}

/** Without flags: `^` and `$` are the ends of the whole body. Undefined: it is no expression. */
export function compileBodyPattern(source: string): RegExp | undefined {
  try {
    return new RegExp(source);
  } catch {
    return undefined; // SyntaxError: it says nothing that a person could not see in the source
  }
}

/** Headers whose value is a secret as a rule. */
const SECRET_HEADERS = /^(authorization|proxy-authorization|cookie)$|token|secret|key|password/i;

/** Whether the value of a header is neither shown nor hashed. */
export function isSecretHeader(name: string): boolean {
  return SECRET_HEADERS.test(name);
}

const HASH_DIGITS = 16;

/**
 * Of what one prober does for all that share the circuit. The role, the delays of a start and what
 * a job does when the circuit opens are each job's own: two of them may differ there.
 */
export function hashSettings(settings: ProbeSettings): string {
  const { target, periodMs, timeoutMs, failureThreshold, failureWindow } = settings;
  const { successThreshold, backoff, http } = settings;
  const shared = {
    target: { ...target, userInfo: undefined },
    periodMs,
    timeoutMs,
    failureThreshold,
    failureWindow,
    successThreshold,
    backoff,
    http: isHttp(target) ? withoutSecrets(http) : undefined,
  };
  return new Bun.CryptoHasher("sha256")
    .update(renderCanonical(shared))
    .digest("hex")
    .slice(0, HASH_DIGITS);
}

/** Whether HTTP is spoken with it. */
export function isHttp(target: ProbeTarget): boolean {
  return target.kind === "http" || target.kind === "https" || target.kind === "unix";
}

/**
 * A header's name is not case-sensitive (RFC 9110, 5.1). Of what stands in a file the path counts:
 * before it was read, too.
 */
function withoutSecrets(http: HttpDetails): unknown {
  const headers = http.headers.map(({ name, value, file }) => ({
    name: name.toLowerCase(),
    value: isSecretHeader(name) || file !== undefined ? undefined : value,
    file,
  }));
  return { ...http, headers, body: http.bodyFile === undefined ? http.body : undefined };
}

/** The given name; else the target as it is shown, and the hash. */
export function circuitNameOf(settings: ProbeSettings): string {
  return settings.name ?? `${renderTarget(settings.target)}#${hashSettings(settings)}`;
}
