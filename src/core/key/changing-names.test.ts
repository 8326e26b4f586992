import { expect, test } from 'vitest';
import { looksFresh, looksReworded } from './changing-names.ts';

test.each(['content', 'markdown', 'html', 'draft', 'output', 'body', 'message'])(
  'a key with the output `%s` is warned of',
  (name) => expect(looksReworded(name)).toBe(true),
);

test.each(['ts', 'idempotency_key', 'idempotencyKey', 'timestamp', 'nonce'])(
  'a key with `%s`, which is fresh on each call, is warned of',
  (name) => expect(looksFresh(name)).toBe(true),
);

test.each(['to', 'order', 'amount', 'context', 'contents_id', 'parts', 'tsunami'])(
  '`%s` says what the call is about, and is not warned of',
  (name) => expect([looksReworded(name), looksFresh(name)]).toEqual([false, false]),
);
