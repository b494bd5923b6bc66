/**
 * Builds `dist/watchdog` (what ships) and `dist/watchdog-faults` (the same sources with the fault
 * hooks in), and puts them in place only when both have passed the smoke tests.
 *
 * Refuses to know what the program does: that is `src/` and, from outside, `test/support/smoke.ts`.
 * Always holds: `dist/` shows the old binaries or the new ones, each complete (built beside, then
 * renamed); Bun's own variables are disarmed in every binary that gets there; the release holds no
 * fault hook.
 *
 * Workers. Every entry point is embedded under its path below the common root of the entry points
 * (`src`), with `.js`, but code of `main.ts` and of every shared piece lies flat in that root.
 * Measured with bytecode, esm and splitting, with the source tree moved away: `new
 * Worker("./output/copy-worker.ts")` and `new URL("./output/copy-worker.ts", import.meta.url)` work
 * from every module; `new URL("./copy-worker.ts", import.meta.url)` in `src/output/` does not (it
 * names a file in the root), nor does a path that starts with `./src/`. The working directory plays
 * no part: a file `output/copy-worker.ts` that lies there is not loaded.
 */
import { createConsola } from "consola";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { runSmokeCases, SMOKE_CASES } from "./test/support/smoke.ts";

const ROOT = import.meta.dir;
const DIST = join(ROOT, "dist");
/**
 * Followed by the pid of the build: where new binaries are made and tested, on the same file
 * system.
 */
const BESIDE_PREFIX = ".building-";
const ENTRY_POINTS = [
  "src/main.ts",
  "src/output/copy-worker.ts",
  "src/output/log-worker.ts",
  "src/output/match-worker.ts",
  "src/lease/beat/beat-worker.ts",
  "src/lease/claim/wait-worker.ts",
  "src/tree/scan-worker.ts",
  "src/probe/probe-worker.ts",
  "src/job/artifact-worker.ts",
];

/**
 * Environment variables by which Bun takes over any compiled binary: `BUN_OPTIONS=--version` prints
 * Bun's version and the wrapped command never runs. `BUN_INSPECT` is also the beginning of
 * BUN_INSPECT_CONNECT_TO, _NOTIFY and _PRELOAD, which go with it.
 */
const BUN_VARIABLES = ["BUN_OPTIONS", "BUN_BE_BUN", "BUN_INSPECT", "BUN_FEATURE_FLAG_NO_ORPHANS"];

/** Strings of the fault hooks; `test/house/release-binary.test.ts` searches for the same. */
const FAULT_MARKERS = ["WATCHDOG_FAULT", "fault injected at"];

interface Flavour {
  readonly name: string;
  readonly hasFaults: boolean;
}

const FLAVOURS: readonly Flavour[] = [
  { name: "watchdog", hasFaults: false },
  { name: "watchdog-faults", hasFaults: true },
];

interface Stamp {
  readonly version: string;
  readonly commit: string;
}

const out = createConsola({ formatOptions: { date: false } });

async function build(): Promise<void> {
  const stamp = readStamp();
  out.info(`watchdog ${stamp.version} (${stamp.commit})`);
  mkdirSync(DIST, { recursive: true });
  removeAbandoned();
  const beside = join(DIST, `${BESIDE_PREFIX}${process.pid}`);
  mkdirSync(beside);
  try {
    for (const flavour of FLAVOURS) {
      const binary = await compile(flavour, stamp, beside);
      finish(binary, flavour);
      smokeTest(binary, flavour);
    }
    const hash = writeChecksum(beside);
    putInPlace(beside);
    out.success(`dist/watchdog and dist/watchdog-faults are in place (sha256 ${hash})`);
  } finally {
    rmSync(beside, { recursive: true, force: true });
  }
}

/** A build that was killed leaves its directory; one that still runs is left alone. */
function removeAbandoned(): void {
  for (const name of readdirSync(DIST)) {
    if (!name.startsWith(BESIDE_PREFIX)) continue;
    const pid = name.slice(BESIDE_PREFIX.length);
    if (existsSync(`/proc/${pid}`) && pid !== String(process.pid)) continue;
    rmSync(join(DIST, name), { recursive: true, force: true });
  }
}

/** The version of package.json, and the commit as far as there is one. */
function readStamp(): Stamp {
  const described: unknown = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const version = (described as { version?: unknown }).version;
  if (typeof version !== "string") throw new Error("package.json: found no version");
  return { version, commit: readCommit() };
}

/**
 * Twelve hex digits, with `-dirty` if a tracked or new file differs; `unknown` without git or
 * without a commit.
 */
