import type { Settings } from "./contract.ts";

type Appearance = Settings["appearance"];

const KEY = "appearance";
const dark = matchMedia("(prefers-color-scheme: dark)");
let chosen: Appearance = "system";

dark.addEventListener("change", apply);
// The prompt's window cannot read the settings; the main window leaves the choice where both can see it.
addEventListener("storage", (event) => {
  if (event.key === KEY) showAppearance(rememberedAppearance());
});

/** Shows the page in this appearance and keeps the choice for the next window's first paint. */
export function showAppearance(appearance: Appearance): void {
  chosen = appearance;
  apply();
  try {
    if (localStorage.getItem(KEY) !== appearance) localStorage.setItem(KEY, appearance);
  } catch {
    // Storage can be switched off; then a new window follows the system until the settings arrive.
  }
}

/** What the last window showed. "system" when nothing sensible is kept. */
export function rememberedAppearance(): Appearance {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "light" || kept === "dark" ? kept : "system";
  } catch {
    return "system";
  }
}

function apply(): void {
  const theme = chosen === "system" ? (dark.matches ? "dark" : "light") : chosen;
  document.documentElement.dataset["theme"] = theme;
}
