/**
 * Front door of a scan Worker: one patient look over all processes, which may hang with the process
 * that it reads; where it is asked for those at work in a checkout, at their places too. Decides
 * nothing, signals nobody.
 *
 * Always: the last message is `whole`; a `doubtful` one before it is as good as a look that passes
 * over the processes in state D.
 */
import { pauseThread } from "../os/timers.ts";
import type { ScanMessage, ScanOrder } from "./scan-handle.ts";
import { scanPatiently, type ScanResult } from "./scan.ts";
import { addPlaces } from "./worktree-places.ts";

declare const self: {
  onmessage: ((event: MessageEvent<ScanOrder>) => void) | null;
  postMessage(message: ScanMessage): void;
};

self.onmessage = ({ data: order }) => {
  self.onmessage = null;
  const tell = (kind: ScanMessage["kind"], processes: ScanResult): void =>
    self.postMessage({ kind, result: order === "scan" ? processes : addPlaces(processes, order) });
  const onDoubtful = (sofar: ScanResult): void => tell("doubtful", sofar);
  tell("whole", scanPatiently({ pause: pauseThread, onDoubtful }));
};
