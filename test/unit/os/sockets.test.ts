/** Addresses as the kernel has them (ip(7), ipv6(7), unix(7)). */
import { describe, expect, test } from "bun:test";
import { addressOf, addressOfPath } from "../../../src/os/sockets.ts";

const hex = (bytes: Uint8Array | undefined): string | undefined => bytes?.toHex();

describe("an address of IPv4", () => {
  test("is its family, its port and four bytes", () => {
    expect(hex(addressOf("127.0.0.1", 80)?.bytes)).toBe("020000507f0000010000000000000000");
    expect(hex(addressOf("255.254.1.0", 65_535)?.bytes)).toBe("0200fffffffe01000000000000000000");
  });
});

describe("an address of IPv6", () => {
  const words = (host: string): string | undefined =>
    hex(addressOf(host, 443)?.bytes.subarray(8, 24));

  test("is its family, its port, and sixteen bytes between flow and scope", () => {
    const loopback = "00000000000000000000000000000001";
    expect(hex(addressOf("::1", 443)?.bytes)).toBe(`0a0001bb00000000${loopback}00000000`);
  });

  test.each([
    ["::", "00000000000000000000000000000000"],
    ["2001:db8::1", "20010db8000000000000000000000001"],
    ["2001:DB8:0:0:8:800:200C:417A", "20010db80000000000080800200c417a"],
    ["fe80::", "fe800000000000000000000000000000"],
    ["1:2:3:4:5:6:7::", "00010002000300040005000600070000"],
    ["::2:3:4:5:6:7:8", "00000002000300040005000600070008"],
    ["::ffff:192.0.2.33", "00000000000000000000ffffc0000221"],
    ["64:ff9b::192.0.2.33", "0064ff9b0000000000000000c0000221"],
    ["1:2:3:4:5:6:1.2.3.4", "00010002000300040005000601020304"],
  ])("%s is written out", (host, expected) => {
    expect(words(host)).toBe(expected);
  });
});

test.each(["", "localhost", "1.2.3", "1.2.3.4.5", "256.0.0.1", "::g", "[::1]", "fe80::1%lo"])(
  "%j is none that can be written so",
  (host) => {
    expect(addressOf(host, 1)).toBeUndefined();
  },
);

test("the same host on another port, and another host, are not the one before", () => {
  const all = ["127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.1"].map((host, index) =>
    hex(addressOf(host, [80, 81, 81, 80][index] ?? 0)?.bytes.subarray(2, 8)),
  );
  expect(all).toEqual(["00507f000001", "00517f000001", "00517f000002", "00507f000001"]);
});

test("a path is its bytes and a zero", () => {
  expect(hex(addressOfPath("/a/ü").bytes)).toBe("01002f612fc3bc00");
  expect(addressOfPath(`/${"x".repeat(106)}`).bytes).toHaveLength(110);
});
