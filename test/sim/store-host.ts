// The machine that keeps the records: the production memory store, watched. Every step is counted in the table,
// compared with what the rules of the store boundary allow, and logged in true time.

import { isRepeatable } from '../../src/core/contract/words.ts';
import { memoryStore } from '../../src/store/memory.ts';
import type {
  ClaimRequest,
  ClearRequest,
  DispatchRequest,
  Held,
  RenewRequest,
  ResolveRequest,
  SettleRequest,
  Store,
  StoredRecord,
} from '../../src/store/store.ts';
import { type Attempt, type CallLog, type KeyLog, type Log, type QuietTerms, quietAtOf } from './log.ts';
import type { Scheduler } from './scheduler.ts';
import { epoch, type StoreTime } from './store-time.ts';
import { cell, type State, type StoreEventName, stateOf, type Table } from './table.ts';

export const namespace = 'sim';

export interface StoreHost {
  /** What answers at the far end of the network. */
  readonly store: Store;
  /** For the simulator's own eyes: no fault, no time. */
  look(key: string): Promise<StoredRecord | undefined>;
}

export interface StoreHostOptions {
  readonly scheduler: Scheduler;
  readonly time: StoreTime;
  readonly table: Table;
  readonly log: Log;
  readonly trace: ((line: string) => void) | undefined;
  /** When "not landed" may be believed, by the words of the tool's author. */
  /** Two versions of a tool are at work: a record may be known by several keys. */
  readonly hasForms: boolean;
  readonly quietTerms: (request: ClaimRequest) => QuietTerms;
}

/** Nothing under such a record keeps anybody from acting. */
const freeStates: readonly State[] = ['none', 'expired', 'released', 'lapsed undispatched'];

