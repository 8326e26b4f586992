// Every finding: a ledger that has it, and one that is like it and has it not.

import { describe, expect, test } from 'vitest';
import { type FindingId, findingIds, findingsIn } from '../../src/cli/commands/doctor/checks.ts';
import type { RecordSeen, Seen } from '../../src/cli/commands/doctor/seen.ts';

const now = Date.UTC(2026, 5, 19, 9);
const second = 1_000;
const hour = 3_600 * second;
const day = 24 * hour;
const mebibyte = 1024 * 1024;

const facts: NonNullable<Seen['facts']> = {
  location: '/ledger.db',
  forgets: undefined,
  clockProblem: undefined,
  warning: undefined,
};
const files: NonNullable<Seen['files']> = {
  path: '/ledger.db',
  logBytes: 4 * mebibyte,
  freeBytes: 1_000 * mebibyte,
  journal: 'wal',
};

const root = (root: string) => ({ root, since: new Date(0), ref: 'abcdef@1' });

function seen(over: Partial<Seen> = {}): Seen {
  return {
    now,
    since: now - 30 * day,
    facts,
    refused: undefined,
    damage: [],
    files,
    livenessProblem: undefined,
    records: [],
    contracts: [],
    other: undefined,
    optionsFor: (namespace) => `--namespace ${namespace}`,
    ...over,
  };
}

let made = 0;

function record(over: Partial<RecordSeen> = {}): RecordSeen {
  made += 1;
  const contract = over.contract ?? 'mail.send';
  const createdAt = over.createdAt ?? new Date(now - day);
  return {
    id: `id${made}`,
    namespace: 'shop',
    contract,
    key: `${contract}/-/digest${made}`,
    version: '1',
    inDoubt: false,
    again: undefined,
    args: undefined,
    conversation: undefined,
    turn: undefined,
    run: undefined,
    createdAt,
    updatedAt: createdAt,
    lastDispatchedAt: createdAt,
    deadHolder: undefined,
    events: [],
    ...over,
  };
}

type EventSeen = RecordSeen['events'][number];

function event(
  type: EventSeen['type'],
  detail: EventSeen['detail'] = {},
  over: Partial<EventSeen> = {},
): EventSeen {
  return { at: now - hour, generation: 1, type, detail, ...over };
}

const records = (...all: RecordSeen[]) => seen({ records: all });
const withEvents = (...events: EventSeen[]) => records(record({ events }));
const refused = (evidence: Record<string, unknown>) =>
  seen({
    facts: undefined,
    refused: { happened: 'The ledger is refused.', next: 'Do this.', evidence },
  });

/** The same call, so many times and so far apart, each under a key of its own. */
const repeats = (times: number, apartMs: number, over: (nth: number, at: number) => Partial<RecordSeen>) =>
  records(
    ...Array.from({ length: times }, (_, nth) => {
      const at = now - day + nth * apartMs;
      return record({ createdAt: new Date(at), ...over(nth, at) });
    }),
  );
const inConversations = (nth: number): Partial<RecordSeen> => ({
  key: `mail.send/c${nth}/digest`,
  conversation: `c${nth}`,
  args: { to: 'ann', template: 7 },
});
const drifted = (detail: EventSeen['detail'] = {}) => event('replayed', { drift: ['body'], ...detail });

