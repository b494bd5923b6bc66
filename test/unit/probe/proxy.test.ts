/** Which proxy the variables name, and what an address of one is. */
import { expect, test } from "bun:test";
import { parseProbeTarget } from "../../../src/core/probe-target.ts";
import { chooseProxy, type Environment } from "../../../src/core/proxy-choice.ts";
import { parseProxy } from "../../../src/probe/proxy.ts";

function choose(url: string, environment: Environment): string | undefined {
  const parsed = parseProbeTarget(url);
  if (parsed.kind === "refused") throw new Error(`${url}: ${parsed.because}`);
  return chooseProxy(parsed.target, environment);
}

test("each scheme has a variable of its own, and one for all stands in for it", () => {
  const all = { http_proxy: "h", https_proxy: "s", all_proxy: "a" };
  expect(choose("http://a.test/", all)).toBe("h");
  expect(choose("https://a.test/", all)).toBe("s");
  expect(choose("https://a.test/", { HTTPS_PROXY: "S", http_proxy: "h" })).toBe("S");
  expect(choose("http://a.test/", { ALL_PROXY: "A", http_proxy: "" })).toBe("A");
  expect(choose("tcp://a.test:1", all)).toBeUndefined();
  expect(choose("unix:/a", all)).toBeUndefined();
});

test("HTTP_PROXY in capitals is what a stranger may have sent, and does not count", () => {
  expect(choose("http://a.test/", { HTTP_PROXY: "H" })).toBeUndefined();
});

test.each([
  ["*", true],
  ["a.test", true],
  [".test", true],
  ["x, a.test", true],
  ["A.TEST", true],
  ["b.test", false],
  ["st", false],
  ["", false],
  ["xa.test", false],
])("without a proxy for %j: %p", (no_proxy, isExcepted) => {
  const chosen = choose("http://a.test/", { http_proxy: "h", no_proxy });
  expect(chosen).toBe(isExcepted ? undefined : "h");
});

test("an address is one of plain HTTP", () => {
  expect(parseProxy("http://a.test:81/")).toEqual({
    host: "a.test",
    port: 81,
    authorization: undefined,
  });
  expect(parseProxy("a.test:3128")).toMatchObject({ host: "a.test", port: 3128 });
  expect(parseProxy("http://[::1]:1")).toMatchObject({ host: "::1", port: 1 });
  expect(parseProxy("http://u:p%40@a.test")).toMatchObject({ authorization: "Basic dTpwQA==" });
  for (const text of ["https://a.test", "socks5://a.test:1", "http://", "", "http://u:%@a.test"]) {
    expect([text, parseProxy(text)]).toEqual([text, undefined]);
  }
});
