// What stands between an agent and an allow that nobody meant.
import { expect, it } from "vitest";
import type { Page } from "playwright-core";
import type { Answer, Prompt } from "../../src/lib/contract.ts";
import { prompt } from "../fake/data.ts";
import { openWindow } from "./window.ts";

const OPEN = "[data-allow=allow_once][aria-disabled=false]";
const CLOSED = "[data-allow=allow_once][aria-disabled=true]";

const openPrompt = (change: Partial<Prompt> = {}) =>
  openWindow("/prompt.html", (desk) => (desk.prompt = { ...prompt(), ...change }));

/** Waits until what the page asked for so far was answered: a command of its own goes the same way. */
const settle = (page: Page) =>
  page.evaluate(() => new Promise<void>((done) => requestAnimationFrame(() => requestAnimationFrame(() => done()))));

it("shows all of the action as text, line for line", async () => {
  const text = 'printf "<b>\\n" | tee out.txt\n  --second "line"\t\tend <img src=x onerror=alert(1)>';
  const { page, complaints } = await openPrompt({ lines: [{ label: "<i>Command</i>", text }] });
  await page.waitForSelector("#action dd");
  expect(await page.locator("#action dd").first().textContent()).toBe(text);
  expect(await page.locator("#action dt").first().textContent()).toBe("<i>Command</i>");
  expect(await page.locator("#action :is(b, i, img)").count()).toBe(0);
  expect(complaints).toEqual([]);
});

it("keeps text that turns its direction to itself", async () => {
  const { page } = await openPrompt({ lines: [{ label: "Command", text: "rm \u202egnp.tac \u2066x" }] });
  const style = await page
    .locator("#action dd")
    .first()
    .evaluate((element) => {
      const { direction, unicodeBidi } = getComputedStyle(element);
      return { direction, unicodeBidi };
    });
  expect(style).toEqual({ direction: "ltr", unicodeBidi: "isolate" });
});

it("offers only what the prompt offers", async () => {
  const { page } = await openPrompt({ offers: ["deny", "allow_once"] });
  await page.waitForSelector("[data-deny]");
  expect(await page.locator("footer button").allInnerTexts()).toHaveLength(2);
});

it("tells that it was drawn, and opens Allow after that and not before", async () => {
  const { page, desk } = await openWindow("/prompt.html");
  const release = desk.hold("prompt_seen");
  desk.ask(prompt());
  await desk.asked("prompt_seen");
  await page.waitForSelector(CLOSED);
  await page.click(CLOSED, { force: true });
  release();
  await page.waitForSelector(OPEN);
  expect(desk.countOf("prompt_answer")).toBe(0);
});

it("keeps Allow closed for 700 ms after the Rust side knows that it was drawn", async () => {
  const { page, desk } = await openWindow("/prompt.html");
  await page.waitForSelector("text=Nothing is waiting");
  // On the page's own clock: when it was told, and when Allow opened.
  await page.evaluate(() => {
    const times: Record<string, number> = {};
    Object.assign(window, { times });
    const real = window.fetch;
    window.fetch = async (...args) => {
      const answer = await real(...args);
      if (String(args[0]).endsWith("/prompt_seen")) times["seen"] = performance.now();
      return answer;
    };
    new MutationObserver(() => {
      if (document.querySelector("[data-allow=allow_once][aria-disabled=false]")) times["opened"] ??= performance.now();
    }).observe(document, { subtree: true, childList: true, attributes: true });
  });
  desk.ask(prompt());
  await page.waitForSelector(OPEN);
  const times = (await page.evaluate("window.times")) as { seen: number; opened: number };
  expect(times.opened - times.seen).toBeGreaterThanOrEqual(700);
});

it.each(["allow_once", "allow_15_minutes", "allow_chat"] as const)("a real press of %s is sent", async (answer) => {
  const { page, desk } = await openPrompt();
  await page.waitForSelector(OPEN);
  if (answer !== "allow_once") await page.click("[data-more]");
  await page.click(`[data-allow=${answer}]`);
  await page.waitForSelector("text=Nothing is waiting");
  expect(desk.lastArgs("prompt_answer")).toEqual({ id: "p-1", answer });
});

