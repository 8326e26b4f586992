// Guarding a job: one at a time, once per slot, and what its command sees of it.

import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSemel } from 'semel';
import { describe, expect, test } from 'vitest';
import { daily, eventually, place, until } from './place.ts';

describe('a job without a period', () => {
  const effect = ['--', 'sh', '-c', 'echo x >> effects'];

  test('runs at every start, and says once how to have slots', async () => {
    const at = place();
    const first = await at.semel('run', 'sync', effect);
    expect(first).toMatchObject({ code: 0, stdout: '' });
    expect(first.stderr).toMatch(/^semel: sync has no period, so only overlap is prevented: --per day .*\n$/);
    for (let n = 0; n < 3; n += 1)
      expect(await at.semel('run', 'sync', effect)).toMatchObject({ code: 0, stderr: '' });
    expect(at.lines('effects')).toHaveLength(4);
    for (const quiet of [['-q'], ['--per', 'none']])
      expect((await at.semel('run', `job${quiet[0]}`, quiet, effect)).stderr).toBe('');
    expect(await at.json('ls', '--tool', 'sync')).toHaveLength(4);
  });

  test('is skipped while it runs, also by a start that asked for slots', async () => {
    const at = place();
    const first = at.start('run', 'sync', '-q', '--', 'sh', '-c', `echo x >> effects; ${until('go')}`);
    await eventually(() => at.lines('effects').length === 1);
    for (const options of [[], daily]) {
      const busy = await at.semel('run', 'sync', options, effect);
      expect(busy.code).toBe(0);
      expect(busy.stderr).toContain('sync has been running since');
    }
    expect((await at.semel('run', 'sync', '--if-busy', 'fail', effect)).code).toBe(75);
    writeFileSync(at.path('go'), '');
    await first.ended;
    expect((await at.semel('run', 'sync', effect)).code).toBe(0);
    expect(at.lines('effects')).toHaveLength(2);
  });

  test('that crashed leaves no doubt once it has run again', async () => {
    const at = place();
    const script = 'echo $$ >> pids; exec sleep 60';
    const crashed = at.start('run', 'sync', '--id', 'a=1', '-q', '--', 'sh', '-c', script);
    await eventually(() => at.lines('pids').length === 1);
    crashed.child.kill('SIGKILL');
    await crashed.ended;
    const busy = await at.semel('run', 'sync', '--id', 'a=1', effect);
    expect(busy.stderr).toContain('sync has been running since');
    process.kill(Number(at.lines('pids')[0]), 'SIGKILL');
    // Another id has a turn of its own, and says nothing about this one.
    await at.semel('run', 'sync', '--id', 'a=2', '-q', effect);
    await eventually(async () => {
      await at.semel('run', 'sync', '--id', 'a=1', effect);
      return at.lines('effects').length === 2;
    });
    expect((await at.semel('doubt', '--exit-code')).code).toBe(0);
    const [failed] = await at.semel('ls', '--status', 'failed', '--json').then((said) => said.json());
    expect(failed).toMatchObject({
      contract: 'run.sync',
      error: { message: expect.stringContaining('gone') },
    });
  });

  test('cannot hold a failure, since no later start would find it', async () => {
    const at = place();
    const said = await at.semel('run', 'sync', '--after-failure', 'hold', effect);
    expect(said.code).toBe(64);
    expect(said.stderr).toContain('--after-failure hold needs a slot');
    expect(at.lines('effects')).toEqual([]);
  });

  test('takes an instant that the scheduler gives as its slot', async () => {
    const at = place();
    for (const when of ['2026-06-19T07:00:00Z', '2026-06-19T07:00:00Z', '2026-06-19T07:00:30Z'])
      expect((await at.semel('run', 'sync', '--at', when, effect)).code).toBe(0);
    expect(at.lines('effects')).toHaveLength(2);
  });
});

type Listed = Readonly<Record<'id' | 'updatedAt' | 'lastDispatchedAt', string>>;

