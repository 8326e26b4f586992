// Reopens a ledger after a person accepted that it lost records. It stays closed until every remaining record has a fence
// above any that may have been given since; then it continues under a new id.

import type { Random } from '../../core/clock.ts';
import { newRevision } from '../../store/remote/plan.ts';
import type { Node } from './client.ts';
import { close, lift, look } from './exchange/scripts.ts';
import { type Run, readBucketCount, reopenAsNew } from './meta.ts';
import { createNames, type Names, scan, splitName } from './names.ts';
import { encodeHead, pack, unpack } from './rows.ts';

interface AcceptLossOptions {
  readonly run: Run;
  nodes(): Promise<readonly Node[]>;
  readonly prefix: string;
  readonly isCluster: boolean;
  readonly random: Random;
  readonly said: { readonly by: string; readonly note: string | null };
}

export async function acceptLoss(options: AcceptLossOptions): Promise<void> {
  const { run, nodes, prefix, isCluster, random, said } = options;
  const names = createNames(prefix, await readBucketCount(run, prefix, isCluster));
  for (let bucket = 0; bucket < names.buckets; bucket += 1)
    await run(close, [names.slots(bucket), names.meta(bucket)], []);
  for await (const some of scan(await nodes(), names))
    await Promise.all(some.map((name) => liftOne(run, names, name, random)));
  await reopenAsNew(run, names, random, said);
}

async function liftOne(run: Run, names: Names, name: string, random: Random): Promise<void> {
  const record = names.record(names.bucketOf(...splitName(name)), name);
  const [now, value] = (await run(look, [record], [])) as [number, string | null];
  if (value === null) return;
  const { row, revision } = unpack(...splitName(name), value);
  const fence = now * 1000;
  if (row.fence >= fence) return;
  await run(lift, [record], [encodeHead(revision), pack({ ...row, fence }, newRevision(random))]);
}
