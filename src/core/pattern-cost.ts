/**
 * Whether a regular expression comes to its end on any text in a time that is bearable: for those
 * that hide secrets in every line that leaves a run, where nobody could stop one that does not.
 * Pure.
 *
 * An engine that backtracks needs as many steps as there are ways to match. Refused is whatever has
 * more than about the square of the length: a repetition of what repeats or chooses (`(a+)+`,
 * `(a|a)*`), and one without a bound that could end at many places (`a*a*b`, `.*x.*y`) before
 * another one. A repetition ends at one place where what must follow it is a letter that it does
 * not take: `[0-9]+-[a-z]+`. (Davis et al., "The Impact of Regular Expression Denial of Service",
 * 2018: these are the two shapes of super-linear patterns.)
 *
 * Always: of two answers the careful one; what is not understood is refused.
 */

/** More repetitions than this count as without a bound. */
const MOST_BOUNDED = 64;
/** Ways through all repetitions that have a bound. */
const MOST_WAYS = 4_096;

interface Element {
  /** What it takes, one letter at a time; undefined: nobody knows. */
  readonly letters: RegExp | undefined;
  readonly isOptional: boolean;
  readonly isUnbounded: boolean;
  /** 1: it matches in one way. */
  readonly ways: number;
}

/** @param source  one that `new RegExp(source, "u")` takes */
export function isBearable(source: string): boolean {
  const elements = new Reader(source).readAll();
  if (elements === undefined) return false;
  const ways = elements.reduce((product, one) => product * one.ways, 1);
  if (ways > MOST_WAYS) return false;
  // What may be missing at the end never fails, so that nothing is scanned again for it.
  const end = elements.findLastIndex((one) => !one.isOptional) + 1;
  const needed = elements.slice(0, end);
  const unbounded = needed.flatMap((one, index) => (one.isUnbounded ? [index] : []));
  // Nothing is scanned again behind the last one.
  return unbounded.slice(0, -1).every((index) => endsAtOnePlace(needed, index));
}

/** What must follow takes no letter that the repetition takes. */
function endsAtOnePlace(elements: readonly Element[], index: number): boolean {
  const [own, next] = [elements[index], elements[index + 1]];
  if (own?.letters === undefined || next?.letters === undefined || next.isOptional) return false;
  const { letters } = own;
  const { letters: others } = next;
  return SAMPLE.every((letter) => !(letters.test(letter) && others.test(letter)));
}

/** All of ASCII, and one of each kind beyond. */
const SAMPLE: readonly string[] = [
  ...Array.from({ length: 128 }, (_, code) => String.fromCodePoint(code)),
  ..."\u0085\u00a0éßſKΩЖ中あ☃😀\u2028\ufeff",
];

class Reader {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  /** @returns undefined: something in it repeats what repeats or chooses, or is not understood */
  readAll(): readonly Element[] | undefined {
    const elements = this.#readChoice();
    return this.#at < this.#source.length ? undefined : elements;
  }

  /** Up to a closing bracket or the end: `a|b` is one element of which nobody knows the letters. */
  #readChoice(): readonly Element[] | undefined {
    const choices: (readonly Element[])[] = [];
    for (;;) {
      const elements = this.#readSequence();
      if (elements === undefined) return undefined;
      choices.push(elements);
      if (this.#source[this.#at] !== "|") break;
      this.#at += 1;
    }
    const [first = []] = choices;
    if (choices.length === 1) return first;
    // What repeats within a choice may be tried again from each of its beginnings.
    const isPlain = choices.flat().every((one) => !one.isUnbounded && one.ways === 1);
    if (!isPlain) return undefined;
    const isOptional = choices.some((elements) => elements.every((one) => one.isOptional));
    return [{ letters: undefined, isOptional, isUnbounded: false, ways: choices.length }];
  }