function readCommit(): string {
  if (Bun.which("git") === null) return "unknown";
  const head = Bun.spawnSync(["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"], {
    stderr: "ignore",
  });
  if (head.exitCode !== 0) return "unknown";
  const status = Bun.spawnSync(["git", "-C", ROOT, "status", "--porcelain"], { stderr: "ignore" });
  const isClean = status.exitCode === 0 && status.stdout.length === 0;
  return head.stdout.toString().trim() + (isClean ? "" : "-dirty");
}

/**
 * Compiles one binary into `beside`. The file's name is embedded in it, so it has its final name
 * already.
 */
async function compile(flavour: Flavour, stamp: Stamp, beside: string): Promise<string> {
  const binary = join(beside, flavour.name);
  const result = await Bun.build({
    entrypoints: ENTRY_POINTS.map((path) => join(ROOT, path)),
    root: join(ROOT, "src"),
    // Without these two, the binary would load `.env` and run the `preload` of the user's working
    // directory.
    compile: { outfile: binary, autoloadDotenv: false, autoloadBunfig: false },
    minify: true,
    bytecode: true,
    // Bytecode with any other format bakes the path of this machine's sources into
    // `import.meta.url`.
    format: "esm",
    splitting: true,
    throw: false,
    define: {
      FAULT_BUILD: String(flavour.hasFaults),
      WATCHDOG_VERSION: JSON.stringify(stamp.version),
      WATCHDOG_COMMIT: JSON.stringify(stamp.commit),
    },
  });
  for (const { message, position } of result.logs) {
    out.error(position === null ? message : `${position.file}:${position.line}: ${message}`);
  }
  if (!result.success) throw new Error(`${flavour.name}: does not compile`);
  return binary;
}

/**
 * Disarms Bun's variables and checks that the fault hooks are where they belong and nowhere else.
 */
function finish(binary: string, flavour: Flavour): void {
  const bytes = readFileSync(binary);
  const counts = BUN_VARIABLES.map((name) => `${name} ${disarm(bytes, name)}x`);
  checkFaultMarkers(bytes, flavour);
  writeFileSync(binary, bytes);
  chmodSync(binary, 0o755);
  out.info(`${flavour.name}: disarmed ${counts.join(", ")}`);
}

/**
 * Renames every occurrence of a variable, with or without a NUL behind it. The new name has the
 * same length and is still an identifier for the JavaScript inside Bun, but no shell can export it.
 */
function disarm(bytes: Buffer, name: string): number {
  const replacement = Buffer.from(name.replace("_", "$"), "latin1");
  let count = 0;
  for (let at = bytes.indexOf(name); at !== -1; at = bytes.indexOf(name, at + name.length)) {
    replacement.copy(bytes, at);
    count += 1;
  }
  if (count === 0) {
    throw new Error(`found no ${name} in the binary: this Bun spells it otherwise, look again`);
  }
  return count;
}

/**
 * The fault build must show a marker too: otherwise the search would prove nothing about the
 * release.
 */
function checkFaultMarkers(bytes: Buffer, flavour: Flavour): void {
  const found = FAULT_MARKERS.filter((marker) => bytes.includes(marker));
  if (flavour.hasFaults && found.length < FAULT_MARKERS.length) {
    throw new Error(
      `${flavour.name}: found ${found.length} of the markers ${FAULT_MARKERS.join(", ")}`,
    );
  }
  if (!flavour.hasFaults && found.length > 0) {
    throw new Error(`${flavour.name}: a fault hook is left in the release: ${found.join(", ")}`);
  }
}

function smokeTest(binary: string, flavour: Flavour): void {
  const failures = runSmokeCases(binary);
  for (const failure of failures) out.error(`${failure.title}: found ${failure.found}`);
  if (failures.length > 0) {
    throw new Error(
      `${flavour.name}: ${failures.length} of ${SMOKE_CASES.length} smoke tests failed`,
    );
  }
  out.info(`${flavour.name}: ${SMOKE_CASES.length} smoke tests passed`);
}

/** Writes the line that `sha256sum -c` reads. */
function writeChecksum(beside: string): string {
  const hash = new Bun.CryptoHasher("sha256")
    .update(readFileSync(join(beside, "watchdog")))
    .digest("hex");
  writeFileSync(join(beside, "watchdog.sha256"), `${hash}  watchdog\n`);
  return hash;
}

/** Renames: a running binary goes on with its old file, and nobody ever sees half of a new one. */
function putInPlace(beside: string): void {
  const names = [...FLAVOURS.map((flavour) => flavour.name), "watchdog.sha256"];
  for (const name of names) renameSync(join(beside, name), join(DIST, name));
}

try {
  await build();
} catch (error) {
  out.error(error);
  process.exitCode = 1;
}
