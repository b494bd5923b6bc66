/** `watchdog circuit` and the circuits of `watchdog status`, about one that calls have opened. */
import { beforeEach, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { ask, askJson, askLines } from "../support/ask.ts";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);

/** Three failures open it (product.md, section 5). */
async function openByCalls(name: string): Promise<void> {
  for (let call = 0; call < 3; call += 1) await callOnce(name);
}

/** Without success. */
async function callOnce(name: string): Promise<void> {
  const words = ["retry", "--breaker", name, "--max-attempts", "1", "--", "false"];
  expect((await ask(scene, words)).status).toBe(1);
}

test("before there is a state directory, there is none, and none is made", async () => {
  const directory = scene.path("nothing-yet");
  const words = ["circuit", "list", "--state-dir", directory];
  expect(await askLines(scene, words)).toEqual(["no circuit is known"]);
  expect((await askJson(scene, words)).circuits).toEqual([]);
  expect(existsSync(directory)).toBe(false);
});

describe("a circuit that calls have opened", () => {
  beforeEach(async () => {
    await ask(scene, ["circuit", "reset", "inference"]);
    await openByCalls("inference");
  }, 60_000);

  test("is in the list, and shown with why and until when", async () => {
    const [line, ...more] = await askLines(scene, ["circuit", "list"]);
    expect(more).toEqual([]);
    expect(line).toMatch(
      /^inference  open  since \S+ \S+  next trial .*  not probed  -  never probed$/,
    );
    const shown = await askLines(scene, ["circuit", "show", "inference"]);
    expect(shown[0]).toMatch(/^inference  open since /);
    expect(shown[1]).toMatch(/^ {2}why {7}too many failures: nothing starts, next trial /);
    expect(await askJson(scene, ["circuit", "show", "inference"])).toMatchObject({
      format: 1,
      state: "open",
      is_probed: false,
      settings_hash: null,
      settings: { failure_threshold: 3 },
    });
  });

  test("is in the status, a line", async () => {
    const lines = await askLines(scene, ["status"]);
    const at = lines.indexOf("circuits");
    expect(lines[at + 1]).toMatch(/^ {2}inference {2}open since .* {2}never probed$/);
    expect((await askJson(scene, ["status"])).circuits).toMatchObject([{ name: "inference" }]);
  });

  test("is closed by a reset, and counts anew from there", async () => {
    expect(await askLines(scene, ["circuit", "reset", "inference"])).toEqual([
      "inference: was open, is closed",
    ]);
    expect((await askJson(scene, ["status"])).circuits).toEqual([]);
    await callOnce("inference");
    expect(await askJson(scene, ["circuit", "show", "inference"])).toMatchObject({
      state: "closed",
      consecutive_failures: 1,
    });
  });
});

test.each(["show", "reset"])("%s of a name that nobody knows leaves with 1", async (word) => {
  const { status, stdout, stderr } = await ask(scene, ["circuit", word, "nobody"]);
  expect([status, stdout.toString()]).toEqual([1, ""]);
  expect(stderr).toBe(
    'watchdog: error: no circuit is known of "nobody"\nwatchdog: hint: watchdog circuit list\n',
  );
});
