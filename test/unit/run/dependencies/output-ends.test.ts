/** The output of a command that is asked, as it is read while its time limit runs. */
import { expect, spyOn, test } from "bun:test";
import { sys } from "../../../../src/os/sys.ts";
import { OutputEnds } from "../../../../src/run/dependencies/output-ends.ts";

test("a command that writes without an end does not keep its time limit from being seen", () => {
  const output = OutputEnds.open();
  if (output === undefined) throw new Error("there is no pipe");
  let reads = 0;
  const read = spyOn(sys, "read").mockImplementation(() => {
    reads += 1;
    if (reads > 5_000_000) throw new Error("it is read without an end");
    return 1;
  });
  try {
    expect(output.drain()).toBe(true);
    expect(reads).toBeGreaterThan(0);
  } finally {
    read.mockRestore();
    output.close();
  }
});
