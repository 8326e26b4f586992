// Stages a call in the caller's transaction: the intent commits with the caller's data, and a relay delivers it later. The key
// is derived here, once; a relay takes it as it is.

import { type Call, isTraceable } from '../call/index.ts';
import { toInstant } from '../core/clock.ts';
import { encodeResult } from '../core/codec/codec.ts';
import { checkKnown, fieldNames } from '../core/contract/known-fields.ts';
import { isRepeatable } from '../core/contract/words.ts';
import { SemelError } from '../core/errors.ts';
import { findDrift } from '../core/key/identity.ts';
import { recordId } from '../core/key/key.ts';
import { checkText } from '../core/text.ts';
import { toAnswer } from '../ledger/index.ts';
import { hasSettledStaged } from '../rules/state.ts';
import { type CallOptions, type Engine, engineOf, type ToolFunction } from '../semel/index.ts';
import type { Intent, OutboxRow } from '../store/outbox.ts';
import type { StoredRecord } from '../store/store.ts';
import { inOrder } from './in-order.ts';
import { transactionsOf } from './in-transaction.ts';
import { encodeCall, fingerprintOf, readCall, rowPrint } from './staged-call.ts';
import { wakeRelays } from './wake.ts';

export interface StageOptions extends Omit<CallOptions, 'signal'> {
  /**
   * Rows of one group are delivered one after the other, and the group stops at a row that is in doubt or dead. Transactions
   * that overlap have no order, unless it is `strict`: then they wait for each other when they stage.
   */
  readonly group?: string | { readonly name: string; readonly strict?: boolean };
  readonly notBefore?: Date | number;
}

/** What became of a staging. Nothing of it is durable before the transaction commits. */
export interface Staged {
  readonly key: string;
  /** The short name of the intent, and later of its record. */
  readonly id: string;
  /**
   * `delivered`: it was done before, and nothing was staged. `in doubt`, `dead`: so is the intent that was staged before, and
   * staging it again changes nothing: `semel outbox retry` or `semel outbox drop` does.
   */
  readonly status: 'staged' | 'staged before' | 'in doubt' | 'dead' | 'delivered';
  /** Content fields in which it differs from what was staged or delivered before: the first wording counts. */
  readonly drift: readonly string[];
}

const optionNames = fieldNames<StageOptions>({
  group: true,
  notBefore: true,
  conversation: true,
  turn: true,
  run: true,
  at: true,
  toolCallId: true,
  key: true,
  again: true,
  notAfter: true,
  version: true,
  permissions: true,
  caller: true,
});

export async function stage(
  semel: object,
  tool: Pick<ToolFunction<unknown, unknown>, 'contract'>,
  tx: unknown,
  args: unknown,
  given: StageOptions = {},
): Promise<Staged> {
  // A misspelt `notBefore` would be delivered at once.
  checkKnown(`stage() of ${tool.contract.name}`, given, optionNames, 'INVALID_ARGS');
  const { group, notBefore, ...options } = given;
  const engine = engineOf(semel);
  const made = await engine.makeCall(tool, args, options);
  if (made.problem !== undefined) throw made.problem;
  const notBeforeMs = toInstant('notBefore', notBefore) ?? null;
  await engine.open();
  const transactions = transactionsOf(engine);
  return inOrder(tx, async () => {
    const call = await findFirst(engine, tx, made);
    const intent = toIntent(call, group, notBeforeMs);
    const about = { key: call.key, id: recordId(call.namespace, call.key) };
    let known: readonly StoredRecord[] = [];
    let delivered: StoredRecord | undefined;
    const add = () =>
      transactions.stage(tx, intent, (records) => {
        known = records;
        delivered = records.find((record) => isDelivered(call, record));
        return delivered === undefined;
      });
    let found = await add();
    const compare = () =>
      found !== undefined && 'existing' in found ? compareStaged(call, found.existing) : [];
    // Throws if the row is another intent.
    let drift = compare();
    if (found !== undefined && 'existing' in found && isOfBefore(call, found.existing, known)) {
      await transactions.unstage(tx, found.existing.n);
      found = await add();
      drift = compare();
    }
    if (found === undefined)
      return { ...about, status: 'delivered', drift: findDrift(delivered?.content ?? null, call.content()) };
    wakeRelays(engine.store);
    if ('n' in found) return { ...about, status: 'staged', drift: [] };
    const { existing } = found;
    const isNew = drift.some((field) => !existing.drift.includes(field));
    if (isNew) await transactions.noteDrift(tx, existing.n, [...new Set([...existing.drift, ...drift])]);
    const { state } = existing;
    return { ...about, status: state === 'waiting' ? 'staged before' : state, drift };
  });
}

/** A framework may dispatch one call again in another turn. It is marked in the caller's transaction, as it is staged there. */
async function findFirst(engine: Engine, tx: unknown, call: Call): Promise<Call> {
  if (!isTraceable(call)) return call;
  return transactionsOf(engine).within(tx, async ({ store }) => {
    const { pipeline, ledger } = engine.pipelineOn(store);
    const first = await pipeline.inOriginalTurn(call);
    await ledger.close();
    return first;
  });
}

