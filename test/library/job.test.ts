// `semel.job`: one run per slot, steps that are remembered, and what is refused.

import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import {
  AlreadyLanded,
  createSemel,
  cron,
  day,
  type JobContext,
  landed,
  minute,
  month,
  NotLanded,
  Rejected,
  type Semel,
  type SemelError,
  week,
} from 'semel';
import { memoryStore } from 'semel/memory';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RunContext } from '../../src/jobs/context.ts';
import { artifactParts } from '../../src/jobs/library/artifact.ts';
import { newScratch, type Scratch } from '../processes/scratch.ts';
import { fakeClock, gate, rest, rig } from './support.ts';

const at = Date.parse('2026-06-19T01:00:00Z');
const warnings: string[] = [];
let semel: Semel;
let effects: string[];

beforeEach(() => {
  warnings.length = 0;
  effects = [];
  semel = createSemel({
    store: memoryStore(),
    namespace: 'app',
    onWarning: (message) => void warnings.push(message),
  });
});

afterEach(async () => semel.close({ grace: 0 }));

const fakeRun = { text: 'run', id: { job: 'blog', slot: '2026-06-19' } } as RunContext;

/** A job that fails at its first attempt, after `work`. */
function failing<Value>(work: (job: JobContext) => Value | Promise<Value>) {
  return semel.job('blog', { per: day('Asia/Kolkata') }, async (job) => {
    const value = await work(job);
    if (job.attempt === 1) throw new Error('killed');
    return value;
  });
}

function effect<Value>(name: string, value: Value): () => Value {
  return () => {
    effects.push(name);
    return value;
  };
}

