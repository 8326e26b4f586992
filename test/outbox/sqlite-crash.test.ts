// One SQLite file for the user's tables and the ledger, used by real processes that are really killed at each point.

import { afterAll, describe, expect, test } from 'vitest';
import { startNode } from '../processes/node-process.ts';
import { newPath } from '../stores/sqlite-folder.ts';
import { type Point, points } from './relay-worker.ts';
import { closeStoreHandles, libraries, rowsOf, shop, transaction } from './sqlite-place.ts';
import { callPoints, effectsIn, mailSemel, type SqliteJob } from './sqlite-worker.ts';

afterAll(closeStoreHandles);

async function killedAt(job: SqliteJob): Promise<void> {
  const victim = startNode(new URL('sqlite-worker.ts', import.meta.url), job);
  expect(await victim.ended, victim.errors()).toMatchObject({ signal: 'SIGKILL' });
}

describe.each(libraries)('$name', (library) => {
  test.each(callPoints)(
    'a process that dies %s leaves data, effect and record, or none of them',
    async (dieAt) => {
      const path = newPath();
      const job = { path, library: library.name, target: `${path}.sent`, what: 'call', dieAt } as const;
      await killedAt(job);
      await using at = await shop(library, path);
      const isCommitted = dieAt === 'after commit';
      expect(at.cents('data')).toEqual(isCommitted ? [1] : []);
      expect(at.cents('a')).toEqual(isCommitted ? [1] : []);
      expect(at.records()).toBe(isCommitted ? 1 : 0);
      const result = await transaction(at.database, (tx) =>
        at.define().inTransaction.try(tx, { id: 'a', cents: 1 }),
      );
      expect(result.receipt.executed).toBe(!isCommitted);
      expect(at.cents('a')).toEqual([1]);
    },
  );

  test.each(['before commit', 'after commit'] as const)(
    'a process that dies %s of a staging leaves data and intent, or neither',
    async (dieAt) => {
      const path = newPath();
      const target = `${path}.sent`;
      await killedAt({ path, library: library.name, target, what: 'stage', dieAt });
      await using at = await shop(library, path);
      const isCommitted = dieAt === 'after commit';
      expect(at.cents('data')).toEqual(isCommitted ? [1] : []);
      const { semel } = mailSemel(library.store(path), target);
      expect(await semel.outbox.drain()).toMatchObject({ delivered: isCommitted ? 1 : 0 });
      expect(effectsIn(target)).toEqual(isCommitted ? ['a'] : []);
      await semel.close();
    },
  );
});

/** What a tool without `verify` is left with: the effect, and whether a person has to decide. */
const expected: Record<Point, { readonly effects: number; readonly inDoubt: boolean }> = {
  'after take': { effects: 1, inDoubt: false },
  'before mark': { effects: 0, inDoubt: true },
  'after mark': { effects: 0, inDoubt: true },
  'after effect': { effects: 1, inDoubt: true },
  'before settle': { effects: 1, inDoubt: true },
  'after settle': { effects: 1, inDoubt: false },
  'before removal': { effects: 1, inDoubt: false },
  'after removal': { effects: 1, inDoubt: false },
};

test.each(points)('a relay that dies %s leaves one effect, or a doubt that is shown', async (dieAt) => {
  const [library] = libraries as [(typeof libraries)[0]];
  for (const name of ['plain', 'verified'] as const) {
    const path = newPath();
    const target = `${path}.sent`;
    const { semel, [name]: tool } = mailSemel(library.store(path), target);
    await semel.open();
    const database = library.open(path);
    await transaction(database, (tx) => tool.stage(tx, { id: 'a' }));
    await killedAt({ path, library: library.name, target, what: 'relay', dieAt });
    const states = () => rowsOf(database, 'SELECT state FROM outbox').map(({ state }) => state);
    // The dead relay's hold on the row runs out.
    const isOver = async () => {
      database.exec('UPDATE outbox SET due = 0');
      await semel.outbox.drain();
      return states().length === 0 || (name === 'plain' && states()[0] === 1);
    };
    while (!(await isOver())) await new Promise((resolve) => setTimeout(resolve, 100));
    const { effects, inDoubt } = name === 'plain' ? expected[dieAt] : { effects: 1, inDoubt: false };
    expect(effectsIn(target)).toHaveLength(effects);
    expect(states().length > 0).toBe(inDoubt);
    expect((await semel.doubts.list()).items).toHaveLength(inDoubt ? 1 : 0);
    await semel.close();
    database.close();
  }
});

test.runIf(process.platform === 'linux')(
  'the call of a relay that was killed is not busy until the end of its lease',
  async () => {
    const [library] = libraries as [(typeof libraries)[0]];
    const path = newPath();
    const target = `${path}.sent`;
    const { semel, plain } = mailSemel(library.store(path), target, '6h');
    await semel.open();
    const database = library.open(path);
    await transaction(database, (tx) => plain.stage(tx, { id: 'a' }));
    const dieAt = 'after effect';
    await killedAt({ path, library: library.name, target, what: 'relay', dieAt, lease: '6h' });
    database.exec('UPDATE outbox SET due = 0');
    expect(await semel.outbox.drain()).toMatchObject({ inDoubt: 1 });
    expect(effectsIn(target)).toHaveLength(1);
    await semel.close();
    database.close();
  },
);
