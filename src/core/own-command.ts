/**
 * Lines of watchdog's own that a person pastes: with the state directory and the configuration that
 * the line before had, or the pasted one would look into another place. Pure text.
 *
 * Always: a line that names a place already stays as it is, and so does one that has none to name
 * (`--help`); what a shell reads back is exactly what was meant.
 */
import { unprintable } from "./printable.ts";

/** Commands that take `--state-dir` and `--config`; of some the second word belongs to the name. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  run: [],
  keep: [],
  status: [],
  history: [],
  logs: [],
  why: [],
  report: [],
  patrol: [],
  stop: [],
  repair: [],
  doctor: [],
  lease: ["list", "show", "explain"],
  config: ["show", "check"],
  retry: [],
  probe: [],
  circuit: ["list", "show", "reset"],
  fence: ["git-push", "install-git-hooks"],
  notify: ["list", "test", "flush", "drop"],
  job: ["run", "resume", "plan", "status", "verify", "schema"],
};
const PLACES = ["--state-dir", "--config"];
/** As it stands in a sentence of ours, too: `watchdog lease list`. */
const OWN_LINE = /\bwatchdog ([a-z]+)(?: ([a-z-]+))?/;

/**
 * What of the words of a line says where: `--state-dir DIR`, `--config FILE`, with their values.
 * @param end  the first word that is no option of watchdog's own any more
 */
export function placeWordsOf(words: readonly string[], end: number = words.length): string[] {
  const own = words.slice(0, end);
  return own.flatMap((word, index) => {
    const [flag = ""] = word.split("=", 1);
    if (!PLACES.includes(flag)) return [];
    if (word !== flag) return [flag, word.slice(flag.length + 1)];
    const value = own[index + 1];
    return value === undefined ? [] : [flag, value];
  });
}

/** The first command of watchdog's in a sentence, told with its place. */
export function addPlace(text: string, place: readonly string[]): string {
  const words = quoteForShell(place);
  if (place.length === 0 || words === undefined) return text;
  if (PLACES.some((flag) => text.includes(`${flag} `))) return text;
  return text.replace(OWN_LINE, (all, command: string, second: string | undefined) => {
    const more = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined;
    if (more === undefined) return all;
    const isOfName = second !== undefined && more.includes(second);
    const name = isOfName || second === undefined ? all : all.slice(0, -second.length - 1);
    return `${name} ${words}${all.slice(name.length)}`;
  });
}

/**
 * One line that any POSIX shell splits into exactly these words, or undefined where that cannot be
 * shown: an unprintable character, or one that stands for bytes that were lost.
 */
export function quoteForShell(words: readonly string[]): string | undefined {
  const quoted = words.map((word) => {
    // A leading `=` is a look-up in zsh.
    if (/^[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+=:,./-]*$/.test(word)) return word;
    return `'${word.replaceAll("'", "'\\''")}'`;
  });
  const line = quoted.join(" ");
  return unprintable().test(line) || line.includes("\uFFFD") ? undefined : line;
}
