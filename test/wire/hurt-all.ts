// Every operation on a server of its own, at every message, in every manner; some of them side by side, since
// most of the time is spent waiting for answers that do not come.

import { startPostgres } from '../servers/postgres.ts';
import { startRedis } from '../servers/redis.ts';
import { hurtLedger, type WireStore } from './ledgers.ts';
import { operations } from './operations.ts';
import { faultEveryFrame, type WireReport } from './wire.ts';

/** Longer than a busy machine ever takes for an answer that does come. */
const timeoutMs = 3_000;

/** More of them would only wait for each other on a small machine. */
const lanes = 5;

export async function hurtAll(
  kind: WireStore,
): Promise<{ readonly reports: readonly WireReport[]; readonly place: string }> {
  // Nothing on disk: a disk that is busy would look like a wire that fails.
  await using server = await (kind === 'postgres' ? startPostgres() : startRedis({ persistence: 'none' }));
  if (server === undefined) throw new Error('There is no Redis to be had.');
  const reports: WireReport[] = [];
  const left = operations.entries();
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (const [nth, operation] of left) {
        await using ledger = await hurtLedger(kind, server.url, `wire_${nth}`, timeoutMs);
        reports[nth] = await faultEveryFrame({ ...ledger, operation });
      }
    }),
  );
  return { reports, place: 'version' in server ? `Postgres ${server.version}` : 'Redis' };
}
