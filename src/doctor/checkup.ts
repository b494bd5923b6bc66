/**
 * One check-up of this machine: every check, in order, and what follows for the promises
 * (core/promises.ts). Knows how no check is made, and prints nothing.
 *
 * Guarantees: one answer for each name; a check that fails for a reason of its own is `unknown`
 * with that reason, and none keeps another from being made. Clock: those of the checks. State after
 * a crash: those of place.ts and of the checks.
 */
import {
  type CheckName,
  CHECKS,
  type CheckStates,
  decidePromises,
  type PromiseAnswer,
} from "../core/promises.ts";
import { checkLocks } from "./lock-check.ts";
import { type CheckupPlace, openPlace } from "./place.ts";
import * as processes from "./process-checks.ts";
import { checkOwners, checkRepairFiles } from "./repair-checks.ts";
import {
  type Check,
  type CheckupReport,
  type CheckupRequest,
  type Finding,
  ok,
  textOf,
  unknown,
} from "./request.ts";
import { checkFfi, checkGuard, checkLimits, checkWorkers } from "./start-checks.ts";
import { checkFiles, checkJournal, checkRoom } from "./state-checks.ts";
import * as surroundings from "./surroundings-checks.ts";

export async function examine(request: CheckupRequest): Promise<CheckupReport> {
  const place = openPlace(request);
  try {
    const checks: Check[] = [];
    for (const name of CHECKS) {
      checks.push({ check: name, ...(await makeCheck(name, request, place)) });
    }
    return {
      stateDirectory: place.stateDirectory ?? null,
      checks,
      promises: promisesOf(checks),
    };
  } finally {
    place.close();
  }
}

function promisesOf(checks: readonly Check[]): PromiseAnswer[] {
  const states = Object.fromEntries(checks.map(({ check, state }) => [check, state]));
  return decidePromises(states as CheckStates);
}

type MakeCheck = (request: CheckupRequest, place: CheckupPlace) => Finding | Promise<Finding>;

const MAKERS: Readonly<Record<CheckName, MakeCheck>> = {
  ffi: checkFfi,
  "state-directory": (_, place) => place.finding,
  room: (_, place) => onTrial(place, checkRoom),
  files: (_, place) => onTrial(place, checkFiles),
  locks: (request, place) => onTrial(place, (path) => checkLocks(path, request.inherited)),
  journal: (_, place) => inState(place, checkJournal),
  "repair-files": (_, place) => inState(place, checkRepairFiles),
  owners: (_, place) => inState(place, checkOwners),
  processes: processes.checkProcesses,
  pidfd: processes.checkPidfd,
  namespaces: processes.checkNamespaces,
  cgroup: processes.checkCgroup,
  clocks: (_, place) => processes.checkClocks(place.isAccepted ? place.stateDirectory : undefined),
  guard: (request) => checkGuard(request.inherited),
  workers: (request) => checkWorkers(request.scanUrl),
  limits: checkLimits,
  variables: surroundings.checkVariables,
  configuration: surroundings.checkConfiguration,
  rights: (request, place) =>
    place.stateDirectory === undefined
      ? unknown(REFUSED)
      : surroundings.checkRights(request, place.stateDirectory),
};

async function makeCheck(
  name: CheckName,
  request: CheckupRequest,
  place: CheckupPlace,
): Promise<Finding> {
  try {
    return await MAKERS[name](request, place);
  } catch (error) {
    return unknown(textOf(error)); // os.no-ffi, EMFILE, ENOMEM, EIO …: it could not be tried
  }
}

const REFUSED = "not tried: the state directory cannot be used";

function onTrial(place: CheckupPlace, check: (path: string) => Finding): Finding {
  return place.trialDirectory === undefined ? unknown(REFUSED) : check(place.trialDirectory);
}

/** Nothing can be wrong in a directory that is not there. */
function inState(place: CheckupPlace, check: (path: string) => Finding): Finding {
  if (place.isAccepted && place.stateDirectory !== undefined) return check(place.stateDirectory);
  return place.trialDirectory === undefined ? unknown(REFUSED) : ok("there is nothing yet");
}
