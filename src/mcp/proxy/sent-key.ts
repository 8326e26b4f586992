// A key that goes to the server with a call, where the policy file says that the server takes one.

import { fieldsOf } from '../protocol/messages.ts';
import { parsedExactly, rawNumber, unmarked } from '../protocol/numbers.ts';

export interface SentKey {
  readonly key: string;
  /** The argument that takes it; undefined: this name in `_meta`. */
  readonly argument: string | undefined;
  /** The args that may have landed under the key, where these are others. */
  readonly firstArgs?: unknown;
}

/** The same call with the key in it, as it was first worded; its numbers keep their digits. */
export function withKey(call: Buffer, { key, argument, firstArgs }: SentKey, metaName: string): Buffer {
  const { params: asked, ...message } = fieldsOf(parsedExactly(call.toString(), rawNumber));
  const words = firstArgs === undefined ? {} : { arguments: unmarked(firstArgs) };
  const params = { ...fieldsOf(asked), ...words };
  const field = argument === undefined ? '_meta' : 'arguments';
  const sent = { ...fieldsOf(fieldsOf(params)[field]), [argument ?? metaName]: key };
  return Buffer.from(`${JSON.stringify({ ...message, params: { ...params, [field]: sent } })}\n`);
}