function toIntent(call: Call, group: StageOptions['group'], notBefore: number | null): Intent {
  const { contract } = call.tool;
  const refuse = (what: string, next: string): never => {
    throw new SemelError('CONTRACT_INVALID', `${contract.name}: ${what}.`, { path: 'args', next });
  };
  if (contract.redact.length > 0)
    refuse(
      'it redacts args, so a relay could not run it',
      'Stage a reference to the data instead of the data.',
    );
  const encoded = encodeResult(call.args, { maxBytes: maxArgsBytes });
  if (!encoded.ok) return refuse(`its args cannot be stored (${encoded.detail})`, 'Stage plain data.');
  const { name, strict } = readGroup(contract.name, group);
  const about = {
    namespace: call.namespace,
    key: call.key,
    contract: contract.name,
    version: contract.version,
    group: name,
    fingerprint: rowPrint(call),
    caller: call.caller,
  };
  return {
    ...about,
    olderKeys: call.olderKeys,
    strict,
    notBefore,
    call: encodeCall(about, call, encoded.text),
  };
}

const groupNames = fieldNames<Exclude<StageOptions['group'], string | undefined>>({
  name: true,
  strict: true,
});

function readGroup(contract: string, group: StageOptions['group']): { name: string | null; strict: boolean } {
  if (group === undefined) return { name: null, strict: false };
  const given = typeof group === 'object' && group !== null ? group : { name: group, strict: false };
  checkKnown(`The group in stage() of ${contract}`, given, groupNames, 'INVALID_ARGS');
  const { name, strict = false } = given;
  if (name === undefined || typeof strict !== 'boolean')
    throw new SemelError(
      'INVALID_ARGS',
      `stage() of ${contract}: \`group\` has no name, or \`strict\` is not true or false.`,
      {
        path: 'group',
        next: "Write group: 'order-17', or group: { name: 'order-17', strict: true }.",
      },
    );
  return { name: checkText('group', name) ?? null, strict };
}

const maxArgsBytes = 1_048_576;

/** Throws if the key belongs to something else. */
function isDelivered(call: Call, record: StoredRecord): boolean {
  if (record.expired) return false;
  const answer = toAnswer(record, call);
  if (answer.is === 'conflict') throw conflictError(call);
  if (answer.is === 'foreign') throw foreignError(call);
  if (answer.is !== 'replay' || record.status !== 'succeeded') return false;
  refuseStrictDrift(call, record);
  return true;
}

/**
 * The row of this intent waits only to be removed: an expired record says that it has landed, but does not answer for what is
 * staged now.
 */
function isOfBefore(call: Call, row: OutboxRow, records: readonly StoredRecord[]): boolean {
  if (row.state !== 'waiting') return false;
  return records.some(
    (record) =>
      record.expired &&
      record.status === 'succeeded' &&
      (row.generation === null || row.generation === record.generation) &&
      hasSettledStaged(record, row.stagedAt) &&
      toAnswer(record, call).is === 'replay' &&
      call.findConflict(record).length === 0,
  );
}

/** The content fields that differ from the staged intent. Throws if it is a different intent. */
function compareStaged(call: Call, row: OutboxRow): readonly string[] {
  const staged = readCall(row);
  if (row.caller !== call.caller && !call.share) throw foreignError(call);
  if (fingerprintOf(row, staged) !== call.fingerprint) throw conflictError(call);
  refuseStrictDrift(call, { key: row.key, content: staged.content });
  const drift = findDrift(staged.content, call.content());
  // A write that is harmless to repeat is made as its caller requested it: the first wording does not replace a later one.
  if (drift.length > 0 && isRepeatable(call.tool.contract.effect)) throw otherWriteError(call, drift);
  return drift;
}

function otherWriteError({ tool }: Call, fields: readonly string[]): SemelError {
  const named = fields.join(', ');
  return new SemelError(
    'IN_FLIGHT',
    `${tool.contract.name}: an equal write with another ${named} is staged and not delivered yet.`,
    {
      path: fields[0] ?? '',
      next: `Nothing was staged. Stage it again once that one is delivered; or name what tells the changes apart (such as a revision) in \`identity\`, and stage them in one \`group\`: then each is delivered, in order.`,
    },
  );
}

function refuseStrictDrift(
  call: Call,
  staged: { readonly key: string; readonly content: string | null },
): void {
  const fields = call.findConflict(staged);
  if (fields.length === 0) return;
  throw new SemelError(
    'KEY_CONFLICT',
    `${call.tool.contract.name} was staged or delivered with another ${fields.join(', ')}.`,
    { next: 'Nothing was staged. Use another identity for another intent.' },
  );
}

function conflictError(call: Call): SemelError {
  return new SemelError(
    'KEY_CONFLICT',
    `The key of ${call.tool.contract.name} was staged or used before with other identity args.`,
    { next: 'Nothing was staged. Use another key for another intent.' },
  );
}

function foreignError(call: Call): SemelError {
  return new SemelError(
    'NOT_PERMITTED',
    `${call.tool.contract.name}: this intent was staged or used by another caller.`,
    { next: 'Nothing was staged. Use an identity of your own.' },
  );
}
