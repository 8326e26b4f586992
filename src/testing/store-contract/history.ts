// The exceptional part of a record's life, and what was appended to it.

import assert from 'node:assert/strict';
import { theKey, theNamespace } from './attempt.ts';
import { behaviour } from './scene.ts';

export const historyCases = [
  behaviour('an ordinary execution leaves no events', [], async (scene) => {
    const first = await scene.take();
    await first.renew();
    await first.settle('released');
    const second = await scene.take();
    await second.send();
    await second.succeed();
    await scene.lose();
    assert.deepEqual(await scene.events(), []);
  }),

  behaviour('events are listed in the order in which they happened', ['time'], async (scene) => {
    const first = await scene.take({ crossing: true });
    await scene.lapse();
    const second = await scene.take({ for: 'verify' });
    await first.settle('failed');
    await second.settle('unknown');
    await scene.advance(1_000);
    await scene.resolved({ type: 'runAgain' });
    await first.succeed();
    const events = await scene.events();
    assert.deepEqual(
      events.map(({ type }) => type),
      ['takeover', 'fenced', 'resolved', 'lateNews'],
    );
    const instants = events.map(({ at }) => at);
    assert.deepEqual(
      instants,
      instants.toSorted((a, b) => a - b),
    );
    for (const event of events) {
      assert.deepEqual(
        [event.namespace, event.key, event.generation],
        [theNamespace, theKey, first.generation],
      );
    }
  }),

  behaviour('events can be appended, and get the store’s time', [], async (scene) => {
    const { fence, generation, record } = await scene.take();
    const about = { namespace: theNamespace, key: theKey, generation, fence };
    await scene.store.append([
      { ...about, type: 'replayed', detail: { pid: 7, conversation: 'c', nested: { list: [1, null] } } },
      { ...about, type: 'conflict', detail: {} },
    ]);
    await scene.store.append([]);
    const events = await scene.events();
    assert.deepEqual(
      events.map(({ type }) => type),
      ['replayed', 'conflict'],
    );
    assert.deepEqual(events[0]?.detail, { pid: 7, conversation: 'c', nested: { list: [1, null] } });
    assert.ok((events[0]?.at ?? 0) >= record.readAt);
  }),

  behaviour('each key has its own history', [], async (scene) => {
    const about = { namespace: theNamespace, generation: 1, fence: 1, detail: {} };
    for (const key of ['mail.send/=a', 'mail.send/=b']) await scene.take({ key });
    await scene.store.append([
      { ...about, key: 'mail.send/=c', type: 'replayed' },
      { ...about, key: 'mail.send/=a', type: 'replayed' },
      { ...about, key: 'mail.send/=b', type: 'conflict' },
      { ...about, key: 'mail.send/=a', namespace: 'elsewhere', type: 'observed' },
    ]);
    assert.deepEqual(await scene.eventTypes('mail.send/=a'), ['replayed']);
    assert.deepEqual(await scene.eventTypes('mail.send/=b'), ['conflict']);
    // Of a record that is not there nothing is kept: it would stay for ever.
    assert.deepEqual(await scene.eventTypes('mail.send/=c'), []);
  }),

  behaviour(
    'of the notes of a record the latest 200 are kept, and all other events',
    ['time'],
    async (scene) => {
      await scene.take();
      await scene.lapse();
      const { fence, generation } = await scene.take();
      const about = { namespace: theNamespace, key: theKey, generation, fence };
      const from = (first: number, count: number) =>
        Array.from({ length: count }, (_, n) => ({
          ...about,
          type: (['replayed', 'conflict', 'noted'] as const)[n % 3] ?? 'replayed',
          detail: { n: first + n },
        }));
      await scene.store.append(from(0, 150));
      await scene.store.append([
        ...from(150, 150),
        { ...about, key: 'mail.send/=other', type: 'replayed', detail: {} },
      ]);
      const [first, ...notes] = await scene.events();
      assert.equal(first?.type, 'takeover');
      assert.deepEqual(
        notes.map(({ detail }) => detail.n),
        Array.from({ length: 200 }, (_, n) => 100 + n),
      );
    },
  ),

  behaviour('of late reports the latest 200 are kept, and all other events', ['time'], async (scene) => {
    const first = await scene.take({ crossing: true });
    await scene.lapse();
    await scene.take({ for: 'verify' });
    for (let n = 0; n < 203; n += 1) await first.settle('failed');
    assert.deepEqual(await scene.eventTypes(theKey), ['takeover', ...new Array<string>(200).fill('fenced')]);
  }),

  behaviour('a history is the same from every handle', ['time'], async (scene) => {
    await scene.take();
    await scene.lapse();
    await scene.take();
    assert.deepEqual(await scene.elsewhere.history(theNamespace, theKey), await scene.events());
  }),
];
