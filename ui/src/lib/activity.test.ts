import { expect, it } from "vitest";
import type { ActivityFilter, ActivityRow } from "./contract.ts";

// The module talks to the Rust side by default, and looks for its window when it is loaded.
Object.assign(globalThis, { window: globalThis });
const { ActivityList, PAGE_ROWS } = await import("./activity.svelte.ts");

const row = (index: number, seq: number): ActivityRow => ({
  index,
  seq,
  time: "2026-11-30T12:00:00Z",
  session_id: null,
  kind: "read",
  sentence: `record ${seq}`,
  ok: true,
  result: "done",
  duration_ms: null,
});

/** A log whose answers come when the test says so. */
class Log {
  total: number;
  first = 0;
  asked: { offset: number; limit: number }[] = [];
  beforeRows: () => void = () => {};
  fail = false;

  constructor(total: number) {
    this.total = total;
  }

  summary() {
    return Promise.resolve({ total: this.total - this.first, sessions: ["s"] });
  }

  rows(_: ActivityFilter, offset: number, limit: number) {
    this.asked.push({ offset, limit });
    if (this.fail) return Promise.reject(new Error("no"));
    this.beforeRows();
    const rows: ActivityRow[] = [];
    for (let i = offset; i < Math.min(offset + limit, this.total - this.first); i++)
      rows.push(row(i, this.total - 1 - i));
    return Promise.resolve(rows);
  }
}

const settled = () => new Promise((resolve) => setTimeout(resolve));

async function listOf(total: number) {
  const log = new Log(total);
  const list = new ActivityList(log);
  await list.refresh();
  return { log, list };
}

it("fetches only the pages that are looked at", async () => {
  const { log, list } = await listOf(100_000);
  list.want({ first: 50_000, last: 50_030 });
  await settled();
  expect(list.row(50_010)?.seq).toBe(49_989);
  expect(list.row(10)).toBeUndefined();
  expect(log.asked.length).toBeLessThanOrEqual(2);
  expect(log.asked.every(({ limit }) => limit <= PAGE_ROWS)).toBe(true);
});

it("keeps what it has while newer records come, and fetches the new ones", async () => {
  const { log, list } = await listOf(1000);
  list.want({ first: 0, last: 30 });
  await settled();
  log.total += 7;
  expect(await list.refresh()).toBe(7);
  list.want({ first: 0, last: 30 });
  await settled();
  for (let index = 0; index < 30; index++) expect(list.row(index)?.seq).toBe(1006 - index);
});

it("heals rows that were shifted by a record added between summary and answer", async () => {
  const { log, list } = await listOf(1000);
  log.beforeRows = () => {
    log.total += 1;
    log.beforeRows = () => {};
  };
  list.want({ first: 200, last: 230 });
  await settled();
  await list.refresh();
  list.want({ first: 201, last: 231 });
  await settled();
  for (let index = 201; index < 231; index++) expect(list.row(index)?.seq).toBe(1000 - index);
});

it("starts over when the log was cut", async () => {
  const { log, list } = await listOf(1000);
  list.want({ first: 0, last: 30 });
  await settled();
  log.first = 600;
  expect(await list.refresh()).toBe(0);
  expect(list.total).toBe(400);
  list.want({ first: 0, last: 30 });
  await settled();
  expect(list.row(0)?.seq).toBe(999);
});

it("drops answers for a filter that is no longer chosen", async () => {
  const { log, list } = await listOf(1000);
  list.want({ first: 0, last: 30 });
  const changed = list.setFilter({ session_id: null, kind: "shell" });
  log.total = 50;
  await changed;
  list.want({ first: 0, last: 30 });
  await settled();
  expect(list.total).toBe(50);
  expect(list.row(0)?.seq).toBe(49);
});

it("asks again how long the log is when an answer is short, and does not ask for ever", async () => {
  const { log, list } = await listOf(1000);
  log.first = 990;
  list.want({ first: 100, last: 130 });
  await settled();
  await settled();
  expect(list.total).toBe(10);
  expect(log.asked.length).toBeLessThan(10);
});

it("stops asking after an error until it is told to try again", async () => {
  const { log, list } = await listOf(1000);
  log.fail = true;
  list.want({ first: 0, last: 30 });
  await settled();
  expect(list.error).not.toBeNull();
  const asked = log.asked.length;
  list.want({ first: 300, last: 330 });
  await settled();
  expect(log.asked.length).toBe(asked);
  log.fail = false;
  await list.retry();
  await settled();
  expect(list.row(310)?.seq).toBe(689);
});

it("forgets pages that are far from what is looked at", async () => {
  const { list } = await listOf(100_000);
  for (let first = 0; first < 60 * PAGE_ROWS; first += PAGE_ROWS) {
    list.want({ first, last: first + 20 });
    await settled();
  }
  expect(list.row(0)).toBeUndefined();
  expect(list.row(59 * PAGE_ROWS)).toBeDefined();
});
