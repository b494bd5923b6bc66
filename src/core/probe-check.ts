/**
 * Which relations between the settings of a probe are broken, before anything is probed. Pure; that
 * a file is there and holds what it should is found out by whoever opens it.
 *
 * Always: settings without a finding can be probed and counted with; each finding names the
 * relation, what was found and what was expected, and none holds a secret.
 */
import { checkBackoff, LONGEST_SPAN_MS } from "./backoff.ts";
import type { BackoffRelation } from "./backoff.ts";
import { parseJsonPath } from "./json-path.ts";
import { compileBodyPattern, DEFAULT_HTTP, isHttp, startupOf } from "./probe-settings.ts";
import type { HttpDetails, ProbeSettings } from "./probe-settings.ts";
import { renderTarget } from "./probe-target.ts";

export type ProbeRelation =
  | BackoffRelation
  | "period-not-positive"
  | "timeout-not-positive"
  | "timeout-above-period"
  | "timeout-above-startup-wait"
  | "initial-delay-negative"
  | "startup-wait-not-positive"
  | "failure-threshold-below-1"
  | "success-threshold-below-1"
  | "window-below-failures"
  | "not-for-this-target"
  | "tls-without-https"
  | "insecure-with-ca"
  | "two-credentials"
  | "not-a-method"
  | "body-without-method"
  | "no-body-to-look-at"
  | "not-a-header"
  | "two-of-one-header"
  | "no-such-status"
  | "not-an-expression"
  | "not-a-json-path"
  | "max-bytes-outside";

export interface ProbeFinding {
  readonly because: ProbeRelation;
  /** It is about how a start asks (startupOf), which may be told apart. */
  readonly isOfStart?: boolean;
  /** Which one has no meaning for the target. */
  readonly detail?: keyof HttpDetails;
  /** A clause. */
  readonly found: string;
  readonly expected: string;
}

const SHORTEST_SPAN_MS = 1;
const ANY_SPAN = `${SHORTEST_SPAN_MS} ms to 10 years`;
export const LARGEST_THRESHOLD = 1_000;
export const LARGEST_BODY_BYTES = 67_108_864;

/** A finding, or nothing where the relation holds. */
type Look = readonly [holds: boolean, finding: ProbeFinding];

/** All that is wrong, in a fixed order. */
export function checkProbeSettings(settings: ProbeSettings): readonly ProbeFinding[] {
  return [
    ...listBroken([...lookAtSpans(settings), ...lookAtThresholds(settings)]),
    ...checkBackoff(settings.backoff),
    ...checkStart(settings).map((each) => ({ ...each, isOfStart: true })),
    ...checkHttp(settings),
  ];
}

function listBroken(looks: readonly Look[]): ProbeFinding[] {
  return looks.filter(([holds]) => !holds).map(([, each]) => each);
}

/** Readiness is asked of a job that runs, and never before. */
function checkStart(settings: ProbeSettings): ProbeFinding[] {
  const { role, startup, startupWaitMs } = settings;
  if (role === "readiness") return [];
  const { timeoutMs, backoff } = startupOf(settings);
  const wait = lookAtStartupWait(timeoutMs, startupWaitMs);
  if (startup === undefined) return listBroken(wait); // the rest is that of the run
  return [...listBroken([lookAtTimeout(timeoutMs), ...wait]), ...checkBackoff(backoff)];
}

function lookAtTimeout(timeoutMs: number): Look {
  const found = `a timeout of ${timeoutMs} ms`;
  return [isSpan(timeoutMs), finding("timeout-not-positive", found, ANY_SPAN)];
}

/** A wait that is none is a finding of its own. */
function lookAtStartupWait(timeoutMs: number, waitMs: number): Look[] {
  const timeout = `a timeout of ${timeoutMs} ms`;
  return [
    [
      !isSpan(waitMs) || !(timeoutMs > waitMs),
      finding(
        "timeout-above-startup-wait",
        `${timeout} above a wait of ${waitMs} ms for the start`,
        "a timeout of at most that wait",
      ),
    ],
  ];
}

