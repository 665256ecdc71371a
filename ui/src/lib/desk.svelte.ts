import { call, on } from "./api.ts";
import type { Settings, Snapshot } from "./contract.ts";
import { showAppearance } from "./appearance.ts";
import { Fetched } from "./task.svelte.ts";

/** What the Rust side says is so. Pages show this and nothing that they hope for. */
export class Desk {
  readonly snapshot = new Fetched<Snapshot>(() => call("snapshot"));
  readonly settings = new Fetched<Settings>(() => call("settings"));
  /** When the snapshot arrived, on `performance.now()`'s clock: its seconds count from then. */
  snapshotAt = $state(0);
  #fetching = false;
  #again = false;
  #lastWrite: Promise<unknown> = Promise.resolve();

  /** Follows the events until the returned function is called. */
  follow(): () => void {
    void this.refresh();
    void this.loadSettings();
    const refresh = () => void this.refresh();
    return on("state", refresh, refresh);
  }

  /** Fetches the snapshot. Many calls at once make at most one more fetch after the one in flight. */
  async refresh(): Promise<void> {
    if (this.#fetching) {
      this.#again = true;
      return;
    }
    this.#fetching = true;
    do {
      this.#again = false;
      await this.snapshot.load();
      this.snapshotAt = performance.now();
    } while (this.#again);
    this.#fetching = false;
  }

  async loadSettings(): Promise<void> {
    await this.settings.load();
    if (this.settings.value) showAppearance(this.settings.value.appearance);
  }

  /** Runs a command and then shows what became of it. */
  async act(command: () => Promise<unknown>): Promise<void> {
    try {
      await command();
    } finally {
      await this.refresh();
    }
  }

  /**
   * Changes a setting. `next` sees the settings as the write before left them, so that two quick changes of one list do not
   * undo each other.
   */
  async set(key: string, next: (settings: Settings) => unknown): Promise<void> {
    await this.#write(() => {
      const settings = this.settings.value;
      if (!settings) throw new Error("the settings are not loaded");
      return call("setting_set", { key, value: next(settings) });
    });
  }

  async removeRule(index: number): Promise<void> {
    await this.#write(() => call("rule_remove", { index }));
  }

  async #write(write: () => Promise<Settings>): Promise<void> {
    const mine = this.#lastWrite.then(write, write);
    this.#lastWrite = mine;
    const settings = await mine;
    this.settings.value = settings;
    showAppearance(settings.appearance);
  }

  isOverridden(key: string): boolean {
    return this.settings.value?.overridden.includes(key) ?? false;
  }
}
