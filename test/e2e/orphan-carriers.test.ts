/**
 * Orphans that carry the cookie of a dead run and are not of it: started by somebody who has saved
 * its environment, and left to process 1. The owner, which sees all of its tree, has beaten after
 * their birth and has not listed them: they are told, and never signalled.
 */
import { expect, test } from "bun:test";
import { askJson, waitForHolder } from "../support/ask.ts";
import { readEnvironment, saveEnvironment } from "../support/fencing.ts";
import { identify } from "../support/guarded-scene.ts";
import { isStillThere, killWithGuard } from "../support/killing.ts";
import { waitForText } from "../support/processes.ts";
import { QUICK, repairJson } from "../support/repair-scene.ts";
import { openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;
const LOCKED = 75;
/** At 100 ms each: the span that the last beat leaves open is one second. */
const BEATS = 20;
/** What is left of the run must not keep a pipe open that is waited for. */
const SILENT = { stdout: "ignore", stderr: "ignore" } as const;

async function startRun(name: string) {
  const saved = scene.path(`${name}.env`);
  const script = `${saveEnvironment(saved)}; exec sleep 94310`;
  const words = ["--name", name, "--log", "off", ...QUICK, "--", "sh", "-c", script];
  const run = scene.start(words, SILENT);
  await waitForHolder(scene, name);
  await readEnvironment(saved);
  return { run, saved };
}

/** Of the run's variables, a child of nobody who lives. */
async function startCarrier(name: string, saved: string) {
  const file = scene.path(`${name}.pid`);
  const words = 'env -i $(tr "\\0" "\\n" <"$0") setsid sh -c "echo \\$\\$ >$1; exec sleep 94311"';
  scene.startProgram(["sh", "-c", `${words} & exit`, saved, file], SILENT);
  return identify(Number(await waitForText(file)));
}

async function beatsOf(name: string): Promise<number> {
  return (await askJson(scene, ["lease", "show", `job:${name}`])).heartbeat_seq as number;
}

test(
  "an orphan that the last beats have not listed is told to newcomer and repair, and lives",
  async () => {
    const { run, saved } = await startRun("listed");
    const carrier = await startCarrier("listed", saved);
    const first = await beatsOf("listed");
    await waitFor(async () => (await beatsOf("listed")) >= first + BEATS, "beats after its birth");
    await killWithGuard(run);
    const next = await scene.run(["--name", "listed", "--", "echo", "ok"]);
    expect([next.status, next.stdout.toString()]).toEqual([LOCKED, ""]);
    expect(next.stderr).toContain(`${carrier.pid} sleep 94311`);
    const [lease] = (await repairJson(scene, ["job:listed", "--apply"])).leases;
    expect(lease).toMatchObject({ verdict: "orphaned", because: "suspects" });
    expect(isStillThere(carrier)).toBe(true);
    // The twin: it was the carrier alone that kept the key.
    process.kill(carrier.pid, "SIGKILL");
    await waitFor(() => !isStillThere(carrier), "its end");
    const last = await scene.run(["--name", "listed", "--", "echo", "ok"]);
    expect([last.status, last.stdout.toString()]).toEqual([0, "ok\n"]);
  },
  LIMIT_MS,
);
