// Region, endpoint and credentials of a service: as given, otherwise from the environment variables that AWS's own tools
// read. Files in ~/.aws, single sign-on and instance roles are for a provider function: there is an SDK for that.

import { SemelError } from '../../core/errors.ts';
import type { AwsCredentials } from './sign.ts';

export interface AwsOptions {
  /** @default AWS_REGION or AWS_DEFAULT_REGION */
  readonly region?: string;
  /** The address of the service, if it is not AWS's own. @default AWS_ENDPOINT_URL_<SERVICE> or AWS_ENDPOINT_URL */
  readonly endpoint?: string;
  /**
   * Or a function that returns them, asked before every request: `fromNodeProviderChain()` of `@aws-sdk/credential-providers`
   * is one. @default AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN
   */
  readonly credentials?: AwsCredentials | (() => Promise<AwsCredentials>);
  /** @default globalThis.fetch */
  readonly fetch?: typeof globalThis.fetch;
}

export interface AwsPlace {
  readonly region: string;
  /** Without a slash at the end. */
  readonly endpoint: string;
  readonly credentials: () => Promise<AwsCredentials>;
}

export function findPlace(service: 'dynamodb' | 's3', options: AwsOptions): AwsPlace {
  const { env } = process;
  const { credentials } = options;
  const endpoint =
    options.endpoint ?? env[`AWS_ENDPOINT_URL_${service.toUpperCase()}`] ?? env.AWS_ENDPOINT_URL;
  const region = options.region ?? env.AWS_REGION ?? env.AWS_DEFAULT_REGION;
  if (region === undefined || !/^[a-z0-9-]{1,40}$/.test(region))
    throw invalid(
      region === undefined
        ? 'The AWS region is not known.'
        : `${JSON.stringify(region)} is not an AWS region.`,
      `Add \`?region=…\` to the URL, pass \`region\`, or set AWS_REGION. ${service === 's3' ? 'For Cloudflare R2 it is `auto`.' : ''}`.trim(),
    );
  return {
    region,
    endpoint: endpoint === undefined ? ownEndpoint(service, region) : checkEndpoint(endpoint),
    credentials: async () =>
      checkCredentials(
        typeof credentials === 'function' ? await credentials() : (credentials ?? fromEnvironment()),
      ),
  };
}

function ownEndpoint(service: string, region: string): string {
  return `https://${service}.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;
}

function checkEndpoint(endpoint: string): string {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  // Without a bare `?` or `#` at its end, which would take in every path.
  if (url !== undefined && /^https?:$/.test(url.protocol) && isPlain(url))
    return url.origin + url.pathname.replace(/\/+$/, '');
  throw invalid(
    'The endpoint of the store is not a plain http or https address.',
    'Write `https://host` or `http://localhost:8000`.',
  );
}

/** `fetch` would refuse a password, and quote it in its error. */
function isPlain({ username, password, search, hash }: URL): boolean {
  return username === '' && password === '' && search === '' && hash === '';
}

/** `fetch` would quote them in its error, which gets into logs. */
function checkCredentials(credentials: AwsCredentials): AwsCredentials {
  const { accessKeyId, secretAccessKey, sessionToken = '-' } = credentials;
  for (const [name, value] of Object.entries({ accessKeyId, secretAccessKey, sessionToken }))
    if (!/^[\x21-\x7e]+$/.test(value))
      throw invalid(
        `The AWS credentials have characters that do not belong there (${name}).`,
        'Remove spaces and line breaks from them.',
      );
  return credentials;
}

function fromEnvironment(): AwsCredentials {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = process.env;
  if (accessKeyId && secretAccessKey)
    return { accessKeyId, secretAccessKey, sessionToken: process.env.AWS_SESSION_TOKEN || undefined };
  throw invalid(
    'There are no AWS credentials.',
    'Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (`aws configure export-credentials --format env` prints them), or pass `credentials` in code.',
  );
}

function invalid(happened: string, next: string): SemelError {
  return new SemelError('CONTRACT_INVALID', happened, { path: 'store', next });
}
