// Which running records have lost their processes. The kernel of this machine knows that long before the lease is over: of `semel
// run` and `semel once` by their pipes, of the library by its process ids.

import { isOwnerAlive, livenessFolder } from '../../jobs/index.ts';
import type { RecordInfo } from '../../semel/index.ts';
import { isProcessGone } from '../../store/process-life.ts';
import type { Namespaces } from '../args/namespaces.ts';

export async function deadHolders(ledger: Namespaces): Promise<(record: RecordInfo) => boolean> {
  const { kind, location, isLocal } = await ledger.open();
  const folder = livenessFolder(kind, location);
  const isDead = (owner: string) =>
    (isLocal === true && isProcessGone(owner)) || isOwnerAlive(folder, owner) === false;
  return ({ status, lapsed, owner }) => status === 'running' && !lapsed && isDead(owner);
}
