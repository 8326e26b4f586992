// One execution under a claim: holds the lease, dispatches the effect, and is settled exactly once. A class, since every
// execution creates one: closures instead of methods would cost more than the claim in memory.

import { decodeResult, encodeResult } from '../core/codec/codec.ts';
import type { Provider } from '../core/contract/provider.ts';
import { isRepeatable, type Outcome } from '../core/contract/words.ts';
import { SemelError } from '../core/errors.ts';
import { providerKey } from '../core/key/key.ts';
import type { Timer, TimerList } from '../ledger/index.ts';
import type { Held, Note, Refusal, RenewAnswer, StoredRecord } from '../store/store.ts';
import type { Call } from './call.ts';
import type { Claim } from './claim.ts';
import { isSameCode, mayRepeat, rerunWithin } from './doubt.ts';
import type { Env } from './env.ts';
import { Heartbeat, type Lease } from './heartbeat.ts';
import { describeUnreadKey, reliesOnKey, trustedWindow } from './key-use.ts';
import { timeoutError } from './refusals.ts';
import { type AttemptContext, type ContextSource, createContext } from './sending/context.ts';
import { formatKey, type Requests, resendError } from './sending/requests.ts';
import { Stop } from './sending/stop.ts';
import { noStepsError, type RunStep, Steps } from './steps.ts';

interface Prepared {
  readonly output: unknown;
  readonly text: string | null;
}

export class Attempt implements ContextSource, Lease, Timer {
  dueAt = 0;
  previous: Timer | undefined = undefined;
  next: Timer | undefined = undefined;
  list: TimerList | undefined = undefined;
  readonly call: Call;
  readonly held: Held;
  /** The record as this attempt last saw it. */
  record: StoredRecord;
  /** The args to run with: the first wording, where a provider may have seen it. */
  readonly args: unknown;
  /** The provider's id that the present try noted. */
  remoteRef: string | undefined;
  /** The same for earlier tries and attempts that are in doubt. */
  #earlierRef: string | undefined;
  #lastNote: Note | undefined;
  /** The last note, until the store has it. */
  #unstoredNote: Note | undefined;
  /** Steps of the current try, if it took any. */
  steps: Steps | undefined;
  #hadOpenStep = false;
  readonly stop = new Stop();
  readonly #env: Env;
  readonly #heartbeat: Heartbeat;
  #prepared: Prepared | undefined;
  #issuedKeys: Set<string> | undefined;
  isKeyPrepared = false;
  /** Requests of the current try. */
  #requests: Requests | undefined;
  /** Ends `race` before the effect does. */
  #stopWaiting: ((reason: Error) => void) | undefined;
  #endedBy: Error | undefined;
  #renewal: Promise<RenewAnswer> | undefined;
  /** An earlier try ended, and nobody knows how. */
  #hasOpenTry = false;

