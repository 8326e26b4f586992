// A key that goes to the server with a call, where the policy file says that the server takes one.

import { fieldsOf } from '../protocol/messages.ts';
import { parsedExactly, rawNumber } from '../protocol/numbers.ts';

export interface SentKey {
  readonly key: string;
  /** The argument that takes it; undefined: this name in `_meta`. */
  readonly argument: string | undefined;
}

/** The same call with the key in it; its numbers keep their digits. */
export function withKey(call: Buffer, { key, argument }: SentKey, metaName: string): Buffer {
  const { params, ...message } = fieldsOf(parsedExactly(call.toString(), rawNumber));
  const field = argument === undefined ? '_meta' : 'arguments';
  const sent = { ...fieldsOf(fieldsOf(params)[field]), [argument ?? metaName]: key };
  return Buffer.from(`${JSON.stringify({ ...message, params: { ...fieldsOf(params), [field]: sent } })}\n`);
}
