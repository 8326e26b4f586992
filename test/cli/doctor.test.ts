// `semel doctor` as a user runs it, on ledgers that were really used in the wrong way, or in the right one.

import { chmodSync, chownSync, linkSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createSemel, landed, type Semel, type SemelOptions, unsure } from 'semel';
import { describe, expect, test } from 'vitest';
import { movableClock } from '../processes/movable-clock.ts';
import { place } from './place.ts';

function ledger() {
  const at = place({ SEMEL_STORE: '' });
  return {
    ...at,
    db: at.path('ledger.db'),
    open: (options: SemelOptions = {}): Semel =>
      createSemel({ store: at.store, namespace: 'shop', onWarning: () => undefined, ...options }),
    // Where the tests run may be a container's own file system, which forgets.
    doctor: (...args: string[]) =>
      at.semel(
        ['doctor', '--store', at.store],
        args.includes('--only') ? [] : ['--ignore', 'DURABILITY'],
        args,
      ),
  };
}

const mail = { name: 'mail.send', effect: 'write-non-idempotent', per: 'ever' } as const;

async function usedWell(semel: Semel): Promise<void> {
  const tool = semel.tool({ ...mail, identity: ['to'], run: (_: { to: string; body: string }) => 'sent' });
  for (const to of ['ann', 'bob']) for (const body of ['hello', 'hello']) await tool({ to, body });
  await semel.close();
}

function change(file: string, sql: string): void {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
}

describe('a ledger that is used well', () => {
  test('has no finding: the summary says what was looked at, and the exit code is 0', async () => {
    const at = ledger();
    await usedWell(at.open());
    const { code, stdout, stderr } = await at.doctor();
    expect(stdout).toMatch(
      /^Looked at 2 records of shop in \S+ledger\.db, back to \S+Z \(30d\), with 19 of 20 checks\.\nNothing is wrong\.\n$/,
    );
    expect(stderr).toBe('');
    expect(code).toBe(0);
    const { stdout: json } = await at.doctor('--json', '--since', '1d');
    expect(JSON.parse(json)).toMatchObject({ namespaces: ['shop'], records: 2, findings: [], leftOut: [] });
  });
});

describe('a ledger that was used in the wrong way', () => {
  test('prints each finding with its contract and what to do, and exits with 1; --only and --ignore select', async () => {
    const at = ledger();
    await misuse(at);
    const { code, stdout } = await at.doctor('--json');
    const { findings } = JSON.parse(stdout) as {
      findings: { id: string; contract?: string; next: string }[];
    };
    expect(findings.map(({ id, contract }) => `${id} ${contract ?? ''}`.trim()).sort()).toEqual([
      'DOUBT_BACKLOG',
      'KEY_NEVER_HITS note.write',
      'LEASE_TOO_SHORT report.build',
      'NAMESPACE_SPLIT',
      'ON_DOUBT_RERUN mail.again',
      'WINDOW_TOO_LONG card.charge',
      'WORK_EATEN mail.send',
    ]);
    expect(code).toBe(1);

    const chosen = await at.doctor('--only', 'work_eaten,LEASE_TOO_SHORT');
    expect(chosen.stdout).toMatch(
      /^WORK_EATEN {2}shop {2}mail\.send\n {2}1 key answered 3 calls whose `body` differed/m,
    );
    expect(chosen.stdout).toMatch(/^ {2}Do: If these were different work/m);
    expect(chosen.stdout).toMatch(/^2 findings\. semel explain <id> says more\.$/m);
    expect(chosen.code).toBe(1);

    const elsewhere = await at.doctor('--namespace', 'default', '--ignore', 'NAMESPACE_SPLIT');
    expect(elsewhere.stdout).toMatch(
      /^Looked at 1 record of default in .*with 18 of 20 checks\.\nNothing is wrong\.$/m,
    );
    expect(elsewhere.code).toBe(0);
  });

  async function misuse(at: { open(options?: SemelOptions): Semel }): Promise<void> {
    const semel = at.open();
    // The same work under the key of another conversation each time.
    const note = semel.tool({
      ...mail,
      name: 'note.write',
      per: 'conversation',
      run: (_: { text: string }) => 1,
    });
    for (const nth of [1, 2, 3]) await note({ text: 'hello' }, { conversation: `c${nth}` });
    // Other work under one key.
    const send = semel.tool({ ...mail, identity: ['to'], run: (_: { to: string; body: string }) => 1 });
    for (const nth of [1, 2, 3, 4]) await send({ to: 'ann', body: `${nth}` });
    // Remembered for longer than the provider's key counts, and once in doubt.
    let charged = 0;
    let asked = 0;
    const charge = semel.tool({
      ...mail,
      name: 'card.charge',
      window: '7d',
      provider: { name: 'payments', window: '24h' },
      // Not there yet when it is asked at once.
      verify: () => (asked++ === 0 ? unsure() : landed(1)),
      run: () => {
        charged += 1;
        if (charged === 1) throw new Error('reset');
        return 1;
      },
    });
    for (const _ of [1, 2]) await charge.try({});
    // Open questions that nobody answers.
    const broken = semel.tool({
      ...mail,
      name: 'post',
      run: (_: { nth: number }) => {
        throw new Error('reset');
      },
    });
    for (let nth = 0; nth < 20; nth += 1) await broken.try({ nth });
    await lapseWhileAlive(semel, at.open({ clock: movableClock(61_000) }));
    await semel.close();

    const careless = at.open({ onDoubt: 'rerun' });
    for (const name of ['mail.again', 'run.nightly']) {
      let ran = 0;
      const tool = careless.tool({
        ...mail,
        name,
        run: () => {
          ran += 1;
          if (ran === 1) throw new Error('reset');
        },
      });
      for (const _ of [1, 2]) await tool.try({});
    }
    await careless.close();

    const unnamed = at.open({ namespace: 'default' });
    await unnamed.tool({ ...mail, run: (_: { to: string }) => 1 })({ to: 'ann' });
    await unnamed.close();
  }

  /** Somebody whose clock is a lease ahead takes the place of an attempt that goes on, and then reports. */
  async function lapseWhileAlive(holder: Semel, taker: Semel): Promise<void> {
    const report = { ...mail, name: 'report.build' };
    const gate = Promise.withResolvers<string>();
    const started = Promise.withResolvers<void>();
    const slow = holder.tool({
      ...report,
      verify: () => unsure(),
      run: () => {
        started.resolve();
        return gate.promise;
      },
    });
    const building = slow.try({});
    await started.promise;
    const hasty = taker.tool({ ...report, verify: () => unsure(), run: () => 'never' });
    expect(await hasty.try({})).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    await taker.close();
    gate.resolve('built');
    await building;
  }
});

