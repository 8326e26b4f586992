// A person's act on a record as it stands, for tests that are not about verdicts.

import type { Act, ResolveAnswer, Store } from '../../src/store/index.ts';
import { theNamespace } from '../../src/testing/store-contract/attempt.ts';

export async function decide(
  store: Store,
  key: string,
  act: Act,
  { force = false }: { force?: boolean } = {},
): Promise<ResolveAnswer> {
  const record = await store.read(theNamespace, key);
  return store.resolve({
    namespace: theNamespace,
    key,
    seen: { fence: record?.fence ?? 0, dispatchedAt: record?.lastDispatchedAt ?? null },
    act,
    decidedAt: record?.readAt ?? 0,
    token: `${act.type} ${key}`,
    by: 'operator',
    note: null,
    force,
  });
}
