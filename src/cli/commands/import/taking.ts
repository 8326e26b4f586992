// The second reading: imports each line that counts, many at a time, and counts the results.

import { hostname } from 'node:os';
import type { ImportResult, PortableRecord, Semel } from '../../../semel/index.ts';
import type { Line } from '../../args/input.ts';
import { entryOf, type Meaning, recordOf } from './plain.ts';
import { type Bad, type Plan, parsed } from './plan.ts';

export interface Report {
  readonly dryRun: boolean;
  readonly lines: number;
  readonly imported: { succeeded: number; failed: number; inDoubt: number; link: number };
  readonly skipped: { because: string; count: number; keys: string[] }[];
  readonly bad: readonly Bad[];
  readonly badCount: number;
}

export interface Terms {
  /** For records without their own. */
  readonly namespace: string;
  readonly contract: string;
  readonly meanings: ReadonlyMap<string, Meaning>;
  readonly windowMs: number;
  readonly dryRun: boolean;
}

/** Imports that share transactions. */
const atOnce = 64;
const namedKeys = 5;

export async function importLines(
  /** Where the records of a namespace go. */
  into: (namespace: string) => Semel,
  batches: AsyncIterable<readonly Line[]>,
  plan: Plan,
  { namespace, contract, meanings, windowMs, dryRun }: Terms,
): Promise<Report> {
  const { lines, bad, badCount } = plan;
  const report: Report = {
    dryRun,
    lines,
    imported: { succeeded: 0, failed: 0, inDoubt: 0, link: 0 },
    skipped: [],
    bad,
    badCount,
  };
  const terms = { namespace, contract, windowMs, owner: hostname(), now: Date.now() };

  function recordFrom({ text }: Line): PortableRecord | ImportResult | undefined {
    const line = parsed(text);
    if (typeof line === 'string') return undefined;
    if (plan.form === 'semel') return line as unknown as PortableRecord;
    const entry = entryOf(line, plan.fields);
    if (typeof entry === 'string') return undefined;
    const meaning = meanings.get(entry.status) ?? 'doubt';
    if (meaning === 'skip')
      return {
        imported: false,
        key: entry.key,
        because: `its status is "${entry.status}": it may run again`,
      };
    return recordOf(line, entry, meaning, terms);
  }

  async function take(line: Line): Promise<void> {
    const record = recordFrom(line);
    if (record === undefined) return;
    count('imported' in record ? record : await into(record.namespace).records.import(record, { dryRun }));
  }

  function count(arrival: ImportResult): void {
    if (arrival.imported) {
      report.imported[arrival.as === 'in doubt' ? 'inDoubt' : arrival.as] += 1;
      return;
    }
    const { because, key } = arrival;
    const known = report.skipped.find((each) => each.because === because);
    const skip = known ?? { because, count: 0, keys: [] };
    if (known === undefined) report.skipped.push(skip);
    skip.count += 1;
    if (skip.keys.length < namedKeys) skip.keys.push(key);
  }

  for await (const batch of batches) {
    const chosen = batch.filter(({ number }) => plan.chosen.has(number));
    for (let from = 0; from < chosen.length; from += atOnce)
      await Promise.all(chosen.slice(from, from + atOnce).map(take));
  }
  return report;
}

export function reportLines({ dryRun, imported, skipped, badCount }: Report): readonly string[] {
  const { succeeded, failed, inDoubt, link } = imported;
  const all = succeeded + failed + inDoubt + link;
  const parts = [
    [succeeded, 'succeeded'],
    [failed, 'failed'],
    [inDoubt, 'in doubt'],
    [link, link === 1 ? 'link' : 'links'],
  ].flatMap(([count, name]) => (count === 0 ? [] : [`${count} ${name}`]));
  const verb = dryRun ? 'Would import' : 'Imported';
  const left = skipped.reduce((sum, { count }) => sum + count, 0);
  return [
    `${verb} ${all}${all === 0 ? '' : ` (${parts.join(', ')})`}, ${dryRun ? 'skip' : 'skipped'} ${left}.`,
    ...skipped
      .toSorted((a, b) => b.count - a.count)
      .map(({ because, count, keys }) => {
        const more = count > keys.length ? ', …' : '';
        return `  ${count} skipped: ${because}  ${keys.join(', ')}${more}`;
      }),
    ...(badCount === 0 ? [] : [`  ${badCount} could not be read`]),
    ...(inDoubt === 0 || dryRun ? [] : ['What is in doubt needs a decision: semel doubt']),
  ];
}