function isSpan(ms: number): boolean {
  return ms >= SHORTEST_SPAN_MS && ms <= LONGEST_SPAN_MS;
}

function lookAtSpans(settings: ProbeSettings): Look[] {
  const { role, periodMs, timeoutMs, initialDelayMs, startupWaitMs } = settings;
  const timeout = `a timeout of ${timeoutMs} ms`;
  return [
    [isSpan(periodMs), finding("period-not-positive", `a period of ${periodMs} ms`, ANY_SPAN)],
    lookAtTimeout(timeoutMs),
    [
      role === "startup" || !(timeoutMs > periodMs),
      finding(
        "timeout-above-period",
        `${timeout} above a period of ${periodMs} ms`,
        "a timeout of at most the period: probes follow one another",
      ),
    ],
    [
      initialDelayMs >= 0 && initialDelayMs <= LONGEST_SPAN_MS,
      finding("initial-delay-negative", `a first delay of ${initialDelayMs} ms`, "0 to 10 years"),
    ],
    [
      isSpan(startupWaitMs),
      finding("startup-wait-not-positive", `a wait of ${startupWaitMs} ms`, ANY_SPAN),
    ],
  ];
}

function lookAtThresholds(settings: ProbeSettings): Look[] {
  const { failureThreshold, successThreshold, failureWindow } = settings;
  const expected = `a whole number of 1–${LARGEST_THRESHOLD}`;
  const { failures, size } = failureWindow ?? { failures: 1, size: 1 };
  return [
    [
      isThreshold(failureThreshold),
      finding("failure-threshold-below-1", `a threshold of ${failureThreshold} failures`, expected),
    ],
    [
      isThreshold(successThreshold),
      finding(
        "success-threshold-below-1",
        `a threshold of ${successThreshold} successes`,
        expected,
      ),
    ],
    [
      isThreshold(failures) && isThreshold(size) && failures <= size,
      finding(
        "window-below-failures",
        `${failures} failures of the last ${size}`,
        `${expected} each, and at most as many failures as answers`,
      ),
    ],
  ];
}

function isThreshold(count: number): boolean {
  return Number.isSafeInteger(count) && count >= 1 && count <= LARGEST_THRESHOLD;
}

function checkHttp({ target, http }: ProbeSettings): ProbeFinding[] {
  if (!isHttp(target)) {
    const found = `a setting of HTTP for ${renderTarget(target)}`;
    const refused = finding("not-for-this-target", found, "that for http, https and unix alone");
    return givenDetails(http).map((detail) => ({ ...refused, detail }));
  }
  const broken = listBroken([...lookAtConnection({ target, http }), ...lookAtRequest(http)]);
  return [...broken, ...checkHeaders(http), ...checkExpectations(http)];
}

/** What differs from the default. */
function givenDetails(http: HttpDetails): (keyof HttpDetails)[] {
  const details = Object.keys(http) as (keyof HttpDetails)[];
  const isUsual = (detail: keyof HttpDetails): boolean =>
    JSON.stringify(http[detail]) === JSON.stringify(DEFAULT_HTTP[detail]);
  return details.filter((detail) => !isUsual(detail));
}

const PROXY_FOR_SOCKET = finding(
  "not-for-this-target",
  "a proxy for a unix socket",
  "a proxy for http and https",
);

function lookAtConnection({ target, http }: Pick<ProbeSettings, "target" | "http">): Look[] {
  const { caFile, isInsecure, usesProxy, credentialsFile, headers } = http;
  const isTls = target.kind === "https";
  const credentials = [
    ...("userInfo" in target && target.userInfo !== undefined ? ["the address"] : []),
    ...(credentialsFile === undefined ? [] : ["a file"]),
    ...(headers.some(({ name }) => /^authorization$/i.test(name)) ? ["a header"] : []),
  ];
  return [
    [
      isTls || (caFile === undefined && !isInsecure),
      finding("tls-without-https", `a setting of TLS for ${renderTarget(target)}`, "https"),
    ],
    [
      caFile === undefined || !isInsecure,
      finding(
        "insecure-with-ca",
        "a CA file for a certificate that nobody looks at",
        "one of both",
      ),
    ],
    [!usesProxy || target.kind !== "unix", { ...PROXY_FOR_SOCKET, detail: "usesProxy" }],
    [
      credentials.length <= 1,
      finding("two-credentials", `credentials by ${credentials.join(" and ")}`, "one of them"),
    ],
  ];
}

