// A job of the library in real processes: killed at every point, started twice at once, and beside `semel run` of the same name.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSemel, day } from 'semel';
import { describe, expect, test } from 'vitest';
import { place as commandPlace, eventually, until } from '../cli/place.ts';
import { startNode } from '../processes/node-process.ts';
import { newScratch } from '../processes/scratch.ts';
import { ownPrefix, ownSchema } from '../servers/own-place.ts';
import type { NightlyLine, NightlyOrder, StorePlace } from './nightly.ts';
import { points } from './points.ts';

const at = Date.parse('2026-06-19T01:00:00Z');
const program = new URL('./nightly.ts', import.meta.url);

function start(order: NightlyOrder) {
  return startNode<NightlyLine>(program, order);
}

interface Executed {
  readonly status: string;
  readonly value: { plan: string; draft: string; file: string; attempt: number };
}

async function run(order: NightlyOrder): Promise<Executed & { code?: string }> {
  const child = start(order);
  const line = await child.line((each) => 'outcome' in each);
  await child.ended;
  if (!('outcome' in line)) throw new Error('no outcome');
  return { ...(line.outcome as Executed), ...(line.code === undefined ? {} : { code: line.code }) };
}

function effectsIn(folder: string): readonly string[] {
  try {
    return readFileSync(join(folder, 'effects'), 'utf8').trim().split('\n');
  } catch {
    return [];
  }
}

const stores: Readonly<Record<string, (folder: string) => Promise<StorePlace | undefined>>> = {
  SQLite: async (folder) => ({ kind: 'sqlite', path: join(folder, 'ledger.db') }),
  Postgres: async () => ({ kind: 'postgres', ...(await ownSchema()) }),
  Redis: async () => {
    const own = ownPrefix();
    return own && { kind: 'redis', ...own };
  },
};

describe.each(Object.entries(stores))('on %s', (_, make) => {
  test.concurrent.each(points)('a job that is killed %s continues: every effect once', async (dieAt) => {
    using scratch = newScratch('jobs');
    const { folder } = scratch;
    const place = await make(folder);
    if (place === undefined) return;
    const killed = await start({ place, folder, at, dieAt }).ended;
    expect(killed.signal).toBe('SIGKILL');
    const before = effectsIn(folder);
    const second = await run({ place, folder, at });
    const wasDone = dieAt === 'before the lock is released';
    expect(second.status).toBe(wasDone ? 'skipped' : 'executed');
    const effects = effectsIn(folder);
    const plans = effects.filter((each) => each.startsWith('plan'));
    // Killed in the middle of a step, the step runs again, as declared. Otherwise the first plan is the plan.
    expect(plans).toHaveLength(dieAt === 'in the first step' ? 2 : 1);
    expect(second.value.plan).toBe(plans.at(-1));
    expect(effects.filter((each) => each === 'draft')).toHaveLength(1);
    // Nobody has seen a file that is not on record: it is produced again.
    const isUnseen = dieAt === 'while the file is written' || dieAt === 'with the file beside its place';
    expect(effects.filter((each) => each === 'file')).toHaveLength(isUnseen ? 2 : 1);
    expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([]);
    expect(effects.filter((each) => each.startsWith('publish'))).toEqual([`publish ${second.value.draft}`]);
    expect(effects.slice(0, before.length)).toEqual(before);
    expect(readFileSync(join(folder, 'post.md'), 'utf8')).toBe(second.value.draft);
    expect((await run({ place, folder, at })).status).toBe('skipped');
    expect(effectsIn(folder)).toEqual(effects);
  });

  test.concurrent('an effect whose process is killed is in doubt, and is not repeated', async () => {
    using scratch = newScratch('jobs');
    const { folder } = scratch;
    const place = await make(folder);
    if (place === undefined) return;
    await start({ place, folder, at, dieAt: 'in the effect' }).ended;
    expect(await run({ place, folder, at })).toMatchObject({ status: 'failed', code: 'IN_DOUBT' });
    expect(effectsIn(folder).filter((each) => each.startsWith('publish'))).toHaveLength(1);
    expect(effectsIn(folder).filter((each) => each.startsWith('plan'))).toHaveLength(1);
  });

  test.concurrent('of processes that start at once one runs', async () => {
    using scratch = newScratch('jobs');
    const { folder } = scratch;
    const place = await make(folder);
    if (place === undefined) return;
    const outcomes = await Promise.all(
      Array.from({ length: 4 }, () => run({ place, folder, at, ifBusy: 'wait' })),
    );
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual([
      'executed',
      'skipped',
      'skipped',
      'skipped',
    ]);
    expect(new Set(outcomes.map(({ value }) => value.draft)).size).toBe(1);
    expect(effectsIn(folder)).toHaveLength(4);
  });
});