describe('a run', () => {
  test('executes once per slot, and a later one is skipped with its result', async () => {
    const job = semel.job('blog', { per: day('Asia/Kolkata') }, effect('ran', { slug: 'a' }));
    expect(await job.run({ at })).toEqual({
      status: 'executed',
      slot: '2026-06-19',
      value: { slug: 'a' },
      attempt: 1,
    });
    expect(await job.run({ at })).toMatchObject({
      status: 'skipped',
      slot: '2026-06-19',
      value: { slug: 'a' },
    });
    expect((await job.run({ at: at + 86_400_000 })).status).toBe('executed');
    expect((await job.run({ at, ids: { customer: 7 } })).status).toBe('executed');
    expect((await job.run({ at, again: 'the post was deleted' })).status).toBe('executed');
    expect((await job.run({ at, again: 'the post was deleted' })).status).toBe('skipped');
    expect(effects).toHaveLength(4);
  });

  test('gets the identity of its run', async () => {
    const job = semel.job('blog', { per: cron('0 7 * * *', 'Europe/Paris') }, (run) => run);
    const outcome = await job.run({ at: Date.parse('2026-06-19T05:00:00Z'), ids: { customer: 7 } });
    expect(outcome).toMatchObject({
      value: {
        job: 'blog',
        slot: '2026-06-19T07:00+02:00',
        date: '2026-06-19',
        weekday: 'Friday',
        zone: 'Europe/Paris',
        at: new Date('2026-06-19T05:00:00Z'),
        ids: { customer: '7' },
        attempt: 1,
      },
    });
  });

  test('finds another one of the job busy, whatever its slot, and says who holds it', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { promise: started, resolve: start } = Promise.withResolvers<void>();
    const job = semel.job('blog', { per: day() }, async () => {
      start();
      await promise;
      return 1;
    });
    const first = job.run({ at });
    await started;
    const busy = await job.run({ at: at + 86_400_000 });
    expect(busy).toMatchObject({
      status: 'busy',
      holder: { owner: expect.stringContaining(`:${process.pid}`) },
    });
    const waiting = semel.job('blog', { per: day(), ifBusy: 'wait' }, () => 2).run({ at });
    const refused = await semel.job('blog', { per: day(), ifBusy: 'fail' }, () => 2).try({ at });
    expect(refused).toMatchObject({ status: 'failed', error: { code: 'IN_FLIGHT', retriable: true } });
    resolve();
    expect(await first).toMatchObject({ status: 'executed', value: 1 });
    expect(await waiting).toMatchObject({ status: 'skipped', value: 1 });
  });

  test('without a period only prevents overlap', async () => {
    const job = semel.job('sync', {}, effect('ran', 1));
    expect((await job.run()).status).toBe('executed');
    expect((await job.run()).status).toBe('executed');
    expect((await job.run({ at })).status).toBe('executed');
    expect((await job.run({ at })).status).toBe('skipped');
  });

  test('inside itself is refused, and another job is not', async () => {
    const inner = semel.job('inner', { per: day() }, () => 1);
    const outer = semel.job('outer', { per: day(), ifBusy: 'wait' }, async () => [
      await inner.try({ at }),
      await outer.try({ at }),
    ]) as { try(options: object): Promise<unknown> };
    expect(await outer.try({ at })).toMatchObject({
      value: [{ status: 'executed' }, { status: 'failed', error: { code: 'REENTRANT' } }],
    });
  });

  test('that failed throws its error, and the next start runs it again', async () => {
    const job = failing(effect('ran', 1));
    const error = (await job.run({ at }).catch((thrown: unknown) => thrown)) as SemelError;
    expect(error).toMatchObject({ code: 'FAILED', retriable: true, cause: { message: 'killed' } });
    expect(error.message).toContain('blog 2026-06-19 failed: killed');
    expect(await job.run({ at })).toMatchObject({ status: 'executed', attempt: 2 });
    expect((await semel.records.list({ contract: 'run.blog' })).items).toMatchObject([{ attempts: 2 }]);
  });

  test('is tried again within the run, with the steps that are done', async () => {
    const job = semel.job('blog', { per: day(), retries: 2, backoff: 1 }, async (run) => {
      const plan = await run.step('plan', effect('plan', 'a'));
      if (run.attempt < 3) throw new Error('not yet');
      return plan;
    });
    expect(await job.run({ at })).toMatchObject({ status: 'executed', value: 'a', attempt: 3 });
    expect(effects).toEqual(['plan']);
  });

  test('that failed is held in doubt, or decided by verify', async () => {
    const held = semel.job('held', { per: day(), afterFailure: 'hold' }, () => {
      throw new Error('lost');
    });
    expect(await held.try({ at })).toMatchObject({ error: { code: 'IN_DOUBT' } });
    expect(await held.try({ at })).toMatchObject({ error: { code: 'IN_DOUBT' } });
    const verified = semel.job(
      'verified',
      { per: day(), verify: (run) => landed(`found ${run.slot}`) },
      (): string => {
        throw new Error('lost');
      },
    );
    expect(await verified.run({ at })).toMatchObject({ status: 'executed', value: 'found 2026-06-19' });
    expect(await verified.run({ at })).toMatchObject({ status: 'skipped', value: 'found 2026-06-19' });
  });

  test('is ended by its timeout and by its caller, and the next start continues', async () => {
    const slow = (run: JobContext) =>
      new Promise<never>((_, reject) => {
        run.signal.addEventListener('abort', () => reject(run.signal.reason));
      });
    const job = semel.job('slow', { per: day(), timeout: 20 }, slow);
    expect(await job.try({ at })).toMatchObject({
      error: { code: 'FAILED', happened: expect.stringMatching(/timeout of 20ms/) },
    });
    const abort = new AbortController();
    const aborted = semel.job('aborted', { per: day(), retries: 5 }, (run) => {
      queueMicrotask(() => abort.abort());
      return slow(run);
    });
    expect(await aborted.try({ at, signal: abort.signal })).toMatchObject({ error: { code: 'ABORTED' } });
    expect((await semel.job('aborted', { per: day() }, () => 1).run({ at })).status).toBe('executed');
    expect(await job.try({ at, signal: abort.signal })).toMatchObject({ error: { code: 'ABORTED' } });
  });

  test('whose function ignores its timeout keeps the lock until the function has ended', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const late: unknown[] = [];
    const job = semel.job('deaf', { per: day(), timeout: 10, grace: 10 }, async (run) => {
      await promise;
      late.push(await run.step('late', effect('late', 1)).catch((error: unknown) => error));
    });
    const ended = await job.try({ at });
    expect(ended).toMatchObject({ error: { correctiveAction: expect.stringContaining('still running') } });
    expect((await job.try({ at })).status).toBe('busy');
    resolve();
    await expect.poll(async () => (await job.try({ at })).status).not.toBe('busy');
    expect(late).toMatchObject([{ code: 'FAILED' }, 1]);
    expect(effects).toEqual(['late']);
  });

  test('holds its lock for as long as atLeast says, also after the ledger is closed', async () => {
    const store = memoryStore();
    const one = createSemel({ store, namespace: 'app' });
    await one.job('sync', { atLeast: '1h' }, () => 1).run();
    await one.close();
    const other = createSemel({ store, namespace: 'app', owner: 'other' });
    expect(await other.job('sync', {}, () => 2).run()).toMatchObject({
      status: 'busy',
      holder: { atLeast: '1h', since: undefined },
    });
    await other.close();
  });

  test('may finish its steps while the ledger is closing', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const job = semel.job('blog', { per: day() }, async (run) => {
      await run.step('first', effect('first', 1));
      resolve();
      await new Promise((later) => setTimeout(later, 20));
      return run.step('second', effect('second', 2));
    });
    const running = job.run({ at });
    await promise;
    await semel.close();
    expect(await running).toMatchObject({ status: 'executed', value: 2 });
  });

  test('shows in the history what became of each attempt', async () => {
    const job = failing(() => 1);
    await job.try({ at });
    await job.run({ at });
    const [record] = (await semel.records.list({ contract: 'run.blog' })).items;
    const history = await semel.records.history(record?.key ?? '');
    expect(history.filter(({ type }) => type === 'noted').map(({ detail }) => detail)).toMatchObject([
      { attempt: 1, ended: 'failed: killed' },
      { attempt: 2, ended: 'succeeded' },
    ]);
  });
});

