// An attempt that another program executes, and reports by what it was given: its claim. Nothing of it stays in this process,
// so any process on the same store can take the reports, and nobody renews the lease for a program that has died.

import { type Clock, Moment } from '../core/clock.ts';
import { formatDuration } from '../core/contract/duration.ts';
import type { Outcome } from '../core/contract/words.ts';
import { isSemelError, SemelError } from '../core/errors.ts';
import { providerKey } from '../core/key/key.ts';
import { shortBootId } from '../store/boot.ts';
import type { Held, StoredRecord } from '../store/store.ts';
import { Attempt, mustUseFirstWording } from './attempt.ts';
import type { Call, Tool } from './call.ts';
import { firstPurpose } from './claim.ts';
import type { Env } from './env.ts';
import { refuseInDoubt } from './in-doubt-error.ts';
import { collectEvidence, emptyReceipt, type Result, refuse } from './receipt.ts';
import { abortedError, inFlightError, takenOverError } from './refusals.ts';
import { type Body, isLate, neverDispatched, type Try } from './run-tool.ts';
import { formatKey } from './sending/requests.ts';
import { settleAttempt, settlePlainly } from './settle.ts';

/** Who claims. */
export interface Claimant {
  readonly owner: string;
  /** Chosen by the executor, so that it can repeat a claim whose answer was lost. */
  readonly token?: string | undefined;
  /** The executor is gone and will not get the answer. Costs less than the call's signal, which can also end a wait. */
  readonly hasLeft?: () => boolean;
}

/** What the executor has to show with each report. */
export interface Ticket extends Omit<Held, 'namespace'> {
  /** The target honours the key that was given out. */
  readonly keyed: boolean;
  readonly start: Start;
  /** Dispatched by the first claim of its generation, without a provider's key: a success needs nothing else of the record. */
  readonly isPlain: boolean;
}

/** When an attempt began, for whichever server gets its reports. */
export interface Start {
  /** By the clock that all servers on this machine share, and that no step of the wall clock moves. */
  readonly mono: number;
  /** The boot in which that clock counts; empty: unknown. */
  readonly boot: string;
  /** For servers on other machines. */
  readonly wall: number;
}

function startNow(clock: Clock): Start {
  return { mono: Math.floor(clock.mono()), boot: shortBootId(), wall: clock.now() };
}

function sinceMs({ mono, boot, wall }: Start, clock: Clock): number {
  return boot !== '' && boot === shortBootId() ? clock.mono() - mono : clock.now() - wall;
}

export interface DetachedAttempt {
  /** Undefined where the contract needs no claim: nothing has to be reported. */
  readonly ticket: Ticket | undefined;
  readonly record: StoredRecord | undefined;
  /** The args to run with: the first wording, where a provider may have seen it. */
  readonly args: unknown;
  readonly prepared: unknown;
  /** For the target, in its provider's format: the same for every attempt at this intent. */
  readonly key: string | undefined;
}

export type Detached =
  | { readonly execute: true; readonly attempt: DetachedAttempt }
  | { readonly execute: false; readonly result: Result };

export interface Report {
  readonly outcome: Outcome;
  readonly value?: unknown;
  /** Why the executor could not send the value. */
  readonly omitted?: string | undefined;
  readonly error?: unknown;
  /** The provider's id for what landed. */
  readonly remoteRef?: string | undefined;
}

export interface Dispatching {
  /** False: the request carries no key that the target honours. */
  readonly keyed: boolean;
  /** Stored, so that a later attempt sends the same. */
  readonly prepared?: unknown;
}

/** What the holder of a ticket may do. `callOf` makes the call that the record is about. */
export interface TicketReports {
  renew(
    tool: Tool,
    namespace: string,
    ticket: Ticket,
    note: string | undefined,
  ): Promise<StoredRecord | undefined>;
  dispatch(callOf: CallOf, namespace: string, ticket: Ticket, how: Dispatching): Promise<StoredRecord>;
  /**
   * Before a step: crosses the line. Names the call, the same for all of its attempts; undefined: the attempt is not the
   * executor's any more.
   */
  enter(callOf: CallOf, namespace: string, ticket: Ticket): Promise<string | undefined>;
  settle(tool: Tool, callOf: CallOf, namespace: string, ticket: Ticket, report: Report): Promise<Result>;
}

type CallOf = (record: StoredRecord) => Call;

