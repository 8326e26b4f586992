// Listing, page by page.

import assert from 'node:assert/strict';
import { theNamespace } from './attempt.ts';
import { behaviour, type Scene } from './scene.ts';

const keysOf = async (scene: Scene, query: Parameters<Scene['all']>[0]) =>
  (await scene.all(query)).map(({ key }) => key);

export const pagingCases = [
  behaviour('an empty store has an empty page and no next one', [], async ({ store }) => {
    assert.deepEqual(await store.list({ namespace: theNamespace, limit: 10 }), {
      items: [],
      next: undefined,
    });
  }),

  behaviour('pages follow key order, with each record once', [], async (scene) => {
    const keys = Array.from({ length: 23 }, (_, i) => `mail.send/=${String(i).padStart(3, '0')}`);
    for (const key of keys.toReversed()) await scene.take({ key });
    for (const limit of [1, 5, 22, 23, 24]) {
      assert.deepEqual(await keysOf(scene, { limit }), keys, `limit ${limit}`);
    }
    const page = await scene.store.list({ namespace: theNamespace, limit: 5 });
    assert.equal(page.items.length, 5);
    assert.notEqual(page.next, undefined);
  }),

  behaviour(
    'a page continues where the last one ended, whatever changed in between',
    ['time'],
    async (scene) => {
      for (const name of ['a', 'c', 'e', 'g'])
        await (await scene.take({ key: `mail.send/=${name}` })).succeed();
      const first = await scene.store.list({ namespace: theNamespace, limit: 2 });
      await scene.take({ key: 'mail.send/=b' });
      await scene.take({ key: 'mail.send/=d' });
      const rest = await scene.store.list({ namespace: theNamespace, limit: 10, after: first.next ?? '' });
      assert.deepEqual(
        rest.items.map(({ key }) => key),
        ['mail.send/=d', 'mail.send/=e', 'mail.send/=g'],
      );
    },
  ),

  behaviour('a listed record equals the record that is read', ['time'], async (scene) => {
    await scene.take({ crossing: true });
    await scene.lapse();
    const [listed] = await scene.all();
    assert.deepEqual(listed, await scene.read());
  }),

  behaviour('records are listed by status', [], async (scene) => {
    for (const outcome of ['succeeded', 'failed', 'released', 'unknown'] as const) {
      await (await scene.take({ key: `mail.send/=${outcome}`, crossing: true })).settle(outcome);
    }
    await scene.take({ key: 'mail.send/=running' });
    for (const status of ['running', 'succeeded', 'failed', 'released', 'unknown'] as const) {
      assert.deepEqual(await keysOf(scene, { status, limit: 1 }), [`mail.send/=${status}`]);
    }
  }),

  behaviour(
    'records are listed by doubt, which may start just because a lease ends',
    ['time'],
    async (scene) => {
      await scene.take({ key: 'mail.send/=a', crossing: true });
      await (await scene.take({ key: 'mail.send/=b', crossing: true })).settle('unknown');
      await scene.take({ key: 'mail.send/=c' });
      await (await scene.take({ key: 'mail.send/=d' })).succeed();
      assert.deepEqual(await keysOf(scene, { inDoubt: true }), ['mail.send/=b']);
      await scene.lapse();
      const verifier = await scene.take({ key: 'mail.send/=b', for: 'verify' });
      assert.deepEqual(await keysOf(scene, { inDoubt: true, limit: 1 }), ['mail.send/=a']);
      assert.deepEqual(await keysOf(scene, { inDoubt: false, limit: 1 }), [
        'mail.send/=b',
        'mail.send/=c',
        'mail.send/=d',
      ]);
      await scene.lapse();
      assert.deepEqual(await keysOf(scene, { inDoubt: true, limit: 1 }), ['mail.send/=a', 'mail.send/=b']);
      await verifier.renew();
      assert.deepEqual(await keysOf(scene, { inDoubt: true, limit: 1 }), ['mail.send/=a']);
    },
  ),

  behaviour('records are listed by contract, and a contract is not its namesake', [], async (scene) => {
    for (const key of ['mail.send/=1', 'mail.send/=2', 'mail.sender/=1', 'mail/=1', 'mailXsend/=1']) {
      await scene.take({ key });
    }
    assert.deepEqual(await keysOf(scene, { contract: 'mail.send', limit: 1 }), [
      'mail.send/=1',
      'mail.send/=2',
    ]);
    assert.deepEqual(await keysOf(scene, { contract: 'mail' }), ['mail/=1']);
    assert.deepEqual(await keysOf(scene, { contract: 'absent' }), []);
  }),

  behaviour('a prefix is taken literally', [], async (scene) => {
    const keys = ['m/=100%', 'm/=100%-off', 'm/=1000', 'm/=a_b', 'm/=axb', 'm/=A_B', 'm/=a*b', 'm/=a\\b'];
    for (const key of keys) await scene.take({ key });
    assert.deepEqual((await keysOf(scene, { prefix: 'm/=100%' })).sort(), ['m/=100%', 'm/=100%-off']);
    assert.deepEqual(await keysOf(scene, { prefix: 'm/=a_' }), ['m/=a_b']);
    assert.deepEqual(await keysOf(scene, { prefix: 'm/=A' }), ['m/=A_B']);
    assert.deepEqual(await keysOf(scene, { prefix: 'm/=a*' }), ['m/=a*b']);
    assert.deepEqual(await keysOf(scene, { prefix: 'm/=a\\' }), ['m/=a\\b']);
    assert.equal((await keysOf(scene, { prefix: '' })).length, keys.length);
  }),

  behaviour('a prefix also matches the highest character', [], async (scene) => {
    const keys = ['m/=x', 'm/=x\u{10ffff}', 'm/=x\uffff', 'm/=x😀', 'm/=xz'];
    for (const key of [...keys, 'm/=y', 'm/=']) await scene.take({ key });
    assert.deepEqual((await keysOf(scene, { prefix: 'm/=x', limit: 1 })).sort(), keys.toSorted());
  }),

  behaviour('records are listed by conversation', [], async (scene) => {
    await scene.take({ key: 'mail.send/=1', conversation: 'one' });
    await scene.take({ key: 'mail.send/=2', conversation: 'two' });
    await scene.take({ key: 'mail.send/=3', conversation: 'one' });
    await scene.take({ key: 'mail.send/=4' });
    assert.deepEqual(await keysOf(scene, { conversation: 'one', limit: 1 }), [
      'mail.send/=1',
      'mail.send/=3',
    ]);
  }),

  behaviour('filters combine, across pages', [], async (scene) => {
    for (let i = 0; i < 20; i += 1) {
      const holder = await scene.take({
        key: `${i % 2 === 0 ? 'mail' : 'pay'}.send/=${String(i).padStart(2, '0')}`,
        conversation: i % 3 === 0 ? 'one' : 'two',
        crossing: true,
      });
      if (i % 4 === 0) await holder.settle('unknown');
    }
    const query = { contract: 'mail.send', conversation: 'two', status: 'unknown', inDoubt: true } as const;
    assert.deepEqual(await keysOf(scene, { ...query, limit: 2 }), [
      'mail.send/=04',
      'mail.send/=08',
      'mail.send/=16',
    ]);
  }),

  behaviour('namespaces with records are listed', [], async (scene) => {
    await scene.take({ namespace: 'zoo' });
    await scene.take({ namespace: 'app' });
    await scene.take({ namespace: 'app', key: 'mail.send/=2' });
    assert.deepEqual(await scene.elsewhere.namespaces(), ['app', 'zoo']);
  }),
];
