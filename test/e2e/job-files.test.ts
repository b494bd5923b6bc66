/** Job files and the lines of watchdog job at the binary: what is refused begins nothing. */

import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { ask } from "../support/ask.ts";
import { misfitsOf } from "../support/json-schema.ts";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);

const RIGHT = `name: j
steps:
  a: { command: echo a >>log, side_effects: none }
  b: { command: echo b >>log, side_effects: none, needs: [a] }
`;

let count = 0;

function write(text: string, ending = "yaml"): string {
  count += 1;
  const path = scene.path(`job-${count}.${ending}`);
  writeFileSync(path, text);
  return path;
}

async function askJob(...words: readonly string[]) {
  const { status, stdout, stderr } = await ask(scene, ["job", ...words]);
  return { status, stdout: stdout.toString(), stderr: stderr.toString() };
}

describe("a job file that is wrong", () => {
  const wrong = RIGHT.replace("needs: [a]", "needs: [aa]");

  test.each(["run", "resume", "plan", "run --dry-run"])(
    "is refused by job %s with 78, the place and the path, and nothing is begun",
    async (verb) => {
      const path = write(wrong);
      const { status, stdout, stderr } = await askJob(...verb.split(" "), path);
      expect({ status, stdout }).toEqual({ status: 78, stdout: "" });
      expect(stderr.split("\n").slice(0, 2)).toEqual([
        `watchdog: error: ${path}:4:59: steps.b.needs[0]: found a need of aa, expected the name ` +
          "of a step",
        expect.stringMatching(/^watchdog: hint: watchdog job verify /),
      ]);
      expect(existsSync(scene.path("log"))).toBe(false);
    },
  );

  test("is told as a whole by job verify, which answers 1", async () => {
    const path = write(wrong.replace("name: j", "name: j\nnmae: k"));
    const { status, stdout } = await askJob("verify", path);
    expect(status).toBe(1);
    expect(stdout).toContain(`${path}:2:1: nmae: found an unknown key`);
  });

  test("of any language is refused, and none that is no regular file is waited for", async () => {
    expect((await askJob("run", write("{", "json"))).status).toBe(78);
    expect((await askJob("run", write("a = [", "toml"))).status).toBe(78);
    expect((await askJob("run", scene.path("nothing.yaml"))).status).toBe(78);
    expect((await askJob("run", "/dev/null")).stderr).toContain("found no regular file");
  });
});

test("a step that is named on the line and not in the file is refused with 64", async () => {
  const { status, stderr } = await askJob("run", "--redo", "aaa", write(RIGHT));
  expect(status).toBe(64);
  expect(stderr).toContain('--redo: found "aaa", expected the name of a step');
  expect(existsSync(scene.path("log"))).toBe(false);
});

test("job schema prints a schema with which the answers of job run agree", async () => {
  const { status, stdout, stderr } = await askJob("schema");
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const schema = JSON.parse(stdout);
  const right = { name: "s", steps: { a: { command: ":", side_effects: "none", timeout: "5s" } } };
  const wrong = { name: "s", steps: { a: { command: ":", side_effects: "none", timeouts: "5s" } } };
  expect(misfitsOf(schema, right)).toEqual([]);
  expect(misfitsOf(schema, wrong)).toEqual(["$.steps.a.timeouts"]);
  expect((await askJob("run", write(JSON.stringify(right), "json"))).status).toBe(0);
  expect((await askJob("run", write(JSON.stringify(wrong), "json"))).status).toBe(78);
});

test("--dry-run and plan say the same, and neither runs nor writes anything", async () => {
  const path = write(RIGHT.replace("name: j", "name: dry"));
  const plan = await askJob("plan", "--json", path);
  expect(plan.status).toBe(0);
  expect(await askJob("run", "--dry-run", "--json", path)).toEqual(plan);
  expect(JSON.parse(plan.stdout)).toMatchObject({
    job: "dry",
    kind: "begin",
    steps: [
      { step: "a", todo: "run" },
      { step: "b", todo: "run" },
    ],
  });
  expect((await askJob("status", path)).stdout).toContain("was ever begun here");
});

test("the file of a link is that to which it leads, and its steps run there", async () => {
  const path = write(RIGHT.replaceAll(">>log", ">>linked").replace("name: j", "name: linked"));
  const elsewhere = scene.path("elsewhere");
  await Bun.spawn(["mkdir", elsewhere]).exited;
  await Bun.spawn(["ln", "-s", path, `${elsewhere}/link`]).exited;
  expect((await askJob("run", `${elsewhere}/link`)).status).toBe(0);
  expect(readFileSync(scene.path("linked"), "utf8")).toBe("a\nb\n");
});
