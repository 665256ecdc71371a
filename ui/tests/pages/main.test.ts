// The main window: what it asks the Rust side for, and that it shows what was answered and nothing else.
import { expect, it } from "vitest";
import { CHATS } from "../fake/data.ts";
import { FakeDesk } from "../fake/desk.ts";
import { MAIN, keepOpenUntilTheTestEnds, newPage, openWindow, serve, stopServer } from "./window.ts";

it.each(["#home", "#activity", "#folders", "#settings"])("stops everything from %s", async (page) => {
  const { page: window, desk } = await openWindow(`/${page}`);
  await window.click("header >> text=Stop everything");
  await window.waitForSelector("header >> text=Off");
  expect(desk.countOf("stop")).toBe(1);
});

it("a second press of Stop everything is sent too, while the first hangs", async () => {
  const { page, desk } = await openWindow("/");
  const release = desk.hold("stop");
  await page.click("header >> text=Stop everything");
  await page.click("section >> text=Stop everything");
  await desk.asked("stop", 2);
  release();
  await page.waitForSelector("h1:text('Off')");
});

it("says where it was asked when stopping fails", async () => {
  const { page } = await openWindow("/#settings", (desk) =>
    desk.refuse("stop", "Deskhand did not answer. Quit it from the tray."),
  );
  await page.click("header >> text=Stop everything");
  await page.waitForSelector("header [role=alert]:has-text('Quit it from the tray')");
});

it("pauses, resumes, disconnects and connects", async () => {
  const { page, desk } = await openWindow("/");
  await page.click("text=Pause for 15 minutes");
  await page.getByRole("button", { name: "Resume", exact: true }).first().click();
  await page.getByRole("button", { name: "Disconnect", exact: true }).click();
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page.waitForSelector("h1:text('Connected')");
  expect(desk.lastArgs("pause")).toEqual({ minutes: 15 });
  expect(desk.calls.find(({ name }) => name === "resume")?.args).toEqual({ session_id: null });
});

it("disconnects and resumes one chat", async () => {
  const { page, desk } = await openWindow("/");
  await page.getByRole("button", { name: "Resume this chat: Notes and letters" }).click();
  await desk.asked("resume");
  expect(desk.lastArgs("resume")).toEqual({ session_id: CHATS.notes });
  await page.getByRole("button", { name: "Disconnect this chat: invoices" }).click();
  await page.waitForSelector("h3:text('invoices')", { state: "detached" });
  expect(desk.lastArgs("disconnect_chat")).toEqual({ session_id: CHATS.invoices });
});

it("follows the state as it changes, and says the word", async () => {
  const { page, desk } = await openWindow("/");
  await page.waitForSelector("h1:text('Working')");
  desk.change({ mood: "recording", mood_text: "Recording." });
  await page.waitForSelector("h1:text('Recording')");
  expect(await page.locator("[data-live=polite]").textContent()).toContain("Recording");
});

it("signs in: opens, can open again, copies, cancels, and shows who it is", async () => {
  const { page, desk } = await openWindow("/", (desk) =>
    desk.change({ chats: [], connection: { state: "signed_out", reason: "" }, sign_in: { state: "signed_out" } }),
  );
  await page.click("text=Sign in with the browser");
  await page.click("text=Open the page again");
  await desk.asked("sign_in_reopen");
  await page.click("text=Copy the address");
  await page.waitForSelector("text=/address (was|could not be) copied/ >> visible=true");
  await page.click("text=Cancel");
  await page.click("text=Sign in with the browser");
  desk.change({ sign_in: { state: "signed_in", account: "anna@example.org" } });
  await page.waitForSelector("dd:text('anna@example.org')");
});

it("brings a waiting prompt to the front", async () => {
  const { page, desk } = await openWindow("/", (desk) => desk.change({ prompts: 1 }));
  await page.click("text=Show the question");
  await desk.asked("show_prompt");
});

it("a switch moves when it was answered, and not when it was pressed", async () => {
  const { page, desk } = await openWindow("/#folders");
  const browse = page.getByRole("switch", { name: "Let the platform browse" });
  const release = desk.hold("setting_set");
  await browse.click();
  await desk.asked("setting_set");
  await page.waitForSelector("[role=switch][aria-busy=true]");
  expect(await browse.getAttribute("aria-checked")).toBe("false");
  release();
  await page.waitForSelector("text=Every folder in your home folder can be chosen");
  expect(await browse.getAttribute("aria-checked")).toBe("true");
});

