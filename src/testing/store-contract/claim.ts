// Who may act on a key.

import assert from 'node:assert/strict';
import { claimRequest, lease, quiet, resultOf, second, theKey, theNamespace } from './attempt.ts';
import { behaviour, type Scene, unchanged } from './scene.ts';

export const claimCases = [
  behaviour(
    'the first claim of a key wins and starts a generation that its fence names',
    [],
    async ({ take }) => {
      const { record, takeover } = await take();
      assert.equal(takeover, false);
      assert.equal(record.status, 'running');
      assert.ok(record.fence >= 1);
      assert.equal(record.generation, record.fence);
      assert.equal(record.providerKeyFence, record.fence);
      assert.equal(record.attempts, 1);
      assert.equal(record.crashes, 0);
      assert.equal(record.dispatched, false);
      assert.equal(record.doubtFence, null);
      assert.equal(record.firstDispatchedAt, null);
      assert.equal(record.inDoubt, false);
      assert.equal(record.lapsed, false);
      assert.equal(record.expiresAt, null);
      assert.equal(record.settledAt, null);
      // A store far away adds what it may know the time too early by: its holder counts from when it asked.
      assert.ok(record.leaseLeftMs > 0 && record.leaseLeftMs <= lease + second);
    },
  ),

  behaviour('a claim returns what was requested, without its token', [], async ({ take, read }) => {
    const asked = {
      version: '2.1.0',
      effect: 'irreversible' as const,
      keyed: true,
      fingerprint: 'f-1',
      owner: 'host 7, pid 41',
      args: '{"amount":"10.00"}',
      content: '{"body":"9f2c"}',
      notAfter: 1_900_000_000_000,
      conversation: 'conversation-1',
      turn: 'turn-1',
      toolCallId: 'call_1',
      run: 'run-1',
      retention: {
        windowMs: 1_000,
        failureWindowMs: 100,
        keep: true,
        periodEndsAt: 1_900_000_000_000,
      },
    };
    const { record, token } = await take(asked);
    const found = await read();
    for (const [field, value] of Object.entries(asked)) {
      assert.deepEqual(record[field as keyof typeof record], value, field);
      assert.deepEqual(found[field as keyof typeof found], value, field);
    }
    assert.equal(record.contract, 'mail.send');
    assert.equal(JSON.stringify(found).includes(token), false, 'a token is its holder’s secret');
  }),

  behaviour('a claim that counts as the dispatch is dispatched', [], async ({ take }) => {
    const { record } = await take({ crossing: true });
    assert.equal(record.dispatched, true);
    assert.equal(record.firstDispatchedAt, record.readAt);
    assert.equal(record.lastDispatchedAt, record.readAt);
    assert.equal(record.inFlightMs, quiet);
  }),

  behaviour('a claim for verify never counts as a dispatch', [], async ({ take }) => {
    const { record } = await take({ crossing: true, for: 'verify' });
    assert.equal(record.dispatched, false);
    assert.equal(record.lastDispatchedAt, null);
  }),

  behaviour('no claim wins over a running record, for any reason', [], async (scene) => {
    const holder = await scene.take({ crossing: true });
    for (const reason of ['execute', 'rerun', 'verify'] as const) {
      await unchanged(scene, async () => {
        const record = await scene.lose({ for: reason });
        assert.equal(record.fence, holder.fence);
        assert.equal(record.status, 'running');
      });
    }
  }),

  behaviour('a claim on a succeeded record loses and gets its result', [], async (scene) => {
    const holder = await scene.take();
    await holder.settle('succeeded', { result: resultOf('{"id":7}', 'msg_7') });
    for (const reason of ['execute', 'rerun', 'verify'] as const) {
      await unchanged(scene, async () => {
        const record = await scene.lose({ for: reason });
        assert.equal(record.status, 'succeeded');
        assert.deepEqual(record.result, resultOf('{"id":7}', 'msg_7'));
      });
    }
  }),

  behaviour('a claim on a failed record loses and gets its error', [], async (scene) => {
    const holder = await scene.take();
    await holder.settle('failed', { error: { code: 'FAILED', message: 'no such card', retriable: false } });
    for (const reason of ['execute', 'rerun', 'verify'] as const) {
      await unchanged(scene, async () => {
        const record = await scene.lose({ for: reason });
        assert.equal(record.status, 'failed');
        assert.equal(record.error?.message, 'no such card');
      });
    }
  }),

  behaviour(
    'a claim on an unknown record loses unless it has a reason to take the doubt',
    [],
    async (scene) => {
      const holder = await scene.take({ crossing: true });
      await holder.settle('unknown');
      await unchanged(scene, async () => {
        assert.equal((await scene.lose()).inDoubt, true);
      });
      assert.equal((await scene.take({ for: 'verify' })).record.doubtFence, holder.fence);
    },
  ),

  behaviour('a released record is free: the next claim continues its generation', [], async (scene) => {
    const first = await scene.take();
    await first.settle('released');
    const next = await scene.take();
    assert.equal(next.generation, first.generation);
    assert.equal(next.record.providerKeyFence, first.record.providerKeyFence);
    assert.equal(next.fence, first.fence + 1);
    assert.equal(next.record.attempts, 2);
    assert.equal(next.takeover, false);
    assert.equal(next.record.doubtFence, null);
    assert.deepEqual([next.record.settledAt, next.record.expiresAt], [null, null]);
  }),

  behaviour('each claim stores its own args, contract and caller', ['time'], async (scene) => {
    await (await scene.take({ effect: 'write-idempotent', crossing: true })).settle('released');
    await scene.advance(1_000);
    const asked = {
      version: '3.0.0',
      effect: 'irreversible' as const,
      keyed: true,
      owner: 'another',
      args: '{"to":"bob"}',
      content: 'other words',
      notAfter: 1_900_000_000_000,
      conversation: 'conversation-2',
      turn: 'turn-2',
      toolCallId: 'call_2',
      run: 'run-2',
      networkMs: 7_000,
      retention: { windowMs: 5_000, failureWindowMs: 50, keep: true, periodEndsAt: null },
    };
    const holder = await scene.take({ ...asked, crossing: true });
    for (const [field, value] of Object.entries(asked)) {
      assert.deepEqual(holder.record[field as keyof typeof holder.record], value, field);
    }
    assert.equal(holder.record.updatedAt, holder.record.readAt);
    assert.equal(holder.record.createdAt, holder.record.readAt - 1_000);
    assert.equal((await holder.settle('unknown')).record?.inFlightMs, asked.networkMs);
    const { record } = await holder.succeed();
    assert.equal(record?.expiresAt, (record?.readAt ?? 0) + 5_000);
  }),

  behaviour(
    'code of another major version continues a free record with its own args, under a fresh key',
    [],
    async (scene) => {
      const first = await scene.take({ keyed: true, crossing: false });
      await first.send({ prepared: '"of version 1"' });
      await first.settle('released');
      const next = await scene.take({ keyed: true, version: '2.0.0', args: '{"mail":"ada"}' });
      assert.equal(next.generation, first.generation);
      assert.deepEqual(
        [next.record.version, next.record.args, next.record.prepared, next.record.providerKeyFence],
        ['2.0.0', '{"mail":"ada"}', null, next.fence],
      );
    },
  ),

  behaviour('a released record is free for another fingerprint, as a new generation', [], async (scene) => {
    const first = await scene.take({ fingerprint: 'a', crossing: true });
    await first.settle('released');
    const next = await scene.take({ fingerprint: 'b', args: '{"to":"bob"}' });
    assert.equal(next.generation, next.fence);
    assert.ok(next.fence > first.fence);
    assert.equal(next.record.providerKeyFence, next.fence);
    assert.equal(next.record.attempts, 1);
    assert.equal(next.record.args, '{"to":"bob"}');
    assert.equal(next.record.lastDispatchedAt, null);
  }),

  behaviour('another fingerprint loses to every record that is not free', [], async (scene) => {
    const endings = ['running', 'succeeded', 'failed', 'unknown'] as const;
    for (const ending of endings) {
      const key = `mail.send/=${ending}`;
      const holder = await scene.take({ key, fingerprint: 'a', crossing: true });
      if (ending !== 'running') await holder.settle(ending);
      for (const reason of ['execute', 'rerun', 'verify'] as const) {
        await unchanged(
          scene,
          async () => {
            const record = await scene.lose({ key, fingerprint: 'b', for: reason });
            assert.equal(record.fingerprint, 'a');
            assert.equal(record.status, ending);
          },
          key,
        );
      }
    }
  }),

  behaviour('a claim for verify or a re-run also wins when nothing is in doubt', [], async (scene) => {
    const verifier = await scene.take({ for: 'verify' });
    assert.equal(verifier.record.doubtFence, null);
    await verifier.settle('released');
    const again = await scene.take({ for: 'rerun', rerunWithinMs: 1 });
    assert.equal(again.record.doubtFence, null);
    assert.equal(again.takeover, false);
  }),

  behaviour('loosening a contract does not loosen what is already open', [], async (scene) => {
    const first = await scene.take({ effect: 'irreversible' });
    await first.settle('unknown');
    const next = await scene.take({ effect: 'write-non-idempotent', for: 'rerun' });
    assert.equal(next.record.effect, 'irreversible');
  }),

  behaviour('after "did not land", the next attempt’s contract applies', [], async (scene) => {
    const first = await scene.take({ effect: 'irreversible' });
    await first.settle('released');
    const next = await scene.take({ effect: 'write-non-idempotent' });
    assert.equal(next.record.effect, 'write-non-idempotent');
  }),

  behaviour('a waiter continues the generation it waited for', [], async (scene) => {
    const first = await scene.take();
    await first.settle('released');
    const waiter = await scene.take({ generation: first.generation });
    assert.equal(waiter.generation, first.generation);
  }),

  behaviour('a waiter never runs another generation', [], async (scene) => {
    const first = await scene.take({ fingerprint: 'a' });
    await first.settle('released');
    const other = await scene.take({ fingerprint: 'b' });
    await other.settle('released');
    const record = await scene.lose({ fingerprint: 'b', generation: first.generation });
    assert.equal(record.generation, other.generation);
  }),

  behaviour('a claim for one generation starts no other, not even on a free key', [], async (scene) => {
    const first = await scene.take({ fingerprint: 'a' });
    await first.settle('released');
    await scene.lose({ fingerprint: 'b', generation: first.generation });
    assert.equal((await scene.read()).fence, first.fence);
  }),

  behaviour('a waiter whose generation expired or is gone gets nothing to run', ['time'], async (scene) => {
    const first = await scene.take();
    await first.succeed();
    await scene.advance(2 * 24 * 3_600_000);
    await unchanged(scene, () => scene.lose({ generation: first.generation }));
    await scene.pruneAll();
    const answer = await scene.store.claim(claimRequest({ generation: first.generation }));
    assert.equal(answer.won, false);
    assert.equal(answer.record, undefined);
    assert.equal(await scene.store.read(theNamespace, theKey), undefined);
  }),

  ...olderForms(),
];

