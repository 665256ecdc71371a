/** What a screen reader is told now. One polite and one assertive region are on every page. */
class Live {
  polite = $state("");
  assertive = $state("");

  /** Says a sentence when the reader has finished what it is saying. */
  say(sentence: string): void {
    this.polite = again(this.polite, sentence);
  }

  /** Interrupts. */
  interrupt(sentence: string): void {
    this.assertive = again(this.assertive, sentence);
  }
}

/** The same sentence twice is a change only when its text differs: a no-break space is not read out. */
function again(before: string, sentence: string): string {
  return before === sentence ? `${sentence}\u00a0` : sentence;
}

export const live = new Live();
