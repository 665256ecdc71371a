import { expect, it } from "vitest";
import { captureKeys } from "./shortcut.ts";

const press = (code: string, ...held: ("ctrl" | "alt" | "shift" | "meta")[]) =>
  captureKeys({
    key: code,
    code,
    ctrlKey: held.includes("ctrl"),
    altKey: held.includes("alt"),
    shiftKey: held.includes("shift"),
    metaKey: held.includes("meta"),
  });

it.each([
  [press("Escape", "ctrl", "alt", "shift"), "Ctrl+Alt+Shift+Esc"],
  [press("KeyK", "ctrl", "shift"), "Ctrl+Shift+K"],
  [press("Digit7", "alt", "meta"), "Alt+Super+7"],
  [press("F12", "ctrl", "alt"), "Ctrl+Alt+F12"],
])("reads %o as %s", (capture, keys) => expect(capture).toEqual({ state: "done", keys }));

it("shows what is held so far", () => {
  expect(press("ControlLeft", "ctrl", "alt")).toEqual({ state: "pressing", keys: "Ctrl+Alt+" });
});

it("takes no key that every program needs", () => {
  expect(press("KeyA")).toEqual({ state: "too_simple" });
  expect(press("KeyC", "ctrl")).toEqual({ state: "too_simple" });
  expect(press("KeyA", "shift")).toEqual({ state: "too_simple" });
});

it("is left by Esc and by Tab alone", () => {
  expect(press("Escape")).toEqual({ state: "cancelled" });
  expect(press("Tab")).toEqual({ state: "cancelled" });
});