describe('what is wrong with the ledger itself', () => {
  test('a clock that does not agree with the uptime is a finding', async () => {
    const at = ledger();
    await usedWell(at.open());
    change(at.db, 'UPDATE meta SET anchor_wall = anchor_wall - 86400000');
    const { code, stdout } = await at.doctor();
    expect(stdout).toMatch(/^CLOCK\n {2}The clock is 24 hours ahead/m);
    expect(code).toBe(1);
  });

  test('a ledger that another program has taken out of WAL mode is a finding, and is set right', async () => {
    const at = ledger();
    await usedWell(at.open());
    change(at.db, 'PRAGMA journal_mode = DELETE');
    const { code, stdout } = await at.doctor('--only', 'DURABILITY');
    expect(stdout).toMatch(/was not in WAL mode/);
    expect(code).toBe(1);
    expect((await at.doctor('--only', 'DURABILITY')).stdout).not.toMatch(/WAL/);
  });

  test.skipIf(process.platform === 'win32')('a folder that everybody can write is a finding', async () => {
    const at = ledger();
    await usedWell(at.open());
    chmodSync(at.folder, 0o777);
    const { code, stdout } = await at.doctor();
    expect(stdout).toMatch(/^LEDGER_REFUSED\n {2}Every user of this machine can write the folder/m);
    expect(code).toBe(1);
  });

  test.runIf(process.geteuid?.() === 0)('a folder that a group can write is a finding', async () => {
    const at = ledger();
    await usedWell(at.open());
    chownSync(at.folder, 0, 4_242_424);
    chmodSync(at.folder, 0o770);
    const { code, stdout } = await at.doctor();
    expect(stdout).toMatch(/^PERMISSIONS\n {2}Every member of its group can write the folder/m);
    expect(code).toBe(1);
  });

  test('a ledger of a later semel is a finding, though nothing else can be looked at', async () => {
    const at = ledger();
    await usedWell(at.open());
    change(at.db, 'PRAGMA user_version = 99');
    const { code, stdout } = await at.doctor();
    expect(stdout).toMatch(
      /^VERSION\n {2}The ledger .* has schema 99; .* Nothing else could be looked at\.\n {2}Do: Nothing was changed\. Upgrade/m,
    );
    expect(code).toBe(1);
  });

  test('a ledger that is refused is a finding, with the reason', async () => {
    const at = ledger();
    await usedWell(at.open());
    linkSync(at.db, join(at.folder, 'other.db'));
    const { code, stdout } = await at.doctor('--json');
    expect(JSON.parse(stdout)).toMatchObject({
      findings: [{ id: 'LEDGER_REFUSED', found: expect.stringMatching(/2 names/) }],
    });
    expect(code).toBe(1);
  });

  test("reports the user's default ledger if it and the named one know the same work", async () => {
    const at = ledger();
    await usedWell(at.open());
    const state = { XDG_STATE_HOME: join(at.folder, 'state') };
    const own = createSemel({
      store: `sqlite:${state.XDG_STATE_HOME}/semel/ledger.db`,
      namespace: 'shop',
      onWarning: () => undefined,
    });
    await usedWell(own);
    const { code, stdout } = await at.doctor();
    expect(stdout).toMatch(/^TWO_LEDGERS {2}shop\n {2}mail\.send has records here/m);
    expect(code).toBe(1);
    const onTheOther = await at.semel(['doctor', '--ignore', 'DURABILITY']);
    expect(onTheOther.stdout).toMatch(/Nothing is wrong/);
  });
});

describe('what cannot be asked', () => {
  test('refuses a missing ledger, an unknown finding and an unexpected argument', async () => {
    const at = ledger();
    expect(await at.doctor()).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('there is no ledger'),
    });
    expect(await at.doctor('--only', 'WORK_EATN')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining('Did you mean WORK_EATEN?'),
    });
    expect(await at.doctor('shop')).toMatchObject({ code: 64 });
    expect(await at.doctor('--since', 'yesterday')).toMatchObject({ code: 64 });
  });
});
