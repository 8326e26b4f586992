// Who may call: tokens, of which only digests are kept. The namespace comes from the token, never from the request, unless the
// token is an operator's for all of them.

import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { SemelError } from '../../core/errors.ts';

export type Role = 'read' | 'execute' | 'admin';

export const roles: readonly Role[] = ['read', 'execute', 'admin'];

export interface TokenEntry {
  /** For people, and for the history of what it decided. */
  readonly name: string;
  /** SHA-256 of the token, as 64 hex digits. */
  readonly sha256: string;
  readonly role: Role;
  /** `*`: the request chooses, by the header Semel-Namespace. */
  readonly namespace: string;
  /** By `semel serve token`: for people. */
  readonly made?: { readonly at: string; readonly by: string };
}

export interface Credential extends Pick<TokenEntry, 'name' | 'role'> {
  readonly namespace: string;
  /** The token is for all namespaces. */
  readonly mayChoose: boolean;
}

export function digestToken(token: string): string {
  return hash('sha256', token);
}

/** 256 bits: nobody tries them all. The prefix lets scanners of leaked secrets find it. */
export function makeToken(): string {
  return `semel_${randomBytes(32).toString('base64url')}`;
}

export interface Tokens {
  /** Undefined: there is no such token. */
  find(shown: string | undefined): TokenEntry | undefined;
}

export function createTokens(entries: readonly TokenEntry[]): Tokens {
  const digests = entries.map((entry) => ({ entry, bytes: Buffer.from(entry.sha256, 'hex') }));
  return {
    find(shown) {
      if (shown === undefined) return undefined;
      const bytes = hash('sha256', shown, 'buffer');
      let found: TokenEntry | undefined;
      // All of them, so that the time says nothing.
      for (const each of digests) if (timingSafeEqual(each.bytes, bytes)) found = each.entry;
      return found;
    },
  };
}

export function mayAct(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed);
}

/** The tokens in a file: `{ "version": 1, "tokens": [{ "name", "sha256", "role", "namespace" }] }`. */
export function readTokenFile(text: string, name: string): readonly TokenEntry[] {
  const wrong = (what: string) =>
    new SemelError('CONTRACT_INVALID', `${name}: ${what}.`, {
      next: 'Create entries with `semel serve token`.',
    });
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch {
    throw wrong('it is not JSON');
  }
  const { version, tokens } = (file ?? {}) as { readonly version?: unknown; readonly tokens?: unknown };
  if (version !== 1 || !Array.isArray(tokens)) throw wrong('it is not a file of tokens');
  return tokens.map((entry: Partial<TokenEntry> | null, at) => {
    const { name: who, sha256, role, namespace } = entry ?? {};
    const isText = (value: unknown) => typeof value === 'string' && value.trim() !== '';
    if (!isText(who) || !isText(namespace)) throw wrong(`tokens[${at}] has no name or namespace`);
    if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256))
      throw wrong(`tokens[${at}].sha256 is not 64 hex digits`);
    if (!roles.includes(role as Role)) throw wrong(`tokens[${at}].role is not read, execute or admin`);
    const { at: madeAt, by } = (entry?.made ?? {}) as { readonly at?: unknown; readonly by?: unknown };
    const made = isText(madeAt) && isText(by) ? { made: { at: madeAt, by } } : {};
    return { name: who, sha256, role, namespace, ...made } as TokenEntry;
  });
}
