/** Lines through the windows and the matcher, without threads; and what they must find, by hand. */
import { compileLinePattern } from "../../src/core/line-pattern.ts";
import { CHUNK_BYTES } from "../../src/output/chunk-ring.ts";
import { LineWindow } from "../../src/output/line-window.ts";
import { MatchState } from "../../src/output/match-state.ts";
import { Matcher } from "../../src/output/matcher.ts";

/** Chunks as a pipe may give them: each of `sizes` in turn, again and again. */
export function cutChunks(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const size = Math.max(1, Math.min(sizes[turn % sizes.length] ?? 1, CHUNK_BYTES));
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

export interface Matched {
  readonly status: string;
  readonly line: string | undefined;
}

export function matchChunks(
  sources: readonly string[],
  chunks: readonly Uint8Array[],
  cpuMs: () => number = () => 0,
): readonly Matched[] {
  const patterns = sources.map((source) => {
    const pattern = compileLinePattern(source);
    if (pattern === undefined) throw new Error(`no expression: ${source}`);
    return pattern;
  });
  const state = new MatchState(patterns.length);
  const lines = new Map<number, string>();
  const matcher = new Matcher({
    patterns,
    state,
    cpuMs,
    onFound: ({ pattern, line }) => lines.set(pattern, line),
  });
  const window = new LineWindow();
  for (const chunk of chunks) {
    if (!window.hasRoomFor(chunk.length)) throw new Error("no room for a chunk");
    window.append(chunk);
    matcher.look(window, false);
  }
  matcher.look(window, true);
  if (window.fill !== 0) throw new Error(`${window.fill} bytes were not looked at`);
  return sources.map((_, index) => ({ status: state.statusOf(index), line: lines.get(index) }));
}

/** The first line in which it is found, by the plainest means. */
export function findByHand(source: string, bytes: Uint8Array): string | undefined {
  const text = Buffer.from(bytes).toString("utf8");
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const expression = new RegExp(source);
  return lines.map((line) => line.replace(/\r$/, "")).find((line) => expression.test(line));
}
