/**
 * The sentences of the help that no table holds: what each command is for, and examples.
 *
 * Renders nothing. Always: each example is a line that can be pasted, and a test cuts it.
 */

import type { HelpTopic } from "./command-line.ts";

export interface HelpText {
  readonly sentence: string;
  readonly notes: readonly string[];
  readonly examples: readonly string[];
}

export const HELP_TEXT: Readonly<Record<HelpTopic, HelpText>> = {
  watchdog: {
    sentence:
      "Stands in front of a command: passes its output and exit status through, holds " +
      "it to limits, and leaves nothing of it behind.",
    notes: [],
    examples: [
      "watchdog run --timeout 2h -- ./nightly-backup.sh",
      "watchdog run --quiet --not-after 06:00 -- tar -czf /backup/srv.tgz /srv",
      "watchdog help run",
    ],
  },
  run: {
    sentence:
      "Runs a command as if watchdog were not there, holds it to its limits, and ends " +
      "what it leaves behind.",
    notes: [
      "Options end at -- or at the first word that is no option: nothing of the command " +
        "is read as one of watchdog's. A flag beats its variable, the last of two equal " +
        "flags wins, an empty variable counts as not set.",
      "Spans: 500ms 5s 2m 1h30m 1d; a bare number is seconds. Sizes: 4096 64KiB 10MiB 1GB.",
    ],
    examples: [
      "watchdog run --timeout 2h --kill-after 30s -- ./nightly-backup.sh",
      "watchdog run --quiet --not-after 06:00 -- tar -czf /backup/srv.tgz /srv",
      "watchdog run --idle-timeout 30m --result-file result.json -- make test",
    ],
  },
  keep: {
    sentence:
      "Starts a command in a session of its own, registers it with the run around it as " +
      "meant to outlive it, and returns at once.",
    notes: [
      "For use inside a command that watchdog runs: what is kept is neither ended with " +
        "the run nor waited for, and the run's record names it.",
    ],
    examples: [
      "watchdog keep -- redis-server --port 7000",
      "watchdog keep --output server.log -- python3 -m http.server",
      "watchdog run -- sh -c 'watchdog keep -- redis-server; ./fill-cache.sh'",
    ],
  },
};
