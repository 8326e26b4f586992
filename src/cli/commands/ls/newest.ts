// Keeps the newest items only.

export interface Newest<Item> {
  add(at: number, item: () => Item): void;
  /** Newest first. */
  items(): readonly Item[];
  /** How many were added in all. */
  count(): number;
}

export function newest<Item>(most: number): Newest<Item> {
  let kept: { readonly at: number; readonly n: number; readonly item: Item }[] = [];
  let oldestKept = Number.NEGATIVE_INFINITY;
  let count = 0;

  function shorten(): void {
    kept.sort((a, b) => b.at - a.at || a.n - b.n);
    kept = kept.slice(0, most);
    if (kept.length === most) oldestKept = kept.at(-1)?.at ?? oldestKept;
  }

  return {
    add(at, item) {
      count += 1;
      if (at < oldestKept) return;
      kept.push({ at, n: count, item: item() });
      if (kept.length >= 2 * most + 100) shorten();
    },
    items() {
      shorten();
      return kept.map(({ item }) => item);
    },
    count: () => count,
  };
}
