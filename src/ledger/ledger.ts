// The only caller of a store: retries lost requests, turns replies into answers, and is the one place where events are
// emitted and audit notes are written.

import type { Clock, Random } from '../core/clock.ts';
import { withoutMark } from '../store/process-life.ts';
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
import { type Answer, type LostAnswer, toAnswer } from './answer.ts';
import { createAudit } from './audit.ts';
import { type CachedRecord, type CacheLimits, type CacheLookup, createCache } from './cache.ts';
import { createEvents, type EventHub } from './events.ts';
import { callback, createRequestEnv, identity, type Requester, StoreRequest } from './store-request.ts';

export interface LedgerOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly cache: CacheLimits;
}

/** Which record answers a call. */
type RecordQuery = Pick<
  ClaimRequest,
  'namespace' | 'key' | 'fingerprint' | 'generation' | 'caller' | 'share'
>;

/** What an audit note says besides which record it is about. */
export type AuditDetail = Readonly<Record<string, unknown>>;

interface Sent<Params> {
  readonly params: Params;
  readonly sentAt: number;
}

export interface Ledger {
  readonly events: EventHub;
  facts(): Promise<StoreFacts>;
  /** The replay that a claim would get, if this process has the record in memory. */
  findCached(call: Asking & CacheLookup): LostAnswer | undefined;
  /** What a claim would be answered, from a store that replies synchronously. */
  peek(call: Asking): LostAnswer | undefined;
  /** The same from a store that replies later; absent where that is not cheaper than a claim. */
  readonly readFirst:
    | ((call: Asking, requester: Requester<Loss | undefined>) => Promise<LostAnswer | undefined>)
    | undefined;
  claim(request: ClaimRequest, requester?: Requester<ClaimAnswer>): Promise<Answer>;
  /** Who first made a call: the record is a mark, not an effect, so no event is emitted. */
  markFirst(request: ClaimRequest): Promise<Pick<StoredRecord, 'turn'>>;
  /** Emits and audits the answer that a caller gets. */
  report(answer: LostAnswer, detail: AuditDetail): void;
  /** The same for a record from memory: further replays to the same caller are only counted. */
  reportCached(cached: CachedRecord, caller: object, owner: string, drift: readonly string[]): void;
  renew(request: RenewRequest): Promise<RenewAnswer>;
  dispatch(request: DispatchRequest): Promise<CrossAnswer>;
  clear(request: ClearRequest): Promise<CrossAnswer>;
  settle(request: SettleRequest): Promise<SettleAnswer>;
  /** An attempt still runs after its timeout, and may send; false: the record no longer depends on it. */
  reportOverrun(held: Held): Promise<boolean>;
  resolve(request: ResolveRequest): Promise<ResolveAnswer>;
  /** What a claim would be answered, without claiming. */
  readAnswer(query: RecordQuery): Promise<LostAnswer>;
  /** The same, whichever form of the key the record has. */
  findAnswer(request: ClaimRequest): Promise<LostAnswer>;
  /** Links the earlier forms of a key to its record, where they have no record of their own. */
  link(request: ClaimRequest): Promise<void>;
  read(namespace: string, key: string): Promise<StoredRecord | undefined>;
  list(query: ListQuery): Promise<Page<StoredRecord>>;
  history(namespace: string, key: string): Promise<readonly StoreEvent[]>;
  namespaces(): Promise<readonly string[]>;
  /** Adds a person's own note to the record's history. */
  annotate(record: StoredRecord, detail: AuditDetail): void;
  /** Notes what semel would have done in enforce mode. */
  observe(record: StoredRecord, would: string): void;
  prune(limit: number, isBackground?: boolean): Promise<number>;
  countExpired(): Promise<number>;
  close(): Promise<void>;
}

type Readable = { readonly look: NonNullable<Store['claim']['look']> };

/** Generations of records start at 1. */
const noGeneration = 0;

