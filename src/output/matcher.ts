/**
 * Tries patterns on the lines of all streams. Knows nothing of Workers, rings or messages.
 *
 * Guarantees: every line is tried with every pattern that has no answer yet; a pattern whose answer
 * cannot be believed is abandoned, and the others go on.
 *
 * The engine gives up by itself after about 10^8 steps back and then says "no match" (measured with
 * Bun 1.4.5: `^(?:(a+)+$|a*b$)` does not find forty `a` and a `b`, after 1.2 s). So a "no" that was
 * slow is no answer: it is asked again line by line, and a slow line place by place (flag `y`),
 * each with steps of its own. What is still slow then is abandoned. An expression that does not
 * come back at all (`a*a*b` on 64 KiB of `a`: minutes) is taken away by main.
 *
 * Clock: CPU time of this thread, which stands still while the process is stopped.
 */
import type { Edges, LinePattern } from "../core/line-pattern.ts";
import type { LineWindow, Region } from "./line-window.ts";
import type { MatchState } from "./match-state.ts";

/** A "no" within less CPU time than this cannot be one of an engine that has given up. */
export const BELIEVED_MS = 50;
/** What one pattern may take on one region in all (product: 5 s on one window). */
export const LONGEST_TRY_MS = 5_000;
/** Between two looks at whether main has taken the pattern away. */
const LINES_BETWEEN_LOOKS = 64;

export interface Found {
  readonly pattern: number;
  /** The line, or the window of it. */
  readonly line: string;
}

export interface MatcherParts {
  readonly patterns: readonly LinePattern[];
  readonly state: MatchState;
  /** CPU time of this thread in milliseconds. */
  readonly cpuMs: () => number;
  readonly onFound: (found: Found) => void;
}

/** `lost`: main has taken the pattern away, and this thread must touch nothing any more. */
type Tried =
  | { readonly kind: "found"; readonly line: string }
  | { readonly kind: "none" | "too-slow" | "lost" };

const NONE: Tried = { kind: "none" };
const WHOLE: Edges = { isLineStart: true, isLineEnd: true };

export class Matcher {
  readonly #parts: MatcherParts;
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  constructor(parts: MatcherParts) {
    this.#parts = parts;
  }

  /** Looks at all that the window holds by now. @returns false: this thread was given up */
  look(window: LineWindow, isLast: boolean): boolean {
    for (let region = window.region(isLast); region !== undefined;) {
      if (!this.#tryAll(window, region)) return false;
      window.consume(region);
      region = window.region(isLast);
    }
    return true;
  }

  #tryAll(window: LineWindow, region: Region): boolean {
    const { patterns, state, onFound } = this.#parts;
    const text = this.#decoder.decode(window.bytes.subarray(0, region.end));
    for (const [index, pattern] of patterns.entries()) {
      if (state.statusOf(index) !== "open") continue;
      state.beginTry(index);
      const tried = this.#try(index, pattern, text, region);
      if (tried.kind === "lost" || !state.endTry(index)) return false;
      if (tried.kind === "too-slow") state.settle(index, "abandoned");
      if (tried.kind === "found" && state.settle(index, "found")) {
        onFound({ pattern: index, line: tried.line });
      }
    }
    return true;
  }

  #try(index: number, pattern: LinePattern, text: string, region: Region): Tried {
    const startedAt = this.#parts.cpuMs();
    const quick = this.#tryQuickly(index, pattern, text, region);
    if (quick.kind !== "none" || this.#parts.cpuMs() - startedAt < BELIEVED_MS) return quick;
    return this.#tryCarefully(index, pattern, text, region);
  }

  #tryQuickly(index: number, pattern: LinePattern, text: string, region: Region): Tried {
    const many = pattern.manyLines;
    if (many === undefined || region.startsInside || region.endsInside) {
      return this.#eachLine(index, text, region, (line, edges) =>
        pattern.expressionFor(edges).test(line),
      );
    }
    const hit = many.exec(text);
    if (hit === null) return NONE;
    const line = lineAround(text, hit.index);
    if (pattern.expressionFor(WHOLE).test(line)) return { kind: "found", line };
    // A carriage return within a line counts as an end for the flag `m` alone.
    return this.#eachLine(index, text, region, (one, edges) =>
      pattern.expressionFor(edges).test(one),
    );
  }

  /** Each line with steps of its own, and a slow one at each place with steps of its own. */
  #tryCarefully(index: number, pattern: LinePattern, text: string, region: Region): Tried {
    const { cpuMs } = this.#parts;
    const until = cpuMs() + LONGEST_TRY_MS;
    let isTooSlow = false;
    const tried = this.#eachLine(index, text, region, (line, edges) => {
      const expression = pattern.expressionFor(edges);
      const startedAt = cpuMs();
      if (expression.test(line)) return true;
      if (cpuMs() - startedAt < BELIEVED_MS) return false;
      const found = this.#tryEachPlace(index, expression, line, until);
      isTooSlow ||= found === "too-slow";
      return found === "found" || isTooSlow;
    });
    return isTooSlow ? { kind: "too-slow" } : tried;
  }

  #tryEachPlace(
    index: number,
    expression: RegExp,
    line: string,
    until: number,
  ): "found" | "none" | "too-slow" {
    const { cpuMs, state } = this.#parts;
    const sticky = new RegExp(expression.source, "y");
    let at = cpuMs();
    for (let place = 0; place <= line.length; place += 1) {
      sticky.lastIndex = place;
      if (sticky.test(line)) return "found";
      const now = cpuMs();
      if (now - at >= BELIEVED_MS || now >= until) return "too-slow";
      if (!state.holds(index)) return "none";
      at = now;
    }
    return "none";
  }

  #eachLine(
    index: number,
    text: string,
    region: Region,
    isHit: (line: string, edges: Edges) => boolean,
  ): Tried {
    let count = 0;
    for (let start = 0; start <= text.length; count += 1) {
      const feed = text.indexOf("\n", start);
      const end = feed < 0 ? text.length : feed;
      const edges = {
        isLineStart: start > 0 || !region.startsInside,
        isLineEnd: feed >= 0 || !region.endsInside,
      };
      const line = withoutReturn(text.slice(start, end), edges);
      if (isHit(line, edges)) return { kind: "found", line };
      if (count % LINES_BETWEEN_LOOKS === 0 && !this.#parts.state.holds(index)) {
        return { kind: "lost" };
      }
      start = end + 1;
    }
    return NONE;
  }
}

/** `\r\n` ends a line as `\n` does. */
function withoutReturn(line: string, { isLineEnd }: Edges): string {
  return isLineEnd && line.endsWith("\r") ? line.slice(0, -1) : line;
}

function lineAround(text: string, at: number): string {
  const start = at === 0 ? 0 : text.lastIndexOf("\n", at - 1) + 1;
  const feed = text.indexOf("\n", at);
  return withoutReturn(text.slice(start, feed < 0 ? text.length : feed), WHOLE);
}