describe('a step', () => {
  test('is computed once per run: a later attempt gets the same plan', async () => {
    const plans = ['one', 'another'];
    const job = failing(async (run) => {
      const plan = await run.plan(() => plans.shift());
      const text = await run.step('draft', { plan }, (args) => `${args.plan} draft ${plans.length}`);
      return { plan, text };
    });
    await job.try({ at });
    expect(await job.run({ at })).toMatchObject({ value: { plan: 'one', text: 'one draft 1' } });
    await job.try({ at: at + 86_400_000 });
    expect(await job.run({ at: at + 86_400_000 })).toMatchObject({ value: { plan: 'another' } });
  });

  test('that throws runs again, and its error reaches the program as it is', async () => {
    const mistake = new TypeError('no network');
    let tries = 0;
    const job = semel.job('blog', { per: day() }, (run) =>
      run.step('fetch', () => {
        tries += 1;
        if (tries === 1) throw mistake;
        return tries;
      }),
    );
    expect(await job.try({ at })).toMatchObject({ error: { cause: mistake } });
    expect(await job.run({ at })).toMatchObject({ value: 2 });
  });

  test.each([
    ['did not land', () => new NotLanded('the log is away')],
    ['was refused', () => new Rejected('the log is away')],
    ['had landed', () => new AlreadyLanded('logged')],
  ])('that says it %s says nothing about the effect around it', async (_, word) => {
    const job = semel.job('blog', { per: day() }, (run) =>
      run.once('publish', async () => {
        effects.push('published');
        await run.step('log', () => {
          throw word();
        });
      }),
    );
    for (const _ of [1, 2])
      expect(await job.try({ at })).toMatchObject({ status: 'failed', error: { code: 'IN_DOUBT' } });
    expect(effects).toEqual(['published']);
  });

  test('may contain steps, and run beside others', async () => {
    const items = ['a', 'b', 'c'];
    const job = failing((run) =>
      run.step('all', async () => {
        const all = Promise.all(
          items.map((item) =>
            run.step(`branch ${item}`, async () => {
              const text = await run.step('fetch', effect(`fetch ${item}`, item));
              return run.step('upper', effect(`upper ${item}`, text.toUpperCase()));
            }),
          ),
        );
        const values = await all;
        if (run.attempt === 1) throw new Error('killed inside');
        return values;
      }),
    );
    await job.try({ at });
    expect(await job.run({ at })).toMatchObject({ value: ['A', 'B', 'C'] });
    expect(effects.toSorted()).toEqual(['fetch a', 'fetch b', 'fetch c', 'upper a', 'upper b', 'upper c']);
  });

  test('of one of several branches may come in another order at the next attempt', async () => {
    const job = failing((run) =>
      Promise.all(
        ['a', 'b', 'c'].map(async (item, index) => {
          const slow = run.attempt === 1 ? index : 2 - index;
          await run.step(`fetch ${item}`, async () => {
            await new Promise((later) => setTimeout(later, 30 * slow));
            return item;
          });
          // The third branch never gets here at the first attempt.
          if (run.attempt === 1 && item === 'c') throw new Error('killed');
          return run.step(`upper ${item}`, effect(item, item.toUpperCase()));
        }),
      ),
    );
    await job.try({ at });
    expect(await job.run({ at })).toMatchObject({ value: ['A', 'B', 'C'] });
    expect(effects.toSorted()).toEqual(['a', 'b', 'c']);
  });

  test('an effect called in two steps lands once, with a warning', async () => {
    const job = semel.job('blog', { per: day('Asia/Kolkata') }, async (run) => {
      await run.step('ann', () => run.once('mail', effect('mail to ann', 1)));
      await run.step('bob', () => run.once('mail', effect('mail to bob', 1)));
      await run.step('cid', () => run.once('letter', 'cid', effect('letter to cid', 1)));
      await run.step('dan', () => run.once('letter', 'dan', effect('letter to dan', 1)));
    });
    await job.run({ at });
    expect(effects).toEqual(['mail to ann', 'letter to cid', 'letter to dan']);
    const told = warnings.filter((each) => each.includes('was called twice in one run'));
    expect(told).toEqual([expect.stringContaining('blog: mail')]);
  });

  test('called twice runs once, with a warning, and is refused with other args', async () => {
    const job = semel.job('blog', { per: day() }, async (run) => [
      await run.step('fetch', effect('fetch', 1)),
      await run.step('fetch', effect('fetch again', 2)),
      await run.step('send', { to: 'a' }, (args) => args.to),
      await run.step('send', { to: 'b' }, (args) => args.to).catch((error: SemelError) => error.code),
    ]);
    expect(await job.run({ at })).toMatchObject({ value: [1, 1, 'a', 'INVALID_ARGS'] });
    expect(effects).toEqual(['fetch']);
    expect(warnings.join()).toContain('fetch was called twice in one run');
  });

  test('whose value cannot be stored is computed again, and says so', async () => {
    const job = failing((run) =>
      run.step(
        'open',
        effect('open', () => 1),
      ),
    );
    await job.try({ at });
    expect((await job.run({ at })).status).toBe('executed');
    expect(effects).toEqual(['open', 'open']);
    expect(warnings.join()).toContain('the step open returned cannot be stored');
  });

  test('of another slot, id or reason is another one', async () => {
    const job = semel.job('blog', { per: day() }, (run) => run.step('plan', effect('plan', run.slot)));
    for (const options of [{ at }, { at: at + 86_400_000 }, { at, ids: { a: 1 } }, { at, again: 'why' }])
      await job.run(options);
    expect(effects).toHaveLength(4);
  });
});

