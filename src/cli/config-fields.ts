/**
 * The fields of the answers about the configuration in JSON: `config show` and `config check`. A
 * part of the table in answer-fields.ts; never loaded by an answer.
 */

import type { Meanings } from "./dependency-fields.ts";

export function configFileFields(): Meanings {
  return {
    files: "the files that are read, the weakest first",
    "files[].path": "its path",
    "files[].is_there": "false: there is none",
    "files[].is_heard": "false: only its [policy] holds, because --config was given",
    "files[].owner_uid": "user id of its owner, null: it is not there or was not read",
  };
}

export function settingFields(): Meanings {
  return {
    settings: "each option of a run, and what tables of probes and jobs set",
    "settings[].key": "its name in a file: `state_dir`, `run.timeout`, `probes.db.period`",
    "settings[].option": "the option that it stands for",
    "settings[].values": "as on the command line, several where the option adds; none: the default",
    "settings[].default": "what holds where nothing is set, for people",
    "settings[].source": "`flag`, `variable`, `file` or `default`",
    "settings[].from": "the flag, the variable or the file, null: the default",
    policy: "each list of each [policy]; the caller must be in all lists of a right",
    "policy[].right": "`run`, `repair` or `approve`",
    "policy[].entries": "users, `uid:N` and `@group`",
    "policy[].from": "the file",
  };
}

export function findingFields(): Meanings {
  return {
    findings: "all that is wrong",
    "findings[].file": "the file, null: what the files say together",
    "findings[].key": "the key in it, null: the file as a whole",
    "findings[].because":
      "`unreadable`, `not-toml`, `unknown-key`, `later-key`, `misplaced-key`, " +
      "`key-of-one-job`, `wrong-kind`, `wrong-value`, `unknown-name` or `contradiction`",
    "findings[].found": "what was found, for people",
    "findings[].expected": "what was expected, for people, null: see what was found",
  };
}
