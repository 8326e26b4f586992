// Recent work under a name, for a prompt: so that an agent does not do the same again in other words.

import type { RecordInfo, Semel } from '../../semel/index.ts';
import { toBytes } from '../output.ts';
import { listRecords } from './pick.ts';
import { contractName, isReserved } from './run-id.ts';

interface Done {
  readonly at: Date;
  readonly args: unknown;
  /** Parsed if it printed JSON. */
  readonly result: unknown;
}

/** Newest first. The name is that of an effect, a step or a pick; `exceptRun` leaves a run's own work out. */
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
    for await (const record of listRecords(semel, { contract })) {
      if (exceptRun !== undefined && record.run === exceptRun) continue;
      newest.push(record);
      // Bounded: a year of work must not fill the memory.
      if (newest.length > most + 1_000) keepNewest(newest, most);
    }
  }
  keepNewest(newest, most);
  return newest.map(({ settledAt, createdAt, args, value }) => ({
    at: settledAt ?? createdAt,
    args,
    result: parseResult(value),
  }));
}

function keepNewest(records: RecordInfo[], most: number): void {
  records.sort((a, b) => (b.settledAt ?? b.createdAt).getTime() - (a.settledAt ?? a.createdAt).getTime());
  records.splice(most);
}

function parseResult(value: unknown): unknown {
  const { stdout, choice } = (value ?? {}) as { stdout?: string | Uint8Array; choice?: string };
  if (choice !== undefined) return choice;
  if (stdout === undefined) return value;
  const text = Buffer.from(toBytes(stdout)).toString('utf8').trim();
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A field by its dotted path, from the result, otherwise from the args. */
export function readField({ result, args }: Done, path: string): unknown {
  return valueAt(result, path) ?? valueAt(args, path);
}

function valueAt(value: unknown, path: string): unknown {
  let here = value;
  for (const step of path.split('.')) {
    if (typeof here !== 'object' || here === null || !Object.hasOwn(here, step)) return undefined;
    here = (here as Record<string, unknown>)[step];
  }
  return here;
}