describe('an effect', () => {
  test('lands once per run, or once ever with an id', async () => {
    const job = failing(async (run) => [
      await run.once('publish', effect('publish', 'post')),
      await run.once('mail', { lead: 42 }, effect('mail', 'sent')),
    ]);
    await job.try({ at });
    expect(await job.run({ at })).toMatchObject({ value: ['post', 'sent'] });
    await job.try({ at: at + 86_400_000 });
    expect(effects).toEqual(['publish', 'mail', 'publish']);
  });

  test.each([
    ['a week', { per: week('UTC') }, 3],
    ['a month', { per: month('UTC') }, 30.5],
    ['no end', { per: 'ever' }, 400],
    ['a yearly schedule', { per: cron('0 0 1 6 *') }, 300],
    ['a short window', { per: week('UTC'), window: '1m' }, 3],
  ] as const)('lands once per run, however late the run is retried: %s', async (_, options, days) => {
    const clock = fakeClock(Date.parse('2026-06-01T00:00:00Z'));
    const later = createSemel({ store: memoryStore({ clock }), clock, namespace: 'app', onWarning: () => 0 });
    let isDown = true;
    const job = later.job('report', options, async (run) => {
      const draft = await run.step('draft', effect('draft', 'text'));
      await run.once('publish', effect('publish', draft));
      const sent = await run.once('mail', { to: 'ann' }, effect('mail', 'sent'));
      if (isDown) throw new Error('killed');
      return sent;
    });
    await job.try({ at: clock.now() });
    const slotStart = clock.now();
    isDown = false;
    clock.jump(days * 86_400_000);
    await later.records.prune();
    expect(await job.run({ at: slotStart })).toMatchObject({ status: 'executed', value: 'sent' });
    expect(effects).toEqual(['draft', 'publish', 'mail']);
    await later.close({ grace: 0 });
  });

  type Take = (run: JobContext, fail: () => Promise<void>) => Promise<unknown>;

  test.each<[string, Take]>([
    ['in the function', async (run, fail) => void run.once('mail', fail)],
    ['in a step', (run, fail) => run.step('draft', () => void run.once('mail', fail))],
    ['in an effect', (run, fail) => run.once('draft', () => void run.once('mail', fail))],
  ])('that nobody waits for is not lost if it fails: %s', async (_, take) => {
    const pause = () => new Promise((resolve) => setImmediate(resolve));
    const job = semel.job('blog', { per: day() }, async (run): Promise<string> => {
      await take(run, async () => {
        effects.push('mail');
        throw new NotLanded('the mail server is away');
      });
      for (let turn = 0; turn < 20; turn += 1) await pause();
      return 'done';
    });
    expect((await job.try({ at })).status).toBe('failed');
    expect(effects).toEqual(['mail']);
  });

  test('of one name may be made by jobs that are remembered for different times', async () => {
    for (const [name, window] of [
      ['blog', '30d'],
      ['news', '90d'],
    ] as const) {
      const job = semel.job(name, { per: day(), window }, (run) => run.once('publish', effect(name, 1)));
      expect(await job.run({ at })).toMatchObject({ status: 'executed', value: 1 });
    }
    expect(effects).toEqual(['blog', 'news']);
  });

  test('whose id is undefined is refused: it is a missing field, not the wish to land once per run', async () => {
    const order: { id?: string } = {};
    const job = failing((run) => run.once('charge', order.id, effect('charge', 1)));
    expect(await job.try({ at })).toMatchObject({ error: { code: 'NOT_CANONICAL', path: 'id' } });
    expect(effects).toEqual([]);
  });

  test('that may have landed is in doubt and is not repeated; with verify it is decided', async () => {
    const job = failing((run) =>
      run.once('charge', undefined, {}, () => {
        effects.push('charge');
        throw new Error('reply lost');
      }),
    );
    expect(await job.try({ at })).toMatchObject({ error: { code: 'IN_DOUBT' } });
    expect(await job.try({ at })).toMatchObject({ error: { code: 'IN_DOUBT' } });
    expect(effects).toEqual(['charge']);
    const verified = semel.job('verified', { per: day() }, (run) =>
      run.once('pay', { order: 7 }, { verify: () => landed('found') }, (): string => {
        throw new Error('reply lost');
      }),
    );
    expect(await verified.run({ at })).toMatchObject({ value: 'found' });
  });

  test('of a tool inside the run belongs to its run, and to the day of its slot', async () => {
    const tool = semel.tool({
      name: 'notify',
      effect: 'irreversible',
      per: 'run',
      run: (_: { to: string }) => void effects.push('notify'),
    });
    const daily = semel.tool({
      name: 'daily',
      effect: 'irreversible',
      per: day(),
      run: (_: { to: string }) => void effects.push('daily'),
    });
    const job = failing(async () => {
      await tool({ to: 'a' });
      await daily({ to: 'a' });
    });
    await job.try({ at });
    await job.run({ at });
    await job.try({ at: at + 86_400_000 });
    expect(effects).toEqual(['notify', 'daily', 'notify', 'daily']);
  });
});

