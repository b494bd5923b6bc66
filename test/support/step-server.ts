/**
 * A server outside of a job, to which its steps tell that they begin and that they have done their
 * work, and the judge of what it has heard. Knows nothing of the journal.
 */
export interface Heard {
  readonly job: string;
  readonly step: string;
  readonly event: "begins" | "works";
}

export interface StepServer {
  readonly port: number;
  /** In the order in which it came. */
  heardOf(job: string): Heard[];
  close(): Promise<void>;
}

export function serveSteps(): StepServer {
  const heard: Heard[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) => {
      const [job = "", step = "", event = ""] = new URL(url).pathname.slice(1).split("/");
      heard.push({ job, step, event: event as Heard["event"] });
      return new Response("heard");
    },
  });
  return {
    port: server.port ?? 0,
    heardOf: (job) => heard.filter((one) => one.job === job),
    close: () => server.stop(true),
  };
}

export function countWork(heard: readonly Heard[], step: string): number {
  return heard.filter((one) => one.step === step && one.event === "works").length;
}

export interface JudgedStep {
  readonly name: string;
  readonly needs: readonly string[];
  readonly effects: "none" | "unsafe";
}

/** What must never have been heard, each in a line; nothing: all is well. */
export function judge(heard: readonly Heard[], steps: readonly JudgedStep[]): string[] {
  const last = new Map<string, Heard["event"]>();
  const needs = new Map(steps.map((step) => [step.name, step.needs]));
  const wrong: string[] = [];
  for (const { step, event } of heard) {
    const missing = (needs.get(step) ?? []).filter((need) => last.get(need) !== "works");
    if (event === "begins" && missing.length > 0) wrong.push(`${step} before ${missing.join()}`);
    last.set(step, event);
  }
  for (const { name, effects } of steps) {
    const count = countWork(heard, name);
    if (count === 0) wrong.push(`${name} never`);
    if (effects === "unsafe" && count > 1) wrong.push(`${name} ${count} times`);
  }
  return wrong;
}
