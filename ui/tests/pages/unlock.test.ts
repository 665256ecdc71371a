// The question for the passphrase: what is refused, what is sent, what is said.
import { describe, expect, it } from "vitest";
import { openWindow } from "./window.ts";

describe("the question for the passphrase", () => {
  it("opens the file that is there", async () => {
    const { page, desk, complaints } = await openWindow("/unlock.html");
    const passphrase = page.locator("#passphrase");
    await expect.poll(() => passphrase.evaluate((field) => field === document.activeElement)).toBe(true);
    await page.keyboard.type("correct horse");
    await page.keyboard.press("Enter");
    await desk.asked("unlock_with", 1);
    expect(desk.lastArgs("unlock_with")).toEqual({ passphrase: "correct horse" });
    expect(complaints).toEqual([]);
  });

  it("says that a passphrase does not fit, and asks again", async () => {
    const { page, desk } = await openWindow("/unlock.html", (desk) =>
      desk.refuse("unlock_with", "That passphrase does not fit. Try again."),
    );
    await page.fill("#passphrase", "wrong");
    await page.click("button[type=submit]");
    await page.waitForSelector("[role=alert]:has-text('does not fit')");
    desk.accept("unlock_with");
    await page.click("button[type=submit]");
    await desk.asked("unlock_with", 2);
  });

  it("takes a new one only when it is long enough and typed twice", async () => {
    const { page, desk } = await openWindow("/unlock.html", (desk) => (desk.unlock = { wanted: "new", shortest: 8 }));
    const send = page.locator("button[type=submit]");
    await page.fill("#passphrase", "short");
    await page.fill("#again", "short");
    expect(await send.isDisabled()).toBe(true);
    await page.fill("#passphrase", "long enough");
    await page.waitForSelector("text=The two are not the same.");
    expect(await send.isDisabled()).toBe(true);
    await page.fill("#again", "long enough");
    await send.click();
    await desk.asked("unlock_with", 1);
    expect(desk.lastArgs("unlock_with")).toEqual({ passphrase: "long enough" });
  });
});