const list = async (at: ReturnType<typeof place>, ...options: string[]) =>
  (await at.json('ls', ...options)) as [Listed];

describe('a slot', () => {
  test('is done once: the second start says when, by whom and which ledger, and exits with 0', async () => {
    const at = place();
    const run = () =>
      at.semel('run', 'blog', ...daily, '--', 'sh', '-c', 'echo ran >> effects; echo out; echo err >&2');
    expect(await run()).toMatchObject({ code: 0, stdout: 'out\n', stderr: 'err\n' });
    const second = await run();
    expect(second).toMatchObject({ code: 0, stdout: '' });
    expect(second.stderr).toMatch(
      /^semel: blog \d{4}-\d\d-\d\d was already done at .*Z \(.*\) by \S+:\d+; nothing was run \(ledger .*ledger\.db\)\n$/,
    );
    expect(at.lines('effects')).toEqual(['ran']);
    expect(await at.semel('run', 'blog', ...daily, '-q', '--skip-code', '9', '--', 'false')).toMatchObject({
      code: 9,
      stderr: '',
    });
  });

  test('of fifty copies that start at once one runs the command', async () => {
    const at = place();
    const command = ['run', 'blog', ...daily, '--', 'sh', '-c', 'echo ran >> effects; sleep 0.5'];
    const said = await Promise.all(Array.from({ length: 50 }, () => at.semel(...command)));
    expect(said.map(({ code }) => code)).toEqual(said.map(() => 0));
    expect(at.lines('effects')).toEqual(['ran']);
    expect(said.filter(({ stderr }) => stderr === '')).toHaveLength(1);
    await at.semel(...command);
    expect(at.lines('effects')).toEqual(['ran']);
  });

  test('is another one per id, per period and per reason', async () => {
    const at = place();
    const run = (...options: string[]) =>
      at.semel('run', 'bill', ...options, '--', 'sh', '-c', 'echo x >> effects');
    await run(...daily, '--id', 'customer=1');
    await run(...daily, '--id', 'customer=2');
    await run(...daily, '--id', 'customer=2');
    expect(at.lines('effects')).toHaveLength(2);
    await run(...daily, '--id', 'customer=2', '--again', 'the customer asked');
    await run(...daily, '--id', 'customer=2', '--again', 'the customer asked');
    expect(at.lines('effects')).toHaveLength(3);
    await run('--at', '2026-06-19T07:00:00Z', '--per', 'hour');
    await run('--at', '2026-06-19T07:59:00Z', '--per', 'hour');
    await run('--at', '2026-06-19T08:00:00Z', '--per', 'hour');
    expect(at.lines('effects')).toHaveLength(5);
    // Without a zone it is a time of --tz. It is the same hour, in whatever zone.
    await run('--at', '2026-06-19T09:30', '--tz', 'Europe/Paris', '--per', 'hour');
    await run('--at', '2026-06-19T07:30:00Z', '--tz', 'Europe/Paris', '--per', 'hour');
    expect(at.lines('effects')).toHaveLength(5);
    await run('--per', 'none');
    await run('--per', 'none');
    expect(at.lines('effects')).toHaveLength(7);
    // However the zone is spelt, and in whatever order the ids are typed.
    for (const zone of ['UTC', 'Etc/UTC', 'GMT'])
      await run('--per', 'day', '--tz', zone, '--id', 'a=1', '--id', 'b=2');
    await run('--per', 'day', '--tz', 'UTC', '--id', 'b=2', '--id', 'a=1');
    expect(at.lines('effects')).toHaveLength(8);
  });

  test('that failed is run again, and says that effects may repeat', async () => {
    const at = place();
    expect(await at.semel('run', 'blog', ...daily, '--', 'sh', '-c', 'exit 3')).toMatchObject({
      code: 3,
      stderr: '',
    });
    const second = await at.semel('run', 'blog', ...daily, '--', 'sh', '-c', 'echo attempt $SEMEL_ATTEMPT');
    expect(second).toMatchObject({ code: 0, stdout: 'attempt 2\n' });
    expect(second.stderr).toMatch(
      /^semel: attempt 2 of blog \S+; attempt 1 failed with exit 3 after \d+m?s; effects not under `semel once` may repeat\n$/,
    );
  });

  test('that was killed and then fails is a failure to run again, not a doubt, and no person decided it', async () => {
    const at = place();
    const killed = at.start('run', 'blog', ...daily, '--', 'sh', '-c', 'echo $$ >> pids; exec sleep 60');
    await eventually(() => at.lines('pids').length === 1);
    killed.child.kill('SIGKILL');
    process.kill(Number(at.lines('pids')[0]), 'SIGKILL');
    await killed.ended;
    expect((await at.semel('run', 'blog', ...daily, '--wait', '10s', '--', 'sh', '-c', 'exit 3')).code).toBe(
      3,
    );
    expect((await at.semel('doubt', '--exit-code')).code).toBe(0);
    const [record] = await list(at, '--status', 'failed');
    expect(record).toMatchObject({ contract: 'run.blog', attempts: 2 });
    const shown = (await at.semel('show', record.id)).stdout;
    expect(shown).toContain('failed: the next start runs it again');
    expect(shown).not.toContain('NOT_LANDED');
    expect((await at.semel('stats')).stdout).toContain('0 resolved by people');
    expect((await at.semel('run', 'blog', ...daily, '--', 'true')).code).toBe(0);
  });

  test('that is skipped says in JSON whether it is done or still running, and since when', async () => {
    const at = place();
    const script = `echo x >> effects; ${until('go')}`;
    const first = at.start('run', 'blog', ...daily, '--lease', '10s', '--', 'sh', '-c', script);
    await eventually(() => at.lines('effects').length === 1);
    const [lock] = await list(at, '--tool', 'lock.blog');
    // Its lease is renewed: that is not when it began.
    await eventually(async () => {
      const [now] = await list(at, '--tool', 'lock.blog');
      return now.updatedAt !== lock.updatedAt;
    });
    const [run] = await list(at, '--tool', 'run.blog');
    const running = await at.semel('run', 'blog', ...daily, '--json', '--', 'true');
    expect(JSON.parse(running.stderr)).toMatchObject({
      status: 'skipped',
      reason: 'running',
      since: run.lastDispatchedAt,
    });
    const said = await at.semel('run', 'blog', ...daily, '--', 'true');
    expect(said.stderr).toContain(`blog has been running since ${run.lastDispatchedAt}`);
    at.file('go', '');
    await first.ended;
    const done = await at.semel('run', 'blog', ...daily, '--json', '--', 'true');
    expect(JSON.parse(done.stderr)).toMatchObject({ status: 'skipped', reason: 'done' });
  });

  test('that failed is held with --after-failure hold, until a person decides', async () => {
    const at = place();
    const run = () =>
      at.semel(
        'run',
        'blog',
        ...daily,
        '--after-failure',
        'hold',
        '--',
        'sh',
        '-c',
        'echo x >> effects; exit 3',
      );
    expect((await run()).code).toBe(76);
    const second = await run();
    expect(second.code).toBe(76);
    expect(second.stderr).toContain('semel resolve');
    expect(at.lines('effects')).toHaveLength(1);
    const [, ref = ''] = /semel resolve (\S+)/.exec(second.stderr) ?? [];
    expect((await at.semel('resolve', ref, 'landed')).code).toBe(0);
    expect((await run()).code).toBe(0);
    expect(at.lines('effects')).toHaveLength(1);
  });

  test('that is held does not run just because the option is left out', async () => {
    const at = place();
    await at.semel('run', 'blog', ...daily, '--after-failure', 'hold', '--', 'sh', '-c', 'exit 3');
    expect((await at.semel('run', 'blog', ...daily, '--', 'sh', '-c', 'echo x >> effects')).code).toBe(76);
    expect(at.lines('effects')).toEqual([]);
  });

  test('that failed asks --verify first: landed is done, not landed is run, unknown is in doubt', async () => {
    const at = place();
    const run = (job: string, verify: string, command: string) =>
      at.semel('run', job, ...daily, '--verify', verify, '--verify-after', '0s', '--', 'sh', '-c', command);
    const fails = 'echo x >> effects; exit 3';
    // The verifier is asked when the command has failed, and again at the next start.
    const found = await run('yes', 'exit 0', fails);
    expect([found.code, found.stderr]).toEqual([
      0,
      expect.stringContaining('the verifier found that it is done'),
    ]);
    expect(await run('no', 'exit 1', fails)).toMatchObject({ code: 3 });
    for (const verify of ['exit 5', 'exit 5']) expect((await run('maybe', verify, fails)).code).toBe(76);
    expect(at.lines('effects')).toHaveLength(3);
    expect(await run('maybe', 'exit 0', fails)).toMatchObject({ code: 0 });
    expect(await run('no', 'exit 1', 'echo x >> effects')).toMatchObject({ code: 0 });
    expect(at.lines('effects')).toHaveLength(4);
    expect((await run('yes', 'exit 1', fails)).stderr).toContain('was already done');
  });

  test('a slow verifier is not a reason to start again', async () => {
    const at = place();
    const run = (verify: string, script: string) =>
      at.semel('run', 'job', ...daily, '--verify', verify, '--verify-after', '0s', '--', 'sh', '-c', script);
    // The first start asks it within its own attempt, the second at the start of the next one: there is no third.
    await run('exit 5', 'exit 3');
    expect((await run('sleep 6; exit 1', 'echo "attempt $SEMEL_ATTEMPT"')).stdout).toBe('attempt 2\n');
  });

  test('--retries tries a failure again in its turn', async () => {
    const at = place();
    const script = 'echo x >> effects; test $(wc -l < effects) -ge 3';
    const said = await at.semel(
      'run',
      'blog',
      ...daily,
      '--retries',
      '3',
      '--backoff',
      '10ms',
      '--',
      'sh',
      '-c',
      script,
    );
    expect(said.code).toBe(0);
    expect(said.stderr).toContain('attempt 3 of blog');
    expect(at.lines('effects')).toHaveLength(3);
    const asked = await at.semel(
      ...[
        'run',
        'asked',
        ...daily,
        '--retries',
        '1',
        '--backoff',
        '10ms',
        '--verify',
        'exit 1',
        '--verify-after',
        '0s',
      ],
      ...['--', 'sh', '-c', 'echo y >> asked; exit 5'],
    );
    expect(asked.code).toBe(5);
    expect(at.lines('asked')).toHaveLength(2);
  });

  test('a verifier that can decide only in months is not polled', async () => {
    const at = place();
    const verify = 'echo asked >> asked; exit 1';
    const { child, stderrBytes, ended } = at.start(
      ...['run', 'job', daily, '--retries', '1', '--backoff', '1ms', '--verify', verify],
      ...['--verify-after', '60d', '--', 'false'],
    );
    await eventually(() => stderrBytes().includes('the verifier can decide in'));
    const asked = at.lines('asked').length;
    await at.semel('ls');
    expect(at.lines('asked')).toHaveLength(asked);
    child.kill();
    await ended;
  });
});