/** `planted` has the finding; `quiet` are the nearest that have it not. */
const cases: Record<FindingId, { planted: Seen[]; quiet: Seen[] }> = {
  DAMAGED: {
    planted: [seen({ damage: ['The record mail/=1 of shop: its checksum is wrong.'] })],
    quiet: [seen()],
  },
  LEDGER_REFUSED: {
    planted: [refused({ fileSystem: 'NFS' })],
    quiet: [seen(), refused({ schema: 9, known: 1 })],
  },
  DURABILITY: {
    planted: [
      seen({ facts: { ...facts, forgets: 'The ledger is on tmpfs.' } }),
      seen({ files: { ...files, journal: 'rollback' } }),
    ],
    quiet: [
      seen(),
      seen({ files: { ...files, journal: undefined } }),
      // A restored ledger that is still refused: no other program has written it.
      seen({ facts: undefined, files: { ...files, journal: 'rollback' } }),
    ],
  },
  CLOCK: {
    planted: [
      seen({ facts: { ...facts, clockProblem: 'The clock is 3 hours ahead.' } }),
      records(record({ createdAt: new Date(now + hour) })),
    ],
    quiet: [seen(), records(record({ createdAt: new Date(now + 60 * second) }))],
  },
  VERSION: {
    planted: [
      refused({ version: '3.40.0' }),
      records(
        record({ version: '2.0', createdAt: new Date(now - 5 * hour) }),
        record({ version: '1.4', createdAt: new Date(now - 9 * hour) }),
        record({ version: '1.4', createdAt: new Date(now - 3 * hour) }),
      ),
      records(
        record({ version: '1', inDoubt: true, createdAt: new Date(now - 9 * hour) }),
        record({ version: '2', createdAt: new Date(now - 5 * hour) }),
      ),
    ],
    quiet: [
      // A deploy that took half an hour, a patch, and another contract.
      records(
        record({ version: '1', createdAt: new Date(now - 5.5 * hour) }),
        record({ version: '2', createdAt: new Date(now - 5 * hour) }),
        record({ version: '1', createdAt: new Date(now - 4.5 * hour) }),
        record({ version: '2.1', inDoubt: true, createdAt: new Date(now - 4 * hour) }),
        record({ version: '1', contract: 'other' }),
      ),
      refused({ fileSystem: 'NFS' }),
    ],
  },
  PERMISSIONS: {
    planted: [seen({ facts: { ...facts, warning: 'Other users can read it.' } })],
    quiet: [seen()],
  },
  DISK_SPACE: {
    planted: [seen({ files: { ...files, freeBytes: 99 * mebibyte } })],
    quiet: [
      seen({ files: { ...files, freeBytes: 100 * mebibyte } }),
      seen({ files: { ...files, freeBytes: undefined } }),
      seen({ files: undefined }),
    ],
  },
  LOG_SIZE: {
    planted: [seen({ files: { ...files, logBytes: 257 * mebibyte } })],
    quiet: [seen({ files: { ...files, logBytes: 256 * mebibyte } })],
  },
  TWO_LEDGERS: {
    planted: [
      seen({
        contracts: [{ namespace: 'shop', contracts: ['a', 'b'] }],
        other: { path: '/home/ledger.db', contracts: [{ namespace: 'shop', contracts: ['b', 'c'] }] },
      }),
      seen({ other: { path: '/home/ledger.db', contracts: [{ namespace: 'shop', contracts: ['b'] }] } }),
    ],
    quiet: [
      seen({
        contracts: [{ namespace: 'shop', contracts: ['a'] }],
        other: {
          path: '/home/ledger.db',
          contracts: [
            { namespace: 'shop', contracts: ['c'] },
            { namespace: 'other', contracts: ['a'] },
          ],
        },
      }),
      seen({ other: { path: '/home/ledger.db', contracts: [{ namespace: 'shop', contracts: [] }] } }),
    ],
  },
  NAMESPACE_SHARED: {
    planted: [
      seen({ contracts: [{ namespace: 'app', contracts: ['a'], roots: [root('/one'), root('/two')] }] }),
    ],
    quiet: [
      seen({
        contracts: [
          { namespace: 'app', contracts: ['a'], roots: [root('/one')] },
          { namespace: 'shop', contracts: ['a'], roots: [] },
        ],
      }),
    ],
  },
  NAMESPACE_SPLIT: {
    planted: [
      seen({
        contracts: [
          { namespace: 'default', contracts: ['a', 'b'] },
          { namespace: 'shop', contracts: ['b'] },
        ],
      }),
    ],
    quiet: [
      seen({
        contracts: [
          { namespace: 'default', contracts: ['a'] },
          { namespace: 'shop', contracts: ['b'] },
          // Two applications that both name themselves.
          { namespace: 'office', contracts: ['b'] },
        ],
      }),
    ],
  },
  DUPLICATE: {
    planted: [withEvents(event('duplicate', { fence: 1 }))],
    quiet: [withEvents(event('fenced'))],
  },
  CONTRADICTION: { planted: [withEvents(event('contradiction'))], quiet: [withEvents(event('fenced'))] },
  DOUBT_BACKLOG: {
    planted: [records(record({ inDoubt: true, lastDispatchedAt: new Date(now - second) }))],
    quiet: [records(record({ lastDispatchedAt: new Date(now - day) }))],
  },
  DEAD_HOLDER: {
    planted: [
      records(record({ deadHolder: 'web1:4242' })),
      records(record({ deadHolder: 'web1:4242' }), record({ deadHolder: 'web1:4243' })),
    ],
    quiet: [seen(), records(record())],
  },
  ON_DOUBT_RERUN: {
    planted: [withEvents(event('takeover', { for: 'rerun', accepted: true }))],
    quiet: [
      withEvents(
        event('takeover', { for: 'rerun', rerunWithinMs: day, windowMs: hour }),
        event('takeover', { for: 'rerun' }),
      ),
      ...['run.nightly', 'lock.mail', 'step.fetch', 'pick.topic'].map((contract) =>
        records(record({ contract, events: [event('takeover', { for: 'rerun', accepted: true })] })),
      ),
    ],
  },
  LEASE_TOO_SHORT: {
    planted: (['fenced', 'lateNews', 'duplicate', 'contradiction'] as const).map((type) =>
      withEvents(event('takeover', { fence: 1, lapsed: true }), event(type, { fence: 1 })),
    ),
    quiet: [
      // It never came back; it had ended as unknown before; it was another attempt, or another life of the record.
      withEvents(event('takeover', { fence: 1, lapsed: true })),
      withEvents(event('fenced', { fence: 1 }), event('takeover', { fence: 1, lapsed: true })),
      withEvents(event('takeover', { fence: 1, lapsed: false }), event('lateNews', { fence: 1 })),
      withEvents(event('takeover', { fence: 1, lapsed: true }), event('fenced', { fence: 2 })),
      withEvents(
        event('takeover', { fence: 1, lapsed: true }),
        event('fenced', { fence: 1 }, { generation: 9 }),
      ),
    ],
  },
  WINDOW_TOO_LONG: {
    planted: [withEvents(event('takeover', { windowMs: 7 * day, rerunWithinMs: day - 660 * second }))],
    quiet: [
      // As long as the provider's, less the time that a request may take.
      withEvents(event('takeover', { windowMs: day, rerunWithinMs: day - 660 * second })),
      // Mended since.
      withEvents(
        event('takeover', { windowMs: 7 * day, rerunWithinMs: day }, { at: now - 9 * hour }),
        event('takeover', { windowMs: day, rerunWithinMs: day }),
      ),
      withEvents(event('takeover', { for: 'verify' })),
    ],
  },
  KEY_NEVER_HITS: {
    planted: [
      repeats(3, 4 * second, inConversations),
      repeats(3, 4 * second, (_, at) => ({ args: { to: 'ann', sentAt: new Date(at).toISOString() } })),
      repeats(3, 4 * second, (nth) => ({ args: { to: 'ann', meta: { requestId: `r${nth}` } } })),
      repeats(3, 4 * second, (nth) => ({ args: { to: 'ann', body: `wording ${nth}` } })),
      repeats(3, 4 * second, (nth) => ({
        key: `mail.send/=0d9a3a5e-7f5e-4a53-9b5e-00000000000${nth}`,
        args: { to: 'ann' },
      })),
    ],
    quiet: [
      // Too slow for a retry, too few, hit at times, on purpose, by the calendar, by a job.
      repeats(3, 11 * second, inConversations),
      repeats(2, 4 * second, inConversations),
      repeats(3, 4 * second, (nth) => ({ ...inConversations(nth), events: [event('replayed')] })),
      repeats(3, 4 * second, (nth) => ({
        ...inConversations(nth),
        again: `the customer asked ${nth} times`,
      })),
      repeats(3, 4 * second, (nth) => ({
        ...inConversations(nth),
        key: `mail.send/2026-06-${11 + nth}/digest`,
      })),
      repeats(3, 4 * second, (nth) => ({ ...inConversations(nth), contract: 'run.nightly' })),
      // Other work: other args, or args that were not stored, or a key that somebody chose for it.
      repeats(3, 4 * second, (nth) => ({ ...inConversations(nth), args: { to: `lead ${nth}` } })),
      repeats(3, 4 * second, (nth) => ({ ...inConversations(nth), args: {} })),
      repeats(3, 4 * second, () => ({ args: { template: 7 } })),
      repeats(3, 4 * second, (nth) => ({ key: `mail.send/=order-${nth}`, args: { template: 7 } })),
      repeats(3, 4 * second, (nth) => ({
        args: { order: `0d9a3a5e-7f5e-4a53-9b5e-00000000000${nth}`, due: '2026-09-01T10:00:00Z' },
      })),
    ],
  },
  WORK_EATEN: {
    planted: [
      withEvents(drifted(), drifted(), drifted()),
      withEvents(drifted({ times: 3 })),
      records(
        record({
          conversation: 'c',
          turn: '1',
          events: [drifted({ times: 3, conversation: 'c', turn: '2' })],
        }),
      ),
    ],
    quiet: [
      withEvents(drifted(), drifted()),
      withEvents(event('replayed', { times: 500 })),
      // The model tries again in the very turn.
      records(
        record({
          conversation: 'c',
          turn: '1',
          events: [drifted({ times: 9, conversation: 'c', turn: '1' })],
        }),
      ),
      records(
        record({ events: [drifted()] }),
        record({ events: [drifted()] }),
        record({ events: [drifted()] }),
      ),
    ],
  },
};

