/**
 * What a job file may hold: the shape that it is checked against, and the JSON Schema for editors.
 *
 * Knows no file. Loaded only for the commands of jobs. Always: an unknown key is refused; the text
 * of each error is a clause that says what was expected. What a text must look like is for
 * job-values.ts: the shape tells a text from a list and no more.
 */

import { z } from "zod";
import type { ConfigValueKind } from "../core/config-values.ts";
import { MOST_PARALLEL } from "../core/job-spec.ts";
import { STEP_OPTION_KEYS, STEP_ROWS } from "./step-options.ts";

export const MOST_RETRIES = 1_000;

const TEXT = "a text in quotes";
const TEXTS = "a list of texts, such as [one, two]";
const AMOUNT = "a number or a text in quotes";
const TABLE = "a table";

const text = z.string({ error: TEXT });
const texts = z.array(text, { error: TEXTS });
const amount = z.union([z.string(), z.number()], { error: AMOUNT });
const amountOf = (example: string) => amount.meta({ examples: [example] });

const COMMAND = "a text for sh -c, or a list of a program and its arguments, each in quotes";
const command = z.union(
  [z.string(), z.array(text, { error: COMMAND }).min(1, { error: COMMAND })],
  { error: COMMAND },
);

const ENV =
  "a table of NAME: VALUE, each value in quotes or null, or a list of NAME=VALUE and NAME";
const ENV_VALUE = "a text in quotes, or null for that of the caller";
const env = z
  .union(
    [
      z.record(z.string(), z.union([z.string(), z.null()], { error: ENV_VALUE }), { error: ENV }),
      z.array(text, { error: ENV }),
    ],
    { error: ENV },
  )
  .describe(
    "Variables. A name without a value (null): that of the caller, which counts for whether the " +
      "step is unchanged.",
  );

const BACKOFF = "a span, FIRST..CAP, or a table of initial, cap and factor";
const backoff = z.union(
  [
    z.string(),
    z.number(),
    z.strictObject(
      {
        initial: amount.optional().describe("The bound of the first wait. Default: 1s."),
        cap: amount.optional().describe("The bound of every wait. Default: 30s."),
        factor: z
          .number({ error: "a number" })
          .optional()
          .describe("How much longer each wait is. Default: 2."),
      },
      { error: BACKOFF },
    ),
  ],
  { error: BACKOFF },
);

const OPTION_SHAPES: Readonly<Record<ConfigValueKind, () => z.ZodType>> = {
  switch: () => z.boolean({ error: "true or false" }),
  amount: () => z.union([z.string(), z.number()], { error: AMOUNT }),
  text: () => z.string({ error: TEXT }),
  texts: () => {
    const error = "a text in quotes, or a list of them";
    return z.union([z.string(), z.array(text, { error }).min(1, { error })], { error });
  },
  codes: () => {
    const error = "a number, a text in quotes, or a list of numbers";
    return z.union([z.string(), z.number(), z.array(z.number({ error })).min(1, { error })], {
      error,
    });
  },
};

function optionShapes(): Record<string, z.ZodOptional<z.ZodType>> {
  const shapes = [...STEP_OPTION_KEYS].map(([name, { kind }]) => {
    const help = STEP_ROWS.get(name)?.help ?? "";
    return [name, OPTION_SHAPES[kind]().optional().describe(help)] as const;
  });
  return Object.fromEntries(shapes);
}

const whole = (most: number) => {
  const error = `a whole number from 0 to ${most}`;
  return z.int({ error }).min(0, { error }).max(most, { error });
};

const SIDE_EFFECTS = "none or unsafe";

const ownKeys = {
  command: command.describe("A text for sh -c, or a program with its arguments."),
  needs: texts.optional().describe("Steps that must be done before this one is started."),
  timeout: amountOf("30m")
    .optional()
    .describe("End the step when it has lasted this long. Default: no limit."),
  kill_after: amountOf("10s")
    .optional()
    .describe("Send KILL when its tree lives this long after TERM. Default: 10s."),
  retries: whole(MOST_RETRIES)
    .optional()
    .describe("How often it is run again after a failure. Default: 0."),
  backoff: backoff
    .optional()
    .describe("The waits between attempts: 10s, 1s..30s, or a table. Default: 1s..30s."),
  inputs: texts
    .optional()
    .describe(
      "Files and directories that it reads, below the directory of the job file. Where they are " +
        "stated, an unchanged step is not run again in a new job; an empty list: it reads none.",
    ),
  artifacts: texts
    .optional()
    .describe(
      "What it must leave, below the directory of the job file: PATH[:min=SIZE][:any-age]. They " +
        "are removed before it is run again after an interruption.",
    ),
  side_effects: z
    .enum(["none", "unsafe"], { error: SIDE_EFFECTS })
    .optional()
    .describe(
      "none: it may run twice. unsafe: it may not, and where nobody knows whether it has " +
        "happened a person must decide. Default: none where there are artifacts; else it must be " +
        "stated.",
    ),
  settle: command
    .optional()
    .describe(
      "Of an unsafe step that was interrupted: asked whether it has happened. 0: yes, 1: no, " +
        "anything else: nobody knows.",
    ),
  env: env.optional(),
  cwd: text.optional().describe("Where it runs. Default: the directory of the job file."),
};

/** The keys of a step, those of options of `watchdog run` behind the others. */
const step = z
  .strictObject({ ...ownKeys, ...optionShapes() }, { error: TABLE })
  .meta({ title: "Step" });

export const jobSchema = z.strictObject(
  {
    $schema: z.string({ error: TEXT }).optional().describe("For editors; not looked at."),
    name: text.describe("What the job is called: its lease is job:NAME."),
    max_parallel: z
      .int({ error: `a whole number from 1 to ${MOST_PARALLEL}` })
      .min(1, { error: `a whole number from 1 to ${MOST_PARALLEL}` })
      .max(MOST_PARALLEL, { error: `a whole number from 1 to ${MOST_PARALLEL}` })
      .optional()
      .describe("How many steps run at the same time. Default: 1."),
    env: env.optional(),
    steps: z
      .record(z.string(), step, { error: "a table of steps: NAME: { command: … }" })
      .describe("By their names, in the order in which they are shown."),
  },
  { error: "a table with name and steps" },
);

export type JobShape = z.infer<typeof jobSchema>;

/** What stands behind one key of `steps`, as far as it is named here. */
export type StepShape = z.infer<z.ZodObject<typeof ownKeys>>;

export const STEP_KEYS: readonly string[] = Object.keys(step.shape);
export const OWN_STEP_KEYS: readonly string[] = Object.keys(ownKeys);
export const JOB_KEYS: readonly string[] = Object.keys(jobSchema.shape);
export const BACKOFF_KEYS: readonly string[] = ["initial", "cap", "factor"];

/** Draft 7 is what editors know best. */
export function jsonSchemaOfJob(): object {
  return {
    ...z.toJSONSchema(jobSchema, { target: "draft-7", io: "input" }),
    title: "Job of watchdog",
  };
}
