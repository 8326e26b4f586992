// Histories in which one promise was broken: the checker names exactly that one.
import { describe, expect, test } from 'vitest';
import { check, formatViolation, type Invariant, invariantNames } from '../support/checker/index.ts';
import { type Story, story, theKey } from './story.ts';

interface Bad {
  readonly what: string;
  readonly tell: (story: Story) => void;
  readonly options?: Parameters<Story['logs']>[0];
}

const keyed = { policy: { keyed: true, repeats: false } };

const bad: Record<Invariant, readonly Bad[]> = {
  'one completion': [
    {
      what: 'the success of a fenced attempt was accepted beside another',
      tell(s) {
        s.starts('c1');
        s.claims('c1', 1);
        s.lands(1, { providerKey: 'k1' });
        s.notes('takeover', 2, { for: 'rerun' });
        s.starts('c2', { worker: 'w2' });
        s.claims('c2', 2, { worker: 'w2' });
        s.settles(2, 'succeeded', { worker: 'w2' });
        s.settles(1, 'succeeded');
        s.tells('c1', 'executed', { fence: 1, value: 'v1' });
        s.tells('c2', 'executed', { worker: 'w2', fence: 2, value: 'v1' });
        s.leaves('succeeded', 2);
      },
      options: keyed,
    },
  ],
  'no silent surplus': [
    {
      what: 'an attempt that may have landed was simply run again',
      tell(s) {
        s.starts('c1');
        s.claims('c1', 1);
        s.lands(1);
        s.dies('w1');
        s.notes('takeover', 2);
        s.executes('c2', 2, { worker: 'w2' });
        s.leaves('succeeded', 2);
      },
    },
    {
      what: 'a re-run by key came after the provider’s window',
      tell(s) {
        s.starts('c1');
        s.claims('c1', 1);
        s.lands(1, { providerKey: 'k1' });
        s.dies('w1');
        s.notes('takeover', 2, { for: 'rerun' });
        s.starts('c2', { worker: 'w2' });
        s.claims('c2', 2, { worker: 'w2' });
        s.lands(2, { providerKey: 'k1' });
        s.settles(2, 'succeeded', { worker: 'w2' });
        s.tells('c2', 'executed', { worker: 'w2', fence: 2 });
        s.leaves('succeeded', 2);
      },
      options: keyed,
    },
    {
      what: '"not landed" was believed too early',
      tell(s) {
        s.starts('c1');
        s.claims('c1', 1);
        s.dies('w1');
        s.notes('takeover', 2, { for: 'verify' });
        s.notes('cleared', 2);
        s.executes('c2', 2, { worker: 'w2' });
        s.lands(1);
        s.leaves('succeeded', 2);
      },
    },
    {
      what: 'one accepted repeat does not cover two',
      tell(s) {
        s.starts('c1');
        s.claims('c1', 1);
        s.lands(1);
        s.settles(1, 'unknown');
        s.tells('c1', 'in doubt', { fence: 1 });
        s.notes('resolved', 2, { act: 'runAgain' });
        s.executes('c2', 3);
        s.lands(3);
        s.leaves('succeeded', 3);
      },
    },
    {
      what: 'a duplicate shows itself, though no request outlived the quiet time',
      tell(s) {
        s.starts('c1');
        s.claims('c1', 1);
        s.lands(1);
        s.notes('takeover', 2);
        s.executes('c2', 2, { worker: 'w2' });
        s.notes('duplicate', 1);
        s.tells('c1', 'nothing', { code: 'LEASE_LOST' });
        s.leaves('succeeded', 2);
      },
    },
  ],
  'nothing lost': [
    {
      what: 'a call was told "executed" and nothing landed',
      tell(s) {
        s.starts('c1');
        s.claims('c1', 1);
        s.settles(1, 'succeeded');
        s.tells('c1', 'executed', { fence: 1, value: 'v1' });
        s.leaves('succeeded', 1);
      },
    },
    {
      what: 'a new generation was answered with the effect of the one before',
      tell(s) {
        s.starts('c1');
        s.claims('c1', 1);
        const effect = s.lands(1, { providerKey: 'k1' });
        s.settles(1, 'succeeded');
        s.tells('c1', 'executed', { fence: 1, effect });
        s.starts('c2');
        s.claims('c2', 2, { generation: 2 });
        s.settles(2, 'succeeded', { generation: 2 });
        s.tells('c2', 'executed', { generation: 2, fence: 2, effect });
        s.leaves('succeeded', 2, { generation: 2 });
      },
      options: { ...keyed, expires: true },
    },
    {
      what: 'the record says "succeeded" and nothing landed',
      tell(s) {
        s.starts('c1');
        s.claims('c1', 1);
        s.settles(1, 'succeeded');
        s.dies('w1');
        s.leaves('succeeded', 1);
      },
    },
  ],
  'refused means nothing landed': [
    {
      what: 'the mail went out, then the database refused the connection',
      tell(s) {
        s.starts('c1');
        s.claims('c1', 1);
        s.lands(1);
        s.settles(1, 'released');
        s.tells('c1', 'not landed', { code: 'ECONNREFUSED', fence: 1 });
        s.leaves('released', 1);
      },
    },
    {
      what: 'a later refusal erased the doubt of an earlier attempt',
      tell(s) {
        s.starts('c1');
        s.claims('c1', 1);
        s.lands(1);
        s.dies('w1');
        s.notes('takeover', 2, { for: 'rerun' });
        s.starts('c2', { worker: 'w2' });
        s.claims('c2', 2, { worker: 'w2' });
        s.settles(2, 'failed', { worker: 'w2' });
        s.tells('c2', 'failed', { worker: 'w2', fence: 2 });
        s.leaves('failed', 2);
      },
      options: keyed,
    },
    {
      what: 'a record was closed as not landed with a landed attempt unaccounted for',
      tell(s) {
        s.starts('c1');
        s.claims('c1', 1);
        s.lands(1);
        s.dies('w1');
        s.notes('resolved', 2, { act: 'notLanded', force: false });
        s.leaves('released', 2);
      },
    },
  ],
  'replays equal': [
    {
      what: 'two replays differ',
      tell(s) {
        s.executes('c1', 1);
        for (const value of ['v1', 'v2']) {
          s.starts(`replay ${value}`);
          s.tells(`replay ${value}`, 'replayed', { fence: 1, value });
        }
        s.leaves('succeeded', 1);
      },
    },
    {
      what: 'a replay differs from the execution',
      tell(s) {
        s.executes('c1', 1);
        s.starts('c2');
        s.tells('c2', 'replayed', { fence: 1, value: 'something else' });
        s.leaves('succeeded', 1);
      },
    },
  ],
  'acknowledged is durable': [
    { what: 'a record is gone that was answered', tell: (s) => void s.executes('c1', 1) },
    {
      what: 'a claim is gone whose effect landed',
      tell(s) {
        s.starts('c1');
        s.claims('c1', 1);
        s.lands(1);
        s.dies('w1');
      },
    },
    {
      what: 'a success was answered and is not there',
      tell(s) {
        s.executes('c1', 1);
        s.leaves('running', 1, { lapsed: true, inDoubt: true });
      },
    },
    {
      what: 'a success was forgotten by itself, and done again',
      tell(s) {
        s.executes('c1', 1);
        s.executes('c2', 2, { generation: 2 });
        s.leaves('succeeded', 2, { generation: 2 });
      },
    },
    {
      what: 'the store went back to an older generation',
      tell(s) {
        s.executes('c1', 1);
        s.executes('c2', 2, { generation: 2 });
        s.leaves('succeeded', 1);
      },
      options: { expires: true },
    },
  ],
  'everything ends': [
    {
      what: 'a call of a living worker never got an answer',
      tell(s) {
        s.executes('c1', 1);
        s.starts('c2', { worker: 'w2' });
        s.leaves('succeeded', 1);
      },
    },
    {
      what: 'a record is still held after every lease should have ended',
      tell(s) {
        s.starts('c1');
        s.claims('c1', 1);
        s.dies('w1');
        s.leaves('running', 1);
      },
    },
  ],
  'fences grow': [
    {
      what: 'two calls were given the same fence',
      tell(s) {
        s.starts('c1');
        s.claims('c1', 1);
        s.executes('c2', 1, { worker: 'w2' });
        s.tells('c1', 'nothing', { code: 'LEASE_LOST' });
        s.leaves('succeeded', 1);
      },
    },
    {
      what: 'a takeover did not raise the fence',
      tell(s) {
        s.notes('takeover', 2);
        s.notes('takeover', 2);
        s.executes('c1', 2);
        s.leaves('succeeded', 2);
      },
    },
    {
      what: 'a fence was used again after pruning',
      tell(s) {
        s.executes('c1', 3, { generation: 3 });
        s.starts('c0');
        s.claims('c0', 3, { generation: 1 });
        s.tells('c0', 'nothing', { code: 'LEASE_LOST' });
        s.leaves('succeeded', 3, { generation: 3 });
      },
      options: { expires: true },
    },
    {
      what: 'the record fell behind a fence that was given out',
      tell(s) {
        s.executes('c1', 1);
        s.starts('c2');
        s.claims('c2', 2);
        s.tells('c2', 'nothing', { code: 'LEASE_LOST' });
        s.leaves('succeeded', 1);
      },
    },
  ],
  'namespaces apart': [
    {
      what: 'a tenant was answered with the effect of another',
      tell(s) {
        const effect = s.executes('c1', 1);
        s.leaves('succeeded', 1);
        s.starts('c2', { namespace: 'bank' });
        s.claims('c2', 1, { namespace: 'bank' });
        s.settles(1, 'succeeded', { namespace: 'bank' });
        s.lands(1, { namespace: 'bank' });
        s.tells('c2', 'executed', { namespace: 'bank', fence: 1, effect });
        s.leaves('succeeded', 1, { namespace: 'bank' });
      },
    },
    {
      what: 'two tenants sent the same key to the provider',
      tell(s) {
        for (const namespace of ['shop', 'bank']) {
          s.starts(`of ${namespace}`, { namespace });
          s.claims(`of ${namespace}`, 1, { namespace });
          s.lands(1, { namespace, providerKey: 'order-1' });
          s.settles(1, 'succeeded', { namespace });
          s.tells(`of ${namespace}`, 'executed', { namespace, fence: 1 });
          s.leaves('succeeded', 1, { namespace });
        }
      },
      options: keyed,
    },
    {
      what: 'two generations sent the same key to the provider',
      tell(s) {
        for (const generation of [1, 2]) {
          const call = `c${generation}`;
          s.starts(call);
          s.claims(call, generation, { generation });
          s.lands(generation, { providerKey: 'k1' });
          s.settles(generation, 'succeeded', { generation });
          s.tells(call, 'executed', { generation, fence: generation });
        }
        s.leaves('succeeded', 2, { generation: 2 });
      },
      options: { ...keyed, expires: true },
    },
  ],
};

