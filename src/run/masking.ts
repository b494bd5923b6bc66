/**
 * What a run knows of secrets: its environment, its command, who it tells, what its user has said.
 * Set before the first line and the first file of it.
 */
import { keyOf } from "../core/environment-entries.ts";
import type { RunOptions } from "../core/run-options.ts";
import { isUrlKind, storableSink } from "../core/sink.ts";
import { isSecretVariable } from "../core/masking.ts";
import type { Inheritance } from "../os/inheritance.ts";
import { setMask } from "../os/mask.ts";

export interface MaskedRun {
  readonly options: Pick<RunOptions, "sinks" | "masks">;
  readonly argv: readonly Uint8Array[];
  readonly inherited: Pick<Inheritance, "environment">;
  readonly program?: { readonly secrets: readonly string[] };
}

export function maskRun({ options, argv, inherited, program }: MaskedRun): void {
  setMask({
    environment: [...inherited.environment.flatMap(readEntry), ...(program?.secrets ?? [])],
    command: argv.map((word) => Buffer.from(word).toString("utf8")),
    patterns: options.masks,
    values: options.sinks.flatMap(targetOf),
  });
}

/** Only what may hold one: the whole environment need not become text at each start. */
function readEntry(entry: Uint8Array): readonly string[] {
  const isAsked = isSecretVariable(keyOf(entry)) || holdsUserInfo(entry);
  return isAsked ? [Buffer.from(entry).toString("utf8")] : [];
}

function holdsUserInfo(entry: Uint8Array): boolean {
  const bytes = Buffer.from(entry.buffer, entry.byteOffset, entry.byteLength);
  const scheme = bytes.indexOf("://");
  return scheme >= 0 && bytes.indexOf("@", scheme) >= 0;
}

/** An address with something in it that is not to be seen. */
function targetOf(spec: RunOptions["sinks"][number]): readonly string[] {
  const { source, kind } = spec;
  if (source.kind !== "literal" || !isUrlKind(kind)) return [];
  return storableSink(spec, asItIs).source.kind === "hidden" ? [source.text] : [];
}

function asItIs(text: string): string {
  return text;
}
