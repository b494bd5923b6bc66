/** Defaults of a probe, its statuses and patterns, and the circuit that it belongs to. */
import { describe, expect, test } from "bun:test";
import {
  circuitNameOf,
  compileBodyPattern,
  defaultProbeSettings,
  expectsStatus,
  hashSettings,
  isSecretHeader,
  parseStatusRanges,
  startupOf,
} from "../../../src/core/probe-settings.ts";
import type { HttpDetails, ProbeSettings } from "../../../src/core/probe-settings.ts";
import { parseProbeTarget } from "../../../src/core/probe-target.ts";

function settingsOf(text: string, http: Partial<HttpDetails> = {}): ProbeSettings {
  const parsing = parseProbeTarget(text);
  if (parsing.kind === "refused") throw new Error(parsing.because);
  const settings = defaultProbeSettings("liveness", parsing.target);
  return { ...settings, http: { ...settings.http, ...http } };
}

const SETTINGS = settingsOf("http://x/health");

describe("the defaults", () => {
  test("are those of the contract", () => {
    expect(SETTINGS).toMatchObject({
      periodMs: 10_000,
      timeoutMs: 1_000,
      initialDelayMs: 0,
      failureThreshold: 3,
      successThreshold: 1,
      startupWaitMs: 60_000,
      onOpen: "stop",
      backoff: {
        initialMs: 1_000,
        capMs: 30_000,
        factor: 2,
        maxAttempts: 20,
        maxElapsedMs: 300_000,
      },
      http: { method: "GET", isInsecure: false, usesProxy: false, maxBytes: 1_048_576 },
    });
  });

  test("take a redirect for a failure, which Kubernetes does not", () => {
    const good = [199, 200, 299, 300, 302, 404, 500].filter((status) =>
      expectsStatus(SETTINGS.http.expectStatus, status),
    );
    expect(good).toEqual([200, 299]);
  });
});

test("a start asks as the run does, unless it is told otherwise", () => {
  const { timeoutMs, backoff } = SETTINGS;
  expect(startupOf(SETTINGS)).toEqual({ timeoutMs, backoff });
  const startup = { timeoutMs: 9, backoff: { ...backoff, maxAttempts: 2 } };
  expect(startupOf({ ...SETTINGS, startup })).toEqual(startup);
});

describe("a list of statuses", () => {
  test("is single ones and ranges", () => {
    const ranges = [
      { from: 200, to: 299 },
      { from: 302, to: 302 },
    ];
    expect(parseStatusRanges("200-299, 302")).toEqual(ranges);
    expect([200, 299, 300, 302].map((status) => expectsStatus(ranges, status))).toEqual([
      true,
      true,
      false,
      true,
    ]);
  });

  test.each(["", "2xx", "20", "2000", "200-", "-299", "200,,302", "200-299-300"])(
    "is none: %j",
    (text) => {
      expect(parseStatusRanges(text)).toBeUndefined();
    },
  );
});

test("a pattern of the body is compiled, or is none", () => {
  expect(compileBodyPattern('"status":\\s*true')?.test('{"status": true}')).toBe(true);
  expect(compileBodyPattern("(")).toBeUndefined();
});

test.each([
  ["Authorization", true],
  ["proxy-authorization", true],
  ["Cookie", true],
  ["X-Api-Key", true],
  ["x-auth-token", true],
  ["Accept", false],
  ["X-Tenant", false],
])("the value of the header %s is a secret: %p", (name, isSecret) => {
  expect(isSecretHeader(name)).toBe(isSecret);
});

