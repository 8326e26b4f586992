// The provider named in a policy file: the server itself, or a service that the server passes the key to. The proxy can
// verify neither, so it trusts the file for the provider and the registry for how long keys are remembered.

import { type Duration, durationMs, formatDuration } from '../../core/contract/duration.ts';
import { checkKnown, fieldNames as knownFields } from '../../core/contract/known-fields.ts';
import type { Provider } from '../../core/contract/provider.ts';
import { SemelError } from '../../core/errors.ts';
import { isBlank } from '../../core/plain.ts';
import { type ProviderRow, providers } from '../../providers/index.ts';

export interface FileProvider {
  /** A row of `semel/providers`, or your own name with a `window`. */
  readonly name: string;
  /** How long it remembers a key at least. @default the row's window */
  readonly window?: Duration;
  /** The tool's argument for the key. @default `_meta["dev.semel/idempotency-key"]` */
  readonly argument?: string;
}

const providerFields: ReadonlySet<string> = knownFields<FileProvider>({
  name: true,
  window: true,
  argument: true,
});

/** Checks it and returns its long form. */
export function readProvider(said: string | FileProvider): FileProvider {
  const provider = typeof said === 'string' ? { name: said } : said;
  if (
    typeof provider !== 'object' ||
    provider === null ||
    typeof provider.name !== 'string' ||
    isBlank(provider.name)
  )
    throw refusal(
      'it has no name.',
      'Write "stripe", or { "name": "stripe", "argument": "idempotency_key" }.',
    );
  checkKnown('provider', provider, providerFields);
  const { argument } = provider;
  if (argument !== undefined && (typeof argument !== 'string' || !/^[\w-]{1,100}$/.test(argument)))
    throw refusal('`argument` is not a valid argument name.', 'Write "idempotency_key", for example.');
  return provider;
}

export function toProvider({ name, window }: FileProvider): Provider {
  const row = providers.find((each) => each.name === name && !isOfOneDomain(each));
  if (row?.key === 'none')
    throw refusal(
      `${name} does not honour keys.`,
      'Leave `provider` out: calls in doubt are then held for a person.',
    );
  const stated = window ?? (row?.verified === true ? row.window : undefined);
  if (stated === undefined)
    throw refusal(
      row === undefined
        ? `${JSON.stringify(name)} is not a known provider.`
        : `how long ${name} remembers a key is not verified.`,
      `Name a verified row of docs/reference/providers.md, or add a window that you have verified, such as "window": "24h".`,
    );
  const statedMs = durationMs(stated, 'window');
  if (row?.verified === true && row.window !== undefined && statedMs > durationMs(row.window, 'window'))
    throw refusal(
      `${name} remembers a key for ${formatDuration(durationMs(row.window, 'window'))}.`,
      'Write that as its `window`, or less, or leave it out.',
    );
  return {
    name,
    window: stated,
    sentBy: 'tool',
    ...(row?.format === undefined ? {} : { format: row.format }),
    ...(row?.provider.replaysErrors === true ? { replaysErrors: true } : {}),
  };
}

/** Its key contains a domain that only a program can know. */
function isOfOneDomain({ name }: ProviderRow): boolean {
  return name === 'smtp';
}

function refusal(happened: string, next: string): SemelError {
  return new SemelError('CONTRACT_INVALID', happened, { path: 'provider', next });
}
