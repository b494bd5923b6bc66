/** The policy asked for ourselves and a real directory. */
import { afterAll, expect, test } from "bun:test";
import { chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WatchdogError } from "../../src/core/errors.ts";
import type { PolicyFile } from "../../src/core/policy.ts";
import { askRight, requireRight } from "../../src/os/rights.ts";
import { rootTest } from "../support/scene.ts";

const root = mkdtempSync(join(tmpdir(), "watchdog-rights-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const OWN_UID = process.geteuid?.() ?? 0;
const STRANGER = 54_394;

function file(uid: number): PolicyFile {
  const lists = { run: [{ kind: "uid" as const, uid }] };
  return { path: "/etc/watchdog/config.toml", ownerUid: 0, isChosen: false, lists };
}

test("the owner of the directory may repair and approve, and is asked by it", () => {
  const state = `${root}/own`;
  mkdirSync(state);
  expect(askRight("approve", state, [])).toMatchObject({ because: "no-list-and-owner" });
  expect(askRight("repair", `${root}/nowhere`, [])).toMatchObject({ because: "no-list-and-owner" });
});

rootTest("root may in somebody else's", () => {
  const state = `${root}/foreign`;
  mkdirSync(state);
  chownSync(state, STRANGER, STRANGER);
  expect(askRight("repair", state, [])).toMatchObject({ because: "no-list-and-root" });
});

test("a right that is missing is told with 77 and with who can grant it", () => {
  requireRight("run", root, [file(OWN_UID)]);
  let thrown: unknown;
  try {
    requireRight("run", root, [file(STRANGER)]);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(WatchdogError);
  if (!(thrown instanceof WatchdogError)) return;
  expect([thrown.code, thrown.exitStatus]).toEqual(["rights.missing", 77]);
  expect(thrown.message).toMatch(
    /^right 'run' is missing: .*\(?uid \d+\)? is not in 'run' of \[policy\] in \/etc\/watchdog\//,
  );
  expect(thrown.message).toEndWith("; root can add 'uid:N', a user or '@group' there");
});
