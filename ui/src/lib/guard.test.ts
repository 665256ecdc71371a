import { describe, expect, it } from "vitest";
import { AllowGuard, CLOSED_MS, PointerPress, allowForKey } from "./guard.ts";

describe("AllowGuard", () => {
  it("is closed with no prompt, and with one that nobody has seen", () => {
    const guard = new AllowGuard();
    expect(guard.isOpen(1e9)).toBe(false);
    guard.show("a");
    expect(guard.isOpen(1e9)).toBe(false);
    expect(guard.opensIn(0)).toBeNull();
  });

  it("opens 700 ms after the prompt was seen, and not before", () => {
    const guard = new AllowGuard();
    guard.show("a");
    guard.seen("a", 1000);
    expect(guard.isOpen(1000 + CLOSED_MS - 1)).toBe(false);
    expect(guard.opensIn(1100)).toBe(600);
    expect(guard.isOpen(1000 + CLOSED_MS)).toBe(true);
    expect(CLOSED_MS).toBe(700);
  });

  it("closes again for 700 ms when the window regains focus", () => {
    const guard = new AllowGuard();
    guard.show("a");
    guard.seen("a", 0);
    guard.disturbed(5000);
    expect(guard.isOpen(5699)).toBe(false);
    expect(guard.isOpen(5700)).toBe(true);
  });

  it("is not opened by focus alone", () => {
    const guard = new AllowGuard();
    guard.show("a");
    guard.disturbed(0);
    expect(guard.isOpen(1e9)).toBe(false);
  });

  it("starts over when another prompt takes the place of the first", () => {
    const guard = new AllowGuard();
    guard.show("a");
    guard.seen("a", 0);
    expect(guard.isOpen(10_000)).toBe(true);
    expect(guard.show("b")).toBe(true);
    expect(guard.isOpen(10_000)).toBe(false);
    guard.seen("a", 10_000);
    expect(guard.isOpen(20_000)).toBe(false);
    guard.seen("b", 20_000);
    expect(guard.isOpen(20_700)).toBe(true);
  });

  it("does not start over when the same prompt is fetched again, nor when it is seen twice", () => {
    const guard = new AllowGuard();
    guard.show("a");
    guard.seen("a", 0);
    expect(guard.show("a")).toBe(false);
    guard.seen("a", 690);
    expect(guard.isOpen(700)).toBe(true);
  });

  it("is closed when the prompt is gone", () => {
    const guard = new AllowGuard();
    guard.show("a");
    guard.seen("a", 0);
    guard.clear();
    expect(guard.isOpen(1e9)).toBe(false);
  });
});

describe("PointerPress", () => {
  const real = { isTrusted: true, detail: 1 };

  it("allows for a real press, down and up on the same button while it is open", () => {
    const press = new PointerPress<string>();
    press.down("once", real, true);
    expect(press.click("once", real, true)).toBe(true);
  });

  it.each([
    ["a click with no pointer before it", (press: PointerPress<string>) => press.click("once", real, true)],
    [
      "a click that a key made",
      (press: PointerPress<string>) => (
        press.down("once", real, true),
        press.click("once", { ...real, detail: 0 }, true)
      ),
    ],
    [
      "a click that a script made",
      (press: PointerPress<string>) => (
        press.down("once", real, true),
        press.click("once", { isTrusted: false, detail: 1 }, true)
      ),
    ],
    [
      "a pointer that a script put down",
      (press: PointerPress<string>) => (
        press.down("once", { isTrusted: false }, true),
        press.click("once", real, true)
      ),
    ],
    [
      "a press that began while it was closed",
      (press: PointerPress<string>) => (press.down("once", real, false), press.click("once", real, true)),
    ],
    [
      "a press that ends while it is closed",
      (press: PointerPress<string>) => (press.down("once", real, true), press.click("once", real, false)),
    ],
    [
      "a press that began on another button",
      (press: PointerPress<string>) => (press.down("chat", real, true), press.click("once", real, true)),
    ],
    [
      "a second click for one press",
      (press: PointerPress<string>) => (
        press.down("once", real, true),
        press.click("once", real, true),
        press.click("once", real, true)
      ),
    ],
    [
      "a press that the window lost focus in",
      (press: PointerPress<string>) => (
        press.down("once", real, true),
        press.forget(),
        press.click("once", real, true)
      ),
    ],
  ])("does not allow for %s", (_, attempt) => {
    expect(attempt(new PointerPress<string>())).toBe(false);
  });
});

describe("allowForKey", () => {
  const keys = {
    isTrusted: true,
    repeat: false,
    ctrlKey: true,
    shiftKey: true,
    altKey: false,
    metaKey: false,
    code: "KeyA",
  };

  it("knows the keys that the buttons show", () => {
    expect(allowForKey(keys)).toBe("allow_once");
    expect(allowForKey({ ...keys, code: "KeyF" })).toBe("allow_15_minutes");
    expect(allowForKey({ ...keys, code: "KeyT" })).toBe("allow_chat");
  });

  it.each([
    ["Enter", { code: "Enter" }],
    ["Space", { code: "Space" }],
    ["a letter alone", { ctrlKey: false, shiftKey: false }],
    ["without Shift", { shiftKey: false }],
    ["without Ctrl", { ctrlKey: false }],
    ["with Alt too", { altKey: true }],
    ["with the system key too", { metaKey: true }],
    ["held down", { repeat: true }],
    ["made by a script", { isTrusted: false }],
  ])("%s never allows", (_, change) => {
    expect(allowForKey({ ...keys, ...change })).toBeNull();
  });
});
