// A provider that is a file with one payment per line, and a tool that can look a payment up by its id only.

import { readFileSync } from 'node:fs';
import { type AttemptContext, landed, notLanded, type Semel, unsure } from '../../src/index.ts';

export interface Paths {
  readonly ledger: string;
  readonly paid: string;
}

export function payments(
  semel: Semel,
  { paid }: Paths,
  run: (ctx: AttemptContext<undefined>) => Promise<string>,
) {
  return semel.tool({
    name: 'pay',
    effect: 'irreversible',
    per: 'ever',
    identity: ['order'],
    run: (_: { order: string }, ctx) => run(ctx),
    verify: (_, { remoteRef }) => {
      if (remoteRef === undefined) return unsure('no id was noted');
      return readFileSync(paid, 'utf8').split('\n').includes(remoteRef) ? landed(remoteRef) : notLanded();
    },
  });
}