  #readSequence(): readonly Element[] | undefined {
    const elements: Element[] = [];
    for (;;) {
      const next = this.#source[this.#at];
      if (next === undefined || next === "|" || next === ")") return elements;
      const part = next === "(" ? this.#readGroup() : this.#readAtom();
      if (part === undefined) return undefined;
      elements.push(...part);
    }
  }

  #readGroup(): readonly Element[] | undefined {
    const [opening = "("] = /^\((?:\?(?:[:=!]|<[=!]|<[^>=!]+>))?/.exec(this.#rest) ?? [];
    this.#at += opening.length;
    const inner = this.#readChoice();
    if (inner === undefined || this.#source[this.#at] !== ")") return undefined;
    this.#at += 1;
    const count = this.#readCount();
    if (count === undefined) return /^\(\?(?:[=!]|<[=!])/.test(opening) ? anchor(inner) : inner;
    const isOne = inner.every((one) => !one.isUnbounded && one.ways === 1);
    if (count.most > 1 && !isOne) return undefined;
    const isUnbounded = count.most > MOST_BOUNDED;
    const rest = inner.some((one) => one.isUnbounded);
    if (count.least === 0 && rest) return undefined;
    const ways = isUnbounded ? 1 : Math.max(1, count.most - count.least + 1);
    const all = inner.reduce((product, one) => product * one.ways, ways);
    return [{ letters: undefined, isOptional: count.least === 0, isUnbounded, ways: all }];
  }

  #readAtom(): readonly Element[] | undefined {
    const [text = ""] = ATOM.exec(this.#rest) ?? [];
    if (text === "") return undefined;
    this.#at += text.length;
    if (ANCHORS.includes(text)) return [];
    const letters = lettersOf(text);
    const count = this.#readCount();
    if (count === undefined) return [{ letters, isOptional: false, isUnbounded: false, ways: 1 }];
    const isUnbounded = count.most > MOST_BOUNDED;
    const ways = isUnbounded ? 1 : Math.max(1, count.most - count.least + 1);
    return [{ letters, isOptional: count.least === 0, isUnbounded, ways }];
  }

  /** `*`, `+?`, `{2,}`; undefined: there is none. */
  #readCount(): { readonly least: number; readonly most: number } | undefined {
    const found = /^(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??/.exec(this.#rest);
    if (found === null) return undefined;
    this.#at += found[0].length;
    const [, sign, least = "0", comma, most = ""] = found;
    if (sign !== undefined) return SIGNS[sign];
    const from = Number(least);
    if (comma === undefined) return { least: from, most: from };
    return { least: from, most: most === "" ? Infinity : Number(most) };
  }

  get #rest(): string {
    return this.#source.slice(this.#at);
  }
}

const SIGNS: Readonly<Record<string, { readonly least: number; readonly most: number }>> = {
  "*": { least: 0, most: Infinity },
  "+": { least: 1, most: Infinity },
  "?": { least: 0, most: 1 },
};

/** A class, an escape with its operand, or any other letter. */
const CLASS = "\\[(?:\\\\.|[^\\]\\\\])*\\]";
const CODE = "u\\{[0-9a-f]+\\}|u[0-9a-f]{4}|x[0-9a-f]{2}|c[a-z]|p\\{[^}]*\\}|k<[^>]*>|[^]";
const ATOM = new RegExp(`^(?:${CLASS}|\\\\(?:${CODE})|[^\\\\()|*+?{}[\\]])`, "isu");
const ANCHORS: readonly string[] = ["^", "$", "\\b", "\\B"];

/** @returns undefined: what was found before, whatever that was (`\1`, `\k<name>`) */
function lettersOf(text: string): RegExp | undefined {
  return /^\\(?:[1-9]|k<)/.test(text) ? undefined : new RegExp(`^${text}$`, "u");
}

/** A look ahead or behind takes no letter, and is tried at each place. */
function anchor(inner: readonly Element[]): readonly Element[] | undefined {
  return inner.some((one) => one.isUnbounded || one.ways > 1) ? undefined : [];
}
