// `semel outbox`: lists what is staged in a SQLite or Postgres ledger, and takes a person's decisions about rows that are dead or in doubt.

import { SemelError } from '../../core/errors.ts';
import {
  type Delivery,
  mayLandTwice,
  type RelayOptions,
  type RelayReport,
  readCall,
} from '../../outbox/index.ts';
import type { Semel } from '../../semel/index.ts';
import { isDamaged, readOrDamage } from '../../store/damage.ts';
import type { Outbox, OutboxRow, OutboxState } from '../../store/outbox.ts';
import type { Store } from '../../store/store.ts';
import { actOptions } from '../act.ts';
import { confirm } from '../args/confirm.ts';
import { exitSoon, exportsOf, instancesIn } from '../args/module.ts';
import { namespacesOf } from '../args/namespaces.ts';
import { mustBeOperator } from '../caller.ts';
import { command } from '../command.ts';
import { text, toggle } from '../flags.ts';
import { storeFor } from '../ledger.ts';
import { oneLine, print, printable, printJson, printJsonLine, relative } from '../render/print.ts';
import { usageError } from '../usage.ts';

const listed: Readonly<Record<string, OutboxState | undefined>> = {
  ls: undefined,
  dead: 'dead',
  doubt: 'in doubt',
};
const decided = ['show', 'retry', 'drop'];
const delivering = ['relay', 'drain'] as const;

export default command({
  name: 'outbox',
  takes: 'ls|dead|doubt|show|retry|drop|relay|drain [<n>|<module>] [options]',
  about: `What to do:
  ls     lists what is staged and not delivered, oldest first
  dead   lists what is not tried again, with the reason: it did not land, or a person gave it up
  doubt  lists what may have landed
  show   shows one row, by its number in these lists
  retry  delivers a row again, even if the target refused it. A record in doubt still decides: see semel doubt.
         Asks first if it may have landed and its record is gone
  drop   removes a row: it is not delivered any more. Asks first
  relay  delivers with the tools of a module, which must export what createSemel returned, until interrupted
  drain  delivers what is due with the tools of a module, and exits with 1 if anything of it is dead or in doubt`,
  flags: {
    limit: text('<n>', 'maximum number of rows (default: 100)', 'n'),
    yes: toggle('do not ask for confirmation', 'y'),
  },
  examples: [
    'semel outbox ls',
    'semel outbox dead --json',
    'semel outbox retry 17',
    'semel outbox relay ./tools.js',
  ],
  async run({ values, positionals }) {
    const [word = 'ls', number, ...more] = positionals;
    const delivers = delivering.find((each) => each === word);
    if (delivers !== undefined) return deliver(delivers, number, more, values);
    const isListed = Object.hasOwn(listed, word);
    if ((!isListed && !decided.includes(word)) || more.length > 0 || (isListed && number !== undefined))
      throw usageError('outbox', 'expects one of ls, dead, doubt, show, retry, drop, relay, drain');
    const store = await storeFor(values);
    try {
      const outbox = store.outbox;
      if (outbox === undefined)
        throw new SemelError('STORE_UNSAFE', 'This ledger has no outbox.', {
          next: 'Only SQLite and Postgres ledgers have one: --store sqlite:… or --store postgres://…',
        });
      if (isListed) return await list(store, outbox, listed[word], values);
      return await decide(store, outbox, word, await findRow(outbox, number), values);
    } finally {
      await store.close();
    }
  },
});

interface Choice {
  readonly store: string | undefined;
  readonly namespace: string | undefined;
  readonly limit: string | undefined;
  readonly json: boolean | undefined;
  readonly yes: boolean | undefined;
}

