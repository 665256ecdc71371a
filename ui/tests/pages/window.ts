import axe from "axe-core";
import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { FakeDesk } from "../fake/desk.ts";
import { serveApi } from "../fake/http.ts";

const dist = fileURLToPath(new URL("../../dist/", import.meta.url));
const shots = process.env["DESKHAND_SHOTS"] ?? fileURLToPath(new URL("../../test-results/shots", import.meta.url));

/** The policy of the app's windows. Without inline anything, whatever breaks it breaks a test. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
  "connect-src ipc: http://ipc.localhost 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const TYPES: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

let browser: Browser;
const open: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  browser = await chromium.launch({
    executablePath: process.env["DESKHAND_CHROMIUM"] ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
});

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

afterAll(async () => {
  await browser.close();
});

export const MAIN = { width: 1000, height: 720 };
export const PROMPT = { width: 520, height: 460 };
const UNLOCK = { width: 480, height: 440 };

export interface Window {
  page: Page;
  desk: FakeDesk;
  /** What the browser complained of: refused by the policy, thrown, or asked of a network. */
  complaints: string[];
}

/** Opens a built page under the app's policy against a made-up computer, which `set` may change first. */
export async function openWindow(
  path: string,
  set: (desk: FakeDesk) => void = () => {},
  options: BrowserContextOptions = {},
): Promise<Window> {
  const desk = new FakeDesk();
  set(desk);
  const server = await serve(desk);
  open.push(() => stop(server));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const window = await newPage(sizeOf(path), options, origin);
  await window.page.goto(`${origin}${path}`);
  return { ...window, desk };
}

function sizeOf(path: string) {
  if (path.startsWith("/prompt")) return PROMPT;
  return path.startsWith("/unlock") ? UNLOCK : MAIN;
}

/** A page whose complaints are kept. */
export async function newPage(
  viewport: { width: number; height: number },
  options: BrowserContextOptions,
  origin: string,
) {
  const context = await browser.newContext({ viewport, locale: "en-GB", timezoneId: "Europe/Berlin", ...options });
  open.push(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    // The browser notes each answer of 400 in its console; what the page makes of it is what tests look at.
    if (message.type() === "error" && !message.text().includes("status of 400")) complaints.push(message.text());
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith("data:")) complaints.push(`asked for ${url}`);
  });
  return { page, complaints };
}

/** Serves the built pages, and the API of this desk. */
export async function serve(desk: FakeDesk | null): Promise<Server> {
  const server = createServer((request, response) => {
    void (async () => {
      if (desk && (await serveApi(desk, request, response))) return;
      const path = normalize(new URL(request.url ?? "/", "http://x").pathname);
      const name = path === "/" ? "index.html" : path;
      const body = await readFile(join(dist, name)).catch(() => null);
      response.writeHead(body ? 200 : 404, {
        "content-type": TYPES[extname(name)] ?? "text/plain",
        "content-security-policy": POLICY,
      });
      response.end(body ?? "not here");
    })();
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return server;
}

function stop(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((closed) => server.close(() => closed()));
}

export function keepOpenUntilTheTestEnds(close: () => Promise<unknown>): void {
  open.push(close);
}

export { stop as stopServer };

/** Keeps a picture of the window. */
export async function shoot(page: Page, name: string): Promise<void> {
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`), animations: "disabled" });
}

/** Fails when axe finds a violation of WCAG 2.2 AA or of its best practices. */
export async function expectAccessible(page: Page): Promise<void> {
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(axe.source);
  const violations = (await page.evaluate(`axe.run(document, {
    runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
  }).then(({ violations }) => violations.map(({ id, help, nodes }) =>
    ({ id, help, where: nodes.map((node) => node.html.slice(0, 200) + " " + node.any.map((one) => one.message).join("; ")) })))`)) as unknown[];
  expect(violations).toEqual([]);
}

/** Nothing hangs out of the window sideways. */
export async function expectNoSidewaysScroll(page: Page): Promise<void> {
  const wider = await page.evaluate(() =>
    [document.documentElement, ...document.querySelectorAll("main, nav, .frame")]
      .filter((element) => element.scrollWidth > element.clientWidth + 1)
      .map((element) => `${element.tagName}.${element.className} ${element.scrollWidth}>${element.clientWidth}`),
  );
  expect(wider).toEqual([]);
}
