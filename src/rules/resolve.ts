// Decisions of a person or their program: verdicts about a record in doubt, and `forget` and `reopen` for settled ones.
// Each is refused if the record has changed since it was read, takes the next fence, and is written to the history.

import { isMadeOfSteps } from '../core/contract/version.ts';
import { applyLateSuccess, leaveInDoubt, release, succeed } from './endings.ts';
import type { Row } from './record.ts';
import type { ResolveAnswer, ResolveRefusal, ResolveRequest } from './requests.ts';
import {
  computeExpiry,
  event,
  expiredByHand,
  inFlightMs,
  isExpired,
  isInDoubt,
  isSettled,
  type Step,
  type Time,
  unchanged,
  view,
} from './state.ts';

export function resolve(row: Row | undefined, request: ResolveRequest, time: Time): Step<ResolveAnswer> {
  if (row?.token === request.token) return unchanged({ ok: true, record: view(row, time) });
  // A link is not a record.
  const refusal = row === undefined || row.movedTo !== null ? 'gone' : findRefusal(row, request, time);
  if (row === undefined || refusal !== undefined) {
    return unchanged({ ok: false, why: refusal ?? 'gone', record: row && view(row, time) });
  }
  if (row.news !== null && row.status === 'running') {
    // No verdict overrides a success that was reported, and the running attempt is fenced.
    const settled = applyLateSuccess(row, row.news, time);
    return {
      row: settled,
      answer: { ok: false, why: 'settled', record: view(settled, time) },
      events: [event(settled, time, 'lateNews', { fence: row.news.fence, instead: request.act.type })],
    };
  }
  const acted: Row = {
    ...act(row, request, time),
    fence: row.fence + 1,
    token: request.token,
    // Nothing is dispatched at the fence of a decision.
    dispatched: false,
  };
  const detail = {
    act: request.act.type,
    by: request.by,
    ...(request.login === undefined ? {} : { login: request.login }),
    note: request.note,
    force: request.force,
    before: {
      status: row.status,
      fence: row.fence,
      doubtFence: row.doubtFence,
      dispatchedAt: row.lastDispatchedAt,
    },
    ...(request.act.type === 'abandon' ? { reason: request.act.reason } : {}),
  };
  return {
    row: acted,
    answer: { ok: true, record: view(acted, time) },
    events: [event(acted, time, 'resolved', detail)],
  };
}

function findRefusal(row: Row, request: ResolveRequest, time: Time): ResolveRefusal | undefined {
  if (row.fence !== request.seen.fence || row.lastDispatchedAt !== request.seen.dispatchedAt) return 'stale';
  const { act, force } = request;
  if (act.type === 'forget') return isSettled(row) ? undefined : 'not settled';
  if (act.type === 'reopen') {
    // It no longer answers for its key; another record may, under another form of the key.
    if (isExpired(row, time)) return 'gone';
    return row.status === 'failed' ? undefined : 'not failed';
  }
  if (act.type === 'died') return row.status === 'running' ? undefined : 'not running';
  // Released to run again, it is still an open question, and the decision may be revised.
  const isReleasedInDoubt = row.status === 'released' && row.doubtFence !== null;
  if (isInDoubt(row, time) || isReleasedInDoubt) {
    // A look while requests were still in flight may have missed what landed since, however late the verdict arrives.
    const then = { ...time, wall: Math.min(time.wall, request.decidedAt) };
    return act.type === 'notLanded' && !force && inFlightMs(row, then) > 0 ? 'early' : undefined;
  }
  if (row.status === 'running') return force ? undefined : 'running';
  return 'settled';
}

function act(row: Row, { act }: ResolveRequest, time: Time): Row {
  switch (act.type) {
    case 'landed':
      // Without an id of their own, they speak of what was noted.
      return succeed(
        row,
        { ...act.result, remoteRef: act.result.remoteRef ?? row.result?.remoteRef ?? null },
        time,
      );
    case 'notLanded':
      // The records of its steps know what landed. The verdict lets it go on; if it were forgotten, all of them would be made anew.
      return isMadeOfSteps(row.version)
        ? runAgain(row, time)
        : { ...release(row, { error: row.error }, time), doubtFence: null };
    case 'runAgain':
      return runAgain(row, time);
    case 'abandon':
      // It may have landed, so it answers for its key as long as a success.
      return {
        ...release(
          row,
          {
            error: { code: 'FAILED', message: `Given up, may have landed: ${act.reason}`, retriable: false },
          },
          time,
        ),
        status: 'failed',
        doubtFence: row.doubtFence ?? row.fence,
        // A key that stays for good keeps its args: once reopened, they must be sent unchanged.
        expiresAt: row.retention?.keep === true ? null : computeExpiry(row, 'success', time),
      };
    case 'died': {
      const mayHaveLanded = row.dispatched || row.doubtFence !== null;
      const error = { code: 'DIED', message: 'The process that ran it died.', retriable: false };
      if (!mayHaveLanded) return { ...release(row, { error }, time), crashes: row.crashes + 1 };
      const ending = act.mayStillSend
        ? { error, result: null, late: true as const }
        : { error, result: null };
      return { ...leaveInDoubt(row, ending, time), crashes: 0 };
    }
    case 'forget':
      return { ...row, updatedAt: time.wall, retention: null, expiresAt: expiredByHand };
    case 'reopen':
      // An abandoned record is in doubt again. A refused one is free again, under a new provider key, because a provider
      // may keep replaying its refusal under the old one.
      return row.doubtFence === null
        ? {
            ...release(row, { error: row.error }, time),
            providerKeyFence: row.fence + 1,
            crashes: 0,
            // Nothing was sent under the new key yet, so the wording may change.
            lastDispatchedAt: null,
            prepared: null,
          }
        : { ...row, status: 'unknown', updatedAt: time.wall, settledAt: null, expiresAt: null };
  }
}

/** The doubt stays: a later "connection refused" must not turn it into "did not land". */
function runAgain(row: Row, time: Time): Row {
  const doubtFence = row.doubtFence ?? row.fence;
  return { ...release(row, { error: row.error }, time), doubtFence, expiresAt: null };
}
