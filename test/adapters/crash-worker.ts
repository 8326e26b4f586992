// One agent in a process of its own: `crash-worker.ts <harness module> <export> <folder> <when it dies>`. Its refund is a
// line in a file, its ledger is another.
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSemel } from '../../src/semel/index.ts';
import type { AdapterHarness } from '../support/adapter-contract/index.ts';

const [module = '', name = '', folder = '', dies = 'never'] = process.argv.slice(2);
const harness = (await import(module))[name] as AdapterHarness;
const semel = createSemel({
  store: `sqlite:${join(folder, 'ledger.db')}`,
  namespace: 'shop',
  onWarning: () => {},
  // The one that died is waited for so long.
  defaults: { lease: '1s' },
});
const die = () => process.kill(process.pid, 'SIGKILL');
const refund = {
  tool: 'refund',
  args: { order: 'o-17', amount: 4200, reason: 'it arrived broken' },
} as const;

const { outputs } = await semel.within({ conversation: 'chat-7', turn: 'turn-1' }, () =>
  harness.run({
    semel,
    script: [[refund]],
    effects: {
      refund: (args) => {
        appendFileSync(join(folder, 'refunds.txt'), `${args.order}\n`);
        if (dies === 'before it is recorded') die();
        return { refunded: args.amount };
      },
      mail: () => 0,
      search: () => 0,
    },
    onStep: (step) => {
      if (step === 2 && dies === 'after it is recorded') die();
    },
  }),
);
process.stdout.write(JSON.stringify(outputs));
await semel.close();
