// landsOnce finds the wrong tools, says what to change, and lets the right ones pass.
import { globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSemel, type Semel } from 'semel';
import { LandsOnceError, type LandsOnceTable } from 'semel/testing';
import { afterAll, describe, expect, test } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'semel-lands-once-'));
afterAll(() => rmSync(folder, { recursive: true }));

let ledgers = 0;
const stores = { memory: () => 'memory:', sqlite: () => `sqlite:${join(folder, `${++ledgers}.db`)}` };

interface Case {
  readonly test: (semel: Semel) => Promise<LandsOnceTable>;
  readonly row: string;
  readonly fix: string;
  readonly verdicts: Record<string, string>;
}

const casesIn = (kind: string) =>
  globSync(`${kind}/*.ts`, { cwd: import.meta.dirname })
    .sort()
    .map((file) => [file.slice(kind.length + 1, -'.ts'.length).replaceAll('-', ' '), file] as const);
const caseIn = async (file: string): Promise<Case> => import(join(import.meta.dirname, file));
const semelOn = (store: string) =>
  createSemel({ store, namespace: 'lands-once', onWarning: () => undefined });

test('six wrong tools and three right ones are kept', () => {
  expect(casesIn('wrong-tools').length).toBeGreaterThanOrEqual(6);
  expect(casesIn('right-tools').length).toBeGreaterThanOrEqual(3);
});

describe.each(Object.entries(stores))('on %s', (_store, storeOf) => {
  test.each(casesIn('wrong-tools'))('%s fails, with its row and its fix', async (_name, file) => {
    const wrong = await caseIn(file);
    await using semel = semelOn(storeOf());
    const error = await wrong.test(semel).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LandsOnceError);
    const { table, message } = error as LandsOnceError;
    const failed = table.rows.filter(({ status }) => status === 'failed');
    expect(failed.map(({ name }) => name)).toContain(wrong.row);
    expect(new Set(failed.map(({ fix }) => fix))).toEqual(new Set([wrong.fix]));
    expect(message).toContain(`Fix: ${wrong.fix}`);
    expect(message).toContain(`✗ ${wrong.row}`);
  });

  test.each(casesIn('right-tools'))('%s passes', async (_name, file) => {
    const right = await caseIn(file);
    await using semel = semelOn(storeOf());
    const table = await right.test(semel);
    const status = Object.fromEntries(table.rows.map((row) => [row.name, row.status]));
    expect(status).toMatchObject({
      'three in a row': 'once',
      '50 at once': 'once',
      'new instance, empty cache': 'once',
      're-worded content': 'once',
      'other args must run': 'once',
      ...right.verdicts,
    });
    expect(table.rows.every(({ effects }) => effects <= 1)).toBe(true);
    // What the faults left open is closed again.
    expect((await semel.doubts.list()).items).toEqual([]);
  });
});
