// A relay that stood still between taking a row and starting its effect: by then the row may be somebody else's.

import { describe, expect, test } from 'vitest';
import { type Semel, systemClock } from '../../src/index.ts';
import type { Store } from '../../src/store/store.ts';
import { places } from './places.ts';

/** What its clocks say of a time in which it stood still. */
const clocks = {
  'its machine slept': { mono: 0, wall: 1 },
  'the wall clock was set back meanwhile': { mono: 1, wall: -1 },
};

/** Stands still for longer than a loan, right after it has taken a row, for as long as `isSlow`. */
function slowRelay({ mono, wall } = clocks['its machine slept']) {
  const state = { isSlow: true, sleptMs: 0 };
  return {
    state,
    options: {
      clock: {
        ...systemClock,
        mono: () => systemClock.mono() + mono * state.sleptMs,
        now: () => Date.now() + wall * state.sleptMs,
      },
      wrap: (store: Store): Store => ({
        ...store,
        get outbox() {
          const outbox = store.outbox!;
          const take: typeof outbox.take = async (query) => {
            const taken = await outbox.take(query);
            if (state.isSlow && taken.length > 0) state.sleptMs += 31_000;
            return taken;
          };
          return { ...outbox, take };
        },
      }),
    },
  };
}

function writer(semel: Semel, effect: 'irreversible' | 'write-idempotent') {
  const written: string[] = [];
  const tool = semel.tool({
    name: 'order.write',
    effect,
    per: 'ever',
    run: async ({ id }: { id: string }) => void written.push(id),
  });
  return { tool, written };
}

describe.each(places)('$name', ({ open }) => {
  test('it does not forget that the effect was started in another life of its record', async () => {
    const { state, options } = slowRelay();
    await using at = await open(options);
    const { tool, written } = writer(at.semel, 'irreversible');
    await at.transaction((tx) => tool.stage(tx, { id: 'a' }));
    // Another relay started it; its record was pruned since.
    await at.change('UPDATE outbox SET generation = 99');
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 0, inDoubt: 1 });
    state.isSlow = false;
    await at.change('UPDATE outbox SET due = 0');
    expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 0, inDoubt: 1 });
    expect(written).toEqual([]);
  });

  test('what did not start is not counted as an attempt, and never dead by it', async () => {
    const { options } = slowRelay();
    await using at = await open(options);
    const { tool, written } = writer(at.semel, 'irreversible');
    await at.transaction((tx) => tool.stage(tx, { id: 'a' }));
    expect(await at.semel.outbox.drain({ maxTries: 1 })).toMatchObject({ retried: 1, dead: 0 });
    expect(await at.rows()).toMatchObject([
      { state: 0, tries: 0, reason: expect.stringMatching(/too long/) },
    ]);
    expect(written).toEqual([]);
  });

  const stills = Object.entries(clocks);
  test.each(stills)(
    'a harmless write does not start either, where %s: the next of its group may be done',
    async (_, still) => {
      const { state, options } = slowRelay(still);
      await using at = await open(options);
      const { tool, written } = writer(at.semel, 'write-idempotent');
      await at.transaction((tx) => tool.stage(tx, { id: 'a' }, { group: 'order 7' }));
      expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 0, retried: 1 });
      expect(written).toEqual([]);
      state.isSlow = false;
      await at.change('UPDATE outbox SET due = 0');
      expect(await at.semel.outbox.drain()).toMatchObject({ delivered: 1 });
      expect(written).toEqual(['a']);
    },
  );
});
