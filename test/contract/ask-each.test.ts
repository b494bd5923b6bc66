/** `watchdog probe` to its answer: real servers; commands are in e2e/probe.test.ts. */
import { afterAll, describe, expect, test } from "bun:test";
import type { Socket } from "node:net";
import { answerProbe } from "../../src/cli/answer-probe.ts";
import { DEFAULT_HTTP, defaultProbeSettings } from "../../src/core/probe-settings.ts";
import type { HttpDetails, ProbeSettings } from "../../src/core/probe-settings.ts";
import { parseProbeArgument } from "../../src/core/probe-target.ts";
import { readInheritance } from "../../src/os/inheritance.ts";
import { answering, ok, ProbeScene } from "../support/probe-scene.ts";

const scene = new ProbeScene();
afterAll(() => scene.close());
const around = {
  probeUrl: new URL("../../src/probe/probe-worker.ts", import.meta.url),
  inherited: readInheritance(),
};

function settingsFor(text: string, http: Partial<HttpDetails> = {}): ProbeSettings {
  const parsed = parseProbeArgument(text);
  if (parsed.kind === "refused") throw new Error(`${text}: ${parsed.because}`);
  const settings = defaultProbeSettings("liveness", parsed.target);
  const timeoutMs = 5_000;
  return { ...settings, name: parsed.name, timeoutMs, http: { ...DEFAULT_HTTP, ...http } };
}

function cutOf(probes: readonly ProbeSettings[], changes = {}) {
  const looking = { stateDir: undefined, configFile: undefined };
  return { kind: "probe", probes, isJson: true, isCheck: false, ...looking, ...changes } as const;
}

type Shown = Readonly<Record<string, unknown>>;

async function ask(
  probes: readonly ProbeSettings[],
): Promise<Shown & { readonly probes: Shown[] }> {
  return JSON.parse((await answerProbe(cutOf(probes), around)).text ?? "");
}

describe("each target is asked once, and answered in its place", () => {
  test("whatever kind it is, and whatever the others say", async () => {
    const good = await scene.serve(answering(ok("all is well")));
    const bad = await scene.serve(answering("HTTP/1.1 503 no\r\nContent-Length: 0\r\n\r\n"));
    const dead = await scene.deadPort();
    const answer = await ask([
      settingsFor(`bad=http://127.0.0.1:${bad.port}/x?token=hunter2`),
      settingsFor(`tcp://127.0.0.1:${dead}`),
      settingsFor(`tcp://127.0.0.1:${good.port}`),
      settingsFor(`http://me:hunter2@127.0.0.1:${good.port}/health`, {
        expectBody: "^all .* well$",
      }),
    ]);
    expect(answer["is_good"]).toBe(false);
    const seen = answer.probes.map(({ target, because, status }) => [target, because, status]);
    expect(seen).toEqual([
      [`http://127.0.0.1:${bad.port}/x`, "status", 503],
      [`tcp://127.0.0.1:${dead}`, "refused", null],
      [`tcp://127.0.0.1:${good.port}`, "good", null],
      [`http://127.0.0.1:${good.port}/health`, "good", 200],
    ]);
    expect(answer.probes[0]).toMatchObject({
      circuit: "bad",
      address: `127.0.0.1:${bad.port}`,
      expected: "status 200-299, within 5000 ms",
      found: "status 503, expected 200-299",
    });
    const stages = answer.probes[3]?.["stages"] as { stage: string }[];
    expect(stages.map(({ stage }) => stage)).toEqual(["name", "connect", "headers", "body"]);
    expect(JSON.stringify(answer)).not.toContain("hunter2");
    expect([good.connections.length, bad.connections.length]).toEqual([2, 1]);
  });

  test("at the same time", async () => {
    // None of them is answered before all have asked.
    const asking: Socket[] = [];
    const slow = await scene.serve((socket) => {
      if (asking.push(socket) === 4) for (const one of asking) one.end(ok());
    });
    const probes = Array.from({ length: 4 }, () => ({
      ...settingsFor(`http://127.0.0.1:${slow.port}/`),
      timeoutMs: 10_000,
    }));
    const answer = await ask(probes);
    expect(answer.probes.map(({ because }) => because)).toEqual(Array(4).fill("good"));
  });
});

describe("the status", () => {
  test.each([
    [true, false, 0],
    [true, true, 0],
    [false, false, 0],
    [false, true, 69],
  ])("where all are good: %p, with --check: %p, is %p", async (isGood, isCheck, code) => {
    const { port } = await scene.serve(answering(ok()));
    const targets = [port, isGood ? port : await scene.deadPort()];
    const probes = targets.map((each) => settingsFor(`tcp://127.0.0.1:${each}`));
    const answer = await answerProbe(cutOf(probes, { isCheck, isJson: false }), around);
    expect([answer.code, answer.lines]).toEqual([code, []]);
    expect(answer.text?.includes("NOT GOOD")).toBe(!isGood);
  });
});
