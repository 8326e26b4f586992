// Groups doubts by namespace, tool and error, oldest first: what has one cause can be decided at once. Pure.

import { mayHaveArrived } from '../../../core/contract/classify.ts';
import { shellWord } from '../../../core/visible.ts';
import type { RecordInfo } from '../../../semel/index.ts';
import { printable } from '../../render/print.ts';
import { ageMs, errorOf } from '../../render/state.ts';
import { verdictToChoose } from '../resolve/verdict.ts';

export interface Group {
  readonly namespace: string;
  readonly contract: string;
  readonly error: string;
  /** Oldest first. */
  readonly members: readonly RecordInfo[];
}

export function groupsOf(items: readonly RecordInfo[], now: number): readonly Group[] {
  const sorted = items.toSorted((a, b) => ageMs(b, now) - ageMs(a, now));
  const groups = Map.groupBy(sorted, (item) =>
    JSON.stringify([item.namespace, item.contract, errorText(item)]),
  );
  return [...groups.values()].map((members) => ({
    namespace: (members[0] as RecordInfo).namespace,
    contract: (members[0] as RecordInfo).contract,
    error: errorText(members[0] as RecordInfo),
    members,
  }));
}

/** As printed, so that text copied from a terminal matches. */
export function errorText(record: RecordInfo): string {
  return printable(errorOf(record));
}

/** `*` matches any text, and so also itself. */
export function errorMatcher(pattern: string): (record: RecordInfo) => boolean {
  const [first = '', ...parts] = pattern.split('*');
  const last = parts.pop();
  return (record) => {
    const text = errorText(record);
    if (last === undefined) return text === first;
    if (!text.startsWith(first)) return false;
    let from = first.length;
    for (const part of parts) {
      const at = text.indexOf(part, from);
      if (at < 0) return false;
      from = at + part.length;
    }
    return text.length - last.length >= from && text.endsWith(last);
  };
}

/** Longer errors are cut for the command line, and end with a `*`. */
const maxErrorLength = 160;

/** The command that settles the whole group, each record under its own fence. */
export function groupCommand({ contract, error }: Group, options: string): string {
  const pattern = error.length > maxErrorLength ? `${error.slice(0, maxErrorLength)}*` : error;
  return `semel resolve --tool ${shellWord(contract)} --error ${shellWord(pattern)} ${verdictToChoose} ${options}`.trimEnd();
}

/** What to add so that such a doubt is decided without a person. */
export function contractLine({ error, members }: Group): string {
  if (members.every(({ byCommand }) => byCommand))
    return 'let --verify <command> of `semel once` ask the target whether it landed';
  const code = /^([A-Z][A-Z0-9_]{2,}):/.exec(error)?.[1];
  // After an error such as ECONNRESET the request may have arrived.
  if (code !== undefined && !mayHaveArrived(code))
    return `classify: { ${code}: 'notLanded' } in the contract, if ${code} always means that nothing was sent; otherwise verify${elsewhere}`;
  const isKeyed = members.some(({ providerKey }) => providerKey !== undefined);
  return isKeyed
    ? 'verify in the contract, which asks the target whether it landed (semel once: --verify <command>)'
    : `provider in the contract if the target takes an idempotency key, otherwise verify, which asks the target${elsewhere}`;
}

const elsewhere = ' (semel once: --verify <command>; semel mcp: `errors` in the policy file)';
