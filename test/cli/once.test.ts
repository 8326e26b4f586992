// Guarding one effect: done once, its output remembered; what may have landed is in doubt.

import { existsSync, writeFileSync } from 'node:fs';
import { createSemel } from 'semel';
import { describe, expect, test } from 'vitest';
import { daily, eventually, place } from './place.ts';

const effect = 'echo x >> effects; echo "sent $SEMEL_KEY_UUID"';

describe('an effect', () => {
  test('is done once ever for its ids: later calls print the same and run nothing', async () => {
    const at = place();
    const send = (...ids: string[]) => at.semel('once', 'mail', ...ids, '--', 'sh', '-c', effect);
    const first = await send('--id', 'lead=42', '--id', 'template=welcome');
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(first.stdout).toMatch(
      /^sent [0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n$/,
    );
    // The order in which the ids are given means nothing.
    const second = await send('--id', 'template=welcome', '--id', 'lead=42');
    expect(second).toMatchObject({ code: 0, stdout: first.stdout });
    expect(second.stderr).toMatch(
      /^semel: mail template=welcome lead=42 was already done at .*Z \(.*\) by \S+; nothing was run \(ledger .*\)\n$/,
    );
    const other = await send('--id', 'lead=43', '--id', 'template=welcome');
    expect(other.stdout).not.toBe(first.stdout);
    expect(at.lines('effects')).toHaveLength(2);
  });

  test('is listed with the ids that the user gave, and no digest of its command', async () => {
    const at = place();
    await at.semel('once', 'mail', '--id', 'lead=42', '--', 'sh', '-c', 'exit 1');
    const [{ id, args }] = (await at.json('ls')) as [{ id: string; args: unknown }];
    expect(args).toEqual({ lead: '42' });
    const { record } = (await at.json('show', id)) as { record: { args: unknown } };
    expect(record.args).toEqual({ lead: '42' });
    for (const shown of [await at.semel('ls'), await at.semel('doubt'), await at.semel('show', id)]) {
      expect(shown.stdout).toContain('{"lead":"42"}');
      expect(shown.stdout).not.toContain('$command');
    }
  });

  test('content may be worded differently: the difference is reported, and nothing is run', async () => {
    const at = place();
    const send = (...more: string[]) =>
      at.semel('once', 'mail', '--id', 'lead=42', ...more, '--', 'sh', '-c', effect);
    const first = await send('--content', 'subject=Hello', '--content', 'note=');
    expect(first.code).toBe(0);
    const second = await send('--content', 'subject=Good morning', '--content', 'note=');
    expect(second).toMatchObject({ code: 0, stdout: first.stdout });
    expect(second.stderr).toContain('with another subject; nothing was run');
    expect(at.lines('effects')).toHaveLength(1);
    for (const name of ['lead=1', 'a.b=1', 'effect=1'])
      expect(await send('--content', name)).toMatchObject({ code: 64 });
  });

  test('--per 1s is a TTL: not again until a second after it was done', async () => {
    const at = place();
    const send = (per: string, ...more: string[]) =>
      at.semel('once', 'ping', '--id', 'host=a', '--per', per, ...more, '--', 'sh', '-c', effect);
    await send('1h');
    expect(await send('24h')).toMatchObject({ code: 0, stdout: expect.stringContaining('sent') });
    expect(at.lines('effects')).toHaveLength(1);
    const brief = () => at.semel('once', 'pong', '--id', 'host=a', '--per', '1s', '--', 'sh', '-c', effect);
    await brief();
    await eventually(async () => {
      await brief();
      return at.lines('effects').length === 3;
    });
    expect(await send('24h', '--window', '7d')).toMatchObject({ code: 64 });
    for (const per of ['24', '0s', 'fortnight']) expect(await send(per)).toMatchObject({ code: 64 });
    const shown = await at.semel('key', 'ping', '--id', 'host=a', '--per', '24h');
    expect(shown.stdout).toMatch(/period +1d from the first success/);
  });

  test('--at selects the period', async () => {
    const at = place();
    const send = (instant: string) => {
      const period = ['--per', 'day', '--tz', 'Europe/Paris', '--at', instant];
      return at.semel('once', 'digest', '--id', 'list=all', ...period, '--', 'sh', '-c', effect);
    };
    await send('2026-06-19T08:00');
    await send('2026-06-19T20:00:00Z');
    expect(at.lines('effects')).toHaveLength(1);
    await send('2026-06-19T22:30:00Z');
    expect(at.lines('effects')).toHaveLength(2);
  });

  test('takes its identity as JSON too, from a file or from stdin', async () => {
    const at = place();
    writeFileSync(at.path('id.json'), '{"template":"welcome","lead":"42"}');
    const command = ['--', 'sh', '-c', effect];
    await at.semel('once', 'mail', '--id', 'lead=42', '--id', 'template=welcome', ...command);
    await at.semel('once', 'mail', '--id-json', 'id.json', ...command);
    await at
      .with({ input: '{"lead":"42","template":"welcome"}' })
      .semel('once', 'mail', '--id-json', '-', ...command);
    expect(at.lines('effects')).toHaveLength(1);
  });

  test('a number of a program is a number in --id-json, and not what --id says', async () => {
    const at = place();
    const semel = createSemel({ store: at.store, namespace: 'default' });
    await semel.once('mail', { order: 7 }, () => 'sent');
    await semel.close();
    const command = ['--', 'sh', '-c', effect];
    const { code, stderr } = await at.semel('once', 'mail', '--id-json', '{"order":7}', ...command);
    expect([code, stderr]).toEqual([0, expect.stringContaining('nothing was run')]);
    await at.semel('once', 'mail', '--id', 'order=7', ...command);
    expect(at.lines('effects')).toHaveLength(1);
  });

  test('by a key of the caller, by period, and once more on purpose', async () => {
    const at = place();
    const send = (...options: string[]) => at.semel('once', 'mail', ...options, '--', 'sh', '-c', effect);
    await send('--key', 'order-7');
    await send('--key', 'order-7');
    expect(at.lines('effects')).toHaveLength(1);
    await send('--id', 'lead=1', '--per', 'day');
    await send('--id', 'lead=1', '--per', 'day');
    expect(at.lines('effects')).toHaveLength(2);
    await send('--id', 'lead=1', '--per', 'day', '--again', 'the customer asked');
    await send('--id', 'lead=1', '--per', 'day', '--again', 'the customer asked');
    expect(at.lines('effects')).toHaveLength(3);
  });

  test('without ids is remembered as long as the run it is in, and so is a step', async () => {
    const at = place();
    const script = `${at.word} once publish -- true && ${at.word} step plan -- true`;
    const ms = 86_400_000;
    for (const [more, days] of [
      [['--per', 'month', '--at', '2026-05-01T00:00Z'], 30 + 31],
      [['--cron', '0 0 1 1 *', '--at', '2026-01-01T00:00Z'], 30 + 365],
      [['--per', 'week', '--at', '2026-05-01T00:00Z', '--window', '90d'], 90 + 7],
    ] as const) {
      await at.semel('run', 'blog', ...more, '--', 'sh', '-c', script);
      const records = (await at.json('ls', '--limit', '2')) as { settledAt: string; expiresAt: string }[];
      for (const { settledAt, expiresAt } of records)
        expect(Date.parse(expiresAt) - Date.parse(settledAt)).toBeGreaterThanOrEqual(days * ms);
    }
  });

  test('without ids is once per slot inside a run, and wrong usage outside', async () => {
    const at = place();
    expect(await at.semel('once', 'publish', '--', 'true')).toMatchObject({ code: 64 });
    const script = `${at.word} once publish -- sh -c 'echo x >> effects; echo live' && test "$SEMEL_ATTEMPT" = 2`;
    const run = (day: string) => at.semel('run', 'blog', ...daily, '--at', day, '--', 'sh', '-c', script);
    expect((await run('2026-06-19T07:00:00Z')).code).toBe(1);
    const second = await run('2026-06-19T07:00:00Z');
    expect(second).toMatchObject({ code: 0, stdout: 'live\n' });
    expect(at.lines('effects')).toHaveLength(1);
    await run('2026-06-20T07:00:00Z');
    expect(at.lines('effects')).toHaveLength(2);
  });

  test('of many callers at once is done once, and all get its output', async () => {
    const at = place();
    const said = await Promise.all(
      Array.from({ length: 12 }, () =>
        at.semel('once', 'mail', '--id', 'lead=1', '--', 'sh', '-c', `sleep 0.3; ${effect}`),
      ),
    );
    const [first] = said;
    expect(said.map(({ code, stdout, stderr }) => [code, stdout, code === 0 ? '' : stderr])).toEqual(
      said.map(() => [0, first?.stdout, '']),
    );
    expect(at.lines('effects')).toHaveLength(1);
  });

  test('that calls itself does not wait for itself', async () => {
    const at = place();
    const inner = `${at.word} once mail --id lead=1 --if-busy fail -- true`;
    const { code, stderr } = await at.semel(
      'once',
      'mail',
      '--id',
      'lead=1',
      '--',
      'sh',
      '-c',
      `${inner}; test $? = 75`,
    );
    expect([code, stderr.includes('is being done since')]).toEqual([0, true]);
  });
});

describe('a command that failed', () => {
  test('may have landed: in doubt, exit 76, with the commands that settle it', async () => {
    const at = place();
    const send = () =>
      at.semel('once', 'mail', '--id', 'lead=1', '--', 'sh', '-c', 'echo x >> effects; exit 3');
    const first = await send();
    expect(first.code).toBe(76);
    const second = await send();
    expect(second.code).toBe(76);
    expect(second.stderr).toContain('failed with exit 3');
    expect(at.lines('effects')).toHaveLength(1);
    const [, ref = ''] = /semel resolve (\S+)/.exec(second.stderr) ?? [];
    expect(await at.semel('resolve', ref, 'not-landed', '--force')).toMatchObject({ code: 0 });
    expect((await at.semel('once', 'mail', '--id', 'lead=1', '--', 'echo', 'sent')).stdout).toBe('sent\n');
  });

  test('a verdict can name the output that later calls get', async () => {
    const at = place();
    const send = () => at.semel('once', 'mail', '--id', 'lead=1', '--', 'sh', '-c', 'exit 3');
    const [, ref = ''] = /semel resolve (\S+)/.exec((await send()).stderr) ?? [];
    await at.semel('resolve', ref, 'landed', '--result', '"m-7"');
    expect(await send()).toMatchObject({ code: 0, stdout: 'm-7' });
  });

  test('never started, or says by its code that it did not land: the next call runs it', async () => {
    const at = place();
    expect((await at.semel('once', 'mail', '--id', 'a=1', '--', './nowhere')).code).toBe(127);
    expect((await at.semel('once', 'mail', '--id', 'a=1', '--', 'sh', '-c', effect)).code).toBe(0);
    const told = ['once', 'mail', '--id', 'a=2', '--not-landed-exit', '6,7', '--'];
    expect((await at.semel(...told, 'sh', '-c', 'exit 7')).code).toBe(7);
    expect((await at.semel(...told, 'sh', '-c', effect)).code).toBe(0);
    expect(at.lines('effects')).toHaveLength(2);
  });

  test.each([
    ['its timeout', ['--timeout', '1s'], undefined],
    ['a signal to semel', [], 'SIGTERM'],
  ] as const)(
    'a code that it ends with because of %s is not one of --not-landed-exit',
    async (_, flags, signal) => {
      const at = place();
      const told = ['once', 'mail', '--id', 'a=1', '--not-landed-exit', '1', ...flags, '--', 'sh', '-c'];
      // As programs do that clean up on TERM.
      const sending = at.start(...told, "trap 'exit 1' TERM; echo x >> effects; sleep 30 & wait");
      await eventually(() => existsSync(at.path('effects')));
      if (signal !== undefined) sending.child.kill(signal);
      expect((await sending.ended).code).toBe(76);
      expect((await at.semel(...told, 'echo x >> effects')).code).toBe(76);
      expect(at.lines('effects')).toHaveLength(1);
    },
  );

  test('a script that ends with 127 did run: what came before the missing command may have landed', async () => {
    const at = place();
    const send = () =>
      at.semel('once', 'mail', '--id', 'a=1', '--', 'sh', '-c', 'echo x >> effects; no-such-command');
    expect((await send()).code).toBe(76);
    expect((await send()).code).toBe(76);
    expect(at.lines('effects')).toHaveLength(1);
  });

  test('is run again with --if-unknown rerun, under the same key for the provider', async () => {
    const at = place();
    const send = (script: string) =>
      at.semel('once', 'set', '--id', 'a=1', '--if-unknown', 'rerun', '--', 'sh', '-c', script);
    expect((await send('echo $SEMEL_KEY_UUID >> keys; exit 3')).code).toBe(76);
    expect(await send('echo $SEMEL_KEY_UUID >> keys; echo ok')).toMatchObject({ code: 0, stdout: 'ok\n' });
    const [first, second] = at.lines('keys');
    expect(first).toMatch(/^[0-9a-f-]{36}$/);
    expect(second).toBe(first);
  });

  test('asks --verify: 0 landed with its output, 1 did not land, else still unknown', async () => {
    const at = place();
    const send = (id: string, verify: string, ...more: string[]) =>
      at.semel(
        'once',
        'mail',
        '--id',
        `a=${id}`,
        '--verify',
        verify,
        ...more,
        '--',
        'sh',
        '-c',
        'echo x >> effects; exit 3',
      );
    expect(await send('yes', 'echo "found $SEMEL_KEY"')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^found \w{32}\n$/),
    });
    expect((await send('yes', 'exit 9')).code).toBe(0);
    expect(at.lines('effects')).toHaveLength(1);
    // "It did not" is not believed while a request may be on its way, and nothing is run twice by one call.
    expect((await send('no', 'exit 1')).code).toBe(76);
    expect((await send('no', 'exit 1')).code).toBe(76);
    expect(at.lines('effects')).toHaveLength(2);
    expect((await send('soon', 'exit 1', '--verify-after', '0s')).code).toBe(3);
    expect(at.lines('effects')).toHaveLength(3);
    expect((await send('soon', 'exit 1', '--verify-after', '0s')).code).toBe(3);
    expect(at.lines('effects')).toHaveLength(4);
    expect((await send('maybe', 'exit 5')).code).toBe(76);
    expect((await send('maybe', 'kill -9 $$')).code).toBe(76);
    expect(at.lines('effects')).toHaveLength(5);
  });

  test('does not wait for what a verifier left behind, and keeps no part of an answer that is too long', async () => {
    const at = place();
    const ask = (verify: string) =>
      at.semel('once', 'mail', '--id', `v=${verify}`, '--verify', verify, '--', 'sh', '-c', 'exit 3');
    const left = await ask('sleep 60 2> stderr & echo $! > pid; echo there');
    expect(left).toMatchObject({ code: 0, stdout: 'there\n' });
    process.kill(Number(at.lines('pid')[0]));
    const long = await ask('head -c 20000000 /dev/zero');
    expect(long).toMatchObject({ code: 0, stdout: '' });
    expect(long.stderr).toContain('it printed 20000000 bytes, more than can be stored');
  });

  test('at its timeout is ended, and in doubt', async () => {
    const at = place();
    const said = await at.semel('once', 'mail', '--id', 'a=1', '--timeout', '300ms', '--', 'sleep', '30');
    expect(said.code).toBe(76);
    expect(said.stderr).toContain('was ended by its timeout of 300ms');
  });
});

