// One execution under a claim: holds the lease, knows the line, and ends exactly once in the ledger.

import type { Clock } from '../core/clock.ts';
import { decodeResult, encodeResult } from '../core/codec.ts';
import { SemelError } from '../core/errors.ts';
import type { Ledger } from '../ledger/index.ts';
import type { Held, Refusal, StoredRecord } from '../store/store.ts';
import type { Call } from './call.ts';
import { type AttemptContext, contextFor, type RequestLog, sentBlindly } from './context.ts';
import { isSameCode, mayRepeat, rerunWithin } from './doubt.ts';
import { startHeartbeat } from './heartbeat.ts';
import { timedOut } from './refusals.ts';
import { createStop, type Stop } from './stop.ts';

/** The end of an attempt's time, whatever its effect does. */
export interface Over {
  readonly reason: Error;
}

export interface Attempt {
  readonly call: Call;
  readonly held: Held;
  /** The record as this attempt last saw it. */
  readonly record: StoredRecord;
  /** The args to run with: the first wording, where a provider may have seen it. */
  readonly args: unknown;
  readonly remoteRef: string | undefined;
  readonly stop: Stop;
  /** Resolves when the attempt must end whatever its effect does: its time is over, or the process is. */
  readonly over: Promise<Over>;
  readonly hasPrepared: boolean;
  prepare(output: unknown): void;
  /** Before the effect: makes sure that the lease is held, however long it took to get here. */
  ready(): Promise<void>;
  /** `unkeyed`: to where a request goes that carries no key of ours; the record must say so before it leaves. */
  cross(unkeyed?: string): Promise<void>;
  /** Before a further try: the provider's window is judged again. */
  rejudge(): Promise<void>;
  /** A try has ended, and nobody knows how. */
  leaveOpen(): void;
  /** Verify said "not landed" of every earlier attempt. */
  clear(): Promise<Refusal | undefined>;
  /** Tells the effect to stop; its ending is still waited for. */
  cancel(reason: Error): void;
  /** Ends the attempt now, by what is known of it. */
  end(reason: Error): void;
  note(remoteRef: string): void;
  context(): { ctx: AttemptContext; log: RequestLog };
  /** No more heartbeats: the attempt is over. */
  rest(): void;
}

export interface AttemptOptions {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly call: Call;
  readonly record: StoredRecord;
  readonly token: string;
  /** When the claim was asked for, on this process's monotonic clock. */
  readonly askedAt: number;
  /** Says it once. */
  readonly warn: (message: string) => void;
}

