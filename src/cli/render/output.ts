// Prints a stored result again, byte for byte.

import { once } from 'node:events';
import { type StoredValue, toBytes } from '../../jobs/index.ts';
import { jsonText } from './json-text.ts';
import { complain } from './print.ts';

export async function writeResult(value: StoredValue): Promise<void> {
  if (value === undefined || value === null) return;
  const stdout = typeof value === 'string' ? value : stdoutOf(value);
  if (stdout !== undefined) await write(toBytes(stdout));
  else if (typeof value === 'object' && value.bytes !== undefined)
    complain(`it printed ${value.bytes} bytes, more than can be stored: no output to repeat`);
  // A result that a person gave.
  else await write(Buffer.from(`${jsonText(value)}\n`));
}

/** Only text and bytes are output, whatever result a person gave. */
function stdoutOf({ stdout }: { readonly stdout?: unknown }): string | Uint8Array | undefined {
  return typeof stdout === 'string' || stdout instanceof Uint8Array ? stdout : undefined;
}

async function write(bytes: Uint8Array): Promise<void> {
  if (!process.stdout.write(bytes)) await once(process.stdout, 'drain');
}