/** RFC 9110, 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

function lookAtRequest(http: HttpDetails): Look[] {
  const { method, expectBody, expectJson, maxBytes } = http;
  const hasBody = http.body !== undefined || http.bodyFile !== undefined;
  const looksAtBody = expectBody !== undefined || expectJson.length > 0;
  return [
    [
      TOKEN.test(method) && !/^(connect|trace)$/i.test(method),
      finding("not-a-method", `the method "${method}"`, "GET, POST or another of HTTP"),
    ],
    [
      // RFC 9110, 9.3.1: content in a GET has no meaning, and servers may refuse it.
      !hasBody || !/^(get|head)$/i.test(method),
      finding("body-without-method", `a body with ${method}`, "POST, or another that has a body"),
    ],
    [
      !looksAtBody || !/^head$/i.test(method),
      finding(
        "no-body-to-look-at",
        "an expected body with HEAD",
        "a method that is answered by one",
      ),
    ],
    [
      Number.isSafeInteger(maxBytes) && maxBytes >= 1 && maxBytes <= LARGEST_BODY_BYTES,
      finding("max-bytes-outside", `${maxBytes} bytes`, `1–${LARGEST_BODY_BYTES} bytes`),
    ],
  ];
}

/** Values are not shown. They are sent as UTF-8, and hold no control but a tab (RFC 9110, 5.5). */
function checkHeaders({ headers }: HttpDetails): ProbeFinding[] {
  const seen = new Set<string>();
  return headers.flatMap(({ name, value }) => {
    if (!TOKEN.test(name)) {
      return [finding("not-a-header", `the header name ${JSON.stringify(name)}`, "NAME: VALUE")];
    }
    if (/[\0-\x08\x0a-\x1f\x7f]/.test(value)) {
      const found = `a value of ${name} with control characters`;
      return [finding("not-a-header", found, "one line of text")];
    }
    const isSecond = seen.has(name.toLowerCase());
    seen.add(name.toLowerCase());
    if (isSecond) return [finding("two-of-one-header", `${name} twice`, "each header once")];
    return FRAMING.test(name)
      ? [finding("not-a-header", `the header ${name}`, "headers that do not frame the request")]
      : [];
  });
}

/** They belong to the connection: another value of them is another request, or none. */
const FRAMING = /^(content-length|transfer-encoding|connection|upgrade|te|trailer|expect)$/i;

function checkExpectations({ expectStatus, expectBody, expectJson }: HttpDetails): ProbeFinding[] {
  const findings: ProbeFinding[] = [];
  const isStatus = (status: number): boolean =>
    Number.isSafeInteger(status) && status >= 200 && status <= 599;
  const strange = expectStatus.find(
    ({ from, to }) => !isStatus(from) || !isStatus(to) || from > to,
  );
  if (strange !== undefined || expectStatus.length === 0) {
    const found =
      strange === undefined ? "no status" : `the statuses ${strange.from}-${strange.to}`;
    findings.push(finding("no-such-status", found, "200–599, as 200-299,302"));
  }
  if (expectBody !== undefined && compileBodyPattern(expectBody) === undefined) {
    const found = `the body pattern ${JSON.stringify(expectBody)}`;
    findings.push(finding("not-an-expression", found, "a regular expression"));
  }
  for (const { path } of expectJson) {
    if (parseJsonPath(path) !== undefined) continue;
    const found = `the path ${JSON.stringify(path)}`;
    findings.push(finding("not-a-json-path", found, `one such as checks[0].state or ["a b"].c`));
  }
  return findings;
}

function finding(because: ProbeRelation, found: string, expected: string): ProbeFinding {
  return { because, found, expected };
}
