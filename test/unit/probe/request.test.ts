/** The bytes of a request, and what cannot be made one. */
import { describe, expect, test } from "bun:test";
import { DEFAULT_HTTP, type HttpDetails } from "../../../src/core/probe-settings.ts";
import {
  renderAuthorization,
  renderBasic,
  renderRequest,
  type RequestTarget,
} from "../../../src/probe/request.ts";

function render(http: Partial<HttpDetails> = {}, target: Partial<RequestTarget> = {}): string {
  const rendered = renderRequest(
    { host: "a.test:81", path: "/x?y=1", authorization: undefined, ...target },
    { ...DEFAULT_HTTP, ...http },
  );
  return rendered.kind === "request" ? rendered.bytes.toString("utf8") : `! ${rendered.found}`;
}

describe("a request", () => {
  test("wants one answer, as it is, on a connection of its own", () => {
    expect(render()).toBe(
      "GET /x?y=1 HTTP/1.1\r\nHost: a.test:81\r\nUser-Agent: watchdog\r\nAccept: */*\r\n" +
        "Accept-Encoding: identity\r\nConnection: close\r\n\r\n",
    );
  });

  test("has a body as long as it says, in bytes", () => {
    const text = render({ method: "POST", body: "ä" });
    expect(text).toStartWith("POST /x?y=1 HTTP/1.1\r\n");
    expect(text).toEndWith("\r\nContent-Length: 2\r\n\r\nä");
    expect(render({ method: "POST", body: "" })).toContain("\r\nContent-Length: 0\r\n");
  });

  test("has given headers in place of its own", () => {
    const headers = [
      { name: "host", value: "b.test" },
      { name: "X-A", value: "1" },
      { name: "X-A", value: "2" },
    ];
    const text = render({ headers });
    expect(text).not.toContain("a.test");
    expect(text).toContain("\r\nhost: b.test\r\nX-A: 1\r\nX-A: 2\r\n");
  });

  test("has the credentials, unless a header is given", () => {
    expect(render({}, { authorization: "Bearer t" })).toContain("\r\nAuthorization: Bearer t\r\n");
    const headers = [{ name: "authorization", value: "Own x" }];
    const text = render({ headers }, { authorization: "Bearer t" });
    expect(text).toContain("\r\nauthorization: Own x\r\n");
    expect(text).not.toContain("Bearer");
  });
});

describe("what would break out of its line is refused:", () => {
  test.each([
    ["a header's value", () => render({ headers: [{ name: "A", value: "x\r\nB: y" }] })],
    ["a header's name", () => render({ headers: [{ name: "A: x\r\nB", value: "y" }] })],
    ["the method", () => render({ method: "GET / HTTP/1.1\r\nA:" })],
    ["the path", () => render({}, { path: "/ HTTP/1.1\r\nA: b" })],
    ["the credentials", () => render({}, { authorization: "Basic x\r\nA: b" })],
    ["a length of one's own", () => render({ headers: [{ name: "content-length", value: "9" }] })],
    ["a connection that is kept", () => render({ headers: [{ name: "Connection", value: "x" }] })],
  ])("%s", (_, act) => {
    expect(act()).toStartWith("! ");
  });

  test("and is not quoted where it is a secret", () => {
    expect(render({}, { authorization: "Basic c2VjcmV0\n" })).not.toContain("c2VjcmV0");
  });
});

test("credentials are a name and a password, or a value that is ready", () => {
  expect(renderBasic("a:b c")).toBe("Basic YTpiIGM=");
  expect(renderAuthorization("a:b c\n")).toBe("Basic YTpiIGM=");
  expect(renderAuthorization("Bearer t0ken==\r\n")).toBe("Bearer t0ken==");
});
