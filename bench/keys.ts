// Deriving a key from 1 KB of args, against the least that could be done with them.

import { hash } from 'node:crypto';
import { identityOf } from '../src/core/identity.ts';
import { deriveKey } from '../src/core/key.ts';
import { measure } from './measure.ts';
import type { Section } from './report.ts';

const args = {
  order: {
    id: 'o-1029384756',
    currency: 'EUR',
    lines: Array.from({ length: 8 }, (_, n) => ({
      sku: `sku-${n}-abcdef`,
      quantity: n + 1,
      price: 1990 + n,
      note: 'gift',
    })),
  },
  customer: {
    name: 'Ada Lovelace',
    address: { street: '12 St James Square', city: 'London', zip: 'SW1Y 4JH', country: 'GB' },
  },
  tags: ['priority', 'fragile', 'signature-required'],
  requestedBy: 'agent-7',
  comment: 'Please deliver before noon and ring twice at the side entrance of the building.',
};
const fields = { identity: undefined, content: [], volatile: [] };
const limits = { maxDepth: 64, maxBytes: 1_048_576 };
const count = 20_000;

export async function keys(rounds: number): Promise<readonly Section[]> {
  const figures = await measure(rounds, [
    {
      name: 'limit: JSON.stringify + sha256',
      run: () => {
        for (let n = 0; n < count; n += 1) hash('sha256', JSON.stringify(args), 'hex');
        return count;
      },
    },
    {
      name: 'semel: a key',
      run: () => {
        const period = { text: '-', exact: 'ever' };
        for (let n = 0; n < count; n += 1) {
          deriveKey({
            namespace: 'bench',
            contract: 'order.ship',
            period,
            identity: identityOf(args, fields, {}, limits),
          });
        }
        return count;
      },
    },
  ]);
  const [limit, semel] = figures;
  return [
    {
      title: `Keys: ${JSON.stringify(args).length} bytes of args`,
      figures,
      ratios: [
        {
          what: 'time for a key / limit',
          value: (limit?.perSecond ?? 0) / (semel?.perSecond ?? 1),
          goal: { direction: 'at most', value: 4 },
        },
      ],
    },
  ];
}
