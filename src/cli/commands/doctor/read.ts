// Reads what the checks need: the ledger's files, its records with their history, and the user's default ledger if that
// is another one. Changes nothing.

import { closeSync, existsSync, readSync, realpathSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { SemelError } from '../../../core/errors.ts';
import { livenessFolder, livenessProblem, rerunsByItself, shownOwner } from '../../../jobs/index.ts';
import { listRoots, type RecordInfo, rootsNamespace, type Semel } from '../../../semel/index.ts';
import { openRegular } from '../../../store/files.ts';
import type { StoreFacts } from '../../../store/store.ts';
import { defaultPath } from '../../../stores/sqlite/index.ts';
import { type Namespaces, namespacesFor } from '../../args/namespaces.ts';
import { everyRecord, listContracts } from '../../args/records.ts';
import { type LedgerChoice, ledgerOptions, ledgerPath, storeFor } from '../../ledger.ts';
import { deadHolders } from '../../render/dead-holders.ts';
import { isJobLock, isStep } from '../../render/state.ts';
import type { ContractsIn, FilesSeen, RecordSeen, Refused, Seen } from './seen.ts';

/** Held in memory. */
const maxRecords = 200_000;
const maxNamespaces = 1_000;
/** Larger args are not compared. */
const maxArgsLength = 4_096;

export interface Reading extends Seen {
  readonly namespaces: readonly string[];
  /** Sentences. */
  readonly leftOut: readonly string[];
  /** How many records were read; old ones without events are not kept. */
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
  if (all.length > maxNamespaces)
    leftOut.push(
      `Only ${maxNamespaces} of ${all.length} namespaces were checked: choose another with --namespace.`,
    );
  const names = all.slice(0, maxNamespaces);
  if (chosen !== undefined && !names.includes(chosen)) names.push(chosen);
  const isDead = await deadHolders(ledger);
  const deadHolder = (record: RecordInfo) =>
    // The record of the run itself says it too.
    isDead(record) && !isJobLock(record) ? shownOwner(record.owner) : undefined;
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
    for await (const record of recordsOf(semel, since, deadHolder)) {
      looked += 1;
      if (record === undefined) continue;
      if (records.length === maxRecords) {
        leftOut.push(`Only ${maxRecords} records were checked: narrow it down with --since or --namespace.`);
        break;
      }
      records.push(record);
    }
    if (records.length === maxRecords) break;
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
    optionsFor: (namespace) => ledgerOptions(namespace, facts),
  };
}

function livenessProblemOf({ kind, location }: StoreFacts): string | undefined {
  const folder = livenessFolder(kind, location);
  const problem = livenessProblem(folder);
  return problem === undefined ? undefined : `${folder} ${problem}.`;
}

/** A refused ledger is a finding; a missing or unreachable one is an error. */
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

/** Undefined for a record that was settled before `since` and has no events after it. */
async function* recordsOf(
  semel: Semel,
  since: number,
  deadHolder: (record: RecordInfo) => string | undefined,
): AsyncGenerator<RecordSeen | undefined> {
  for await (const record of everyRecord(semel, {})) {
    const history = await semel.records.history(record.key);
    const events = history.filter(({ at }) => at >= since);
    const isOld = record.updatedAt.getTime() < since && !record.inDoubt;
    yield isOld && events.length === 0 ? undefined : seenOf(record, deadHolder(record), events);
  }
}

function seenOf(
  record: RecordInfo,
  deadHolder: string | undefined,
  events: RecordSeen['events'],
): RecordSeen {
  return {
    id: record.id,
    namespace: record.namespace,
    contract: record.contract,
    key: record.key,
    version: record.version,
    inDoubt: record.inDoubt && !isStep(record) && !rerunsByItself(record, Date.now()),
    again: record.again,
    args: isSmall(record.args) ? record.args : undefined,
    conversation: record.conversation,
    turn: record.turn,
    run: record.run,
    createdAt: record.createdAt,
    updatedAt: record.updatedAt,
    lastDispatchedAt: record.lastDispatchedAt,
    deadHolder,
    events,
  };
}

function isSmall(args: unknown): boolean {
  try {
    return (JSON.stringify(args) ?? '').length <= maxArgsLength;
  } catch {
    return false;
  }
}

/** Only its contracts. If it cannot be opened, the programs that use it report that. */
async function otherLedger({ kind, location }: StoreFacts): Promise<Seen['other']> {
  const path = defaultPath();
  if (kind !== 'sqlite' || !existsSync(path) || realpathSync(path) === location) return undefined;
  try {
    await using ledger = namespacesFor(
      { store: 'sqlite:', namespace: undefined },
      { cache: false, onWarning: () => undefined },
    );
    const contracts: ContractsIn[] = [];
    for (const namespace of (await ledger.in('default').records.namespaces()).slice(0, maxNamespaces))
      contracts.push({ namespace, contracts: await listContracts(ledger.in(namespace)), roots: [] });
    return { path, contracts };
  } catch {
    return undefined;
  }
}

/** Before the ledger is opened: opening repairs and tidies. */
function filesAt(path: string): FilesSeen {
  return {
    path,
    logBytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
    freeBytes: freeAt(dirname(path)),
    journal: journalOf(path),
  };
}

function freeAt(folder: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return undefined;
  }
}

/** Byte 18 of an SQLite file. */
function journalOf(path: string): FilesSeen['journal'] {
  const header = Buffer.alloc(20);
  try {
    const file = openRegular(path);
    try {
      if (readSync(file, header) < header.length) return undefined;
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined;
  }
  return header[18] === 2 ? 'wal' : header[18] === 1 ? 'rollback' : undefined;
}
