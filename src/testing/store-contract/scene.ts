// The setting of a case: a fresh store, a second handle to it, and a clock.

import assert from 'node:assert/strict';
import type {
  Act,
  ClaimRequest,
  EventType,
  ListQuery,
  ResolveAnswer,
  ResolveRefusal,
  ResolveRequest,
  Store,
  StoredRecord,
  StoreEvent,
} from '../../store/store.ts';
import { type Attempt, day, lease, lose, newToken, take, theKey, theNamespace } from './attempt.ts';
import { type ContractCase, type Need, type StoreHarness, whySkipped } from './harness.ts';

export interface Scene {
  readonly store: Store;
  /** What another process would see; the same store where the harness has no second handle. */
  readonly elsewhere: Store;
  advance(ms: number): Promise<void>;
  /** Lets the lease of the last claim run out. */
  lapse(): Promise<void>;
  unsteady(on: boolean, offMs?: number): Promise<void>;
  reboot(): Promise<void>;
  take(over?: Partial<ClaimRequest>): Promise<Attempt>;
  lose(over?: Partial<ClaimRequest>): Promise<StoredRecord>;
  read(key?: string): Promise<StoredRecord>;
  /** A verdict on what the record looks like now, unless the request says otherwise. */
  resolve(act: Act, over?: Partial<ResolveRequest>): Promise<ResolveAnswer>;
  /** A verdict that is expected to be accepted. */
  resolved(act: Act, over?: Partial<ResolveRequest>): Promise<StoredRecord>;
  events(key?: string): Promise<readonly StoreEvent[]>;
  eventTypes(key?: string): Promise<readonly EventType[]>;
  all(query?: Partial<ListQuery>): Promise<readonly StoredRecord[]>;
  pruneAll(limit?: number): Promise<number>;
}

/** One case of the contract; `needs` says what the harness must be able to do. */
export function behaviour(
  name: string,
  needs: readonly Need[],
  play: (scene: Scene) => Promise<void>,
): ContractCase {
  const contractCase: ContractCase = {
    name,
    needs,
    async run(harness) {
      const reason = whySkipped(contractCase, harness);
      if (reason !== undefined) {
        console.log(`skipped: ${name}: ${reason}`);
        return;
      }
      const store = await harness.create();
      const elsewhere = (await harness.second?.()) ?? store;
      try {
        await play(sceneOf(harness, store, elsewhere));
      } finally {
        if (elsewhere !== store) await elsewhere.close();
        await store.close();
      }
    },
  };
  return contractCase;
}

function sceneOf(harness: StoreHarness, store: Store, elsewhere: Store): Scene {
  const scene: Scene = {
    store,
    elsewhere,
    async advance(ms) {
      await harness.advance?.(ms);
    },
    lapse: () => scene.advance(lease),
    async unsteady(on, offMs = 2 * day) {
      await harness.unsteady?.(on, offMs);
    },
    async reboot() {
      await harness.reboot?.();
    },
    take: (over) => take(store, over),
    lose: (over) => lose(store, over),
    async read(key = theKey) {
      const record = await store.read(theNamespace, key);
      assert.ok(record !== undefined, 'there should be a record');
      return record;
    },
    async resolve(act, over = {}) {
      const key = over.key ?? theKey;
      const record = await store.read(theNamespace, key);
      return store.resolve({
        namespace: theNamespace,
        key,
        seen: seenIn(record),
        decidedAt: Number.MAX_SAFE_INTEGER,
        act,
        token: newToken(),
        by: 'operator',
        note: null,
        force: false,
        ...over,
      });
    },
    async resolved(act, over) {
      const answer = await scene.resolve(act, over);
      assert.ok(answer.ok, `the verdict was refused: ${answer.ok ? '' : answer.why}`);
      return answer.record;
    },
    events: (key = theKey) => store.history(theNamespace, key),
    eventTypes: async (key) => (await scene.events(key)).map(({ type }) => type),
    async all(query = {}) {
      const found: StoredRecord[] = [];
      let after: string | undefined;
      do {
        const page = await store.list({
          namespace: theNamespace,
          limit: 100,
          ...query,
          ...(after === undefined ? {} : { after }),
        });
        found.push(...page.items);
        after = page.next;
      } while (after !== undefined);
      return found;
    },
    async pruneAll(limit = 100) {
      let pruned = 0;
      for (;;) {
        const some = await store.prune(limit);
        assert.ok(some <= limit, `prune(${limit}) took ${some}`);
        if (some === 0) return pruned;
        pruned += some;
      }
    },
  };
  return scene;
}

/** What a verdict compares with. */
export function seenIn(record: StoredRecord | undefined): ResolveRequest['seen'] {
  return { fence: record?.fence ?? 0, dispatchedAt: record?.lastDispatchedAt ?? null };
}

export function refusedAs(answer: ResolveAnswer, why: ResolveRefusal): void {
  assert.ok(!answer.ok, `the verdict should be refused as "${why}"`);
  assert.equal(answer.why, why);
}

/** A record without what moves by itself as time passes. */
export function still(record: StoredRecord | undefined): Partial<StoredRecord> | undefined {
  if (record === undefined) return undefined;
  const {
    readAt: _at,
    leaseLeftMs: _left,
    inFlightMs: _quiet,
    lapsed: _lapsed,
    inDoubt: _doubt,
    ...rest
  } = record;
  return rest;
}

export async function unchanged(scene: Scene, play: () => Promise<unknown>, key = theKey): Promise<void> {
  const before = still(await scene.store.read(theNamespace, key));
  await play();
  assert.deepEqual(still(await scene.store.read(theNamespace, key)), before, 'nothing should have changed');
}
