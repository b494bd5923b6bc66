/** What `watchdog probe` has to tell, in words and for machines. */
import { describe, expect, test } from "bun:test";
import { describeExpected, renderProbes, showProbe } from "../../../src/cli/render-probe.ts";
import type { ProbeResult } from "../../../src/core/probe-result.ts";
import {
  DEFAULT_HTTP,
  defaultProbeSettings,
  type ProbeSettings,
} from "../../../src/core/probe-settings.ts";
import { parseProbeTarget } from "../../../src/core/probe-target.ts";

function settingsFor(url: string, changes: Partial<ProbeSettings> = {}): ProbeSettings {
  const parsed = parseProbeTarget(url);
  if (parsed.kind === "refused") throw new Error(`${url}: ${parsed.because}`);
  return { ...defaultProbeSettings("liveness", parsed.target), ...changes };
}

const GOOD: ProbeResult = {
  isGood: true,
  because: "good",
  stages: [
    { stage: "name", ms: 1.2 },
    { stage: "connect", ms: 0.3 },
    { stage: "tls", ms: 20 },
    { stage: "headers", ms: 12 },
    { stage: "body", ms: 0.1 },
  ],
  status: 200,
  address: "127.0.0.1:443",
  detail: "status 200",
};
const BAD: ProbeResult = {
  isGood: false,
  because: "refused",
  stages: [{ stage: "connect", ms: 0.4 }],
  detail: "127.0.0.1:80: connection refused",
};
const SECRET = "https://me:hunter2@localhost/health?token=hunter2";

describe("a block", () => {
  test("has each stage with its time, what was expected and found, and the verdict", () => {
    const http = { ...DEFAULT_HTTP, expectBody: "^ok", expectJson: [{ path: "a.b", value: "1" }] };
    const settings = settingsFor(SECRET, { name: "api", http });
    expect(renderProbes([{ settings, result: GOOD }])).toBe(
      [
        "api=https://localhost/health",
        "  name resolution  1.2 ms",
        "  connect          0.3 ms   127.0.0.1:443",
        "  TLS handshake    20.0 ms",
        "  request, status  12.0 ms  status 200",
        "  body             0.1 ms",
        "  expected                  status 200-299, a body that matches /^ok/, a.b to be 1, " +
          "within 1000 ms",
        "  found                     status 200",
        "  good, 33.6 ms in all",
        "",
      ].join("\n"),
    );
  });

  test("says where a probe has ended that is not good, one block a target", () => {
    const first = { settings: settingsFor("tcp://127.0.0.1:80"), result: BAD };
    const command: ProbeResult = { ...BAD, because: "command-not-started", stages: [] };
    const second = { settings: settingsFor("cmd:TOKEN=x ./ask --key y"), result: command };
    expect(renderProbes([first, second])).toBe(
      [
        "tcp://127.0.0.1:80",
        "  connect   0.4 ms  <- it ended here",
        "  expected          a connection within 1000 ms",
        "  found             127.0.0.1:80: connection refused",
        "  NOT GOOD: refused, 0.4 ms in all",
        "",
        "cmd:./ask",
        "  expected    status 0 within 1000 ms",
        "  found       127.0.0.1:80: connection refused",
        "  NOT GOOD: command-not-started, 0.0 ms in all",
        "",
      ].join("\n"),
    );
  });

  test("shows no secret and moves no cursor", () => {
    const http = {
      ...DEFAULT_HTTP,
      headers: [{ name: "X-Token", value: "hunter2" }],
      body: "hunter2",
      expectBody: "\u001b[2J",
    };
    const result = { ...BAD, detail: "\u001b[2J\n" };
    const asked = { settings: settingsFor(SECRET, { http }), result };
    const text = renderProbes([asked]);
    expect(/[^\x20-\x7e\n]/.test(text)).toBe(false);
    expect(text + JSON.stringify(showProbe(asked))).not.toContain("hunter2");
  });
});

test("what is expected of each kind is said", () => {
  const status = {
    ...DEFAULT_HTTP,
    expectStatus: [
      { from: 204, to: 204 },
      { from: 300, to: 302 },
    ],
  };
  expect(describeExpected(settingsFor("unix:/run/x.sock", { http: status, timeoutMs: 50 }))).toBe(
    "status 204,300-302, within 50 ms",
  );
  expect(describeExpected(settingsFor("tcp://h:1"))).toBe("a connection within 1000 ms");
  expect(describeExpected(settingsFor("cmd:true"))).toBe("status 0 within 1000 ms");
});

describe("for machines", () => {
  test("a good answer has all of its fields", () => {
    const settings = settingsFor("https://localhost/health", { name: "api" });
    expect(showProbe({ settings, result: GOOD })).toMatchSnapshot();
  });

  test("what there was none of is null, and the circuit has the name that a run gives it", () => {
    expect(showProbe({ settings: settingsFor("tcp://h:1"), result: BAD })).toMatchObject({
      circuit: expect.stringMatching(/^tcp:\/\/h:1#[0-9a-f]{16}$/),
      status: null,
      address: null,
      stages: [{ stage: "connect", ms: 0.4 }],
      total_ms: 0.4,
    });
  });
});
