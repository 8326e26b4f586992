// The table that landsOnce returns, and the error that carries it: plain text, for any test runner's output.

import { groupBy } from '../../core/older-node.ts';
export interface LandsOnceRow {
  readonly name: string;
  /** `once` and `in doubt` are passes: in doubt means that nothing was repeated and that it is reported. */
  readonly status: 'once' | 'in doubt' | 'failed' | 'not tried';
  readonly calls: number;
  readonly effects: number;
  /** What came of it, in a few words. */
  readonly verdict: string;
  /** What to change, where it failed. */
  readonly fix: string | undefined;
}

export interface LandsOnceTable {
  readonly tool: string;
  readonly rows: readonly LandsOnceRow[];
  toString(): string;
}

const signs = { once: '✓', 'in doubt': '?', failed: '✗', 'not tried': '–' } as const;

export function tableOf(tool: string, rows: readonly LandsOnceRow[]): LandsOnceTable {
  return { tool, rows, toString: () => formatTable(tool, rows) };
}

function formatTable(tool: string, rows: readonly LandsOnceRow[]): string {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const lines = rows.map(({ name, status, calls, effects, verdict }) => {
    const figures = status === 'not tried' ? ['', ''] : [String(calls), String(effects)];
    return line(signs[status], name, figures[0] ?? '', figures[1] ?? '', verdict);
  });
  return [
    `landsOnce: ${tool}`,
    line(' ', 'row', 'calls', 'effects', 'verdict'),
    ...lines,
    ...fixes(rows),
  ].join('\n');

  function line(sign: string, name: string, calls: string, effects: string, verdict: string): string {
    return `${sign} ${name.padEnd(width)}  ${calls.padStart(5)}  ${effects.padStart(7)}  ${verdict}`.trimEnd();
  }
}

/** A cause that shows in several rows is reported once. */
function fixes(rows: readonly LandsOnceRow[]): string[] {
  const byFix = groupBy(
    rows.filter(({ status }) => status === 'failed'),
    ({ fix }) => fix,
  );
  return [...byFix].flatMap(([fix, failed]) => [
    '',
    ...failed.map(({ name, verdict }) => `✗ ${name}: ${verdict}.`),
    `  Fix: ${fix}`,
  ]);
}

/** Some row failed. The message is the table, with what to change. */
export class LandsOnceError extends Error {
  override readonly name = 'LandsOnceError';
  readonly table: LandsOnceTable;

  constructor(table: LandsOnceTable) {
    super(`\n${String(table)}\n`);
    this.table = table;
  }
}