describe.each(Object.entries(cases))('%s', (id, { planted, quiet }) => {
  test.each(planted.map((each, nth) => [nth + 1, each] as const))(
    'is found where it is planted (%i)',
    (_, given) => {
      const found = findingsIn(given, [id]);
      expect(found).toHaveLength(1);
      expect(found[0]?.id).toBe(id);
      for (const sentence of [found[0]?.found, found[0]?.next]) expect(sentence).toMatch(/^\S.*\S$/);
    },
  );

  test.each(quiet.map((each, nth) => [nth + 1, each] as const))(
    'is silent where all is well (%i)',
    (_, given) => {
      expect(findingsIn(given, [id])).toEqual([]);
    },
  );
});

test('a ledger in which nothing is wrong has no finding at all', () => {
  expect(findingsIn(records(record(), record({ contract: 'run.nightly' })))).toEqual([]);
});

test('a finding names the ledger’s words that lead to it: namespace, contract, records, when', () => {
  const [found] = findingsIn(withEvents(event('takeover', { accepted: true }, { at: now - 5 * second })));
  expect(found).toMatchObject({
    id: 'ON_DOUBT_RERUN',
    namespace: 'shop',
    contract: 'mail.send',
    records: [`id${made}`],
    lastAt: new Date(now - 5 * second),
  });
});

test('explains why a key never matches: fresh values, or fields that differ', () => {
  const why = (given: Seen) => findingsIn(given, ['KEY_NEVER_HITS'])[0]?.found;
  const [conversations, instants, requests, wordings, keys] = cases.KEY_NEVER_HITS.planted.map(why);
  expect(conversations).toContain('the conversation differs');
  expect(instants).toContain('`sentAt` changes each time');
  expect(requests).toContain('`meta.requestId` changes each time');
  expect(wordings).toContain('`body` changes each time');
  expect(keys).toContain('own key is fresh each time');
});

test('the ids are stable, and each is there once', () => {
  expect(findingIds).toEqual([...new Set(findingIds)]);
  expect(Object.keys(cases).sort()).toEqual([...findingIds].sort());
});