it.each([
  ["[data-deny]", "deny"],
  ["[data-deny-and-disconnect]", "deny_and_disconnect"],
] as [string, Answer][])("%s is sent, also while Allow is closed", async (button, answer) => {
  const { page, desk } = await openWindow("/prompt.html");
  desk.hold("prompt_seen");
  desk.ask(prompt());
  await page.click(button);
  await desk.asked("prompt_answer");
  expect(desk.lastArgs("prompt_answer")).toEqual({ id: "p-1", answer });
});

it("neither Enter nor Space nor a script allows, on any button that allows", async () => {
  const { page, desk } = await openPrompt();
  await page.waitForSelector(OPEN);
  await page.click("[data-more]");
  for (const allow of ["allow_once", "allow_15_minutes", "allow_chat"]) {
    const button = page.locator(`[data-allow=${allow}]`);
    for (const key of ["Enter", "Space", "NumpadEnter", "Control+Enter", "Shift+Space"]) await button.press(key);
    await button.evaluate((element: HTMLElement) => {
      element.click();
      element.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
      element.dispatchEvent(new MouseEvent("click", { bubbles: true, detail: 1 }));
    });
  }
  await page.evaluate(() => {
    const keys = { code: "KeyA", key: "A", ctrlKey: true, shiftKey: true, bubbles: true };
    window.dispatchEvent(new KeyboardEvent("keydown", keys));
  });
  await settle(page);
  expect(desk.countOf("prompt_answer")).toBe(0);
  expect(await page.locator(OPEN).count()).toBe(1);
});

it("a pointer put down while Allow was closed does not allow when it comes up", async () => {
  const { page, desk } = await openWindow("/prompt.html");
  const release = desk.hold("prompt_seen");
  desk.ask(prompt());
  await page.hover(CLOSED, { force: true });
  await page.mouse.down();
  release();
  await page.waitForSelector(OPEN);
  await page.mouse.up();
  await settle(page);
  expect(desk.countOf("prompt_answer")).toBe(0);
});

it("the keys that are shown on Allow once allow, and only while it is open", async () => {
  const { page, desk } = await openWindow("/prompt.html");
  const release = desk.hold("prompt_seen");
  desk.ask(prompt());
  await page.waitForSelector(CLOSED);
  await page.keyboard.press("Control+Shift+A");
  await settle(page);
  expect(desk.countOf("prompt_answer")).toBe(0);
  release();
  await page.waitForSelector(OPEN);
  await page.keyboard.press("Control+Shift+A");
  await desk.asked("prompt_answer");
  expect(desk.lastArgs("prompt_answer")).toEqual({ id: "p-1", answer: "allow_once" });
});

it("the keys of a longer allow work only where it says what it covers", async () => {
  const { page, desk } = await openPrompt();
  await page.waitForSelector(OPEN);
  await page.keyboard.press("Control+Shift+T");
  await settle(page);
  expect(desk.countOf("prompt_answer")).toBe(0);
  await page.locator("[data-more]").press("Enter");
  await page.waitForSelector("text=Any run of /usr/bin/python3");
  await page.keyboard.press("Control+Shift+T");
  await desk.asked("prompt_answer");
  expect(desk.lastArgs("prompt_answer")).toEqual({ id: "p-1", answer: "allow_chat" });
});

it("Deny has the focus, and Enter denies", async () => {
  const { page, desk } = await openPrompt();
  await page.waitForFunction(() => document.activeElement?.hasAttribute("data-deny"));
  await page.keyboard.press("Enter");
  await desk.asked("prompt_answer");
  expect(desk.lastArgs("prompt_answer")).toEqual({ id: "p-1", answer: "deny" });
});