function olderForms() {
  const older = 'mail.sent/2026-06-19/older';
  const oldest = 'mail.sent/2026-06-19/oldest';
  const forms = { olderKeys: [older, oldest] };
  const missing = async ({ store }: Scene, key: string) =>
    assert.equal(await store.read(theNamespace, key), undefined);

  return [
    behaviour('a live record under an older form of the key answers for it', [], async (scene) => {
      const before = await scene.take({ key: oldest, crossing: true });
      assert.equal((await scene.lose(forms)).key, oldest);
      await before.succeed('"then"');
      const record = await scene.lose(forms);
      assert.equal(record.key, oldest);
      assert.equal(record.result?.text, '"then"');
      await missing(scene, theKey);
    }),

    behaviour('a record in doubt under an older form is taken under that form', ['time'], async (scene) => {
      const before = await scene.take({ key: older, crossing: true });
      await scene.lapse();
      await scene.lose(forms);
      const verifier = await scene.take({ ...forms, for: 'verify' });
      assert.equal(verifier.key, older);
      assert.equal(verifier.record.doubtFence, before.fence);
    }),

    behaviour('a free record under an older form is continued', [], async (scene) => {
      const before = await scene.take({ key: older });
      await before.settle('released');
      const next = await scene.take(forms);
      assert.equal(next.key, older);
      assert.equal(next.generation, before.generation);
      await missing(scene, theKey);
    }),

    behaviour('the form that is not free decides, whatever its position', [], async (scene) => {
      await (await scene.take({ key: theKey })).settle('released');
      await (await scene.take({ key: oldest, crossing: true })).succeed();
      assert.equal((await scene.lose(forms)).key, oldest);
    }),

    behaviour('if two forms are not free, the current one decides', [], async (scene) => {
      await (await scene.take({ key: older, crossing: true })).succeed();
      const present = await scene.take({ crossing: true });
      assert.equal((await scene.lose(forms)).key, theKey);
      await present.succeed('"now"');
      assert.equal((await scene.lose(forms)).result?.text, '"now"');
    }),

    behaviour('an expired record under an older form is ignored', ['time'], async (scene) => {
      await (await scene.take({ key: older })).succeed();
      await scene.advance(2 * 24 * 3_600_000);
      assert.equal((await scene.take(forms)).key, theKey);
    }),

    behaviour('retrying a claim that won an older form returns the same claim', [], async (scene) => {
      await (await scene.take({ key: older })).settle('released');
      const request = claimRequest(forms);
      await scene.store.claim(request);
      const again = await scene.store.claim(request);
      assert.ok(again.won);
      assert.equal(again.record.key, older);
    }),
  ];
}
