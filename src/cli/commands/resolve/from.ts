// `semel resolve --from <export> --match <column>`: what a provider's export contains has landed.

import { basename } from 'node:path';
import type { ActOptions } from '../../../semel/index.ts';
import { confirm } from '../../args/confirm.ts';
import { flagReader } from '../../args/flag-values.ts';
import type { Namespaces } from '../../args/namespaces.ts';
import { everyDoubt } from '../../args/records.ts';
import { complain, oneLine, print, printAside, printJson } from '../../render/print.ts';
import { usageError } from '../../usage.ts';
import { errorMatcher } from '../doubt/groups.ts';
import { type Decision, printReport, type Report, settleMany, summarize } from './many.ts';
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

const maxExamples = 20;

/** Each may name a record in several ways, which multiply. */
const maxPairs = 5;

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
  for (const { ref, contract, because } of decisions.slice(0, maxExamples))
    printAside(`  ${ref}  ${contract}  landed  ${because}`);
  if (decisions.length > maxExamples) printAside(`  … and ${decisions.length - maxExamples} more`);
  for (const candidate of unclear.slice(0, maxExamples))
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
    else if (decisions.length === 0)
      print(`Nothing was changed. To list what is open: semel doubt ${options}`);
    else print('Nothing was changed. Leave out --dry-run to settle.');
    return 0;
  }
  if (!(await confirm(`Settle ${decisions.length} as landed?`, { command: 'resolve', yes: choice.yes }))) {
    print('Nothing was changed.');
    return 70;
  }
  const reports = await settleMany(ledger, decisions, act, choice.json ? () => undefined : printReport);
  return summarize([...reports, ...left], choice.json, `semel doubt ${options}`);
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
      '--from needs --match, the column that identifies the record',
      'Write: --match idempotency_key, or --match order_id=args.orderId',
    );
  if (choice.match.length > maxPairs)
    throw usageError(
      'resolve',
      `--match is given ${choice.match.length} times`,
      `Give it at most ${maxPairs} times.`,
    );
  return {
    pairs: choice.match.map(pairOf),
    where: flagReader('resolve', choice).pairs('where', 'status=succeeded'),
    resultField: choice['result-field'],
    refField: choice['ref-field'],
  };
}

/** Exactly one row, which matches no other record. */
function isClear({ rows, isShared }: Candidate): boolean {
  return rows === 1 && !isShared;
}

function whyUnclear({ rows, lines, isShared }: Candidate): string {
  const where = `line${rows === 1 ? '' : 's'} ${lines.join(', ')}${rows > lines.length ? ', …' : ''}`;
  return isShared
    ? `${where} may match other records too; add a --match`
    : `${where} all match it: it may have landed more than once`;
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
