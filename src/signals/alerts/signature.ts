// Signs a delivery as Standard Webhooks 1.0.0 does: HMAC-SHA256 over `id.time.body`, one signature per secret.

import { createHmac, randomBytes } from 'node:crypto';
import { SemelError } from '../../core/errors.ts';

export function makeSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/** One secret per line or space: two while they are rotated. */
export function readSecrets(text: string): readonly Uint8Array[] {
  const secrets = text.split(/\s+/).filter((each) => each !== '');
  if (secrets.length === 0) throw wrongSecret();
  return secrets.map((secret) => {
    const [, encoded] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret) ?? [];
    const bytes = Buffer.from(encoded ?? '', 'base64');
    if (bytes.length < 24 || bytes.length > 64) throw wrongSecret();
    return bytes;
  });
}

function wrongSecret(): SemelError {
  return new SemelError('INVALID_ARGS', 'The secret is not `whsec_` and base64 of 24 to 64 bytes.', {
    path: 'secret',
    next: 'Make one: echo "whsec_$(openssl rand -base64 32)"',
  });
}

export function signatureHeaders(
  secrets: readonly Uint8Array[],
  id: string,
  body: string,
  now: number,
): Readonly<Record<string, string>> {
  const time = String(Math.floor(now / 1_000));
  const sign = (secret: Uint8Array) =>
    `v1,${createHmac('sha256', secret).update(`${id}.${time}.${body}`).digest('base64')}`;
  return {
    'webhook-id': id,
    'webhook-timestamp': time,
    'webhook-signature': secrets.map(sign).join(' '),
  };
}
