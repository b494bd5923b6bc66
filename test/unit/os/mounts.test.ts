import { expect, test } from "bun:test";
import { findMount } from "../../../src/os/mounts.ts";

test("the mount of a path is the one that lies nearest above it", () => {
  expect(findMount("/proc/self/ns")).toMatchObject({ path: "/proc", fileSystem: "proc" });
  expect(findMount("/")?.path).toBe("/");
  expect(findMount("/proc")?.options.length).toBeGreaterThan(0);
});

test("of a path that is not there nothing is told", () => {
  expect(findMount("/proc/no-such-file/below")).toBeUndefined();
});
