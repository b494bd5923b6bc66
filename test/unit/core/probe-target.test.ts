/** Addresses and commands of probes: their parts, what is refused, and what is shown of them. */
import { describe, expect, test } from "bun:test";
import {
  hideTargetSecrets,
  isProbeName,
  parseProbeArgument,
  parseProbeTarget,
  renderTarget,
} from "../../../src/core/probe-target.ts";
import type { ProbeTarget, TargetRefusal } from "../../../src/core/probe-target.ts";

function targetOf(text: string): ProbeTarget {
  const parsing = parseProbeTarget(text);
  if (parsing.kind === "refused") throw new Error(parsing.because);
  return parsing.target;
}

describe("a target", () => {
  test("of HTTP has its parts, a default port and no credentials in its url", () => {
    expect(targetOf("http://db.example/health?deep=1")).toEqual({
      kind: "http",
      url: "http://db.example/health?deep=1",
      host: "db.example",
      port: 80,
      path: "/health?deep=1",
      userInfo: undefined,
    });
    expect(targetOf("HTTPS://me:p%40ss@Db.example:8443")).toEqual({
      kind: "https",
      url: "https://db.example:8443/",
      host: "db.example",
      port: 8443,
      path: "/",
      userInfo: "me:p@ss",
    });
    expect(targetOf("https://x/")).toMatchObject({ port: 443 });
    expect(targetOf("http://me@x/")).toMatchObject({ userInfo: "me:", url: "http://x/" });
  });

  test("of IPv6 stands in brackets, and its host without", () => {
    const expected = { host: "::1", port: 8080, url: "http://[::1]:8080/" };
    expect(targetOf("http://[::1]:8080/")).toMatchObject(expected);
    expect(targetOf("tcp://[::1]:5432")).toEqual({ kind: "tcp", host: "::1", port: 5432 });
  });

  test("of TCP has a host and a port", () => {
    expect(targetOf("tcp://localhost:1")).toEqual({ kind: "tcp", host: "localhost", port: 1 });
    expect(targetOf("tcp://127.0.0.1:65535/")).toMatchObject({ host: "127.0.0.1", port: 65_535 });
  });

  test("of a unix socket has the path of the socket and that of the request", () => {
    const socketPath = "/run/app.sock";
    expect(targetOf("unix:/run/app.sock")).toEqual({ kind: "unix", socketPath, path: "/" });
    expect(targetOf("unix:///run/app.sock")).toEqual({ kind: "unix", socketPath, path: "/" });
    const path = "/health?a=b:/c";
    expect(targetOf(`unix:/run/app.sock:${path}`)).toEqual({ kind: "unix", socketPath, path });
    expect(targetOf("unix:/run/a b:c.sock")).toMatchObject({ socketPath: "/run/a b:c.sock" });
  });

  test("of a command is everything behind the colon", () => {
    expect(targetOf("cmd:A=1 x 'b:c' #d")).toEqual({ kind: "cmd", command: "A=1 x 'b:c' #d" });
  });

  test.each<[string, TargetRefusal]>([
    ["", "no-scheme"],
    ["localhost:8080", "no-scheme"],
    ["/run/app.sock", "no-scheme"],
    ["ftp://x/", "unknown-scheme"],
    ["httpx://x/", "unknown-scheme"],
    ["http:x", "not-an-address"],
    ["http:///x", "not-an-address"],
    ["http://", "not-an-address"],
    ["http://a b/", "not-an-address"],
    ["http://a/\n", "not-an-address"],
    ["http://a\\b/", "not-an-address"],
    ["http://[::1/", "not-an-address"],
    ["http://x:99999/", "not-an-address"],
    ["http://%ff@x/", "not-an-address"],
    ["http://x:0/", "not-a-port"],
    ["http://x/#a", "fragment"],
    ["tcp://", "not-an-address"],
    ["tcp:x:1", "not-an-address"],
    ["tcp://me@x:1", "not-an-address"],
    ["tcp://::1:80", "not-an-address"],
    ["tcp://[1:2]:80", "not-an-address"],
    ["tcp://x:1/path", "not-an-address"],
    ["tcp://x", "no-port"],
    ["tcp://x:", "no-port"],
    ["tcp://x:0", "not-a-port"],
    ["tcp://x:65536", "not-a-port"],
    ["tcp://x:http", "not-a-port"],
    ["unix:app.sock", "not-a-socket-path"],
    ["unix:", "not-a-socket-path"],
    ["unix:/", "not-a-socket-path"],
    ["unix:/run/", "not-a-socket-path"],
    ["unix:/a\0b", "not-a-socket-path"],
    [`unix:/${"x".repeat(107)}`, "not-a-socket-path"],
    [`unix:/${"ü".repeat(54)}`, "not-a-socket-path"],
    ["unix:/a:/b#c", "fragment"],
    ["unix:/a:/b c", "not-an-address"],
    ["cmd:", "no-command"],
    ["cmd: \t", "no-command"],
    ["cmd:a\0b", "no-command"],
  ])("is refused where it is none: %j", (text, because) => {
    expect(parseProbeTarget(text)).toMatchObject({ kind: "refused", because });
  });

  test("of a socket may be as long as the kernel takes it", () => {
    expect(targetOf(`unix:/${"x".repeat(106)}`).kind).toBe("unix");
  });

  test("is refused in words that hold no secret and no end of a long text", () => {
    const found = (text: string): string => {
      const parsing = parseProbeTarget(text);
      return parsing.kind === "refused" ? parsing.found : "accepted";
    };
    expect(found("ftp://me:secret@x/")).toBe('"ftp://***@x/"');
    expect(found("http://me:se/cr@et@x y/?token=1")).toBe('"http://***@x y/?***"');
    expect(found("me:secret@x")).toBe('"***@x"');
    expect(found(`ftp://${"x".repeat(500)}`)).toHaveLength(80 + 3);
  });
});