describe('two runs of a job', () => {
  test('never overlap, across slots too: a trigger every second for a minute, a command of 7 s', async () => {
    const at = place();
    const script = 'echo "start $$ $SEMEL_SLOT" >> effects; sleep 7; echo "end $$ $SEMEL_SLOT" >> effects';
    const started = [];
    for (let second = 0; second < 60; second += 1) {
      started.push(at.semel('run', 'tick', '--per', 'minute', '--', 'sh', '-c', script));
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
    const said = await Promise.all(started);
    expect(said.map(({ code }) => code)).toEqual(said.map(() => 0));
    const lines = at.lines('effects');
    for (let n = 0; n < lines.length; n += 2) {
      const [, pid, slot] = lines[n]?.split(' ') ?? [];
      expect(lines.slice(n, n + 2)).toEqual([`start ${pid} ${slot}`, `end ${pid} ${slot}`]);
    }
    // A minute of triggers touches one slot or two.
    const slots = lines.map((line) => line.split(' ')[2]);
    expect(lines).toHaveLength(2 * new Set(slots).size);
    expect(new Set(slots).size).toBeGreaterThanOrEqual(1);
  });

  test('--if-busy fail is 75, --wait waits and then finds it done', async () => {
    const at = place();
    const first = at.start('run', 'blog', ...daily, '--', 'sh', '-c', `echo x >> effects; ${until('go')}`);
    await eventually(() => at.lines('effects').length === 1);
    const again = ['--', 'sh', '-c', 'echo x >> effects'];
    const failed = await at.semel('run', 'blog', ...daily, '--if-busy', 'fail', ...again);
    expect(failed).toMatchObject({ code: 75 });
    expect(failed.stderr).toContain('blog has been running since');
    expect(await at.semel('run', 'blog', ...daily, '--wait', '100ms', ...again)).toMatchObject({ code: 75 });
    const waiting = at.start('run', 'blog', ...daily, '--wait', '30s', ...again);
    await once(waiting.child.stderr!, 'data');
    at.file('go', '');
    const waited = await waiting.ended;
    expect(waited.code).toBe(0);
    expect(waited.stderr).toContain('waiting for');
    expect(waited.stderr).toContain('was already done');
    await first.ended;
    expect(at.lines('effects')).toHaveLength(1);
  });
});

describe('the command', () => {
  test('gets its run through the environment, and so do its children', async () => {
    const at = place();
    const variables = [
      'RUN',
      'SLOT',
      'DATE',
      'TZ',
      'ATTEMPT',
      'FENCE',
      'KEY',
      'KEY_UUID',
      'STORE',
      'CONTEXT',
    ];
    const script = variables.map((name) => `echo "${name}=$SEMEL_${name}"`).join('; ');
    const options = ['--at', '2026-06-19T07:30:00Z', '--tz', 'Europe/Paris', '--id', 'customer=42'];
    const { stdout } = await at.semel('run', 'blog', ...daily, ...options, '--', 'sh', '-c', script);
    const told = Object.fromEntries(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split(/=(.*)/s).slice(0, 2)),
    );
    expect(told).toMatchObject({
      RUN: `blog@2026-06-19~${Date.parse('2026-06-18T22:00:00Z').toString(36)}?customer=42`,
      SLOT: '2026-06-19',
      DATE: '2026-06-19',
      TZ: 'Europe/Paris',
      ATTEMPT: '1',
      STORE: at.env.SEMEL_STORE,
    });
    expect(told.KEY_UUID?.replaceAll('-', '')).toBe(told.KEY);
    expect(Number(told.FENCE)).toBeGreaterThan(0);
    expect(told.CONTEXT).toMatch(/^semel1\./);
  });

  test('shares its run with the library inside it: the same step of two attempts is one effect', async () => {
    const at = place();
    const index = join(import.meta.dirname, '../../src/index.ts');
    writeFileSync(
      at.path('agent.ts'),
      `import { createSemel } from ${JSON.stringify(index)};
       import { appendFileSync } from 'node:fs';
       await using semel = createSemel({ namespace: 'agent', onWarning: () => undefined });
       const send = semel.tool({ name: 'mail', effect: 'irreversible', per: 'run', run: (_: { lead: number }) => appendFileSync('effects', 'x\\n') });
       await send({ lead: 7 });
       process.exitCode = process.env.SEMEL_ATTEMPT === '1' ? 1 : 0;`,
    );
    const run = () => at.semel('run', 'agent', ...daily, '--', process.execPath, 'agent.ts');
    expect((await run()).code).toBe(1);
    expect((await run()).code).toBe(0);
    expect(at.lines('effects')).toHaveLength(1);
  });

  test.each([
    ['without a slot', [], 3],
    ['once for all time', ['--per', 'ever'], 3],
    ['of a slot', daily, 1],
    ['of an instant that was named', ['--per', 'none', '--at', '2026-06-19T07:00:00Z'], 1],
  ] as const)(
    'a service that runs for days, as a run %s, has the days of its calls or of its slot',
    async (_, flags, days) => {
      const at = place();
      const source = join(import.meta.dirname, '../../src');
      writeFileSync(
        at.path('service.ts'),
        `import { createSemel, day } from ${JSON.stringify(join(source, 'index.ts'))};
       import { systemClock } from ${JSON.stringify(join(source, 'core/clock.ts'))};
       import { appendFileSync } from 'node:fs';
       let days = 0;
       const clock = { ...systemClock, now: () => Date.now() + days * 86_400_000 };
       await using semel = createSemel({ store: 'memory:', namespace: 'service', clock });
       for (; days < 3; days += 1)
         await semel.once('digest', { list: 'all' }, { per: day('UTC'), window: '30d' }, () => appendFileSync('effects', 'x\\n'));`,
      );
      expect(await at.semel('run', 'service', ...flags, '--', process.execPath, 'service.ts')).toMatchObject({
        code: 0,
      });
      expect(at.lines('effects')).toHaveLength(days);
    },
  );

  test('that is not there is 127, one that may not be executed 126, and both run again', async () => {
    const at = place();
    writeFileSync(at.path('plain.txt'), 'no program');
    expect(await at.semel('run', 'a', ...daily, '--', './nowhere')).toMatchObject({ code: 127 });
    expect(await at.semel('run', 'b', ...daily, '--', './plain.txt')).toMatchObject({ code: 126 });
    expect(await at.semel('run', 'a', ...daily, '--', 'echo', 'now')).toMatchObject({
      code: 0,
      stdout: 'now\n',
    });
  });

  test('leaves its exit and its last output in the history', async () => {
    const at = place();
    await at.semel(
      'run',
      'blog',
      ...daily,
      '--',
      'sh',
      '-c',
      'echo before; echo "what went wrong" >&2; exit 4',
    );
    await using semel = createSemel({ store: at.env.SEMEL_STORE as string, namespace: 'default' });
    const [record] = (await semel.records.list({ contract: 'run.blog' })).items;
    expect(record).toMatchObject({ status: 'released', args: { job: 'blog' }, attempts: 1 });
    const [note] = await semel.records.history(record?.key ?? '');
    expect(note).toMatchObject({ type: 'noted', detail: { attempt: 1, exit: 4 } });
    expect(note?.detail.tail).toContain('what went wrong');
  });

  test('a job of any name is safe', async () => {
    const at = place();
    const names = [
      'two words',
      `"it's"`,
      'line\nbreak',
      '🎉',
      '../../escape',
      '$(touch pwned)',
      '-dash',
      'x'.repeat(200),
    ];
    for (const name of names) {
      const run = () =>
        at.semel(
          'run',
          ...(name.startsWith('-') ? [] : [name]),
          ...daily,
          '--',
          'sh',
          '-c',
          'echo x >> effects',
        );
      const first = await run();
      expect([name, first.code]).toEqual([name, name.startsWith('-') ? 64 : 0]);
      expect((await run()).stderr.split('\n')).toHaveLength(2);
    }
    expect(at.lines('effects')).toHaveLength(names.length - 1);
    expect(existsSync(at.path('pwned'))).toBe(false);
    expect(readdirSync(at.folder).filter((name) => !/^(ledger\.db|effects)/.test(name))).toEqual([]);
  });
});

