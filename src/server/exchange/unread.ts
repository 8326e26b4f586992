// Bounds the answers that clients have not read yet, over all connections.

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { limits } from '../../core/limits.ts';

export interface Unread {
  /** Call after `end`. Disconnects this client if it stops reading, and the one that waits longest if all have too much. */
  count(response: ServerResponse, socket: Socket, bytes: number): void;
}

export function createUnread(maxBytes: number = limits.unfinishedBytes): Unread {
  /** Oldest first. */
  const waiting = new Map<Socket, number>();
  const known = new WeakSet<Socket>();
  let total = 0;

  function add(socket: Socket, bytes: number): void {
    const before = waiting.get(socket);
    // What is behind an answer on its connection ends with it.
    if (before === undefined && bytes < 0) return;
    const after = (before ?? 0) + bytes;
    total += bytes;
    if (after > 0) waiting.set(socket, after);
    else waiting.delete(socket);
    if (known.has(socket)) return;
    known.add(socket);
    socket.once('close', () => add(socket, -(waiting.get(socket) ?? 0)));
  }

  return {
    count(response, socket, bytes) {
      // Nearly always: the system has taken all of it at once. One that waits behind another answer of its connection is not on
      // the socket yet, and counts.
      if (socket.destroyed || response.writableFinished || response.writableLength === 0) return;
      add(socket, bytes);
      response.once('finish', () => add(socket, -bytes));
      response.setTimeout(limits.unreadMs, () => {
        if (response.writableLength > 0) socket.destroy();
      });
      for (const [oldest, its] of waiting) {
        if (total <= maxBytes) return;
        add(oldest, -its);
        oldest.destroy();
      }
    },
  };
}