/** Claims like any other call, and leaves the claim to its lease. */
export function detach(
  runWith: (call: Call, body: Body) => Promise<Result>,
  { clock, closing }: Pick<Env, 'clock' | 'closing'>,
  call: Call,
  claimant: Claimant,
): Promise<Detached> {
  const hasLeft = () => call.signal?.aborted === true || claimant.hasLeft?.() === true;
  // Nobody has heard of the claim, so nobody executes it. An executor that chose its token may repeat it.
  const isUnheard = () => claimant.token === undefined && hasLeft();
  if (hasLeft())
    return Promise.resolve({ execute: false, result: refuse(call, undefined, abortedError(call)) });
  const start = startNow(clock);
  return new Promise((resolve, reject) => {
    const handOver: Body['handOver'] = ({ token }, record, purpose) => {
      const isAsNew = purpose === firstPurpose && isFirst(call, record) && isWhole(call, record);
      if (!isAsNew || isUnheard() || isLate(call, clock) || closing.aborted) return undefined;
      resolve({ execute: true, attempt: describeFirst(call, record, token, start) });
      return handedOver;
    };
    const body: Body = async (attempt) => {
      attempt.stopTimers();
      if (isUnheard()) return unheard(abortedError(call));
      const refusal = findRefusal(attempt) ?? (await findLoss(attempt));
      resolve(
        refusal === undefined
          ? { execute: true, attempt: describe(attempt, start) }
          : { execute: false, result: refusal },
      );
      return {
        ending: { outcome: 'released', because: 'left to its executor' },
        thrown: undefined,
        left: true,
      };
    };
    const free = { ticket: undefined, record: undefined, prepared: undefined, key: undefined };
    const runExternally = async (args: never) => resolve({ execute: true, attempt: { ...free, args } });
    runWith(call, Object.assign(body, { runExternally, claimant, handOver })).then(
      (result) => resolve({ execute: false, result }),
      reject,
    );
  });
}

/** Only a repeated claim finds its dispatch made already: its executor has had the answer, and may have sent the effect. */
function findRefusal({ call, record }: Attempt): Result | undefined {
  if (call.tool.contract.dispatch === 'claim' || !record.dispatched) return undefined;
  return record.inDoubt ? refuseInDoubt(call, record) : refuse(call, record, inFlightError(call, record));
}

/** A repeated claim has what is left of the first one's lease, while its executor counts from now. */
async function findLoss(attempt: Attempt): Promise<Result | undefined> {
  const { call, record } = attempt;
  if (isWhole(call, record)) return undefined;
  const { held } = await attempt.renewLease();
  return held ? undefined : refuse(call, record, inFlightError(call, record));
}

function isWhole({ tool }: Call, { leaseLeftMs }: StoredRecord): boolean {
  return leaseLeftMs > tool.contract.leaseMs * nearlyWhole;
}

const nearlyWhole = 0.9;

/** No attempt came before it, and this claim is not repeated after a dispatch: there is nothing to go by but the call. */
function isFirst(call: Call, record: StoredRecord): boolean {
  const { attempts, doubtFence, prepared, dispatched } = record;
  return (
    attempts === 1 &&
    doubtFence === null &&
    prepared === null &&
    dispatched === (call.tool.contract.dispatch === 'claim') &&
    !mustUseFirstWording(call, record)
  );
}

/** Ends the path of a call whose executor has its attempt already. Nobody reads it. */
const handedOver: Result = {
  ok: false,
  error: new SemelError('IN_FLIGHT', 'Its executor holds the claim.'),
  receipt: emptyReceipt(''),
};

function describeFirst(call: Call, record: StoredRecord, token: string, start: Start): DetachedAttempt {
  const { namespace, key, fence, generation, keyed, providerKeyFence, dispatched } = record;
  const { provider, rerunWithinMs } = call.tool.contract;
  const isPlain = dispatched && rerunWithinMs === null;
  return {
    ticket: { key, token, fence, generation, keyed, start, isPlain },
    record,
    args: call.args,
    prepared: undefined,
    key: formatKey(provider, namespace, key, providerKeyFence),
  };
}

function unheard(error: SemelError): Try {
  return { ending: { outcome: 'released', because: error.message }, thrown: error };
}

function describe(attempt: Attempt, start: Start): DetachedAttempt {
  const { held, record, args, prepared } = attempt;
  const { namespace: _, ...rest } = held;
  return {
    ticket: { ...rest, keyed: record.keyed, start, isPlain: false },
    record,
    args,
    prepared,
    key: attempt.context().ctx.key,
  };
}

