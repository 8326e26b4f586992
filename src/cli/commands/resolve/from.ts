// `semel resolve --from <export> --match <column>`: what a provider's export has, has landed.

import { basename } from 'node:path';
import type { ActOptions } from '../../../semel/index.ts';
import { confirm } from '../../args/confirm.ts';
import { flagReader } from '../../args/flag-values.ts';
import type { Namespaces } from '../../args/namespaces.ts';
import { everyDoubt } from '../../args/records.ts';
import { complain, oneLine, print, printAside, printJson } from '../../render/print.ts';
import { usageError } from '../../usage.ts';
import { errorMatcher } from '../doubt/groups.ts';
import { conclude, type Decision, printReport, type Report, settleMany } from './many.ts';
import { pairOf } from './match.ts';
import { type Candidate, readingOf, type Terms } from './reading.ts';
import { readRows } from './rows.ts';

interface ExportChoice {
  readonly from: string;
  readonly match: readonly string[] | undefined;
  readonly where: readonly string[] | undefined;
  readonly 'result-field': string | undefined;
  readonly 'ref-field': string | undefined;
  readonly tool: string | undefined;
  readonly error: string | undefined;
  readonly note: string | undefined;
  readonly 'dry-run': boolean | undefined;
  readonly yes: boolean | undefined;
  readonly json: boolean | undefined;
}

/** Named one by one; the number says how many more there are. */
const examples = 20;

/** Each may name a record in several ways, and the ways multiply. */
const mostPairs = 5;

export async function resolveFrom(
  ledger: Namespaces,
  choice: ExportChoice,
  act: ActOptions,
  options: string,
): Promise<number> {
  const { candidates, rows, warning } = await readingOf(
    inDoubt(ledger, choice),
    readRows(choice.from),
    termsOf(choice),
  );
  const decisions = candidates.filter(isClear).map((candidate) => decisionOf(candidate, choice));
  const unclear = candidates.filter((candidate) => candidate.rows > 0 && !isClear(candidate));
  const open = candidates.length - decisions.length - unclear.length;
  const dryRun = choice['dry-run'] ?? false;

  if (warning !== undefined && decisions.length > 0) complain(warning);
  complain(
    `${rows} rows, ${candidates.length} in doubt: ${decisions.length} found, ${unclear.length} unclear, ${open} not found and left open.`,
  );
  for (const { ref, contract, because } of decisions.slice(0, examples))
    printAside(`  ${ref}  ${contract}  landed  ${because}`);
  if (decisions.length > examples) printAside(`  … and ${decisions.length - examples} more`);
  for (const candidate of unclear.slice(0, examples))
    printAside(`  ${candidate.ref}  ${candidate.contract}  left open: ${whyUnclear(candidate)}`);

  const left = unclear.map((candidate): Report => {
    const { ref, contract } = candidate;
    return { ref, contract, outcome: 'left open', why: whyUnclear(candidate) };
  });
  if (dryRun || decisions.length === 0) {
    const would = decisions.map(
      ({ ref, contract, because }): Report => ({ ref, contract, outcome: 'would settle', why: because }),
    );
    if (choice.json) printJson([...would, ...left]);
    else if (decisions.length === 0) print(`Nothing was changed. What is open: semel doubt ${options}`);
    else print('Nothing was changed. Without --dry-run it is settled.');
    return 0;
  }
  if (!(await confirm(`Settle ${decisions.length} as landed?`, { command: 'resolve', yes: choice.yes }))) {
    print('Nothing was changed.');
    return 70;
  }
  const reports = await settleMany(ledger, decisions, act, choice.json ? () => undefined : printReport);
  return conclude([...reports, ...left], choice.json, `semel doubt ${options}`);
}

async function* inDoubt(ledger: Namespaces, { tool, error }: ExportChoice) {
  const isMeant = error === undefined ? () => true : errorMatcher(error);
  for await (const semel of ledger.each())
    for await (const record of everyDoubt(semel, tool)) if (record.inDoubt && isMeant(record)) yield record;
}

function termsOf(choice: ExportChoice): Terms {
  if (choice.match === undefined)
    throw usageError(
      'resolve',
      '--from needs to know which column names the record',
      'Write: --match idempotency_key, or --match order_id=args.orderId',
    );
  if (choice.match.length > mostPairs)
    throw usageError(
      'resolve',
      `--match is given ${choice.match.length} times`,
      `Give it at most ${mostPairs} times.`,
    );
  return {
    pairs: choice.match.map(pairOf),
    where: flagReader('resolve', choice).pairs('where', 'status=succeeded'),
    resultField: choice['result-field'],
    refField: choice['ref-field'],
  };
}

/** One row that tells of this record only. */
function isClear({ rows, isShared }: Candidate): boolean {
  return rows === 1 && !isShared;
}

function whyUnclear({ rows, lines, isShared }: Candidate): string {
  const where = `line${rows === 1 ? '' : 's'} ${lines.join(', ')}${rows > lines.length ? ', …' : ''}`;
  return isShared
    ? `${where} may mean other records too; add a --match`
    : `${where} all tell of it: it may have landed more than once`;
}

function decisionOf(
  { namespace, key, ref, contract, lines, result, remoteRef }: Candidate,
  choice: ExportChoice,
): Decision {
  const source = `${choice.from === '-' ? 'standard input' : basename(choice.from)}, line ${lines[0]}`;
  return {
    namespace,
    key,
    ref,
    contract,
    resolution: { landed: result, ...(remoteRef === undefined ? {} : { remoteRef }) },
    note: choice.note === undefined ? source : `${choice.note} (${source})`,
    because: `line ${lines[0]}: ${oneLine(result, 80)}`,
  };
}