export function startAttempt({
  ledger,
  clock,
  call,
  record: claimed,
  token,
  askedAt,
  warn,
}: AttemptOptions): Attempt {
  const { contract } = call.tool;
  const held: Held = {
    namespace: claimed.namespace,
    key: claimed.key,
    token,
    fence: claimed.fence,
    generation: claimed.generation,
  };
  const stop = createStop();
  const { promise: over, resolve: end } = Promise.withResolvers<Over>();
  let isOver = false;
  let isOpen = false;
  const issued = new Set<string>();
  let prepared: { readonly output: unknown; readonly text: string | null } | undefined =
    claimed.prepared === null || !isSameCode(call, claimed)
      ? undefined
      : { output: decodeResult(claimed.prepared), text: claimed.prepared };

  const heartbeat = startHeartbeat({
    clock,
    leaseMs: contract.leaseMs,
    askedAt,
    renew: () => ledger.renew({ ...held, leaseMs: contract.leaseMs, quietMs: contract.quietMs }),
    onLost: () => {
      const { namespace, key, fence } = held;
      ledger.events.emit('leaseLost', { namespace, contract: contract.name, key, fence });
      stop.ask(leaseLost());
    },
  });
  const timer = Number.isFinite(contract.timeoutMs)
    ? clock.setTimeout(() => abortAndEnd(timedOut(contract)), contract.timeoutMs, 'background')
    : undefined;

  function abortAndEnd(reason: Error): void {
    isOver = true;
    heartbeat.stop();
    stop.ask(reason);
    end({ reason });
  }

  function note(ref: string): void {
    attempt.remoteRef = String(ref).slice(0, maxRefLength);
  }

  async function ready(): Promise<void> {
    stop.throwIfAsked();
    // The event loop may have been blocked, or the claim's answer late: then the lease is older than it seems.
    if (heartbeat.leftMs() >= contract.leaseMs / 2) return;
    if (!(await heartbeat.renew())) throw leaseLost();
    // Ended while it asked: nothing is started in its name any more.
    stop.throwIfAsked();
    // So is the provider's memory of the key, which the claim was judged by.
    if (contract.rerunWithinMs !== null && attempt.record.dispatched) await judge();
  }

  async function send(isKeyed = true): Promise<void> {
    await ready();
    await judge(isKeyed);
  }

  async function cross(unkeyed?: string): Promise<void> {
    const losesKey = unkeyed !== undefined && attempt.record.keyed;
    if (losesKey) {
      warn(foreignKey(contract.name, unkeyed));
      // What may have landed under our key must not be sent under another one.
      const mayHaveLanded = isOpen || attempt.record.doubtSince !== null;
      if (mayHaveLanded && rerunWithin(call, attempt.record) !== null) throw sentBlindly(unkeyed);
    }
    if (attempt.record.dispatched && !losesKey && !mayBeForgotten()) return stop.throwIfAsked();
    await send(!losesKey);
  }

  /** Without a timeout nothing bounds how long after the last judgement a request leaves that may be a repetition. */
  function mayBeForgotten(): boolean {
    const isRepetition = isOpen || attempt.record.doubtSince !== null;
    return isRepetition && !Number.isFinite(contract.timeoutMs) && rerunWithin(call, attempt.record) !== null;
  }

  async function judge(isKeyed = true): Promise<void> {
    const answer = await ledger.dispatch({
      ...held,
      keyed: isKeyed,
      prepared: prepared?.text ?? null,
      // What let the claim take the doubt lets it cross the line too.
      rerunWithinMs: rerunWithin(call, attempt.record),
      quietMs: contract.quietMs,
    });
    if (!answer.ok) throw crossRefused(contract.name, answer.why);
    // Ended while it asked: it was told to the ledger as not dispatched, so nothing may be sent any more.
    if (isOver) throw stop.reason;
    attempt.record = answer.record;
  }

  const attempt: Writable<Attempt, 'record' | 'remoteRef' | 'hasPrepared'> = {
    call,
    held,
    record: claimed,
    args: keptFirstWording(call, claimed) ? decodeResult(claimed.args as string) : call.args,
    remoteRef: undefined,
    stop,
    over,
    hasPrepared: prepared !== undefined,
    prepare(output) {
      const encoded = encodeResult(output, { maxBytes: maxPreparedBytes });
      if (!encoded.ok) {
        throw new SemelError(
          'CONTRACT_INVALID',
          `${contract.name}: what \`prepare\` returned cannot be stored (${encoded.detail}).`,
          {
            next: 'Return plain data from `prepare`: a retry must send the same.',
          },
        );
      }
      prepared = { output, text: encoded.text };
      attempt.hasPrepared = true;
    },
    ready,
    cross,
    leaveOpen() {
      isOpen = true;
    },
    async rejudge() {
      if (contract.rerunWithinMs !== null && attempt.record.dispatched) await send();
    },
    async clear() {
      await ready();
      const answer = await ledger.clear({
        ...held,
        crossing: contract.dispatch === 'claim',
        seenAt: attempt.record.readAt,
        freshKey: contract.provider?.replaysErrors === true,
        rerunWithinMs: contract.rerunWithinMs,
        quietMs: contract.quietMs,
      });
      if (!answer.ok) return answer.why;
      attempt.record = answer.record;
      return undefined;
    },
    cancel: stop.ask,
    end: abortAndEnd,
    note,
    context: () =>
      contextFor({
        namespace: held.namespace,
        recordKey: held.key,
        keyFence: () => attempt.record.keyFence,
        provider: contract.provider,
        issued,
        mayRepeat: () => mayRepeat(call, attempt.record),
        fence: held.fence,
        attempt: attempt.record.attempts,
        stop,
        cross,
        note,
        prepared: () => prepared?.output,
      }),
    rest() {
      heartbeat.stop();
      clock.clearTimeout(timer);
    },
  };
  return attempt;

  function leaseLost(): SemelError {
    return new SemelError('LEASE_LOST', `${contract.name}: another worker has taken this call over.`);
  }
}

/** Data that changes, not getters: those make an object many times dearer, and every execution makes one. */
type Writable<T, Names extends keyof T> = Omit<T, Names> & { -readonly [Name in Names]: T[Name] };

/** The claim was given back the args of an attempt that a provider may have seen. */
function keptFirstWording(call: Call, claimed: StoredRecord): boolean {
  const { redact } = call.tool.contract;
  return (
    claimed.args !== null &&
    claimed.args !== call.storedArgs() &&
    redact.length === 0 &&
    isSameCode(call, claimed)
  );
}

const maxPreparedBytes = 1_048_576;
const maxRefLength = 1_000;

function foreignKey(name: string, host: string): string {
  return (
    `${name}: a request to ${host} does not carry semel's key (an SDK may have set one of its own), so it is not sent ` +
    "again on the provider's word: a lost reply leaves it in doubt. Send `ctx.key`, or describe the SDK's keys in " +
    '`provider.sdkKey`, so that `ctx.fetch` replaces them.'
  );
}

function crossRefused(name: string, why: Refusal): SemelError {
  if (why === 'window') {
    return new SemelError(
      'LEASE_LOST',
      `${name}: the provider may have forgotten the key by now, so sending again could double it.`,
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
  return new SemelError('LEASE_LOST', `${name}: the lease was over before anything was dispatched.`);
}
