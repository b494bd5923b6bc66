/** Settings of probes that contradict themselves: each relation, at its edge and beyond. */
import { describe, expect, test } from "bun:test";
import { checkProbeSettings } from "../../../src/core/probe-check.ts";
import { defaultProbeSettings } from "../../../src/core/probe-settings.ts";
import type { HttpDetails, ProbeRole, ProbeSettings } from "../../../src/core/probe-settings.ts";
import { parseProbeTarget } from "../../../src/core/probe-target.ts";

function settingsOf(text: string, http: Partial<HttpDetails> = {}): ProbeSettings {
  const parsing = parseProbeTarget(text);
  if (parsing.kind === "refused") throw new Error(parsing.because);
  const settings = defaultProbeSettings("liveness", parsing.target);
  return { ...settings, http: { ...settings.http, ...http } };
}

const LIVENESS = settingsOf("https://x/health");

function reasonsOf(settings: ProbeSettings): string[] {
  return checkProbeSettings(settings).map(({ because }) => because);
}

describe("settings without a finding", () => {
  test.each<ProbeRole>(["startup", "liveness", "readiness"])("are the defaults of %s", (role) => {
    for (const text of ["http://x/", "https://x/", "tcp://x:1", "unix:/x", "cmd:true"]) {
      const { target } = settingsOf(text);
      expect(checkProbeSettings(defaultProbeSettings(role, target))).toEqual([]);
    }
  });

  test.each<Partial<ProbeSettings>>([
    { timeoutMs: 10_000 },
    { periodMs: 1, timeoutMs: 1 },
    { role: "startup", timeoutMs: 60_000 },
    { timeoutMs: 60_000, periodMs: 60_000 },
    { startupWaitMs: 1_000 },
    { role: "readiness", startupWaitMs: 1 },
    { failureThreshold: 1, successThreshold: 1_000 },
    { failureWindow: { failures: 5, size: 5 } },
  ])("are at the edge: %j", (change) => {
    expect(reasonsOf({ ...LIVENESS, ...change })).toEqual([]);
  });

  test.each<Partial<HttpDetails>>([
    { method: "POST", body: "{}", expectBody: "^ok$", expectJson: [{ path: "a[0]", value: "1" }] },
    { method: "GET", expectBody: "ok" },
    { method: "HEAD" },
    { caFile: "/ca.pem", credentialsFile: "/credentials" },
    { isInsecure: true, usesProxy: true, maxBytes: 1 },
    { expectStatus: [{ from: 302, to: 302 }] },
    {
      headers: [
        { name: "Host", value: "a" },
        { name: "X-A", value: "é\t→" },
      ],
    },
  ])("speak HTTP in every way: %j", (http) => {
    expect(reasonsOf(settingsOf("https://x/", http))).toEqual([]);
  });
});

