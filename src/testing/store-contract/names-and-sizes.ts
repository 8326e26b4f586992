// What a store is given, it gives back: strange names, other namespaces, large texts.

import assert from 'node:assert/strict';
import { resultOf, theKey, theNamespace } from './attempt.ts';
import { behaviour } from './scene.ts';

const strange = [
  `it's "quoted"`,
  'line\nbreak\r\nand\ttab',
  'emoji 😀👩‍👩‍👧 and ünïcödé',
  '100%_done',
  '%',
  '_',
  "'; DROP TABLE records; --",
  '__proto__',
  'constructor',
  'back\\slash',
  '../../etc/passwd',
  '{"json":true}',
  'a:b/c=d?e#f',
  ' leading and trailing ',
  'null',
  '0',
  'é',
  'e\u0301',
];

export const nameAndSizeCases = [
  behaviour('unusual keys are stored unchanged and kept apart', [], async (scene) => {
    for (const name of strange) {
      const holder = await scene.take({ key: `mail.send/=${name}`, args: JSON.stringify(name) });
      await holder.succeed(JSON.stringify({ name }));
    }
    for (const name of strange) {
      const key = `mail.send/=${name}`;
      const record = await scene.lose({ key });
      assert.equal(record.key, key);
      assert.equal(record.args, JSON.stringify(name));
      assert.equal(record.result?.text, JSON.stringify({ name }));
      const found = (await scene.all({ prefix: key })).map((listed) => listed.key);
      const expected = strange
        .filter((other) => other.startsWith(name))
        .map((other) => `mail.send/=${other}`);
      assert.deepEqual(found.toSorted(), expected.toSorted());
    }
    assert.equal((await scene.all({ limit: 4 })).length, strange.length);
  }),

  behaviour('unusual namespaces are stored unchanged and kept apart', [], async (scene) => {
    for (const namespace of strange) {
      const holder = await scene.take({ namespace });
      await holder.succeed(JSON.stringify(namespace));
      await scene.store.append([
        { namespace, key: theKey, generation: 1, fence: 1, type: 'observed', detail: { namespace } },
      ]);
    }
    for (const namespace of strange) {
      const record = await scene.store.read(namespace, theKey);
      assert.equal(record?.namespace, namespace);
      assert.equal(record.result?.text, JSON.stringify(namespace));
      assert.equal((await scene.all({ namespace })).length, 1);
      const events = await scene.store.history(namespace, theKey);
      assert.deepEqual(
        events.map(({ detail }) => detail),
        [{ namespace }],
      );
    }
  }),

  behaviour('one key in two namespaces is two records', [], async (scene) => {
    const ours = await scene.take({ fingerprint: 'a' });
    const theirs = await scene.take({ namespace: 'elsewhere', fingerprint: 'b' });
    assert.equal((await ours.renew()).held, true);
    assert.equal(
      (await scene.store.renew({ ...ours, namespace: 'elsewhere', leaseMs: 1, inFlightForMs: 1 })).held,
      false,
    );
    await ours.succeed('"ours"');
    assert.equal((await theirs.renew()).held, true);
    assert.equal((await scene.store.read('elsewhere', theKey))?.status, 'running');
    assert.equal((await scene.store.read(theNamespace, theKey))?.result?.text, '"ours"');
    assert.equal(await scene.store.read('', theKey), undefined);
  }),

  behaviour('namespace and key are never confused, wherever they are split', [], async (scene) => {
    const pairs = [
      ['a', 'b/c'],
      ['a/b', 'c'],
      ['a b', 'c/d'],
      ['a', 'b c/d'],
    ] as const;
    for (const [namespace, key] of pairs) await scene.take({ namespace, key });
  }),

  behaviour('a verdict reaches its own namespace only', [], async (scene) => {
    await (await scene.take({ crossing: true })).settle('unknown');
    await (await scene.take({ namespace: 'elsewhere', crossing: true })).settle('unknown');
    await scene.resolved({ type: 'runAgain' });
    assert.equal((await scene.store.read('elsewhere', theKey))?.status, 'unknown');
    assert.deepEqual(await scene.store.history('elsewhere', theKey), []);
  }),

  behaviour('a listing shows its own namespace only', [], async (scene) => {
    await scene.take();
    await scene.take({ namespace: 'elsewhere' });
    await scene.take({ namespace: `${theNamespace}2` });
    assert.deepEqual(
      (await scene.all()).map(({ namespace }) => namespace),
      [theNamespace],
    );
  }),

  behaviour('large texts come back whole', [], async (scene) => {
    const large = JSON.stringify('ä😀\u2028'.repeat(200_000));
    const holder = await scene.take({ args: large, content: large });
    await holder.send({ prepared: large });
    assert.equal((await scene.read()).prepared, large);
    await holder.settle('succeeded', { result: resultOf(large) });
    const record = await scene.lose();
    assert.equal(record.args, large);
    assert.equal(record.result?.text, large);
  }),

  behaviour('a long key is kept whole', [], async (scene) => {
    const key = `mail.send/=${'k'.repeat(2_000)}`;
    await scene.take({ key });
    await scene.take({ key: `${key}!` });
    assert.equal((await scene.lose({ key })).key, key);
  }),
];
