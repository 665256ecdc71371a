import { ApiError } from "./api.ts";
import { words } from "./strings.ts";

/** How long something may take before the page says that it is at work. Under the 0.5 s after which people wonder. */
const SLOW_MS = 400;

/** Something that was asked for and is not answered yet: whether it runs, whether it takes long, and how it failed. */
export class Task {
  busy = $state(false);
  slow = $state(false);
  error = $state<string | null>(null);
  #runs = 0;

  /** Runs `work`; its error is kept in `error` and `undefined` is returned. */
  async run<T>(work: () => Promise<T>): Promise<T | undefined> {
    const run = ++this.#runs;
    this.busy = true;
    this.error = null;
    const timer = setTimeout(() => (this.slow = true), SLOW_MS);
    try {
      return await work();
    } catch (error) {
      if (run === this.#runs) this.error = messageOf(error);
      return undefined;
    } finally {
      clearTimeout(timer);
      if (run === this.#runs) this.busy = this.slow = false;
    }
  }

  dismiss(): void {
    this.error = null;
  }
}

/** A value that is fetched: kept while it is fetched again, so that a page does not blink. */
export class Fetched<T> extends Task {
  value = $state.raw<T | null>(null);
  readonly #fetch: () => Promise<T>;
  #loads = 0;

  constructor(fetch: () => Promise<T>) {
    super();
    this.#fetch = fetch;
  }

  async load(): Promise<void> {
    const load = ++this.#loads;
    await this.run(async () => {
      const value = await this.#fetch();
      if (load === this.#loads) this.value = value;
    });
  }
}

export function messageOf(error: unknown): string {
  return error instanceof ApiError ? error.message : words.errors.unknown;
}
