// Every row: where it was read, a key in the form that is wanted, and a contract that trusts no more than was read.

import { type Provider, unsure } from 'semel';
import { describe, expect, test } from 'vitest';
import { providerKey } from '../../src/core/key/key.ts';
import * as door from '../../src/providers/index.ts';
import { quick } from '../library/support.ts';

const { providers } = door;
const uuids = Array.from({ length: 50 }, (_, n) => providerKey('shop', `refund/${n}`, 1));

/** Their owners' own: whoever adds a row adds the host of its documentation here, and is asked about it. */
const official = new Set([
  'blogs.intuit.com',
  'cloud.google.com',
  'core.telegram.org',
  'developer.monday.com',
  'developer.nylas.com',
  'developer.paypal.com',
  'developer.salesforce.com',
  'developer.zendesk.com',
  'developers.brevo.com',
  'developers.google.com',
  'developers.hubspot.com',
  'developers.notion.com',
  'developers.telnyx.com',
  'docs.adyen.com',
  'docs.aws.amazon.com',
  'docs.cdp.coinbase.com',
  'docs.github.com',
  'docs.slack.dev',
  'docs.stripe.com',
  'docs.wise.com',
  'documentation.mailgun.com',
  'github.com/XeroAPI',
  'github.com/discord',
  'github.com/microsoft',
  'github.com/paypal',
  'github.com/plaid',
  'github.com/square',
  'google.aip.dev',
  'kubernetes.io',
  'linear.app',
  'platform.openai.com',
  'postmarkapp.com',
  'resend.com',
  'shopify.dev',
  'www.checkout.com',
  'www.rfc-editor.org',
  'www.twilio.com',
]);

function contractWith(provider: Provider, more: object = {}): () => unknown {
  return () =>
    quick().tool({
      name: 'x',
      effect: 'write-non-idempotent',
      per: 'ever',
      provider,
      ...more,
      run: () => 1,
    });
}

test('no two rows have one name, and every provider of the door has its row', () => {
  const names = providers.map(({ name }) => name);
  expect(names).toEqual([...new Set(names)]);
  const { providers: _, defineRow: __, smtp, ...rest } = door;
  expect([...Object.values(rest), smtp('example.com')].map(({ name }) => name).sort()).toEqual(names.sort());
});

describe.each(providers)('$name', (row) => {
  const { provider, verified, source, checkedAt, key, fits, window } = row;

  test('says where and when it was read', () => {
    const { protocol, host, pathname } = new URL(source);
    expect(protocol).toBe('https:');
    expect([...official]).toContain(host === 'github.com' ? `${host}/${pathname.split('/')[1]}` : host);
    expect(checkedAt).toMatch(/^20\d\d-(0[1-9]|1[0-2])(-\d\d)?$/);
  });

  test('has a key in the form that is wanted, and no two alike', () => {
    const keys = uuids.map((uuid) => provider.format?.(uuid) ?? uuid);
    if (fits !== undefined) for (const each of keys) expect(each).toMatch(fits);
    expect(new Set(keys).size).toBe(uuids.length);
  });

  test('is trusted as far as it was read, and no further', () => {
    const isTrusted = verified && window !== undefined;
    if (key === 'none') expect(contractWith(provider)).not.toThrow();
    else if (!isTrusted) expect(contractWith(provider)).toThrow(/not verified|does not say how long/);
    else expect(contractWith(provider, { window: '1m' })).not.toThrow();
    expect(contractWith(provider, { verify: () => unsure('x') })).not.toThrow();
  });

  test('gets a new key for another try if it would replay its stored error for the old one', () => {
    expect(provider.replaysErrors ?? false).toBe(row.errors === 'replayed');
  });

  test("does not classify other services' errors", () => {
    for (const other of [new Error('x'), { status: 400 }, undefined, new Response(null, { status: 400 })])
      expect(provider.classify?.(other)).toBeUndefined();
    for (const host of ['elsewhere.example', ...(provider.hosts ?? []).map((own) => `not-${own}`)])
      expect(provider.classify?.({ response: { status: 400, url: `https://${host}/v1/x` } })).toBeUndefined();
  });

  test('knows a response of its own host', () => {
    const [host] = provider.hosts ?? [];
    if (host === undefined) return;
    const response = (status: number, data?: object) => ({
      response: { status, url: `https://${host}/v1/x`, data },
    });
    expect(provider.classify?.(response(422))).toBe('rejected');
    expect(provider.classify?.(response(401))).toBe('notLanded');
    expect(provider.classify?.(response(500))).toBe('maybeLanded');
    for (const { code } of [row.inFlight ?? {}, row.mismatch ?? {}])
      for (const body of [{ errors: [{ code }] }, { errorCode: code, errorType: 'validation' }])
        if (code !== undefined) expect(provider.classify?.(response(422, body))).toBe('maybeLanded');
  });
});
