// Watches records: a terminal is redrawn, any other output gets a line per change. Ctrl-C ends it.

import { setTimeout as pause } from 'node:timers/promises';

const everyMs = 1000;

/** Ends on SIGINT or SIGTERM, which is not an error. */
export async function watch(look: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const ending = new AbortController();
  const end = () => ending.abort();
  process.on('SIGINT', end).on('SIGTERM', end);
  try {
    while (!ending.signal.aborted) {
      await look(ending.signal);
      await pause(everyMs, undefined, { signal: ending.signal }).catch(() => undefined);
    }
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end);
  }
}

/** Overwrites the previous frame line by line: clearing the screen first would flicker. */
export function frame(lines: readonly string[], height: number): string {
  const room = Math.max(2, height - 1);
  const shown = lines.length <= room ? lines : [...lines.slice(0, room - 1), '…'];
  return `\u001b[H${shown.map((line) => `${line}\u001b[K\n`).join('')}\u001b[J`;
}

/** Filters the items that changed since they were last seen; remembers `most` of them. */
export function changes<Item>(nameOf: (item: Item) => string, faceOf: (item: Item) => string, most: number) {
  const seen = new Map<string, string>();
  return (items: readonly Item[]): readonly Item[] =>
    items.filter((item) => {
      const name = nameOf(item);
      const face = faceOf(item);
      const isNew = seen.get(name) !== face;
      seen.delete(name);
      seen.set(name, face);
      if (seen.size > most) seen.delete(seen.keys().next().value as string);
      return isNew;
    });
}
