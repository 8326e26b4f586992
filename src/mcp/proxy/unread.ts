// Answers that wait for clients over HTTP that do not read them, over all connections: each is small enough, and thousands
// of them would fill the memory.

import type { ServerResponse } from 'node:http';
import { limits } from '../../core/limits.ts';

/** A client that reads at all has emptied less than this before anybody looks. */
const worthCounting = 64 * 1024;

/** Oldest first. */
const waiting = new Set<ServerResponse>();

/** Disconnects a client that leaves what was sent to it unread; one that reads slowly is waited for. */
export function disconnectIfUnread(response: ServerResponse): void {
  response.setTimeout(limits.unreadMs, () => {
    if (response.writableLength > 0) response.destroy();
  });
}

/** To be called whenever something was written. Where too much waits, the client that has not read for longest goes. */
export function countUnread(response: ServerResponse): void {
  if (response.writableLength < worthCounting || response.destroyed) return;
  if (!waiting.has(response)) response.once('close', () => waiting.delete(response));
  waiting.add(response);
  let total = 0;
  for (const each of waiting) {
    if (each.writableLength === 0) waiting.delete(each);
    total += each.writableLength;
  }
  for (const oldest of waiting) {
    if (total <= limits.unfinishedBytes) return;
    total -= oldest.writableLength;
    waiting.delete(oldest);
    oldest.destroy();
  }
}
