/**
 * Ids of runs: UUIDs of version 7 (RFC 9562), in small letters. Pure; they are made by `run/`.
 */

const RUN_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function isRunId(text: string): boolean {
  return RUN_ID.test(text);
}
