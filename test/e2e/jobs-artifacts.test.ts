/**
 * Artifacts of steps on the compiled binary: what must be there at the end of a step, what a resume
 * makes of those that are not what they were, and which steps need not run again.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { harmless, killAndWait, makeJob, unsafe } from "../support/job-place.ts";
import { openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);
const LIMIT_MS = 120_000;

describe("artifacts", () => {
  const steps = {
    make: harmless("echo make >>log; echo content >out", { artifacts: ["out"] }),
    use: harmless("echo use >>log; cat out >copy", { needs: ["make"], artifacts: ["copy"] }),
    other: harmless("echo other >>log; echo x >other", { artifacts: ["other"] }),
    last: harmless("exit 9", { needs: ["use", "other"] }),
  };

  test(
    "missing, empty or of yesterday: 65, and the reason is named",
    async () => {
      const job = makeJob(scene, "artifacts-65", { make: { command: "true", artifacts: ["out"] } });
      const missing = await job.job("run", ...scene.recordTo("artifacts-65"));
      expect([missing.status, missing.stderr]).toEqual([65, expect.stringContaining("not there")]);
      const { outcome, because } = scene.readRecord("artifacts-65");
      expect([outcome, because]).toEqual(["bad_output", "step-artifacts"]);
      job.write({ make: { command: ": >out", artifacts: ["out"] } });
      expect((await job.job("run")).stderr).toContain("is empty");
      writeFileSync(job.path("out"), "of yesterday");
      job.write({ make: { command: "true", artifacts: ["out"] } });
      const stale = await job.job("run", "--fresh");
      expect([stale.status, stale.stderr]).toEqual([65, expect.stringContaining("as it was")]);
      job.write({ make: { command: "echo new >out", artifacts: ["out"] } });
      expect((await job.job("run")).status).toBe(0);
    },
    LIMIT_MS,
  );

  for (const [how, harm] of [
    ["tampered with", (path: string) => writeFileSync(path, "CONTENT\n")],
    ["truncated", (path: string) => writeFileSync(path, "con")],
    ["deleted", (path: string) => rmSync(path)],
    [
      "replaced by a link",
      (path: string) => {
        writeFileSync(`${path}.elsewhere`, "content\n");
        rmSync(path);
        symlinkSync(`${path}.elsewhere`, path);
      },
    ],
  ] as const) {
    test(
      `${how}: the step and what needs it are back, the others stay`,
      async () => {
        const name = `harm-${how.replaceAll(" ", "-")}`;
        const job = makeJob(scene, name, steps);
        expect((await job.job("run")).status).toBe(9);
        expect(job.lines("log").toSorted()).toEqual(["make", "other", "use"]);
        harm(job.path("out"));
        const verified = await job.job("verify");
        expect([verified.status, verified.stdout.toString()]).toEqual([
          1,
          expect.stringContaining("step make: out: "),
        ]);
        job.write({ ...steps, last: harmless("echo last >>log", { needs: ["use", "other"] }) });
        expect((await job.job("run")).status).toBe(0);
        expect(job.lines("log").slice(3)).toEqual(["make", "use", "last"]);
        expect((await job.job("verify")).status).toBe(0);
      },
      LIMIT_MS,
    );
  }

  test(
    "of an unsafe step that is done: it is for a person to say",
    async () => {
      const job = makeJob(scene, "harm-unsafe", {
        pay: unsafe("echo pay >>log; echo receipt >out", { artifacts: ["out"] }),
        last: harmless("exit 9", { needs: ["pay"] }),
      });
      expect((await job.job("run")).status).toBe(9);
      rmSync(job.path("out"));
      expect((await job.job("run")).status).toBe(3);
      expect(job.lines("log")).toEqual(["pay"]);
      // To run it again is a decision, and is asked for as one.
      const redo = await job.job("resume", "--redo=pay");
      expect([redo.status, job.lines("log")]).toEqual([78, ["pay"]]);
      const retry = `watchdog job resume --accept-unknown pay=retry ${job.file}`;
      expect(redo.stderr).toContain(`hint: ${retry}\n`);
      expect((await job.job("resume", "--accept-unknown=pay=retry")).status).toBe(9);
      expect(job.lines("log")).toEqual(["pay", "pay"]);
    },
    LIMIT_MS,
  );

  test(
    "half-written ones are gone before the step runs again",
    async () => {
      const job = makeJob(scene, "half", {
        make: harmless(
          "ls out.d >>seen 2>/dev/null; mkdir -p out.d; echo half >out.d/half; echo begun >>log; " +
            "until [ -e go ]; do sleep 0.02; done; echo whole >out.d/whole",
          { artifacts: ["out.d"] },
        ),
      });
      const first = job.start("run");
      await waitFor(() => job.lines("log").includes("begun"), "the step");
      await killAndWait(scene, first);
      expect(existsSync(job.path("out.d/half"))).toBe(true);
      writeFileSync(job.path("go"), "");
      expect((await job.job("run")).status).toBe(0);
      expect(job.lines("seen")).toEqual([]);
    },
    LIMIT_MS,
  );
});

describe("unchanged steps", () => {
  test(
    "are not run again, and a stale one takes its dependents along",
    async () => {
      const job = makeJob(scene, "unchanged", {
        make: harmless("echo make >>log; cat source >out", {
          inputs: ["source"],
          artifacts: ["out"],
        }),
        use: harmless("echo use >>log; cat out >copy", {
          needs: ["make"],
          inputs: [],
          artifacts: ["copy"],
        }),
        always: harmless("echo always >>log"),
      });
      writeFileSync(job.path("source"), "one");
      expect((await job.job("run")).status).toBe(0);
      const again = await job.job("run", "--verbose");
      expect([again.status, job.lines("log").slice(3)]).toEqual([0, ["always"]]);
      expect(again.stderr).toContain("step make is unchanged and not run");
      expect(job.steps()).toContain("make done unchanged 0");
      writeFileSync(job.path("source"), "two");
      expect((await job.job("plan")).stdout.toString()).toMatch(/make +runs +.*(read|input)/);
      expect((await job.job("run")).status).toBe(0);
      expect(job.lines("log").slice(4).toSorted()).toEqual(["always", "make", "use"]);
    },
    LIMIT_MS,
  );
});