export function createStoreHost({
  scheduler,
  time,
  table,
  log,
  trace,
  quietTerms,
  hasForms,
}: StoreHostOptions): StoreHost {
  const store = memoryStore({ time: () => time.read() });
  const read = (key: string) => store.read(namespace, key);

  function visit(before: StoredRecord | undefined, event: StoreEventName, when = time.read()): State {
    const state = stateOf(before, when);
    const at = cell(state, event);
    table[at] = (table[at] as number) + 1;
    return state;
  }

  function say(what: string, state: State, more: string, after: StoredRecord | undefined): void {
    if (trace === undefined) return;
    const now =
      after === undefined
        ? 'none'
        : `${stateOf(after, time.read())} g${after.generation} f${after.fence}${after.doubtFence === null ? '' : ` doubt since ${after.doubtFence}`}`;
    trace(`             store: ${what} [${state}] ${more} ⇒ ${now}`);
  }

  function assertThat(holds: boolean, invariant: string, detail: () => string): void {
    if (!holds) log.violated(invariant, detail());
  }

  async function claim(request: ClaimRequest) {
    const forms = new Map<string, StoredRecord | undefined>();
    // With two versions of a tool, any key that is known may be another form of this one.
    const others = hasForms ? log.keys.keys() : [];
    for (const form of [request.key, ...request.olderKeys, ...others]) forms.set(form, await read(form));
    const at = time.read();
    // Which form of the key it acts on is the store's to say: the rest is judged by the record as it was under that one.
    const answer = await store.claim(request);
    const key = answer.record?.key ?? request.key;
    const before = forms.get(key);
    const isOwn = (record: StoredRecord) => record.caller === request.caller || request.share;
    const same = before === undefined || (before.fingerprint === request.fingerprint && isOwn(before));
    const state = visit(before, `claim ${request.for}, ${same ? 'same' : 'other'}`, at);
    const known = log.keyLog(key);
    // A link under an earlier form is nobody's record: what its token claimed is gone by then.
    const own = before !== undefined && before.attempts > 0 && known.token === request.token;
    say(
      `claim for ${request.for} by ${request.toolCallId}`,
      state,
      answer.won ? 'won' : 'lost',
      answer.record,
    );
    const { record } = answer;
    if (answer.won && record !== undefined) {
      if (own) {
        assertThat(before?.status === 'running', 'a token claims once', () => `${request.key}: ${state}`);
        return answer;
      }
      wonClaim(known, request, before, record, state, same);
      await oneKeyPerIntent(known, record);
    } else {
      if (!own) mustLose(request, record, state, same, before);
      transition(known, before, record);
      // Closed on the way: as poisoned, by nobody, or by the news on file.
      if (before !== undefined && record?.status !== before.status) known.token = known.news;
    }
    return answer;
  }

  function wonClaim(
    known: KeyLog,
    request: ClaimRequest,
    before: StoredRecord | undefined,
    record: StoredRecord,
    state: State,
    same: boolean,
  ): void {
    const isNew = record.generation === record.fence;
    const detail = () => `${record.key}: a claim for ${request.for} won f${record.fence} over ${state}`;
    const free =
      state === 'none' ||
      state === 'expired' ||
      state === 'released' ||
      (state === 'released with doubt' && same) ||
      (state === 'lapsed undispatched' && before?.doubtFence === null);
    const takesDoubt = before?.inDoubt === true && same && request.for !== 'execute';
    assertThat(free || takesDoubt, 'claim wins only what is free, or in doubt with a reason', detail);
    assertThat(
      record.fence > known.highestFence,
      'fences grow',
      () => `${detail()} after ${known.highestFence}`,
    );
    assertThat(
      request.generation === null || (record.generation === request.generation && !isNew),
      'a waiter never runs a newer generation',
      detail,
    );
    if (isNew) tooSoon(known, record, state);
    else if (before?.status === 'running' && known.news !== '')
      log.violated('what is known to have landed is not taken over', detail());
    if (takesDoubt)
      assertThat(record.doubtFence !== null, 'taking over a dispatched attempt sets doubt', detail);
    if (free) known.openSince = undefined;
    if (takesDoubt && request.for === 'rerun') withinWindow(known, request.rerunWithinMs, detail);
    if (record.dispatched) known.openSince ??= scheduler.now;
    known.highestFence = record.fence;
    known.token = request.token;
    known.news = '';
    const call = log.calls.find(({ id }) => id === request.toolCallId);
    if (call !== undefined && (isNew || !known.wanted.has(record.generation)))
      known.wanted.set(record.generation, call);
    known.attempts.push({
      key: record.key,
      generation: record.generation,
      fence: record.fence,
      token: request.token,
      for: request.for,
      call: request.toolCallId,
      effect: request.effect,
      unbounded: request.for === 'rerun' && request.rerunWithinMs === null,
      claimedAt: scheduler.now,
      ...quietTerms(request),
      crossedAt: record.dispatched ? scheduler.now : undefined,
      renewedAt: undefined,
      endedAt: undefined,
      outcome: undefined,
      notes: [],
      isRunning: false,
      ranOn: undefined,
      reported: false,
      sentAt: undefined,
      returned: false,
    });
  }

  /** While one record answers for an intent, nobody may act on the same intent under another key. */
  async function oneKeyPerIntent({ key, wanted }: KeyLog, { generation }: StoredRecord): Promise<void> {
    const call = wanted.get(generation);
    if (call === undefined || isRepeatable(call.contract.effect)) return;
    const isWrite = (twin: CallLog | undefined) => twin !== undefined && isRepeatable(twin.contract.effect);
    const elsewhere = [...log.keys.values()].filter((other) => other.key !== key);
    for (const other of elsewhere) {
      const record = await read(other.key);
      const twin = record && other.wanted.get(record.generation);
      if (record === undefined || twin?.identity !== call.identity || isWrite(twin) || isOver(other, record))
        continue;
      const state = stateOf(record, time.read());
      // A call that was refused with its first step, and is opened again, takes that step anew.
      const isRefusedStep = call.home !== undefined && state === 'failed';
      assertThat(
        isRefusedStep || state === 'expired' || (freeStates.includes(state) && record.doubtFence === null),
        'TWO KEYS: one intent is one record',
        () =>
          `${call.id} acts on ${key} while ${other.key} of ${twin.id} is ${state}; both are ${call.identity}`,
      );
    }
  }

  /** Its window is over in true time; a clock that is wrong meanwhile may say otherwise. */
  function isOver({ ending }: KeyLog, { status }: StoredRecord): boolean {
    if (status !== 'succeeded' && status !== 'failed') return false;
    return ending !== undefined && !ending.kept && scheduler.now >= ending.at + ending.windowMs;
  }

  /** A provider's memory of our key is counted from the first request that it may have seen, in true time. */
  function withinWindow({ openSince }: KeyLog, withinMs: number | null, detail: () => string): void {
    if (openSince === undefined || withinMs === null) return;
    const invariant = 'a key is sent again only while its provider remembers it';
    assertThat(scheduler.now < openSince + withinMs, invariant, () => `${detail()}, open since ${openSince}`);
  }

  /** A record that answers for its key for a window does so in true time, whatever any clock says. */
  function tooSoon({ ending }: KeyLog, record: StoredRecord, state: State): void {
    // A class that is not remembered has no window.
    if (ending === undefined || ending.lifted || isRepeatable(record.effect)) return;
    const until = ending.kept ? Number.POSITIVE_INFINITY : ending.at + ending.windowMs;
    assertThat(
      scheduler.now >= until,
      'a settled record answers for its key until its window is over',
      () =>
        `${record.key}: ${ending.status} at ${ending.at}, until ${until}; claimed anew at ${scheduler.now} (${state})`,
    );
  }

  function mustLose(
    request: ClaimRequest,
    after: StoredRecord | undefined,
    state: State,
    same: boolean,
    before: StoredRecord | undefined,
  ): void {
    if (request.generation !== null) return;
    const closed = after !== undefined && before !== undefined && after.status !== before.status;
    const free =
      state === 'none' ||
      state === 'expired' ||
      state === 'released' ||
      (state === 'released with doubt' && same) ||
      (state === 'lapsed undispatched' && before?.doubtFence === null);
    assertThat(!free || closed, 'what is free is not refused', () => `${request.key}: ${state}`);
  }

  /** A window begins when the period of its intent is over. */
  function untilPeriodEnds({ retention }: StoredRecord): number {
    return Math.max(0, (retention?.periodEndsAt ?? 0) - epoch - scheduler.now);
  }

  /** The record has changed: at most one completion per generation, and none is ever taken back. */
  function transition(
    known: KeyLog,
    before: StoredRecord | undefined,
    after: StoredRecord | undefined,
    lifted = false,
  ): void {
    if (after === undefined) return;
    const same = before?.generation === after.generation;
    if (same && before.status === 'succeeded' && !lifted) {
      assertThat(
        after.status === 'succeeded' &&
          (after.result?.text === before.result?.text || after.result?.text === null),
        'a success is never taken back',
        () => `${after.key} g${after.generation} became ${after.status}`,
      );
    }
    if (after.status === 'succeeded' && !(same && before.status === 'succeeded')) {
      assertThat(
        !known.completions.has(after.generation),
        'one accepted completion per generation',
        () => `${after.key} g${after.generation}`,
      );
      known.completions.set(after.generation, {
        at: scheduler.now,
        text: after.result?.text ?? null,
        // What was forgotten and reopened has lost its window: it stays.
        windowMs:
          untilPeriodEnds(before ?? after) +
          ((before ?? after).retention?.windowMs ?? Number.POSITIVE_INFINITY),
        kept: after.retention?.keep === true,
      });
    }
    const isSettled = after.status === 'succeeded' || after.status === 'failed';
    if (isSettled && !(same && before.status === after.status)) {
      const { retention } = before ?? after;
      const isShort = after.status === 'failed' && after.doubtFence === null;
      known.ending = {
        status: after.status === 'succeeded' ? 'succeeded' : 'failed',
        at: scheduler.now,
        windowMs: isShort
          ? (retention?.failureWindowMs ?? 0)
          : untilPeriodEnds(before ?? after) + (retention?.windowMs ?? 0),
        kept: after.retention?.keep === true && !isShort,
        // A refusal that is forgotten too soon is asked for again, and refused again; and a write that may be repeated is
        // remembered for nobody: no clock needs to be right.
        lifted: (isShort || isRepeatable(after.effect)) && !time.steady,
      };
    }
    if (lifted && known.ending !== undefined) known.ending.lifted = true;
    known.highestFence = Math.max(known.highestFence, after.fence);
  }

  /** When somebody looked, in true time. */
  const seenAt = (wall: number) => scheduler.now - Math.max(0, time.read().wall - wall);

  /** "Not landed" is believed of an attempt only once nothing of it can be on its way. */
  function isQuiet(known: KeyLog, before: StoredRecord, below: number, at: number, detail: () => string) {
    const from = before.doubtFence ?? before.fence;
    for (const attempt of known.attempts) {
      const { generation, fence, crossedAt } = attempt;
      if (generation !== before.generation || fence < from || fence >= below || crossedAt === undefined)
        continue;
      const inFlightUntil = quietAtOf(attempt);
      assertThat(
        at >= inFlightUntil,
        '"not landed" is believed only once it is quiet',
        () => `${detail()}: seen at ${at}, f${fence} is quiet at ${inFlightUntil}`,
      );
    }
  }

  function attemptOf(known: KeyLog, { token, fence }: Held): Attempt | undefined {
    const isOwn = (attempt: Attempt) => attempt.token === token;
    return (
      known.attempts.findLast((attempt) => isOwn(attempt) && attempt.fence === fence) ??
      known.attempts.findLast(isOwn)
    );
  }

  async function held<Answer extends { record: StoredRecord | undefined }>(
    name: 'renew' | 'dispatch' | 'clear',
    request: RenewRequest | DispatchRequest | ClearRequest,
    ask: () => Promise<Answer>,
    accepted: (answer: Answer) => boolean,
  ): Promise<Answer> {
    const before = await read(request.key);
    const state = visit(before, name);
    const known = log.keyLog(request.key);
    const answer = await ask();
    const ok = accepted(answer);
    say(`${name} f${request.fence}`, state, ok ? 'ok' : 'refused', answer.record);
    if (!ok) return answer;
    const detail = () => `${request.key}: ${name} of f${request.fence} in ${state}`;
    assertThat(known.token === request.token && before?.status === 'running', 'only the holder acts', detail);
    if (name !== 'renew')
      assertThat(before?.lapsed === false, 'crossing the line needs a live lease', detail);
    if (name !== 'renew')
      assertThat(known.news === '', 'no line is crossed beside a success on file', detail);
    if (name === 'dispatch') withinWindow(known, (request as DispatchRequest).rerunWithinMs, detail);
    if (name === 'clear' && before?.doubtFence !== null) known.openSince = undefined;
    const attempt = attemptOf(known, request);
    if (attempt === undefined || !answer.record?.dispatched) return answer;
    known.openSince ??= scheduler.now;
    // A copy of a verdict that was accepted lets nothing cross once more.
    const isCrossing = name === 'dispatch' || (name === 'clear' && !before?.dispatched) || before?.lapsed;
    // A holder that wakes up may send again from now on; but the provider's window was judged when it crossed.
    if (name === 'renew') attempt.renewedAt = scheduler.now;
    if (name === 'renew') attempt.judgedAt ??= attempt.crossedAt;
    else if (isCrossing) attempt.judgedAt = scheduler.now;
    if (isCrossing) attempt.crossedAt = scheduler.now;
    return answer;
  }

  async function settle(request: SettleRequest) {
    const before = await read(request.key);
    const known = log.keyLog(request.key);
    const own = known.token === request.token && before !== undefined;
    // A late copy of a claim may hold the key under the same token: the fence tells them apart.
    const isHolder = request.fence === 0 || request.fence === before?.fence;
    const isRunning = before?.status === 'running';
    const speaker = own && !isRunning ? 'repeated' : own && isHolder ? 'holder' : 'fenced';
    const state = visit(before, `settle ${request.outcome}, ${speaker}`);
    const answer = await store.settle(request);
    const { record } = answer;
    say(`settle ${request.outcome} f${request.fence} (${speaker})`, state, answer.noted ?? '', record);
    const detail = () => `${request.key}: ${request.outcome} by ${speaker} f${request.fence} in ${state}`;
    const attempt = attemptOf(known, request);
    if (attempt !== undefined) {
      if (request.outcome === 'succeeded') attempt.reported = true;
      if (speaker === 'holder') {
        attempt.endedAt = scheduler.now;
        attempt.endedAs = request.outcome;
        const isClosed = log.askers.get(attempt.token)?.closedAt !== undefined;
        if (attempt.isRunning) attempt.ranOn = isClosed ? 'closed' : 'timed out';
      }
      if (speaker !== 'fenced') attempt.outcome = request.outcome;
    }
    const isNo = request.outcome === 'failed' || request.outcome === 'released';
    if (speaker === 'holder' && isNo && before?.doubtFence !== null)
      assertThat(record?.status !== request.outcome, 'a later refusal does not clear a doubt', detail);
    if (speaker === 'fenced' && request.outcome !== 'succeeded')
      assertThat(
        record?.status === before?.status,
        'a fenced attempt decides nothing by not landing',
        detail,
      );
    if (speaker === 'holder' && request.outcome !== 'succeeded' && known.news !== '')
      assertThat(record?.status === 'succeeded', 'a success on file is never wasted', detail);
    const isOpen = before?.status === 'unknown' || before?.status === 'released' || before?.lapsed === true;
    if (
      speaker === 'fenced' &&
      request.outcome === 'succeeded' &&
      before?.generation === request.generation &&
      known.news === '' &&
      isOpen &&
      // Another write took the record over.
      !(isRepeatable(before.effect) && request.fence < before.providerKeyFence)
    )
      assertThat(record?.status === 'succeeded', 'a success is never wasted', detail);
    if (answer.settled && answer.fenced === false && speaker === 'fenced')
      log.violated('only the holder acts', detail());
    transition(known, before, record);
    if (answer.fenced && answer.settled) known.token = request.token;
    else if (speaker === 'holder' && request.outcome !== 'succeeded' && record?.status === 'succeeded')
      known.token = known.news;
    else if (answer.noted === 'lateNews' && record?.generation === request.generation)
      known.news = request.token;
    return answer;
  }

  async function resolve(request: ResolveRequest) {
    const before = await read(request.key);
    const state = visit(before, `resolve ${request.act.type}`);
    const known = log.keyLog(request.key);
    const own = known.token === request.token;
    const answer = await store.resolve(request);
    say(`resolve ${request.act.type}`, state, answer.ok ? 'ok' : `refused: ${answer.why}`, answer.record);
    const { record } = answer;
    if (!answer.ok || own || record === undefined || before === undefined) {
      transition(known, before, record);
      // No verdict speaks against the success on file.
      if (before !== undefined && record?.status !== before.status) known.token = known.news;
      return answer;
    }
    const { seen } = request;
    assertThat(
      before.fence === seen.fence && before.lastDispatchedAt === seen.dispatchedAt,
      'a verdict compares what it saw',
      () => `${request.key}: ${request.act.type} in ${state}`,
    );
    assertThat(
      record.fence > known.highestFence,
      'fences grow',
      () => `${request.key}: resolve f${record.fence}`,
    );
    const { type } = request.act;
    if (type === 'notLanded' && !request.force)
      isQuiet(
        known,
        before,
        record.fence,
        seenAt(request.decidedAt),
        () => `${request.key}: resolve in ${state}`,
      );
    if (type === 'died') {
      const attempt = known.attempts.findLast(({ fence }) => fence === before.fence);
      const isProof = request.by === 'semel';
      assertThat(
        !isProof || log.askers.get(attempt?.token ?? '')?.alive !== true,
        'no living process is called dead',
        () => `${request.key}: f${before.fence}`,
      );
      // A person also knows what became of everything that the process started.
      if (attempt !== undefined && (!isProof || attempt.endsWithProcess)) attempt.endedAt ??= scheduler.now;
    }
    known.token = request.token;
    known.verdicts.push({
      key: request.key,
      generation: record.generation,
      fence: record.fence,
      act: type,
      at: scheduler.now,
      forced: request.force,
    });
    transition(known, before, record, type === 'forget' || type === 'reopen');
    return answer;
  }

  async function clear(request: ClearRequest) {
    const before = await read(request.key);
    const answer = await held(
      'clear',
      request,
      () => store.clear(request),
      ({ ok }) => ok,
    );
    if (answer.ok && before !== undefined && before.doubtFence !== null) {
      const known = log.keyLog(request.key);
      isQuiet(
        known,
        before,
        before.fence,
        seenAt(request.seenAt),
        () => `${request.key}: clear of f${request.fence}`,
      );
      known.verdicts.push({
        key: request.key,
        generation: before.generation,
        fence: before.fence,
        act: 'cleared',
        at: scheduler.now,
        forced: false,
      });
    }
    return answer;
  }

  async function prune(limit: number): Promise<number> {
    const seen: [StoredRecord | undefined, State][] = [];
    for (const key of log.keys.keys()) {
      const before = await read(key);
      seen.push([before, visit(before, 'prune')]);
    }
    const pruned = await store.prune(limit);
    trace?.(`             store: prune ⇒ ${pruned}`);
    for (const [before, state] of seen) {
      if (before === undefined || (await read(before.key)) !== undefined) continue;
      const closed = state === 'expired' || state === 'released' || state === 'lapsed undispatched';
      assertThat(
        closed && !before.inDoubt && (state === 'expired' || before.doubtFence === null),
        'pruning never removes what is running or in doubt',
        () => `${before.key}: ${state}`,
      );
    }
    return pruned;
  }

  return {
    look: read,
    store: {
      ...store,
      claim: Object.assign(claim, { glance: store.claim.glance }),
      renew: (request) =>
        held(
          'renew',
          request,
          () => store.renew(request),
          (answer) => answer.held,
        ),
      dispatch: (request) =>
        held(
          'dispatch',
          request,
          () => store.dispatch(request),
          ({ ok }) => ok,
        ),
      clear,
      settle,
      resolve,
      prune,
    },
  };
}