describe('steps that changed since the last attempt', () => {
  type Program = (run: JobContext) => Promise<unknown>;
  const step = (run: JobContext, name: string) => run.step(name, effect(name, name));
  const original: Program = async (run) => {
    await step(run, 'plan');
    await run.step('draft', { tone: 'dry' }, effect('draft', 1));
    await run.once('publish', effect('publish', 1));
    throw new Error('killed');
  };
  const changed: Readonly<Record<string, { program: Program; now: readonly string[] }>> = {
    renamed: {
      program: async (run) => {
        await step(run, 'plan');
        await step(run, 'outline');
      },
      now: ['plan', 'outline'],
    },
    removed: {
      program: async (run) => {
        await step(run, 'plan');
        await run.once('publish', effect('publish', 1));
      },
      now: ['plan', 'publish'],
    },
    'removed at the end': {
      program: async (run) => {
        await step(run, 'plan');
        await run.step('draft', { tone: 'dry' }, effect('draft', 1));
      },
      now: ['plan', 'draft'],
    },
    'inserted before': {
      program: async (run) => {
        await step(run, 'research');
        await step(run, 'plan');
      },
      now: ['research'],
    },
    reordered: {
      program: async (run) => {
        await run.step('draft', { tone: 'dry' }, effect('draft', 1));
        await step(run, 'plan');
      },
      now: ['draft'],
    },
    'with other args': {
      program: async (run) => {
        await step(run, 'plan');
        await run.step('draft', { tone: 'warm' }, effect('draft', 1));
      },
      now: ['plan', 'draft (other args)'],
    },
    'another one beside': {
      program: async (run) => {
        await step(run, 'plan');
        await Promise.all([step(run, 'outline'), run.step('draft', { tone: 'dry' }, effect('draft', 1))]);
        await run.once('publish', effect('publish', 1));
      },
      now: ['plan', 'outline', 'draft'],
    },
  };

  for (const [how, { program, now }] of Object.entries(changed)) {
    test(`${how}: STEP_CHANGED names both lists, claims nothing, and is not tried again`, async () => {
      await semel.job('blog', { per: day() }, original).try({ at });
      expect(effects).toEqual(['plan', 'draft', 'publish']);
      const before = (await semel.records.list({ prefix: 'step.' })).items.length;
      const job = semel.job('blog', { per: day(), retries: 3, backoff: 1 }, program);
      for (let start = 0; start < 2; start += 1) {
        const outcome = await job.try({ at });
        expect(outcome).toMatchObject({
          status: 'failed',
          error: {
            code: 'STEP_CHANGED',
            retriable: false,
            evidence: { before: ['plan', expect.stringMatching(/^draft/), 'publish'], now },
          },
        });
      }
      expect(effects).toEqual(['plan', 'draft', 'publish']);
      expect((await semel.records.list({ prefix: 'step.' })).items).toHaveLength(before);
    });

    test(`${how}: continues once it is accepted, and keeps unchanged steps`, async () => {
      await semel.job('blog', { per: day() }, original).try({ at });
      effects.length = 0;
      const job = semel.job('blog', { per: day() }, program);
      expect((await job.try({ at, acceptChange: 'reviewed by Ada' })).status).toBe('executed');
      expect(effects).not.toContain('plan');
      expect(effects).not.toContain('publish');
    });
  }

  test('a program that catches STEP_CHANGED does not get further', async () => {
    await semel.job('blog', { per: day() }, original).try({ at });
    effects.length = 0;
    const job = semel.job('blog', { per: day() }, async (run) => {
      await step(run, 'outline').catch(() => undefined);
      await step(run, 'plan').catch(() => undefined);
      await run.once('ship', effect('ship', 1)).catch(() => undefined);
    });
    expect(await job.try({ at })).toMatchObject({ error: { code: 'STEP_CHANGED' } });
    expect(effects).toEqual([]);
  });

  test('inside a step that did not finish is noticed too', async () => {
    const nested = (names: readonly string[]) =>
      failing((run) =>
        run.step('outer', async () => {
          for (const name of names) await step(run, name);
          if (run.attempt === 1) throw new Error('killed');
        }),
      );
    await nested(['a', 'b']).try({ at });
    expect(await nested(['a', 'c']).try({ at })).toMatchObject({
      error: { code: 'STEP_CHANGED', happened: expect.stringContaining('inside outer') },
    });
    expect(effects).toEqual(['a', 'b']);
  });

  test.each([1, 3])(
    'what an item of a batch, a tool or a file took is not missed once they are done: %i items at a time',
    async (concurrency) => {
      using scratch = newScratch('apart');
      const path = scratch.path('post.md');
      const shout = semel.tool({
        name: 'shout',
        effect: 'write-non-idempotent',
        per: 'run',
        run: async ({ run, text }: { run: number; text: string }) => effects.push(`${run} ${text}`),
      });
      let current: JobContext | undefined;
      const nested = semel.tool({
        name: 'nested',
        effect: 'irreversible',
        per: 'run',
        run: async (_: { n: number }) => step(current as JobContext, 'in a tool'),
      });
      let runs = 0;
      const job = semel.job('blog', { per: day() }, async (run) => {
        runs += 1;
        current = run;
        await step(run, 'plan');
        const report = await semel.batch(
          'mails',
          ['ada', 'bob', 'cem'],
          { run: 'today', concurrency },
          async (to) => {
            const text = await run.step('text', { to }, () => effects.push(`text for ${to}`));
            await run.step(`image for ${to}`, () => step(run, `pixels for ${to}`));
            await run.once('sent', { to }, effect(`sent to ${to}`, text));
          },
        );
        if (!report.ok) throw new Error(String(report));
        await run.once('shouted', () => step(run, 'louder'));
        await nested({ n: 1 });
        await run.artifact(path, async () => `${await run.step('content', effect('content', 'Hi'))}`);
        if (runs === 1) throw new Error('killed');
        await step(run, 'later');
        if (runs === 2) throw new Error('killed again');
        return shout({ run: 1, text: 'done' });
      });
      for (const status of ['failed', 'failed', 'executed', 'skipped'])
        expect(await job.try({ at })).toMatchObject({ status });
      expect(new Set(effects).size).toBe(effects.length);
      expect(effects).toEqual(
        expect.arrayContaining(['text for cem', 'pixels for cem', 'louder', 'later', '1 done']),
      );
      expect(warnings.filter((warning) => /twice/.test(warning))).toEqual([]);
    },
  );

  test('a step of an item that is asked for twice is warned about, and runs once', async () => {
    const job = semel.job('blog', { per: day() }, async (run) => {
      await semel.batch('mails', ['ada', 'bob'], {}, () => step(run, 'text'));
    });
    expect(await job.try({ at })).toMatchObject({ status: 'executed' });
    expect(effects).toEqual(['text']);
    expect(warnings.join()).toContain('text was called twice in one run');
  });

  test('is no reason to stop a run that is only observed', async () => {
    const observing = createSemel({
      store: memoryStore(),
      namespace: 'app',
      mode: 'observe',
      onWarning: () => undefined,
    });
    const job = (names: readonly string[]) =>
      observing.job('blog', { per: day() }, async (run) => {
        for (const name of names) await step(run, name);
      });
    expect(await job(['plan', 'draft']).try({ at })).toMatchObject({ status: 'executed' });
    expect(await job(['outline', 'draft']).try({ at })).toMatchObject({ status: 'executed' });
    expect(effects).toEqual(['plan', 'draft', 'outline', 'draft']);
    await observing.close();
  });

  test('a step that failed left nothing behind: it may be replaced', async () => {
    await semel
      .job('blog', { per: day() }, async (run) => {
        await step(run, 'plan');
        await run.step('draft', () => {
          throw new Error('a bug');
        });
      })
      .try({ at });
    const fixed = semel.job('blog', { per: day() }, async (run) => {
      await step(run, 'plan');
      await step(run, 'outline');
      return step(run, 'draft');
    });
    expect(await fixed.run({ at })).toMatchObject({ status: 'executed' });
    expect(effects).toEqual(['plan', 'outline', 'draft']);
  });
});

