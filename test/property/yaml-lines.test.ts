/** The reader of plain YAML against the package: the same values at the same places or none. */

import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { stringify } from "yaml";
import { readPlainYaml } from "../../src/cli/yaml-lines.ts";
import { readAnyYaml } from "../../src/cli/yaml-text.ts";

const RUNS = Number(process.env["RUNS"] ?? 1_000);

/** How many of the texts were read by both. */
interface Count {
  plain: number;
}

function compare(text: string, count: Count): void {
  const fast = readPlainYaml(text);
  if (fast === undefined) return;
  count.plain += 1;
  expect([text, readAnyYaml(text)]).toEqual([text, { kind: "value", root: fast }]);
}

/** A blank between them; `_` is a blank, `\n` a line end. */
function wordsOf(text: string): string[] {
  return text.split(" ").map((each) => each.replaceAll("_", " ").replaceAll("\\n", "\n"));
}

const USUAL = wordsOf(
  "a bc x.y on yes 10 0 7 30m 1h30m ./a out/app.db true false http://h:1/p?q=1 $A (x) a:b a#b " +
    "echo_1 sh_-c_'x_&&_y;_z_|_w'_>_o it's a-b 0x 1.2.3 .a a]b a=b",
);
const ODD = wordsOf(
  'null TRUE 007 0x1f 0o17 1e3 1.5 .5 .. .inf ~ - -_a a:_b a: :a a_# a_#b #a "q" [a a] {a} a,_b ' +
    "a,b &x *x !t | > %a @a `a ? ?_a a__b _a a_ = << --- ... a\tb a\\nb \u00e4 \\n ' '' + +1 -1",
);
const plainWord = fc.constantFrom(...USUAL);
const oddWord = fc.oneof(fc.constantFrom(...ODD), fc.string({ maxLength: 8 }), fc.double());
const scalar = fc.oneof(
  { weight: 60, arbitrary: plainWord },
  { weight: 5, arbitrary: fc.boolean() },
  { weight: 5, arbitrary: fc.nat() },
  { weight: 2, arbitrary: oddWord },
);
const plainKey = fc.stringMatching(/^[a-z_][a-z0-9_.-]{0,5}$/);
const key = fc.oneof(
  { weight: 60, arbitrary: plainKey },
  { weight: 1, arbitrary: fc.constantFrom(...ODD) },
);
const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3, depthIdentifier: "tree" },
    { weight: 4, arbitrary: scalar },
    { weight: 2, arbitrary: fc.array(scalar, { maxLength: 3 }) },
    {
      weight: 2,
      arbitrary: fc.dictionary(key, tie("tree"), { maxKeys: 3, depthIdentifier: "tree" }),
    },
    { weight: 1, arbitrary: fc.array(tie("tree"), { maxLength: 2, depthIdentifier: "tree" }) },
  ),
}));
const values = fc.oneof(scalar, fc.array(plainWord, { maxLength: 3 }));
/** As job files are: a table of tables of words and of lists of words. */
const jobLike = fc.dictionary(
  plainKey,
  fc.oneof(values, fc.dictionary(plainKey, values, { minKeys: 1, maxKeys: 3 })),
  { minKeys: 1, maxKeys: 3 },
);
const table = fc.dictionary(key, tree, { minKeys: 1, maxKeys: 4 });
const style = fc.record({
  indent: fc.integer({ min: 1, max: 4 }),
  indentSeq: fc.boolean(),
  collectionStyle: fc.constantFrom("any" as const, "block" as const, "flow" as const),
  flowCollectionPadding: fc.boolean(),
  lineWidth: fc.constantFrom(0, 0, 0, 30),
  defaultStringType: fc.constantFrom(
    "PLAIN" as const,
    "PLAIN" as const,
    "QUOTE_SINGLE" as const,
    "QUOTE_DOUBLE" as const,
  ),
});

