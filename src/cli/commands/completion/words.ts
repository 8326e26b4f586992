// Words from the ledger for completion. Only plain shell words: the names are untrusted, and a completed line runs when the
// user presses Enter.

import type { Semel } from '../../../semel/index.ts';
import { namespacesFor } from '../../args/namespaces.ts';
import { listContracts } from '../../args/records.ts';
import type { LedgerWords } from './spec.ts';

const most = 200;

export async function wordsFor(kind: LedgerWords, line: string): Promise<readonly string[]> {
  const choice = { store: valueOnLine(line, 'store'), namespace: valueOnLine(line, 'namespace') };
  await using ledger = namespacesFor(choice, { onWarning: () => undefined });
  const words = new Set<string>();
  for await (const semel of ledger.each()) {
    for (const word of await found(semel)) if (isPlain(word)) words.add(word);
    if (words.size >= most || kind === 'namespaces') break;
  }
  return [...words].slice(0, most);

  async function found(semel: Semel): Promise<readonly string[]> {
    switch (kind) {
      case 'contracts':
        return listContracts(semel);
      case 'namespaces':
        return semel.records.namespaces();
      case 'records':
        return (await semel.records.list({ limit: most })).items.map(({ id }) => id);
      case 'refs':
        return (await semel.doubts.list({ limit: most })).items.map(({ ref }) => ref);
    }
  }
}

/** The option's value on the line, if it is a plain word. */
export function valueOnLine(line: string, flag: string): string | undefined {
  const [, value] = new RegExp(`\\s--${flag}[\\s=]+(\\S+)\\s`).exec(line) ?? [];
  return value !== undefined && isPlain(value) ? value : undefined;
}

export function isPlain(word: string): boolean {
  return /^[\w./:@][\w./:@+-]*$/.test(word);
}
