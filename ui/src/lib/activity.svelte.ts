import { call } from "./api.ts";
import type { ActivityFilter, ActivityRow } from "./contract.ts";
import { messageOf } from "./task.svelte.ts";
import type { Range } from "./windowing.ts";

/** Rows fetched at once, and the grain of the cache. */
export const PAGE_ROWS = 100;
/** Pages kept: those furthest from what is looked at are forgotten first. */
const PAGES_KEPT = 40;
/** Fetches in flight. When one ends, the next is chosen for where the person is then, not for where they scrolled past. */
const FETCHES = 2;

interface CachedPage {
  rows: ActivityRow[];
  /** The summary under which it was fetched. */
  generation: number;
  stale: boolean;
}

/** How the source of rows is asked; the Rust side but for tests. */
export interface ActivitySource {
  summary(filter: ActivityFilter): Promise<{ total: number; sessions: string[] }>;
  rows(filter: ActivityFilter, offset: number, limit: number): Promise<ActivityRow[]>;
}

const rust: ActivitySource = {
  summary: (filter) => call("activity_summary", { filter }),
  rows: (filter, offset, limit) => call("activity_rows", { filter, offset, limit }),
};

/**
 * The log as a list of any length, of which only what is looked at is here.
 *
 * A row's place from the newest changes with every record added; its *age* (0 is the oldest that matches) does not. Pages are
 * cached by age, so that they stay right while the log grows. Between a summary and an answer with rows a record may have
 * been added, which shifts the answer: pages fetched under a summary that proves outdated are fetched again.
 */
export class ActivityList {
  total = $state(0);
  sessions = $state.raw<string[]>([]);
  filter = $state.raw<ActivityFilter>({ session_id: null, kind: null });
  /** False until the first summary for this filter is here. */
  ready = $state(false);
  error = $state<string | null>(null);
  #version = $state(0);
  // Plain on purpose: the list is read by place, and `#version` says when any place changed.
  /* eslint-disable svelte/prefer-svelte-reactivity */
  #pages = new Map<number, CachedPage>();
  #fetching = new Set<number>();
  /* eslint-enable svelte/prefer-svelte-reactivity */
  #generation = 0;
  #epoch = 0;
  #missedAt = -1;
  #wanted: Range = { first: 0, last: 0 };
  #refreshing: Promise<number> | null = null;
  #again = false;
  readonly #source: ActivitySource;

  constructor(source: ActivitySource = rust) {
    this.#source = source;
  }

  /** The row at this place from the newest; undefined while it is not here yet. */
  row(index: number): ActivityRow | undefined {
    void this.#version;
    const age = this.ageOf(index);
    return this.#pages.get(Math.floor(age / PAGE_ROWS))?.rows[age % PAGE_ROWS];
  }

  ageOf(index: number): number {
    return this.total - 1 - index;
  }

  indexOf(age: number): number {
    return this.total - 1 - age;
  }

  async setFilter(filter: ActivityFilter): Promise<void> {
    this.filter = filter;
    this.ready = false;
    this.#forget();
    await this.refresh();
  }

  /** Asks how long the list is now. Answers by how many rows it grew at its newest end. */
  refresh(): Promise<number> {
    if (this.#refreshing) {
      this.#again = true;
      return this.#refreshing;
    }
    this.#refreshing = this.#refreshAll().finally(() => (this.#refreshing = null));
    return this.#refreshing;
  }

  /** These places are looked at: fetches what is not here. */
  want(range: Range): void {
    this.#wanted = range;
    this.#fetchNext();
  }

  async retry(): Promise<void> {
    this.error = null;
    await this.refresh();
  }

  async #refreshAll(): Promise<number> {
    let grown = 0;
    do {
      this.#again = false;
      grown += await this.#refreshOnce();
    } while (this.#again);
    return grown;
  }

