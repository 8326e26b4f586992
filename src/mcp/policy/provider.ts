// Who honours the key of a call, named in the policy file: the server itself, or a service that the server hands the key
// to. The proxy cannot see either, so it takes the file's word for it, and the registry's for how long a key is remembered.

import { type Duration, durationMs, formatDuration } from '../../core/contract/duration.ts';
import { checkKnown, fieldNames as knownFields } from '../../core/contract/known-fields.ts';
import type { Provider } from '../../core/contract/provider.ts';
import { SemelError } from '../../core/errors.ts';
import { isBlank } from '../../core/plain.ts';
import { type ProviderRow, providers } from '../../providers/index.ts';

export interface FileProvider {
  /** A row of `semel/providers`, or a name of one's own with a `window`. */
  readonly name: string;
  /** How long it remembers a key, at the least. @default what the row says */
  readonly window?: Duration;
  /** The argument of the tool that takes the key. @default `_meta["dev.semel/idempotency-key"]` */
  readonly argument?: string;
}

const providerFields: ReadonlySet<string> = knownFields<FileProvider>({
  name: true,
  window: true,
  argument: true,
});

/** As the file has it, in its long form. */
export function fileProvider(said: string | FileProvider): FileProvider {
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
    throw refusal('`argument` is no name of an argument.', 'Write "idempotency_key", for example.');
  return provider;
}

export function providerOf({ name, window }: FileProvider): Provider {
  const row = providers.find((each) => each.name === name && !isOfOneDomain(each));
  if (row?.key === 'none')
    throw refusal(`${name} honours no key.`, 'Leave `provider` out: what is in doubt is then held.');
  const stated = window ?? (row?.verified === true ? row.window : undefined);
  if (stated === undefined)
    throw refusal(
      row === undefined
        ? `there is no row for ${JSON.stringify(name)}.`
        : `how long ${name} remembers a key is not verified.`,
      `Name a row of docs/providers.md that is trusted; or, if you have read it yourself, add "window": "24h".`,
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

/** Its key names a domain that only a program can know. */
function isOfOneDomain({ name }: ProviderRow): boolean {
  return name === 'smtp';
}

function refusal(happened: string, next: string): SemelError {
  return new SemelError('CONTRACT_INVALID', happened, { path: 'provider', next });
}
