// A person accepts that the ledger has forgotten. It stays closed until every record that is there has a fence above any
// that can have been given since, and then goes on as another incarnation.

import type { Random } from '../../core/clock.ts';
import { newRevision } from '../../store/remote/plan.ts';
import type { Node } from './client.ts';
import { close, lift, look } from './exchange/scripts.ts';
import { acceptAnew, bucketsOf, type Run } from './meta.ts';
import { type Names, namesOf, partsOf, scan } from './names.ts';
import { headOf, pack, unpack } from './rows.ts';

export interface AcceptLossOptions {
  readonly run: Run;
  nodes(): Promise<readonly Node[]>;
  readonly prefix: string;
  readonly isCluster: boolean;
  readonly random: Random;
  readonly said: { readonly by: string; readonly note: string | null };
}

export async function acceptLoss({
  run,
  nodes,
  prefix,
  isCluster,
  random,
  said,
}: AcceptLossOptions): Promise<void> {
  const names = namesOf(prefix, await bucketsOf(run, prefix, isCluster));
  for (let bucket = 0; bucket < names.buckets; bucket += 1)
    await run(close, [names.slots(bucket), names.meta(bucket)], []);
  for await (const some of scan(await nodes(), names))
    await Promise.all(some.map((name) => liftOne(run, names, name, random)));
  await acceptAnew(run, names, random, said);
}

async function liftOne(run: Run, names: Names, name: string, random: Random): Promise<void> {
  const record = names.record(names.bucketOf(...partsOf(name)), name);
  const [now, value] = (await run(look, [record], [])) as [number, string | null];
  if (value === null) return;
  const { row, revision } = unpack(...partsOf(name), value);
  const fence = now * 1000;
  if (row.fence >= fence) return;
  await run(lift, [record], [headOf(revision), pack({ ...row, fence }, newRevision(random))]);
}