export function createLedger({ store, clock, random, cache: cacheLimits }: LedgerOptions): Ledger {
  const events = createEvents();
  const env = createRequestEnv(clock, random, events);
  const audit = createAudit(store, clock);
  const cache = createCache(cacheLimits, clock);
  const settlingMarks = new Set<Promise<unknown>>();

  return {
    events,
    facts: () => requestLong(() => store.open()),

    findCached(call) {
      const cached = cache.get(call, clock.mono(), clock.now());
      if (cached === undefined || toAnswer(cached.record, call).is !== 'replay') return undefined;
      return { is: 'replay', record: cached.record, cached };
    },
    peek(call) {
      const sentAt = clock.mono();
      const loss = peekStore(call);
      return loss && receiveLoss(call, loss.record, sentAt);
    },

    readFirst:
      store.claim.look &&
      ((call, requester) => {
        try {
          env.circuit.refuseIfDown();
        } catch (error) {
          return Promise.reject(error);
        }
        return new StoreRequest(env, store.claim as Readable, 'look', call, receiveRead, requester).send();
      }),

    claim(request, requester) {
      try {
        env.circuit.refuseIfDown();
      } catch (error) {
        return Promise.reject(error);
      }
      return new StoreRequest(env, store, 'claim', request, receiveClaim, requester).send();
    },
    async markFirst(request) {
      env.circuit.refuseIfDown();
      const { won, record } = await claimSilently(request);
      if (won) settleMark(request, record);
      return record ?? request;
    },
    report,
    reportCached(cached, caller, owner, drift) {
      const { record } = cached;
      emitReplayed(record);
      if (cached.countRepeat(caller, drift)) return;
      const detail = drift.length === 0 ? { ...caller, owner } : { ...caller, owner, drift };
      cached.startCounting(audit.note(createNote(record, 'replayed', detail)), caller, drift);
    },

    renew: (request) => new StoreRequest(env, store, 'renew', request, identity<RenewAnswer>).send(),
    dispatch: (request) => new StoreRequest(env, store, 'dispatch', request, receiveDispatch).send(),
    clear: (request) => new StoreRequest(env, store, 'clear', request, receiveDispatch).send(),
    settle: (request) => new StoreRequest(env, store, 'settle', request, receiveSettle).send(),
    async reportOverrun(held) {
      // It says nothing of the key.
      const open = { outcome: 'unknown', result: null, error: null, keyed: true, found: false } as const;
      const { record } = await request(() => store.settle({ ...held, ...open, late: true }));
      return record?.generation === held.generation && record.doubtFence !== null && !isSettled(record);
    },
    async resolve(decision) {
      const { namespace, key, act, by } = decision;
      cache.drop(namespace, key, clock.mono());
      const answer = await request(() => store.resolve(decision)).finally(() => {
        // A concurrent replay may have cached the record again, or may still do so.
        cache.drop(namespace, key, clock.mono());
      });
      if (answer.ok) events.emit('resolved', { ...refer(answer.record), act: act.type, by });
      return answer;
    },

    async readAnswer(query) {
      return toAnswer(await request(() => store.read(query.namespace, query.key)), query);
    },
    async findAnswer(request) {
      return toAnswer(await findRecord(request), request);
    },
    async link(request) {
      await findRecord({ ...request, linksOnly: true });
    },
    async read(namespace, key) {
      const record = await request(() => store.read(namespace, key));
      cache.correct(namespace, key, record, clock.mono());
      return record;
    },
    list: (query) => requestLong(() => store.list(query)),
    async history(namespace, key) {
      await audit.flush();
      return requestLong(() => store.history(namespace, key));
    },
    namespaces: () => requestLong(() => store.namespaces()),
    annotate(record, detail) {
      audit.note(createNote(record, 'noted', detail));
    },
    observe(record, would) {
      audit.note(createNote(record, 'observed', { would }));
    },
    prune: (limit, isBackground) => requestLong(() => store.prune(limit, isBackground)),
    countExpired: () => requestLong(() => store.countExpired()),
    async close() {
      await Promise.allSettled(settlingMarks);
      // A store that hangs must not keep the program from ending.
      const problem = await request(() => flushAndClose().catch((error: unknown) => ({ error })));
      if (problem !== undefined) throw problem.error;
    },
  };

  async function flushAndClose(): Promise<undefined> {
    await audit.flush();
    await store.close();
  }

  /** A claim for a generation that never existed cannot win, but follows all forms of the key. */
  async function findRecord(request: ClaimRequest): Promise<StoredRecord | undefined> {
    const { record } = await claimSilently({ ...request, generation: noGeneration });
    return record;
  }

  function claimSilently(request: ClaimRequest): Promise<ClaimAnswer> {
    return new StoreRequest(env, store, 'claim', request, identity<ClaimAnswer>).send();
  }

  /** About one record: answered within seconds, or STORE_UNAVAILABLE. */
  function request<Reply>(send: () => Promise<Reply>): Promise<Reply> {
    return new StoreRequest(env, callback, 'run', send, identity<Reply>).send();
  }

  /** About many records, or before the store is ready: no deadline. */
  function requestLong<Reply>(send: () => Promise<Reply>): Promise<Reply> {
    return new StoreRequest(env, callback, 'run', send, identity<Reply>, undefined, false).send();
  }

  function receiveRead(loss: Loss | undefined, { params, sentAt }: Sent<Asking>): LostAnswer | undefined {
    return loss && receiveLoss(params, loss.record, sentAt);
  }

  function receiveClaim(reply: ClaimAnswer, { params, sentAt }: Sent<ClaimRequest>): Answer {
    if (!reply.won) return receiveLoss(params, reply.record, sentAt);
    const { record, takeover } = reply;
    if (events.hasListeners('claimed'))
      events.emit('claimed', { ...refer(record), attempt: record.attempts });
    if (takeover)
      events.emit('takeover', { ...refer(record), from: record.doubtFence === null ? 'lapsed' : 'doubt' });
    if (record.dispatched && events.hasListeners('dispatched')) events.emit('dispatched', refer(record));
    return { is: 'execute', record };
  }

  function receiveLoss(query: RecordQuery, record: StoredRecord | undefined, sentAt: number): LostAnswer {
    if (record !== undefined) cache.put(record, sentAt);
    return toAnswer(record, query);
  }

  function receiveDispatch(reply: CrossAnswer): CrossAnswer {
    if (reply.ok && reply.record.dispatched && events.hasListeners('dispatched'))
      events.emit('dispatched', refer(reply.record));
    return reply;
  }

  function receiveSettle(reply: SettleAnswer, { params, sentAt }: Sent<SettleRequest>): SettleAnswer {
    const { record, noted, settled, fenced } = reply;
    if (record !== undefined && settled) {
      cache.put(record, sentAt);
      if (!fenced) emitSettled(record, isKnownDoubt(params));
    }
    if (noted === 'fenced' || noted === 'lateNews') {
      events.emit(noted, { ...referRequest(params), outcome: params.outcome });
    } else if (noted === 'duplicate' || noted === 'contradiction') {
      events.emit(noted, referRequest(params));
    }
    return reply;
  }

  /** In the background: the store gets the call's next request together with this one, or after it. */
  function settleMark({ namespace, token }: ClaimRequest, { key, fence, generation }: StoredRecord): void {
    const ending = { outcome: 'succeeded', result: null, error: null, keyed: false, found: false } as const;
    const settling = request(() => store.settle({ namespace, key, token, fence, generation, ...ending }))
      // The mark lapses then.
      .catch(() => undefined)
      .finally(() => settlingMarks.delete(settling));
    settlingMarks.add(settling);
  }

  /** A store that is not open yet or cannot be read throws: the claim waits for it, or says why. */
  function peekStore(call: Asking): Loss | undefined {
    try {
      return store.claim.glance?.(call);
    } catch {
      return undefined;
    }
  }

  function emitReplayed(record: StoredRecord): void {
    if (events.hasListeners('replayed'))
      events.emit('replayed', { ...refer(record), settledAt: record.settledAt });
  }

  function report(answer: LostAnswer, detail: AuditDetail): void {
    switch (answer.is) {
      case 'replay':
        emitReplayed(answer.record);
        audit.note(createNote(answer.record, 'replayed', detail));
        break;
      case 'conflict':
        events.emit('conflict', refer(answer.record));
        audit.note(createNote(answer.record, 'conflict', detail));
        break;
      case 'foreign':
        events.emit('conflict', refer(answer.record));
        audit.note(
          createNote(answer.record, 'conflict', { ...detail, because: 'it belongs to another caller' }),
        );
        break;
      case 'busy': {
        const { owner, leaseLeftMs } = answer.record;
        events.emit('busy', { ...refer(answer.record), owner: withoutMark(owner), leaseLeftMs });
        break;
      }
      case 'in doubt':
        // Nobody settled it: this caller is the first to notice.
        if (answer.record.lapsed) events.emit('doubt', { ...refer(answer.record), error: undefined });
    }
  }

  function emitSettled(record: StoredRecord, isKnown: boolean): void {
    if (record.status === 'running') return;
    if (events.hasListeners('settled')) events.emit('settled', { ...refer(record), outcome: record.status });
    const error = record.error?.message;
    if (record.status === 'released') events.emit('released', { ...refer(record), error });
    if (record.status === 'unknown' && !isKnown) events.emit('doubt', { ...refer(record), error });
  }
}

/** The doubt was emitted before: `verify` could not decide it, or the attempt timed out earlier. */
function isKnownDoubt({ found, late }: SettleRequest): boolean {
  return found || late === true;
}

function isSettled({ status }: StoredRecord): boolean {
  return status === 'succeeded' || status === 'failed';
}

function refer({ namespace, contract, key, fence }: StoredRecord) {
  return { namespace, contract, key, fence };
}

function referRequest({ namespace, key, fence }: SettleRequest) {
  return { namespace, contract: key.slice(0, key.indexOf('/')), key, fence };
}

function createNote(
  record: StoredRecord,
  type: StoreEvent['type'],
  detail: AuditDetail,
): Omit<StoreEvent, 'at'> {
  const { namespace, key, generation, fence } = record;
  return { namespace, key, generation, fence, type, detail };
}
