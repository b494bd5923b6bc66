/**
 * The sentences of the help that no table holds: what each command is for, and examples.
 *
 * Renders nothing. Always: each example is a line that can be pasted, and a test cuts it.
 */

import type { HelpTopic } from "./cut.ts";
import { JOB_HELP_TEXT } from "./help-text-job.ts";
import { RUNS_HELP_TEXT } from "./help-text-runs.ts";
import { type HelpText, ANSWERED, UNANSWERED, WRONG_LINE, WRONG_PLACE } from "./help-words.ts";

export const HELP_TEXT: Readonly<Record<HelpTopic, HelpText>> = {
  watchdog: {
    sentence:
      "Stands in front of a command: runs it once at a time, passes its output and exit " +
      "status through, holds it to limits, and leaves nothing of it behind.",
    notes: [],
    examples: [
      "watchdog run --timeout 2h -- ./nightly-backup.sh",
      "watchdog run --quiet --not-after 06:00 -- tar -czf /backup/srv.tgz /srv",
      "watchdog help run",
    ],
  },
  run: {
    sentence:
      "Runs a command as if watchdog were not there, one run of a name at a time, holds it " +
      "to its limits, and ends what it leaves behind.",
    notes: [
      "Every run takes the lease of its name, job:NAME, and of each key that is given. The " +
        "lease of a living run is never taken away; that of a dead one needs nobody to clear it.",
      "Options end at -- or at the first word that is no option: nothing of the command " +
        "is read as one of watchdog's. A flag beats its variable, the last of two equal " +
        "flags wins (but those of which there may be more add up), an empty variable counts as " +
        "not set.",
      "Spans: 500ms 5s 2m 1h30m 1d; a bare number is seconds. Sizes: 4096 64KiB 10MiB 1GB.",
      "What is said about probes holds for every --probe and --ready-probe of the line, as far " +
        "as each can use it: what is about HTTP not for tcp://. Circuits are shared by all jobs " +
        "of the state directory: while one is open, nothing that probes it is started.",
    ],
    examples: [
      "watchdog run --timeout 2h --kill-after 30s -- ./nightly-backup.sh",
      "watchdog run --quiet --not-after 06:00 -- tar -czf /backup/srv.tgz /srv",
      "watchdog run --lane gpu --wait 10m --probe tcp://db:5432 -- ./train.sh",
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
    statuses: [
      { status: "0", meaning: "the command was started and registered" },
      { status: "64", meaning: "the command line is wrong; nothing was started" },
      WRONG_PLACE,
      { status: "125", meaning: "the command could not be started or registered" },
      { status: "126, 127", meaning: "as of watchdog run" },
    ],
  },
  fence: {
    sentence:
      "Runs a command only while the run around it holds its leases, and keeps them from being " +
      "granted to anybody else until it has ended.",
    notes: [
      "For use inside a command that watchdog runs, around what must not happen twice: a push, " +
        "a deployment, a write to a shared place. The -- is needed.",
      "Without a command it only checks, and what it says may be over in the next moment.",
      "git-push pushes, and with it a ref refs/watchdog/fence/KIND/NAME that remembers the " +
        "generation: an earlier run cannot push after a later one, not even from elsewhere. " +
        "Without BRANCH it pushes the branch that is checked out.",
      "install-git-hooks is for use outside of a run: from then on git refuses in this checkout " +
        "while a run holds it (--worktree) and git is not part of that run. Hooks that are there " +
        "already stay and are run too.",
    ],
    examples: [
      "watchdog fence --key lane:gpu --timeout 5m -- ./publish.sh",
      "watchdog fence git-push origin main",
      "watchdog fence install-git-hooks .",
    ],
    statuses: [
      { status: "its own", meaning: "that of the command; 0 where there is none and all is well" },
      WRONG_LINE,
      { status: "75", meaning: "the fence was not to be had in time: the lease is being granted" },
      { status: "76", meaning: "the lease is no longer this run's, or there is no run around" },
      WRONG_PLACE,
      { status: "124", meaning: "the command was ended at --timeout" },
      { status: "125", meaning: "the fence could not be used" },
      { status: "126, 127", meaning: "as of watchdog run" },
    ],
  },
  retry: {
    sentence:
      "Runs a command, and again where it fails, with waits that grow, until it succeeds or a " +
      "bound is reached.",
    notes: [
      "For one call inside a script. Its output and input are untouched; the status is that of " +
        "the last attempt. The first attempt gets the standard input, each one with " +
        "--buffer-stdin.",
      "Options end at -- or at the first word that is no option.",
    ],
    examples: [
      "watchdog retry -- curl -fsS http://localhost:8080/items",
      "watchdog retry --max-attempts 3 --attempt-timeout 30s -- ./upload.sh",
      "watchdog retry --breaker inference --retry-on 7,28 -- ./ask-model.sh",
    ],
    statuses: [
      { status: "its own", meaning: "that of the last attempt" },
      WRONG_LINE,
      { status: "69", meaning: "the circuit of --breaker is open; nothing was tried any more" },
      WRONG_PLACE,
      { status: "124", meaning: "the last attempt was ended at --attempt-timeout" },
      { status: "125", meaning: "the command could not be run" },
      { status: "126, 127", meaning: "as of watchdog run" },
    ],
  },
  tick: {
    sentence:
      "Reports from within a run what has become of its items: one line is appended to " +
      "$WATCHDOG_PROGRESS.",
    notes: [
      "Without an option it is one item that went well. With both, those that failed count as " +
        "the last ones.",
      'A script can do the same without a process: echo ok >>"$WATCHDOG_PROGRESS", and in the ' +
        "place of ok: ok 10, fail, fail 3 MESSAGE, total 1800, checkpoint NAME, message TEXT.",
      "A report that cannot be written is told, and is no failure of the job.",
    ],
    examples: [
      "watchdog tick --total 1800",
      "watchdog tick --fail 1 --message timed-out",
      "watchdog tick --checkpoint tables-copied",
    ],
    statuses: [
      { status: "0", meaning: "reported, or told why not" },
      { status: "64", meaning: "the command line is wrong, or there is no run around it" },
    ],
  },
  ...JOB_HELP_TEXT,
  lease: {
    sentence: "Shows leases: who holds which key, since when, and what a newcomer would do.",
    notes: [
      "The verdict is the one that a run which wants the key would come to: free, held, " +
        "stalled, orphaned, dead, elsewhere or unknowable.",
      "lease explain shows what it rests on: each signal as it was read, each rule and what of " +
        "it is not so, and what a newcomer and a repair would do. It changes nothing.",
    ],
    examples: [
      "watchdog lease list",
      "watchdog lease show lane:gpu --json",
      "watchdog lease explain job:nightly-backup",
    ],
    statuses: [
      ANSWERED,
      { status: "1", meaning: "explain: no such lease is known" },
      WRONG_LINE,
      WRONG_PLACE,
      UNANSWERED,
    ],
  },
  circuit: {
    sentence:
      "Shows the circuits of what jobs depend on: which are open, since when and why; or closes " +
      "one by hand.",
    notes: [
      "A circuit opens when a probe or a call has failed too often. All jobs of the state " +
        "directory that use its name share it.",
      "reset closes it and forgets what was counted: the next probe decides anew.",
    ],
    examples: [
      "watchdog circuit list",
      "watchdog circuit show inference --json",
      "watchdog circuit reset inference",
    ],
    statuses: [
      ANSWERED,
      { status: "1", meaning: "show, reset: no such circuit is known" },
      WRONG_LINE,
      WRONG_PLACE,
      UNANSWERED,
    ],
  },
  probe: {
    sentence: "Asks once how a dependency is, as a run would, and tells each stage of the answer.",
    notes: [
      "Nothing is counted: no circuit opens or closes because of it. NAME is that of a table " +
        "[probes.NAME] of the configuration, with its settings.",
    ],
    examples: [
      "watchdog probe http://localhost:8080/health",
      "watchdog probe --probe-expect-json status=ok https://api.example/health",
      "watchdog probe --check --json tcp://db:5432 unix:/run/app.sock:/health",
    ],
    statuses: [
      ANSWERED,
      WRONG_LINE,
      { status: "69", meaning: "--check: not every probe is good" },
      { status: "78", meaning: "a person must change something, such as a file that is not there" },
      UNANSWERED,
    ],
  },
  repair: {
    sentence:
      "Shows what is wrong with leases and how it can be settled, and settles it if told so.",
    notes: [
      "Alone it changes nothing: it shows the evidence about each lease that is neither free nor " +
        "held, the verdict, and each plan with its id.",
      "--apply carries out what hurts no living process. The rest needs --approve with the id of " +
        "its plan. Nothing is deleted, and all of it is written down.",
    ],
    examples: [
      "watchdog repair",
      "watchdog repair --apply lane:gpu",
      "watchdog repair --approve 0a1b2c3d4e job:nightly-backup",
    ],
    statuses: [
      ANSWERED,
      WRONG_LINE,
      { status: "75", meaning: "another repair goes on, or somebody has the lock or the fence" },
      {
        status: "77",
        meaning: "a right, an approval or a person is missing: not all was settled",
      },
      WRONG_PLACE,
      { status: "125", meaning: "the repair could not be carried out or written down" },
    ],
  },
  doctor: {
    sentence: "Proves which promises of watchdog hold on this machine, and what is in their way.",
    notes: [
      "It tries what a run, a takeover and a repair need, as this user and now: locks, files, " +
        "the journal, processes that may be seen and signalled, the guard, variables, the " +
        "configuration, rights. Ask it as the user that cron runs the jobs as.",
      "It leaves nothing behind: where there is no state directory yet, none is made.",
    ],
    examples: [
      "watchdog doctor",
      "watchdog doctor --json",
      "watchdog doctor --state-dir /var/lib/watchdog",
    ],
    statuses: [
      { status: "0", meaning: "nothing was found" },
      { status: "1", meaning: "something was found: a person should look at it" },
      WRONG_LINE,
      UNANSWERED,
    ],
  },
  config: {
    sentence: "Shows the configuration and where each value comes from, or checks it.",
    notes: [
      "Read are /etc/watchdog/config.toml and .config/watchdog/config.toml in the home of the " +
        "user; or else the file of --config, and of the one in /etc only its [policy].",
      "In it: state_dir, state_group, a table [run] with the options of run (idle_timeout for " +
        "--idle-timeout), tables [jobs.NAME] with those of one job, tables [sinks.NAME] with who " +
        "is told of every run (one of webhook, ping, mail and command; shape; events), tables " +
        "[probes.NAME] with the settings of one probe (url, and period for --probe-period) and " +
        "[probes.NAME.startup] with those for the start alone, a table [policy] with the lists " +
        "run, repair and approve. Nothing that is not known is accepted.",
      "A flag beats its variable, a variable beats a file, the user's file beats that of /etc.",
    ],
    examples: [
      "watchdog config show",
      "watchdog config check",
      "watchdog config check --config nightly.toml",
    ],
    statuses: [
      { status: "0", meaning: "shown; or checked, and nothing was found" },
      { status: "1", meaning: "the check found something" },
      WRONG_LINE,
      { status: "78", meaning: "there is nothing to show: a file cannot be accepted" },
      { status: "125", meaning: "the answer could not be written" },
    ],
  },
  ...RUNS_HELP_TEXT,
};
