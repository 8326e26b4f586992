// Recent work under a name, for a prompt: so that an agent does not do the same again in other words.

import type { RecordInfo, Semel } from '../../semel/index.ts';
import { toBytes } from '../output.ts';
import { listRecords } from './pick.ts';
import { contractName, isReserved, parseRun } from './run-id.ts';

export interface RecentWork {
  readonly at: Date;
  readonly args: unknown;
  /** Parsed if it printed JSON. */
  readonly result: unknown;
}

/** The run that asks: its own work is left out, and with `startsAt` also that of later slots. */
interface Asker {
  readonly run: string;
  readonly startsAt?: number;
}

/** Newest first. The name is that of an effect, a step or a pick. */
export async function recentWork(
  semel: Semel,
  name: string,
  most: number,
  asker?: Asker,
): Promise<readonly RecentWork[]> {
  const contracts = isReserved(name)
    ? [name]
    : [contractName(undefined, name), contractName('step', name), contractName('pick', name)];
  const newest: RecordInfo[] = [];
  for (const contract of contracts) {
    for await (const record of listRecords(semel, { contract })) {
      if (asker !== undefined && (record.run === asker.run || isLater(record, asker))) continue;
      newest.push(record);
      // Bounded: a year of work must not fill the memory.
      if (newest.length > most + 1_000) keepNewest(newest, most);
    }
  }
  keepNewest(newest, most);
  return newest.map(({ contract, settledAt, createdAt, args, value }) => ({
    at: settledAt ?? createdAt,
    args,
    result: parseResult(contract, value),
  }));
}

/** Work of a run belongs to its slot, however late it was done. */
function isLater({ run, createdAt }: RecordInfo, { startsAt }: Asker): boolean {
  if (startsAt === undefined) return false;
  const doneFor = (run === undefined ? undefined : parseRun(run)?.startsAt) ?? createdAt.getTime();
  return doneFor >= startsAt;
}

function keepNewest(records: RecordInfo[], most: number): void {
  records.sort((a, b) => (b.settledAt ?? b.createdAt).getTime() - (a.settledAt ?? a.createdAt).getTime());
  records.splice(most);
}

function parseResult(contract: string, value: unknown): unknown {
  const { stdout, choice } = (value ?? {}) as { stdout?: string | Uint8Array; choice?: unknown };
  if (choice !== undefined && contract.startsWith('pick.')) return choice;
  if (typeof stdout !== 'string' && !(stdout instanceof Uint8Array)) return value;
  const text = Buffer.from(toBytes(stdout)).toString('utf8').trim();
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A field by its dotted path, from the result, otherwise from the args. */
export function readField({ result, args }: RecentWork, path: string): unknown {
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
