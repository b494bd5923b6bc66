/**
 * An HTTP server of the test's own on loopback, which notes when each request came and answers as
 * it is told to. It never goes away, so that it can count what is sent to a dependency that is
 * down: down is the status 500.
 */
import { afterAll } from "bun:test";

/**
 * Called once, at the top of a file: what opens servers, which are closed when the file has ended.
 */
export function openServers(): () => CountingServer {
  const servers: CountingServer[] = [];
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.close()));
  });
  return () => {
    const server = new CountingServer();
    servers.push(server);
    return server;
  };
}

export class CountingServer {
  /** Of `performance.now()`, one for each request, in order. */
  readonly times: number[] = [];
  /** Before it answers. */
  delayMs = 0;
  #status = 200;
  #upFrom = Infinity;
  #downFrom = Infinity;
  #held: PromiseWithResolvers<void> | undefined;
  readonly #server: Bun.Server<undefined>;

  constructor() {
    this.#server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      idleTimeout: 0,
      fetch: () => this.#answer(),
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/health`;
  }

  get count(): number {
    return this.times.length;
  }

  countFrom(at: number): number {
    return this.times.filter((time) => time >= at).length;
  }

  /** @returns when, for countFrom */
  goDown(): number {
    this.#status = 500;
    return performance.now();
  }

  goUp(): number {
    this.#status = 200;
    this.#downFrom = Infinity;
    return performance.now();
  }

  /** Down, but for the request with this number and all later ones. */
  comeUpAt(number: number): void {
    this.#status = 500;
    this.#upFrom = number;
  }

  /** Up, but for the request with this number and all later ones. */
  goDownAt(number: number): void {
    this.#downFrom = number;
  }

  /** From now on requests come in and wait. @returns lets them, and all later ones, be answered */
  hold(): () => void {
    const held = Promise.withResolvers<void>();
    this.#held = held;
    return () => {
      this.#held = undefined;
      held.resolve();
    };
  }

  async #answer(): Promise<Response> {
    const number = this.times.push(performance.now());
    await this.#held?.promise;
    if (this.delayMs > 0) await Bun.sleep(this.delayMs);
    const isUp = this.#status === 200 ? number < this.#downFrom : number >= this.#upFrom;
    const status = isUp ? 200 : 500;
    return new Response(isUp ? "well" : "down", { status });
  }

  async close(): Promise<void> {
    this.#held?.resolve();
    await this.#server.stop(true);
  }
}