describe('the output', () => {
  test('of ten megabytes of anything passes byte for byte, and is printed again the same', async () => {
    const at = place();
    const script = `const bytes = Buffer.alloc(10_000_000); for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 31 + (i >> 8)) & 255;
      process.stdout.write(bytes)`;
    const once = () => at.start('once', 'blob', '--id', 'a=1', '--', process.execPath, '-e', script);
    const expected = Buffer.alloc(10_000_000);
    for (let i = 0; i < expected.length; i += 1) expected[i] = (i * 31 + (i >> 8)) & 255;
    for (const _ of ['executed', 'replayed']) {
      const said = once();
      expect((await said.ended).code).toBe(0);
      expect(said.stdoutBytes().equals(expected)).toBe(true);
    }
    const run = at.start('run', 'blob', '--', process.execPath, '-e', script);
    expect((await run.ended).code).toBe(0);
    expect(run.stdoutBytes().equals(expected)).toBe(true);
  });

  test('of nothing but control characters is kept too, and moves to another ledger', async () => {
    const at = place();
    const once = () => at.semel('once', 'zeros', '--id', 'a=1', '--', 'head', '-c', '12000000', '/dev/zero');
    expect(await once()).toMatchObject({ code: 0, stdout: '\0'.repeat(12_000_000) });
    const again = await once();
    expect([again.code, again.stdout.length]).toEqual([0, 12_000_000]);
    const { stdout } = await at.semel('export');
    const moved = await at
      .with({ input: stdout })
      .semel('import', '-', '--store', `sqlite:${at.path('new.db')}`);
    expect(moved.stdout).toContain('Imported 1 (1 succeeded)');
  });

  test('larger than the limit is still printed; later calls say that it was not kept', async () => {
    const at = place();
    const once = () => at.start('once', 'blob', '--id', 'a=1', '--', 'head', '-c', '20000000', '/dev/zero');
    const first = once();
    await first.ended;
    expect(first.stdoutBytes()).toHaveLength(20_000_000);
    const second = await once().ended;
    expect(second).toMatchObject({ code: 0, stdout: '' });
    expect(second.stderr).toContain('it printed 20000000 bytes, more than can be stored');
  });

  test('comes as it is printed, and stdin reaches the command', async () => {
    const at = place();
    const started = at.start(
      'once',
      'talk',
      '--id',
      'a=1',
      '--',
      'sh',
      '-c',
      'echo early; sleep 2; echo late',
    );
    await eventually(() => started.stdoutBytes().toString() === 'early\n');
    expect((await started.ended).stdout).toBe('early\nlate\n');
    const { stdout } = await at.with({ input: 'typed' }).semel('run', 'cat', '--', 'cat');
    expect(stdout).toBe('typed');
  });

  test('is remembered whole, also when its reader goes away', async () => {
    const at = place();
    const script = "trap '' PIPE; seq 1 200000 2>/dev/null; exit 0";
    const started = at.start('once', 'long', '--id', 'a=1', '--', 'sh', '-c', script);
    started.child.stdout?.once('data', () => started.child.stdout?.destroy());
    await started.ended;
    const { stdout } = await at.semel('once', 'long', '--id', 'a=1', '--', 'false');
    expect(stdout.trim().split('\n')).toHaveLength(200_000);
  });

  test('a command whose reader goes away gets SIGPIPE, and the guard does not die before it', async () => {
    const at = place();
    const started = at.start('run', 'yes', '--', 'sh', '-c', 'yes; echo "$?" >> effects; exit 7');
    started.child.stdout?.once('data', () => started.child.stdout?.destroy());
    expect((await started.ended).code).toBe(7);
    expect(at.lines('effects')).toHaveLength(1);
  });
});

