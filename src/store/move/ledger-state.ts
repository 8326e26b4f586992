// Whether a ledger may be used: by everyone, by nobody (it has moved), or only by the copy that fills it. Pure: a store
// keeps this state under the lock of its writers, and checks it in the same step as every write.

import { SemelError } from '../../core/errors.ts';

export interface Standing {
  /** The unique id of the ledger; empty: there is none yet. */
  readonly incarnation: string;
  /** The address it has moved to, without a password; null: it has not moved. */
  readonly movedTo: string | null;
  /** The incarnation of the ledger that it is or was filled from; null: none, or the copy was abandoned. */
  readonly cameFrom: string | null;
  /** Records are still missing: a claim could repeat what the other ledger has recorded. */
  readonly filling: boolean;
}

/** Why a call is refused; undefined: it is allowed. */
export function refusalOf(standing: Omit<Standing, 'incarnation'>, where: string): SemelError | undefined {
  if (standing.movedTo !== null) return movedError(where, standing.movedTo);
  return standing.filling ? fillingError(where) : undefined;
}

export function movedError(where: string, to: string): SemelError {
  return new SemelError('STORE_MOVED', `The ledger ${where} has moved to ${to}.`, {
    next: `Point this process at ${to}.`,
    evidence: { path: where, to },
  });
}

export function fillingError(where: string): SemelError {
  return new SemelError('STORE_UNAVAILABLE', `The ledger ${where} is being filled from another one.`, {
    next: 'Nothing was run. Call again when `semel store copy` has finished; if it was interrupted, run it again.',
    evidence: { path: where },
  });
}

/** A store throws it when it is sealed. */
export function stagedError(where: string): SemelError {
  return new SemelError('STORE_UNSAFE', `The ledger ${where} has staged intents, which are not copied.`, {
    next: 'Nothing was moved. Deliver them first: `semel outbox ls` lists them.',
  });
}

export function seal(standing: Standing, to: string, where: string): Standing {
  if (standing.filling) throw fillingError(where);
  if (standing.movedTo !== null && standing.movedTo !== to) throw movedError(where, standing.movedTo);
  return { ...standing, movedTo: to };
}

export function unseal(standing: Standing): Standing {
  return { ...standing, movedTo: null };
}

/** Only an empty ledger can be filled, by one copy at a time. */
export function startFilling(standing: Standing, from: string, isEmpty: boolean, where: string): Standing {
  const { incarnation, movedTo, cameFrom, filling } = standing;
  if (incarnation === from)
    throw unsafe(`${where} is the source itself, or a copy of its files.`, 'Choose another target.');
  if (movedTo !== null) throw movedError(where, movedTo);
  if (filling) {
    if (cameFrom === from || cameFrom === null) return { ...standing, cameFrom: from };
    throw unsafe(
      `The ledger ${where} is being filled from another ledger.`,
      'Finish that copy, or choose another target.',
    );
  }
  if (!isEmpty)
    throw unsafe(
      `The ledger ${where} has records${cameFrom === from ? ' of its own since it was filled from this one' : ''}.`,
      'Choose an empty target: another file, another database or another schema.',
    );
  return { ...standing, cameFrom: from, filling: true };
}

export function finishFilling(standing: Standing, from: string, where: string): Standing {
  checkFilling(standing, from, where);
  return { ...standing, filling: false };
}

/** The ledger stays closed: half of the records would be worse than none. */
export function abandonFilling(standing: Standing, from: string): Standing {
  return standing.filling && standing.cameFrom === from ? { ...standing, cameFrom: null } : standing;
}

/** Checked in the same step as every write of a copy: a slow copy must not overwrite a ledger that is in use. */
export function checkFilling({ filling, cameFrom }: Standing, from: string, where: string): void {
  if (!filling || cameFrom !== from) throw notFillingError(where);
}

export function notFillingError(where: string): SemelError {
  return unsafe(
    `The ledger ${where} is no longer being filled by this copy: another copy finished it, or it was abandoned.`,
    'Run `semel store check` to see which of the two ledgers is in use.',
  );
}

export function unsafe(happened: string, next: string): SemelError {
  return new SemelError('STORE_UNSAFE', happened, { next });
}
