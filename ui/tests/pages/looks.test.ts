// Every page and every state, in light and dark: no violation that axe knows, nothing refused by the policy, a picture each.
import { describe, expect, it } from "vitest";
import type { Page } from "playwright-core";
import { prompt, snapshot } from "../fake/data.ts";
import type { FakeDesk } from "../fake/desk.ts";
import { expectAccessible, expectNoSidewaysScroll, openWindow, shoot } from "./window.ts";

interface Look {
  name: string;
  path: string;
  set?: (desk: FakeDesk) => void;
  /** What is there when the page is ready. */
  ready: string;
  then?: (page: Page) => Promise<unknown>;
}

const looks: Look[] = [
  { name: "home-working", path: "/", ready: "text=bookshop" },
  {
    name: "home-off",
    path: "/",
    set: (desk) => desk.change({ mood: "off", connection: { state: "off", reason: "You disconnected." }, chats: [] }),
    ready: "text=You disconnected.",
  },
  {
    name: "home-connecting",
    path: "/",
    set: (desk) => desk.change({ mood: "off", connection: { state: "connecting" }, chats: [] }),
    ready: "h1:text('Connecting')",
  },
  {
    name: "home-waiting",
    path: "/",
    set: (desk) =>
      desk.change({
        mood: "trouble",
        connection: { state: "waiting", seconds: 24, reason: "The network is not reachable." },
      }),
    ready: "h1:text('Reconnecting')",
  },
  {
    name: "home-halted",
    path: "/",
    set: (desk) =>
      desk.change({
        mood: "trouble",
        mood_text: "This computer was taken off the platform.",
        connection: {
          state: "halted",
          reason: "Somebody revoked it in the platform's settings. Connect again to use it.",
        },
        chats: [],
      }),
    ready: "text=Somebody revoked",
  },
  {
    name: "home-in-control",
    path: "/",
    set: (desk) => desk.change({ mood: "in_control", mood_text: "An agent sees the screen in “invoices”." }),
    ready: "h1:text('Agent in control')",
  },
  {
    name: "home-recording",
    path: "/",
    set: (desk) => desk.change({ mood: "recording", mood_text: "Recording for the chat in “invoices”." }),
    ready: "h1:text('Recording')",
  },
  {
    name: "home-paused",
    path: "/",
    set: (desk) => desk.change({ mood: "paused", paused: true, mood_text: "Paused for 15 minutes." }),
    ready: "h1:text('Paused')",
  },
  {
    name: "home-notices",
    path: "/",
    set: (desk) => desk.change({ prompts: 1, has_tray: false, shortcut: { keys: "Ctrl+Alt+Shift+Esc", taken: true } }),
    ready: "text=asking for your permission",
  },
  {
    name: "home-signed-out",
    path: "/",
    set: (desk) =>
      desk.change({
        mood: "off",
        chats: [],
        connection: { state: "signed_out", reason: "" },
        sign_in: { state: "signed_out" },
      }),
    ready: "text=Sign in with the browser",
  },
  {
    name: "home-signing-in",
    path: "/",
    set: (desk) =>
      desk.change({
        mood: "off",
        chats: [],
        connection: { state: "signed_out", reason: "" },
        sign_in: {
          state: "waiting",
          url: "https://platform.autogpt.net/auth/authorize?client_id=autogpt-local-executor",
        },
      }),
    ready: "text=Waiting for your browser",
  },
  {
    name: "home-sign-in-failed",
    path: "/",
    set: (desk) =>
      desk.change({
        mood: "trouble",
        chats: [],
        connection: { state: "signed_out", reason: "" },
        sign_in: {
          state: "failed",
          message: "The page in the browser was closed too early. Try again and press Approve there.",
        },
      }),
    ready: "text=Signing in did not work",
  },
  { name: "activity", path: "/#activity", ready: "text=#239" },
  {
    name: "activity-details",
    path: "/#activity",
    ready: "text=#239",
    then: (page) => page.click("text=#235"),
  },
  {
    name: "activity-verified",
    path: "/#activity",
    ready: "text=#239",
    then: async (page) => {
      await page.click("text=Verify");
      await page.waitForSelector("text=The log is whole");
    },
  },
  {
    name: "activity-broken",
    path: "/#activity",
    set: (desk) => {
      desk.verification = {
        ok: false,
        records: 88,
        files: 1,
        problems: ["Record 89 does not follow from record 88.", "The last 12 records are missing."],
      };
    },
    ready: "text=#239",
    then: async (page) => {
      await page.click("text=Verify");
      await page.waitForSelector("text=The log is not whole");
    },
  },
  {
    name: "activity-empty",
    path: "/#activity",
    set: (desk) => (desk.records = 0),
    ready: "text=Nothing has happened yet.",
  },
  { name: "folders", path: "/#folders", ready: "text=Mouse and keyboard" },
  {
    name: "folders-scrolled",
    path: "/#folders",
    ready: "text=Mouse and keyboard",
    then: (page) =>
      page.locator("h2", { hasText: "What agents may do" }).evaluate((heading) => heading.scrollIntoView()),
  },
  {
    name: "folders-end",
    path: "/#folders",
    ready: "text=Mouse and keyboard",
    then: (page) => page.locator("main").evaluate((main) => main.scrollTo(0, main.scrollHeight)),
  },
  {
    name: "folders-none-overridden",
    path: "/#folders",
    set: (desk) => {
      desk.folders = [];
      desk.settings = {
        ...desk.settings,
        browse_home: true,
        overridden: ["capabilities.shell", "consent.write"],
        works: ["shell"],
        rules: [],
      };
    },
    ready: "text=Make a Deskhand folder",
  },
  { name: "settings", path: "/#settings", ready: "text=What Deskhand calls" },
  {
    name: "settings-limits",
    path: "/#settings",
    ready: "text=What Deskhand calls",
    then: (page) => page.locator("h2", { hasText: "Limits" }).evaluate((heading) => heading.scrollIntoView()),
  },
  {
    name: "settings-about",
    path: "/#settings",
    ready: "text=What Deskhand calls",
    then: (page) => page.locator("main").evaluate((main) => main.scrollTo(0, main.scrollHeight)),
  },
  { name: "first-run-1", path: "/", set: (desk) => desk.change({ first_run: true }), ready: "text=Step 1 of 3" },
  {
    name: "first-run-2",
    path: "/",
    set: (desk) => desk.change({ first_run: true, sign_in: { state: "signed_out" } }),
    ready: "text=Step 1 of 3",
    then: (page) => page.click("text=Next"),
  },
  {
    name: "first-run-3",
    path: "/",
    set: (desk) => {
      desk.folders = [];
      desk.change({ first_run: true });
    },
    ready: "text=Step 1 of 3",
    then: async (page) => {
      await page.click("text=Next");
      await page.click("text=Next");
    },
  },
  {
    name: "start-failed",
    path: "/",
    set: (desk) => desk.refuse("snapshot", "The state folder cannot be read. Start Deskhand again."),
    ready: "text=The state folder cannot be read.",
  },
  { name: "prompt-command", path: "/prompt.html", set: (desk) => (desk.prompt = prompt()), ready: "[data-deny]" },
  {
    name: "prompt-open",
    path: "/prompt.html",
    set: (desk) => (desk.prompt = prompt()),
    ready: "[data-allow][aria-disabled=false]",
  },
  {
    name: "prompt-allow-for",
    path: "/prompt.html",
    set: (desk) => (desk.prompt = prompt()),
    ready: "[data-allow][aria-disabled=false]",
    then: (page) => page.click("[data-more]"),
  },
  {
    name: "prompt-long",
    path: "/prompt.html",
    set: (desk) =>
      (desk.prompt = {
        ...prompt(),
        host: "a-platform-with-a-rather-long-name.internal.example.org:8443",
        title: "Run 24 lines of a script on your computer",
        lines: [
          {
            label: "Command",
            text: Array.from(
              { length: 24 },
              (_, i) => `step-${i} --input "file ${i}.csv" | sort | uniq -c > out-${i}.txt`,
            ).join("\n"),
          },
        ],
        left_out: 1824,
        requests: 3,
      }),
    ready: "[data-allow][aria-disabled=false]",
  },
  {
    name: "prompt-picture",
    path: "/prompt.html",
    set: (desk) =>
      (desk.prompt = {
        ...prompt(),
        capability: "input",
        title: "Click once in the window “Spreadsheet”",
        lines: [{ label: "Where", text: "640, 380" }],
        offers: ["allow_once", "deny", "deny_and_disconnect"],
        picture: PICTURE,
      }),
    ready: "[data-allow][aria-disabled=false]",
  },
  { name: "unlock", path: "/unlock.html", ready: "h1:text('Unlock')" },
  {
    name: "unlock-new",
    path: "/unlock.html",
    set: (desk) => (desk.unlock = { wanted: "new", shortest: 8 }),
    ready: "h1:text('Choose')",
    then: async (page) => {
      await page.fill("#passphrase", "correct horse");
      await page.fill("#again", "correct house");
    },
  },
  { name: "prompt-none", path: "/prompt.html", ready: "text=Nothing is waiting" },
];

