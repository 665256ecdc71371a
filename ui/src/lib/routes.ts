export const PAGES = ["home", "activity", "folders", "settings"] as const;
export type Page = (typeof PAGES)[number];

/** Where a `navigate` event or the address leads: a page, and the part of it to show. Null for what is not a place of ours. */
export function place(name: string): { page: Page; part: string | null } | null {
  if (name === "about") return { page: "settings", part: "about" };
  return PAGES.includes(name as Page) ? { page: name as Page, part: null } : null;
}
