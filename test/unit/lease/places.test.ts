/** Names of lease files: one key, one directory. */
import { expect, test } from "bun:test";
import {
  decodeLeaseName,
  encodeLeaseName,
  placeOf,
  slotPath,
} from "../../../src/lease/files/places.ts";

test("a key's files lie in one directory, its kind's beside it", () => {
  const place = placeOf("/s", { kind: "lane", name: "web server/1" });
  expect(place).toEqual({
    key: { kind: "lane", name: "web server/1" },
    directory: "/s/leases/lane/web%20server%2F1",
    lock: "/s/leases/lane/web%20server%2F1/lock",
    fence: "/s/leases/lane/web%20server%2F1/fence",
    record: "/s/leases/lane/web%20server%2F1/lease.json",
    note: "/s/leases/lane/web%20server%2F1/seen.json",
    kindDirectory: "/s/leases/lane",
    floors: "/s/leases/lane/floors",
  });
  expect(slotPath(place, 12)).toBe("/s/leases/lane/web%20server%2F1/beat.12");
});

const NAMES = ["a", "a.b", ".a", "..", "%41", "A/B", "ä ☃", "a~b", "floors", "%66loors", "Floors"];

test.each(NAMES.map((name) => [name]))("the name %j comes back from its directory", (name) => {
  const directory = encodeLeaseName(name);
  expect(directory).toMatch(/^[\w%-][\w%.-]*$/);
  expect(decodeLeaseName(directory)).toBe(name);
});

test("no two names share a directory, and none is the file of the floors", () => {
  const long = ["x".repeat(200), `${"x".repeat(199)}y`];
  const directories = [...NAMES, ...long].map(encodeLeaseName);
  expect(new Set(directories).size).toBe(NAMES.length + long.length);
  expect(directories).not.toContain("floors");
});

test.each([[encodeLeaseName("x".repeat(200))], ["%4"], ["%61"], ["%ff"], ["floors"], ["a b"]])(
  "the directory %j tells no name",
  (directory) => {
    expect(decodeLeaseName(directory)).toBeUndefined();
  },
);
