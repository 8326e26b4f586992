// How a call becomes a key. Frozen by test vectors: a change of these rules is `semel/v2`.

import crypto from 'node:crypto';

const rules = 'semel/v1';
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';

/** sha256 over length-prefixed parts, so that different lists never collide by concatenation; 160 bits in 32 characters. */
export function digest(...parts: readonly string[]): string {
  return digestOf(joined(parts));
}

function digestOf(text: string): string {
  return base32(crypto.hash('sha256', text, 'binary'));
}

/** 50 bits, for ids that people read and type. */
export function shortDigest(...parts: readonly string[]): string {
  return digest(...parts).slice(0, 10);
}

function joined(parts: readonly string[]): string {
  let text = '';
  for (const part of parts) text += prefixed(part);
  return text;
}

function prefixed(part: string): string {
  return `${Buffer.byteLength(part)}:${part}`;
}

/** Reused by every call: allocating per key would cost more. */
const letters = Buffer.alloc(32);
const codes = Uint8Array.from(alphabet, (letter) => letter.charCodeAt(0));

/** Encodes the first 20 bytes, given as a binary string: a Buffer costs more than the digest. */
function base32(bytes: string): string {
  for (let n = 0, at = 0; n < 20; n += 5) {
    const a = bytes.charCodeAt(n);
    const b = bytes.charCodeAt(n + 1);
    const c = bytes.charCodeAt(n + 2);
    const d = bytes.charCodeAt(n + 3);
    const e = bytes.charCodeAt(n + 4);
    letters[at++] = codes[a >> 3] as number;
    letters[at++] = codes[((a & 7) << 2) | (b >> 6)] as number;
    letters[at++] = codes[(b >> 1) & 31] as number;
    letters[at++] = codes[((b & 1) << 4) | (c >> 4)] as number;
    letters[at++] = codes[((c & 15) << 1) | (d >> 7)] as number;
    letters[at++] = codes[(d >> 2) & 31] as number;
    letters[at++] = codes[((d & 3) << 3) | (e >> 5)] as number;
    letters[at++] = codes[e & 31] as number;
  }
  return letters.toString('latin1');
}

/** What bounds the intent: `text` goes into the key, `exact` into the digest. */
export interface PeriodPart {
  readonly text: string;
  readonly exact: string;
}

interface KeyParts {
  readonly namespace: string;
  readonly contract: string;
  readonly period: PeriodPart;
  /** Canonical JSON of the identity args. */
  readonly identity: string;
  /** The reason for a deliberate repeat. */
  readonly again?: string | undefined;
}

/** `<contract>/<period>/<digest>`: readable, and sorted by time where the intent has one. */
export function deriveKey({ namespace, contract, period, identity, again }: KeyParts): string {
  return keyDeriver(namespace, contract)(period, identity, again);
}

/** For the many calls of one contract. */
export function keyDeriver(
  namespace: string,
  contract: string,
): (period: PeriodPart, identity: string, again?: string) => string {
  const head = joined([rules, namespace, contract]);
  return ({ text, exact }, identity, again) => {
    let parts = `${head}${prefixed(exact)}${prefixed(identity)}`;
    if (again !== undefined) parts += `${prefixed('again')}${prefixed(again)}`;
    return `${contract}/${text}/${digestOf(parts)}`;
  };
}

/** A caller's own key. No derived period starts with `=`, so the two kinds never collide. */
export function callerKey(contract: string, key: string, again?: string): string {
  const escaped = encodeURIComponent(key);
  return again === undefined
    ? `${contract}/=${escaped}`
    : `${contract}/=${escaped}/${shortDigest(rules, 'again', again)}`;
}

/** Detects that a caller's own key is reused with other identity args. */
export function fingerprint(identity: string): string {
  return digest(rules, 'fingerprint', identity);
}

/**
 * The key for a provider: never the caller's own, and different for each generation, so that a provider with a longer
 * memory than ours does not answer today's call with yesterday's result. A version 4 UUID, which nearly all accept.
 */
export function providerKey(
  namespace: string,
  key: string,
  generation: number | string,
  part?: string,
): string {
  const parts = [rules, 'provider', namespace, key, String(generation)];
  if (part !== undefined) parts.push(part);
  const bytes = crypto.hash('sha256', joined(parts), 'buffer').subarray(0, 16);
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/**
 * The text that an effect leaves on what it creates, so that `verify` finds it there; it lives as long as the provider's
 * key. A key replays a response, so it must not be shown; a mark is public. Letters, digits and a dash.
 */
export function markText(namespace: string, key: string, generation: number | string, part?: string): string {
  const parts = [rules, 'mark', namespace, key, String(generation)];
  if (part !== undefined) parts.push(part);
  return `semel-${digest(...parts).slice(0, 20)}`;
}

/** A record's short id for people: `semel resolve <id>@<fence> …`. A derived key already contains a digest. */
export function recordId(namespace: string, key: string): string {
  const isCallers = key[key.indexOf('/') + 1] === '=';
  return isCallers ? shortDigest(rules, 'record', namespace, key) : key.slice(-32, -22);
}

/** A 64-bit digest of a content field, salted with the key, so that equal texts in two records do not match. */
export function contentDigest(key: string, field: string, encoded: string): string {
  return crypto.hash('sha256', `${key}\0${field}\0${encoded}`, 'base64url').slice(0, 11);
}
