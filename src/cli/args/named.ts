// Finds a record by id, by the start of an id, by ref or by key, in every selected namespace.

import { SemelError } from '../../core/errors.ts';
import { shellWord } from '../../core/visible.ts';
import type { RecordInfo } from '../../semel/index.ts';
import { usageError } from '../usage.ts';
import { joinNames, type Namespaces } from './namespaces.ts';

/** As in git: with fewer characters a typo names another record. */
const minLength = 4;

export async function namedRecord(command: string, ledger: Namespaces, named: string): Promise<RecordInfo> {
  const isKey = named.includes('/');
  const at = named.lastIndexOf('@');
  const name = at > 0 ? named.slice(0, at) : named;
  if (!isKey && name.length < minLength && (name === '' || !(await isContract(ledger, name))))
    throw usageError(
      command,
      `${JSON.stringify(named)} is too short to name a record`,
      `Write at least ${minLength} characters of its id, as listed by \`semel ls\`.`,
    );
  const record = await findRecord(ledger, name);
  if (at > 0 && record.ref.slice(record.ref.indexOf('@')) !== named.slice(at))
    throw new SemelError('RESOLVE_STALE', `${record.contract} ${named} has changed since you looked.`, {
      next: `It is ${record.ref} now: \`semel show ${record.id}\`.`,
    });
  return record;
}

/** By key or id. Keys are unique within a namespace only. */
export async function findRecord(ledger: Namespaces, name: string): Promise<RecordInfo> {
  const found: RecordInfo[] = [];
  for await (const semel of ledger.each()) {
    const record = await semel.records.get(name);
    if (record !== undefined) found.push(record);
  }
  const [record, ...others] = found;
  if (record === undefined) throw await unknownRecord(ledger, name);
  if (others.length === 0) return record;
  const where = joinNames(found.map(({ namespace }) => namespace));
  throw new SemelError('INVALID_ARGS', `${name} matches records in ${where}.`, {
    next: 'Add --namespace, or write more of the id.',
  });
}

async function unknownRecord(ledger: Namespaces, name: string): Promise<SemelError> {
  const names = await ledger.names();
  const all = await ledger.in(names[0] as string).records.namespaces();
  const others = ledger.chosen === undefined ? [] : all.filter((other) => other !== ledger.chosen);
  const elsewhere =
    others.length === 0
      ? ''
      : ` Or leave out --namespace to search all; there are also: ${others.slice(0, 20).join(', ')}.`;
  const list = (await isContract(ledger, name))
    ? `That is a contract: \`semel ls --tool ${shellWord(name)}\` lists its records.`
    : '`semel ls` lists them.';
  return new SemelError('INVALID_ARGS', `There is no record ${name} in ${joinNames(names)}.`, {
    next: `${list}${elsewhere}`,
  });
}

async function isContract(ledger: Namespaces, name: string): Promise<boolean> {
  if (name.includes('/')) return false;
  for await (const semel of ledger.each()) {
    const { items } = await semel.records.list({ contract: name, limit: 1 });
    if (items.length > 0) return true;
  }
  return false;
}
