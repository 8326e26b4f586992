// How a relay goes about its rows: where a group stops, how long it pauses, how often an idle one polls.

import { describe, expect, test } from 'vitest';
import { systemRandom } from '../../src/core/clock.ts';
import { NotLanded, Rejected, type Semel, systemClock } from '../../src/index.ts';
import type { Store } from '../../src/store/store.ts';
import { places } from './places.ts';

function mailer(semel: Semel, send: (to: string) => unknown = () => 'sent') {
  const sent: string[] = [];
  const tool = semel.tool({
    name: 'mail.send',
    effect: 'irreversible',
    per: 'ever',
    async run({ to }: { to: string }) {
      await send(to);
      sent.push(to);
    },
  });
  return { tool, sent };
}

/** The store with its outbox watched. */
function watching(store: Store, watch: Partial<NonNullable<Store['outbox']>>): Store {
  return Object.defineProperty({ ...store }, 'outbox', {
    get: () => ({ ...store.outbox!, ...watch }),
  });
}

describe.each(places)('$name', ({ open }) => {
  test('a group stops at a dead row, unless it is told to skip', async () => {
    await using at = await open();
    const { tool, sent } = mailer(at.semel, (to) => {
      if (to === '2') throw new Rejected('no such address');
    });
    for (const to of ['1', '2', '3', '4'])
      await at.transaction((tx) => tool.stage(tx, { to }, { group: 'a' }));
    await at.transaction((tx) => tool.stage(tx, { to: 'x' }, { group: 'b' }));
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 2, dead: 1 });
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 0, dead: 0 });
    expect(sent.toSorted()).toEqual(['1', 'x']);
    expect(await at.semel.outbox.drain({ onBlocked: 'skip' })).toMatchObject({ delivered: 2, dead: 0 });
    expect(sent.filter((to) => to !== 'x')).toEqual(['1', '3', '4']);
  });

  test.each([
    ['at least half of it', 0, [500, 1_000, 2_000, 4_000, 5_000]],
    ['at most all of it', 0.999_999, [1_000, 2_000, 4_000, 8_000, 10_000]],
  ])(
    'the pause after a failure doubles up to its limit, and is by chance: %s',
    async (_, fraction, expected) => {
      const pauses: number[] = [];
      await using at = await open({
        random: { ...systemRandom, fraction: () => fraction },
        wrap(store) {
          return watching(store, {
            async putBack(row) {
              pauses.push(Math.round(row.waitMs));
              await store.outbox!.putBack(row);
            },
          });
        },
      });
      const { tool } = mailer(at.semel, () => {
        throw new NotLanded('the mail server is closed');
      });
      await at.transaction((tx) => tool.stage(tx, { to: 'ada' }));
      while (pauses.length < expected.length) {
        await at.change('UPDATE outbox SET due = 0');
        await at.semel.outbox.drain({ maxBackoff: '10s' });
      }
      expect(pauses).toEqual(expected);
    },
  );

  test('an idle relay polls less and less often, up to `idle`, and often again after a staging', async () => {
    const stop = new AbortController();
    const pauses: number[] = [];
    let polls = 0;
    await using at = await open({
      random: { ...systemRandom, fraction: () => 0.5 },
      clock: {
        ...systemClock,
        setTimeout(run, ms, background) {
          const isPause = background === undefined && ms <= 1_000;
          if (isPause) pauses.push(ms);
          return systemClock.setTimeout(run, isPause ? 1 : ms, background);
        },
      },
      wrap(store) {
        return watching(store, {
          async take(query) {
            const rows = await store.outbox!.take(query);
            polls += 1;
            if (polls === 10) await at.transaction((tx) => tool.stage(tx, { to: 'ada' }));
            if (polls === 20) stop.abort();
            return rows;
          },
        });
      },
    });
    const { tool, sent } = mailer(at.semel);
    await at.semel.outbox.relay({ signal: stop.signal });
    expect(pauses.slice(0, 9)).toEqual([5, 10, 20, 40, 80, 160, 320, 640, 1_000]);
    expect(Math.max(...pauses.slice(10))).toBe(40);
    expect(sent).toEqual(['ada']);
  });
});