export function createTicketReports(env: Env): TicketReports {
  const { ledger, clock } = env;
  return {
    async renew({ contract }, namespace, ticket, note) {
      const { leaseMs, inFlightForMs, timeoutMs, name } = contract;
      // Otherwise a program that hangs would hold its call for ever.
      if (sinceMs(ticket.start, clock) > timeoutMs) throw overTimeError(name, timeoutMs);
      const held = heldBy(namespace, ticket);
      const noted = note === undefined ? {} : { note: await nextNote(namespace, ticket, note) };
      const { held: isHeld, record } = await ledger.renew({ ...held, leaseMs, inFlightForMs, ...noted });
      return isHeld ? record : undefined;
    },
    async dispatch(callOf, namespace, ticket, { keyed, prepared }) {
      const { attempt, isOwn } = await resume(callOf, namespace, ticket);
      if (!isOwn) throw takenOverError(attempt.call, undefined);
      if (prepared !== undefined && !attempt.hasPrepared) attempt.prepare(prepared);
      if (!keyed && attempt.mustKeepKey) throw unkeyedError(attempt);
      await attempt.dispatchElsewhere(keyed ? undefined : 'the target');
      return attempt.record;
    },
    async enter(callOf, namespace, ticket) {
      const { attempt, isOwn } = await resume(callOf, namespace, ticket);
      if (!isOwn || attempt.record.status !== 'running') return undefined;
      // A call whose step may land is not free to be forgotten: its steps would be made anew.
      // Asked of the store for each step: after a verdict, the steps of the next attempt have other names.
      await attempt.dispatchElsewhere();
      return providerKey(namespace, ticket.key, attempt.providerKeyFence, 'steps');
    },
    async settle(tool, callOf, namespace, ticket, report) {
      try {
        return await settle(tool, callOf, namespace, ticket, report);
      } catch (error) {
        throw isSemelError(error, 'STORE_UNAVAILABLE') ? notTakenError(tool, error) : error;
      }
    },
  };

  async function settle(tool: Tool, callOf: CallOf, namespace: string, ticket: Ticket, report: Report) {
    const plain = isPlainSuccess(tool, ticket, report)
      ? await settlePlainly(env, tool, heldBy(namespace, ticket), report)
      : undefined;
    if (plain?.result !== undefined) return plain.result;
    const { attempt, isOwn } = await resume(callOf, namespace, ticket);
    if (report.remoteRef !== undefined) attempt.remoteRef = report.remoteRef;
    return settleAttempt(env, attempt, toTry(attempt, isOwn, report), plain?.answer);
  }

  /** Past its lease, others may have decided about the record. */
  function isPlainSuccess({ contract }: Tool, { isPlain, start }: Ticket, { outcome }: Report): boolean {
    const isRecent = sinceMs(start, clock) < contract.leaseMs;
    return isPlain && isRecent && outcome === 'succeeded' && contract.rerunWithinMs === null;
  }

  /** Counted from what the record has: the executor may have sent the same note before. */
  async function nextNote(namespace: string, { key, fence }: Ticket, remoteRef: string) {
    const record = await ledger.read(namespace, key);
    return { remoteRef, nth: record?.fence === fence ? record.notes + 1 : 1 };
  }

  async function resume(callOf: CallOf, namespace: string, ticket: Ticket) {
    const record = await ledger.read(namespace, ticket.key);
    if (record === undefined) throw forgottenError(ticket);
    const isOwn = record.fence === ticket.fence && record.generation === ticket.generation;
    const call = callOf(record);
    // What another attempt has done with the record says nothing about this one.
    const seen = isOwn ? record : { ...record, keyed: ticket.keyed, dispatched: true, result: null };
    const { token } = ticket;
    const attempt = new Attempt(env, { call, token, sentAt: new Moment(clock) }, seen, ticket);
    attempt.stopTimers();
    if (isOwn && record.notes > 0 && record.result?.remoteRef != null)
      attempt.resumeNote(record.result.remoteRef);
    return { attempt, isOwn };
  }
}

function heldBy(namespace: string, { key, token, fence, generation }: Ticket): Held {
  return { namespace, key, token, fence, generation };
}

function toTry(attempt: Attempt, isOwn: boolean, { outcome, value, omitted, error }: Report): Try {
  if (outcome !== 'succeeded') return { ending: { outcome, because: 'its executor says so' }, thrown: error };
  // A late success counts, whatever the record has become.
  if (isOwn && !attempt.record.dispatched) return neverDispatched(attempt.call.tool.contract.name);
  return { ending: { outcome, value, ...(omitted === undefined ? {} : { omitted }) }, thrown: undefined };
}

function overTimeError(name: string, timeoutMs: number): SemelError {
  return new SemelError('LEASE_LOST', `${name}: its timeout of ${formatDuration(timeoutMs)} has passed.`, {
    next: 'Stop it, and report how it ended. Its lease is no longer renewed.',
    retriable: false,
  });
}

function unkeyedError({ call, record }: Attempt): SemelError {
  const { name } = call.tool.contract;
  return new SemelError('IN_DOUBT', `${name}: an earlier attempt may have landed under its key.`, {
    next: 'Send it with its `key`, or report `notLanded` and send nothing.',
    retriable: false,
    evidence: collectEvidence(record),
  });
}

/** The error of a request that ran nothing would say that nothing was run. */
function notTakenError({ contract }: Tool, cause: SemelError): SemelError {
  return new SemelError('STORE_UNAVAILABLE', `${contract.name}: the store did not take the report.`, {
    next: 'Do not run it again: send the report again when the store answers.',
    cause,
  });
}

function forgottenError({ key }: Ticket): SemelError {
  return new SemelError('UNRECORDED', `There is no record ${key} any more.`, {
    next: 'It was removed while it ran. What the effect did is not recorded: do not repeat it.',
  });
}