it("a switch whose change is refused stays where it was and says why", async () => {
  const { page, desk } = await openWindow("/#folders", (desk) =>
    desk.refuse("setting_set", "The settings file is read-only. Change its permissions."),
  );
  const shell = page.getByRole("switch", { name: "Run commands" });
  await shell.click();
  await page.waitForSelector("[role=alert]:has-text('read-only')");
  expect(await shell.getAttribute("aria-checked")).toBe("true");
  desk.accept("setting_set");
});

it("two quick changes of what an agent may see and use do not undo each other", async () => {
  const { page, desk } = await openWindow("/#folders");
  const release = desk.hold("setting_set");
  await page.getByRole("switch", { name: "Type and click" }).click();
  await page.getByRole("switch", { name: "Open apps" }).click();
  release();
  await desk.asked("setting_set", 2);
  await page.waitForFunction(() => document.querySelectorAll("[role=switch][aria-busy=true]").length === 0);
  expect([...desk.settings.capabilities.computer_use].sort()).toEqual(["apps", "input", "screen"]);
});

it("a decision goes back to what is so when it is refused, and recording cannot be allowed", async () => {
  const { page, desk } = await openWindow("/#folders", (desk) => desk.refuse("setting_set", "No. Try later."));
  const group = page.getByRole("group", { name: "When an agent wants to: Run commands" });
  await group.getByText("Allow").click();
  await page.waitForSelector("[role=alert]:has-text('Try later')");
  expect(await group.getByRole("radio", { name: "Ask me" }).isChecked()).toBe(true);
  desk.accept("setting_set");
  await group.getByText("Never").click();
  await page.waitForFunction(
    () => document.querySelectorAll<HTMLInputElement>("input[value=deny]:checked").length === 1,
  );
  expect(desk.settings.consent.shell).toBe("deny");
  const recording = page.getByRole("group", { name: "When an agent wants to: Record what I do" });
  expect(await recording.getByRole("radio").count()).toBe(2);
});

it("adds and removes folders, and gives the reason when one is refused", async () => {
  const { page, desk } = await openWindow("/#folders");
  await page.click("text=Add a folder…");
  await page.waitForSelector("p.verbatim:text('/home/anna/Music')");
  await page.getByRole("button", { name: "Remove /home/anna/Music" }).click();
  await desk.asked("folder_remove");
  await page.waitForSelector("p.verbatim:text('/home/anna/Music')", { state: "detached" });
  desk.refuse("folder_add", "That folder belongs to the system. Choose one of your own.");
  await page.click("text=Add a folder…");
  await page.waitForSelector("[role=alert]:has-text('belongs to the system')");
});

it("shows what is fixed from outside as fixed, and nothing that this version cannot do", async () => {
  const { page } = await openWindow("/#folders", (desk) => {
    desk.settings = { ...desk.settings, overridden: ["capabilities.shell"], works: ["shell"] };
  });
  const shell = page.getByRole("switch", { name: "Run commands" });
  expect(await shell.isDisabled()).toBe(true);
  await page.waitForSelector("text=Fixed by how Deskhand was started.");
  expect(await page.getByText("See the screen").count()).toBe(0);
});

it("removes a rule and opens the system's settings", async () => {
  const { page, desk } = await openWindow("/#folders");
  await page.getByRole("button", { name: /Remove the rule: Allow: running git/ }).click();
  await page.waitForSelector("text=running git", { state: "detached" });
  await page.getByRole("button", { name: "Open settings: Mouse and keyboard" }).click();
  await desk.asked("permission_open");
  expect(desk.lastArgs("permission_open")).toEqual({ id: "input" });
});

it("saves a limit only when it is one, and in the unit of the file", async () => {
  const { page, desk } = await openWindow("/#settings");
  const size = page.getByLabel("Largest file");
  await size.fill("0");
  await page.waitForSelector("text=A whole number from 1 to 1,024.");
  await size.press("Enter");
  expect(desk.countOf("setting_set")).toBe(0);
  await size.fill("25");
  await size.press("Enter");
  await desk.asked("setting_set");
  expect(desk.lastArgs("setting_set")).toEqual({ key: "max_file_size_bytes", value: 26_214_400 });
});

