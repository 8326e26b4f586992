// `semel run --at-least`: the lock of a run that is over is held for the rest of its time, without a process.

import { describe, expect, test } from 'vitest';
import { daily, eventually, place } from './place.ts';

const effect = ['--', 'sh', '-c', 'echo x >> effects'];
const held = ['--at-least', '1h'];

describe('a job with --at-least', () => {
  test('returns at once, and a start within that time is skipped and says until when and why', async () => {
    const at = place();
    expect(await at.semel('run', 'sync', '-q', held, effect)).toMatchObject({ code: 0, stderr: '' });
    for (const options of [held, [], daily]) {
      const skipped = await at.semel('run', 'sync', options, effect);
      expect(skipped.code).toBe(0);
      expect(skipped.stderr).toMatch(
        /^semel: sync was run by \S+:\d+; its lock is held until \d{4}-\S+Z \(--at-least 1h\); nothing was run/,
      );
    }
    expect((await at.semel('run', 'sync', '--skip-code', '9', effect)).code).toBe(9);
    expect((await at.semel('run', 'sync', '--if-busy', 'fail', effect)).code).toBe(75);
    expect((await at.semel('run', 'sync', '--wait', '1ms', effect)).code).toBe(75);
    expect(at.lines('effects')).toHaveLength(1);
  });

  test('says it in JSON', async () => {
    const at = place();
    const before = Date.now();
    await at.semel('run', 'sync', '-q', held, effect);
    const { stderr } = await at.semel('run', 'sync', '--json', effect);
    const said = JSON.parse(stderr);
    expect(said).toMatchObject({ job: 'sync', status: 'skipped', exit: 0, reason: 'at-least' });
    const until = Date.parse(said.until);
    expect(until).toBeGreaterThan(before + 3_500_000);
    expect(until).toBeLessThan(Date.now() + 3_600_000);
    const busy = await at.semel('run', 'sync', '--json', '--if-busy', 'fail', effect);
    expect(JSON.parse(busy.stderr)).toMatchObject({ status: 'busy', exit: 75, reason: 'at-least' });
  });

  test('holds across slots and after a failure; each --id has its own time', async () => {
    const at = place();
    const slot = (minute: number) => ['--at', `2026-06-19T07:0${minute}:00Z`];
    const failing = ['--', 'sh', '-c', 'echo x >> effects; exit 3'];
    expect((await at.semel('run', 'sync', slot(1), held, failing)).code).toBe(3);
    for (const minute of [1, 2])
      expect((await at.semel('run', 'sync', slot(minute), effect)).stderr).toContain('--at-least 1h');
    expect(at.lines('effects')).toHaveLength(1);
    await at.semel('run', 'sync', slot(1), '--id', 'a=1', effect);
    await at.semel('run', 'other', slot(1), effect);
    expect(at.lines('effects')).toHaveLength(3);
  });

  test('runs again once the time is over, and --wait waits for it', async () => {
    const at = place();
    let runs = 0;
    // A busy machine may need longer than that to start the second one.
    for (let seconds = 2, hasWaited = false; !hasWaited; seconds *= 3) {
      await at.semel('run', 'sync', '-q', '--at-least', `${seconds}s`, effect);
      const { stderr } = await at.semel('run', 'sync', '-q', '--wait', '5m', effect);
      hasWaited = stderr.includes('waiting for');
      expect(hasWaited || seconds < 60).toBe(true);
      runs += 2;
      expect(at.lines('effects')).toHaveLength(runs);
    }
    // That run asked for no time, and one that took longer than its time has none left.
    await at.semel('run', 'sync', '-q', '--at-least', '1ms', effect);
    await at.semel('run', 'sync', '-q', effect);
    expect(at.lines('effects')).toHaveLength(runs + 2);
  });

  test('that was killed is free at once, and so is one that ran nothing', async () => {
    const at = place();
    const killed = at.start('run', 'sync', '-q', held, '--', 'sh', '-c', 'echo $$ >> pids; exec sleep 60');
    await eventually(() => at.lines('pids').length === 1);
    killed.child.kill('SIGKILL');
    process.kill(Number(at.lines('pids')[0]), 'SIGKILL');
    await killed.ended;
    await eventually(async () => {
      await at.semel('run', 'sync', '-q', effect);
      return at.lines('effects').length === 1;
    });
    expect((await at.semel('run', 'sync', held, '--', './not-there')).code).toBe(127);
    await at.semel('run', 'blog', daily, '-q', effect);
    // Done today: no lock is taken, and none is held.
    await at.semel('run', 'blog', daily, '-q', held, effect);
    for (const job of ['sync', 'blog']) await at.semel('run', job, '-q', effect);
    expect(at.lines('effects')).toHaveLength(4);
  });

  test('leaves nothing for a person to decide, while its lock is held and after', async () => {
    const at = place();
    await at.semel('run', 'sync', '-q', '--at-least', '1s', effect);
    expect((await at.semel('doubt', '--exit-code')).code).toBe(0);
    await at.semel('run', 'sync', '-q', '--wait', '1m', effect);
    await at.semel('run', 'sync', '-q', held, effect);
    expect((await at.semel('doubt', '--exit-code')).code).toBe(0);
    expect((await at.semel('doctor')).stdout).toContain('Nothing is wrong');
  });

  test('takes a duration of at most 24 days', async () => {
    const at = place();
    for (const wrong of ['soon', '25d'])
      expect((await at.semel('run', 'sync', '--at-least', wrong, effect)).code).toBe(64);
    expect(at.lines('effects')).toEqual([]);
  });
});
