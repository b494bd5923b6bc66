/**
 * Reads the target of a sink from where it stands: a word, the first line of a file, a variable.
 * Read anew for each delivery, so that a changed secret holds. Tells nothing of what it has read.
 */
import type { SentReason } from "../core/delivery.ts";
import type { ResolvedSink, SinkSpec } from "../core/sink.ts";
import { readGivenFile } from "../os/given-file.ts";

export type Resolved =
  | ({ readonly kind: "resolved" } & ResolvedSink)
  /** `hidden`: somebody else has it, under the same id. */
  | { readonly kind: "hidden" }
  | { readonly kind: "unresolved"; readonly because: SentReason; readonly detail: string };

export function resolveSink(
  spec: SinkSpec,
  variables: Readonly<Record<string, string | undefined>>,
): Resolved {
  const { source } = spec;
  switch (source.kind) {
    case "literal":
      return { kind: "resolved", spec, target: source.text };
    case "variable": {
      const value = variables[source.name]?.trim() ?? "";
      if (value !== "") return { kind: "resolved", spec, target: value };
      return unresolved(`${source.name} is not set`);
    }
    case "file": {
      const file = readGivenFile(source.path);
      if (file.kind === "refused") return unresolved(file.found);
      const [line = ""] = file.text.split(/\r?\n/, 1);
      if (line.trim() !== "") return { kind: "resolved", spec, target: line.trim() };
      return unresolved(`${source.path} has no first line`);
    }
    case "hidden":
      return { kind: "hidden" };
  }
}

function unresolved(detail: string): Resolved {
  return { kind: "unresolved", because: "no-target", detail };
}