  async #refreshOnce(): Promise<number> {
    const epoch = this.#epoch;
    try {
      const { total, sessions } = await this.#source.summary(this.filter);
      if (epoch !== this.#epoch) {
        this.#again = true;
        return 0;
      }
      const grown = this.ready ? total - this.total : 0;
      if (grown < 0) this.#forget();
      if (grown > 0) this.#doubt();
      if (this.filter.session_id === null && this.filter.kind === null) this.sessions = sessions;
      this.#generation += 1;
      this.total = total;
      this.ready = true;
      this.error = null;
      this.#fetchNext();
      return Math.max(0, grown);
    } catch (error) {
      this.error = messageOf(error);
      return 0;
    }
  }

  /** Everything fetched so far is for another list. */
  #forget(): void {
    this.#epoch += 1;
    this.#pages.clear();
    this.#fetching.clear();
    this.#version += 1;
  }

  /** The list had grown: what was fetched since the last summary may be shifted. */
  #doubt(): void {
    for (const page of this.#pages.values()) if (page.generation === this.#generation) page.stale = true;
  }

  #fetchNext(): void {
    if (!this.ready || this.error !== null) return;
    while (this.#fetching.size < FETCHES) {
      const next = this.#wantedPages().find((page) => !this.#fetching.has(page) && !this.#isComplete(page));
      if (next === undefined) return;
      void this.#fetch(next);
    }
  }

  /** From the middle of what is looked at outwards. */
  #wantedPages(): number[] {
    const { first, last } = this.#wanted;
    if (this.total === 0 || last <= first) return [];
    const newest = Math.floor(Math.max(0, this.ageOf(first)) / PAGE_ROWS);
    const oldest = Math.floor(Math.max(0, this.ageOf(Math.min(last, this.total) - 1)) / PAGE_ROWS);
    const middle = (newest + oldest) / 2;
    const pages = Array.from({ length: newest - oldest + 1 }, (_, i) => oldest + i);
    return pages.sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle));
  }

  #isComplete(page: number): boolean {
    const cached = this.#pages.get(page);
    if (cached === undefined || cached.stale) return false;
    // A page that was answered short under this summary would be short again: the next summary says what is so.
    return cached.rows.length >= this.#rowsIn(page) || cached.generation === this.#generation;
  }

  #rowsIn(page: number): number {
    return Math.min(PAGE_ROWS, this.total - page * PAGE_ROWS);
  }

  async #fetch(page: number): Promise<void> {
    const epoch = this.#epoch;
    const generation = this.#generation;
    const limit = this.#rowsIn(page);
    const offset = this.total - page * PAGE_ROWS - limit;
    this.#fetching.add(page);
    try {
      const rows = await this.#source.rows(this.filter, offset, limit);
      if (epoch !== this.#epoch) return;
      // An answer that crossed a summary is for one list or the other: it is asked for again.
      if (generation === this.#generation) this.#keep(page, [...rows].reverse(), generation);
      if (rows.length < limit) this.#missed();
    } catch (error) {
      if (epoch === this.#epoch) this.error = messageOf(error);
    }
    if (epoch !== this.#epoch) return;
    this.#fetching.delete(page);
    this.#fetchNext();
  }

  /** Fewer rows than there should be: the log was cut. Asks once for each length that proves wrong. */
  #missed(): void {
    if (this.#missedAt === this.total) return;
    this.#missedAt = this.total;
    void this.refresh();
  }

  #keep(page: number, rows: ActivityRow[], generation: number): void {
    const before = this.#pages.get(page);
    // A record that is not where it was: the log was cut at its old end, and every other page is shifted too.
    if (before?.rows.some((row, i) => rows[i] !== undefined && rows[i].seq !== row.seq)) {
      for (const other of this.#pages.values()) other.stale = true;
    }
    this.#pages.set(page, { rows, generation, stale: false });
    this.#version += 1;
    if (this.#pages.size <= PAGES_KEPT) return;
    const furthest = [...this.#pages.keys()].sort((a, b) => Math.abs(b - page) - Math.abs(a - page));
    for (const key of furthest.slice(0, this.#pages.size - PAGES_KEPT)) this.#pages.delete(key);
  }
}
