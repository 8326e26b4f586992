// What does not depend on the machine: how often a database is asked per call.

import { DatabaseSync, StatementSync } from 'node:sqlite';
import { type Args, type Bench, callers, fill, next, pause } from './calls.ts';
import type { Ratio } from './report.ts';

/** `count` tells how much was asked so far. */
export async function countPerCall(
  bench: Bench,
  what: string,
  count: () => Promise<number> | number,
): Promise<readonly Ratio[]> {
  const known = Array.from({ length: callers }, next);
  // Twice, and a moment for the note that the first replay of a key leaves off the path.
  for (let time = 0; time < 2; time += 1) await fill(callers, (n) => bench.send(known[n] as Args));
  await pause(1_500);
  const perCall = async (name: string, call: (n: number) => Promise<unknown>, width: number) => {
    const before = await count();
    await fill(callers, call, width);
    return { what: `${what} per ${name} (exact)`, value: ((await count()) - before) / callers };
  };
  const first = (n: number) => bench.send(next(), n);
  const again = (n: number) => bench.send(known[n] as Args);
  return [
    await perCall('first execution, one caller', first, 1),
    await perCall(`first execution, ${callers} callers`, first, callers),
    await perCall('replay, one caller', again, 1),
    await perCall(`replay, ${callers} callers`, again, callers),
  ];
}

/** Counts the statements of every SQLite handle of this process until it is disposed of. */
export function countStatements(): Disposable & { readonly count: () => number } {
  const original = { ...Object.getOwnPropertyDescriptors(StatementSync.prototype) };
  let statements = 0;
  for (const name of ['run', 'get', 'all', 'iterate'] as const) {
    const ask = StatementSync.prototype[name] as (...values: unknown[]) => unknown;
    Object.assign(StatementSync.prototype, {
      [name](this: StatementSync, ...values: unknown[]) {
        if (!/^\s*(BEGIN|COMMIT|PRAGMA)/i.test(this.sourceSQL)) statements += 1;
        return ask.apply(this, values);
      },
    });
  }
  return {
    count: () => statements,
    [Symbol.dispose]: () => Object.defineProperties(StatementSync.prototype, original),
  };
}

/** Times the transactions of handles that are opened before it is disposed of, from BEGIN to the end of COMMIT. */
export function timeTransactions(): Disposable & { readonly ms: number[] } {
  const { prepare } = DatabaseSync.prototype;
  const ms: number[] = [];
  let begunAt = 0;
  DatabaseSync.prototype.prepare = function (this: DatabaseSync, ...given: Parameters<typeof prepare>) {
    const statement = prepare.apply(this, given);
    const run = statement.run.bind(statement) as () => ReturnType<StatementSync['run']>;
    if (given[0].startsWith('BEGIN'))
      statement.run = () => {
        begunAt = performance.now();
        return run();
      };
    if (given[0].startsWith('COMMIT'))
      statement.run = () => {
        const changes = run();
        ms.push(performance.now() - begunAt);
        return changes;
      };
    return statement;
  };
  return { ms, [Symbol.dispose]: () => (DatabaseSync.prototype.prepare = prepare) };
}
