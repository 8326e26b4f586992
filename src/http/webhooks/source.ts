// What a receiver must know of a sender: whether a delivery is genuine, and which event it is. Signatures are over the bytes as they
// were sent, and are compared in constant time.

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Duration } from '../../core/contract/duration.ts';
import { BodyRefused } from '../body.ts';
import { refuse } from '../receiver.ts';

/** One request of a sender. */
export interface Delivery {
  readonly headers: Headers;
  /** As it was sent. */
  readonly body: Uint8Array;
  readonly text: string;
  /** The parsed body. Reading it throws if the body is not JSON, which is answered with 400. */
  readonly json: unknown;
  /** Milliseconds since 1970. */
  readonly now: number;
}

export interface WebhookSource<Event = unknown> {
  /** Names the records: `webhook.<name>`. */
  readonly name: string;
  /** For how long the sender repeats a delivery, or lets a person repeat it. */
  readonly retriesFor: Duration;
  /** @default 1 MiB */
  readonly maxBytes?: number;
  /** True, or what is wrong with the signature. Nothing is recorded of what is not genuine. */
  verify(delivery: Delivery): boolean | string | Promise<boolean | string>;
  /** The same for every delivery of an event, and for no other event. */
  id(delivery: Delivery): string | null | undefined;
  /** What the handler gets. @default the parsed body */
  event?(delivery: Delivery): Event;
  /** Answers a delivery that is not an event, such as the check of a new address. */
  reply?(delivery: Delivery): Response | undefined;
}

export function createDelivery(headers: Headers, body: Uint8Array, now: number): Delivery {
  let text: string | undefined;
  let parsed: { readonly value: unknown } | undefined;
  return {
    headers,
    body,
    now,
    get text() {
      text ??= Buffer.from(body).toString('utf8');
      return text;
    },
    get json() {
      parsed ??= { value: parse(this.text) };
      return parsed.value;
    },
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new BodyRefused(400, 'The body is not JSON.', 'Send JSON.');
  }
}

/** A field of the parsed body. */
export function readField({ json }: Delivery, name: string): unknown {
  return typeof json === 'object' && json !== null && Object.hasOwn(json, name)
    ? (json as Record<string, unknown>)[name]
    : undefined;
}

/** One secret, or several while they are rotated. */
export type Secrets = string | readonly string[];

/** A missing environment variable must not become a secret that everybody knows. */
export function readSecrets(source: string, secret: Secrets): readonly string[] {
  const secrets = typeof secret === 'string' ? [secret] : secret;
  if (
    Array.isArray(secrets) &&
    secrets.length > 0 &&
    secrets.every((each) => typeof each === 'string' && each.trim() !== '')
  )
    return secrets;
  return refuse(
    'secret',
    `${source}: the signing secret is missing.`,
    'Pass `secret`; check that the variable of the environment is set.',
  );
}

/** Whether one of the signatures is that of the message under one of the secrets. */
export function isSigned(
  signatures: readonly string[],
  encoding: 'hex' | 'base64',
  secrets: readonly (string | Uint8Array)[],
  ...message: readonly (string | Uint8Array)[]
): boolean {
  const given = signatures.map((each) => Buffer.from(each, encoding));
  let isFound = false;
  for (const secret of secrets) {
    const hmac = createHmac('sha256', secret);
    for (const part of message) hmac.update(part);
    const expected = hmac.digest();
    for (const each of given)
      if (each.length === expected.length && timingSafeEqual(each, expected)) isFound = true;
  }
  return isFound;
}

/** Undefined if the time of signing, in seconds, is near enough; otherwise what is wrong. */
export function findWrongTime(
  seconds: string | null | undefined,
  now: number,
  toleranceMs: number,
): string | undefined {
  if (seconds == null || !/^\d{1,12}$/.test(seconds)) return 'The time of the signature is missing.';
  if (Math.abs(now - Number(seconds) * 1_000) <= toleranceMs) return undefined;
  return 'The time of the signature is too far from now.';
}

export const defaultTolerance: Duration = '5m';
export const noSignature = 'The signature is missing.';
export const wrongSignature = 'The signature does not match.';
