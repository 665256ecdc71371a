/** The time, as often as anybody looks at it. */
class Clock {
  /** Milliseconds since 1970, renewed every ten seconds. */
  now = $state(Date.now());

  constructor() {
    setInterval(() => (this.now = Date.now()), 10_000);
  }
}

export const clock = new Clock();
