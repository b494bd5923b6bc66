/** The lock of a circuit without a file, for processes of which each has a pid of its own. */
import type { ProberLock } from "../../src/circuit/place.ts";

/** One lock; a number is the pid that holds it. */
export class FakeLock {
  holder: number | undefined;
  /** From one who gave no sign. */
  takeovers = 0;
  /** Happens right before somebody asks for it. */
  onTry: () => void = () => undefined;
  /** The file cannot be had. */
  trouble: string | undefined;

  of(pid: number): ProberLock {
    let seen: number | undefined;
    const isOurs = (): boolean => this.holder === pid;
    const isOthers = (): boolean => this.holder !== undefined && this.holder !== pid;
    return {
      tryLock: () => {
        this.onTry();
        if (this.trouble !== undefined) return { kind: "unusable", reason: this.trouble };
        if (isOthers()) seen = this.holder;
        if (isOthers()) return "busy";
        this.holder = pid;
        return "locked";
      },
      get isLocked() {
        return isOurs();
      },
      get other() {
        return seen === undefined ? undefined : String(seen);
      },
      takeFromOther: () => {
        if (this.holder !== seen) return "busy";
        this.holder = pid;
        this.takeovers += 1;
        return "locked";
      },
      unlock: () => {
        if (isOurs()) this.holder = undefined;
      },
      watchUse: () => ({ isInUse: isOthers(), release: () => undefined }),
    };
  }
}
