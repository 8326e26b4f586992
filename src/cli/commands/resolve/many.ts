// Settles many records, each under the ref that was listed: a refusal is reported and does not stop the others.

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
  /** The evidence, for the reader. */
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
  onReport: (report: Report) => void,
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
    onReport(report);
    reports.push(report);
  }
  return reports;
}

/** By key: finding an id reads all open records, once per record. */
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

/** Prints a summary. Answers the exit code: 70 if something was refused. */
export function summarize(reports: readonly Report[], json: boolean | undefined, next: string): number {
  const refused = reports.filter(({ outcome }) => outcome === 'refused').length;
  const settled = reports.filter(({ outcome }) => outcome === 'settled').length;
  if (json) printJson(reports);
  else
    print(
      `${settled} settled, ${refused} refused.${refused === 0 ? '' : ` To see them now: ${printable(next)}`}`,
    );
  return refused === 0 ? 0 : 70;
}
