// Turns a person's decision about a record into an act of the store, and a refused act into an error.

import { formatRef, toStoredResult } from '../../call/index.ts';
import { SemelError } from '../../core/errors.ts';
import { recordId } from '../../core/key/key.ts';
import type { Act, ResolveRefusal, StoredRecord } from '../../store/store.ts';

/** What somebody knows, or accepts, about a record in doubt. */
export type Resolution =
  | { readonly landed: unknown; readonly remoteRef?: string }
  /** It landed; what it returned is not known, or only the provider's id for it. */
  | 'landed'
  | { readonly remoteRef: string }
  | 'notLanded'
  | 'runAgain'
  /** The process that runs it is gone: its lease need not be waited for. What it dispatched is in doubt. */
  | 'died'
  | { readonly abandon: string };

export function toAct(resolution: Resolution, maxResultBytes: number): Act {
  if (resolution === 'notLanded' || resolution === 'runAgain' || resolution === 'died')
    return { type: resolution };
  const decision: object = typeof resolution === 'object' && resolution !== null ? resolution : {};
  if ('abandon' in decision) return { type: 'abandon', reason: toOneLine(String(decision.abandon)) };
  if (resolution === 'landed' || (!('landed' in decision) && 'remoteRef' in decision)) {
    const remoteRef = 'remoteRef' in decision ? String(decision.remoteRef) : null;
    return {
      type: 'landed',
      result: { text: null, omitted: 'it was declared landed, without its result', remoteRef },
    };
  }
  if ('landed' in decision) {
    const { landed, remoteRef } = decision as { landed: unknown; remoteRef?: string };
    return { type: 'landed', result: toStoredResult(landed, remoteRef, 'value', maxResultBytes) };
  }
  throw new SemelError('INVALID_ARGS', `${JSON.stringify(resolution)} is not a valid decision.`, {
    path: 'resolution',
    next: "Pass 'landed', { landed: value }, 'notLanded', 'runAgain', 'died' or { abandon: 'why' }.",
  });
}

/** A reason is shown on terminals and to models, in the middle of a sentence. */
function toOneLine(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ').trim();
}

function adviceForOpen({ inDoubt, lapsed, status }: StoredRecord): string {
  if (inDoubt) return 'It is in doubt: resolve it.';
  return status === 'running' && !lapsed
    ? 'It is being executed: wait for it.'
    : 'The next call executes it.';
}

export function resolveError(
  seen: StoredRecord,
  why: ResolveRefusal,
  now: StoredRecord | undefined,
): SemelError {
  const evidence = now === undefined ? {} : { status: now.status, ref: formatRef(now), inDoubt: now.inDoubt };
  const sentences: Record<ResolveRefusal, [string, string?]> = {
    gone: now?.expired
      ? ['has expired and no longer answers for its key.', 'Call again: the call runs.']
      : ['no longer exists.'],
    stale:
      now?.status === 'succeeded' || now?.status === 'failed'
        ? [`has been settled since it was looked at (${now.status}).`, 'There is nothing left to decide.']
        : now === undefined
          ? ['has changed since it was looked at.']
          : [
              'has changed since it was looked at.',
              `It is ${formatRef(now)} now: look at it, then decide again.`,
            ],
    running: [
      'is being executed right now.',
      'Wait for it, or force it (`force`, `--force`) to take the key away from its holder.',
    ],
    settled: [`is settled (${now?.status}): there is nothing to decide.`, 'To run it again, `forget` it.'],
    'not settled': ['is not settled, so there is nothing to forget.', 'Resolve it instead.'],
    'not running': ['is not being executed, so nothing can have died with it.', 'Look at it again.'],
    'not failed': [
      'did not fail, so it cannot be reopened.',
      now === undefined || now.status === 'succeeded' ? 'To run it again, `forget` it.' : adviceForOpen(now),
    ],
    early: [
      'may still land: its request may be in flight.',
      `Wait ${Math.ceil((now?.inFlightMs ?? 0) / 1000)} s, then decide; or force it (\`force\`, \`--force\`) if you are sure.`,
    ],
  };
  const [happened, next] = sentences[why];
  return new SemelError(
    'RESOLVE_STALE',
    `${seen.contract} ${recordId(seen.namespace, seen.key)} ${happened}`,
    {
      evidence,
      ...(next === undefined ? {} : { next }),
      ...(why === 'early' && Number.isFinite(now?.inFlightMs)
        ? { retryAfterMs: now?.inFlightMs as number }
        : {}),
    },
  );
}
