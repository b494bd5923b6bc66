/** Where the target of a sink stands, and that it is read anew each time. Real files. */
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { makeSink, type SinkSpec } from "../../src/core/sink.ts";
import { resolveSink } from "../../src/notify/resolve.ts";
import { openScene } from "../support/scene.ts";

const scene = openScene(import.meta.file);

function ofFile(path: string): SinkSpec {
  return makeSink({ kind: "webhook", source: { kind: "file", path } });
}

function targetOf(spec: SinkSpec, variables = {}): string {
  const found = resolveSink(spec, variables);
  return found.kind === "resolved" ? found.target : found.kind;
}

test("a file gives its first line, as it is now", () => {
  const path = scene.path("hook");
  writeFileSync(path, "https://h/one\r\nhttps://h/second\n");
  expect(targetOf(ofFile(path))).toBe("https://h/one");
  writeFileSync(path, "  https://h/two  ");
  expect(targetOf(ofFile(path))).toBe("https://h/two");
});

test("a file that gives none says so by its name alone", async () => {
  const empty = scene.path("empty");
  writeFileSync(empty, "\nsecond line that is secret\n");
  const directory = scene.path("directory");
  mkdirSync(directory);
  const fifo = scene.path("fifo");
  await scene.startProgram(["mkfifo", fifo]).ended;
  for (const path of [empty, directory, fifo, scene.path("no-such")]) {
    const found = resolveSink(ofFile(path), {});
    expect(found).toMatchObject({ kind: "unresolved", because: "no-target" });
    expect(JSON.stringify(found)).toContain(path);
    expect(JSON.stringify(found)).not.toContain("secret");
  }
});

test("a variable gives its value, and an empty one none", () => {
  const source = { kind: "variable", name: "WATCHDOG_WEBHOOK" } as const;
  const spec = makeSink({ kind: "webhook", source, value: "https://h/x" });
  expect(targetOf(spec, { WATCHDOG_WEBHOOK: " https://h/y\n" })).toBe("https://h/y");
  expect(targetOf(spec, { WATCHDOG_WEBHOOK: " " })).toBe("unresolved");
  expect(targetOf(spec)).toBe("unresolved");
});

test("what was not stored is known to whoever has the same sink alone", () => {
  const spec = makeSink({ kind: "webhook", source: { kind: "literal", text: "https://h/x" } });
  expect(targetOf(spec)).toBe("https://h/x");
  expect(targetOf({ ...spec, source: { kind: "hidden" } })).toBe("hidden");
});
