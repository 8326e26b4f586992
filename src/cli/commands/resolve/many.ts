// Settles many records, each under the ref that was listed: a refusal is told and stops no other.

import { isSemelError } from '../../../core/errors.ts';
import type { ActOptions, Resolution, Semel } from '../../../semel/index.ts';
import type { Namespaces } from '../../args/namespaces.ts';
import { print, printable, printJson } from '../../render/print.ts';

export interface Decision {
  readonly namespace: string;
  readonly key: string;
  readonly ref: string;
  readonly contract: string;
  readonly resolution: Resolution;
  readonly note: string | undefined;
  /** What it is decided by, for the reader. */
  readonly because: string;
}

export interface Report {
  readonly ref: string;
  readonly contract: string;
  readonly outcome: 'settled' | 'refused' | 'would settle' | 'left open';
  readonly status?: string;
  readonly why?: string;
}

export async function settleMany(
  ledger: Pick<Namespaces, 'in'>,
  decisions: readonly Decision[],
  options: ActOptions,
  told: (report: Report) => void,
): Promise<readonly Report[]> {
  const reports: Report[] = [];
  for (const { namespace, key, ref, contract, resolution, note } of decisions) {
    const semel = ledger.in(namespace);
    const report = await settleOne(semel, `${key}${ref.slice(ref.indexOf('@'))}`, resolution, {
      ...options,
      ...(note === undefined ? {} : { note }),
    }).then(
      (status): Report => ({ ref, contract, outcome: 'settled', status }),
      (error: unknown): Report => {
        // A store that is away concerns all of them.
        if (!isSemelError(error) || error.code !== 'RESOLVE_STALE') throw error;
        return { ref, contract, outcome: 'refused', why: error.message };
      },
    );
    told(report);
    reports.push(report);
  }
  return reports;
}

/** By key: to find an id, what is open would be read once for every record. */
async function settleOne(
  semel: Semel,
  ref: string,
  resolution: Resolution,
  options: ActOptions,
): Promise<string> {
  return (await semel.doubts.resolve(ref, resolution, options)).status;
}

export function printReport({ ref, contract, outcome, status, why }: Report): void {
  const what = status === undefined ? outcome : `${outcome}: ${status}`;
  print(printable(`${ref}  ${contract}  ${what}${why === undefined ? '' : `  (${why})`}`));
}

/** And the exit code: 70 where something was refused. */
export function conclude(reports: readonly Report[], json: boolean | undefined, next: string): number {
  const refused = reports.filter(({ outcome }) => outcome === 'refused').length;
  const settled = reports.filter(({ outcome }) => outcome === 'settled').length;
  if (json) printJson(reports);
  else
    print(
      `${settled} settled, ${refused} refused.${refused === 0 ? '' : ` Look at what they are now: ${printable(next)}`}`,
    );
  return refused === 0 ? 0 : 70;
}
