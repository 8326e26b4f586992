// Between a process and the store: requests and replies that come late, twice, or never.

import { isRepeatable } from '../../src/core/contract/words.ts';
import { SemelError } from '../../src/core/errors.ts';
import type { Asking, ClaimRequest, Store, StoredRecord } from '../../src/store/store.ts';
import type { Chance } from './chance.ts';
import type { EchoedName, Echoes } from './echoes.ts';
import type { Faults } from './faults.ts';
import type { Log } from './log.ts';
import type { Owner, Scheduler } from './scheduler.ts';

export interface Outage {
  readonly from: number;
  readonly to: number;
  /** The request is applied, and only its answer is an error. */
  readonly after: boolean;
}

export interface NetworkOptions {
  readonly scheduler: Scheduler;
  readonly chance: Chance;
  readonly faults: Faults;
  readonly outages: readonly Outage[];
  readonly store: Store;
  readonly echoes: Echoes;
  readonly log: Log;
  /** All that ever ran, by the mark on their claims. */
  readonly processes: Map<string, Owner>;
}

/** A client gives an unanswered request up after this long. */
const clientTimeoutMs = 2_000;
const longestDelayMs = 60_000;
/** The ledger sets no deadline for these. */
const mayTakeLong: readonly string[] = ['list', 'history', 'namespaces', 'prune'];

/** What one process holds of the store. */
export function connect(
  { scheduler, chance, faults, outages, store, echoes, log }: NetworkOptions,
  owner: Owner,
  isNear: boolean,
): Store {
  const { profile } = faults;
  let isClosed = false;

  function isDown(): Outage | undefined {
    return faults.active
      ? outages.find(({ from, to }) => scheduler.now >= from && scheduler.now < to)
      : undefined;
  }

  function ask<Answer>(name: string, apply: () => Promise<Answer>, mayRepeat: boolean): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const fail = (afterMs: number, why: string) =>
        scheduler.after(afterMs, owner, `store does not answer (${name}: ${why})`, () =>
          reject(new SemelError('STORE_UNAVAILABLE', `The store did not answer: ${why}.`)),
        );
      if (isClosed) return fail(0, 'closed');
      const lagMs = chance.between(1, 15);
      const outage = isDown();
      if (outage !== undefined) {
        faults.count(outage.after ? 'outage after' : 'outage before');
        if (outage.after) scheduler.after(lagMs, undefined, `${name} arrives`, () => void apply());
        return fail(lagMs * 2, 'outage');
      }
      if (faults.strike('store never answers', profile.silence)) {
        if (chance.happens(0.5)) scheduler.after(lagMs, undefined, `${name} arrives`, () => void apply());
        // Of what may read everything, only the store's own client can say that it takes too long (write-a-store.md).
        return mayTakeLong.includes(name) ? fail(clientTimeoutMs, 'no answer') : undefined;
      }
      if (faults.strike('lost request', profile.lostRequest)) return fail(clientTimeoutMs, 'request lost');
      if (mayRepeat && faults.strike('duplicated request', profile.duplicate)) {
        const again = chance.happens(0.5) ? chance.between(1, 3_000) : chance.between(1, longestDelayMs);
        scheduler.after(lagMs + again, undefined, `${name} arrives once more`, () => void apply());
      }
      const delayed = faults.strike('delayed request', profile.delay);
      const arrivesMs = delayed ? lagMs + chance.between(500, longestDelayMs) : lagMs;
      const lost = faults.strike('lost reply', profile.lostReply);
      const backMs = chance.between(1, 15);
      const gaveUp = lost || arrivesMs + backMs > clientTimeoutMs;
      if (!mayRepeat && !gaveUp && chance.happens(0.75)) {
        // A look changes nothing: to see it and to hear of it may be one event, which halves most histories.
        scheduler.after(arrivesMs, owner, `${name} is answered`, () => void apply().then(resolve, reject));
        return undefined;
      }
      if (gaveUp) fail(clientTimeoutMs, lost ? 'reply lost' : 'request late');
      scheduler.after(arrivesMs, undefined, `${name} arrives`, () => {
        void apply().then(
          (answer) => {
            if (!gaveUp) scheduler.after(backMs, owner, `${name} is answered`, () => resolve(answer));
          },
          (error: unknown) => {
            if (!gaveUp) scheduler.after(backMs, owner, `${name} is answered`, () => reject(error as Error));
          },
        );
      });
      return undefined;
    });
  }

  function echoed<Name extends EchoedName>(
    name: Name,
    request: Parameters<Store[Name]>[0],
  ): ReturnType<Store[Name]> {
    const apply = () => {
      echoes.heard(name, request);
      return store[name](request as never) as ReturnType<Store[Name]>;
    };
    return ask(name, apply as () => Promise<unknown>, true) as ReturnType<Store[Name]>;
  }

  /** Somebody else executes it, and this call knows. */
  function mustWait(
    { toolCallId, fingerprint, caller, share }: ClaimRequest,
    record: StoredRecord | undefined,
  ): void {
    const call = log.calls.find(({ id }) => id === toolCallId);
    if (call === undefined || record?.status !== 'running' || record.lapsed) return;
    const isOwn = record.fingerprint === fingerprint && (record.caller === caller || share);
    if (isOwn && !isRepeatable(call.contract.effect)) call.waitsFor ??= record.generation;
  }

  /** From now on the call acts on this record, which may be one of an earlier form of its contract. */
  function hold({ toolCallId }: ClaimRequest, record: StoredRecord | undefined): void {
    const call = log.calls.find(({ id, worker }) => id === toolCallId && worker === owner);
    // A sweep claims in the name of a call that has long been answered.
    if (call !== undefined && call.told === undefined && record !== undefined) call.key = record.key;
  }

  return {
    // Opening is a matter of the client alone here: nothing is asked.
    open: () => store.open(),
    claim: Object.assign(
      async (request: ClaimRequest) => {
        log.askers.set(request.token, owner);
        const answer = await echoed('claim', request);
        if (answer.won) hold(request, answer.record);
        else mustWait(request, answer.record);
        return answer;
      },
      // As an embedded store is: looked at without a message. One over a wire has to be asked.
      isNear
        ? { glance: (asking: Asking) => (isClosed || isDown() ? undefined : store.claim.glance?.(asking)) }
        : { look: (asking: Asking) => ask('look', async () => store.claim.glance?.(asking), false) },
    ),
    async renew(request) {
      const answer = await echoed('renew', request);
      if (!answer.held) log.lost.add(request.token);
      return answer;
    },
    dispatch: (request) => echoed('dispatch', request),
    clear: (request) => echoed('clear', request),
    settle: (request) => echoed('settle', request),
    resolve: (request) => echoed('resolve', request),
    read: (ns, key) => ask('read', () => store.read(ns, key), false),
    list: (query) => ask('list', () => store.list(query), false),
    append: (events) => ask('append', () => store.append(events), false),
    namespaces: () => ask('namespaces', () => store.namespaces(), false),
    history: (ns, key) => ask('history', () => store.history(ns, key), false),
    prune: (limit) => ask('prune', () => store.prune(limit).finally(echoes.pruned), false),
    countExpired: () => store.countExpired(),
    close: async () => {
      isClosed = true;
    },
  };
}
