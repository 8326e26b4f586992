// Every operation on a server of its own, at every message, in every manner; operations side by side, since most of the
// time is spent waiting for answers that do not come.

import { startPostgres } from '../servers/postgres.ts';
import { startRedis } from '../servers/redis.ts';
import { hurtLedger, type WireStore } from './ledgers.ts';
import { operations } from './operations.ts';
import { faultEveryFrame, type WireReport } from './wire.ts';

/** Longer than a busy machine ever takes for an answer that does come. */
const timeoutMs = 1_500;

export async function hurtAll(
  kind: WireStore,
): Promise<{ readonly reports: readonly WireReport[]; readonly place: string }> {
  // Nothing on disk: a disk that is busy would look like a wire that fails.
  await using server = await (kind === 'postgres' ? startPostgres() : startRedis({ persistence: 'none' }));
  if (server === undefined) throw new Error('There is no Redis to be had.');
  const reports = await Promise.all(
    operations.map(async (operation, nth) => {
      await using ledger = await hurtLedger(kind, server.url, `wire_${nth}`, timeoutMs);
      return await faultEveryFrame({ ...ledger, operation });
    }),
  );
  return { reports, place: 'version' in server ? `Postgres ${server.version}` : 'Redis' };
}
