// A nightly agent that is killed after it wrote its plan. The next start continues with the same plan, and publishes once.
// The blog is a file that this program appends to; semel does not read it, so it shows what really landed.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSemel, day } from 'semel';

const dies = process.argv[2] === 'dies';
const folder = process.argv[3] ?? mkdtempSync(join(tmpdir(), 'semel-nightly-'));
const blog = join(folder, 'blog.txt');

const semel = createSemel({ store: `sqlite:${join(folder, 'ledger.db')}`, namespace: 'nightly' });

/** Stands for a model: it never says the same twice. */
const askModel = async (prompt: string) => `${prompt}, idea ${Math.random().toString(36).slice(2, 8)}`;

const nightly = semel.job(
  'blog',
  { per: day('Asia/Kolkata'), lease: '10s', ifBusy: 'wait' }, // a short lease, so that this story is
  async (job) => {
    const topic = await job.seed.pick('topic', ['launches', 'interviews', 'how-to']);
    const plan = await job.plan(() => askModel(`a plan about ${topic}`));
    console.log(`attempt ${job.attempt}: ${plan}`);
    if (dies) process.kill(process.pid, 'SIGKILL');
    const post = await job.step('write', { plan }, (args) => askModel(args.plan));
    await job.once('publish', () => appendFileSync(blog, `${post}\n`));
    return post;
  },
);

if (dies) await nightly.run();
else {
  const child = spawn(process.execPath, [...process.execArgv, import.meta.filename, 'dies', folder], {
    stdio: 'inherit',
  });
  await once(child, 'exit');
  console.log((await nightly.run()).status); // at once: the process that died is proven dead
  console.log((await nightly.run()).status);
  console.log(`published ${readFileSync(blog, 'utf8').trim().split('\n').length} post`);
  rmSync(folder, { recursive: true });
}
await semel.close();
