// Bounds the answers that HTTP clients leave unread, over all connections: each is small, but thousands would fill the
// memory.

import type { ServerResponse } from 'node:http';
import { limits } from '../../core/limits.ts';

/** A client that reads at all has less than this waiting. */
const minCountedBytes = 64 * 1024;

/** Oldest first. */
const waiting = new Set<ServerResponse>();

/** Disconnects a client that stops reading. A slow one is waited for. */
export function disconnectIfUnread(response: ServerResponse): void {
  response.setTimeout(limits.unreadMs, () => {
    if (response.writableLength > 0) disconnect(response);
  });
}

/** An answer that waits behind another one of its connection has no socket yet: to destroy it would end nothing. */
export function disconnect(response: ServerResponse): void {
  response.req.socket.destroy();
}

/** Call after every write. If too much is waiting, disconnects the client that has not read for longest. */
export function countUnread(response: ServerResponse): void {
  if (response.writableLength < minCountedBytes || response.destroyed) return;
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
    disconnect(oldest);
  }
}
