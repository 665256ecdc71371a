// The person in their browser: opens the address that the app handed over, signs in to the reference platform and decides.
// node sign-in.mjs ADDRESS NAME PASSWORD approve|deny
import { chromium } from "playwright-core";

const [address, name, password, decision] = process.argv.slice(2);
const browser = await chromium.launch({
    executablePath: process.env.DESKHAND_CHROMIUM ?? "/usr/bin/chromium",
    args: [
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
    ],
});
try {
    const page = await browser.newPage();
    await page.goto(address);
    await page.fill("#name", name);
    await page.fill("#password", password);
    await page.press("#password", "Enter");
    await page.click(`button[name=decision][value=${decision}]`);
    await page.waitForURL((url) => url.pathname.endsWith("/callback") || url.hostname === "127.0.0.1");
    console.log(await page.innerText("body"));
} finally {
    await browser.close();
}
