// Puts the provider key into a call, if the policy file says that the server takes one.

import { asRecord } from '../protocol/messages.ts';
import { parseExact, rawNumber, unmark } from '../protocol/numbers.ts';

export interface SentKey {
  readonly key: string;
  /** The argument that takes it; undefined: this name in `_meta`. */
  readonly argument: string | undefined;
  /** The args that may have landed under this key, if the call has different ones. */
  readonly firstArgs?: unknown;
}

/** The call with the key in it, with the first args; numbers keep their digits. */
export function withKey(call: Buffer, { key, argument, firstArgs }: SentKey, metaName: string): Buffer {
  const { params: own, ...message } = asRecord(parseExact(call.toString(), rawNumber));
  const args = firstArgs === undefined ? {} : { arguments: unmark(firstArgs) };
  const params = { ...asRecord(own), ...args };
  const field = argument === undefined ? '_meta' : 'arguments';
  const sent = { ...asRecord(asRecord(params)[field]), [argument ?? metaName]: key };
  return Buffer.from(`${JSON.stringify({ ...message, params: { ...params, [field]: sent } })}\n`);
}
