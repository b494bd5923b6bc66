/**
 * What surrounds a run here: variables, the configuration, and the rights of whoever asks. Reads no
 * file itself. Always: values of variables are not shown, because one may be a secret.
 */
import { type DisturbingVariable, type Disturbance, findDisturbing } from "../core/disturbing.ts";
import { type Right, RIGHTS } from "../core/policy.ts";
import { askRight } from "../os/rights.ts";
import {
  type CheckupRequest,
  type Finding,
  finding,
  joinSome,
  note,
  ok,
  unknown,
} from "./request.ts";

const WORDS: Readonly<Record<Disturbance, string>> = {
  "loaded-into-every-program": "loads code into watchdog too",
  "changes-the-engine": "changes Bun, which watchdog runs on",
  "changes-the-allocator": "changes the memory of watchdog too",
  "changes-sqlite": "changes the journal's SQLite too",
  "meant-for-node": "does nothing to watchdog",
  disarmed: "does nothing to watchdog, only to a command that is Bun's",
  "of-a-later-version": "is of a later version, and every run is refused",
  "unknown-name": "is no name of watchdog's: what it was to do is not done",
};

export function checkVariables({ variables, knownAs }: CheckupRequest): Finding {
  const found = findDisturbing(variables, knownAs);
  const wrong = found.filter(({ isFinding }) => isFinding);
  const describe = (those: readonly DisturbingVariable[]): string =>
    joinSome(those.map(({ name, because }) => `${name} ${WORDS[because]}`));
  if (wrong.length > 0) {
    const names = wrong.map(({ name }) => name).join(" ");
    return finding(
      describe([...wrong, ...found.filter((one) => !wrong.includes(one))]),
      `unset ${names}`,
    );
  }
  return found.length === 0 ? ok("none that disturbs") : note(describe(found));
}

export function checkConfiguration({ configuration }: CheckupRequest): Finding {
  const { files, troubles } = configuration;
  if (troubles.length > 0) return finding(joinSome(troubles), "watchdog config check");
  return ok(files.length === 0 ? "there is none" : `read: ${files.join(", ")}`);
}

/** Who may run and not approve is meant so, as often as not. */
const NEEDED: ReadonlySet<Right> = new Set<Right>(["run", "repair"]);

export function checkRights(request: CheckupRequest, stateDirectory: string): Finding {
  const { policies } = request.configuration;
  if (policies === undefined) {
    return unknown("the configuration is refused, and with it every run", "watchdog config check");
  }
  const answers = RIGHTS.map((right) => ({
    right,
    answer: askRight(right, stateDirectory, policies),
  }));
  const missing = answers.flatMap(({ right, answer }) =>
    answer.kind === "missing" ? [{ right, what: answer.what }] : [],
  );
  if (missing.length === 0) return ok(`this user may ${RIGHTS.join(", ")}`);
  const seen = joinSome(missing.map(({ right, what }) => `not '${right}': ${what}`));
  return missing.some(({ right }) => NEEDED.has(right))
    ? finding(seen, "watchdog config show (its policy), or ask whoever can grant it")
    : note(seen);
}
