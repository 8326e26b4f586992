// What an effect that is not enforced gives its caller: what it returned or threw, except its word about itself. An effect whose
// code made the call would take that for its own.

import { makeReadable } from '../../core/contract/classify.ts';
import type { Contract } from '../../core/contract/contract.ts';
import { isRepeatable } from '../../core/contract/words.ts';
import { type ErrorCode, SemelError } from '../../core/errors.ts';
import { AlreadyLanded, isSignal, NotLanded, PartialSuccess, Rejected } from '../../core/signals.ts';
import { repeatableError } from '../refusals.ts';
import { describeError } from '../settle.ts';

type Told = Pick<Contract, 'name' | 'effect'>;

/** What had landed already is a success, as for every call. */
export async function withoutWord(contract: Told, running: Promise<unknown>): Promise<unknown> {
  try {
    return await running;
  } catch (thrown) {
    const error = makeReadable(thrown);
    if (error instanceof AlreadyLanded) return error.value;
    throw isSignal(error) ? toError(contract, error as Error) : thrown;
  }
}

/** For callers that get no exceptions. */
export function threwError({ name, effect }: Told, cause: unknown): SemelError {
  const isHarmless = isRepeatable(effect);
  return new SemelError('FAILED', `${name} threw: ${describeError(cause)}.`, {
    cause,
    retriable: isHarmless,
    next: isHarmless
      ? 'It was not recorded, so you may call again.'
      : 'It may have landed, and a repeated call would run again. Check first.',
  });
}

function toError({ name, effect }: Told, cause: Error): SemelError {
  const why = describeError(cause);
  if (cause instanceof Rejected) return new SemelError('FAILED', `${name} failed: ${why}.`, { cause });
  if (isRepeatable(effect)) return repeatableError(name, why, { cause });
  if (cause instanceof NotLanded)
    return new SemelError('NOT_LANDED', `${name} did not land: ${why}.`, { cause });
  const isPartial = cause instanceof PartialSuccess;
  const code: ErrorCode = isPartial ? 'PARTIAL_SUCCESS' : 'IN_DOUBT';
  return new SemelError(code, `${name}: ${why}.`, {
    cause,
    ...(isPartial && { value: cause.landed }),
    next: 'Check what landed: a repeated call would run again.',
    retriable: false,
  });
}
