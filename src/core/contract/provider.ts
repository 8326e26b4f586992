// What an outside API honours, and how far a re-run under its key is trusted.

import { shortDigest } from '../key/key.ts';
import { isBlank } from '../plain.ts';
import type { Classified } from './classify.ts';
import { list, oneOf, refuse } from './contract-checks.ts';
import { type Duration, durationMs, formatDuration } from './duration.ts';
import { checkKnown, fieldNames } from './known-fields.ts';

/** What an outside API honours. `semel/providers` has rows for the common ones. */
export interface Provider {
  readonly name: string;
  /** How long it remembers a key at least. */
  readonly window: Duration;
  /** Converts our UUID to its format. */
  readonly format?: (uuid: string) => string;
  /** The header that `ctx.fetch` puts the key into. @default 'Idempotency-Key' */
  readonly header?: string;
  /** Instead of a header: the field of the JSON body. */
  readonly bodyField?: string;
  /** Instead of a header: the parameter of the query. */
  readonly queryField?: string;
  /**
   * Who puts the key where it belongs: `ctx.fetch`, or the tool itself (an id that the client chooses, an argument,
   * a Message-ID), or nobody, because it honours none. @default 'fetch'
   */
  readonly sentBy?: 'fetch' | 'tool' | 'nobody';
  /** Matches the random keys of its SDK: `ctx.fetch` replaces them with ours. */
  readonly sdkKey?: RegExp;
  /** False: not confirmed by its documentation. Then its window counts as 0. @default true */
  readonly verified?: boolean;
  /** The hosts that may see the key; `ctx.fetch` never sends it to strangers, and needs to know them. */
  readonly hosts?: readonly string[];
  /** It replays stored errors: after "not landed" a new key is needed. */
  readonly replaysErrors?: boolean;
  /** What its own errors mean. */
  readonly classify?: (error: unknown) => Classified | undefined;
}

/** How long after its attempt could last send a request may be in flight. */
export const defaultNetworkMs = 60_000;

interface Kept {
  readonly windowMs: number;
  /** The field that sets it. */
  readonly windowField: 'window' | 'per';
  readonly timeoutMs: number;
  /** Every doubt can be decided: the effect is harmless to repeat, or it can be verified. */
  readonly isDecided: boolean;
}

/** How long after the first dispatch a re-run with the provider's key is allowed; null: no key is trusted. */
export function computeRerunWindow(
  name: string,
  provider: Provider | undefined,
  { windowMs, windowField, timeoutMs, isDecided }: Kept,
): number | null {
  if (provider === undefined) return null;
  checkProvider(name, provider);
  const statedMs = durationMs(provider.window, 'provider.window');
  if (provider.sentBy === 'nobody') return null;
  const rememberedMs = provider.verified === false ? 0 : statedMs;
  if (!isDecided && rememberedMs < windowMs) {
    refuse(
      'provider',
      `${name}: ${describeMemory(provider, rememberedMs)}, this contract for ${formatDuration(windowMs)}; in between, nothing could decide a doubt.`,
      provider.verified === false
        ? 'Add `verify`; or, if you have checked its documentation yourself, pass { ...provider, verified: true }.'
        : `Add \`verify\`, or shorten \`${windowField}\`.`,
    );
  }
  if (rememberedMs === 0) return null;
  const marginMs = (Number.isFinite(timeoutMs) ? timeoutMs : 0) + defaultNetworkMs;
  return Math.max(0, rememberedMs - marginMs);
}

/**
 * The same for every contract under which a request and its repeat have one key at one service. In another place, or in another
 * format, a key is another one.
 */
export function markOf(provider: Provider): string {
  const { name, header, bodyField, queryField, sentBy = 'fetch', format } = provider;
  const place = [header, bodyField, queryField].map((each) => each ?? '');
  return shortDigest('semel/provider', name, sentBy, ...place, format === undefined ? '' : sampleOf(format));
}

function sampleOf(format: NonNullable<Provider['format']>): string {
  try {
    return String(format(sampleKey));
  } catch {
    // Each call will tell.
    return 'none';
  }
}

const sampleKey = '00000000-0000-4000-8000-000000000000';

function describeMemory({ name, verified }: Provider, rememberedMs: number): string {
  if (verified === false) return `how long ${name} remembers a key is not verified and counts as nothing`;
  if (rememberedMs === 0) return `${name} does not say how long it remembers a key`;
  return `${name} remembers a key for ${formatDuration(rememberedMs)}`;
}

function checkProvider(name: string, provider: Provider): void {
  if (typeof provider !== 'object' || provider === null)
    refuse(
      'provider',
      `${name}: \`provider\` must be an object.`,
      "Write { name: 'stripe', window: '24h', hosts: […] }.",
    );
  checkKnown(`${name}, provider`, provider, providerFields);
  if (typeof provider.name !== 'string' || isBlank(provider.name))
    refuse('provider.name', `${name}: the provider has no name.`, "Write name: 'stripe', for example.");
  for (const host of list(name, 'provider.hosts', provider.hosts)) {
    if (typeof host === 'string' && /^[^/\s@]+$/.test(host)) continue;
    const shown = JSON.stringify(host);
    refuse(
      'provider.hosts',
      `${name}: ${shown} is not a host.`,
      "Write it as in hosts: ['api.example.com'].",
    );
  }
  const { header, bodyField, queryField, sentBy = 'fetch' } = provider;
  oneOf(name, 'provider.sentBy', sentBy, ['fetch', 'tool', 'nobody']);
  const places = [header, bodyField, queryField].filter((place) => place !== undefined);
  if (places.length > (sentBy === 'fetch' ? 1 : 0) || places.includes(''))
    refuse(
      'provider',
      `${name}: a key goes to one place.`,
      "Name one of `header`, `bodyField` and `queryField`; none with sentBy: 'tool' or 'nobody'.",
    );
}

const providerFields = fieldNames<Provider>({
  name: true,
  window: true,
  hosts: true,
  header: true,
  bodyField: true,
  queryField: true,
  sentBy: true,
  sdkKey: true,
  verified: true,
  format: true,
  replaysErrors: true,
  classify: true,
});
