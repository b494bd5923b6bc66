/**
 * The keys of a table `[sinks.NAME]`, their readers, and the sink that a table says.
 *
 * Reads no file.
 */

import type { ConfigKey } from "../core/config-values.ts";
import type { Setting } from "../core/settings.ts";
import {
  makeSink,
  SINK_KINDS,
  type SinkKind,
  type SinkSpec,
  WEBHOOK_SHAPES,
} from "../core/sink.ts";
import {
  EVENTS_FORM,
  hideCommandSecrets,
  hideSinkSecrets,
  parseEvents,
  parseSinkTarget,
} from "../core/sink-words.ts";

export const SHAPE_KEY = "shape";
export const EVENTS_KEY = "events";

const HIDERS: Readonly<Record<SinkKind, (text: string) => string>> = {
  webhook: hideSinkSecrets,
  ping: hideSinkSecrets,
  mail: (text) => text,
  command: hideCommandSecrets,
};

export const SINK_KEYS: ReadonlyMap<string, ConfigKey> = new Map<string, ConfigKey>([
  ...SINK_KINDS.map((kind): [string, ConfigKey] => [kind, targetKey(kind)]),
  [
    SHAPE_KEY,
    {
      kind: "text",
      refusalOf: (text) =>
        isShape(text) ? undefined : { expected: `one of ${WEBHOOK_SHAPES.join(", ")}` },
    },
  ],
  [
    EVENTS_KEY,
    {
      kind: "texts",
      refusalOf: (text) =>
        parseEvents(text) === undefined ? { expected: EVENTS_FORM } : undefined,
    },
  ],
]);

function targetKey(kind: SinkKind): ConfigKey {
  return {
    kind: "text",
    hide: HIDERS[kind],
    refusalOf: (text) => {
      const parsing = parseSinkTarget(kind, text);
      return parsing.kind === "refused" ? { expected: parsing.expected } : undefined;
    },
  };
}

function isShape(text: string): boolean {
  return WEBHOOK_SHAPES.some((shape) => shape === text);
}

/** Undefined: never, of a file that was checked as a whole when it was read. */
export function parseSinkTable(table: ReadonlyMap<string, Setting>): SinkSpec | undefined {
  const kind = SINK_KINDS.find((each) => table.has(each));
  const [target] = (kind === undefined ? undefined : table.get(kind)?.texts) ?? [];
  if (kind === undefined || target === undefined) return undefined;
  const parsing = parseSinkTarget(kind, target);
  if (parsing.kind === "refused") return undefined;
  const [word] = table.get(SHAPE_KEY)?.texts ?? [];
  const shape = WEBHOOK_SHAPES.find((each) => each === word) ?? parsing.words.shape;
  const events = (table.get(EVENTS_KEY)?.texts ?? []).flatMap((text) => parseEvents(text) ?? []);
  return makeSink({ ...parsing.words, shape, events: events.length === 0 ? "default" : events });
}
