// Whether a ledger may be used: by everybody, by nobody any more (it was moved), or only by whoever fills it. Pure: a
// store reads and writes it under the lock that keeps writers out, and refuses by it in the same step as every write.

import { SemelError } from '../../core/errors.ts';

export interface Standing {
  /** No two ledgers have the same; empty: there is none yet. */
  readonly incarnation: string;
  /** Where it is now, without a password; null: here. */
  readonly movedTo: string | null;
  /** The incarnation of the ledger that it is or was filled from; null: none, or that was given up. */
  readonly cameFrom: string | null;
  /** Its records are not all here yet: a claim could repeat what the other ledger knows. */
  readonly filling: boolean;
}

/** Why a call is refused; undefined: it may. */
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
    next: 'Nothing was run. Call again when `semel store copy` has ended; if it was interrupted, start it again.',
    evidence: { path: where },
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

/** Only an empty ledger is filled, and by one copy at a time. */
export function startFilling(standing: Standing, from: string, isEmpty: boolean, where: string): Standing {
  const { incarnation, movedTo, cameFrom, filling } = standing;
  if (incarnation === from)
    throw unsafe(`${where} is the ledger that is copied, or a copy of its files.`, 'Name another place.');
  if (movedTo !== null) throw movedError(where, movedTo);
  if (filling) {
    if (cameFrom === from || cameFrom === null) return { ...standing, cameFrom: from };
    throw unsafe(
      `The ledger ${where} is being filled from another one than this.`,
      'End that copy, or name another place.',
    );
  }
  if (!isEmpty)
    throw unsafe(
      `The ledger ${where} has records${cameFrom === from ? ' of its own since it was finishFilling from this one' : ''}.`,
      'Name a place with none: another file, another database or another schema.',
    );
  return { ...standing, cameFrom: from, filling: true };
}

export function finishFilling(standing: Standing, from: string, where: string): Standing {
  checkFilling(standing, from, where);
  return { ...standing, filling: false };
}

/** It stays closed: half of its records would be worse than none. */
export function abandonFilling(standing: Standing, from: string): Standing {
  return standing.filling && standing.cameFrom === from ? { ...standing, cameFrom: null } : standing;
}

/** Asked in the same step as every write of a copy: a slow one must not overwrite what is in use already. */
export function checkFilling({ filling, cameFrom }: Standing, from: string, where: string): void {
  if (!filling || cameFrom !== from) throw notFillingError(where);
}

export function notFillingError(where: string): SemelError {
  return unsafe(
    `The ledger ${where} is no longer being filled by this copy: another one ended it, or it was given up.`,
    'Look with `semel store check` which of the two ledgers is in use.',
  );
}

function unsafe(happened: string, next: string): SemelError {
  return new SemelError('STORE_UNSAFE', happened, { next });
}
