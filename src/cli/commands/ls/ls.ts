// `semel ls`: lists records, newest first, once or continuously.

import { shellWord } from '../../../core/visible.ts';
import type { RecordInfo } from '../../../semel/index.ts';
import { flagReader } from '../../args/flag-values.ts';
import { joinNames, type Namespaces, namespacesFor } from '../../args/namespaces.ts';
import { everyRecord } from '../../args/records.ts';
import { command } from '../../command.ts';
import { text, toggle } from '../../flags.ts';
import { deadHolders } from '../../render/dead-holders.ts';
import { warnIfEmpty } from '../../render/elsewhere.ts';
import { print, printable, printJson, printJsonLine, printRows, relative } from '../../render/print.ts';
import { argsText, nameOf, sinceOf, stateCell } from '../../render/state.ts';
import { type Cell, type Column, table } from '../../render/table.ts';
import { cut, terminalWidth } from '../../render/wrap.ts';
import { usageError } from '../../usage.ts';
import { type Filter, filterOf, statusWords } from './filter.ts';
import { newest } from './newest.ts';
import { changes, frame, watch } from './watch.ts';

const mostRecords = 10_000;

export default command({
  name: 'ls',
  takes: '[options]',
  about: `Lists records of all namespaces unless you choose one, newest first. A record's age counts from its last change of state:
dispatched, settled or released. All filters must match; --status is repeatable and means any of them:
  running    an attempt holds the claim
  in-doubt   it may have landed
  lapsed     the lease is over: in doubt, or abandoned
  abandoned  its process crashed before it dispatched anything, and the call was not repeated
  succeeded, failed, released, unknown: how the last attempt ended`,
  flags: {
    tool: text('<name>', 'only this contract, or this job'),
    status: {
      type: 'string',
      multiple: true,
      choices: statusWords,
      help: 'only records in this state',
    },
    conversation: text('<id>', 'only calls of this conversation'),
    run: text('<id>', 'only calls of this run'),
    key: text('<prefix>', 'only keys with this prefix: mail.send/2026-06-19'),
    newer: text('<duration>', 'only records younger than this: 2h'),
    older: text('<duration>', 'only records older than this: 10m'),
    since: text('<instant>', 'only from this time on: 2026-06-19T09:00 (UTC)'),
    until: text('<instant>', 'only up to this time'),
    args: text('<text>', 'only records with this text in their args'),
    find: text(
      '<text>',
      'only records with this text in their key, id, tool call, remote reference, args or result; case matters',
    ),
    limit: text('<count>', 'maximum number of results (default: 50)', 'n'),
    watch: toggle('refresh every second; with --json print a line for each record that changed'),
  },
  examples: [
    'semel ls',
    'semel ls --status in-doubt --status failed --newer 1d',
    'semel ls --tool refund --args p-17',
    'semel ls --watch',
    'semel ls --json --watch --status in-doubt',
  ],
  async run({ values, positionals }) {
    if (positionals.length > 0)
      throw usageError(
        'ls',
        'takes options only',
        `Write: semel ls --tool ${shellWord(positionals[0] ?? '')}`,
      );
    const filter = filterOf(values);
    const limit = flagReader('ls', values).whole('limit', 50, { from: 1, to: mostRecords });
    await using ledger = namespacesFor(values);
    if (values.watch) {
      if (values.json) await followJson(ledger, filter, limit);
      else if (process.stdout.isTTY) await redraw(ledger, filter, limit);
      else await followLines(ledger, filter, limit);
      return 0;
    }
    if (values.json) {
      const { items } = await look(ledger, filter, limit, (record) => record);
      printJson(items);
      if (items.length === 0) await warnIfEmpty(ledger);
      return 0;
    }
    const { head, rowOf } = await columnsFor(ledger);
    const { items, count } = await look(ledger, filter, limit, rowOf);
    if (count > 0) printRows(...table(head, items));
    print(...(await footer(ledger, items.length, count)));
    return 0;
  },
});

async function look<Item>(
  ledger: Namespaces,
  filter: Filter,
  limit: number,
  shown: (record: RecordInfo) => Item,
  signal?: AbortSignal,
): Promise<{ readonly items: readonly Item[]; readonly count: number }> {
  const found = newest<Item>(limit);
  for await (const semel of ledger.each()) {
    for (const query of filter.queries) {
      for await (const record of everyRecord(semel, query)) {
        if (signal?.aborted) break;
        if (filter.matches(record)) found.add(sinceOf(record).getTime(), () => shown(record));
      }
    }
  }
  return { items: found.items(), count: found.count() };
}