describe('an artifact', () => {
  let scratch: Scratch;
  beforeEach(() => {
    scratch = newScratch('artifact');
  });
  afterEach(() => scratch[Symbol.dispose]());

  test('is produced once: a later attempt finds it by its hash', async () => {
    const path = scratch.path('posts/draft.md');
    const job = failing((run) => run.artifact(path, effect('produced', 'text')));
    await job.try({ at });
    const outcome = await job.run({ at });
    expect(outcome).toMatchObject({
      value: { path, bytes: 4, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
    });
    expect(readFileSync(path, 'utf8')).toBe('text');
    expect(effects).toEqual(['produced']);
  });

  test.each([
    ['missing', undefined],
    ['changed', 'longer'],
    ['changed', 'same'],
  ] as const)(
    'that is %s (%s) is reported, or produced again if the job declares that',
    async (problem, spoilt) => {
      const path = scratch.path('draft.md');
      const spoil = () => (spoilt === undefined ? rmSync(path) : writeFileSync(path, spoilt));
      const job = failing((run) => run.artifact(path, effect('produced', 'text')));
      await job.try({ at });
      spoil();
      const told = await job.try({ at });
      expect(told).toMatchObject({ error: { code: 'RESULT_OMITTED', evidence: { problem } } });
      expect(effects).toEqual(['produced']);
      const repeatable = semel.job('blog', { per: day('Asia/Kolkata') }, (run) =>
        run.artifact(path, effect('again', 'text'), { repeatable: true }),
      );
      expect((await repeatable.run({ at })).status).toBe('executed');
      expect(effects).toEqual(['produced', 'again']);
      expect(readFileSync(path, 'utf8')).toBe('text');
    },
  );

  test('in a folder is named after its run, and may be streamed', async () => {
    async function* parts() {
      yield 'one ';
      yield Buffer.from('two');
    }
    const job = semel.job('blog', { per: day() }, (run) => run.artifact(`${scratch.folder}/`, parts));
    const [first, second] = [await job.run({ at }), await job.run({ at: at + 86_400_000 })] as const;
    const paths = [first, second].map((each) => (each.status === 'executed' ? each.value.path : ''));
    expect(new Set(paths).size).toBe(2);
    expect(paths[0]).toContain('blog-2026-06-19-');
    expect(readFileSync(paths[0] ?? '', 'utf8')).toBe('one two');
  });

  test.runIf(process.platform === 'linux')(
    'below a folder that accepts no entries is an error: Node.js would try without end',
    async () => {
      const job = failing((run) => run.artifact('/proc/semel/draft.md', effect('produced', 'text')));
      expect(await job.try({ at })).toMatchObject({
        status: 'failed',
        error: { message: expect.stringContaining('ENOENT') },
      });
    },
  );

  test('is not spoilt by an attempt that was taken over and writes on', async () => {
    const path = scratch.path('draft.md');
    const halfway = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    async function* slowly() {
      yield 'old, half ';
      halfway.resolve();
      await goOn.promise;
      yield 'and half';
    }
    const next = artifactParts(path, fakeRun, effect('new', 'new'));
    const attempt = { fence: 2, attempt: 2 };
    const prepared = await next.prepare(attempt);
    const writing = artifactParts(path, fakeRun, slowly).prepare({ fence: 1, attempt: 1 });
    await halfway.promise;
    expect(await next.run(prepared, attempt)).toMatchObject({ path, bytes: 3 });
    goOn.resolve();
    await writing;
    expect(readFileSync(path, 'utf8')).toBe('new');
    expect(effects).toEqual(['new']);
    expect(readdirSync(scratch.folder)).toEqual(['draft.md']);
  });

  test('is not read from a pipe or a device in its place, which might never end', async () => {
    const path = scratch.path('draft.md');
    execFileSync('mkfifo', [path]);
    const job = failing((run) => run.artifact(path, effect('produced', 'text')));
    expect(await job.try({ at })).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('is not a regular file') },
    });
    expect(effects).toEqual([]);
    rmSync(path);
    expect(await job.run({ at })).toMatchObject({ status: 'executed', value: { path, bytes: 4 } });
  });

  test.skipIf(!existsSync('/proc/self/io'))(
    'is not read where a file of another size took its place',
    async () => {
      const read = () => Number(/rchar: (\d+)/.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
      const path = scratch.path('draft.md');
      const huge = 256 * 1024 * 1024;
      writeFileSync(path, '');
      truncateSync(path, huge);
      const before = read();
      const job = failing((run) => run.artifact(path, effect('produced', 'text')));
      await job.try({ at });
      expect(readFileSync(path, 'utf8')).toBe('text');
      truncateSync(path, huge);
      expect(await job.try({ at })).toMatchObject({
        error: { code: 'RESULT_OMITTED', evidence: { problem: 'changed' } },
      });
      expect(read() - before).toBeLessThan(huge / 2);
    },
  );

  test('may be empty', async () => {
    const path = scratch.path('draft.md');
    const job = failing((run) => run.artifact(path, effect('produced', '')));
    for (const _ of [1, 2]) await job.try({ at });
    expect([effects, readFileSync(path, 'utf8')]).toEqual([['produced'], '']);
  });

  test('that became a pipe is reported as changed', async () => {
    const path = scratch.path('draft.md');
    const job = failing((run) => run.artifact(path, effect('produced', 'text')));
    await job.try({ at });
    rmSync(path);
    execFileSync('mkfifo', [path]);
    expect(await job.try({ at })).toMatchObject({
      error: { code: 'RESULT_OMITTED', evidence: { problem: 'changed' } },
    });
  });

  test('is not written to a pipe or link that somebody put in its place', async () => {
    const path = scratch.path('draft.md');
    async function* broken() {
      yield 'half';
      throw new Error('cut off');
    }
    const isBroken = { now: true };
    const job = failing((run) => run.artifact(path, () => (isBroken.now ? broken() : 'text')));
    await job.try({ at });
    const [beside = ''] = readdirSync(scratch.folder);
    isBroken.now = false;
    rmSync(scratch.path(beside));
    execFileSync('mkfifo', [scratch.path(beside)]);
    await job.try({ at });
    expect(lstatSync(path).isFile()).toBe(true);
    expect(readFileSync(path, 'utf8')).toBe('text');
  });
});