it("Escape does nothing and says so", async () => {
  const { page, desk } = await openPrompt();
  await page.waitForSelector(OPEN);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.querySelector("[data-live=assertive]")?.textContent?.includes("Escape"));
  expect(desk.countOf("prompt_answer")).toBe(0);
});

it("closes Allow when the window regains focus, and tells the Rust side", async () => {
  const { page, desk } = await openPrompt();
  await page.waitForSelector(OPEN);
  const release = desk.hold("prompt_focus");
  await page.evaluate(() => {
    window.dispatchEvent(new Event("blur"));
    window.dispatchEvent(new Event("focus"));
  });
  expect(await page.locator("[data-allow=allow_once]").getAttribute("aria-disabled")).toBe("true");
  await page.locator("[data-allow=allow_once]").click({ force: true });
  release();
  await desk.asked("prompt_focus");
  await page.waitForSelector(OPEN);
  expect(desk.countOf("prompt_answer")).toBe(0);
});

it("a prompt that takes the place of another starts closed, with nothing open and Deny in focus", async () => {
  const { page, desk } = await openPrompt();
  await page.waitForSelector(OPEN);
  await page.click("[data-more]");
  await page.locator("[data-allow=allow_once]").hover();
  await page.mouse.down();
  const release = desk.hold("prompt_seen");
  desk.ask({ ...prompt(), id: "p-2", title: "Run another command" });
  await page.waitForSelector("h1:has-text('Run another command')");
  await page.mouse.up();
  expect(await page.locator(CLOSED).count()).toBe(1);
  expect(await page.locator("#covers").count()).toBe(0);
  await page.waitForFunction(() => document.activeElement?.hasAttribute("data-deny"));
  release();
  await page.waitForSelector(OPEN);
  expect(desk.countOf("prompt_answer")).toBe(0);
  expect(desk.lastArgs("prompt_seen")).toEqual({ id: "p-2" });
});

it.each([
  ["a key", (page: Page) => page.keyboard.press("Shift")],
  ["a press", (page: Page) => page.mouse.click(200, 130)],
  ["the wheel", (page: Page) => page.mouse.wheel(0, 5)],
])("%s stops the countdown, once; moving the pointer does not", async (_, touch) => {
  const { page, desk } = await openPrompt();
  await page.waitForSelector(OPEN);
  await page.mouse.move(100, 100);
  await page.mouse.move(300, 200, { steps: 5 });
  await settle(page);
  expect(desk.countOf("prompt_touch")).toBe(0);
  await touch(page);
  await page.waitForSelector(".ring.still");
  await touch(page);
  await settle(page);
  expect(desk.countOf("prompt_touch")).toBe(1);
});

it("scrolling by script or scroll bar counts as a touch", async () => {
  const text = Array.from({ length: 60 }, (_, i) => `line ${i}`).join("\n");
  const { page, desk } = await openPrompt({ lines: [{ label: "Command", text }] });
  await page.waitForSelector(OPEN);
  expect(desk.countOf("prompt_touch")).toBe(0);
  await page.locator("section").evaluate((section) => section.scrollTo(0, 200));
  await desk.asked("prompt_touch");
});

it("says what failed and lets the person try again", async () => {
  const { page, desk } = await openPrompt();
  await page.waitForSelector(OPEN);
  desk.refuse("prompt_answer", "This question is no longer open. Wait for the next one.");
  await page.click(OPEN);
  await page.waitForSelector("[role=alert]:has-text('no longer open')");
  desk.accept("prompt_answer");
  await page.click("[data-deny]");
  await page.waitForSelector("text=Nothing is waiting");
});

it("with no word that it was seen, Allow stays closed and the reason is shown", async () => {
  const { page, desk } = await openWindow("/prompt.html", (desk) => {
    desk.prompt = prompt();
    desk.refuse("prompt_seen", "Deskhand is busy. Try again.");
  });
  await page.waitForSelector("text=Deskhand is busy.");
  expect(await page.locator(CLOSED).count()).toBe(1);
  desk.accept("prompt_seen");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.waitForSelector(OPEN);
});
