// Open questions that nobody answers, the switch that gives the guarantee up, and effects that landed twice.

import { isReserved } from '../../../jobs/index.ts';
import { ago, type Check, count, examples, type Found, latest } from './finding.ts';
import { byContract, type RecordSeen, type Seen } from './seen.ts';

export const doubtBacklog: Check<'DOUBT_BACKLOG'> = {
  id: 'DOUBT_BACKLOG',
  finds({ records, now, optionsFor }) {
    const open = Map.groupBy(
      records.filter(({ inDoubt }) => inDoubt),
      ({ namespace }) => namespace,
    );
    return [...open].flatMap(([namespace, members]) => {
      const age = (record: RecordSeen) => now - (record.lastDispatchedAt ?? record.updatedAt).getTime();
      const oldest = members.reduce((most, record) => Math.max(most, age(record)), 0);
      const isOne = members.length === 1;
      return [
        {
          namespace,
          found: isOne
            ? `1 record is in doubt, for ${ago(oldest)}: its calls are refused until somebody decides.`
            : `${members.length} records are in doubt, the oldest for ${ago(oldest)}: their calls are refused until somebody decides.`,
          next: `Check whether ${isOne ? 'it' : 'they'} landed, and decide: semel doubt ${optionsFor(namespace)}`.trim(),
          records: examples(members),
        },
      ];
    });
  },
};

export const deadHolder: Check<'DEAD_HOLDER'> = {
  id: 'DEAD_HOLDER',
  finds({ records, optionsFor }) {
    const held = Map.groupBy(
      records.filter((record) => record.deadHolder !== undefined),
      ({ namespace }) => namespace,
    );
    return [...held].map(([namespace, members]) => {
      const names = [...new Set(members.map((record) => record.deadHolder))];
      const gone = `${names.slice(0, maxNames).join(', ')}${names.length > maxNames ? ` and ${names.length - maxNames} more` : ''}`;
      const options = optionsFor(namespace);
      return {
        namespace,
        found: `${count(members.length, 'record is', 'records are')} held by ${names.length === 1 ? 'a process that is' : 'processes that are'} gone (${gone}): nobody is working on ${members.length === 1 ? 'it' : 'them'}.`,
        next: `Call or start ${members.length === 1 ? 'it' : 'them'} again, which notices. Or end the lease now: semel ls --status running ${options} lists them, semel resolve <ref> died ${options} ends one.`.replaceAll(
          / {2,}/g,
          ' ',
        ),
        records: examples(members),
      };
    });
  },
};

const maxNames = 3;

export const onDoubtRerun: Check<'ON_DOUBT_RERUN'> = {
  id: 'ON_DOUBT_RERUN',
  finds: (seen) =>
    perContract(
      seen,
      ({ contract }) => !isReserved(contract),
      ({ type, detail }) => type === 'takeover' && detail.accepted === true,
      (times) => ({
        found: `Done again ${count(times, 'time')} while nobody knew whether it had landed: its contract says onDoubt: 'rerun'.`,
        next: "Give it a `verify` or a `provider` and take `onDoubt: 'rerun'` away, or make sure that a second effect is harmless.",
      }),
    ),
};

export const duplicate: Check<'DUPLICATE'> = {
  id: 'DUPLICATE',
  finds: (seen) =>
    perContract(
      seen,
      () => true,
      ({ type }) => type === 'duplicate',
      (times) => ({
        found: `Two attempts reported that it landed, ${count(times, 'time')}: it was done twice.`,
        next: 'Undo one of the two at the target. Then look why two attempts ran: a lease too short, or a repeat that somebody accepted.',
      }),
    ),
};

export const contradiction: Check<'CONTRADICTION'> = {
  id: 'CONTRADICTION',
  finds: (seen) =>
    perContract(
      seen,
      () => true,
      ({ type }) => type === 'contradiction',
      (times) => ({
        found: `${count(times, 'attempt')} landed though the record says that it was refused or given up.`,
        next: 'Look at the target, and tell the record: semel retry, then semel resolve. What said "refused" was wrong: look at `classify`.',
      }),
    ),
};

type EventSeen = RecordSeen['events'][number];

/** One finding per contract for the events of one kind. */
function perContract(
  { records }: Seen,
  isMeant: (record: RecordSeen) => boolean,
  shows: (event: EventSeen) => boolean,
  tell: (times: number) => Pick<Found, 'found' | 'next'>,
): readonly Found[] {
  return byContract(records.filter(isMeant)).flatMap(({ namespace, contract, records: members }) => {
    const showing = members.filter(({ events }) => events.some(shows));
    const at = showing.flatMap(({ events }) => events.filter(shows).map((event) => event.at));
    if (at.length === 0) return [];
    return [{ namespace, contract, ...tell(at.length), records: examples(showing), lastAt: latest(at) }];
  });
}
