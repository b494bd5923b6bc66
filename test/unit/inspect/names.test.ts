/** Which leases and runs a word means: a job, a key, a run id, and nothing else. */
import { expect, test } from "bun:test";
import { isLeaseNamed, isRunNamed } from "../../../src/inspect/names.ts";
import { sampleRun, sampleView } from "../../support/lease-views.ts";

const WORDS = ["backup", "run-7", "gpu", "lane:gpu", "job:backup", "run-6", "run", "4711", "back"];

test("a lease is meant by its key, its job and its run id", () => {
  const lane = sampleView({ key: { kind: "lane", name: "gpu" } });
  const meant = (view: typeof lane) => WORDS.filter((word) => isLeaseNamed(view, word));
  expect(meant(lane)).toEqual(["backup", "run-7", "lane:gpu"]);
  expect(meant(sampleView())).toEqual(["backup", "run-7", "job:backup"]);
});

test("a run is meant by its job, as a name or a key, its id, and the keys it was granted", () => {
  const leases = [{ kind: "lane", name: "gpu", generation: 3 }];
  const meant = (run: ReturnType<typeof sampleRun>) =>
    WORDS.filter((word) => isRunNamed(run, word));
  expect(meant(sampleRun({ leases }))).toEqual(["backup", "run-7", "lane:gpu", "job:backup"]);
  expect(meant(sampleRun())).toEqual(["backup", "run-7", "job:backup"]);
});
