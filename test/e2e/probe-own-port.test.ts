/**
 * A port that nobody listens at, and that the kernel gives to whoever connects to it: the
 * connection would stand, with itself at the other end. Tried in a network that has no other port.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { PYTHON } from "../support/outside.ts";
import { FIXTURES, RELEASE } from "../support/scene.ts";

const PORT = "41000";
const OWN_NETWORK = ["unshare", "--map-root-user", "--net", PYTHON];
const GIVES_ONE_PORT = [...OWN_NETWORK, join(FIXTURES, "gives-one-port.py"), PORT];
const CONNECTS_TO_ITSELF = `import socket; print(socket.create_connection(("127.0.0.1", ${PORT})))`;

function within(words: readonly string[]): string {
  const done = Bun.spawnSync([...GIVES_ONE_PORT, ...words], { stderr: "inherit" });
  return done.stdout.toString();
}

/** @returns why it is not good, and what is left of connections afterwards */
function probe(target: string): readonly [because: string, left: string] {
  const ask = '"$0" probe --json "$1"; echo --; tail -qn +2 /proc/net/tcp /proc/net/tcp6';
  const said = within(["sh", "-c", ask, RELEASE, target]);
  const [answer = "", left = ""] = said.split("\n--\n");
  return [JSON.parse(answer).probes[0].because, left.trim()];
}

describe("a port that nobody listens at", () => {
  test("negative twin: takes a connection, where it is the one that whoever connects has", () => {
    const self = `laddr=('127.0.0.1', ${PORT}), raddr=('127.0.0.1', ${PORT})`;
    expect(within([PYTHON, "-c", CONNECTS_TO_ITSELF])).toContain(self);
  });

  test.each([
    `tcp://127.0.0.1:${PORT}`,
    `tcp://[::1]:${PORT}`,
    `tcp://0.0.0.0:${PORT}`,
    `http://127.0.0.1:${PORT}/`,
    `https://127.0.0.1:${PORT}/`,
  ])("is refused, and free for whoever wants to listen: %s", (target) => {
    expect(probe(target)).toEqual(["refused", ""]);
  });
});
