// Reads what the checks look at: the ledger's files, its records with their history, and the ledger of this user where
// that is another one. Changes nothing.

import { existsSync, realpathSync } from 'node:fs';
import { SemelError } from '../../../core/errors.ts';
import { livenessFolder, livenessProblem } from '../../../jobs/index.ts';
import { commandOptions, type RecordInfo, rootsNamespace, listRoots, type Semel } from '../../../semel/index.ts';
import type { StoreFacts } from '../../../store/store.ts';
import { defaultPath } from '../../../stores/sqlite/index.ts';
import { type Namespaces, namespacesFor } from '../../args/namespaces.ts';
import { everyRecord, listContracts } from '../../args/records.ts';
import { type LedgerChoice, ledgerPath, storeFor } from '../../ledger.ts';
import { filesAt } from './files.ts';
import type { ContractsIn, RecordSeen, Refused, Seen } from './seen.ts';

/** More than these are not held in memory. */
const mostRecords = 200_000;
/** More than these are not looked at. */
const mostNamespaces = 1_000;
/** Larger args are not compared. */
const mostArgs = 4_096;

export interface Reading extends Seen {
  /** Whose records were looked at. */
  readonly namespaces: readonly string[];
  /** What was left out, in sentences. */
  readonly leftOut: readonly string[];
  /** How many records were read; those with nothing new to tell are not kept. */
  readonly looked: number;
}

export async function readLedger(choice: LedgerChoice, now: number, since: number): Promise<Reading> {
  const path = ledgerPath(choice);
  await using ledger = namespacesFor(choice, { cache: false, onWarning: () => undefined });
  const { chosen } = ledger;
  const files = path === undefined || !existsSync(path) ? undefined : filesAt(path);
  const opened = await opening(ledger);
  const nothing = {
    livenessProblem: undefined,
    damage: [],
    records: [],
    contracts: [],
    other: undefined,
    namespaces: [],
    leftOut: [],
    looked: 0,
  };
  if ('refused' in opened)
    return { now, since, facts: undefined, ...opened, files, ...nothing, optionsFor: () => '' };

  const { facts } = opened;
  const all = await ledger.in(chosen ?? 'default').records.namespaces();
  const leftOut: string[] = [];
  if (all.length > mostNamespaces)
    leftOut.push(
      `Only ${mostNamespaces} of ${all.length} namespaces were looked at: name another by --namespace.`,
    );
  const names = all.slice(0, mostNamespaces);
  if (chosen !== undefined && !names.includes(chosen)) names.push(chosen);
  const records: RecordSeen[] = [];
  const contracts: ContractsIn[] = [];
  let looked = 0;
  for (const namespace of names) {
    const semel = ledger.in(namespace);
    contracts.push({
      namespace,
      contracts: await listContracts(semel),
      roots: await listRoots(ledger.in(rootsNamespace(namespace))),
    });
    if (chosen !== undefined && namespace !== chosen) continue;
    for await (const record of recordsOf(semel, since)) {
      looked += 1;
      if (record === undefined) continue;
      if (records.length === mostRecords) {
        leftOut.push(`Only ${mostRecords} records were looked at: choose by --since or --namespace.`);
        break;
      }
      records.push(record);
    }
    if (records.length === mostRecords) break;
  }
  return {
    now,
    since,
    facts,
    refused: undefined,
    damage: await damageIn(choice),
    files,
    livenessProblem: livenessProblemOf(facts),
    records,
    contracts,
    other: await otherLedger(facts),
    namespaces: chosen === undefined ? names : [chosen],
    leftOut,
    looked,
    optionsFor: (namespace) => commandOptions(namespace, facts) ?? '',
  };
}

function livenessProblemOf({ kind, location }: StoreFacts): string | undefined {
  const folder = livenessFolder(kind, location);
  const problem = livenessProblem(folder);
  return problem === undefined ? undefined : `${folder} ${problem}.`;
}

/** A refusal is what a doctor is asked about; that there is no ledger, or that it does not answer, is not. */
async function opening(
  ledger: Pick<Namespaces, 'open'>,
): Promise<{ facts: StoreFacts } | { refused: Refused }> {
  try {
    return { facts: await ledger.open() };
  } catch (error) {
    if (!(error instanceof SemelError) || (error.code !== 'STORE_UNSAFE' && error.code !== 'STORE_MOVED'))
      throw error;
    const { happened, correctiveAction, evidence = {} } = error;
    return { refused: { happened, next: correctiveAction, evidence } };
  }
}

async function damageIn(choice: LedgerChoice): Promise<readonly string[]> {
  const store = await storeFor(choice);
  try {
    return (await store.verify?.()) ?? [];
  } finally {
    await store.close();
  }
}

/** Undefined for a record that has nothing to tell: settled before, and quiet since. */
async function* recordsOf(semel: Semel, since: number): AsyncGenerator<RecordSeen | undefined> {
  for await (const record of everyRecord(semel, {})) {
    const history = await semel.records.history(record.key);
    const events = history.filter(({ at }) => at >= since);
    const isOld = record.updatedAt.getTime() < since && !record.inDoubt;
    yield isOld && events.length === 0 ? undefined : seenOf(record, events);
  }
}

function seenOf(record: RecordInfo, events: RecordSeen['events']): RecordSeen {
  return {
    id: record.id,
    namespace: record.namespace,
    contract: record.contract,
    key: record.key,
    version: record.version,
    inDoubt: record.inDoubt,
    again: record.again,
    args: isSmall(record.args) ? record.args : undefined,
    conversation: record.conversation,
    turn: record.turn,
    run: record.run,
    createdAt: record.createdAt,
    updatedAt: record.updatedAt,
    lastDispatchedAt: record.lastDispatchedAt,
    events,
  };
}

function isSmall(args: unknown): boolean {
  try {
    return (JSON.stringify(args) ?? '').length <= mostArgs;
  } catch {
    return false;
  }
}

/** Looked at by its contracts only. Where it cannot be opened, whoever uses it is told. */
async function otherLedger({ kind, location }: StoreFacts): Promise<Seen['other']> {
  const path = defaultPath();
  if (kind !== 'sqlite' || !existsSync(path) || realpathSync(path) === location) return undefined;
  try {
    await using ledger = namespacesFor(
      { store: 'sqlite:', namespace: undefined },
      { cache: false, onWarning: () => undefined },
    );
    const contracts: ContractsIn[] = [];
    for (const namespace of (await ledger.in('default').records.namespaces()).slice(0, mostNamespaces))
      contracts.push({ namespace, contracts: await listContracts(ledger.in(namespace)), roots: [] });
    return { path, contracts };
  } catch {
    return undefined;
  }
}
