/**
 * Ordinary users without an entry in any database, by setpriv(1): only root can become one, so only
 * `rootTest` uses this. Their numbers are the caller's to choose, each file its own.
 */
import { expect } from "bun:test";
import { runShell } from "./outside.ts";
import type { Scene } from "./scene.ts";

const copies = new Map<Scene, Promise<string>>();

/** A copy of the binary that everybody may execute; one for each scene, and whole. */
export function shareBinary(scene: Scene): Promise<string> {
  const known = copies.get(scene) ?? copyBinary(scene);
  copies.set(scene, known);
  return known;
}

async function copyBinary(scene: Scene): Promise<string> {
  const script = `chmod 711 "$D" && mkdir "$D/shared" && cp "$W" "$D/shared/watchdog" &&
    chmod -R a+rX "$D/shared"`;
  expect((await runShell(scene, script, { env: { D: scene.directory } })).status).toBe(0);
  return `${scene.path("shared")}/watchdog`;
}

/** The words that make a program one of this user's. */
export function asUser(uid: number, groups: readonly number[] = []): string[] {
  const supplementary = groups.length === 0 ? "--clear-groups" : `--groups=${groups.join(",")}`;
  return ["setpriv", `--reuid=${uid}`, `--regid=${uid}`, supplementary];
}
