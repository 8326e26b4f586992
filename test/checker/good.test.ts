// Histories in which every promise was kept: the checker finds nothing.
import { expect, test } from 'vitest';
import { check, formatViolation, type Logs } from '../support/checker/index.ts';
import { type Story, story } from './story.ts';

function good(name: string, tell: (story: Story) => void, options?: Parameters<Story['logs']>[0]) {
  test(name, () => {
    const told = story();
    tell(told);
    expect(check(told.logs(options)).map(formatViolation)).toEqual([]);
  });
}

test('nothing happened', () => {
  const empty: Logs = { work: [], records: [], events: [], effects: [], policies: {} };
  expect(check(empty)).toEqual([]);
});

good('a call is executed and replayed', (s) => {
  const effect = s.executes('c1', 1);
  for (const call of ['c2', 'c3']) {
    s.starts(call, { worker: 'w2' });
    s.tells(call, 'replayed', { worker: 'w2', fence: 1, value: 'v1', effect });
  }
  s.leaves('succeeded', 1);
});

good('callers are told "busy", "conflict" or "store down" and nothing else', (s) => {
  s.executes('c1', 1);
  s.starts('c2');
  s.tells('c2', 'nothing', { code: 'IN_FLIGHT' });
  s.starts('c3');
  s.tells('c3', 'nothing', { code: 'STORE_UNAVAILABLE', key: null, generation: null });
  s.leaves('succeeded', 1);
});

good('a worker dies before it sent anything, another takes over', (s) => {
  s.starts('c1');
  s.claims('c1', 1);
  s.dies('w1');
  s.notes('takeover', 2, { dispatched: false });
  s.executes('c2', 2, { worker: 'w2' });
  s.leaves('succeeded', 2);
});

good('a worker dies after it landed, and the record is held in doubt', (s) => {
  s.starts('c1');
  s.claims('c1', 1);
  s.lands(1);
  s.dies('w1');
  s.starts('c2', { worker: 'w2' });
  s.tells('c2', 'in doubt', { worker: 'w2', fence: 1 });
  s.leaves('running', 1, { lapsed: true, inDoubt: true });
});

good('a verifier finds what a dead worker landed', (s) => {
  s.starts('c1');
  s.claims('c1', 1);
  const effect = s.lands(1);
  s.dies('w1');
  s.notes('takeover', 2, { for: 'verify' });
  s.starts('c2', { worker: 'w2' });
  s.claims('c2', 2, { worker: 'w2' });
  s.settles(2, 'succeeded', { worker: 'w2' });
  s.tells('c2', 'replayed', { worker: 'w2', fence: 2, value: 'v1', effect });
  s.leaves('succeeded', 2);
});

good(
  'an attempt lands beside its accepted repetition, which dies before it tells anybody',
  (s) => {
    s.starts('c1');
    s.claims('c1', 1);
    s.notes('takeover', 2, { for: 'rerun', accepted: true });
    s.starts('c2', { worker: 'w2' });
    s.claims('c2', 2, { worker: 'w2' });
    const first = s.lands(1);
    s.notes('lateNews', 1, { outcome: 'succeeded' });
    s.tells('c1', 'executed', { fence: 1, value: 'v1', effect: first });
    const second = s.lands(2);
    s.notes('duplicate', 2, { fence: 1 });
    s.settles(2, 'succeeded', { worker: 'w2' });
    s.dies('w2');
    s.starts('c3', { worker: 'w3' });
    s.tells('c3', 'replayed', { worker: 'w3', fence: 2, value: 'v2', effect: second });
    s.leaves('succeeded', 2);
  },
  { policy: { keyed: false, repeats: true } },
);

good(
  'a provider that honours the key lands it once for two attempts',
  (s) => {
    s.starts('c1');
    s.claims('c1', 1);
    const effect = s.lands(1, { providerKey: 'k1' });
    s.dies('w1');
    s.notes('takeover', 2, { for: 'rerun' });
    s.starts('c2', { worker: 'w2' });
    s.claims('c2', 2, { worker: 'w2' });
    s.settles(2, 'succeeded', { worker: 'w2' });
    s.tells('c2', 'executed', { worker: 'w2', fence: 2, effect });
    s.leaves('succeeded', 2);
  },
  { policy: { keyed: true, repeats: false } },
);

good('a refusal is told as a refusal', (s) => {
  s.starts('c1');
  s.claims('c1', 1);
  s.settles(1, 'failed');
  s.tells('c1', 'failed', { code: 'FAILED', fence: 1 });
  s.leaves('failed', 1);
});

good('what did not land is run again and lands then', (s) => {
  s.starts('c1');
  s.claims('c1', 1);
  s.settles(1, 'released');
  s.tells('c1', 'not landed', { fence: 1 });
  s.executes('c2', 2);
  s.leaves('succeeded', 2);
});

