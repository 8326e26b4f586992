// Which running records have lost their processes. The kernel of this machine knows that of `semel run` and `semel once`, long
// before the lease is over.

import { isOwnerAlive, livenessFolder } from '../../jobs/index.ts';
import type { RecordInfo } from '../../semel/index.ts';
import type { Namespaces } from '../args/namespaces.ts';

export async function deadHolders(ledger: Namespaces): Promise<(record: RecordInfo) => boolean> {
  const { kind, location } = await ledger.open();
  const folder = livenessFolder(kind, location);
  return ({ status, lapsed, owner }) =>
    status === 'running' && !lapsed && isOwnerAlive(folder, owner) === false;
}
