/** The element of ours with this id: the pages are built with it, so its absence is a broken build. */
export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element "${id}"`);
  return element;
}

/** Resolves after the browser has painted what is in the document now: the second frame starts after the first was drawn. */
export function painted(): Promise<void> {
  return new Promise((resolve) => {
    requestAnimationFrame(() => requestAnimationFrame(() => resolve()));
  });
}