good('a person accepts a second effect', (s) => {
  s.starts('c1');
  s.claims('c1', 1);
  s.lands(1);
  s.settles(1, 'unknown');
  s.tells('c1', 'in doubt', { fence: 1 });
  s.notes('resolved', 2, { act: 'runAgain' });
  s.executes('c2', 3);
  s.leaves('succeeded', 3);
});

good(
  'a contract accepts a second effect',
  (s) => {
    s.starts('c1');
    s.claims('c1', 1);
    s.lands(1);
    s.dies('w1');
    s.notes('takeover', 2, { for: 'rerun' });
    s.executes('c2', 2, { worker: 'w2' });
    s.leaves('succeeded', 2);
  },
  { policy: { keyed: false, repeats: true } },
);

good('what was given up may have landed', (s) => {
  s.starts('c1');
  s.claims('c1', 1);
  s.lands(1);
  s.settles(1, 'unknown');
  s.tells('c1', 'in doubt', { fence: 1 });
  s.notes('resolved', 2, { act: 'abandon' });
  s.starts('c2');
  s.tells('c2', 'failed', { code: 'FAILED', fence: 2 });
  s.leaves('failed', 2, { doubtFence: 1 });
});

good('a person has seen it, though our log of effects has not', (s) => {
  s.starts('c1');
  s.claims('c1', 1);
  s.settles(1, 'unknown');
  s.tells('c1', 'in doubt', { fence: 1 });
  s.notes('resolved', 2, { act: 'landed' });
  s.starts('c2');
  s.tells('c2', 'replayed', { fence: 2, value: 'seen' });
  s.leaves('succeeded', 2);
});

good(
  'a request outlives even the quiet time, and its duplicate is shown',
  (s) => {
    s.starts('c1');
    s.claims('c1', 1);
    s.notes('takeover', 2, { for: 'verify' });
    s.notes('cleared', 2);
    s.executes('c2', 2, { worker: 'w2' });
    s.lands(1);
    s.notes('duplicate', 1);
    s.tells('c1', 'nothing', { code: 'LEASE_LOST' });
    s.leaves('succeeded', 2);
  },
  { requestsOutliveQuiet: true },
);

good(
  'a window ends, and the same intent is a new generation with a new key',
  (s) => {
    s.starts('c1');
    s.claims('c1', 1);
    s.lands(1, { providerKey: 'k1' });
    s.settles(1, 'succeeded');
    s.tells('c1', 'executed', { fence: 1, effect: 1 });
    s.starts('c2');
    s.claims('c2', 2, { generation: 2 });
    s.lands(2, { providerKey: 'k2' });
    s.settles(2, 'succeeded', { generation: 2 });
    s.tells('c2', 'executed', { generation: 2, fence: 2, effect: 2 });
    s.leaves('succeeded', 2, { generation: 2 });
  },
  { policy: { keyed: true, repeats: false }, expires: true },
);

good('a record expired and was pruned', (s) => void s.executes('c1', 1), { expires: true });

good('a record was forgotten', (s) => {
  s.executes('c1', 1);
  s.notes('resolved', 2, { act: 'forget' });
});

good('done, but the store could not be told', (s) => {
  s.starts('c1');
  s.claims('c1', 1);
  const effect = s.lands(1);
  s.tells('c1', 'unrecorded', { code: 'UNRECORDED', fence: 1, effect });
  s.leaves('running', 1, { lapsed: true, inDoubt: true });
});

good('two tenants use the same key', (s) => {
  s.executes('c1', 1);
  s.executes('c2', 1, { namespace: 'bank' });
  s.leaves('succeeded', 1);
  s.leaves('succeeded', 1, { namespace: 'bank' });
});

good('the world does not know fences', (s) => {
  s.starts('c1');
  s.claims('c1', 1);
  s.settles(1, 'released');
  s.tells('c1', 'not landed', { fence: 1 });
  s.starts('c2');
  s.claims('c2', 2);
  s.lands(null);
  s.settles(2, 'succeeded');
  s.tells('c2', 'executed', { fence: 2 });
  s.leaves('succeeded', 2);
});

good(
  'while the store is down, what may be repeated runs beside the ledger: before, between and without records',
  (s) => {
    for (const call of ['c1', 'c2']) {
      s.starts(call);
      s.lands(0);
      s.tells(call, 'executed', { key: null, generation: null, fence: null });
      s.starts(`${call} of another`, { key: 'never recorded' });
      s.lands(0, { key: 'never recorded' });
    }
    s.executes('c3', 3, { generation: 3 });
    s.leaves('succeeded', 3, { generation: 3 });
    for (const call of ['c1 of another', 'c2 of another'])
      s.tells(call, 'executed', { key: null, generation: null, fence: null });
  },
  { policy: { keyed: false, repeats: true }, expires: true },
);
