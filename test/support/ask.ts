/** Asking the binary about runs: `watchdog status`, `history`, `logs`, `lease`, `stop`. */
import { type Ended, RELEASE, type RunOptions, type Scene } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

/** Whatever was answered: each test judges the fields that it names. */
type Parsed = ReturnType<typeof JSON.parse>;

/** `watchdog WORDS…`, to its end. */
export function ask(
  scene: Scene,
  words: readonly string[],
  options: RunOptions = {},
): Promise<Ended> {
  return scene.startProgram([options.binary ?? RELEASE, ...words], options).ended;
}

/** The same, answered with 0 and nothing on stderr: the lines of the answer. */
export async function askLines(scene: Scene, words: readonly string[]): Promise<string[]> {
  const { status, stdout, stderr } = await ask(scene, words);
  if (status !== 0 || stderr !== "") throw new Error(`${words.join(" ")}: ${status} ${stderr}`);
  return stdout.toString().trimEnd().split("\n");
}

export async function askJson(scene: Scene, words: readonly string[]): Promise<Parsed> {
  return JSON.parse((await askLines(scene, [...words, "--json"])).join("\n"));
}

/** The lease of a job once a run of it holds it and its command runs. */
export async function waitForHolder(scene: Scene, job: string): Promise<Parsed> {
  return waitFor(async () => {
    const lease = await askJson(scene, ["lease", "show", `job:${job}`]);
    return lease.verdict === "held" && lease.children?.length > 0 && lease;
  }, `a holder of job:${job} with its command`);
}

/** The row of a run in the journal, once there is one of this state. */
export async function waitForRow(scene: Scene, job: string, state: string): Promise<Parsed> {
  return waitFor(async () => {
    const { runs } = await askJson(scene, ["history", job]);
    return runs[0]?.state === state && runs[0];
  }, `a row of ${job} that says ${state}`);
}

/** @param asks  `lease show` by whoever may, until the owner's slot names the command */
export async function waitForSlot(
  scene: Scene,
  asks: readonly string[],
  options: RunOptions,
): Promise<void> {
  await waitFor(async () => {
    const { stdout } = await scene.startProgram([...asks, "--json"], options).ended;
    return JSON.parse(stdout.toString()).children?.length > 0;
  }, "a slot that names the command");
}