  /** `held`: which attempt it is, if the record is another one's by now. */
  constructor(
    env: Env,
    { call, token, sentAt }: Pick<Claim, 'call' | 'token' | 'sentAt'>,
    record: StoredRecord,
    held: Pick<Held, 'fence' | 'generation'> = record,
  ) {
    const { timeoutMs } = call.tool.contract;
    this.#env = env;
    this.call = call;
    this.record = record;
    this.held = new HeldClaim(record, held, token);
    this.args = mustUseFirstWording(call, record) ? decodeResult(record.args as string) : call.args;
    if (record.prepared !== null && isSameCode(call, record)) {
      this.#prepared = { output: decodeResult(record.prepared), text: record.prepared };
      // An import has lost the mark.
      this.isKeyPrepared = record.prepared.startsWith(keyedMark) || record.prepared.includes(this.#ownKey);
    }
    this.#earlierRef = record.result?.remoteRef ?? undefined;
    const now = env.clock.mono();
    this.#heartbeat = new Heartbeat(env.clock, env.timers, this, sentAt, now);
    if (Number.isFinite(timeoutMs)) env.timers.start(timeoutMs, this, now);
  }

  /** The timeout is over. */
  onDue(): void {
    this.end(timeoutError(this.call.tool.contract));
  }

  get namespace(): string {
    return this.held.namespace;
  }

  get recordKey(): string {
    return this.held.key;
  }

  get providerKeyFence(): number {
    return this.record.providerKeyFence;
  }

  get fence(): number {
    return this.held.fence;
  }

  get attempt(): number {
    return this.record.attempts;
  }

  get provider(): Provider | undefined {
    return this.call.tool.contract.provider;
  }

  get issuedKeys(): Set<string> {
    this.#issuedKeys ??= new Set();
    return this.#issuedKeys;
  }

  get mayRepeat(): boolean {
    return mayRepeat(this.call, this.record);
  }

  get prepared(): unknown {
    return this.#prepared?.output;
  }

  get hasPrepared(): boolean {
    return this.#prepared !== undefined;
  }

  prepare(output: unknown): void {
    const encoded = encodeResult(output, { maxBytes: maxPreparedBytes });
    if (!encoded.ok) {
      throw new SemelError(
        'CONTRACT_INVALID',
        `${this.call.tool.contract.name}: what \`prepare\` returned cannot be stored (${encoded.detail}).`,
        { next: 'Return plain data from `prepare`: a retry must send the same.' },
      );
    }
    // `verify` reads the key as well, in a context of its own.
    this.isKeyPrepared = this.#requests?.hasGivenKey === true;
    this.#prepared = { output, text: this.isKeyPrepared ? keyedMark + encoded.text : encoded.text };
  }

  context(): { ctx: AttemptContext; requests: Requests } {
    this.#hadOpenStep = this.hasOpenStep;
    if (this.steps !== undefined) this.steps = new Steps(this.#mayHaveSteps, this.steps);
    const made = createContext(this);
    this.#requests = made.requests;
    return made;
  }

  /** The requests of a try whose context was not made by `context`. */
  follow(requests: Requests): void {
    this.#requests = requests;
  }

  get #ownKey(): string {
    return formatKey(this.provider, this.namespace, this.recordKey, this.providerKeyFence);
  }

  /**
   * A try is over, or is waited for no longer. Without a key it cannot have sent ours: its repeat would be a second effect.
   * `mayHaveSent`: its effect may have landed.
   */
  judgeKeyUse(mayHaveSent: boolean): void {
    const { contract, keyUse } = this.call.tool;
    const requests = this.#requests;
    if (requests === undefined || !reliesOnKey(contract)) return;
    if (requests.hasGivenKey || this.isKeyPrepared) {
      if (keyUse !== undefined) keyUse.isRead = true;
    } else if (mayHaveSent && !requests.hasCheckedKey) {
      // A request through `ctx.fetch` was judged by the key that it carried, before it left.
      if (keyUse !== undefined) keyUse.isUnread = true;
      if (!isRepeatable(contract.effect))
        this.#env.warn(describeUnreadKey(contract.name, contract.provider?.name ?? 'its provider'));
      if (this.record.keyed) this.record = { ...this.record, keyed: false };
    }
  }

  /** `fetch` does not throw for a 503: a tool that forgets to look has sent nothing, and counts as landed. */
  warnOfIgnored(status: number | undefined): void {
    if (status !== undefined) this.#env.warn(describeIgnored(this.call.tool.contract.name, status));
  }

  /** A step of this try or an earlier one has landed, or may have. */
  get hasOpenStep(): boolean {
    return this.#hadOpenStep || this.steps?.fates.some((fate) => fate !== 'not landed') === true;
  }

  /** Where no doubt is left of earlier attempts, none of their steps landed. */
  get #mayHaveSteps(): boolean {
    return this.record.doubtFence !== null;
  }

  get isStepsOnly(): boolean {
    return this.call.tool.contract.via === 'steps';
  }

