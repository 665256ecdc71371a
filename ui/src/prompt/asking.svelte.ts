import { call } from "../lib/api.ts";
import type { Answer, Prompt } from "../lib/contract.ts";
import { painted } from "../lib/dom.ts";
import { AllowGuard } from "../lib/guard.ts";
import { live } from "../lib/live.svelte.ts";
import { words } from "../lib/strings.ts";
import { Task } from "../lib/task.svelte.ts";

/** When a screen reader is told how long is left. */
const SPOKEN_SECONDS = [30, 10];

/** The prompt that is shown, how far its countdown is, and whether it may be allowed yet. */
export class Asking {
  prompt = $state.raw<Prompt | null>(null);
  /** False until the first answer of the Rust side. */
  ready = $state(false);
  /** Whether Allow is open. */
  open = $state(false);
  /** Seconds left; null when nothing counts down. */
  left = $state<number | null>(null);
  /** Grows with every different prompt. */
  turn = $state(0);
  readonly loading = new Task();
  readonly answering = new Task();
  /** Telling that the prompt is drawn: until that is known, Allow stays closed. */
  readonly seeing = new Task();
  /** Telling of touches and of focus. */
  readonly telling = new Task();
  #guard = new AllowGuard();
  #opening: ReturnType<typeof setTimeout> | undefined;
  #deadline: number | null = null;
  // Nothing is drawn from it.
  // eslint-disable-next-line svelte/prefer-svelte-reactivity
  #spoken = new Set<number>();
  #touched: string | null = null;
  #fetching = false;
  #again = false;

  /** Keeps the countdown until the returned function is called. */
  run(): () => void {
    void this.load();
    const timer = setInterval(() => this.#tick(), 200);
    return () => {
      clearInterval(timer);
      clearTimeout(this.#opening);
    };
  }

  async load(): Promise<void> {
    if (this.#fetching) {
      this.#again = true;
      return;
    }
    this.#fetching = true;
    do {
      this.#again = false;
      await this.loading.run(async () => this.#show(await call("prompt")));
    } while (this.#again);
    this.#fetching = false;
  }

  /** The person did something here: nothing is denied over their head while they read. */
  async touch(): Promise<void> {
    const id = this.prompt?.id;
    if (id === undefined || this.#touched === id) return;
    this.#touched = id;
    await this.telling.run(() => call("prompt_touch", { id }));
    if (this.telling.error !== null) this.#touched = null;
    await this.load();
  }

  /** The window regained focus or became visible. */
  async regainFocus(): Promise<void> {
    const id = this.prompt?.id;
    if (id === undefined) return;
    this.#guard.disturbed(performance.now());
    this.#watchGuard();
    await this.telling.run(() => call("prompt_focus", { id }));
    // Counted from when the Rust side knows: it would refuse an earlier press.
    this.#guard.disturbed(performance.now());
    this.#watchGuard();
  }

  async answer(answer: Answer): Promise<void> {
    const prompt = this.prompt;
    if (!prompt || this.answering.busy) return;
    if (answer !== "deny" && answer !== "deny_and_disconnect" && !this.mayAllow()) return;
    live.say(words.prompt.sending);
    await this.answering.run(async () => {
      await call("prompt_answer", { id: prompt.id, answer });
      live.say(words.prompt.answered);
      await this.load();
    });
  }

  /** Asked at the moment of the press and not of the drawing. */
  mayAllow(): boolean {
    return this.#guard.isOpen(performance.now()) && document.visibilityState === "visible";
  }

  /** The window was drawn with nothing of the prompt known to the Rust side: it is told again. */
  async retrySeen(): Promise<void> {
    if (this.prompt) await this.#tellSeen(this.prompt.id);
  }

  #show(prompt: Prompt | null): void {
    this.ready = true;
    this.prompt = prompt;
    if (!prompt) {
      this.#guard.clear();
      this.#deadline = this.left = null;
      this.#watchGuard();
      return;
    }
    this.#deadline = prompt.seconds_left === null ? null : performance.now() + prompt.seconds_left * 1000;
    this.#tick();
    if (!this.#guard.show(prompt.id)) return;
    this.#spoken.clear();
    this.answering.dismiss();
    this.telling.dismiss();
    this.seeing.dismiss();
    this.turn += 1;
    this.#watchGuard();
    void this.#tellSeen(prompt.id);
  }

  async #tellSeen(id: string): Promise<void> {
    await painted();
    if (this.prompt?.id !== id) return;
    await this.seeing.run(() => call("prompt_seen", { id }));
    if (this.seeing.error !== null) return;
    this.#guard.seen(id, performance.now());
    this.#watchGuard();
    await this.load();
  }

  #watchGuard(): void {
    clearTimeout(this.#opening);
    const now = performance.now();
    this.open = this.#guard.isOpen(now);
    const opensIn = this.#guard.opensIn(now);
    if (!this.open && opensIn !== null) this.#opening = setTimeout(() => this.#watchGuard(), opensIn + 1);
  }

  #tick(): void {
    this.left = this.#deadline === null ? null : Math.max(0, (this.#deadline - performance.now()) / 1000);
    const due = SPOKEN_SECONDS.find((mark) => this.left !== null && this.left <= mark && !this.#spoken.has(mark));
    if (due === undefined || this.left === null) return;
    for (const mark of SPOKEN_SECONDS) if (this.left <= mark) this.#spoken.add(mark);
    live.say(words.prompt.secondsSpoken(Math.ceil(this.left)));
  }
}
