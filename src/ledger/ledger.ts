// The only caller of a store: turns claims into verdicts, asks again where a reply was lost, and is the one
// place where events and audit notes are made.

import type { Clock, Random } from '../core/clock.ts';
import type {
  Asking,
  ClaimAnswer,
  ClaimRequest,
  ClearRequest,
  CrossAnswer,
  DispatchRequest,
  Held,
  ListQuery,
  Loss,
  Page,
  RenewAnswer,
  RenewRequest,
  ResolveAnswer,
  ResolveRequest,
  SettleAnswer,
  SettleRequest,
  Store,
  StoredRecord,
  StoreEvent,
  StoreFacts,
} from '../store/store.ts';
import { type Answer, answerFor, type Lost } from './answer.ts';
import { createAudit } from './audit.ts';
import { type CacheLimits, createCache, type Kept, type Wanted } from './cache.ts';
import { createEvents, type EventHub } from './events.ts';
import { type Asker, call, createDesk, Question, same } from './question.ts';

export interface LedgerOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly cache: CacheLimits;
}

/** What a verdict is about. */
export type Asked = Pick<
  ClaimRequest,
  'namespace' | 'key' | 'fingerprint' | 'generation' | 'caller' | 'share'
>;

/** Who asks, for the audit of a replay. */
export type Caller = Readonly<Record<string, unknown>>;

interface Heard<Request> {
  readonly request: Request;
  readonly askedAt: number;
}

export interface Ledger {
  readonly events: EventHub;
  facts(): Promise<StoreFacts>;
  /** What a claim would be told, where that is known at once: from memory. */
  remembered(asking: Asking & Wanted): Lost | undefined;
  /** The same from a store that need not be waited for. */
  peek(asking: Asking): Lost | undefined;
  /** The same from a store that has to be waited for; absent where that would not be cheaper than a claim. */
  readonly lookFirst:
    | ((asking: Asking, asker: Asker<Loss | undefined>) => Promise<Lost | undefined>)
    | undefined;
  claim(request: ClaimRequest, asker?: Asker<ClaimAnswer>): Promise<Answer>;
  /** Who asked first under a key that nothing runs under. It is no effect, so nobody hears of it. */
  firstUnder(request: ClaimRequest): Promise<Pick<StoredRecord, 'turn'>>;
  /** A caller is given this answer. */
  tell(answer: Lost, caller: Caller): void;
  /** A caller is given what is kept in memory: the same caller's further replays are only counted. */
  tellKept(kept: Kept, asker: object, owner: string, drift: readonly string[]): void;
  renew(request: RenewRequest): Promise<RenewAnswer>;
  dispatch(request: DispatchRequest): Promise<CrossAnswer>;
  clear(request: ClearRequest): Promise<CrossAnswer>;
  settle(request: SettleRequest): Promise<SettleAnswer>;
  /** An attempt that was ended by its timeout still runs, and may send; false: nobody waits for it any more. */
  goesOn(held: Held): Promise<boolean>;
  resolve(request: ResolveRequest): Promise<ResolveAnswer>;
  /** What a claim would be told, without claiming. */
  look(asked: Asked): Promise<Lost>;
  /** The same under whichever form of the key the record is. */
  find(request: ClaimRequest): Promise<Lost>;
  /** Leaves links to the record under the earlier forms of its key, where no record stands. */
  link(request: ClaimRequest): Promise<void>;
  read(namespace: string, key: string): Promise<StoredRecord | undefined>;
  list(query: ListQuery): Promise<Page<StoredRecord>>;
  history(namespace: string, key: string): Promise<readonly StoreEvent[]>;
  namespaces(): Promise<readonly string[]>;
  /** Somebody's own words about a record, for its history. */
  annotate(record: StoredRecord, detail: Caller): void;
  /** What `observe` would have done instead. */
  observe(record: StoredRecord, would: string): void;
  prune(limit: number): Promise<number>;
  countExpired(): Promise<number>;
  close(): Promise<void>;
}

type Looked = { readonly look: NonNullable<Store['claim']['look']> };

/** Those of records start at 1. */
const noGeneration = 0;