describe("the hash of settings", () => {
  const header = (name: string, value: string) => ({ headers: [{ name, value }] });

  test.each<[string, ProbeSettings]>([
    ["the path", settingsOf("http://x/other")],
    ["the query", settingsOf("http://x/health?a")],
    ["the scheme", settingsOf("https://x/health")],
    ["the period", { ...SETTINGS, periodMs: 9 }],
    ["the timeout", { ...SETTINGS, timeoutMs: 9 }],
    ["a threshold", { ...SETTINGS, failureThreshold: 9 }],
    ["the other threshold", { ...SETTINGS, successThreshold: 9 }],
    ["the window", { ...SETTINGS, failureWindow: { failures: 1, size: 2 } }],
    ["the backoff", { ...SETTINGS, backoff: { ...SETTINGS.backoff, maxAttempts: 9 } }],
    ["the method", settingsOf("http://x/health", { method: "POST" })],
    ["a header", settingsOf("http://x/health", header("X-Tenant", "a"))],
    ["a header that is secret", settingsOf("http://x/health", header("Cookie", "a"))],
    ["the body", settingsOf("http://x/health", { body: "a" })],
    ["what is expected", settingsOf("http://x/health", { expectBody: "a" })],
    ["the file of credentials", settingsOf("http://x/health", { credentialsFile: "/a" })],
  ])("depends on %s", (_, other) => {
    expect(hashSettings(other)).not.toBe(hashSettings(SETTINGS));
  });

  test.each<[string, ProbeSettings]>([
    ["its name", { ...SETTINGS, name: "api" }],
    ["how a start asks", { ...SETTINGS, startup: { timeoutMs: 9, backoff: SETTINGS.backoff } }],
    ["its role", { ...SETTINGS, role: "startup" }],
    ["what a job does", { ...SETTINGS, onOpen: "pause", onUnready: "notify" }],
    ["how long a start waits", { ...SETTINGS, startupWaitMs: 9, initialDelayMs: 9 }],
    ["credentials", settingsOf("http://me:secret@x/health")],
    ["the order of fields", Object.fromEntries(Object.entries(SETTINGS).toReversed()) as never],
  ])("does not depend on %s", (_, other) => {
    expect(hashSettings(other)).toBe(hashSettings(SETTINGS));
  });

  test("knows a header by its name, and a secret one by nothing else", () => {
    const hash = (name: string, value: string) =>
      hashSettings(settingsOf("http://x/", header(name, value)));
    expect(hash("X-Tenant", "a")).toBe(hash("x-tenant", "a"));
    expect(hash("X-Tenant", "a")).not.toBe(hash("X-Tenant", "b"));
    expect(hash("Authorization", "a")).toBe(hash("Authorization", "b"));
  });

  test("knows what stands in a file by its path, before it was read and after", () => {
    const ofHeader = (value: string, file: string) =>
      hashSettings(settingsOf("http://x/", { headers: [{ name: "X", value, file }] }));
    expect(ofHeader("", "/f")).toBe(ofHeader("s3cr3t", "/f"));
    expect(ofHeader("", "/f")).not.toBe(ofHeader("", "/g"));
    const ofBody = (body: string | undefined, bodyFile: string) =>
      hashSettings(settingsOf("http://x/", { body, bodyFile }));
    expect(ofBody(undefined, "/f")).toBe(ofBody("s3cr3t", "/f"));
    expect(ofBody(undefined, "/f")).not.toBe(ofBody(undefined, "/g"));
  });

  test("does not depend on HTTP where none is spoken", () => {
    const plain = settingsOf("tcp://x:1");
    expect(hashSettings(settingsOf("tcp://x:1", { method: "POST" }))).toBe(hashSettings(plain));
    expect(hashSettings(settingsOf("unix:/x", { method: "POST" }))).not.toBe(
      hashSettings(settingsOf("unix:/x")),
    );
  });
});

describe("the name of a circuit", () => {
  test("is the one that was given", () => {
    expect(circuitNameOf({ ...SETTINGS, name: "api" })).toBe("api");
  });

  test("is otherwise the target without secrets, and the hash", () => {
    const name = circuitNameOf(settingsOf("http://me:secret@x/health?token=1"));
    expect(name).toMatch(/^http:\/\/x\/health#[0-9a-f]{16}$/);
    expect(circuitNameOf(settingsOf("cmd:curl -u me:secret x"))).toMatch(/^cmd:curl#[0-9a-f]{16}$/);
  });

  test("of two probes that ask differently are two", () => {
    expect(circuitNameOf({ ...SETTINGS, timeoutMs: 9 })).not.toBe(circuitNameOf(SETTINGS));
  });
});
