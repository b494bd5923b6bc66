/**
 * A real terminal for tests: a pty that is the controlling terminal of a new session. Keys are sent
 * as bytes, the screen is everything that was ever printed, and the other side can be taken away as
 * a lost connection does.
 *
 * Refuses to know what runs in it. Always holds: waiting is for a text on the screen or for the
 * end, never for time.
 */
import { afterAll } from "bun:test";
import { constants } from "node:os";
import { readCommandLine, RELEASE, type Scene } from "./scene.ts";
import { waitFor } from "./wait-for.ts";

export const KEY = { interrupt: "\x03", quit: "\x1c", suspend: "\x1a", endOfFile: "\x04" } as const;

export interface TerminalOptions {
  readonly columns?: number;
  readonly rows?: number;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Terminal {
  readonly pid: number;
  /** Everything printed so far, without carriage returns. */
  readonly screen: string;
  type(text: string): void;
  resize(columns: number, rows: number): void;
  /** Waits for a text on the part of the screen that no earlier wait has passed. */
  see(pattern: RegExp): Promise<RegExpExecArray>;
  /** Takes the other side away: the session gets HUP, and every read and write fails. */
  hangUp(): void;
  /** The status as a shell shows it. */
  readonly ended: Promise<number>;
}

/** What a command typed at the prompt has printed, and its status. */
export interface Answer {
  readonly text: string;
  readonly status: number;
}

export interface Shell extends Terminal {
  /** Types a line and waits for the next prompt. */
  ask(line: string): Promise<Answer>;
  /** Types a line and does not wait. */
  begin(line: string): void;
  /** Waits for the next prompt, whatever brought it. */
  prompt(): Promise<Answer>;
}

const WAIT = { limitMs: 20_000 };
/**
 * The prompt tells the status of what ran before it, and no line that a test types looks like it.
 */
const PROMPT = /status=(\d+)> /;

export function openTerminal(
  scene: Scene,
  argv: readonly string[],
  options: TerminalOptions = {},
): Terminal {
  let bytes = "";
  let seenUntil = 0;
  const child = Bun.spawn([...argv], {
    cwd: scene.directory,
    env: { ...scene.env, TERM: "dumb", LC_ALL: "C", W: RELEASE, ...options.env },
    terminal: {
      cols: options.columns ?? 200,
      rows: options.rows ?? 24,
      data: (_terminal, data) => {
        bytes += Buffer.from(data).toString("latin1").replaceAll("\r", "");
      },
    },
  });
  const pty = child.terminal;
  if (pty === undefined) throw new Error("no terminal to be had");
  afterAll(() => pty.close());
  return {
    pid: child.pid,
    get screen() {
      return bytes;
    },
    type: (text) => void pty.write(text),
    resize: (columns, rows) => pty.resize(columns, rows),
    hangUp: () => pty.close(),
    see: async (pattern) => {
      const look = () => pattern.exec(bytes.slice(seenUntil)) ?? undefined;
      const found = await waitFor(look, `${String(pattern)} on the screen`, WAIT).catch(
        (error: unknown) => {
          throw new Error(`the screen shows ${JSON.stringify(bytes)}`, { cause: error });
        },
      );
      seenUntil += found.index + found[0].length;
      return found;
    },
    ended: child.exited.then(() => child.exitCode ?? 128 + signalNumber(child.signalCode)),
  };
}

const SIGNALS: Readonly<Record<string, number>> = constants.signals;

/** Bun names a signal if it knows a name, and gives the number otherwise. */
function signalNumber(signal: string | number | null): number {
  return SIGNALS[String(signal)] ?? Number(signal);
}

/** An interactive bash with job control; `$W` is the binary under test. */
export async function openShell(scene: Scene, options: TerminalOptions = {}): Promise<Shell> {
  const argv = ["bash", "--norc", "--noprofile", "-i"];
  const env = { PS1: "status=$?> ", HISTFILE: "", INPUTRC: "/dev/null", ...options.env };
  const terminal = openTerminal(scene, argv, { ...options, env });
  const prompt = async (): Promise<Answer> => {
    const from = terminal.screen.length;
    const found = await terminal.see(PROMPT);
    return { text: terminal.screen.slice(from), status: Number(found[1]) };
  };
  await prompt();
  const shell = makeShell(terminal, prompt);
  // At a key the kernel signals first and then throws away what is on its way to the screen
  // (termios(3), NOFLSH; n_tty.c, isig): the answer of a quick command would be lost with it.
  await shell.ask("stty noflsh");
  return shell;
}

function makeShell(terminal: Terminal, prompt: () => Promise<Answer>): Shell {
  const begin = (line: string): void => terminal.type(`${line}\n`);
  return {
    pid: terminal.pid,
    get screen() {
      return terminal.screen;
    },
    type: terminal.type,
    resize: terminal.resize,
    see: terminal.see,
    hangUp: terminal.hangUp,
    ended: terminal.ended,
    begin,
    prompt,
    ask: (line) => {
      const answer = prompt();
      begin(line);
      return answer.then(({ text, status }) => ({ text: afterEcho(text, line), status }));
    },
  };
}

/** Only what came after the line itself and before the prompt. */
function afterEcho(text: string, line: string): string {
  const at = text.indexOf(line);
  const after = at === -1 ? text : text.slice(at + line.length);
  return after.replace(/^\n/, "").split(PROMPT)[0] ?? "";
}

/** Living processes of the scene with exactly this command line. */
export function findCommands(scene: Scene, commandLine: string): number[] {
  return scene.findProcesses().filter((pid) => readCommandLine(pid) === commandLine);
}
