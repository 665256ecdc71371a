/** How long Allow stays closed after a prompt is drawn and after its window regains focus. The Rust side holds to the same. */
export const CLOSED_MS = 700;

/**
 * When an allow may be given. It is closed until the prompt was seen, and for `CLOSED_MS` after that, after the window
 * regained focus, and after it was hidden: whoever was clicking or typing somewhere else has not read this prompt.
 *
 * Times are milliseconds on one rising clock.
 */
export class AllowGuard {
  #id: string | null = null;
  #opensAt = Infinity;

  /** A prompt is shown; a different one than before starts over. Says whether it is a different one. */
  show(id: string): boolean {
    if (id === this.#id) return false;
    this.#id = id;
    this.#opensAt = Infinity;
    return true;
  }

  /** No prompt is shown. */
  clear(): void {
    this.#id = null;
    this.#opensAt = Infinity;
  }

  /** The prompt was painted and the Rust side knows. */
  seen(id: string, now: number): void {
    if (id === this.#id && this.#opensAt === Infinity) this.#opensAt = now + CLOSED_MS;
  }

  /** The window regained focus or became visible again. */
  disturbed(now: number): void {
    if (this.#opensAt !== Infinity) this.#opensAt = Math.max(this.#opensAt, now + CLOSED_MS);
  }

  isOpen(now: number): boolean {
    return now >= this.#opensAt;
  }

  /** Milliseconds until it opens; null when nothing has started it. */
  opensIn(now: number): number | null {
    return this.#opensAt === Infinity ? null : Math.max(0, this.#opensAt - now);
  }
}

/** What of an event counts for pressing Allow. */
export interface Press {
  isTrusted: boolean;
  /** Clicks in a row; 0 when a key or a script made the click. */
  detail: number;
}

/**
 * A press of an Allow button by a pointer: down and up on the same button, both real, both while it is open. A click that
 * Enter or Space makes has no pointer going down before it and a `detail` of 0.
 */
export class PointerPress<Target> {
  #down: Target | null = null;

  down(target: Target, event: Pick<Press, "isTrusted">, open: boolean): void {
    this.#down = event.isTrusted && open ? target : null;
  }

  /** Says whether this click allows. */
  click(target: Target, event: Press, open: boolean): boolean {
    const pressed = this.#down === target && event.isTrusted && event.detail > 0 && open;
    this.#down = null;
    return pressed;
  }

  forget(): void {
    this.#down = null;
  }
}

/** The keys that allow: Ctrl+Shift and one of these letters. Never Enter or Space. */
export const ALLOW_KEYS = { allow_once: "A", allow_15_minutes: "F", allow_chat: "T" } as const;

export type Allow = keyof typeof ALLOW_KEYS;

/** The allow that a key press stands for: a real one, pressed and not held down. */
export function allowForKey(
  event: Pick<KeyboardEvent, "isTrusted" | "repeat" | "ctrlKey" | "shiftKey" | "altKey" | "metaKey" | "code">,
): Allow | null {
  if (!event.isTrusted || event.repeat || !event.ctrlKey || !event.shiftKey || event.altKey || event.metaKey)
    return null;
  for (const [allow, letter] of Object.entries(ALLOW_KEYS)) if (event.code === `Key${letter}`) return allow as Allow;
  return null;
}