export function createLedger({ store, clock, random, cache: cacheLimits }: LedgerOptions): Ledger {
  const events = createEvents();
  const desk = createDesk(clock, random, events);
  const audit = createAudit(store, clock);
  const cache = createCache(cacheLimits);
  const marking = new Set<Promise<unknown>>();

  return {
    events,
    facts: () => askLong(() => store.open()),

    remembered(asking) {
      const kept = cache.get(asking, clock.mono(), clock.now());
      if (kept === undefined || answerFor(kept.record, asking).is !== 'replay') return undefined;
      return { is: 'replay', record: kept.record, kept };
    },
    peek(asking) {
      const askedAt = clock.mono();
      const loss = peekAt(asking);
      return loss && lost(asking, loss.record, askedAt);
    },

    lookFirst:
      store.claim.look &&
      ((asking, asker) => new Question(desk, store.claim as Looked, 'look', asking, heardLook, asker).ask()),

    claim(request, asker) {
      try {
        desk.refuseIfDown();
      } catch (error) {
        return Promise.reject(error);
      }
      return new Question(desk, store, 'claim', request, heardClaim, asker).ask();
    },
    async firstUnder(request) {
      desk.refuseIfDown();
      const { won, record } = await new Question(desk, store, 'claim', request, same<ClaimAnswer>).ask();
      if (won) mark(request, record);
      return record ?? request;
    },
    tell,
    tellKept(kept, asker, owner, drift) {
      const { record } = kept;
      if (events.isHeard('replayed'))
        events.emit('replayed', { ...about(record), settledAt: record.settledAt });
      if (kept.isCounted(asker, drift)) return;
      const detail = drift.length === 0 ? { ...asker, owner } : { ...asker, owner, drift };
      kept.countFrom(audit.note(noteOf(record, 'replayed', detail)), asker, drift);
    },

    renew: (request) => new Question(desk, store, 'renew', request, same<RenewAnswer>).ask(),
    dispatch: (request) => new Question(desk, store, 'dispatch', request, heardCrossing).ask(),
    clear: (request) => new Question(desk, store, 'clear', request, heardCrossing).ask(),
    settle: (request) => new Question(desk, store, 'settle', request, heardSettle).ask(),
    async goesOn(held) {
      const still = { outcome: 'unknown', result: null, error: null, keyed: false, found: false } as const;
      const { record } = await ask(() => store.settle({ ...held, ...still, late: true }));
      return record?.generation === held.generation && record.doubtFence !== null && !isSettled(record);
    },
    async resolve(request) {
      cache.drop(request.namespace, request.key, clock.mono());
      const answer = await ask(() => store.resolve(request)).finally(() => {
        // A replay that was under way may have put it back, or may still do so.
        cache.drop(request.namespace, request.key, clock.mono());
      });
      if (answer.ok)
        events.emit('resolved', { ...about(answer.record), act: request.act.type, by: request.by });
      return answer;
    },

    async look(asked) {
      return answerFor(await ask(() => store.read(asked.namespace, asked.key)), asked);
    },
    async find(request) {
      return answerFor(await standing(request), request);
    },
    async link(request) {
      await standing({ ...request, linksOnly: true });
    },
    read: (namespace, key) => ask(() => store.read(namespace, key)),
    list: (query) => askLong(() => store.list(query)),
    async history(namespace, key) {
      await audit.flush();
      return askLong(() => store.history(namespace, key));
    },
    namespaces: () => askLong(() => store.namespaces()),
    annotate(record, detail) {
      audit.note(noteOf(record, 'noted', detail));
    },
    observe(record, would) {
      audit.note(noteOf(record, 'observed', { would }));
    },
    prune: (limit) => askLong(() => store.prune(limit)),
    countExpired: () => askLong(() => store.countExpired()),
    async close() {
      await Promise.allSettled(marking);
      // A store that hangs does not keep a program from ending.
      const problem = await ask(() => flushAndClose().catch((error: unknown) => ({ error })));
      if (problem !== undefined) throw problem.error;
    },
  };

  async function flushAndClose(): Promise<undefined> {
    await audit.flush();
    await store.close();
  }

  /** A claim for a generation that never existed cannot win, but follows all forms of the key. */
  async function standing(request: ClaimRequest): Promise<StoredRecord | undefined> {
    const asked = { ...request, generation: noGeneration };
    const { record } = await new Question(desk, store, 'claim', asked, same<ClaimAnswer>).ask();
    return record;
  }

  /** About one record: answered within seconds, or STORE_UNAVAILABLE. */
  function ask<Answer>(question: () => Promise<Answer>): Promise<Answer> {
    return new Question(desk, call, 'by', question, same<Answer>).ask();
  }

  /** About many records, or before the store is ready: takes as long as it takes. */
  function askLong<Answer>(question: () => Promise<Answer>): Promise<Answer> {
    return new Question(desk, call, 'by', question, same<Answer>, undefined, false).ask();
  }

  function heardLook(loss: Loss | undefined, { request, askedAt }: Heard<Asking>): Lost | undefined {
    return loss && lost(request, loss.record, askedAt);
  }

  function heardClaim(answer: ClaimAnswer, { request, askedAt }: Heard<ClaimRequest>): Answer {
    if (!answer.won) return lost(request, answer.record, askedAt);
    const { record, takeover } = answer;
    if (events.isHeard('claimed')) events.emit('claimed', { ...about(record), attempt: record.attempts });
    if (takeover)
      events.emit('takeover', { ...about(record), from: record.doubtFence === null ? 'lapsed' : 'doubt' });
    if (record.dispatched && events.isHeard('dispatched')) events.emit('dispatched', about(record));
    return { is: 'execute', record };
  }

  function heardSettle(answer: SettleAnswer, { request, askedAt }: Heard<SettleRequest>): SettleAnswer {
    const { record, noted, settled, fenced } = answer;
    if (record !== undefined && settled) {
      cache.put(record, askedAt);
      if (!fenced) announce(record, isOldDoubt(request));
    }
    if (noted === 'fenced' || noted === 'lateNews') {
      events.emit(noted, { ...aboutRequest(request), outcome: request.outcome });
    } else if (noted === 'duplicate' || noted === 'contradiction') {
      events.emit(noted, aboutRequest(request));
    }
    return answer;
  }

  /** What is asked of the store next goes out together with this, or after it. */
  function mark({ namespace, token }: ClaimRequest, { key, fence, generation }: StoredRecord): void {
    const ending = { outcome: 'succeeded', result: null, error: null, keyed: false, found: false } as const;
    const settling = ask(() => store.settle({ namespace, key, token, fence, generation, ...ending }))
      // It lapses then, and with it the hint.
      .catch(() => undefined)
      .finally(() => marking.delete(settling));
    marking.add(settling);
  }

  /** A store that is not open yet or cannot be read throws: the claim waits for it, or tells why. */
  function peekAt(asking: Asking): Loss | undefined {
    try {
      return store.claim.glance?.(asking);
    } catch {
      return undefined;
    }
  }

  function lost(asked: Asked, record: StoredRecord | undefined, askedAt: number): Lost {
    if (record !== undefined) cache.put(record, askedAt);
    return answerFor(record, asked);
  }

  function tell(answer: Lost, caller: Caller): void {
    switch (answer.is) {
      case 'replay': {
        const { record } = answer;
        if (events.isHeard('replayed'))
          events.emit('replayed', { ...about(record), settledAt: record.settledAt });
        audit.note(noteOf(record, 'replayed', caller));
        break;
      }
      case 'conflict':
        events.emit('conflict', about(answer.record));
        audit.note(noteOf(answer.record, 'conflict', caller));
        break;
      case 'foreign':
        events.emit('conflict', about(answer.record));
        audit.note(noteOf(answer.record, 'conflict', { ...caller, because: 'it is of another caller' }));
        break;
      case 'busy': {
        const { owner, leaseLeftMs } = answer.record;
        events.emit('busy', { ...about(answer.record), owner, leaseLeftMs });
        break;
      }
      case 'in doubt':
        // Nobody settled it: this caller is the first to know.
        if (answer.record.lapsed)
          events.emit('doubt', { ...about(answer.record), error: answer.record.error?.message });
    }
  }

  function heardCrossing(answer: CrossAnswer): CrossAnswer {
    if (answer.ok && answer.record.dispatched && events.isHeard('dispatched'))
      events.emit('dispatched', about(answer.record));
    return answer;
  }

  function announce(record: StoredRecord, isOld: boolean): void {
    if (record.status === 'running') return;
    if (events.isHeard('settled')) events.emit('settled', { ...about(record), outcome: record.status });
    const error = record.error?.message;
    if (record.status === 'released') events.emit('released', { ...about(record), error });
    if (record.status === 'unknown' && !isOld) events.emit('doubt', { ...about(record), error });
  }
}

/** Listeners have heard of this doubt: `verify` could not decide it, or its attempt was ended by its timeout before. */
function isOldDoubt({ found, late }: SettleRequest): boolean {
  return found || late === true;
}

function isSettled({ status }: StoredRecord): boolean {
  return status === 'succeeded' || status === 'failed';
}

function about({ namespace, contract, key, fence }: StoredRecord) {
  return { namespace, contract, key, fence };
}

function aboutRequest({ namespace, key, fence }: SettleRequest) {
  return { namespace, contract: key.slice(0, key.indexOf('/')), key, fence };
}

function noteOf(record: StoredRecord, type: StoreEvent['type'], detail: Caller): Omit<StoreEvent, 'at'> {
  const { namespace, key, generation, fence } = record;
  return { namespace, key, generation, fence, type, detail };
}
