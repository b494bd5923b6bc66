/**
 * From a result that is none to the person who hears of it: the status, the notice and the answers
 * of `why` and `report` name the same check, of a run on the release binary.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { ask, askJson } from "../support/ask.ts";
import { openReceivers } from "../support/notice-server.ts";
import { inState } from "../support/own-state.ts";
import { openScene, type Scene } from "../support/scene.ts";

const whole = openScene(import.meta.file);
const open = openReceivers();
const LIMIT_MS = 60_000;

interface Told {
  readonly status: number;
  readonly because: unknown;
  readonly why: string;
  readonly needs: readonly unknown[];
}

let places = 0;

/** Runs a script in an empty directory and a state of its own, and asks what is known of it. */
async function tell(options: readonly string[], script: string, url: string): Promise<Told> {
  places += 1;
  const scene: Scene = inState(whole, `told-${places}.state`);
  const cwd = whole.path(`told-${places}`);
  mkdirSync(cwd);
  const words = ["--name", "nightly", "--webhook", url, ...options, "--", "sh", "-c", script];
  const { status } = await scene.run(words, { cwd });
  const why = (await ask(scene, ["why", "nightly"])).stdout.toString();
  const { run } = await askJson(scene, ["why", "nightly"]);
  const { needs } = await askJson(scene, ["report"]);
  return { status, because: run.because, why, needs };
}

interface Row {
  readonly because: string;
  readonly options: readonly string[];
  readonly script: string;
  /** What the line of the check names: what was asked for, and what was found. */
  readonly named: readonly string[];
}

const FILE = ["--expect-file", "dump"];
const ROWS: readonly Row[] = [
  { because: "file-empty", options: FILE, script: ": >dump", named: ["--expect-file dump", "0"] },
  { because: "file-missing", options: FILE, script: "true", named: ["dump", "no such file"] },
  {
    because: "no-output",
    options: ["--expect-output"],
    script: "true",
    named: ["--expect-output", "nothing"],
  },
  {
    because: "match-missing",
    options: ["--expect-match", "^done$"],
    script: "echo do",
    named: ["--expect-match ^done$", "no such line"],
  },
  {
    because: "match-forbidden",
    options: ["--fail-match", "^E:"],
    script: "echo E: full",
    named: ["--fail-match ^E:", '"E: full"'],
  },
  {
    because: "too-short",
    options: ["--min-duration", "30s"],
    script: "true",
    named: ["--min-duration", " ms"],
  },
];

describe("a command that says 0", () => {
  test.each([...ROWS])(
    "and is not done ($because) is 65, and one notice, why and report tell of that check",
    async ({ because, options, script, named }) => {
      const server = await open();
      const told = await tell(options, script, server.url());
      expect([told.status, told.because]).toEqual([65, because]);
      expect(server.received.map(({ event, outcome }) => [event, outcome])).toEqual([
        ["failure", "bad_output"],
      ]);
      const [{ body } = { body: {} }] = server.received;
      expect(body).toMatchObject({
        because,
        exit_status: 65,
        details: { checks: [{ passed: false, because }] },
      });
      expect(told.why).toStartWith("nightly: bad_output, status 65: it said that all went well");
      const line = told.why.split("\n").find((one) => /^ *check /.test(one)) ?? "";
      for (const part of named) expect(line).toContain(part);
      expect(told.needs).toMatchObject([{ job: "nightly", because: "failed" }]);
      expect(JSON.stringify(told.needs)).toContain(because);
    },
    LIMIT_MS,
  );

  test(
    "and is done is 0, told to nobody, and needs nobody",
    async () => {
      const server = await open();
      const options = ["--expect-file", "dump", "--expect-match", "^done$", "--fail-match", "^E:"];
      const told = await tell(
        [...options, "--expect-output"],
        "echo x >dump; echo done",
        server.url(),
      );
      expect([told.status, told.because]).toEqual([0, "exited"]);
      expect(told.why).toStartWith("nightly: ok, status 0");
      expect([server.received, told.needs]).toEqual([[], []]);
    },
    LIMIT_MS,
  );
});