  takeStep(name: string, ...rest: unknown[]): Promise<unknown> {
    this.steps ??= new Steps(this.#mayHaveSteps);
    return this.steps.watch(this.#takeStep(this.steps, name, ...rest));
  }

  async #takeStep(steps: Steps, name: string, ...rest: unknown[]): Promise<unknown> {
    const { name: contract, effect, was: forms } = this.call.tool.contract;
    const { runStep } = this.#env;
    if (runStep === undefined || isRepeatable(effect)) throw noStepsError(contract);
    // A step that starts after the end of its attempt would be another attempt's.
    this.stop.throwIfRequested();
    // Like the provider's key: kept by verdicts and by an import, and new in a new generation.
    const of = providerKey(this.namespace, this.recordKey, this.providerKeyFence, 'steps');
    const was = [...new Set(forms.map((form) => form.name))].filter((each) => each !== contract);
    // It counts from here: the try may end while the lease is renewed.
    const run: RunStep = async (step) => {
      // A call whose step may land is not free to be forgotten: its steps would be made anew.
      if (this.record.dispatched) await this.ensureLease();
      else await this.dispatch();
      return runStep(step);
    };
    return steps.take(run, { contract, was, of }, name, ...rest);
  }

  /** The event loop may have been blocked, or the claim's reply late: then little of the lease is left. */
  get isLeaseShort(): boolean {
    return this.#heartbeat.leftMs() < this.leaseMs / 2;
  }

  /** Before the effect: makes sure that the lease is still held. */
  async ensureLease(): Promise<void> {
    this.stop.throwIfRequested();
    if (!this.isLeaseShort) return;
    if (!(await this.#heartbeat.renew())) throw this.#leaseLostError();
    // The attempt ended during the renewal: nothing may start under it.
    this.stop.throwIfRequested();
    // The provider's window for the key, which the claim was judged by, is shorter by now too.
    if (this.call.tool.contract.rerunWithinMs !== null && this.record.dispatched)
      await this.#storeDispatch(true);
  }

  /** `unkeyedHost`: gets a request without our key; the record must say so before the request leaves. */
  async dispatch(unkeyedHost?: string): Promise<void> {
    const losesKey = this.#losesKey(unkeyedHost);
    const isStored = this.record.dispatched && !losesKey && !this.#isPreparedUnstored;
    if (isStored && !this.#mayOutliveKey) this.stop.throwIfRequested();
    else await this.#dispatchAgain(!losesKey);
    if (this.#mayBeTakenOver) await this.ensureLease();
  }

  /** For an executor elsewhere: only the store knows whether it still holds the claim, also where it has dispatched before. */
  async dispatchElsewhere(unkeyedHost?: string): Promise<void> {
    await this.#storeDispatch(!this.#losesKey(unkeyedHost));
  }

  /** Before a step without a record, in a call that is only observed: a re-run under the key of the call would make it again. */
  async dispatchUnrecorded(): Promise<void> {
    if (this.record.keyed || !this.record.dispatched) await this.#storeDispatch(false);
  }

  /** The first request without our key. */
  #losesKey(unkeyedHost: string | undefined): boolean {
    if (unkeyedHost === undefined || !this.record.keyed) return false;
    this.#env.warn(describeForeignKey(this.call.tool.contract.name, unkeyedHost));
    if (this.mustKeepKey) throw resendError(unkeyedHost);
    return true;
  }

  /** An effect that may have landed under our key must not be sent under another one. */
  get mustKeepKey(): boolean {
    const mayHaveLanded = this.#hasOpenTry || this.record.doubtFence !== null;
    return mayHaveLanded && this.record.keyed && rerunWithin(this.call, this.record) !== null;
  }

  /** The process stalled or could not reach the store: by now another worker may hold the key and have sent the effect. */
  get #mayBeTakenOver(): boolean {
    return this.#heartbeat.leftMs() <= 0 && !isRepeatable(this.record.effect);
  }

  /** A request or a step inside `prepare` dispatched the attempt before there was any output. */
  get #isPreparedUnstored(): boolean {
    return this.#prepared !== undefined && this.record.prepared === null;
  }

  /** Without a timeout, a repeated request may leave long after the provider's window was last checked. */
  get #mayOutliveKey(): boolean {
    const isRepeat = this.#hasOpenTry || this.record.doubtFence !== null;
    const isUnbounded = !Number.isFinite(this.call.tool.contract.timeoutMs);
    return isRepeat && isUnbounded && rerunWithin(this.call, this.record) !== null;
  }

  /** Before a further try. */
  async recheckProviderWindow(): Promise<void> {
    if (this.call.tool.contract.rerunWithinMs !== null && this.record.dispatched)
      await this.#dispatchAgain(true);
  }

  /** A try has ended, and nobody knows how. */
  markTryOpen(): void {
    this.#hasOpenTry = true;
  }

  /** `verify` said "not landed" about every earlier attempt, from data that may be this old. */
  async clear(lagMs = 0): Promise<Refusal | undefined> {
    const { contract } = this.call.tool;
    await this.ensureLease();
    const answer = await this.#env.ledger.clear({
      ...this.held,
      crossing: contract.dispatch === 'claim',
      seenAt: this.record.readAt - lagMs,
      freshKey: contract.provider?.replaysErrors === true,
      rerunWithinMs: trustedWindow(this.call.tool),
      inFlightForMs: contract.inFlightForMs,
    });
    if (!answer.ok) return answer.why;
    this.record = answer.record;
    this.#earlierRef = undefined;
    return undefined;
  }

  /** How the effect ended, or `onOverrun` if the attempt ends first. A later ending is passed to `onLate`. */
  race<Ended>(
    effect: Promise<Ended>,
    onOverrun: (reason: Error) => Ended,
    onLate?: (ended: Ended) => void,
  ): Promise<Ended> {
    return new Promise((resolve, reject) => {
      this.#stopWaiting = (reason) => resolve(onOverrun(reason));
      if (this.#endedBy !== undefined) this.#giveUp(this.#endedBy);
      effect.then((ended) => {
        if (this.#endedBy !== undefined) return onLate?.(ended);
        this.#stopWaiting = undefined;
        resolve(ended);
      }, reject);
    });
  }

  /** Asks the effect to stop, and still waits for it. */
  cancel(reason: Error): void {
    this.stop.request(reason);
  }

  /** Ends the attempt now, without waiting for the effect. */
  end(reason: Error): void {
    this.#endedBy ??= reason;
    this.#heartbeat.stop();
    this.stop.request(reason);
    this.#giveUp(this.#endedBy);
  }

  /** At most once, and not after the effect has ended. */
  #giveUp(reason: Error): void {
    const stopWaiting = this.#stopWaiting;
    this.#stopWaiting = undefined;
    stopWaiting?.(reason);
  }

  note(ref: string): Promise<boolean> {
    this.remoteRef = String(ref).slice(0, maxRefLength);
    return this.#storeNote(this.remoteRef);
  }

  /** What this attempt noted, in another process: the record has it. */
  resumeNote(ref: string): void {
    this.remoteRef = ref;
    this.#earlierRef = undefined;
    this.#lastNote = { remoteRef: ref, nth: this.record.notes };
  }

  get hasNoted(): boolean {
    return this.#lastNote !== undefined;
  }

  /** The provider's id for what may have landed. What was noted for an effect that did not land is about nothing else. */
  refAfter(outcome: Outcome): string | undefined {
    const isOpen = outcome === 'unknown' || outcome === 'succeeded';
    return (isOpen ? this.remoteRef : undefined) ?? this.#earlierRef;
  }

  endTry(outcome: Outcome): void {
    this.#earlierRef = this.refAfter(outcome);
    this.remoteRef = undefined;
  }

  /** Before a further try: a crash in it must not leave the id of one that did not land. False: it might. */
  async forgetEndedTry(): Promise<boolean> {
    const known = this.#earlierRef ?? null;
    return this.#lastNote === undefined || this.#lastNote.remoteRef === known || this.#storeNote(known);
  }

  /** With a renewal at once, or with the next one; an attempt that is over stores it with its ending. */
  async #storeNote(remoteRef: string | null): Promise<boolean> {
    this.#lastNote = { remoteRef, nth: (this.#lastNote?.nth ?? 0) + 1 };
    this.#unstoredNote = this.#lastNote;
    if (this.#heartbeat.isStopped) return false;
    try {
      return await this.#heartbeat.renew();
    } catch {
      return false;
    }
  }

  /** The attempt is over. */
  stopTimers(): void {
    this.#heartbeat.stop();
    this.list?.remove(this);
  }

  get leaseMs(): number {
    return this.call.tool.contract.leaseMs;
  }

  renewLease(): Promise<RenewAnswer> {
    this.#renewal = this.#renewFor(this.leaseMs);
    return this.#renewal;
  }

  /** Renews the lease one last time, for this long; false: it is lost. A renewal still on its way would undo that. */
  async renewLast(leaseMs: number): Promise<boolean> {
    this.stopTimers();
    await this.#renewal?.catch(() => undefined);
    return (await this.#renewFor(leaseMs)).held;
  }

  async #renewFor(leaseMs: number): Promise<RenewAnswer> {
    const { inFlightForMs } = this.call.tool.contract;
    const note = this.#unstoredNote;
    const request = { ...this.held, leaseMs, inFlightForMs };
    const answer = await this.#env.ledger.renew(note === undefined ? request : { ...request, note });
    if (this.#unstoredNote === note) this.#unstoredNote = undefined;
    return answer;
  }

  onLeaseLost(): void {
    const { namespace, key, fence } = this.held;
    const contract = this.call.tool.contract.name;
    this.#env.ledger.events.emit('leaseLost', { namespace, contract, key, fence });
    this.stop.request(this.#leaseLostError());
  }

  async #dispatchAgain(isKeyed: boolean): Promise<void> {
    await this.ensureLease();
    await this.#storeDispatch(isKeyed);
  }

  /** Also checks the provider's window for the key. */
  async #storeDispatch(isKeyed: boolean): Promise<void> {
    const { contract } = this.call.tool;
    const answer = await this.#env.ledger.dispatch({
      ...this.held,
      keyed: isKeyed,
      prepared: this.#prepared?.text ?? null,
      rerunWithinMs: this.#dispatchWithinMs,
      inFlightForMs: contract.inFlightForMs,
    });
    if (!answer.ok) throw dispatchRefusedError(contract.name, answer.why);
    // The attempt ended meanwhile, and was settled as not dispatched: nothing may be sent any more.
    if (this.#endedBy !== undefined) throw this.stop.reason;
    this.record = answer.record;
  }

  /** The same limit that let the claim take over the doubt. Without a doubt and without a key, there is nothing to outlive. */
  get #dispatchWithinMs(): number | null {
    const { keyed, doubtFence } = this.record;
    return keyed || doubtFence !== null ? rerunWithin(this.call, this.record) : null;
  }

  #leaseLostError(): SemelError {
    return new SemelError(
      'LEASE_LOST',
      `${this.call.tool.contract.name}: another worker has taken this call over.`,
    );
  }
}

