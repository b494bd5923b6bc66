/**
 * Which keys have a lease directory. Knows names and nothing of what the leases are.
 *
 * Guarantees: read only; each key leads back to the directory that it was found in. Non-guarantees:
 * a name that was cut for its directory is found only while its record can be read. Clock: none.
 * Crash behaviour: none.
 */
import { type Dirent, readdirSync } from "node:fs";
import { WatchdogError } from "../core/errors.ts";
import { isKind, type LeaseKey, orderKeys } from "../core/lease-key.ts";
import { codeOf, textOf } from "./files/own-file.ts";
import { decodeLeaseName, encodeLeaseName, LEASES_DIRECTORY } from "./files/places.ts";
import { readRecord } from "./files/record-file.ts";

/**
 * All keys, in the order of their text; none where there is no state yet.
 * @throws WatchdogError "state.unusable" where a directory cannot be read
 */
export function listKeys(stateDirectory: string): LeaseKey[] {
  const leases = `${stateDirectory}/${LEASES_DIRECTORY}`;
  const kinds = listDirectories(leases).filter(isKind);
  return orderKeys(
    kinds.flatMap((kind) =>
      listDirectories(`${leases}/${kind}`).flatMap((directory) => {
        const name = nameIn(`${leases}/${kind}`, directory);
        return name === undefined ? [] : [{ kind, name }];
      }),
    ),
  );
}

/** Most names stand in the directory's own name; only a cut one needs the record. */
function nameIn(kindDirectory: string, directory: string): string | undefined {
  const decoded = decodeLeaseName(directory);
  if (decoded !== undefined) return decoded;
  const reading = readRecord(`${kindDirectory}/${directory}/lease.json`);
  if (reading.kind !== "read") return undefined;
  return encodeLeaseName(reading.record.name) === directory ? reading.record.name : undefined;
}

function listDirectories(path: string): string[] {
  let entries: Dirent[];
  try {
    entries = readdirSync(path, { withFileTypes: true });
  } catch (cause) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(cause))) return [];
    throw new WatchdogError("state.unusable", `${path} cannot be read: ${textOf(cause)}`, {
      hint: `ls -ld ${path}`,
      cause,
    });
  }
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
}
