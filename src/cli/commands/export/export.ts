// `semel export`: prints records and their history as JSON lines, and with --follow their changes.

import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { Status } from '../../../core/contract/words.ts';
import type { ExportQuery } from '../../../semel/index.ts';
import type { StoredRecord } from '../../../store/store.ts';
import { flagReader, maxTimerMs } from '../../args/flag-values.ts';
import { type Namespaces, namespacesFor } from '../../args/namespaces.ts';
import { command } from '../../command.ts';
import { choice, text, toggle } from '../../flags.ts';
import { printable } from '../../render/print.ts';
import { usageError } from '../../usage.ts';
import { createFollower, type Follower } from './follower.ts';

export default command({
  name: 'export',
  takes: '[options]',
  about: `Prints one line per record, with every field and its history, of all namespaces unless you choose one. "semel": 1 is the
version of the format. Values that JSON cannot express (dates, sets, undefined) are tagged with "$semel". \`semel import\`
reads it.`,
  flags: {
    tool: text('<name>', 'only this contract'),
    status: choice(
      ['running', 'succeeded', 'failed', 'released', 'unknown', 'in-doubt'],
      'only records in this state',
    ),
    since: text('<duration>', 'only records that changed in this time: 7d'),
    follow: toggle('keep printing changes until interrupted', 'f'),
    every: text('<duration>', 'with --follow: how often to look (default: 1s)'),
  },
  examples: [
    'semel export > ledger.jsonl',
    'semel export --tool mail.send --since 7d',
    'semel export --follow | jq -r "[.key, .status] | @tsv"',
  ],
  async run({ values, positionals }) {
    if (positionals.length > 0)
      throw usageError('export', 'takes no file', 'Redirect the output: semel export > ledger.jsonl');
    if (values.every !== undefined && !values.follow) throw usageError('export', '--every needs --follow');
    const given = flagReader('export', values);
    const sinceMs = given.duration('since', undefined);
    const everyMs = given.duration('every', 1_000, { to: maxTimerMs });
    const query: ExportQuery = {
      ...(values.tool === undefined ? {} : { contract: values.tool }),
      ...statusOf(values.status),
    };
    const isRecent = ({ updatedAt, readAt }: StoredRecord) =>
      sinceMs === undefined || updatedAt >= readAt - sinceMs;
    await using ledger = namespacesFor(values);
    if (values.follow) await follow(ledger, query, isRecent, everyMs);
    else await send(ledger, () => ({ ...query, only: isRecent }));
    return 0;
  },
});

function statusOf(status: Status | 'in-doubt' | undefined): ExportQuery {
  if (status === undefined) return {};
  return status === 'in-doubt' ? { inDoubt: true } : { status };
}

async function send(
  ledger: Namespaces,
  queryIn: (namespace: string) => ExportQuery,
  signal?: AbortSignal,
): Promise<void> {
  for await (const semel of ledger.each())
    for await (const record of semel.records.export(queryIn(semel.namespace))) {
      if (signal?.aborted) return;
      // Wait for a slow reader, instead of buffering the ledger.
      if (!process.stdout.write(`${printable(JSON.stringify(record))}\n`))
        await once(process.stdout, 'drain');
    }
}

/** A look reads the whole ledger: rests five times as long as it took. */
const restPerLook = 5;

async function follow(
  ledger: Namespaces,
  { status, inDoubt, ...query }: ExportQuery,
  isRecent: (record: StoredRecord) => boolean,
  everyMs: number,
): Promise<void> {
  const interrupted = new AbortController();
  const stop = () => interrupted.abort();
  process.once('SIGINT', stop).once('SIGTERM', stop);
  const followers = new Map<string, Follower>();
  const isAsked = (record: StoredRecord) =>
    (status === undefined || record.status === status) &&
    (inDoubt === undefined || record.inDoubt === inDoubt);
  for (let isFirst = true; !interrupted.signal.aborted; isFirst = false) {
    const startedAt = performance.now();
    const newsIn = (namespace: string): ExportQuery => {
      const follower = followers.get(namespace) ?? createFollower();
      followers.set(namespace, follower);
      follower.look();
      const only = (record: StoredRecord) =>
        follower.isNews(record) && isAsked(record) && (!isFirst || isRecent(record));
      return { ...query, only };
    };
    await send(ledger, newsIn, interrupted.signal);
    const restMs = Math.max(everyMs, restPerLook * (performance.now() - startedAt));
    await pause(restMs, undefined, { signal: interrupted.signal }).catch(() => undefined);
  }
}