class HeldClaim implements Held {
  readonly namespace: string;
  readonly key: string;
  readonly token: string;
  readonly fence: number;
  readonly generation: number;

  constructor(
    { namespace, key }: StoredRecord,
    { fence, generation }: Pick<Held, 'fence' | 'generation'>,
    token: string,
  ) {
    this.namespace = namespace;
    this.key = key;
    this.token = token;
    this.fence = fence;
    this.generation = generation;
  }
}

/** A provider may have seen the args of an earlier attempt: they must be sent again as they were. */
export function mustUseFirstWording(call: Call, record: StoredRecord): boolean {
  const { args } = record;
  if (args === null || call.tool.contract.redact.length > 0) return false;
  return args !== call.storedArgs() && isSameCode(call, record);
}

const maxPreparedBytes = 1_048_576;
/** Before the JSON of what was prepared with a key, which may be in there in any form; JSON ignores it. */
const keyedMark = ' ';
/** Maximum length of a provider's id. */
export const maxRefLength = 1_000;

function describeForeignKey(name: string, host: string): string {
  return (
    `${name}: a request to ${host} does not carry semel's key (an SDK may have set its own), so it is never sent again: a ` +
    "lost reply leaves it in doubt. Send `ctx.key`, or describe the SDK's keys in `provider.sdkKey`, so that `ctx.fetch` " +
    'replaces them.'
  );
}

function describeIgnored(name: string, status: number): string {
  return (
    `${name}: its request was answered with ${status}, and the effect returned without an error, so it is recorded as landed. ` +
    '`fetch` does not throw for a status: check `response.ok`, and throw if it is false.'
  );
}

function dispatchRefusedError(name: string, why: Refusal): SemelError {
  if (why === 'window') {
    return new SemelError(
      'LEASE_LOST',
      `${name}: the provider may have forgotten the key by now, so sending again could repeat the effect.`,
      {
        next: 'The record is in doubt: verify or resolve it.',
        retriable: false,
      },
    );
  }
  if (why === 'landed') {
    return new SemelError('LEASE_LOST', `${name}: an earlier attempt reported that it landed.`, {
      next: 'Call again: the ledger has its value.',
    });
  }
  return new SemelError('LEASE_LOST', `${name}: the lease expired before anything was dispatched.`);
}
