/** What in the environment of a run would have Bun speak about its probes. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { CommandProbes } from "../../src/run/dependencies/command-probe.ts";
import { readInheritance } from "../../src/os/inheritance.ts";
import { Probing } from "../../src/run/dependencies/probing.ts";

const NAME = "NODE_TLS_REJECT_UNAUTHORIZED";
let before: string | undefined;
beforeEach(() => {
  before = process.env[NAME];
});
afterEach(() => {
  if (before === undefined) delete process.env[NAME];
  else process.env[NAME] = before;
});

test("a run that probes says nothing of a check that its environment would turn off", () => {
  process.env[NAME] = "0";
  const commands = new CommandProbes({ inherited: readInheritance(), environment: () => [] });
  const probing = new Probing({ workerUrl: new URL("file:///no-worker"), commands });
  // With it Bun 1.4.5 warns on the standard error of the run at the first handshake.
  expect(process.env[NAME]).toBeUndefined();
  probing.close();
});
