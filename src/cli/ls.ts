// `semel ls`: the records of a namespace, newest first, once or again and again.

import { commandOptions, type RecordInfo, type Semel } from '../semel/index.ts';
import { command } from './command.ts';
import { warnOfEmptyNamespace } from './elsewhere.ts';
import { everyRecord } from './every.ts';
import { flagReader } from './flag-values.ts';
import { ledgerFor } from './ledger.ts';
import { type Filter, filterOf, statusWords } from './ls/filter.ts';
import { newest } from './ls/newest.ts';
import { changes, frame, watch } from './ls/watch.ts';
import { type Cell, oneLine, print, printable, printJson, printJsonLine, relative, table } from './print.ts';
import { nameOf, sinceOf, stateCell } from './state.ts';
import { usageError } from './usage.ts';

const mostRecords = 10_000;

export default command({
  name: 'ls',
  takes: '[options]',
  about: `Lists the records of a namespace, newest first. Age is counted from when a record became what it is: dispatched,
settled, given back. Filters add up; --status can be given several times and means any of them:
  running    an attempt holds the claim     succeeded, failed, released, unknown    how the last attempt ended
  in-doubt   it may have landed             lapsed     the lease is over: in doubt, or abandoned
  abandoned  its process died before it dispatched anything, and nobody came back`,
  flags: {
    tool: { type: 'string', value: '<name>', help: 'only this contract, or this job' },
    status: {
      type: 'string',
      multiple: true,
      choices: statusWords,
      help: 'only what is so',
    },
    conversation: { type: 'string', value: '<id>', help: 'only what this conversation asked for' },
    run: { type: 'string', value: '<id>', help: 'only what this run asked for' },
    key: { type: 'string', value: '<prefix>', help: 'only keys that start so: mail.send/2026-06-19' },
    newer: { type: 'string', value: '<duration>', help: 'only what is younger: 2h' },
    older: { type: 'string', value: '<duration>', help: 'only what is older: 10m' },
    since: { type: 'string', value: '<instant>', help: 'only from then on: 2026-06-19T09:00 (UTC)' },
    until: { type: 'string', value: '<instant>', help: 'only until then' },
    args: { type: 'string', value: '<text>', help: 'only with this text in the args' },
    limit: { type: 'string', short: 'n', value: '<count>', help: 'so many at most (default: 50)' },
    watch: {
      type: 'boolean',
      help: 'look again every second; with --json a line for each record that changed',
    },
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
      throw usageError('ls', 'it takes options only', `Write: semel ls --tool ${positionals[0]}`);
    const filter = filterOf(values);
    const limit = flagReader('ls', values).whole('limit', 50, { from: 1, to: mostRecords });
    await using semel = ledgerFor(values);
    if (values.watch) {
      if (values.json) await followJson(semel, filter, limit);
      else if (process.stdout.isTTY) await redraw(semel, filter, limit);
      else await followLines(semel, filter, limit);
      return 0;
    }
    if (values.json) {
      const { items } = await look(semel, filter, limit, (record) => record);
      printJson(items);
      if (items.length === 0) await warnOfEmptyNamespace(semel);
      return 0;
    }
    const { items, count } = await look(semel, filter, limit, rowOf);
    if (count > 0) print(...table(head, items));
    print(...(await footer(semel, items.length, count)));
    return 0;
  },
});

async function look<Item>(
  semel: Semel,
  filter: Filter,
  limit: number,
  shown: (record: RecordInfo) => Item,
  signal?: AbortSignal,
): Promise<{ readonly items: readonly Item[]; readonly count: number }> {
  const found = newest<Item>(limit);
  for (const query of filter.queries) {
    for await (const record of everyRecord(semel, query)) {
      if (signal?.aborted) break;
      if (filter.matches(record)) found.add(sinceOf(record).getTime(), () => shown(record));
    }
  }
  return { items: found.items(), count: found.count() };
}

const head = ['id', 'contract', 'status', 'attempts', 'age', 'args'];

type Row = readonly (string | Cell)[];

function rowOf(record: RecordInfo): Row {
  return [
    record.id,
    nameOf(record),
    stateCell(record),
    String(record.attempts),
    relative(sinceOf(record)),
    record.args === undefined ? '' : oneLine(record.args, 120),
  ];
}

async function footer(semel: Semel, shown: number, count: number): Promise<readonly string[]> {
  if (count === 0) {
    const isEmpty = await warnOfEmptyNamespace(semel);
    return isEmpty ? [] : [`No record of ${printable(semel.namespace)} is so. Without filters: semel ls`];
  }
  const options = commandOptions(semel.namespace, await semel.open()) ?? '';
  const rest =
    count > shown ? `The newest ${shown} of ${count}; -n ${Math.min(count, mostRecords)} lists more. ` : '';
  return ['', `${rest}One of them: semel show <id> ${options}`];
}

async function redraw(semel: Semel, filter: Filter, limit: number): Promise<void> {
  process.stdout.write('\u001b[2J');
  await watch(async (signal) => {
    const { items, count } = await look(semel, filter, limit, rowOf, signal);
    if (signal.aborted) return;
    const title = `${printable(semel.namespace)}  ${new Date().toISOString()}  ${count} records  (Ctrl-C ends)`;
    process.stdout.write(frame([title, '', ...table(head, items)], process.stdout.rows || 24));
  });
}

/** More are remembered than are listed, so that one that comes back is no news. */
const remembered = (limit: number) => 10 * limit + 1000;

async function followJson(semel: Semel, filter: Filter, limit: number): Promise<void> {
  const changed = changes<RecordInfo>(({ key }) => key, faceOf, remembered(limit));
  await watch(async (signal) => {
    const { items } = await look(semel, filter, limit, (record) => record, signal);
    // Oldest first, as they came.
    if (!signal.aborted) for (const record of changed(items).toReversed()) printJsonLine(record);
  });
}

async function followLines(semel: Semel, filter: Filter, limit: number): Promise<void> {
  interface Line {
    readonly key: string;
    readonly face: string;
    readonly row: Row;
  }
  const changed = changes<Line>(
    ({ key }) => key,
    ({ face }) => face,
    remembered(limit),
  );
  const lineOf = (record: RecordInfo) => ({ key: record.key, face: faceOf(record), row: rowOf(record) });
  await watch(async (signal) => {
    const { items } = await look(semel, filter, limit, lineOf, signal);
    const rows = signal.aborted ? [] : changed(items).map(({ row }) => row);
    if (rows.length > 0) print(...table(head, rows.toReversed()).slice(1));
  });
}

/** What makes a record another one to look at. A renewed lease does not. */
function faceOf(record: RecordInfo): string {
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