test.each([
  [['once'], 'expects the name of one effect'],
  [['once', 'mail', '--id', 'a=1'], 'there is no command'],
  [['once', 'mail', '--', 'true'], 'nothing identifies the effect'],
  [['once', 'mail', '--per', 'run', '--id', 'a=1', '--', 'true'], '--per run needs a run'],
  [['once', 'run.mail', '--id', 'a=1', '--', 'true'], 'reserved for jobs'],
  [['once', 'mail', '--id-json', 'nowhere.json', '--', 'true'], 'there is no file nowhere.json'],
  [['once', 'mail', '--id', 'a=1', '--not-landed-exit', '6;7', '--', 'true'], 'is not an exit code'],
  [
    ['once', 'mail', '--id', 'a=1', '--id-json', 'ids.json', '--', 'touch', 'ran'],
    'is in --id and in --id-json',
  ],
  [['once', 'mail', '--id', 'a=1', '--skip-code', '300', '--', 'touch', 'ran'], 'from 0 to 255'],
  [['once', 'mail', '--id', 'a=1', '--grace', '60d', '--', 'touch', 'ran'], '--grace must be at most 24d'],
  [['step', 'plan', '--', 'true'], 'it only works inside a run'],
  [['pick', 'topic', '--from', 'a,b'], 'it only works inside a run'],
  [['seed'], 'it only works inside a run'],
])('%j is a usage error', async (args, sentence) => {
  const at = place();
  writeFileSync(at.path('ids.json'), '{"a":2}');
  const { code, stderr } = await at.semel(...args);
  expect([code, stderr]).toEqual([64, expect.stringContaining(sentence)]);
  expect(existsSync(at.path('ran'))).toBe(false);
});
