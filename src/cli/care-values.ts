/**
 * Reads the values that only a repair takes: the id of a plan, a generation, a count of repairs.
 *
 * Knows nothing of flags or commands. Always: every refusal names what is expected, with an
 * example, and no reader throws.
 */

import { MOST_GIVEN_GENERATION } from "../core/generation.ts";
import { accepted, refused } from "./values.ts";
import type { Parsed } from "./values.ts";

export const MAX_REPAIRS_LIMIT = 1_000;

export const EXPECTED_CARE = {
  planId: "the id of a plan as watchdog repair prints it: ten hex digits, such as 0a1b2c3d4e",
  generation: `a number from 1 to ${MOST_GIVEN_GENERATION}, such as 42`,
  maxRepairs: `a number from 1 to ${MAX_REPAIRS_LIMIT}, such as 3`,
} as const;

export function parsePlanId(text: string): Parsed<string> {
  return /^[0-9a-f]{10}$/.test(text) ? accepted(text) : refused(EXPECTED_CARE.planId);
}

export function parseGeneration(text: string): Parsed<number> {
  const number = /^[1-9][0-9]{0,15}$/.test(text) ? Number(text) : 0;
  const isRight = number >= 1 && number <= MOST_GIVEN_GENERATION;
  return isRight ? accepted(number) : refused(EXPECTED_CARE.generation);
}

export function parseMaxRepairs(text: string): Parsed<number> {
  const count = /^[1-9][0-9]{0,3}$/.test(text) ? Number(text) : 0;
  const isRight = count >= 1 && count <= MAX_REPAIRS_LIMIT;
  return isRight ? accepted(count) : refused(EXPECTED_CARE.maxRepairs);
}
