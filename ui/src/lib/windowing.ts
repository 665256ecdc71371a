/** Rows first..last (last excluded). */
export interface Range {
  first: number;
  last: number;
}

/**
 * Which rows of a list are to be drawn when each is `rowHeight` high and `scrollTop` of them is above the viewport.
 * `overscan` rows on either side are there before they come into view.
 */
export function drawnRange(
  scrollTop: number,
  viewportHeight: number,
  rowHeight: number,
  total: number,
  overscan: number,
): Range {
  const clamped = Math.max(0, Math.min(scrollTop, total * rowHeight - viewportHeight));
  const first = Math.max(0, Math.floor(clamped / rowHeight) - overscan);
  const last = Math.min(total, Math.ceil((clamped + viewportHeight) / rowHeight) + overscan);
  return { first, last: Math.max(first, last) };
}

/** Where to scroll so that a row is in full view; the same place when it is already. */
export function scrollToShow(row: number, scrollTop: number, viewportHeight: number, rowHeight: number): number {
  const top = row * rowHeight;
  if (top < scrollTop) return top;
  if (top + rowHeight > scrollTop + viewportHeight) return top + rowHeight - viewportHeight;
  return scrollTop;
}

/** The row that a key moves to, or null when the key moves none. Home/End go to the ends, PageUp/Down by a page less a row. */
export function rowForKey(key: string, row: number, rowsInView: number, total: number): number | null {
  const page = Math.max(1, rowsInView - 1);
  const moves: Record<string, number> = {
    ArrowDown: row + 1,
    ArrowUp: row - 1,
    PageDown: row + page,
    PageUp: row - page,
    Home: 0,
    End: total - 1,
  };
  const target = moves[key];
  if (target === undefined || total === 0) return null;
  return Math.max(0, Math.min(target, total - 1));
}
