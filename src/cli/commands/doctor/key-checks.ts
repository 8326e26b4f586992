// Keys that are too wide or too narrow: the same work under new keys each time, and other work under an old one.

import { canonicalJson } from '../../../core/key/canonical-json.ts';
import { isReserved } from '../../../jobs/index.ts';
import { valueAt } from '../../args/path.ts';
import { type Check, count, examples, latest } from './finding.ts';
import { changingFields, isFreshKey, withoutFresh } from './freshness.ts';
import { byContract, type RecordSeen } from './seen.ts';

/** A person or a schedule that wants it again is slower than a program that tries again. */
const soonMs = 10_000;
/** One repeat may be a coincidence. */
const fewRepeats = 2;

export const keyNeverHits: Check<'KEY_NEVER_HITS'> = {
  id: 'KEY_NEVER_HITS',
  finds: ({ records }) =>
    byContract(records.filter(isOwnIntent)).flatMap(({ namespace, contract, records: members }) => {
      const chains = [...Map.groupBy(members, intentOf)]
        .filter(([intent]) => intent !== undefined)
        .flatMap(([, same]) => chainsOf(same))
        .filter((chain) => chain.every(({ events }) => events.every(({ type }) => type !== 'replayed')));
      const repeats = chains.reduce((sum, chain) => sum + chain.length - 1, 0);
      if (repeats < fewRepeats) return [];
      const repeated = chains.flat();
      return [
        {
          namespace,
          contract,
          found: `The same args came again within seconds under another key, ${count(repeats, 'time')}, and none of these keys was ever hit: ${whyNew(chains)}.`,
          next: 'Put fields that are generated for each call into `volatile`, and fields that a model words differently into `content`. Pass the conversation, turn or run that a retry shares with its first call.',
          records: examples(repeated),
          lastAt: latest(repeated.map(({ createdAt }) => createdAt.getTime())),
        },
      ];
    }),
};

/** A repeat on purpose says so, and each slot of a calendar is work of its own. */
function isOwnIntent({ again, key, contract }: RecordSeen): boolean {
  const [, period = ''] = key.split('/');
  return again === undefined && !isReserved(contract) && !/^\d{4}-/.test(period);
}

/**
 * The args but for what changes from call to call. Undefined where equal args say nothing: there are none, or they make the
 * whole key and what tells them apart was not stored.
 */
function intentOf({ args, key, createdAt }: RecordSeen): string | undefined {
  if (typeof args !== 'object' || args === null) return undefined;
  const at = createdAt.getTime();
  const rest = withoutFresh(args, at);
  if (rest === undefined || Object.keys(rest).length === 0) return undefined;
  const [, period = ''] = key.split('/');
  const isAllOfTheKey = period === '-' || (period.startsWith('=') && !isFreshKey(period, at));
  if (isAllOfTheKey && changingFields(args, at).length === 0) return undefined;
  try {
    return canonicalJson(rest);
  } catch {
    return undefined;
  }
}

/** Those that follow each other closely. */
function chainsOf(records: readonly RecordSeen[]): readonly (readonly RecordSeen[])[] {
  const chains: RecordSeen[][] = [];
  for (const record of records.toSorted((a, b) => a.createdAt.getTime() - b.createdAt.getTime())) {
    const chain = chains.at(-1);
    const before = chain?.at(-1);
    if (before !== undefined && record.createdAt.getTime() - before.createdAt.getTime() <= soonMs)
      chain?.push(record);
    else chains.push([record]);
  }
  return chains.filter((chain) => chain.length > 1);
}

function whyNew(chains: readonly (readonly RecordSeen[])[]): string {
  const records = chains.flat();
  const fields = new Set(records.flatMap(({ args, createdAt }) => changingFields(args, createdAt.getTime())));
  const fresh = new Set([...fields].filter((field) => chains.some((chain) => differs(chain, field))));
  if (fresh.size > 0) {
    const named = [...fresh].map((field) => `\`${field}\``).join(', ');
    return `${named} ${fresh.size === 1 ? 'changes' : 'change'} each time`;
  }
  if (records.every(({ key }) => key.split('/')[1]?.startsWith('=')))
    return 'the caller’s own key is fresh each time';
  const differing = (['conversation', 'turn', 'run'] as const).filter((part) =>
    chains.some((chain) => new Set(chain.map((record) => record[part])).size > 1),
  );
  if (differing.length === 0) return 'something else in them differs';
  return `the ${differing.join(' and the ')} ${differing.length === 1 ? 'differs' : 'differ'}`;
}

function differs(chain: readonly RecordSeen[], field: string): boolean {
  return new Set(chain.map(({ args }) => JSON.stringify(valueAt(args as object, field)))).size > 1;
}

/** A model that retries rewords a call a few times. */
const fewDrifts = 3;

export const workEaten: Check<'WORK_EATEN'> = {
  id: 'WORK_EATEN',
  finds: ({ records }) =>
    byContract(records).flatMap(({ namespace, contract, records: members }) => {
      const eaten = members
        .map((record) => ({ record, drifts: driftsOf(record) }))
        .filter(({ drifts }) => drifts.reduce((sum, { times }) => sum + times, 0) >= fewDrifts);
      const drifts = eaten.flatMap((each) => each.drifts);
      if (drifts.length === 0) return [];
      const times = drifts.reduce((sum, drift) => sum + drift.times, 0);
      const fields = [...new Set(drifts.flatMap((drift) => drift.fields))].map((field) => `\`${field}\``);
      return [
        {
          namespace,
          contract,
          found: `${count(eaten.length, 'key')} answered ${times} calls whose ${fields.join(', ')} differed from what was done: they were taken for repeats, and nothing was done.`,
          next: 'If these were different work, put the fields that tell it apart into `identity`, or shorten `per`. If they were re-worded retries, nothing is wrong.',
          records: examples(eaten.map(({ record }) => record)),
          lastAt: latest(drifts.map(({ at }) => at)),
        },
      ];
    }),
};

interface Drift {
  readonly at: number;
  readonly times: number;
  readonly fields: readonly string[];
}

/** Replays in other words, but for those of the very turn that it was done in: there a model tries again. */
function driftsOf({ conversation, turn, events }: RecordSeen): readonly Drift[] {
  return events.flatMap(({ at, type, detail }) => {
    if (type !== 'replayed' || !Array.isArray(detail.drift)) return [];
    if (turn !== undefined && detail.turn === turn && detail.conversation === conversation) return [];
    return [
      { at, times: typeof detail.times === 'number' ? detail.times : 1, fields: detail.drift.map(String) },
    ];
  });
}
