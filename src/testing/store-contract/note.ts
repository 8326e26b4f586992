// The provider's id that an attempt notes while it runs: stored at once, about that attempt only, and never confused with
// that of another.

import assert from 'node:assert/strict';
import type { SettleRequest } from '../../store/store.ts';
import { lease, tail } from './attempt.ts';
import type { ContractCase } from './harness.ts';
import { behaviour, type Scene, unchanged } from './scene.ts';

/** As another process sees it. */
async function refOf(scene: Scene): Promise<string | null | undefined> {
  const { namespace, key } = await scene.read();
  return (await scene.elsewhere.read(namespace, key))?.result?.remoteRef;
}

export const noteCases: readonly ContractCase[] = [
  behaviour('what a running attempt notes is stored at once', [], async (scene) => {
    const holder = await scene.take({ crossing: true });
    const { held, record } = await holder.noteId('re_1', 1);
    assert.equal(held, true);
    assert.equal(record?.status, 'running');
    assert.equal(await refOf(scene), 're_1');
    await holder.renew();
    assert.equal(await refOf(scene), 're_1');
  }),

  behaviour('a crash after the note keeps it, and a verifier gets it', ['time'], async (scene) => {
    const holder = await scene.take({ crossing: true });
    await holder.noteId('re_1', 1);
    await scene.lapse();
    assert.equal((await scene.read()).inDoubt, true);
    const verifier = await scene.take({ for: 'verify' });
    assert.equal(verifier.record.result?.remoteRef, 're_1');
    await verifier.settle('unknown');
    assert.equal(await refOf(scene), 're_1');
    const rerun = await scene.take({ for: 'rerun', crossing: true });
    assert.equal(rerun.record.result?.remoteRef, 're_1');
  }),

  behaviour('a note renews the lease', ['time'], async (scene) => {
    const holder = await scene.take({ crossing: true });
    await scene.advance(lease - 1_000);
    const { record } = await holder.noteId('re_1', 1);
    assert.equal(record?.leaseLeftMs, lease);
  }),

  behaviour('a note after the lease counts unless somebody took over', ['time'], async (scene) => {
    const holder = await scene.take({ crossing: true });
    await scene.advance(2 * lease);
    assert.equal((await holder.noteId('re_1', 1)).held, true);
    assert.equal(await refOf(scene), 're_1');
  }),

  behaviour('a success from elsewhere keeps what its attempt has noted', [], async (scene) => {
    const result = { text: '1', omitted: null, remoteRef: null };
    const holder = await scene.take({ crossing: true });
    await holder.noteId('re_1', 1);
    const { record } = await holder.settle('succeeded', { result, keepNote: true });
    assert.deepEqual(record?.result, { ...result, remoteRef: 're_1' });
    assert.equal(await refOf(scene), 're_1');
    // It may know better by then, or say that what it noted did not land.
    for (const [n, over] of [
      { keepNote: true, result: { ...result, remoteRef: 're_2' } },
      { result },
    ].entries()) {
      const other = await scene.take({ crossing: true, key: `mail.send/2026-06-19/other-${n}` });
      await other.noteId('re_1', 1);
      const settled = await other.settle('succeeded', over as Partial<SettleRequest>);
      assert.equal(settled.record?.result?.remoteRef, over.result.remoteRef);
    }
  }),

  behaviour('an attempt that lost its claim cannot note anything', ['time'], async (scene) => {
    const zombie = await scene.take({ crossing: true });
    await scene.lapse();
    const next = await scene.take({ for: 'verify' });
    await unchanged(scene, async () => assert.equal((await zombie.noteId('re_1', 1)).held, false));
    await next.settle('unknown');
    await unchanged(scene, () => zombie.noteId('re_1', 1));
    await unchanged(scene, () => next.noteId('re_2', 1));
  }),

  behaviour('nothing is noted about an attempt that has ended', [], async (scene) => {
    const holder = await scene.take({ crossing: true });
    await holder.succeed();
    await unchanged(scene, async () => assert.equal((await holder.noteId('re_1', 1)).held, false));
  }),

  behaviour('a late copy of an earlier note changes nothing', [], async (scene) => {
    const holder = await scene.take({ crossing: true });
    await holder.noteId('re_1', 1);
    await holder.noteId(null, 2);
    await holder.noteId('re_1', 1);
    assert.equal(await refOf(scene), null);
    await holder.noteId('re_2', 3);
    await holder.noteId(null, 2);
    await holder.noteId('re_2', 3);
    assert.equal(await refOf(scene), 're_2');
  }),

  behaviour('each claim counts its own notes', ['time'], async (scene) => {
    const first = await scene.take({ crossing: true });
    await first.noteId('re_1', 1);
    await first.noteId('re_1b', 2);
    await scene.lapse();
    const second = await scene.take({ for: 'rerun', crossing: true });
    await second.noteId('re_2', 1);
    assert.equal(await refOf(scene), 're_2');
  }),

  behaviour('a note about an effect that did not land is gone with the next attempt', [], async (scene) => {
    const first = await scene.take({ crossing: true });
    await first.noteId('re_1', 1);
    await first.settle('released');
    const second = await scene.take({ crossing: true });
    assert.equal(second.record.result, null);
  }),

  behaviour('the same after a lease that ended before anything was dispatched', ['time'], async (scene) => {
    const first = await scene.take();
    await first.noteId('re_1', 1);
    await scene.lapse();
    const second = await scene.take();
    assert.equal(second.record.result, null);
  }),

  behaviour('the same after a verdict "not landed"', ['time'], async (scene) => {
    const first = await scene.take({ crossing: true });
    await first.noteId('re_1', 1);
    await first.settle('unknown');
    await scene.advance(tail);
    const verifier = await scene.take({ for: 'verify' });
    const cleared = await verifier.cleared({ crossing: true });
    assert.equal(cleared.result, null);
  }),

  behaviour('a dead attempt keeps its note', [], async (scene) => {
    const holder = await scene.take({ crossing: true });
    await holder.noteId('re_1', 1);
    const record = await scene.resolved({ type: 'died' });
    assert.equal(record.inDoubt, true);
    assert.equal(record.result?.remoteRef, 're_1');
  }),

  behaviour('"landed" refers to the noted id, unless another is named', [], async (scene) => {
    const landed = (remoteRef: string | null) =>
      ({ type: 'landed', result: { text: '"ok"', omitted: null, remoteRef } }) as const;
    const holder = await scene.take({ crossing: true });
    await holder.noteId('re_1', 1);
    await holder.settle('unknown');
    assert.equal((await scene.resolved(landed(null))).result?.remoteRef, 're_1');
    const other = await scene.take({ crossing: true, key: 'mail.send/2026-06-19/other' });
    await other.noteId('re_1', 1);
    await other.settle('unknown');
    const record = await scene.resolved(landed('re_9'), { key: other.key });
    assert.equal(record.result?.remoteRef, 're_9');
  }),

  behaviour(
    'an attempt that did not land keeps the id of an earlier one in doubt',
    ['time'],
    async (scene) => {
      const first = await scene.take({ crossing: true });
      await first.noteId('re_1', 1);
      await scene.lapse();
      const second = await scene.take({ for: 'rerun', crossing: true });
      await second.noteId('re_2', 1);
      await second.settle('unknown');
      assert.equal(await refOf(scene), 're_2');
      // It knows more now: its own effect did not land, and the first is as open as before.
      const result = { text: null, omitted: 'it is not known to have landed', remoteRef: 're_1' };
      const { record } = await second.settle('released', { result });
      assert.equal(record?.status, 'unknown');
      assert.equal(await refOf(scene), 're_1');
    },
  ),
];
