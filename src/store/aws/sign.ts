// Signs a request for AWS and services that speak its protocol (Signature Version 4). Small enough to own: an SDK would be
// a dependency, and hides the Date of the answers, which is the store's clock.

import { createHash, createHmac } from 'node:crypto';

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

export interface SignedRequest {
  readonly method: string;
  /** With an encoded path and query. */
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface Signing {
  readonly service: string;
  readonly region: string;
  readonly credentials: AwsCredentials;
  /** Milliseconds since the epoch, by the clock of the service. */
  readonly at: number;
}

const algorithm = 'AWS4-HMAC-SHA256';

/** All headers of the request, with its signature. */
export function sign(
  { method, url, headers, body }: SignedRequest,
  { service, region, credentials, at }: Signing,
): Record<string, string> {
  const stamp = new Date(at).toISOString().replace(/[-:]|\.\d+/g, '');
  const payload = sha256(body);
  const all: Record<string, string> = {
    ...headers,
    host: url.host,
    'x-amz-date': stamp,
    'x-amz-content-sha256': payload,
    ...(credentials.sessionToken === undefined ? {} : { 'x-amz-security-token': credentials.sessionToken }),
  };
  const names = Object.keys(all).sort();
  const query = [...url.searchParams]
    .map(([name, value]) => `${encodeStrictly(name)}=${encodeStrictly(value)}`)
    .sort()
    .join('&');
  const canonical = [
    method,
    url.pathname,
    query,
    ...names.map((name) => `${name}:${all[name]?.trim()}`),
    '',
    names.join(';'),
    payload,
  ].join('\n');
  const scope = `${stamp.slice(0, 8)}/${region}/${service}/aws4_request`;
  const text = [algorithm, stamp, scope, sha256(canonical)].join('\n');
  const key = scope
    .split('/')
    .reduce<string | Buffer>((secret, part) => hmac(secret, part), `AWS4${credentials.secretAccessKey}`);
  const signature = hmac(key, text).toString('hex');
  const { host: _, ...sent } = all;
  return {
    ...sent,
    authorization: `${algorithm} Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`,
  };
}

/** Percent-encodes everything but letters, digits and `-._~`. */
export function encodeStrictly(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
