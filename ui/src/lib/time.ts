import { words } from "./strings.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** When something was, as people say it: "just now", "12 minutes ago", "14:05", "yesterday, 14:05", "12 March, 14:05". */
export function timeWords(then: number, now: number, locale?: string): string {
  const ago = now - then;
  if (ago < MINUTE) return words.time.justNow;
  if (ago < HOUR) return words.time.minutesAgo(Math.floor(ago / MINUTE));
  const clock = clockTime(then, locale);
  const days = daysBetween(then, now);
  if (days === 0) return clock;
  if (days === 1) return words.time.yesterday(clock);
  const date = new Date(then);
  const sameYear = date.getFullYear() === new Date(now).getFullYear();
  const day = new Intl.DateTimeFormat(locale, {
    day: "numeric",
    month: "short",
    ...(sameYear ? {} : { year: "numeric" }),
  }).format(date);
  return words.time.onDay(day, clock);
}

/** Date and time to the second, for who wants to know exactly. */
export function exactTime(then: number, locale?: string): string {
  return new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "medium" }).format(new Date(then));
}

function clockTime(then: number, locale?: string): string {
  return new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" }).format(new Date(then));
}

/** Midnights between two moments, in local time. */
function daysBetween(then: number, now: number): number {
  const midnight = (ms: number) => {
    const date = new Date(ms);
    return Date.UTC(date.getFullYear(), date.getMonth(), date.getDate());
  };
  return Math.round((midnight(now) - midnight(then)) / (24 * HOUR));
}

/** How long something took: "85 ms", "1.4 s", "2 min 5 s". */
export function durationWords(ms: number): string {
  if (ms < 1000) return words.time.milliseconds(Math.round(ms));
  const seconds = ms / 1000;
  if (seconds < 10) return words.time.seconds(seconds.toFixed(1));
  if (seconds < 60) return words.time.seconds(String(Math.round(seconds)));
  const whole = Math.round(seconds);
  return words.time.minutesSeconds(Math.floor(whole / 60), whole % 60);
}

/** How long a chat has been quiet. */
export function idleWords(seconds: number): string {
  if (seconds < 60) return words.home.idleNow;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return words.home.idleFor(words.time.minutes(minutes));
  return words.home.idleFor(words.time.hours(Math.floor(minutes / 60)));
}
