// The record that somebody named: by id, by the start of one, by ref, or by key.

import { SemelError } from '../core/errors.ts';
import type { RecordInfo, Semel } from '../semel/index.ts';
import { usageError } from './usage.ts';

/** As in git: with fewer characters a slip of the finger names something else. */
const fewest = 4;

export async function namedRecord(command: string, semel: Semel, named: string): Promise<RecordInfo> {
  const isKey = named.includes('/');
  const at = named.lastIndexOf('@');
  const name = at > 0 ? named.slice(0, at) : named;
  if (!isKey && name.length < fewest)
    throw usageError(
      command,
      `${JSON.stringify(named)} is too short to name a record`,
      `Write at least ${fewest} characters of its id. \`semel ls\` lists them.`,
    );
  const record = await semel.records.get(name);
  if (record === undefined) throw await unknownRecord(semel, name);
  if (at > 0 && record.ref.slice(record.ref.indexOf('@')) !== named.slice(at))
    throw new SemelError('RESOLVE_STALE', `${record.contract} ${named} has changed since it was looked at.`, {
      next: `It is ${record.ref} now: \`semel show ${record.id}\`.`,
    });
  return record;
}

async function unknownRecord(semel: Semel, name: string): Promise<SemelError> {
  const others = (await semel.records.namespaces()).filter((other) => other !== semel.namespace);
  const elsewhere =
    others.length === 0
      ? ''
      : ` Or name its namespace by --namespace; there are also: ${others.slice(0, 20).join(', ')}.`;
  return new SemelError('INVALID_ARGS', `There is no record ${name} in ${semel.namespace}.`, {
    next: `\`semel ls\` lists them.${elsewhere}`,
  });
}
