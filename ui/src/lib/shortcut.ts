/** What the keys pressed so far make. */
export type Capture =
  | { state: "pressing"; keys: string }
  | { state: "done"; keys: string }
  /** One key alone would be pressed by accident, or taken away from every other program. */
  | { state: "too_simple" }
  | { state: "cancelled" };

type Keys = Pick<KeyboardEvent, "key" | "code" | "ctrlKey" | "altKey" | "shiftKey" | "metaKey">;

const NAMED: Record<string, string> = {
  Escape: "Esc",
  Space: "Space",
  Enter: "Enter",
  Tab: "Tab",
  Backspace: "Backspace",
  Delete: "Delete",
  Insert: "Insert",
  Home: "Home",
  End: "End",
  PageUp: "PageUp",
  PageDown: "PageDown",
  ArrowUp: "Up",
  ArrowDown: "Down",
  ArrowLeft: "Left",
  ArrowRight: "Right",
  Pause: "Pause",
  ScrollLock: "ScrollLock",
};

/**
 * Reads a key press as a global shortcut: "Ctrl+Alt+Shift+Esc". By the key's place (`code`) and not its letter, since Alt
 * and Shift change letters. A shortcut needs two of Ctrl, Alt, Shift and Super, not only Shift with one key.
 */
export function captureKeys(event: Keys): Capture {
  const held = [
    event.ctrlKey && "Ctrl",
    event.altKey && "Alt",
    event.shiftKey && "Shift",
    event.metaKey && "Super",
  ].filter((name) => name !== false);
  const key = keyName(event.code);
  if (key === null) return { state: "pressing", keys: held.map((name) => `${name}+`).join("") };
  if (held.length === 0 && (key === "Esc" || key === "Tab")) return { state: "cancelled" };
  if (held.length < 2) return { state: "too_simple" };
  return { state: "done", keys: [...held, key].join("+") };
}

function keyName(code: string): string | null {
  const letter = /^(?:Key|Digit)([A-Z0-9])$/.exec(code)?.[1];
  if (letter) return letter;
  if (/^F([1-9]|1\d|2[0-4])$/.test(code)) return code;
  return NAMED[code] ?? null;
}
