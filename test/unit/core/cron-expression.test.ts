/** Which schedules are taken, and which are not because crons read them in two ways. */
import { describe, expect, test } from "bun:test";
import { parseCron } from "../../../src/core/cron-expression.ts";
import { openCalendar } from "../../../src/os/calendar.ts";

describe("a schedule", () => {
  test.each([
    ["0 2 * * *", "0 2 * * *"],
    ["  0\t2  * *  * ", "0 2 * * *"],
    ["*/5 0-6/2 1,15 JAN-Mar Mon", "*/5 0-6/2 1,15 jan-mar mon"],
    ["59 23 31 12 7", "59 23 31 12 7"],
    ["0 2 1 * 1", "0 2 1 * 1"],
    ["0 2 1-31 * 1", "0 2 1-31 * 1"],
    ["0 0 29 2 *", "0 0 29 2 *"],
    ["0 0 30 2 1", "0 0 30 2 1"],
    ["@daily", "@daily"],
    ["@HOURLY", "@hourly"],
  ])("%j is taken, and the calendar reads it", (given, text) => {
    expect(parseCron(given)).toEqual({ kind: "cron", text });
    expect(openCalendar(text, "UTC")?.nextAfter(0)).toBeNumber();
  });

  test.each([
    ["", "1 fields"],
    ["0 2 * *", "4 fields"],
    ["0 0 2 * * *", "6 fields"],
    ["@reboot", "1 fields"],
    ["60 2 * * *", '"60" for the minute'],
    ["0 24 * * *", '"24" for the hour'],
    ["0 2 0 * *", '"0" for the day of the month'],
    ["0 2 32 * *", '"32" for the day of the month'],
    ["0 2 * 13 *", '"13" for the month'],
    ["0 2 * * 8", '"8" for the day of the week'],
    ["0 2 * * fri-sun", '"fri-sun" for the day of the week'],
    ["0 22-2 * * *", '"22-2" for the hour'],
    ["5/15 * * * *", '"5/15" for the minute'],
    ["*/0 * * * *", '"*/0" for the minute'],
    ["*,5 * * * *", '"*,5" for the minute'],
    ["0 2 L * *", '"l" for the day of the month'],
    ["0 2 * jan,dez *", '"jan,dez" for the month'],
    ["-5 2 * * *", '"-5" for the minute'],
    ["1.5 2 * * *", '"1.5" for the minute'],
    [", 2 * * *", '"," for the minute'],
    ["0 0 30 2 *", "a day that no such month has"],
    ["0 0 31 4,6,9,11 *", "a day that no such month has"],
    ["0 2 */2 * 1", 'the days "*/2" and "1"'],
    ["0 2 1 * */2", 'the days "1" and "*/2"'],
  ])("%j is refused", (given, found) => {
    expect(parseCron(given)).toMatchObject({ kind: "refused", found });
  });

  test("of any length is answered at once", () => {
    expect(parseCron("1,".repeat(1e6)).kind).toBe("refused");
    expect(parseCron(`${"1,".repeat(90)}1 2 * * *`).kind).toBe("cron");
    expect(parseCron(`${"1,".repeat(100)}1 2 * * *`).kind).toBe("refused");
  });
});
