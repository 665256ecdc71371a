// The log of 100 000 records: nothing blank, nothing lost, and no more in the page than is looked at.
import { expect, it } from "vitest";
import type { Page } from "playwright-core";
import { CHATS } from "../fake/data.ts";
import { openWindow } from "./window.ts";

const open = (records: number) => openWindow("/#activity", (desk) => (desk.records = records));

/** The records in view, once every row in view has its record. */
async function inView(page: Page): Promise<number[]> {
  const handle = await page.waitForFunction(() => {
    const grid = document.querySelector("[role=grid]");
    if (!grid) return null;
    const { top, bottom } = grid.getBoundingClientRect();
    const rows = [...grid.querySelectorAll<HTMLElement>("[aria-rowindex]")].filter((row) => {
      const box = row.getBoundingClientRect();
      return box.bottom > top + 1 && box.top < bottom - 1;
    });
    // As many as there is room for, and none still to come.
    const room = Math.floor((bottom - top) / 44);
    const length = grid.firstElementChild?.getBoundingClientRect().height ?? 0;
    if (rows.length < Math.min(room, Math.round(length / 44))) return null;
    if (rows.some((row) => row.dataset["seq"] === undefined)) return null;
    return rows
      .sort((a, b) => Number(a.getAttribute("aria-rowindex")) - Number(b.getAttribute("aria-rowindex")))
      .map((row) => Number(row.dataset["seq"]));
  });
  return (await handle.jsonValue()) ?? [];
}

const scrollTo = (page: Page, top: number) =>
  page.locator("[role=grid]").evaluate((grid, to) => grid.scrollTo(0, to), top);
const rowsDrawn = (page: Page) => page.locator("[aria-rowindex]").count();

it("scrolls 100 000 records with a bounded number of rows, and none of them stays blank", async () => {
  const { page, desk, complaints } = await open(100_000);
  expect((await inView(page))[0]).toBe(99_999);
  expect(await page.locator("[role=grid]").getAttribute("aria-rowcount")).toBe("100000");
  for (const place of [0.1, 0.9, 0.33, 1, 0.5]) {
    await scrollTo(page, place * 100_000 * 44);
    const seqs = await inView(page);
    const first = seqs[0] ?? 0;
    expect(seqs).toEqual(seqs.map((_, i) => first - i));
    expect(Math.abs(first - (1 - place) * 100_000)).toBeLessThan(30);
    expect(await rowsDrawn(page)).toBeLessThan(60);
  }
  // A flick through the whole list asks for where it ends and not for all it passed.
  const before = desk.countOf("activity_rows");
  await page.locator("[role=grid]").evaluate(async (grid) => {
    for (let i = 0; i <= 60; i++) {
      grid.scrollTop = (grid.scrollHeight / 60) * i;
      await new Promise(requestAnimationFrame);
    }
  });
  expect((await inView(page)).at(-1)).toBe(0);
  expect(desk.countOf("activity_rows") - before).toBeLessThanOrEqual(130);
  expect(await rowsDrawn(page)).toBeLessThan(60);
  expect(complaints).toEqual([]);
});

it("keeps the person's place when records come, and offers the way to them", async () => {
  const { page, desk } = await open(5000);
  await inView(page);
  await scrollTo(page, 2000 * 44);
  const before = await inView(page);
  desk.addRecords(7);
  await page.waitForSelector("text=7 newer records");
  expect(await inView(page)).toEqual(before);
  desk.addRecords(1);
  await page.waitForSelector("text=8 newer records");
  expect(await inView(page)).toEqual(before);
  await page.click("text=8 newer records");
  await page.waitForSelector("[data-seq='5007']");
});

it("shows records as they come to who is at the top", async () => {
  const { page, desk } = await open(300);
  await inView(page);
  desk.addRecords(2);
  await page.waitForSelector("[aria-rowindex='1'][data-seq='301']");
});

it("works by keyboard: moves, jumps to the ends, opens and closes details", async () => {
  const { page } = await open(100_000);
  await inView(page);
  await page.locator("[role=grid]").focus();
  const active = async () => {
    await inView(page);
    return page.evaluate(() => {
      const id = document.activeElement?.getAttribute("aria-activedescendant");
      return id ? document.getElementById(id)?.dataset["seq"] : null;
    });
  };
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  expect(await active()).toBe("99997");
  await page.keyboard.press("End");
  expect(await active()).toBe("0");
  await page.keyboard.press("Enter");
  await page.waitForSelector("section[aria-label=Details] >> text=#0");
  await page.keyboard.press("ArrowUp");
  await page.waitForSelector("section[aria-label=Details] >> text=#1");
  await page.keyboard.press("Escape");
  await page.waitForSelector("section[aria-label=Details]", { state: "detached" });
  await page.keyboard.press("Home");
  expect(await active()).toBe("99999");
  await page.keyboard.press("PageDown");
  expect(Number(await active())).toBeLessThan(99_995);
});

it("filters by kind and by chat, and shows everything again", async () => {
  const { page, desk } = await open(2400);
  await inView(page);
  await page.selectOption("label:has-text('Kind') select", "shell");
  await page.waitForSelector("text=400 records");
  await inView(page);
  await page.selectOption("label:has-text('Chat') select", CHATS.shop);
  await page.waitForFunction(() => document.querySelector(".foot")?.textContent?.includes("400 records") === false);
  await inView(page);
  expect(desk.lastArgs("activity_summary")).toEqual({ filter: { session_id: CHATS.shop, kind: "shell" } });
  await page.click("text=Show everything");
  await page.waitForSelector("text=2,400 records");
  await page.selectOption("label:has-text('Kind') select", "record");
  await page.waitForSelector("text=Nothing matches.");
});

it("says when the log cannot be read, and tries again", async () => {
  const { page, desk } = await openWindow("/#activity", (desk) =>
    desk.refuse("activity_summary", "The log file cannot be opened. Check its permissions."),
  );
  await page.waitForSelector("text=The log file cannot be opened.");
  desk.accept("activity_summary");
  await page.click("text=Try again");
  await inView(page);
});

it("checks the log, says that it is at it, and what it found", async () => {
  const { page, desk } = await open(240);
  await inView(page);
  const release = desk.hold("activity_verify");
  await page.click("text=Verify");
  await page.waitForSelector("text=Checking every record… >> visible=true");
  release();
  await page.waitForSelector("text=240 records in 2 files checked");
  desk.refuse("activity_verify", "The log is being written by another program.");
  await page.click("button:has-text('Verify')");
  await page.waitForSelector("[role=alert]:has-text('another program')");
});

it("exports, and says nothing when the person thinks better of it", async () => {
  const { page, desk } = await open(240);
  await inView(page);
  await page.click("text=Export…");
  await page.waitForSelector("text=Saved as /home/anna/activity.jsonl");
  desk.exportPath = null;
  await page.click("text=Export…");
  await desk.asked("activity_export", 2);
  await page.waitForSelector("text=Saved as", { state: "detached" });
});