type Row = readonly (string | Cell)[];

interface Columns {
  readonly head: readonly (string | Column)[];
  rowOf(record: RecordInfo): Row;
}

/** With a namespace column if there are several. */
async function columnsFor(ledger: Namespaces): Promise<Columns> {
  const isOne = (await ledger.names()).length === 1;
  const isDead = await deadHolders(ledger);
  return {
    head: [
      'id',
      ...(isOne ? [] : [{ name: 'namespace', min: 9, leaveOut: 4 }]),
      // Of `server.tool`, the tool.
      { name: 'contract', min: 22, keep: 'end' },
      'status',
      { name: 'attempts', leaveOut: 1 },
      { name: 'age', leaveOut: 3 },
      { name: 'args', min: 16, leaveOut: 2 },
    ],
    rowOf: (record) => [record.id, ...(isOne ? [] : [record.namespace]), ...cellsOf(record, isDead(record))],
  };
}

function cellsOf(record: RecordInfo, isDead: boolean): Row {
  return [
    nameOf(record),
    stateCell(record, isDead),
    String(record.attempts),
    relative(sinceOf(record)),
    record.args === undefined ? '' : argsText(record, 120),
  ];
}

async function footer(ledger: Namespaces, shown: number, count: number): Promise<readonly string[]> {
  if (count === 0) {
    if (await warnIfEmpty(ledger)) return [];
    const where = printable(joinNames(await ledger.names()));
    return [`No record of ${where} matches. Without filters: semel ls`];
  }
  const options = await ledger.optionsFor();
  const rest =
    count > shown ? `The newest ${shown} of ${count}; -n ${Math.min(count, mostRecords)} lists more. ` : '';
  return ['', `${rest}Details: semel show <id> ${options}`.trimEnd()];
}

async function redraw(ledger: Namespaces, filter: Filter, limit: number): Promise<void> {
  process.stdout.write('\u001b[2J');
  await watch(async (signal) => {
    const { head, rowOf } = await columnsFor(ledger);
    const { items, count } = await look(ledger, filter, limit, rowOf, signal);
    if (signal.aborted) return;
    const names = printable(joinNames(await ledger.names()));
    const title = `${new Date().toISOString()}  ${count} records  (Ctrl-C to stop)  ${names}`;
    const lines = [cut(title, terminalWidth() ?? title.length), '', ...table(head, items)];
    process.stdout.write(frame(lines, process.stdout.rows || 24));
  });
}

/** More than are listed, so that a record that comes back is not reported as changed. */
const maxRemembered = (limit: number) => 10 * limit + 1000;

async function followJson(ledger: Namespaces, filter: Filter, limit: number): Promise<void> {
  const changed = changes<RecordInfo>(({ id }) => id, fingerprint, maxRemembered(limit));
  await watch(async (signal) => {
    const { items } = await look(ledger, filter, limit, (record) => record, signal);
    // Oldest first, as they came.
    if (!signal.aborted) for (const record of changed(items).toReversed()) printJsonLine(record);
  });
}

async function followLines(ledger: Namespaces, filter: Filter, limit: number): Promise<void> {
  interface Line {
    readonly id: string;
    readonly face: string;
    readonly row: Row;
  }
  // Fixed now, so that a new namespace does not shift the columns.
  const { head, rowOf } = await columnsFor(ledger);
  const changed = changes<Line>(
    ({ id }) => id,
    ({ face }) => face,
    maxRemembered(limit),
  );
  const lineOf = (record: RecordInfo) => ({ id: record.id, face: fingerprint(record), row: rowOf(record) });
  await watch(async (signal) => {
    const { items } = await look(ledger, filter, limit, lineOf, signal);
    const rows = signal.aborted ? [] : changed(items).map(({ row }) => row);
    if (rows.length > 0) printRows(...table(head, rows.toReversed()).slice(1));
  });
}

/** Whatever changes here makes a line worth printing. A renewed lease does not. */
function fingerprint(record: RecordInfo): string {
  const { ref, status, inDoubt, lapsed, expired, attempts, lastDispatchedAt, settledAt, remoteRef } = record;
  return JSON.stringify([
    ref,
    status,
    inDoubt,
    lapsed,
    expired,
    attempts,
    lastDispatchedAt,
    settledAt,
    remoteRef,
  ]);
}