describe('wrong usage', () => {
  test.each([
    [['run'], 'expects the name of one job'],
    [['run', 'blog'], 'there is no command'],
    [['run', 'blog', 'more', '--', 'true'], 'expects the name of one job'],
    [['run', 'blog', '--per', 'fortnight', '--', 'true'], '--per must be one of'],
    [
      ['run', 'blog', '--per', '24h', '--', 'true'],
      'To leave a minimum time between two starts, use --at-least',
    ],
    [['run', 'blog', '--cron', '* * *', '--', 'true'], 'is not a cron expression'],
    [
      ['run', 'blog', '--cron', '* * * * *', '--per', 'day', '--', 'true'],
      '--per and --cron cannot be combined',
    ],
    [['run', 'blog', '--tz', 'Mars/Olympus', '--', 'true'], 'is not a time zone'],
    [['run', 'blog', '--at', 'tomorrow', '--', 'true'], 'is not a time'],
    [['run', 'blog', '--lease', '1s', '--', 'true'], '--lease must be at least 10s'],
    [['run', 'blog', '--timeout', 'long', '--', 'true'], '--timeout "long" is not a duration'],
    [['run', 'blog', '--timeout', '30d', '--', 'true'], '--timeout must be at most 24d'],
    [['run', 'blog', '--skip-code', 'none', '--', 'touch', 'ran'], 'a whole number from 0 to 255'],
    [['run', 'blog', '--id', 'customer', '--', 'true'], 'is not a name with a value'],
    [['run', 'blog', '--id', 'a=1', '--id', 'a=2', '--', 'true'], 'is given twice'],
    [['run', 'blog', '--retries', 'often', '--', 'true'], 'Write a whole number from 0 to 999'],
    [['run', 'blog', '--perr', 'day', '--', 'true'], 'Did you mean --per?'],
    [['run', 'blog', '--store', 'memory:', '--', 'true'], 'A ledger in memory would be lost'],
    [['run', 'blog', '--store', 'nope.db', '--', 'true'], 'The store cannot be used'],
    [['rnu', 'blog'], 'Did you mean `semel run`?'],
  ])('%j is a usage error, and nothing is run', async (args, sentence) => {
    const at = place();
    const { code, stderr } = await at.semel(...args);
    expect(stderr).toContain(sentence);
    expect(code).toBe(64);
    expect(existsSync(at.path('ran'))).toBe(false);
  });
});

