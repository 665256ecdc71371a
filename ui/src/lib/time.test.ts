import { describe, expect, it } from "vitest";
import { durationWords, exactTime, idleWords, timeWords } from "./time.ts";

const at = (text: string) => new Date(text).getTime();
const now = at("2026-11-30T14:30:00");
const say = (text: string) => timeWords(at(text), now, "en-GB");

describe("timeWords", () => {
  it.each([
    ["2026-11-30T14:29:40", "just now"],
    ["2026-11-30T14:29:00", "1 minute ago"],
    ["2026-11-30T14:05:00", "25 minutes ago"],
    ["2026-11-30T13:30:00", "13:30"],
    ["2026-11-30T00:01:00", "00:01"],
    ["2026-11-29T23:59:00", "yesterday, 23:59"],
    ["2026-11-28T09:00:00", "28 Nov, 09:00"],
    ["2025-11-30T09:00:00", "30 Nov 2025, 09:00"],
  ])("says of %s: %s", (then, words) => expect(say(then)).toBe(words));

  it("says of a clock that is ahead of ours: just now", () => expect(say("2026-11-30T14:31:00")).toBe("just now"));

  it("calls the minutes after midnight by minutes and not by yesterday", () => {
    expect(timeWords(at("2026-11-29T23:50:00"), at("2026-11-30T00:10:00"), "en-GB")).toBe("20 minutes ago");
  });
});

describe("durationWords", () => {
  it.each([
    [0, "0 ms"],
    [999, "999 ms"],
    [1400, "1.4 s"],
    [12_300, "12 s"],
    [59_900, "60 s"],
    [125_000, "2 min 5 s"],
  ])("says of %i ms: %s", (ms, words) => expect(durationWords(ms)).toBe(words));
});

it("exactTime names the second", () => expect(exactTime(now, "en-GB")).toContain("14:30:00"));

it.each([
  [3, "Active just now"],
  [60, "Quiet for 1 minute"],
  [1900, "Quiet for 31 minutes"],
  [7300, "Quiet for 2 hours"],
])("idleWords says of %i s: %s", (seconds, words) => expect(idleWords(seconds)).toBe(words));