async function list(
  store: Store,
  outbox: Outbox,
  state: OutboxState | undefined,
  values: Choice,
): Promise<number> {
  const limit = Number(values.limit ?? 100);
  if (!Number.isSafeInteger(limit) || limit < 1)
    throw usageError('outbox', '--limit must be a whole number from 1');
  const rows = await outbox.list({ namespace: values.namespace, state, limit });
  if (values.json) {
    for (const row of rows) printJsonLine(toJson(row));
    return 0;
  }
  if (rows.length === 0) print(state === undefined ? 'Nothing is staged.' : `Nothing is ${state}.`);
  let isAnyOpen = false;
  for (const row of rows) {
    const isOpen = row.state === 'in doubt' && !(await isDecided(store, row));
    isAnyOpen ||= isOpen;
    print(row.state === 'in doubt' && !isOpen ? decidedLine(row) : line(row));
  }
  if (isAnyOpen) print('To decide what is in doubt: semel doubt');
  if (rows.length === limit) print(`These are the first ${limit}. For more: --limit ${limit * 10}`);
  return 0;
}

/** Its record is free to run again, and a relay has not looked at the row since. */
async function isDecided(store: Store, row: OutboxRow): Promise<boolean> {
  const record = await store.read(row.namespace, row.key);
  return record?.status === 'released' && !record.expired && !mayLandTwice(row, record);
}

async function decide(
  store: Store,
  outbox: Outbox,
  word: string,
  row: OutboxRow,
  values: Choice,
): Promise<number> {
  if (word === 'show') {
    if (values.json) printJson(toJson(row));
    else {
      const read = readArgs(row);
      const args =
        'args' in read ? oneLine(read.args, 500) : 'damaged: the row was changed since it was staged';
      print(line(row), `key     ${printable(row.key)}`, `args    ${args}`);
      if (row.drift.length > 0) print(`drift   ${printable(row.drift.join(', '))}`);
    }
    return 0;
  }
  mustBeOperator('outbox', 'Deciding about a row of the outbox');
  if (word === 'drop') {
    print(line(row));
    if (!(await confirm(`${whatDropMeans[row.state]} Drop it?`, { command: 'outbox', yes: values.yes }))) {
      print('Nothing was changed.');
      return 70;
    }
  }
  if (word === 'retry') return retry(store, outbox, row, values);
  if (!(await outbox.drop(row.n))) throw goneError(row.n);
  print(`${row.n} was dropped.`);
  return 0;
}

/** A record that failed would answer for the row until its failure window ends, so it is reopened first. */
async function retry(store: Store, outbox: Outbox, row: OutboxRow, { yes }: Choice): Promise<number> {
  const { records } = namespacesOf(store, row.namespace).in(row.namespace);
  const failed = await records.get(row.key);
  if (mayLandTwice(row, failed)) {
    print(line(row));
    const question = 'It may have landed, and its record is gone: delivering it again may repeat it.';
    if (!(await confirm(`${question} Deliver it again?`, { command: 'outbox', yes }))) {
      print('Nothing was changed.');
      return 70;
    }
  }
  const isAnswering = failed?.status === 'failed' && !failed.expired;
  const reason = { note: `semel outbox retry ${row.n}`, by: undefined };
  // It would answer for the row even after its window.
  if (failed?.status === 'failed' && failed.expired) await records.forget(failed.ref, actOptions(reason));
  const record = isAnswering ? await records.reopen(failed.ref, actOptions(reason)) : undefined;
  if (!(await outbox.retry(row.n))) throw goneError(row.n);
  print(
    record?.inDoubt
      ? `${row.n} waits again. It was given up and may have landed, so it is in doubt: decide with semel resolve ${record.ref}`
      : `${row.n} is delivered again by the next relay.`,
  );
  return 0;
}

