// Whose a record is: another caller is neither let in nor given anything of it, and the effect is not run a second time.

import assert from 'node:assert/strict';
import type { Loss } from '../../store/store.ts';
import { claimRequest, lease, resultOf, theKey, window } from './attempt.ts';
import { behaviour, type Scene, unchanged } from './scene.ts';

const ann = { caller: 'ann' } as const;
const bob = { caller: 'bob' } as const;
const nobody = { caller: null } as const;
const purposes = ['execute', 'rerun', 'verify'] as const;
const endings = ['running', 'succeeded', 'failed', 'unknown'] as const;

/** A record that is not free, in each state that it can have. */
async function inEachState(
  scene: Scene,
  caller: { readonly caller: string | null },
  play: (key: string) => Promise<void>,
): Promise<void> {
  for (const ending of endings) {
    const key = `mail.send/=${ending}`;
    const holder = await scene.take({ key, crossing: true, ...caller });
    if (ending !== 'running') await holder.settle(ending, { result: resultOf('"for ann only"') });
    await play(key);
  }
}

export const callerCases = [
  behaviour('a record stores its caller', [], async (scene) => {
    const holder = await scene.take(ann);
    assert.equal(holder.record.caller, 'ann');
    await holder.succeed();
    assert.equal((await scene.read()).caller, 'ann');
    assert.equal((await scene.all())[0]?.caller, 'ann');
  }),

  behaviour(
    'another caller’s claim loses to every record that is not free, for any reason',
    [],
    async (scene) => {
      await inEachState(scene, ann, async (key) => {
        for (const other of [bob, nobody])
          for (const reason of purposes)
            await unchanged(scene, async () => void (await scene.lose({ key, for: reason, ...other })), key);
      });
    },
  ),

  behaviour('a record without a caller does not belong to every caller', [], async (scene) => {
    await inEachState(scene, nobody, async (key) => {
      for (const reason of purposes)
        await unchanged(scene, async () => void (await scene.lose({ key, for: reason, ...bob })), key);
    });
  }),

  behaviour(
    'another caller does not take over an attempt that lapsed after dispatch',
    ['time'],
    async (scene) => {
      await scene.take({ crossing: true, ...ann });
      await scene.advance(lease);
      for (const reason of purposes)
        await unchanged(scene, async () => void (await scene.lose({ for: reason, ...bob })));
      await scene.take({ for: 'verify', ...ann });
    },
  ),

  behaviour('the same caller still loses, re-runs and verifies as before', [], async (scene) => {
    const first = await scene.take({ crossing: true, ...ann });
    assert.equal((await scene.lose(ann)).status, 'running');
    await first.settle('unknown');
    const again = await scene.take({ for: 'rerun', ...ann });
    await again.settle('unknown');
    await (await scene.take({ for: 'verify', ...ann })).succeed('"ok"');
    assert.equal((await scene.lose(ann)).result?.text, '"ok"');
  }),

  behaviour(
    'with a shared contract, a record answers every caller, and any caller may take a doubt',
    [],
    async (scene) => {
      const shared = { share: true, ...bob } as const;
      const first = await scene.take({ crossing: true, ...ann });
      await scene.lose(shared);
      await first.settle('unknown');
      const verifier = await scene.take({ for: 'verify', ...shared });
      assert.equal(verifier.generation, first.generation);
      await verifier.succeed('"ok"');
      assert.equal((await scene.lose(shared)).result?.text, '"ok"');
    },
  ),

  behaviour('a free record is free for another caller, who gets no data of the first', [], async (scene) => {
    const first = await scene.take({ ...ann, args: '{"to":"ann"}', content: 'words of ann', keyed: true });
    await first.send({ prepared: '"Dear Ann"' });
    const error = { code: 'NOT_LANDED', message: 'refused for ann', retriable: true };
    await first.settle('released', { error });
    const next = await scene.take({ ...bob, args: '{"to":"bob"}', content: 'words of bob', keyed: true });
    const { record } = next;
    assert.notEqual(next.generation, first.generation);
    assert.notEqual(record.providerKeyFence, first.record.providerKeyFence);
    assert.equal(record.args, '{"to":"bob"}');
    assert.equal(record.content, 'words of bob');
    assert.equal(record.prepared, null);
    assert.equal(record.error, null);
    assert.equal(record.caller, 'bob');
  }),

  behaviour('a doubt that somebody accepted stays with its caller', [], async (scene) => {
    await (await scene.take({ crossing: true, ...ann })).settle('unknown');
    await scene.resolved({ type: 'runAgain' });
    for (const reason of purposes)
      await unchanged(scene, async () => void (await scene.lose({ for: reason, ...bob })));
    await scene.take(ann);
  }),

  behaviour('a record under an older form of the key keeps its caller too', [], async (scene) => {
    const key = 'mail.post/2026-06-19/k4q0';
    const holder = await scene.take({ crossing: true, ...ann });
    await scene.lose({ key, olderKeys: [theKey], ...bob });
    await holder.settle('unknown');
    for (const reason of purposes) await scene.lose({ key, olderKeys: [theKey], for: reason, ...bob });
    await scene.take({ key, olderKeys: [theKey], for: 'verify', ...ann });
  }),

  behaviour(
    'of several concurrent callers one wins, and the others lose to its record',
    [],
    async (scene) => {
      const stores = [scene.store, scene.elsewhere];
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, n) =>
          (stores[n % 2] as Scene['store']).claim(claimRequest({ crossing: true, caller: `caller ${n}` })),
        ),
      );
      const winners = answers.filter(({ won }) => won);
      assert.equal(winners.length, 1);
      for (const { record } of answers) assert.equal(record?.caller, winners[0]?.record?.caller);
    },
  ),

  behaviour('a glance returns what a claim would', [], async (scene) => {
    await (await scene.take(ann)).succeed('"ok"');
    const { claim } = scene.store;
    const glance = claim.glance ?? claim.look;
    if (glance === undefined) return;
    for (const caller of ['ann', 'bob', null]) {
      const loss: Loss | undefined = await glance(claimRequest({ caller }));
      assert.equal(loss?.won, false);
      assert.equal(loss?.record?.caller, 'ann');
    }
    await (await scene.take({ key: 'mail.send/=free', ...ann })).settle('released');
    assert.equal(await glance(claimRequest({ key: 'mail.send/=free', ...bob })), undefined);
  }),

  behaviour('a tombstone keeps its caller', ['time'], async (scene) => {
    const retention = { windowMs: window, failureWindowMs: window, keep: true, periodEndsAt: null };
    await (await scene.take({ retention, ...ann })).settle('succeeded', {
      result: resultOf(`"${'long '.repeat(100)}"`),
    });
    await scene.advance(window);
    await scene.pruneAll();
    assert.equal((await scene.lose({ retention, ...bob })).caller, 'ann');
  }),
];
