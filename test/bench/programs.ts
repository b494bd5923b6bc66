/**
 * The programs that are compared: compiles the two that are not installed, with the flags of the
 * real build.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dir, "..", "..");
export const WATCHDOG = join(ROOT, "dist", "watchdog");
export const FAULT_BINARY = join(ROOT, "dist", "watchdog-faults");

/** A command line under a name for the table. */
export interface Contestant {
  readonly name: string;
  readonly words: readonly string[];
}

/** Everything else is measured against this one. */
export const BASELINE = "only spawns (posix_spawn)";

async function compile(source: string, binary: string): Promise<string> {
  const result = await Bun.build({
    entrypoints: [source],
    compile: { outfile: binary, autoloadDotenv: false, autoloadBunfig: false },
    minify: true,
    bytecode: true,
    format: "esm",
    splitting: true,
  });
  if (!result.success) throw new AggregateError(result.logs, `${source}: does not compile`);
  return binary;
}

/** The contestants of the start cost, in the order of the table. */
export async function prepareContestants(scratch: string): Promise<Contestant[]> {
  const nothing = join(scratch, "nothing.ts");
  writeFileSync(nothing, "export {};\n");
  const empty = await compile(nothing, join(scratch, "empty"));
  const onlySpawns = await compile(
    join(import.meta.dir, "only-spawns.ts"),
    join(scratch, "only-spawns"),
  );
  const lock = join(scratch, "lock");
  const bounded = ["timeout", "60", "/bin/true"];
  return [
    { name: "/bin/true", words: ["/bin/true"] },
    { name: "timeout", words: bounded },
    { name: "flock + timeout", words: ["flock", "-n", lock, ...bounded] },
    { name: "empty compiled Bun program", words: [empty] },
    { name: BASELINE, words: [onlySpawns, "/bin/true"] },
    {
      name: "watchdog run --log off",
      words: [WATCHDOG, "run", "--log", "off", "--", "/bin/true"],
    },
    { name: "watchdog run --log on", words: [WATCHDOG, "run", "--log", "on", "--", "/bin/true"] },
  ];
}
