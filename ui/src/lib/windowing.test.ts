import { describe, expect, it } from "vitest";
import { drawnRange, rowForKey, scrollToShow } from "./windowing.ts";

const ROW = 44;
const VIEW = 440;

describe("drawnRange", () => {
  it("draws the rows in view and the overscan around them", () => {
    expect(drawnRange(ROW * 100, VIEW, ROW, 100_000, 8)).toEqual({ first: 92, last: 118 });
  });

  it("draws half a row at either edge", () => {
    expect(drawnRange(ROW * 100 + 20, VIEW, ROW, 100_000, 0)).toEqual({ first: 100, last: 111 });
  });

  it("stays in the list at its ends", () => {
    expect(drawnRange(0, VIEW, ROW, 100_000, 8)).toEqual({ first: 0, last: 18 });
    expect(drawnRange(ROW * 100_000 - VIEW, VIEW, ROW, 100_000, 8)).toEqual({ first: 99_982, last: 100_000 });
  });

  it("draws a page when the place scrolled to is no longer there", () => {
    expect(drawnRange(ROW * 5000, VIEW, ROW, 12, 2)).toEqual({ first: 0, last: 12 });
  });

  it("draws nothing of an empty list, and no negative number of rows", () => {
    expect(drawnRange(0, VIEW, ROW, 0, 8)).toEqual({ first: 0, last: 0 });
    expect(drawnRange(-50, 0, ROW, 0, 0)).toEqual({ first: 0, last: 0 });
  });

  it("draws as many rows wherever it is", () => {
    for (let top = 0; top < 3000; top += 17) {
      const { first, last } = drawnRange(top, VIEW, ROW, 100_000, 8);
      expect(last - first).toBeLessThanOrEqual(Math.ceil(VIEW / ROW) + 1 + 16);
      expect(first * ROW).toBeLessThanOrEqual(top);
      expect(last * ROW).toBeGreaterThanOrEqual(top + VIEW);
    }
  });
});

describe("scrollToShow", () => {
  it("does not move for a row in view", () => {
    expect(scrollToShow(12, ROW * 10, VIEW, ROW)).toBe(ROW * 10);
  });

  it("brings a row above to the top and one below to the bottom", () => {
    expect(scrollToShow(3, ROW * 10, VIEW, ROW)).toBe(ROW * 3);
    expect(scrollToShow(25, ROW * 10, VIEW, ROW)).toBe(ROW * 26 - VIEW);
  });
});

describe("rowForKey", () => {
  it.each([
    ["ArrowDown", 51],
    ["ArrowUp", 49],
    ["PageDown", 59],
    ["PageUp", 41],
    ["Home", 0],
    ["End", 99],
  ])("%s goes from row 50 to row %i", (key, row) => {
    expect(rowForKey(key, 50, 10, 100)).toBe(row);
  });

  it("stays in the list", () => {
    expect(rowForKey("ArrowUp", 0, 10, 100)).toBe(0);
    expect(rowForKey("PageDown", 95, 10, 100)).toBe(99);
  });

  it("starts at the first row", () => expect(rowForKey("ArrowDown", -1, 10, 100)).toBe(0));
  it("knows no other key", () => expect(rowForKey("a", 5, 10, 100)).toBeNull());
  it("moves nowhere in an empty list", () => expect(rowForKey("End", -1, 10, 0)).toBeNull());
});