/** Pieces that a line may be broken by. */
const PIECES = [
  ...wordsOf(
    "_ __ \\n \\n__ : :_ - -_ # _# #_c\\n , ,_ [ ] { } \" ' \\ &a_ *a !t_ | |\\n >-\\n ?_ " +
      "---\\n ...\\n %Y\\n \t a 1 . ~ null <<:_ a:_1\\n -_b\\n \r\\n x:\\n _#c a: b: x:_y",
  ),
  "",
];
const piece = fc.constantFrom(...PIECES);

describe("plain YAML", () => {
  test("is read as the package reads it, whatever wrote it", () => {
    const count = { plain: 0 };
    fc.assert(
      fc.property(table, style, (value, options) => compare(stringify(value, options), count)),
      { numRuns: RUNS },
    );
    expect(count.plain).toBeGreaterThan(150);
  });

  test("is read as the package reads it, or not at all, where a text was broken anywhere", () => {
    const count = { plain: 0 };
    fc.assert(
      fc.property(
        jobLike,
        style,
        fc.array(fc.tuple(fc.nat(), fc.nat({ max: 2 }), piece), { minLength: 1, maxLength: 2 }),
        (value, options, changes) => {
          let text = stringify(value, options);
          for (const [place, removed, added] of changes) {
            const at = place % (text.length + 1);
            text = text.slice(0, at) + added + text.slice(at + removed);
          }
          compare(text, count);
        },
      ),
      { numRuns: RUNS * 4 },
    );
    expect(count.plain).toBeGreaterThan(100);
  });

  test("made of pieces is read as the package reads it, or not at all", () => {
    const count = { plain: 0 };
    fc.assert(
      fc.property(
        fc.array(fc.oneof(piece, plainWord, fc.constantFrom(...ODD)), { maxLength: 12 }),
        (pieces) => compare(pieces.join(""), count),
      ),
      { numRuns: RUNS * 4 },
    );
    expect(count.plain).toBeGreaterThan(10);
  });
});

/** A job with all that is plain in it. */
const JOB = `# c
name: n # c
steps:
  a:
    run: x y > o # c
    on: [b, 'c d', "e"]
    env: { A: "1", B: x }
  b:
    f:
    - o/d:min=1
    - x
    t: 90
`;

test("where a piece is put anywhere in a job, or a letter taken away, the package agrees", () => {
  const count = { plain: 0 };
  for (let at = 0; at <= JOB.length; at += 1) {
    for (const added of PIECES) {
      compare(JOB.slice(0, at) + added + JOB.slice(at), count);
      compare(JOB.slice(0, at) + added + JOB.slice(at + 1), count);
    }
  }
  expect(count.plain).toBeGreaterThan(2_000);
});

test("each word is what the package takes it for, wherever it stands", () => {
  const count = { plain: 0 };
  const more = wordsOf(
    "0X1F 0b1 1_000 1e-3 1E5 .5e3 5. 00 1. 1.e3 0o8 -0 nan .NaN .INF False yes Off y",
  );
  for (const word of [...USUAL, ...ODD, ...more]) {
    for (const made of [
      `a: ${word}\n`,
      `a:\n- ${word}\n`,
      `a: [${word}, x]`,
      `a: { b: ${word} }`,
    ]) {
      compare(made, count);
      compare(`${made} # c\n`, count);
    }
  }
  expect(count.plain).toBeGreaterThan(200);
});

test("what job files are mostly made of is plain", () => {
  const plain = [
    "# a job\nname: nightly  # of ours\nmax_parallel: 2\n\nsteps:\n  dump:\n" +
      "    command: pg_dump db > out/db\n    artifacts:\n    - out/db:min=1KiB\n" +
      "    timeout: 1h30m\n  pack:\n    needs: [dump]\n    retries: 3\n" +
      "    command: ['zstd', \"-q\", out/db]\n    env: { A: \"1\", B: 'it''s' }\n",
    'name: j\nsteps:\n  a: { command: "x y", side_effects: none, needs: [], env: {} }\n',
  ];
  for (const text of plain) {
    expect(readPlainYaml(text)).toBeDefined();
    compare(text, { plain: 0 });
  }
});
