/**
 * Front door of the heartbeat's thread: wires the loop to its messages and decides nothing.
 *
 * Always: after "stopped" it touches no file, and nothing keeps it alive.
 */
import type { BeatEvent } from "./events.ts";
import { beatFiles } from "./files.ts";
import { BeatLoop, type BeatTask } from "./loop.ts";

/** To the thread. */
export type BeatOrder =
  BeatTask | { readonly kind: "beat-now" | "show-now" } | { readonly kind: "stop" };
/** From it. */
export type BeatReport = BeatEvent | { readonly kind: "stopped" };

declare const self: {
  onmessage: ((event: MessageEvent<BeatOrder>) => void) | null;
  postMessage(report: BeatReport): void;
};

let loop: BeatLoop | undefined;

self.onmessage = ({ data: order }) => {
  switch (order.kind) {
    case "start":
      loop = new BeatLoop(order, beatFiles, (event) => self.postMessage(event));
      return loop.start();
    case "beat-now":
      return loop?.beatNow();
    case "show-now":
      return loop?.showNow();
    case "stop":
      loop?.stop();
      self.onmessage = null;
      return self.postMessage({ kind: "stopped" });
  }
};
