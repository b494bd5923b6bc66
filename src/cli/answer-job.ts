/**
 * What `watchdog job` answers without a state: the JSON Schema of job files.
 *
 * Loaded only for the commands of jobs: it brings zod.
 */

import { EXIT } from "../core/errors.ts";
import type { Answer } from "./answer.ts";
import { jsonSchemaOfJob } from "./job-schema.ts";
import { renderJson } from "./render-words.ts";

export function answerJobSchema(): Answer {
  return { text: renderJson(jsonSchemaOfJob()), lines: [], code: EXIT.ok };
}
