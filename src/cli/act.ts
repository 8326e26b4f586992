// An act on records that were named one by one: each under the ref that was looked at, and one refusal stops no other.

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
  note: text('<text>', 'kept in the history', 'm'),
  by: text('<name>', 'who decides (default: the login name)'),
} as const satisfies Flags;

interface Given {
  readonly note: string | undefined;
  readonly by: string | undefined;
}

/** A decision that an operator lets an agent make names both. */
export function actOptions({ note, by: given }: Given): ActOptions {
  const { agent, operator } = caller();
  const by = agent === undefined ? given : `${given ?? operator} through ${agent}`;
  return { ...(by === undefined ? {} : { by }), ...(note === undefined ? {} : { note }) };
}

/** They are kept for as long as the record, and shown on terminals. */
const longest = 4_096;

export function checkWords(command: string, { note, by }: Given): void {
  for (const [flag, text] of Object.entries({ '-m': note, '--by': by })) {
    if (text !== undefined && text.length > longest)
      throw usageError(command, `${flag} has ${text.length} characters`, `Write at most ${longest}.`);
  }
}

interface Decision {
  act(record: RecordInfo): Promise<RecordInfo>;
  said(record: RecordInfo): string;
}

/** The exit code: that of the last refusal, if there was one. */
export async function actOnEach(
  command: string,
  ledger: Namespaces,
  names: readonly string[],
  values: Given & { readonly json: boolean | undefined },
  { act, said }: Decision,
): Promise<number> {
  checkWords(command, values);
  const done: RecordInfo[] = [];
  let code = 0;
  for (const named of new Set(names)) {
    try {
      const record = await act(await namedRecord(command, ledger, named));
      done.push(record);
      if (!values.json) print(printable(`${record.ref}  ${record.contract}  ${said(record)}`));
    } catch (error) {
      // Alone it is the command's own error; among others it is one line of many.
      if (!isSemelError(error) || names.length === 1) throw error;
      complain(error.message);
      code = exitCodeOf(error);
    }
  }
  if (values.json) printJson(done);
  return code;
}