describe('a seed', () => {
  const from = ['launches', 'interviews', 'how-to', 'news'];

  test('gives the same choices in every attempt, also if the lists changed', async () => {
    const seen: unknown[] = [];
    const job = failing(async (run) => {
      const list = run.attempt === 1 ? from : ['other'];
      seen.push([
        await run.seed.pick('topic', list),
        await run.seed.shuffle('order', list),
        await run.seed.sample('few', run.attempt === 1 ? from : ['x', 'y'], 2),
        await run.seed.int('hour', 9, run.attempt === 1 ? 17 : 9),
        run.seed.number,
      ]);
    });
    await job.try({ at });
    await job.run({ at });
    expect(seen[0]).toEqual(seen[1]);
  });

  test('depends on job, slot, ids and name alone: frozen', async () => {
    const job = semel.job('blog', { per: day('Asia/Kolkata') }, async (run) => [
      await run.seed.pick('topic', from),
      await run.seed.shuffle('order', from),
      await run.seed.sample('few', from, 2),
      await run.seed.int('hour', 9, 17),
      run.seed.number,
    ]);
    expect(await job.run({ at })).toMatchObject({
      value: [
        'how-to',
        ['news', 'launches', 'interviews', 'how-to'],
        ['interviews', 'launches'],
        12,
        202_865_520_194_723,
      ],
    });
  });

  test('avoids what earlier slots chose, and knows earlier slots only', async () => {
    const job = semel.job('blog', { per: day() }, async (run) => {
      const earlier = await run.recent('publish', 2);
      await run.once('publish', () => `post of ${run.slot}`);
      return {
        topic: await run.seed.pick('topic', from, { notRecent: 3 }),
        earlier: earlier.map(({ result }) => result),
      };
    });
    const topics: unknown[] = [];
    for (const days of [0, 1, 2, 3]) {
      const outcome = await job.run({ at: at + days * 86_400_000 });
      if (outcome.status === 'executed') topics.push(outcome.value.topic);
    }
    expect(new Set(topics).size).toBe(4);
    const late = await job.run({ at: at + 86_400_000, again: 'redone today' });
    expect(late).toMatchObject({ value: { earlier: ['post of 2026-06-19'] } });
  });

  test('renders a prompt with date, weekday, zone, choices and exclusions', async () => {
    const job = semel.job('blog', { per: day('Asia/Kolkata') }, async (run) => {
      await run.seed.pick('topic', ['launches']);
      const prompt = await run.seed.toPrompt({ recent: ['publish'] });
      await run.once('publish', () => ({ slug: `post-${run.slot}` }));
      return prompt;
    });
    await job.run({ at });
    expect(await job.run({ at: at + 86_400_000, ids: {} })).toMatchObject({
      value: [
        'Job: blog',
        'Slot: 2026-06-20',
        'Date: 2026-06-20 (Saturday), time zone Asia/Kolkata',
        'Chosen topic: launches',
        'Do not repeat (earlier publish, newest first):',
        '- {"slug":"post-2026-06-19"}',
      ].join('\n'),
    });
  });
});