// The kernel of other systems is not asked: there the lease decides.
describe.runIf(process.platform === 'linux')(
  'on the machine of the ledger, without waiting for the lease',
  () => {
    const place = (folder: string): StorePlace => ({ kind: 'sqlite', path: join(folder, 'ledger.db') });
    const patient = { at, lease: '1h', ifBusy: 'skip' } as const;

    test.concurrent.each(points)('the next start takes over from a process that died %s', async (dieAt) => {
      using scratch = newScratch('jobs');
      const { folder } = scratch;
      await start({ ...patient, place: place(folder), folder, dieAt }).ended;
      const wasDone = dieAt === 'before the lock is released';
      const next = await run({ ...patient, place: place(folder), folder });
      expect(next.status).toBe(wasDone ? 'skipped' : 'executed');
      expect(effectsIn(folder).filter((each) => each.startsWith('publish'))).toHaveLength(1);
    });

    test.concurrent('`semel run` takes over from a process that died, too', async () => {
      const command = commandPlace();
      const { folder } = command;
      await start({ ...patient, place: place(folder), folder, dieAt: 'between two steps' }).ended;
      const options = ['--namespace', 'app', '--store', `sqlite:${join(folder, 'ledger.db')}`];
      const slot = ['--per', 'day', '--tz', 'Asia/Kolkata', '--at', new Date(at).toISOString()];
      const ran = await command.semel(
        'run',
        'blog',
        ...slot,
        ...options,
        '--',
        'sh',
        '-c',
        'echo ran >> log',
      );
      expect(ran.code).toBe(0);
      expect(command.lines('log')).toEqual(['ran']);
    });

    test.concurrent('a process that is stopped keeps its lock', async () => {
      using scratch = newScratch('jobs');
      const { folder } = scratch;
      const stopped = start({ ...patient, place: place(folder), folder, lingers: true });
      await stopped.line((line) => 'working' in line);
      stopped.signal('SIGSTOP');
      expect((await run({ ...patient, place: place(folder), folder })).status).toBe('busy');
      stopped.signal('SIGCONT');
      await stopped.finish();
      expect(effectsIn(folder).filter((each) => each.startsWith('plan'))).toHaveLength(1);
    });

    test.concurrent('a lock that is kept for `atLeast` outlives its process', async () => {
      using scratch = newScratch('jobs');
      const { folder } = scratch;
      const order = { ...patient, place: place(folder), folder, atLeast: '1h' } as const;
      expect((await run(order)).status).toBe('executed');
      expect((await run({ ...order, at: at + 86_400_000 })).status).toBe('busy');
    });
  },
);

describe('beside `semel run` of the same name', () => {
  const slot = ['--per', 'day', '--tz', 'Asia/Kolkata', '--at', new Date(at).toISOString()];
  const named = ['--namespace', 'app', '--store'];

  test('one excludes the other, and they share their slots', async () => {
    const command = commandPlace();
    const { folder } = command;
    const place: StorePlace = { kind: 'sqlite', path: join(folder, 'shared.db') };
    const options = [...named, `sqlite:${place.path}`];

    const library = start({ place, folder, at, lingers: true });
    await library.line((each) => 'working' in each);
    const skipped = await command.semel('run', 'blog', ...slot, ...options, '--json', '--', 'false');
    expect(JSON.parse(skipped.stderr)).toMatchObject({ status: 'skipped', reason: 'running' });
    const nextDay = await command.semel('run', 'blog', '--per', 'day', ...options, '--json', '--', 'false');
    expect(JSON.parse(nextDay.stderr)).toMatchObject({ status: 'skipped', reason: 'running' });
    await library.finish();
    const done = await command.semel('run', 'blog', ...slot, ...options, '--json', '--', 'false');
    expect(JSON.parse(done.stderr)).toMatchObject({ status: 'skipped', reason: 'done' });

    const later = at + 86_400_000;
    const script = `echo $$ > pid; ${until('go')}`;
    const laterSlot = ['--per', 'day', '--tz', 'Asia/Kolkata', '--at', new Date(later).toISOString()];
    const running = command.start('run', 'blog', ...laterSlot, ...options, '--', 'sh', '-c', script);
    await eventually(() => command.lines('pid')[0]);
    expect((await run({ place, folder, at: later, ifBusy: 'skip' })).status).toBe('busy');
    // Its guard is gone, but not what it started: neither starts another one.
    running.child.kill('SIGKILL');
    await running.ended;
    expect((await run({ place, folder, at: later, ifBusy: 'skip' })).status).toBe('busy');
    command.file('go', '');
    const after = await run({ place, folder, at: later });
    expect(after).toMatchObject({ status: 'executed', value: { attempt: 2 } });
    const shown = await command.semel('ls', ...options);
    expect(shown.stdout).toMatch(/run\.blog 2026-06-20\s+.*succeeded|succeeded.*run\.blog 2026-06-20/);
  });

  test('picks are the same, and steps are shared', async () => {
    const command = commandPlace();
    const options = [...named, command.storeAt('shared.db')];
    const script = `semel() { ${command.word} "$@"; }; semel pick topic --from launches,interviews,how-to,news > topic; semel seed --json > seed; semel step plan -- echo by the command; exit 3`;
    const ran = await command.semel('run', 'blog', ...slot, ...options, '--', 'sh', '-c', script);
    expect(ran.code).toBe(3);
    expect(ran.stdout.trim()).toBe('by the command');
    // As test/library/job.test.ts has them for the library.
    expect(command.lines('topic')).toEqual(['how-to']);
    const seed = JSON.parse(command.lines('seed').join(''));
    expect(seed).toMatchObject({ seed: 202_865_520_194_723, picks: { topic: 'how-to' } });
    await using semel = createSemel({ store: command.storeAt('shared.db'), namespace: 'app' });
    const job = semel.job('blog', { per: day('Asia/Kolkata') }, async (run) => [
      await run.seed.pick('topic', ['other']),
      await run.step('plan', () => 'by the library'),
    ]);
    expect(await job.run({ at })).toMatchObject({
      attempt: 2,
      value: ['how-to', { stdout: 'by the command\n' }],
    });
  });
});
