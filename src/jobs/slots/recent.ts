// What the ledger knows was done lately under a name: for a prompt, so that an agent does not do it again in other words.

import type { RecordInfo, Semel } from '../../semel/index.ts';
import { bytesOf } from '../output.ts';
import { recordsOf } from './pick.ts';
import { contractName, isReserved } from './run-id.ts';

export interface Done {
  readonly at: Date;
  readonly args: unknown;
  /** What it returned: parsed where it printed JSON. */
  readonly result: unknown;
}

/** Newest first. A name of an effect, of a step or of a pick; without what a run has done itself. */
export async function recentWork(
  semel: Semel,
  name: string,
  most: number,
  exceptRun?: string,
): Promise<readonly Done[]> {
  const contracts = isReserved(name)
    ? [name]
    : [contractName(undefined, name), contractName('step', name), contractName('pick', name)];
  const newest: RecordInfo[] = [];
  for (const contract of contracts) {
    for await (const record of recordsOf(semel, { contract })) {
      if (exceptRun !== undefined && record.run === exceptRun) continue;
      newest.push(record);
      // Kept short: a year of work is not held in memory.
      if (newest.length > most + 1_000) cutTo(newest, most);
    }
  }
  cutTo(newest, most);
  return newest.map(({ settledAt, createdAt, args, value }) => ({
    at: settledAt ?? createdAt,
    args,
    result: resultOf(value),
  }));
}

function cutTo(records: RecordInfo[], most: number): void {
  records.sort((a, b) => (b.settledAt ?? b.createdAt).getTime() - (a.settledAt ?? a.createdAt).getTime());
  records.splice(most);
}

function resultOf(value: unknown): unknown {
  const { stdout, choice } = (value ?? {}) as { stdout?: string | Uint8Array; choice?: string };
  if (choice !== undefined) return choice;
  if (stdout === undefined) return value;
  const text = Buffer.from(bytesOf(stdout)).toString('utf8').trim();
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A field by its dotted path, of the result or else of the args. */
export function fieldOf({ result, args }: Done, path: string): unknown {
  return at(result, path) ?? at(args, path);
}

function at(value: unknown, path: string): unknown {
  let here = value;
  for (const step of path.split('.')) {
    if (typeof here !== 'object' || here === null || !Object.hasOwn(here, step)) return undefined;
    here = (here as Record<string, unknown>)[step];
  }
  return here;
}
