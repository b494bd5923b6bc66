/**
 * The calendar that Bun has built in, against crontab(5) read minute by minute: any schedule that
 * is taken, over years, with leap days and ends of months.
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { parseCron } from "../../src/core/cron-expression.ts";
import { openCalendar } from "../../src/os/calendar.ts";

const MINUTE_MS = 60_000;
const FIRST = Date.UTC(2023, 0, 1);
const LAST = Date.UTC(2029, 0, 1);

type Bounds = readonly [number, number];

function item([first, last]: Bounds): fc.Arbitrary<string> {
  const value = fc.integer({ min: first, max: last });
  const span = fc.tuple(value, value).map(([one, other]) => {
    return `${Math.min(one, other)}-${Math.max(one, other)}`;
  });
  const step = fc.integer({ min: 1, max: last }).map((by) => `/${by}`);
  return fc.oneof(
    value.map(String),
    span,
    fc.tuple(span, step).map((parts) => parts.join("")),
  );
}

function field(bounds: Bounds): fc.Arbitrary<string> {
  const items = fc.array(item(bounds), { minLength: 1, maxLength: 3 });
  const stars = fc.integer({ min: 1, max: bounds[1] }).map((by) => `*/${by}`);
  return fc.oneof(
    fc.constant("*"),
    stars,
    items.map((all) => all.join(",")),
  );
}

const BOUNDS: readonly Bounds[] = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 7],
];
const texts = fc.tuple(...BOUNDS.map(field)).map((fields) => fields.join(" "));

/** By the words of crontab(5), not by the parser. */
function matches(text: string, value: number, [first, last]: Bounds): boolean {
  return text.split(",").some((part) => {
    const [span = "", by = "1"] = part.split("/");
    const [low, high] = span === "*" ? [first, last] : span.split("-").map(Number);
    const from = low ?? first;
    const until = high ?? from;
    return value >= from && value <= until && (value - from) % Number(by) === 0;
  });
}

function isTime(text: string, at: number): boolean {
  const [minute = "", hour = "", day = "", month = "", weekday = ""] = text.split(" ");
  const date = new Date(at);
  const ofWeek = date.getUTCDay();
  const isDay = matches(day, date.getUTCDate(), [1, 31]);
  const isWeekday =
    matches(weekday, ofWeek, [0, 7]) || (ofWeek === 0 && matches(weekday, 7, [0, 7]));
  // "If both fields are restricted, the command is run when either field matches" (crontab(5)).
  const isEither = day !== "*" && weekday !== "*";
  return (
    matches(minute, date.getUTCMinutes(), [0, 59]) &&
    matches(hour, date.getUTCHours(), [0, 23]) &&
    matches(month, date.getUTCMonth() + 1, [1, 12]) &&
    (isEither ? isDay || isWeekday : isDay && isWeekday)
  );
}

/** Whole days and hours that cannot match are passed over. */
function nextByHand(text: string, after: number, until: number): number | undefined {
  for (let at = Math.floor(after / MINUTE_MS) * MINUTE_MS + MINUTE_MS; at <= until;) {
    if (isTime(text, at)) return at;
    at += MINUTE_MS;
  }
  return undefined;
}

test("has the next time where crontab(5) has it", () => {
  let judged = 0;
  fc.assert(
    fc.property(texts, fc.integer({ min: FIRST, max: LAST }), (text, from) => {
      const reading = parseCron(text);
      if (reading.kind === "refused") return;
      const calendar = openCalendar(reading.text, "UTC");
      const next = calendar?.nextAfter(from);
      expect([text, typeof next]).toEqual([text, "number"]);
      if (next === undefined) return;
      expect(isTime(text, next)).toBe(true);
      // A week is looked through by the minute; of what comes later its own minute was judged.
      const until = Math.min(next, from + 7 * 86_400_000);
      const byHand = nextByHand(text, from, until);
      expect([text, from, byHand ?? "later"]).toEqual([text, from, next <= until ? next : "later"]);
      judged += 1;
    }),
    { numRuns: 300 },
  );
  expect(judged).toBeGreaterThan(100);
});

test("refuses what it cannot read, and names no zone that is none", () => {
  expect(openCalendar("0 2 * *", "UTC")).toBeUndefined();
  for (const zone of ["", "Europe/Nowhere", "+02:00", "../etc/passwd"]) {
    expect([zone, openCalendar("0 2 * * *", zone)]).toEqual([zone, undefined]);
  }
  expect(openCalendar("0 2 * * *", null)).toBeDefined();
});