test("what is shown of any text has neither a query nor what may be credentials", () => {
  expect(hideTargetSecrets("http://x/health")).toBe("http://x/health");
  expect(hideTargetSecrets("api=http://me:secret@x/?secret")).toBe("api=http://***@x/?***");
  expect(hideTargetSecrets("unix:/x.sock:/h?secret")).toBe("unix:/x.sock:/h?***");
  expect(hideTargetSecrets("a=b:secret@x")).toBe("a=***@x");
  expect(hideTargetSecrets("plain")).toBe("plain");
});

test("a probe has a name without colons, blanks and equals signs", () => {
  const names = ["db", "a.b-c_d", "1", "x".repeat(64)];
  expect(names.filter((name) => !isProbeName(name))).toEqual([]);
  const others = ["", "a b", "a:b", "a=b", "=", ".a", "-a", "x".repeat(65), "a/b", "a\n"];
  expect(others.filter(isProbeName)).toEqual([]);
});

describe("the argument of --probe", () => {
  test("may begin with a name", () => {
    expect(parseProbeArgument("api=http://x/?a=b")).toMatchObject({
      kind: "probe",
      name: "api",
      target: { url: "http://x/?a=b" },
    });
    expect(parseProbeArgument("a.b-c_1=cmd:A=1 x")).toMatchObject({ name: "a.b-c_1" });
  });

  test.each(["http://x/?a=b", "cmd:A=1 x", "unix:/a=b", "tcp://x:1"])(
    "has no name where the = belongs to the target: %s",
    (text) => {
      expect(parseProbeArgument(text)).toMatchObject({ kind: "probe", name: undefined });
    },
  );

  test("is refused with what is wrong in its target", () => {
    const [noScheme, unknown] = ["=http://x/", "api=ftp://x/"].map(parseProbeArgument);
    expect(noScheme).toMatchObject({ kind: "refused", because: "no-scheme" });
    expect(unknown).toMatchObject({ because: "unknown-scheme", found: '"ftp://x/"' });
  });
});

describe("what is shown of a target", () => {
  test.each([
    ["https://me:secret@x:8443/health?token=1", "https://x:8443/health"],
    ["http://x:80", "http://x/"],
    ["tcp://[::1]:80", "tcp://[::1]:80"],
    ["tcp://x:80/", "tcp://x:80"],
    ["unix:/run/a.sock", "unix:/run/a.sock"],
    ["unix:/run/a.sock:/b?token=1", "unix:/run/a.sock:/b"],
    ["cmd: TOKEN=1 A= curl -u me:secret x", "cmd:curl"],
    ["cmd:A=1", "cmd:"],
  ])("holds neither credentials nor a query: %s", (text, shown) => {
    expect(renderTarget(targetOf(text))).toBe(shown);
  });
});
