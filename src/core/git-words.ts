/**
 * Git's own words, as far as a hook must understand them: whether a command line of git asks for
 * its hooks to be passed by, and whether a transaction of refs is one that matters. Pure.
 *
 * Always: what is not understood is not taken for a wish to pass by.
 */

/** Options of git itself, before its command, whose value is the next word (git(1)). */
const GLOBAL_WITH_VALUE: ReadonlySet<string> = new Set([
  "-C",
  "-c",
  "--git-dir",
  "--work-tree",
  "--namespace",
  "--super-prefix",
  "--config-env",
  "--exec-path",
  "--attr-source",
]);

interface CommandOptions {
  /** Letters that take a value: it is the rest of the word, or else the next word. */
  readonly lettersWithValue: string;
  readonly namesWithValue: readonly string[];
  /** `-n` is short for `--no-verify`. */
  readonly hasLetter: boolean;
}

const OF_PICKING = { lettersWithValue: "mFsSX", hasLetter: false };

/** The commands that know `--no-verify`, after their manuals. */
const COMMANDS: Readonly<Record<string, CommandOptions>> = {
  commit: {
    lettersWithValue: "mFcCt",
    namesWithValue: (
      "message file author date reuse-message reedit-message fixup squash template cleanup " +
      "trailer pathspec-from-file"
    ).split(" "),
    hasLetter: true,
  },
  am: {
    lettersWithValue: "Cp",
    namesWithValue: ["directory", "exclude", "include", "patch-format", "whitespace"],
    hasLetter: true,
  },
  merge: { ...OF_PICKING, namesWithValue: ["message", "file", "strategy", "strategy-option"] },
  pull: { ...OF_PICKING, namesWithValue: ["strategy", "strategy-option", "upload-pack"] },
  rebase: {
    lettersWithValue: "sXxC",
    namesWithValue: ["onto", "exec", "strategy", "strategy-option", "whitespace"],
    hasLetter: false,
  },
  push: {
    lettersWithValue: "o",
    namesWithValue: ["repo", "receive-pack", "exec", "push-option"],
    hasLetter: false,
  },
};

/** Letters whose value, if any, is the rest of the word and never the next one. */
const ATTACHED_ONLY = "uS";

/** Whether a process is git: `git`, `/usr/lib/git-core/git`, `git-commit`. */
export function isGit(argv: readonly string[]): boolean {
  return /^git(-[a-z-]+)?$/.test(baseName(argv[0] ?? ""));
}

/** Whether a command line of git says `--no-verify`; the last word about it counts. */
export function skipsVerify(argv: readonly string[]): boolean {
  const found = findCommand(argv);
  const options = found === undefined ? undefined : COMMANDS[found.command];
  if (found === undefined || options === undefined) return false;
  let isSkipped = false;
  const words = argv.slice(found.next);
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? "";
    if (word === "--" || word === "--end-of-options") break;
    const read = word.startsWith("--") ? readLong(word, options) : readShort(word, options);
    if (read.says !== undefined) isSkipped = read.says;
    if (read.takesNext) at += 1;
  }
  return isSkipped;
}

function findCommand(argv: readonly string[]): { command: string; next: number } | undefined {
  const own = /^git-([a-z-]+)$/.exec(baseName(argv[0] ?? ""))?.[1];
  if (own !== undefined) return { command: own, next: 1 };
  for (let at = 1; at < argv.length; at += 1) {
    const word = argv[at] ?? "";
    if (!word.startsWith("-")) return { command: word, next: at + 1 };
    if (GLOBAL_WITH_VALUE.has(word)) at += 1;
  }
  return undefined;
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

interface ReadWord {
  /** True: pass the hooks by. False: do not. Undefined: it is about something else. */
  readonly says?: boolean;
  readonly takesNext: boolean;
}

/** Git takes the beginning of a name where it is the only one; shorter ones may be `--no-verb…`. */
const SHORTEST_NO_VERIFY = "--no-veri";
const SHORTEST_VERIFY = "--veri";

function readLong(word: string, options: CommandOptions): ReadWord {
  if (isBeginning(word, "--no-verify", SHORTEST_NO_VERIFY)) return { says: true, takesNext: false };
  if (isBeginning(word, "--verify", SHORTEST_VERIFY)) return { says: false, takesNext: false };
  return { takesNext: options.namesWithValue.includes(word.slice(2)) };
}

function isBeginning(word: string, name: string, shortest: string): boolean {
  return word.length >= shortest.length && name.startsWith(word);
}

/** `-nm text`, `-mn`: a value ends what is a cluster of letters. */
function readShort(word: string, options: CommandOptions): ReadWord {
  if (!word.startsWith("-")) return { takesNext: false };
  let says: boolean | undefined;
  for (let at = 1; at < word.length; at += 1) {
    const letter = word[at] ?? "";
    if (letter === "n" && options.hasLetter) says = true;
    if (ATTACHED_ONLY.includes(letter)) break;
    if (options.lettersWithValue.includes(letter)) {
      return { ...(says === undefined ? {} : { says }), takesNext: at === word.length - 1 };
    }
  }
  return { ...(says === undefined ? {} : { says }), takesNext: false };
}

/**
 * Whether a transaction (githooks(5), reference-transaction: lines of old, new and name) moves a
 * branch or HEAD. Remote-tracking branches, tags and refs of tools are nobody's checkout.
 */
export function movesBranch(lines: string): boolean {
  return lines.split("\n").some((line) => {
    const name = line.split(" ").slice(2).join(" ");
    return name === "HEAD" || name.startsWith("refs/heads/");
  });
}