describe('a wrong definition is refused at once', () => {
  const cases: readonly (readonly [string, object, string])[] = [
    ['a misspelt option', { retrys: 1 }, 'Did you mean `retries`?'],
    ['a period that was not called', { per: day }, 'a function that was not called is not a period'],
    ['a word that is no period', { per: 'daily' }, '"daily" is not a period'],
    ['a wrong cron expression', { per: { cron: '61 * * * *', zone: 'UTC' } }, 'is not a cron expression'],
    ['a short lease', { lease: '5s' }, 'The minimum is 10s.'],
    ['hold without a slot', { per: 'none', afterFailure: 'hold' }, 'needs a slot'],
    ['wait with skip', { ifBusy: 'skip', wait: '1s' }, '`wait` has no meaning here'],
    ['half a retry', { retries: 0.5 }, '`retries` is not a whole number'],
    ['a long timeout', { timeout: '30d' }, '`timeout` is too long'],
  ];
  test.each(cases)('%s', (_, options, message) => {
    expect(() => semel.job('blog', options, () => 1)).toThrow(message);
  });

  test('no function, or a generator', () => {
    expect(() => semel.job('blog', {}, undefined as never)).toThrow('it has no function');
    expect(() => semel.job('blog', {}, function* () {} as never)).toThrow('is a generator');
  });

  test('a function that returns a generator has done nothing yet, so its run is not done', async () => {
    async function* body() {
      effects.push('ran');
      yield 1;
    }
    let returned: unknown = body();
    const job = semel.job('blog', { per: day() }, () => returned);
    expect(await job.try({ at })).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('returned a generator') },
    });
    returned = 'text';
    expect(await job.run({ at })).toMatchObject({ status: 'executed', value: 'text' });
  });

  test('a wrong option of run() fails the run, and nothing is claimed', async () => {
    const job = semel.job('blog', {}, effect('ran', 1));
    expect(await job.try({ id: 1 } as never)).toMatchObject({ error: { code: 'INVALID_ARGS' } });
    expect(await job.try({ at: 'now' } as never)).toMatchObject({ error: { code: 'INVALID_ARGS' } });
    expect(effects).toEqual([]);
  });
});

test.each(['step', 'once'] as const)(
  'a run that slept past its lease starts no %s beside the next run',
  async (kind) => {
    const made = rig();
    const [inside, awake, next, end] = [gate(), gate(), gate(), gate()];
    const terms = { per: minute('UTC') };
    const late = made.semel.job('night', terms, async (job) => {
      inside.resolve();
      await awake.promise;
      const effect = () => effects.push('late');
      await (kind === 'step' ? job.step('late', effect) : job.once('late', effect));
    });
    const slot = made.clock.now();
    const sleeping = late.run({ at: new Date(slot) });
    await inside.promise;
    await rest();
    made.clock.jump(120_000);
    const other = made.another().job('night', terms, async () => {
      next.resolve();
      await end.promise;
    });
    const running = other.run({ at: new Date(slot + 60_000) });
    await next.promise;
    awake.resolve();
    await expect(sleeping).rejects.toMatchObject({ code: 'LEASE_LOST' });
    end.resolve();
    expect(await running).toMatchObject({ status: 'executed' });
    expect(effects).toEqual([]);
  },
);