test('a job that failed is found by its name and as a failure, and its turn is in nobody’s way', async () => {
  const at = place();
  await at.semel('run', 'nightly', ...daily, '--at', '2026-06-19T02:00:00Z', '--', 'sh', '-c', 'exit 5');
  const { stdout } = await at.semel('ls', '--status', 'failed', '--tool', 'nightly');
  expect(stdout).toMatch(/run\.nightly 2026-06-19 +failed/);
  expect((await at.semel('ls')).stdout).not.toContain('lock.');
  const none = await at.semel('doubt', '--tool', 'nightly', '--older', '10m');
  expect(none.stdout).toContain('Nothing of nightly is in doubt in default for longer than 10m.');
});

test('a slot that was forgotten is run as if for the first time', async () => {
  const at = place();
  await at.semel('run', 'job', ...daily, '--', 'true');
  const [record] = JSON.parse((await at.semel('ls', '--tool', 'job', '--json')).stdout);
  expect((await at.semel('forget', record.id, '--yes')).code).toBe(0);
  const said = await at.semel('run', 'job', ...daily, '--', 'sh', '-c', 'echo "attempt $SEMEL_ATTEMPT"');
  expect(said).toMatchObject({ code: 0, stdout: 'attempt 1\n', stderr: '' });
});

test('--per ever stays done, even after its result is no longer kept', async () => {
  const at = place();
  const run = () =>
    at.semel('run', 'setup', '--per', 'ever', '--window', '1ms', '--', 'sh', '-c', 'echo x >> effects');
  await run();
  await at.semel('prune');
  expect((await run()).code).toBe(0);
  expect(at.lines('effects')).toEqual(['x']);
});
