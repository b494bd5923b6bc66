/** What a repair keeps beside the files that it replaces, and what it sees in their places. */
import { afterAll, describe, expect, test } from "bun:test";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { keepAside, keepCopy, MOST_KEPT } from "../../src/lease/files/kept-record.ts";
import { kindAt } from "../../src/lease/repair-facts.ts";

const directory = mkdtempSync(join(tmpdir(), "watchdog-kept-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

let count = 0;

function newPath(content?: string): string {
  count += 1;
  const path = join(directory, `${count}`, "lease.json");
  mkdirSync(join(directory, `${count}`));
  if (content !== undefined) writeFileSync(path, content);
  return path;
}

function beside(path: string): string[] {
  return readdirSync(join(path, "..")).sort();
}

describe("an old record", () => {
  test("is copied, and stays where it is", () => {
    const path = newPath("one");
    expect(keepCopy(path, 100)).toEqual({ kind: "kept", path: `${path}.kept-1` });
    writeFileSync(path, "two");
    expect(keepCopy(path, 100)).toEqual({ kind: "kept", path: `${path}.kept-2` });
    expect(beside(path)).toEqual(["lease.json", "lease.json.kept-1", "lease.json.kept-2"]);
    expect(readFileSync(`${path}.kept-1`, "utf8")).toBe("one");
    expect(readFileSync(`${path}.kept-2`, "utf8")).toBe("two");
  });

  test("that is not there needs no keeping", () => {
    const path = newPath();
    expect([keepCopy(path, 100), keepAside(path)]).toEqual([
      { kind: "nothing-there" },
      { kind: "nothing-there" },
    ]);
    expect(beside(path)).toEqual([]);
  });

  test("that is no file, or too long for one, is renamed as it is", () => {
    const link = newPath();
    symlinkSync("nowhere", link);
    expect(keepCopy(link, 100)).toEqual({ kind: "kept", path: `${link}.kept-1` });
    const long = newPath("x".repeat(101));
    expect(keepCopy(long, 100).kind).toBe("kept");
    expect([beside(link), beside(long)]).toEqual([["lease.json.kept-1"], ["lease.json.kept-1"]]);
  });

  test(`is not kept beside ${MOST_KEPT} others: nothing is written over`, () => {
    const path = newPath("last");
    for (let at = 1; at <= MOST_KEPT; at += 1) writeFileSync(`${path}.kept-${at}`, `${at}`);
    expect(keepCopy(path, 100)).toEqual({ kind: "too-many" });
    expect(keepAside(path)).toEqual({ kind: "too-many" });
    expect(readFileSync(path, "utf8")).toBe("last");
    expect(readFileSync(`${path}.kept-${MOST_KEPT}`, "utf8")).toBe(`${MOST_KEPT}`);
  });
});

test("what stands in a place is told without following a link or opening it", async () => {
  const path = newPath();
  expect(kindAt(path)).toBe("missing");
  writeFileSync(path, "");
  expect(kindAt(path)).toBe("regular");
  expect(kindAt(`${path}/below`)).toBe("unread");
  expect(kindAt(directory)).toBe("directory");
  symlinkSync(path, `${path}.link`);
  expect(kindAt(`${path}.link`)).toBe("link");
  Bun.spawnSync(["mkfifo", `${path}.fifo`]);
  expect(kindAt(`${path}.fifo`)).toBe("fifo");
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(`${path}.s`, resolve));
  expect(kindAt(`${path}.s`)).toBe("special");
  await new Promise((resolve) => server.close(resolve));
});