describe("a broken relation", () => {
  test.each<[Partial<ProbeSettings>, string]>([
    [{ periodMs: 0, timeoutMs: 0 }, "period-not-positive timeout-not-positive"],
    [{ periodMs: Number.NaN }, "period-not-positive"],
    [{ timeoutMs: Number.NaN }, "timeout-not-positive"],
    [{ periodMs: 4e11 }, "period-not-positive"],
    [{ timeoutMs: 10_001 }, "timeout-above-period"],
    [{ role: "readiness", timeoutMs: 10_001 }, "timeout-above-period"],
    [{ role: "startup", timeoutMs: 60_001 }, "timeout-above-startup-wait"],
    [{ timeoutMs: 60_001, periodMs: 60_001 }, "timeout-above-startup-wait"],
    [{ startupWaitMs: 999 }, "timeout-above-startup-wait"],
    [{ initialDelayMs: -1 }, "initial-delay-negative"],
    [{ initialDelayMs: 4e11 }, "initial-delay-negative"],
    [{ startupWaitMs: 0 }, "startup-wait-not-positive"],
    [{ failureThreshold: 0 }, "failure-threshold-below-1"],
    [{ failureThreshold: 1.5 }, "failure-threshold-below-1"],
    [{ failureThreshold: 1_001 }, "failure-threshold-below-1"],
    [{ successThreshold: 0 }, "success-threshold-below-1"],
    [{ failureWindow: { failures: 6, size: 5 } }, "window-below-failures"],
    [{ failureWindow: { failures: 0, size: 5 } }, "window-below-failures"],
    [{ failureWindow: { failures: 1, size: 1_001 } }, "window-below-failures"],
    [{ backoff: { ...LIVENESS.backoff, capMs: 5 } }, "cap-below-initial"],
  ])("of spans and counts is named: %j", (change, reasons) => {
    expect(reasonsOf({ ...LIVENESS, ...change }).join(" ")).toBe(reasons);
  });

  const header = (name: string, value = "a") => ({ name, value });

  test.each<[Partial<HttpDetails>, string]>([
    [{ caFile: "/ca.pem", isInsecure: true }, "insecure-with-ca"],
    [{ credentialsFile: "/c", headers: [header("authorization")] }, "two-credentials"],
    [{ method: "" }, "not-a-method"],
    [{ method: "GET X" }, "not-a-method"],
    [{ method: "CONNECT" }, "not-a-method"],
    [{ body: "" }, "body-without-method"],
    [{ method: "head", body: "a" }, "body-without-method"],
    [{ bodyFile: "/b" }, "body-without-method"],
    [{ method: "HEAD", expectBody: "a" }, "no-body-to-look-at"],
    [{ method: "HEAD", expectJson: [{ path: "a", value: "" }] }, "no-body-to-look-at"],
    [{ maxBytes: 0 }, "max-bytes-outside"],
    [{ maxBytes: 67_108_865 }, "max-bytes-outside"],
    [{ maxBytes: Number.NaN }, "max-bytes-outside"],
    [{ headers: [header("a b")] }, "not-a-header"],
    [{ headers: [header("")] }, "not-a-header"],
    [{ headers: [header("a", "b\r\nc: d")] }, "not-a-header"],
    [{ headers: [header("a", "\u0000")] }, "not-a-header"],
    [{ headers: [header("a", "\u007f")] }, "not-a-header"],
    [{ headers: [header("Content-Length", "3")] }, "not-a-header"],
    [{ headers: [header("transfer-encoding")] }, "not-a-header"],
    [{ headers: [header("a"), header("b"), header("A")] }, "two-of-one-header"],
    [{ expectStatus: [] }, "no-such-status"],
    [{ expectStatus: [{ from: 199, to: 299 }] }, "no-such-status"],
    [{ expectStatus: [{ from: 200, to: 600 }] }, "no-such-status"],
    [{ expectStatus: [{ from: 299, to: 200 }] }, "no-such-status"],
    [{ expectBody: "(" }, "not-an-expression"],
    [{ expectJson: [{ path: "a..b", value: "" }] }, "not-a-json-path"],
  ])("of HTTP is named: %j", (http, reasons) => {
    expect(reasonsOf(settingsOf("https://x/", http)).join(" ")).toBe(reasons);
  });

  test.each<[string, Partial<HttpDetails>, string]>([
    ["tcp://x:1", { method: "POST" }, "not-for-this-target"],
    ["cmd:true", { maxBytes: 5 }, "not-for-this-target"],
    ["unix:/x", { usesProxy: true }, "not-for-this-target"],
    ["unix:/x", { isInsecure: true }, "tls-without-https"],
    ["http://x/", { caFile: "/ca.pem" }, "tls-without-https"],
    ["http://me:secret@x/", { credentialsFile: "/c" }, "two-credentials"],
    ["http://me:secret@x/", { headers: [header("Authorization")] }, "two-credentials"],
  ])("between the target and the rest is named: %s with %j", (text, http, reasons) => {
    expect(reasonsOf(settingsOf(text, http)).join(" ")).toBe(reasons);
  });

  test("of the start alone is named apart from that of the run", () => {
    const startup = { timeoutMs: 5_000, backoff: LIVENESS.backoff };
    const reasons = (changed: object, startupWaitMs = 60_000): string[] =>
      reasonsOf({ ...LIVENESS, startupWaitMs, startup: { ...startup, ...changed } });
    expect(reasons({})).toEqual([]);
    expect(reasons({ timeoutMs: 60_000 })).toEqual([]);
    expect(reasons({ timeoutMs: 60_001 })).toEqual(["timeout-above-startup-wait"]);
    expect(reasons({}, 4_000)).toEqual(["timeout-above-startup-wait"]);
    expect(reasons({ timeoutMs: 0 })).toEqual(["timeout-not-positive"]);
    const backoff = { ...startup.backoff, factor: 0 };
    expect(reasons({ backoff })).toEqual(["factor-below-1"]);
    const found = checkProbeSettings({ ...LIVENESS, timeoutMs: 10_001, startupWaitMs: 10_000 });
    expect(found.map(({ because, isOfStart }) => [because, isOfStart])).toEqual([
      ["timeout-above-period", undefined],
      ["timeout-above-startup-wait", true],
    ]);
    const ready = {
      ...LIVENESS,
      role: "readiness",
      startup: { ...startup, timeoutMs: 0 },
    } as const;
    expect(reasonsOf(ready)).toEqual([]);
  });

  test("is told with both sides", () => {
    const found = checkProbeSettings({ ...LIVENESS, timeoutMs: 20_000 }).map((each) => each.found);
    expect(found).toEqual(["a timeout of 20000 ms above a period of 10000 ms"]);
    const wrong = checkProbeSettings(settingsOf("tcp://x:1", { method: "POST", body: "a" }));
    expect(wrong.map(({ detail, found }) => [detail, found])).toEqual([
      ["method", "a setting of HTTP for tcp://x:1"],
      ["body", "a setting of HTTP for tcp://x:1"],
    ]);
  });

  test("is told without the secrets that are near it", () => {
    const http = {
      credentialsFile: "/c",
      isInsecure: true,
      headers: [header("Authorization", "secret\n"), header("a", "secret\r")],
    };
    const findings = checkProbeSettings(settingsOf("http://me:secret@x/?secret", http));
    expect(findings.map(({ because }) => because)).toEqual([
      "tls-without-https",
      "two-credentials",
      "not-a-header",
      "not-a-header",
    ]);
    expect(JSON.stringify(findings)).not.toContain("secret");
  });
});