it("takes new emergency keys from the keyboard, and keeps the old ones on Esc", async () => {
  const { page, desk } = await openWindow("/#settings");
  await page.click("text=Change…");
  await page.keyboard.press("k");
  await page.waitForSelector("text=Use at least two of >> visible=true");
  await page.keyboard.press("Escape");
  await page.click("text=Change…");
  await page.keyboard.press("Control+Alt+K");
  await desk.asked("setting_set");
  expect(desk.lastArgs("setting_set")).toEqual({ key: "shortcut", value: "Ctrl+Alt+K" });
  await page.waitForSelector("section kbd:text('Ctrl+Alt+K')");
});

it("changes its appearance with the setting, and the next window starts in it", async () => {
  const { page } = await openWindow("/#settings", undefined, { colorScheme: "light" });
  await page.getByText("Dark", { exact: true }).click();
  await page.waitForSelector("html[data-theme=dark]");
  await page.goto(new URL("/prompt.html", page.url()).href);
  await page.waitForSelector("html[data-theme=dark]");
});

it("searches licences", async () => {
  const { page } = await openWindow("/#settings");
  await page.getByLabel("Search licences").fill("mpl");
  await page.waitForSelector("text=48 match.");
});

it("goes where it is told, and nowhere else", async () => {
  const { page, desk } = await openWindow("/");
  await page.waitForSelector("h1");
  desk.emit("navigate", { page: "about" });
  await page.waitForFunction(() => document.activeElement?.closest("#about") !== null);
  desk.emit("navigate", { page: "https://example.com/" });
  desk.emit("navigate", { page: "activity" });
  await page.waitForSelector("h1:text('Activity')");
  expect(new URL(page.url()).hash).toBe("#activity");
});

it("first run: three steps by keyboard, a folder, and done", async () => {
  const { page, desk } = await openWindow("/", (desk) => {
    desk.folders = [];
    desk.change({ first_run: true });
  });
  await page.getByRole("button", { name: "Next" }).press("Enter");
  await page.waitForFunction(() => document.activeElement?.textContent === "Sign in");
  await page.getByRole("button", { name: "Next" }).press("Enter");
  await page.click("text=Make a Deskhand folder");
  await page.waitForSelector("text=Agents may use");
  await page.click("text=Start using Deskhand");
  await page.waitForSelector("h2:text('Chats')");
  expect(desk.countOf("first_run_done")).toBe(1);
});

it("says that it is loading when that takes long, and how it failed", async () => {
  let release = () => {};
  const { page, desk } = await openWindow("/", (desk) => {
    release = desk.hold("snapshot");
    desk.refuse("snapshot", "The state folder cannot be read. Start Deskhand again.");
  });
  await page.waitForSelector("text=Loading…");
  release();
  await page.waitForSelector("text=The state folder cannot be read.");
  desk.accept("snapshot");
  await page.click("text=Try again");
  await page.waitForSelector("h1:text('Working')");
});

it("speaks Tauri's own way inside the app", async () => {
  const server = await serve(null);
  keepOpenUntilTheTestEnds(() => stopServer(server));
  const address = server.address();
  const origin = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  const { page, complaints } = await newPage(MAIN, {}, origin);
  const desk = new FakeDesk();
  const heard: string[] = [];
  await page.exposeFunction("deskAnswer", async (command: string, args: unknown) => {
    if (command === "plugin:event|listen") {
      heard.push((args as { event: string }).event);
      return { ok: heard.length };
    }
    return desk.answer(command, args).then(
      (ok) => ({ ok }),
      (error: Error) => ({ error: error.message }),
    );
  });
  await page.addInitScript(() => {
    const answer = (
      window as unknown as Record<string, (command: string, args: unknown) => Promise<{ error?: string; ok: unknown }>>
    )["deskAnswer"];
    Object.assign(window, {
      __TAURI_INTERNALS__: {
        transformCallback: () => 1,
        invoke: async (command: string, args: unknown) => {
          const got = await answer?.(command, args);
          if (got?.error !== undefined) throw got.error;
          return got?.ok;
        },
      },
    });
  });
  await page.goto(`${origin}/`);
  await page.waitForSelector("h1:text('Working')");
  await page.click("text=Pause for 15 minutes");
  await page.waitForSelector("h1:text('Paused')");
  expect(desk.lastArgs("pause")).toEqual({ minutes: 15 });
  expect(heard).toContain("state");
  expect(complaints).toEqual([]);
});