/** Until interrupted, or until nothing is due. What runs then is finished first. */
async function deliver(
  word: (typeof delivering)[number],
  path: string | undefined,
  more: readonly string[],
  values: Choice,
): Promise<number> {
  mustBeOperator('outbox', 'Delivering what is staged');
  if (path === undefined || more.length > 0)
    throw usageError('outbox', `${word} takes one module`, `Write: semel outbox ${word} ./tools.js`);
  if (values.store !== undefined)
    throw usageError('outbox', `${word} takes no --store`, 'The module chooses its ledger.');
  const instances = instancesIn(exportsOf(path), path, values.namespace) as readonly WithOutbox[];
  const stop = new AbortController();
  const end = () => stop.abort();
  process.on('SIGINT', end).on('SIGTERM', end);
  try {
    const options = { signal: stop.signal, onDelivery: values.json ? printJsonLine : printDelivery };
    const reports = await Promise.all(instances.map(({ outbox }) => outbox[word](options)));
    const isClean = reports.every(({ inDoubt, dead }) => inDoubt + dead === 0);
    const isIdle = reports.every((report) => Object.values(report).every((count) => count === 0));
    if (word === 'drain' && isIdle && !values.json) print('Nothing was due.');
    const code = word === 'drain' && !isClean ? 1 : 0;
    for (const semel of instances) await semel.close();
    exitSoon(code);
    return code;
  } finally {
    process.off('SIGINT', end).off('SIGTERM', end);
  }
}

/** The module's own copy of semel made it. */
type WithOutbox = Semel & {
  readonly outbox: Record<(typeof delivering)[number], (options: RelayOptions) => Promise<RelayReport>>;
};

function printDelivery({ contract, outcome, key, reason }: Delivery): void {
  print(
    printable(`${outcome}  ${contract}  ${key}${reason === undefined ? '' : `  ${oneLine(reason, 120)}`}`),
  );
}

const whatDropMeans: Readonly<Record<OutboxState, string>> = {
  waiting: 'Unless a relay is delivering it right now, it will not be delivered.',
  'in doubt': 'It may have landed. No relay will look at it again; semel doubt still shows its record.',
  dead: 'It will not be delivered.',
};

async function findRow(outbox: Outbox, text: string | undefined): Promise<OutboxRow> {
  const n = Number(text);
  if (text === undefined || !Number.isSafeInteger(n) || n < 1)
    throw usageError('outbox', 'expects the number of a row', '`semel outbox ls` lists them.');
  const [row] = await outbox.list({ after: n - 1, limit: 1 });
  if (row?.n !== n) throw goneError(n);
  return row;
}

function goneError(n: number): SemelError {
  return new SemelError('INVALID_ARGS', `There is no row ${n} in the outbox.`, {
    next: 'It may have been delivered. `semel outbox ls` lists what waits.',
  });
}

function decidedLine(row: OutboxRow): string {
  const next = row.dueAt > Date.now() ? relative(new Date(row.dueAt)) : 'now';
  return line({ ...row, reason: null }, `decided: next try ${next} (at once: semel outbox retry ${row.n})`);
}

function line(row: OutboxRow, state: string = row.state): string {
  const group = row.group === null ? '' : `  group ${row.group}`;
  const tries = row.tries === 0 ? '' : `  ${row.tries} tries`;
  const behind = row.state === 'waiting' && row.behind != null ? `  behind row ${row.behind}` : '';
  const reason = row.reason === null ? '' : `  ${oneLine(row.reason, 120)}`;
  const age = relative(new Date(row.stagedAt));
  // In the hands of a relay, in a pause after a try, or staged for later.
  const due =
    row.state === 'waiting' && row.dueAt > Date.now() ? `, due ${relative(new Date(row.dueAt))}` : '';
  const read = readArgs(row);
  const args = 'args' in read ? `  ${oneLine(read.args, 60)}` : '';
  return printable(
    `${row.n}  ${row.namespace}  ${row.contract}${args}  ${state}${due}  staged ${age}${group}${behind}${tries}${reason}`,
  );
}

function toJson({ call, ...row }: OutboxRow) {
  return {
    ...row,
    stagedAt: toTime(row.stagedAt),
    dueAt: toTime(row.dueAt),
    ...readArgs({ call, ...row }),
  };
}

/** One damaged row must not keep the others from being shown. */
function readArgs(row: OutboxRow): { readonly args: unknown } | { readonly damaged: true } {
  const staged = readOrDamage(() => readCall(row));
  return isDamaged(staged) ? { damaged: true } : { args: JSON.parse(staged.args) as unknown };
}

/** Null: no date is so far away. */
function toTime(ms: number): string | null {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}
