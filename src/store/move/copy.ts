// Moves a ledger to another store without losing an open record. Copies everything while the source is in use, seals the
// source, copies what has changed, compares, and only then opens the target. Never are both ledgers writable. After an
// interruption, the same copy resumes.

import { SemelError } from '../../core/errors.ts';
import { toleranceMs } from '../clock-check.ts';
import { movedError, unsafe } from './ledger-state.ts';
import { type About, isSame, type Name, type Raw, type RawRecord } from './raw.ts';

interface CopyOptions {
  readonly source: Raw;
  readonly target: Raw;
  /** A monotonic clock in milliseconds. */
  readonly mono?: () => number;
  onProgress?(progress: Progress): void;
}

export interface Progress {
  readonly step: 'first pass' | 'sealed' | 'open records' | 'last pass' | 'removed' | 'done';
  readonly looked: number;
  readonly written: number;
  readonly total: number;
}

export interface Copied {
  /** It had been copied before, and nothing was changed now. */
  readonly before: boolean;
  readonly records: number;
  readonly open: number;
  readonly floor: number;
  /** The address in the seal of the source. */
  readonly movedTo: string;
  /** How long neither ledger could be used. */
  readonly closedMs: number;
}

/** How much is read at once, in characters. */
const pageChars = 2 * 1024 * 1024;
const firstPage = 50;
const largestPage = 1_000;
/** A record whose lease ends during the comparison is written again. */
const maxTries = 5;

/** Checks whether a copy is allowed, and says what it would do. Changes nothing. */
export function plan(there: About, here: About | undefined): 'copy' | 'go on' | 'done' {
  if (there.incarnation === '')
    throw new SemelError('STORE_UNAVAILABLE', `There is no ledger at ${there.address}.`, {
      next: 'Name the one that is in use.',
    });
  if (here === undefined) {
    if (there.movedTo !== null) throw movedError(there.address, there.movedTo);
    return 'copy';
  }
  if (here.incarnation === there.incarnation)
    throw unsafe(
      `${there.address} and ${here.address} are one ledger, or one is a copy of the other's files.`,
      'Name another place.',
    );
  if (Math.abs(there.now - here.now) > toleranceMs)
    throw unsafe(
      `The clocks of the two stores are ${Math.round(Math.abs(there.now - here.now) / 60_000)} minutes apart: records would expire too early or too late.`,
      'Correct the clock that is wrong, then copy.',
    );
  const isOurs = here.cameFrom === there.incarnation;
  const isGoingOn = here.filling && (isOurs || here.cameFrom === null);
  if (there.movedTo === null) return isGoingOn ? 'go on' : 'copy';
  if (isOurs && !here.filling) return 'done';
  if (isGoingOn) return 'go on';
  if (there.movedTo !== here.address) throw movedError(there.address, there.movedTo);
  throw unsafe(
    `The ledger ${there.address} was sealed for a copy to ${here.address}, which does not know about it.`,
    'If that one was never in use, take the seal back (`semel store copy --unseal`) and copy again; otherwise restore it from a backup.',
  );
}

export async function copyLedger(options: CopyOptions): Promise<Copied> {
  const { source, target, mono = () => performance.now() } = options;
  const there = await source.about();
  const here = await target.about();
  const from = there.incarnation;
  if (plan(there, here) === 'done') return { ...copied(here, there), before: true, closedMs: 0 };

  await target.fill(from);
  if (there.movedTo === null) await pass('first pass', false);
  await source.seal(there.movedTo ?? here.address);
  const sealedAt = mono();
  const sealed = await source.about();
  tell('sealed', { looked: 0, written: 0 }, sealed.records);
  await target.write(from, { floor: sealed.floor });
  await pass('open records', true);
  await pass('last pass', false);
  await removeOthers();

  const [last, filled] = [await source.about(), await target.about()];
  compare(last, filled);
  await target.finish(from);
  return { ...copied(filled, last), before: false, closedMs: mono() - sealedAt };

  function tell(step: Progress['step'], { looked, written }: Counts, total: number): void {
    options.onProgress?.({ step, looked, written, total });
  }

  /** Compares every record with the target, writes those that differ, and in the last passes compares them again. */
  async function pass(step: 'first pass' | 'open records' | 'last pass', openOnly: boolean): Promise<void> {
    const total = step === 'open records' ? (await source.about()).open : (await source.about()).records;
    const counts = { looked: 0, written: 0 };
    for await (const { records, readAt } of pages(source, openOnly)) {
      counts.looked += records.length;
      counts.written += await bring(records, readAt, step !== 'first pass');
      tell(step, counts, total);
    }
  }

  async function bring(records: readonly RawRecord[], readAt: number, isLast: boolean): Promise<number> {
    let left = await different(records, readAt);
    const { length } = left;
    for (let tries = 1; left.length > 0; tries += 1) {
      if (tries > maxTries) throw notEqual(left[0] as RawRecord);
      await target.write(from, { put: left });
      if (!isLast) break;
      left = await different(left, readAt);
    }
    return length;
  }

  async function different(records: readonly RawRecord[], readAt: number): Promise<RawRecord[]> {
    const passedMs = mono() - readAt;
    const found = await target.find(records.map(nameOf));
    return records.filter((record, index) => !isSame(record, found[index], passedMs));
  }

  /** Removes what the source has pruned since the first pass. */
  async function removeOthers(): Promise<void> {
    const counts = { looked: 0, written: 0 };
    for await (const { records } of pages(target, false)) {
      const found = await source.find(records.map(nameOf));
      const others = records.filter((_, index) => found[index] === undefined).map(nameOf);
      if (others.length > 0) await target.write(from, { remove: others });
      counts.looked += records.length;
      counts.written += others.length;
    }
    tell('removed', counts, counts.looked);
  }

  async function* pages(
    raw: Raw,
    openOnly: boolean,
  ): AsyncGenerator<{ records: readonly RawRecord[]; readAt: number }> {
    let limit = firstPage;
    for (let after: string | undefined; ; ) {
      const { records, next } = await raw.page({ openOnly, after, limit });
      const readAt = mono();
      if (records.length > 0) yield { records, readAt };
      if (next === undefined) return;
      after = next;
      const chars = records.reduce((sum, record) => sum + JSON.stringify(record).length, 1);
      limit = Math.max(1, Math.min(largestPage, Math.floor((records.length * pageChars) / chars)));
    }
  }
}

interface Counts {
  readonly looked: number;
  readonly written: number;
}

function compare(there: About, here: About): void {
  if (there.movedTo === null)
    throw unsafe(
      `The seal of ${there.address} was removed while it was copied.`,
      'Copy again when nobody else is changing it.',
    );
  const differ = (['records', 'open'] as const).find((name) => there[name] !== here[name]);
  if (differ !== undefined || here.floor < there.floor)
    throw unsafe(
      `The copy is not complete: ${there.records} records, ${there.open} open, floor ${there.floor} at ${there.address}, but ${here.records}, ${here.open}, ${here.floor} at ${here.address}.`,
      'The target was not opened. Copy again; if that does not help, this is a bug in semel.',
    );
}

function copied({ records, open, floor }: About, { movedTo }: About) {
  return { records, open, floor, movedTo: movedTo ?? '' };
}

function nameOf({ row }: RawRecord): Name {
  return { namespace: row.namespace, key: row.key };
}

function notEqual({ row }: RawRecord): SemelError {
  return unsafe(
    `The record ${row.key} of ${row.namespace} is not the same after it was copied.`,
    'The target was not opened. Copy again; if that does not help, this is a bug in semel.',
  );
}
