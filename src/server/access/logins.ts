// How a browser gets in: a token makes a code that works once, within five minutes, and the page exchanges it for a session. Sessions
// live in memory, with the rights of the token that made them, and end with the server or after twelve hours.

import { createHash, randomBytes } from 'node:crypto';
import { SemelError } from '../../core/errors.ts';
import type { TokenEntry, Tokens } from './tokens.ts';

export interface Logins {
  /** Tokens, and sessions made from them. */
  readonly tokens: Tokens;
  /** Throws NOT_PERMITTED for a session: one that makes the next one would never end. */
  createCode(entry: TokenEntry): { readonly code: string; readonly expiresAt: Date };
  /** Undefined: it was used, is too old, or never existed. */
  redeem(code: string): Session | undefined;
  /** How long what `tokens` found still counts; undefined: as long as the server runs. */
  leftMs(entry: TokenEntry): number | undefined;
}

export interface Session {
  readonly session: string;
  readonly name: string;
  readonly role: TokenEntry['role'];
  readonly namespace: string;
  readonly expiresAt: Date;
}

const codeMs = 5 * 60_000;
const sessionMs = 12 * 3_600_000;
/** Codes, and sessions, per token. One more ends the oldest of the same token, never that of another. */
const maxKept = 100;

interface Kept {
  readonly entry: TokenEntry;
  readonly until: number;
}

export function createLogins(tokens: Tokens, now: () => number = () => performance.now()): Logins {
  // By digest: the time of a lookup says nothing about the secret.
  const codes = new Map<string, Kept>();
  const sessions = new Map<string, Kept>();
  const ofSessions = new WeakMap<TokenEntry, number>();
  return {
    tokens: {
      find(shown) {
        const found = tokens.find(shown);
        if (found !== undefined || shown === undefined) return found;
        const session = sessions.get(digest(shown));
        return session === undefined || session.until <= now() ? undefined : session.entry;
      },
    },
    createCode(entry) {
      if (ofSessions.has(entry))
        throw new SemelError('NOT_PERMITTED', 'A session of a browser cannot make a login.', {
          next: 'Run `semel ui` again, or use a token.',
        });
      return { code: keep(codes, entry, codeMs), expiresAt: new Date(Date.now() + codeMs) };
    },
    redeem(code) {
      const name = digest(code);
      const found = codes.get(name);
      codes.delete(name);
      if (found === undefined || found.until <= now()) return undefined;
      const entry = { ...found.entry };
      ofSessions.set(entry, now() + sessionMs);
      const session = keep(sessions, entry, sessionMs);
      const expiresAt = new Date(Date.now() + sessionMs);
      return { session, name: entry.name, role: entry.role, namespace: entry.namespace, expiresAt };
    },
    leftMs(entry) {
      const until = ofSessions.get(entry);
      return until === undefined ? undefined : Math.max(0, until - now());
    },
  };

  function keep(kept: Map<string, Kept>, entry: TokenEntry, ms: number): string {
    for (const [name, { until }] of kept) if (until <= now()) kept.delete(name);
    const own = [...kept].filter(([, each]) => each.entry.sha256 === entry.sha256);
    for (const [name] of own.slice(0, Math.max(0, own.length - maxKept + 1))) kept.delete(name);
    const secret = randomBytes(32).toString('base64url');
    kept.set(digest(secret), { entry, until: now() + ms });
    return secret;
  }
}

function digest(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}
