// A decision about records named one by one: each under the ref that was read, and a refusal does not stop the others.

import { isSemelError } from '../core/errors.ts';
import type { ActOptions, RecordInfo } from '../semel/index.ts';
import { namedRecord } from './args/named.ts';
import type { Namespaces } from './args/namespaces.ts';
import { caller } from './caller.ts';
import type { Flags } from './command.ts';
import { exitCodeOf } from './exit-code.ts';
import { text } from './flags.ts';
import { complain, print, printable, printJson } from './render/print.ts';
import { usageError } from './usage.ts';

export const actFlags = {
  note: text('<text>', 'a note, kept in the history', 'm'),
  by: text('<name>', 'who decides (default: your login name)'),
} as const satisfies Flags;

interface Reason {
  readonly note: string | undefined;
  readonly by: string | undefined;
}

/** If an operator lets an agent decide, the history names both. */
export function actOptions({ note, by: name }: Reason): ActOptions {
  const { agent, operator } = caller();
  const by = agent === undefined ? name : `${name ?? operator} through ${agent}`;
  return { ...(by === undefined ? {} : { by }), ...(note === undefined ? {} : { note }) };
}

/** Kept as long as the record, and shown on terminals. */
const maxLength = 4_096;

export function checkReason(command: string, { note, by }: Reason): void {
  for (const [flag, text] of Object.entries({ '-m': note, '--by': by })) {
    if (text !== undefined && text.length > maxLength)
      throw usageError(command, `${flag} has ${text.length} characters`, `Write at most ${maxLength}.`);
  }
}

interface Decision {
  act(record: RecordInfo): Promise<RecordInfo>;
  describe(record: RecordInfo): string;
}

/** Answers the exit code of the last refusal, or 0. */
export async function actOnEach(
  command: string,
  ledger: Namespaces,
  names: readonly string[],
  values: Reason & { readonly json: boolean | undefined },
  { act, describe }: Decision,
): Promise<number> {
  checkReason(command, values);
  const done: RecordInfo[] = [];
  let code = 0;
  for (const named of new Set(names)) {
    try {
      const record = await act(await namedRecord(command, ledger, named));
      done.push(record);
      if (!values.json) print(printable(`${record.ref}  ${record.contract}  ${describe(record)}`));
    } catch (error) {
      // With a single record it is the command's own error; otherwise one line of many.
      if (!isSemelError(error) || names.length === 1) throw error;
      complain(error.message);
      code = exitCodeOf(error);
    }
  }
  if (values.json) printJson(done);
  return code;
}