for (const invariant of invariantNames) {
  describe(invariant, () => {
    test.each(bad[invariant])('$what', ({ tell, options }) => {
      const told = story();
      tell(told);
      const found = check(told.logs(options));
      expect(found.map((violation) => violation.invariant)).toEqual([invariant]);
    });
  });
}

test('a violation can be followed line by line', () => {
  const told = story();
  told.starts('c1');
  told.claims('c1', 1);
  told.lands(1);
  told.dies('w1');
  told.notes('takeover', 2, { from: 'w1' });
  told.executes('c2', 2, { worker: 'w2' });
  told.leaves('succeeded', 2);
  const [violation] = check(told.logs());
  expect(formatViolation(violation!).split('\n')).toEqual([
    '✗ no silent surplus: 2 effects landed, and no repeat was accepted.',
    `  shop · ${theKey} · generation 1`,
    '    +0 ms  w1 claims for c1, fence 1',
    '    +10 ms  EFFECT 1 lands at mail by fence 1',
    '    +30 ms  store notes takeover, fence 2 {"from":"w1"}',
    '    +50 ms  w2 claims for c2, fence 2',
    '    +60 ms  EFFECT 2 lands at mail by fence 2',
    '    +70 ms  w2 settles succeeded, fence 2',
    '    +80 ms  w2 tells c2: executed, fence 2, value v1, effect 2',
    '    at the end  succeeded, fence 2, generation 1',
  ]);
});
