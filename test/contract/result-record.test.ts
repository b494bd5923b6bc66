/**
 * The records that the binary really writes, held against the schema that promises them: one of
 * each way to end.
 */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { resultSchema } from "../../src/cli/result-schema.ts";
import { openScene } from "../support/scene.ts";
import { waitFor } from "../support/wait-for.ts";

const scene = openScene(import.meta.file);

/** Away from the moment on in which the command says so. */
const AWAY = scene.path("away");
const QUICK = ["--probe-period", "200ms", "--probe-timeout", "200ms"];

const ENDS: readonly (readonly [outcome: string, args: readonly string[]])[] = [
  ["ok", ["--log", "on", "--", "echo", "x"]],
  ["ok", ["--log", "off", "--", "true"]],
  ["ok", ["--quiet", "--", "echo", "x"]],
  ["ok", ["--log", "on", "--log-max", "4KiB", "--", "seq", "10000"]],
  ["ok", ["--", "sh", "-c", "echo x; sleep 91081 & exit 0"]],
  ["failed", ["--name", "nächt☃", "--", "sh", "-c", "exit 3"]],
  ["failed", ["--", "sh", "-c", 'exit 3 # "\x1b[31m\n']],
  ["signaled", ["--", "sh", "-c", "kill -RTMIN $$ || kill -34 $$"]],
  ["timeout", ["--timeout", "100ms", "--", "sleep", "91082"]],
  ["idle_timeout", ["--idle-timeout", "300ms", "--", "sleep", "91083"]],
  ["dependency_down", ["--probe", "cmd:false", "--probe-max-attempts", "1", "--", "true"]],
  [
    "dependency_down",
    [
      ["--probe", `cmd:test ! -e ${AWAY}`, "--ready-probe", "cmd:false", ...QUICK],
      ["--on-unready", "notify", "--", "sh", "-c", `touch ${AWAY}; exec sleep 91085`],
    ].flat(),
  ],
  ["not_found", ["--", "./absent"]],
  ["not_executable", ["--", "/"]],
];

/** The schema lets later fields through; a record of this version has none. */
const promised = Object.keys(resultSchema.shape);

test("each way to end writes a record that the schema takes", async () => {
  for (const [outcome, args] of ENDS) {
    await scene.run([...scene.recordTo(), ...args]);
    const record = JSON.parse(readFileSync(scene.path("result.json"), "utf8"));
    const parsed = resultSchema.safeParse(record);
    expect([args, parsed.error?.message]).toEqual([args, undefined]);
    expect([args, record.outcome]).toEqual([args, outcome]);
    expect(Object.keys(record).filter((key) => !promised.includes(key))).toEqual([]);
  }
}, 180_000);

test("the records of a run that goes on and of one that is stopped are taken", async () => {
  const started = scene.start([...scene.recordTo("live"), "--", "sleep", "91084"]);
  const path = scene.path("live.json");
  await waitFor(() => existsSync(path) && scene.findProcesses().length === 2, "the command to run");
  const running = resultSchema.parse(JSON.parse(readFileSync(path, "utf8")));
  expect([running.state, running.outcome]).toEqual(["running", null]);
  started.kill("SIGTERM");
  await started.ended;
  const ended = resultSchema.parse(JSON.parse(readFileSync(path, "utf8")));
  expect([ended.outcome, ended.because]).toEqual(["stopped", "terminated"]);
  expect(ended.signals.map((sent) => [sent.signal, sent.to])).toEqual([["TERM", "tree"]]);
}, 180_000);

test("a record with one field less is refused, so the first test proves something", async () => {
  await scene.run([...scene.recordTo("whole"), "--", "true"]);
  const record = JSON.parse(readFileSync(scene.path("whole.json"), "utf8"));
  expect(Object.keys(record).length).toBeGreaterThan(20);
  for (const key of Object.keys(record)) {
    const { [key]: _left, ...rest } = record;
    expect([key, resultSchema.safeParse(rest).success]).toEqual([key, key === "command_bytes"]);
  }
});
