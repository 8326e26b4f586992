// A refund that lands once: asked for three times, re-worded, asked for by two at once, and after a crash.
// The bank is a file that this program appends to; semel does not read it, so it shows what really landed.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSemel } from 'semel';

interface Refund {
  paymentId: string;
  amount: number;
  reason: string;
}

const crashing = process.argv[2] === 'crash';
const folder = process.argv[3] ?? mkdtempSync(join(tmpdir(), 'semel-quick-start-'));
const bank = join(folder, 'bank.log');

const semel = createSemel({ store: `sqlite:${join(folder, 'ledger.db')}`, namespace: 'quick-start' });

const refund = semel.tool({
  name: 'refund',
  effect: 'write-non-idempotent',
  stakes: 'high',
  per: 'ever',
  identity: ['paymentId', 'amount'], // all other fields are content: a model may re-word them
  lease: '300ms', // how long a dead process blocks; short, so that this story is
  run: async ({ paymentId, amount }: Refund) => {
    await sleep(20);
    appendFileSync(bank, `${paymentId} ${amount}\n`);
    if (crashing) process.kill(process.pid, 'SIGKILL'); // after the effect, before the ledger hears of it
    return { id: `re_${paymentId}` };
  },
});

if (crashing) await refund({ paymentId: 'p-2', amount: 30, reason: 'broken on arrival' });
else await tell();

async function tell(): Promise<void> {
  title('1. The agent asks three times');
  for (let asked = 1; asked <= 3; asked += 1)
    await ask({ paymentId: 'p-1', amount: 20, reason: 'wrong size' });

  title('2. It re-plans, and words the reason differently');
  await ask({ paymentId: 'p-1', amount: 20, reason: 'The customer says that it does not fit.' });

  title('3. Two workers ask at the same time');
  const both = { paymentId: 'p-3', amount: 10, reason: 'late' };
  await Promise.all([ask(both), ask(both)]);

  title('4. A process is killed right after its refund landed');
  const child = spawn(process.execPath, [import.meta.filename, 'crash', folder], { stdio: 'inherit' });
  const [, signal] = await once(child, 'exit');
  say(`the process ended with ${signal}`);
  await sleep(350); // its lease is over now
  const broken = { paymentId: 'p-2', amount: 30, reason: 'broken on arrival' };
  await ask(broken);

  title('5. A person looks at the bank, and decides');
  const { items } = await semel.doubts.list();
  for (const { ref, contract, args } of items) {
    say(`in doubt: ${ref} ${contract} ${JSON.stringify(args)}`);
    await semel.doubts.resolve(ref, { landed: { id: 're_p-2' } }, { by: 'ann', note: 'seen at the bank' });
  }
  await ask(broken);

  title('What the bank saw');
  for (const line of landed()) say(line);
  await semel.close();
  rmSync(folder, { recursive: true });
}

async function ask(args: Refund): Promise<void> {
  const result = await refund.try(args);
  const { executed, drift } = result.receipt;
  if (!result.ok) return say(`${result.error.code}: ${result.error.message}`);
  const how = executed ? 'executed' : 'replayed: nothing was sent again';
  const note = drift.length > 0 ? ` (other wording of ${drift.join(', ')}; the first one counts)` : '';
  say(`${result.value.id}  ${how}${note}`);
}

function landed(): string[] {
  return existsSync(bank) ? readFileSync(bank, 'utf8').trim().split('\n') : [];
}

function title(text: string): void {
  console.log(`\n${text}`);
}

function say(text: string): void {
  console.log(`   ${text}`);
}
