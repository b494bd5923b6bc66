/**
 * A terminal as a screen that is drawn over and over, with keys that come without Enter
 * (termios(3), console_codes(4)). Knows nothing of what is drawn.
 *
 * Always: what it changes (settings, the alternate screen, the cursor) is given back by `leave`,
 * which may be called at any time and more than once; signals of keys (Ctrl-C, Ctrl-Z) stay
 * signals. The terminal is opened anew, so that no descriptor of the caller's becomes non-blocking;
 * a terminal that takes nothing (Ctrl-S) holds nobody up: a picture that has no room is left out.
 * State after a crash: a terminal without echo; `reset` helps, as after any such program.
 */
import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { POLLOUT, sys } from "./sys.ts";

/** `struct termios` of the kernel (asm-generic/termbits.h): four flags, the line, 19 keys. */
const TERMIOS_BYTES = 64;
const LOCAL_FLAGS_AT = 12;
const KEYS_AT = 17;
const VTIME = 5;
const VMIN = 6;
const ICANON = 0o2;
const ECHO = 0o10;

const ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE = "\x1b[?25h\x1b[?1049l";
const HOME = "\x1b[H";
const END_LINE = "\x1b[K";
const CLEAR_BELOW = "\x1b[J";
/** For the last word of a screen to a terminal that takes nothing. */
const LEAVE_MS = 200;
const MOST_KEYS = 64;
const STDOUT = 1;

export interface ScreenSize {
  readonly columns: number;
  readonly rows: number;
}

const USUAL_SIZE: ScreenSize = { columns: 80, rows: 24 };

/** Of the terminal that an answer goes to; undefined: it goes to none. */
export function readScreenSize(): ScreenSize | undefined {
  const size = new Uint16Array(4);
  if (!sys.isTerminal(STDOUT) || sys.windowSize(STDOUT, size) < 0) return undefined;
  const [rows = 0, columns = 0] = size;
  return rows > 0 && columns > 0 ? { rows, columns } : USUAL_SIZE;
}

export class Screen {
  readonly #fd: number;
  readonly #before: Uint8Array;
  #isEntered = false;
  #rest: Uint8Array = new Uint8Array();

  private constructor(fd: number, before: Uint8Array) {
    this.#fd = fd;
    this.#before = before;
  }

  /** The terminal of the session; undefined: there is none, or it cannot be drawn on. */
  static open(): Screen | undefined {
    let fd: number;
    try {
      fd = openSync("/dev/tty", constants.O_RDWR | constants.O_NOCTTY | constants.O_NONBLOCK);
    } catch {
      return undefined; // ENXIO: no controlling terminal. EIO: it was hung up
    }
    const before = new Uint8Array(TERMIOS_BYTES);
    if (sys.terminalSettings(fd, before) >= 0) return new Screen(fd, before);
    closeSync(fd);
    return undefined;
  }

  /** Also after a stop: somebody else has had the terminal meanwhile. */
  enter(): void {
    const settings = this.#before.slice();
    const view = new DataView(settings.buffer);
    const flags = view.getUint32(LOCAL_FLAGS_AT, true);
    view.setUint32(LOCAL_FLAGS_AT, flags & ~(ICANON | ECHO), true);
    settings[KEYS_AT + VMIN] = 1;
    settings[KEYS_AT + VTIME] = 0;
    sys.setTerminalSettings(this.#fd, settings);
    this.#isEntered = true;
    this.#rest = new Uint8Array();
    this.#write(ENTER);
  }

  /** Safe to repeat, and where the terminal is gone. */
  leave(): void {
    if (!this.#isEntered) return;
    this.#isEntered = false;
    this.#write(LEAVE);
    if (this.#rest.length > 0 && sys.poll([[this.#fd, POLLOUT]], LEAVE_MS, []) > 0) this.#flush();
    sys.setTerminalSettings(this.#fd, this.#before);
  }

  close(): void {
    this.leave();
    closeSync(this.#fd);
  }

  size(): ScreenSize {
    const size = new Uint16Array(4);
    if (sys.windowSize(this.#fd, size) < 0) return USUAL_SIZE;
    const [rows = 0, columns = 0] = size;
    return rows > 0 && columns > 0 ? { rows, columns } : USUAL_SIZE;
  }

  /**
   * Draws over what is there.
   * @param lines  at most as many as there are rows, none longer than there are columns
   */
  draw(lines: readonly string[]): void {
    if (!this.#isEntered || !this.#flush()) return;
    const text = lines.map((line) => `${line}${END_LINE}`).join("\r\n");
    this.#write(`${HOME}${text}${CLEAR_BELOW}`);
  }

  /** What was typed since the last call; undefined: the terminal is gone. */
  keys(): string | undefined {
    const bytes = new Uint8Array(MOST_KEYS);
    try {
      const count = readSync(this.#fd, bytes);
      return count === 0 ? undefined : Buffer.from(bytes.subarray(0, count)).toString("latin1");
    } catch (error) {
      return isAgain(error) ? "" : undefined; // EIO: hung up
    }
  }

  #write(text: string): void {
    this.#rest = Buffer.concat([this.#rest, Buffer.from(text)]);
    this.#flush();
  }

  /** @returns whether everything is out: half an escape sequence must not stand before another */
  #flush(): boolean {
    while (this.#rest.length > 0) {
      try {
        this.#rest = this.#rest.subarray(writeSync(this.#fd, this.#rest));
      } catch (error) {
        if (!isAgain(error)) this.#rest = new Uint8Array(); // EIO: nobody sees it any more
        return false;
      }
    }
    return true;
  }
}

function isAgain(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EAGAIN";
}
