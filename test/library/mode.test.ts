// What `mode` and SEMEL_MODE switch, and where they must not.

import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createSemel, type InstanceMode, type Semel, type SemelOptions } from 'semel';
import { memoryStore } from 'semel/memory';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { place } from '../cli/place.ts';

afterEach(() => vi.unstubAllEnvs());

function made(options: SemelOptions): { semel: Semel; warnings: string[] } {
  const warnings: string[] = [];
  const semel = createSemel({
    store: memoryStore(),
    namespace: 'modes',
    onWarning: (message) => warnings.push(message),
    ...options,
  });
  onTestFinished(() => semel.close());
  return { semel, warnings };
}

/** A tool that sends a mail, and throws what it is told to. */
function mailer(semel: Semel, thrown: () => unknown) {
  let runs = 0;
  const mail = semel.tool({
    name: 'mail',
    effect: 'irreversible',
    per: 'ever',
    run: async (_: { to: string }) => {
      runs += 1;
      const error = await thrown();
      if (error !== undefined) throw error;
      return runs;
    },
  });
  return { mail, runs: () => runs };
}

describe('dev', () => {
  test.each([
    ['a TypeError', () => new TypeError('x.map is not a function')],
    ['a ReferenceError', () => new ReferenceError('y is not defined')],
  ])('%s of your own code leaves no doubt', async (_, thrown) => {
    const { semel } = made({ mode: 'dev' });
    const errors = [thrown(), undefined];
    const { mail, runs } = mailer(semel, () => errors.shift());
    await expect(mail({ to: 'a' })).rejects.not.toMatchObject({ code: 'IN_DOUBT' });
    expect(await mail({ to: 'a' })).toBe(2);
    expect(runs()).toBe(2);
  });

  test('without it, the same TypeError is in doubt', async () => {
    const { semel } = made({});
    const { mail } = mailer(semel, () => new TypeError('x.map is not a function'));
    await expect(mail({ to: 'a' })).rejects.toMatchObject({ code: 'IN_DOUBT' });
  });

  test('a request that may have arrived is in doubt, although fetch throws a TypeError', async () => {
    const server = createServer((socket) => socket.once('data', () => socket.destroy())).listen(
      0,
      '127.0.0.1',
    );
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    const { semel } = made({ mode: 'dev' });
    const failed = await fetch(`http://127.0.0.1:${port}`, { method: 'POST' }).catch((error) => error);
    expect(failed).toBeInstanceOf(TypeError);
    const { mail } = mailer(semel, () => failed);
    await expect(mail({ to: 'a' })).rejects.toMatchObject({ code: 'IN_DOUBT' });
  });

  test('waits are short, unless the contract says how long', () => {
    const { semel } = made({ mode: 'dev' });
    const { contract } = mailer(semel, () => undefined).mail;
    expect(contract).toMatchObject({ mode: 'enforce', leaseMs: 5_000, networkMs: 1_000 });
    const terms = { effect: 'irreversible', per: 'ever', lease: '30s', verifyAfter: '40s' } as const;
    const own = semel.tool({ name: 'own', ...terms, run: () => 1 });
    expect(own.contract).toMatchObject({ leaseMs: 30_000, networkMs: 40_000 });
  });
});

describe('off', () => {
  test('tools run as plain functions, and nothing is recorded', async () => {
    const at = place();
    const { semel } = made({ mode: 'off', store: `sqlite:${at.path('ledger.db')}` });
    const { mail } = mailer(semel, () => undefined);
    expect([await mail({ to: 'a' }), await mail({ to: 'a' })]).toEqual([1, 2]);
    let sent = 0;
    const once = () => semel.once('job', { day: 1 }, () => (sent += 1));
    expect([await once(), await once()]).toEqual([1, 2]);
    expect((await mail.try({ to: 'a' })).receipt).toMatchObject({ executed: true, unguarded: true });
    expect(existsSync(at.path('ledger.db'))).toBe(false);
  });

  test('an error is the one that was thrown', async () => {
    const { semel } = made({ mode: 'off' });
    const thrown = new Error('refused');
    await expect(mailer(semel, () => thrown).mail({ to: 'a' })).rejects.toBe(thrown);
  });

  test('a call that could have no key runs too, and so does one in two halves', async () => {
    const { semel } = made({ mode: 'off' });
    const perTurn = semel.tool({ name: 'note', effect: 'irreversible', per: 'turn', run: () => 'done' });
    expect(await perTurn({})).toBe('done');
    const begun = await semel.begin(perTurn, {});
    expect(begun.execute && (await begun.attempt.succeed('half'))).toMatchObject({ ok: true, value: 'half' });
  });

  test('the command guards whatever SEMEL_MODE says', async () => {
    const at = place().with({ env: { SEMEL_MODE: 'off' } });
    const sent = join(place().folder, 'sent');
    const send = () => at.semel('once', 'mail', '--id', 'a=1', '--', 'sh', '-c', `echo sent >> ${sent}`);
    expect([(await send()).code, (await send()).code]).toEqual([0, 0]);
    expect(readFileSync(sent, 'utf8')).toBe('sent\n');
  });
});

describe('SEMEL_MODE', () => {
  test('is the mode where none is given, and not where one is', async () => {
    vi.stubEnv('SEMEL_MODE', 'observe');
    expect(mailer(made({}).semel, () => undefined).mail.contract.mode).toBe('observe');
    expect(mailer(made({ mode: 'enforce' }).semel, () => undefined).mail.contract.mode).toBe('enforce');
  });

  test.each(['dev', 'off'])('%s is announced in one line, at the start', (mode) => {
    vi.stubEnv('SEMEL_MODE', mode);
    const { warnings } = made({});
    expect(warnings).toEqual([expect.stringMatching(/^(Development mode|Mode "off"): .*effect\.$/)]);
  });

  test('another word is refused, with those that exist', () => {
    vi.stubEnv('SEMEL_MODE', 'test');
    expect(() => made({})).toThrow('`SEMEL_MODE` is "test". Use one of enforce, observe, dev, off.');
  });
});

test.each([
  ['dev', true],
  ['off', true],
  ['observe', false],
  ['enforce', false],
] as [InstanceMode, boolean][])('in production, %s is refused: %s', (mode, isRefused) => {
  vi.stubEnv('NODE_ENV', 'production');
  const refused = expect.objectContaining({
    code: 'CONTRACT_INVALID',
    message: expect.stringMatching(/production/),
  });
  const start = () => made({ mode });
  if (isRefused) expect(start).toThrow(refused);
  else expect(start).not.toThrow();
  vi.stubEnv('SEMEL_MODE', mode);
  if (isRefused) expect(() => made({})).toThrow(refused);
  else expect(() => made({})).not.toThrow();
});
