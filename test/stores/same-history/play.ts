// One random history, one call after the other, asked of a store and of the reference: a seed is a history. Tells where
// the two differ first.

import { isDeepStrictEqual } from 'node:util';
import type { ListQuery, Store } from '../../../src/store/index.ts';
import { type Chance, chance as chanceOf } from '../../sim/chance.ts';
import { ask } from '../../sim/far/calls.ts';
import { allKeys, namespace, people } from '../../sim/far/people.ts';
import { movableTime } from '../movable-time.ts';
import type { Ledger } from './ledgers.ts';

const pauses = [0, 0, 0, 1, 25, 700, 1_990, 5_000, 70_000, 4_000_000];

/** Undefined: they agree. */
export async function difference(
  seed: number,
  ledger: Ledger,
  reference: Ledger,
): Promise<string | undefined> {
  const chance = chanceOf(seed);
  await ledger.begin();
  await reference.begin();
  const stores = [await ledger.open(), await ledger.open()];
  const model = await reference.open();
  const folk = people(chance, movableTime().time().wall + 90_000);
  const calls = chance.between(15, 40);
  try {
    for (let nth = 1; nth <= calls; nth += 1) {
      const pauseMs = chance.pick(pauses);
      if (pauseMs > 0) await Promise.all([ledger.advance(pauseMs), reference.advance(pauseMs)]);
      const store = chance.pick(stores);
      const { what, play, heard } = nextOf(chance, folk);
      const [told, due] = [await answerOf(play, store), await answerOf(play, model)];
      heard?.(due);
      if (!isDeepStrictEqual(told, due)) return shown(seed, nth, what, told, due);
    }
    const last = await answerOf(everything, chance.pick(stores));
    const due = await answerOf(everything, model);
    return isDeepStrictEqual(last, due) ? undefined : shown(seed, calls + 1, 'what is left', last, due);
  } finally {
    await Promise.all(stores.map((store) => store.close()));
  }
}

interface Turn {
  readonly what: string;
  play(store: Store): Promise<unknown>;
  heard?(answer: unknown): void;
}

function nextOf(chance: Chance, folk: ReturnType<typeof people>): Turn {
  const kind = chance.below(100);
  if (kind < 5) return { what: 'prune', play: (store) => store.prune(100) };
  if (kind < 7) return { what: 'countExpired', play: (store) => store.countExpired() };
  if (kind < 11) {
    const query = {
      namespace,
      limit: chance.pick([1, 2, 50]),
      ...chance.pick([
        {},
        { status: 'running' },
        { status: 'succeeded' },
        { inDoubt: true },
        { inDoubt: false },
        { prefix: 'mail/b' },
        { contract: 'mail' },
        { conversation: 'c1' },
      ] as const),
    };
    return { what: `list ${JSON.stringify(query)}`, play: (store) => listPages(store, query) };
  }
  if (kind < 14) {
    const key = chance.pick(allKeys);
    const event = {
      namespace,
      key,
      generation: 1,
      fence: 1,
      type: 'replayed',
      detail: { by: 'c1' },
    } as const;
    return { what: `append to ${key}`, play: (store) => store.append([event]) };
  }
  const call = folk.next();
  return {
    what: `${call.name} ${JSON.stringify(call.request)}`,
    async play(store) {
      const answer = await ask(store, call);
      // The reference cannot be looked at: what follows shows that a look changes nothing. test/sim/far checks what it tells.
      return call.name === 'look' ? undefined : answer;
    },
    heard: (answer) => folk.heard(call, answer),
  };
}

/** Page by page: a cursor is the store's own. */
async function listPages(store: Store, query: ListQuery): Promise<unknown> {
  const pages: unknown[] = [];
  for (let after: string | undefined; ; ) {
    const { next, ...page } = await store.list({ ...query, ...(after === undefined ? {} : { after }) });
    pages.push(page);
    if (next === undefined) return pages;
    after = next;
  }
}

async function everything(store: Store): Promise<unknown> {
  return {
    records: await store.list({ namespace, limit: 100 }),
    events: await Promise.all(allKeys.map((key) => store.history(namespace, key))),
  };
}

async function answerOf(play: (store: Store) => Promise<unknown>, store: Store): Promise<unknown> {
  try {
    return await play(store);
  } catch (error) {
    return { threw: String(error) };
  }
}

function shown(seed: number, nth: number, what: string, told: unknown, due: unknown): string {
  return `seed ${seed}, call ${nth}: ${what}\n  told ${JSON.stringify(told)}\n  not  ${JSON.stringify(due)}`;
}
