/** `job status` on a terminal: a bar in the answer, and with --watch a picture that grows. */

import { existsSync, writeFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { openScene, RELEASE } from "../support/scene.ts";
import { inState } from "../support/own-state.ts";
import { openTerminal } from "../support/terminal.ts";
import { waitFor } from "../support/wait-for.ts";

const LIMIT_MS = 120_000;
const XTERM = { env: { TERM: "xterm" } };

const scene = openScene(import.meta.file);

test(
  "a bar grows with the steps that are done, and the terminal is as it was at the end",
  async () => {
    const own = inState(scene, "watched");
    const [file, go] = [scene.path("watched.yaml"), scene.path("go")];
    const wait = `until [ -e ${go} ]; do sleep 0.05; done`;
    writeFileSync(
      file,
      "name: watched\nsteps:\n  one: { command: 'true', side_effects: none }\n" +
        `  two: { command: "touch begun; ${wait}", side_effects: none, needs: [one] }\n`,
    );
    const at = ["--state-dir", own.stateDirectory, file];
    const job = scene.startProgram([RELEASE, "job", "run", ...at]);
    await waitFor(() => existsSync(scene.path("begun")), "the second step");
    const watch = openTerminal(scene, [RELEASE, "job", "status", "--watch", ...at], XTERM);
    await watch.see(/watchdog job watched {2}running/);
    await watch.see(/\[#+-+\][^]*1 of 2 done, 1 running[^]*two +running/);
    const once = openTerminal(scene, [RELEASE, "job", "status", ...at], XTERM);
    await once.see(/steps {2}\[#+-+\] {2}1 of 2 done, 1 running/);
    expect(await once.ended).toBe(0);
    writeFileSync(go, "");
    expect((await job.ended).status).toBe(0);
    await watch.see(/watchdog job watched {2}done[^]*\[#+\][^]*2 of 2 done/);
    watch.type("q");
    expect(await watch.ended).toBe(0);
    expect(watch.screen).toEndWith("\u001b[?25h\u001b[?1049l");
  },
  LIMIT_MS,
);

test(
  "without a terminal --watch is refused, and the answer has no bar",
  async () => {
    const own = inState(scene, "plain");
    const file = scene.path("plain.yaml");
    writeFileSync(file, "name: plain\nsteps:\n  one: { command: ':', side_effects: none }\n");
    const at = ["--state-dir", own.stateDirectory, file];
    const ask = (...words: string[]) =>
      scene.startProgram(["setsid", RELEASE, ...words, ...at]).ended;
    expect((await ask("job", "run")).status).toBe(0);
    const watched = await ask("job", "status", "--watch");
    expect(watched.status).toBe(64);
    expect(watched.stderr).toStartWith("watchdog: error: job status --watch draws on a terminal");
    expect(watched.stderr).toMatch(/hint: watchdog job status .*plain\.yaml\n$/);
    const { stdout } = await ask("job", "status");
    expect(stdout.toString()).toContain("steps  1 of 1 done\n");
  },
  LIMIT_MS,
);
