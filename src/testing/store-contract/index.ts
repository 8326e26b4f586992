// What every store promises, as data: any test runner, and a user's own store, can run it.

import { callerCases } from './callers.ts';
import { claimCases } from './claim.ts';
import { clearCases } from './clear.ts';
import { concurrencyCases } from './concurrency.ts';
import { dispatchCases } from './dispatch.ts';
import { doubtCases } from './doubt.ts';
import type { ContractCase } from './harness.ts';
import { historyCases } from './history.ts';
import { importedCases } from './imported.ts';
import { nameAndSizeCases } from './names-and-sizes.ts';
import { newsCases } from './news.ts';
import { noteCases } from './note.ts';
import { pagingCases } from './paging.ts';
import { poisonCases } from './poison.ts';
import { repeatedCallCases } from './repeated-calls.ts';
import { retentionCases } from './retention.ts';
import { settleCases } from './settle.ts';
import { takeoverCases } from './takeover.ts';
import { verdictCases } from './verdicts.ts';

export { type ContractCase, type Need, type StoreHarness, whySkipped } from './harness.ts';

/** The cases, by topic; each plays on a fresh store. */
export function storeContract(): readonly ContractCase[] {
  return topics.flatMap(([topic, cases]) =>
    cases.map((contractCase) => ({ ...contractCase, name: `${topic}: ${contractCase.name}` })),
  );
}

const topics: readonly (readonly [string, readonly ContractCase[]])[] = [
  ['claim', claimCases],
  ['callers', callerCases],
  ['imported', importedCases],
  ['poison', poisonCases],
  ['takeover', takeoverCases],
  ['dispatch', dispatchCases],
  ['clear', clearCases],
  ['note', noteCases],
  ['settle', settleCases],
  ['doubt', doubtCases],
  ['verdict', verdictCases],
  ['news', newsCases],
  ['retention', retentionCases],
  ['history', historyCases],
  ['paging', pagingCases],
  ['concurrency', concurrencyCases],
  ['repeated calls', repeatedCallCases],
  ['names and sizes', nameAndSizeCases],
];
