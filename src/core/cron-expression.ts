/**
 * Whether a text is a schedule as cron(8) takes it, and one that every cron reads alike. Pure; the
 * times that follow from it are a matter of os/calendar.ts, and a test holds the two together.
 *
 * Stricter than a reader of expressions has to be, because a schedule that is read in another way
 * than by the cron that keeps it would call a job overdue that is not: no steps without a range
 * (`5/15`), no star among other items, and no step over all days beside another day. `0 2 1 * *`
 * and `0 2 * * 1` are fine, and so is `0 2 1 * 1` (either day); but of every second day together
 * with Mondays crontab(5) means the days that are both, and Bun those that are either.
 */

export type CronReading =
  | { readonly kind: "cron"; readonly text: string }
  /** A clause about what was found, and what was expected in its place. */
  | { readonly kind: "refused"; readonly found: string; readonly expected: string };

interface Field {
  readonly name: string;
  readonly first: number;
  readonly last: number;
  readonly names: readonly string[];
}

const MINUTE: Field = { name: "minute", first: 0, last: 59, names: [] };
const HOUR: Field = { name: "hour", first: 0, last: 23, names: [] };
const DAY: Field = { name: "day of the month", first: 1, last: 31, names: [] };
const MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const MONTH: Field = { name: "month", first: 1, last: 12, names: MONTHS };
/** 7 is Sunday too. */
const WEEKDAYS = "sun mon tue wed thu fri sat".split(" ");
const WEEKDAY: Field = { name: "day of the week", first: 0, last: 7, names: WEEKDAYS };

const FIELDS = [MINUTE, HOUR, DAY, MONTH, WEEKDAY] as const;
const NICKNAMES = "@yearly @annually @monthly @weekly @daily @midnight @hourly".split(" ");
/** In a leap year. */
const DAYS_OF_MONTH = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const LONGEST_TEXT = 200;

export const EXPECTED_CRON =
  "five fields as in crontab(5), such as '0 2 * * *', or one of @hourly, @daily, @weekly, " +
  "@monthly, @yearly";

/** Names in lower case, one blank between fields. */
export function parseCron(given: string): CronReading {
  const text = given
    .trim()
    .replace(/[ \t]+/g, " ")
    .toLowerCase();
  if (NICKNAMES.includes(text)) return { kind: "cron", text };
  const words = text.split(" ");
  if (text.length > LONGEST_TEXT || words.length !== FIELDS.length) {
    return { kind: "refused", found: `${words.length} fields`, expected: EXPECTED_CRON };
  }
  const read = FIELDS.map((field, at) => readField(words[at] ?? "", field));
  const wrong = read.findIndex((values) => values === undefined);
  if (wrong >= 0) {
    const field = FIELDS[wrong] ?? MINUTE;
    const expected = `* or numbers from ${field.first} to ${field.last}, such as 1,5 2-4 */2`;
    return {
      kind: "refused",
      found: `${JSON.stringify(words[wrong])} for the ${field.name}`,
      expected,
    };
  }
  return refuseDays(words, read as readonly (readonly number[])[]) ?? { kind: "cron", text };
}

/** The values of a field; undefined: it cannot be read. */
function readField(word: string, field: Field): readonly number[] | undefined {
  if (word === "*") return range(field.first, field.last, 1);
  const items = word.split(",").map((item) => readItem(item, field, word));
  return items.some((item) => item === undefined) ? undefined : items.flatMap((item) => item ?? []);
}

const ITEM = /^(?:(\*)|([a-z0-9]{1,3})(?:-([a-z0-9]{1,3}))?)(?:\/([0-9]{1,2}))?$/;

function readItem(item: string, field: Field, word: string): readonly number[] | undefined {
  const match = ITEM.exec(item);
  if (match === null) return undefined;
  const [, star, firstWord, lastWord, stepWord] = match;
  const step = Number(stepWord ?? "1");
  if (step < 1 || step > field.last) return undefined;
  if (star !== undefined) return item === word ? range(field.first, field.last, step) : undefined;
  const first = readValue(firstWord ?? "", field);
  const last = lastWord === undefined ? first : readValue(lastWord, field);
  if (first === undefined || last === undefined || first > last) return undefined;
  if (stepWord !== undefined && lastWord === undefined) return undefined;
  return range(first, last, step);
}

function readValue(word: string, { names, first, last }: Field): number | undefined {
  const at = names.indexOf(word);
  if (at >= 0) return at + first;
  const value = /^[0-9]{1,2}$/.test(word) ? Number(word) : Number.NaN;
  return value >= first && value <= last ? value : undefined;
}

function range(first: number, last: number, step: number): readonly number[] {
  const values: number[] = [];
  for (let value = first; value <= last; value += step) values.push(value);
  return values;
}

/** Days that crons read differently, and days that no month has. */
function refuseDays(
  words: readonly string[],
  [, , days = [], months = []]: readonly (readonly number[])[],
): CronReading | undefined {
  const [, , day = "*", , weekday = "*"] = words;
  const isStarred = day.startsWith("*") || weekday.startsWith("*");
  if (day !== "*" && weekday !== "*" && isStarred) {
    const found = `the days ${JSON.stringify(day)} and ${JSON.stringify(weekday)}`;
    const expected = "no step over all days beside another day: crons read that differently";
    return { kind: "refused", found, expected };
  }
  const least = Math.min(...days);
  const isEver =
    weekday !== "*" || months.some((month) => least <= (DAYS_OF_MONTH[month - 1] ?? 0));
  if (isEver) return undefined;
  return { kind: "refused", found: "a day that no such month has", expected: EXPECTED_CRON };
}