/** A drawn picture of a window, as the Rust side would send one. */
const PICTURE =
  "data:image/svg+xml;base64," +
  Buffer.from(
    '<svg xmlns="http://www.w3.org/2000/svg" width="480" height="220"><rect width="480" height="220" fill="#dfe6ee"/>' +
      '<rect x="30" y="20" width="420" height="180" rx="6" fill="#fff"/><path d="M30 60h420M30 95h420M30 130h420M170 20v180M310 20v180" stroke="#c3ccd8"/>' +
      '<circle cx="240" cy="112" r="16" fill="none" stroke="#b42318" stroke-width="4"/></svg>',
  ).toString("base64");

describe.each(["light", "dark"] as const)("in %s", (colorScheme) => {
  it.each(looks)("$name is accessible and keeps to the policy", async ({ name, path, set, ready, then }) => {
    const { page, complaints } = await openWindow(path, set, { colorScheme });
    await page.waitForSelector(ready);
    await then?.(page);
    await page.evaluate(() => document.fonts.ready);
    await shoot(page, `${name}-${colorScheme}`);
    await expectAccessible(page);
    await expectNoSidewaysScroll(page);
    expect(complaints).toEqual([]);
  });
});

describe("at other sizes", () => {
  const sizes = [
    { name: "smallest", viewport: { width: 640, height: 480 }, deviceScaleFactor: 1 },
    { name: "smallest-at-200", viewport: { width: 320, height: 240 }, deviceScaleFactor: 2 },
    { name: "wide", viewport: { width: 1600, height: 900 }, deviceScaleFactor: 1 },
  ];
  const pages = [
    { path: "/", ready: "text=bookshop", page: "home" },
    { path: "/#activity", ready: "text=#239", page: "activity" },
    { path: "/#folders", ready: "text=Mouse and keyboard", page: "folders" },
    { path: "/#settings", ready: "text=What Deskhand calls", page: "settings" },
  ];
  it.each(sizes.flatMap((size) => pages.map((one) => ({ ...size, ...one }))))(
    "$page fits the $name window",
    async ({ name, page: which, viewport, deviceScaleFactor, path, ready }) => {
      const { page } = await openWindow(path, undefined, { viewport, deviceScaleFactor });
      await page.waitForSelector(ready, { state: "attached" });
      await shoot(page, `${which}-${name}`);
      await expectNoSidewaysScroll(page);
      await expectAccessible(page);
    },
  );

  it("the prompt at 200 % still shows every answer", async () => {
    const { page } = await openWindow("/prompt.html", (desk) => (desk.prompt = prompt()), {
      viewport: { width: 260, height: 230 },
      deviceScaleFactor: 2,
    });
    await page.waitForSelector("[data-allow][aria-disabled=false]");
    await page.locator("[data-deny-and-disconnect]").scrollIntoViewIfNeeded();
    await shoot(page, "prompt-at-200");
    await expectNoSidewaysScroll(page);
  });

  it("high contrast keeps every state visible", async () => {
    const { page } = await openWindow("/#folders", undefined, { forcedColors: "active" });
    await page.waitForSelector("text=Mouse and keyboard");
    await page.locator("h2", { hasText: "What agents may do" }).evaluate((heading) => heading.scrollIntoView());
    await shoot(page, "folders-high-contrast");
    const [on, off] = await Promise.all(
      ["true", "false"].map((checked) =>
        page
          .locator(`[role=switch][aria-checked=${checked}]`)
          .first()
          .evaluate((element) => getComputedStyle(element).backgroundColor),
      ),
    );
    expect(on).not.toBe(off);
  });

  it("with less motion nothing turns", async () => {
    const { page } = await openWindow("/", (desk) => desk.change(snapshot()), { reducedMotion: "reduce" });
    await page.waitForSelector("text=bookshop");
    const turning = await page.evaluate(
      () => document.getAnimations().filter((one) => one.playState === "running").length,
    );
    expect(turning).toBe(0);
  });
});
