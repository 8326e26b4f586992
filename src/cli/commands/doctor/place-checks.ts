// Two places for what should be one: records that cannot see each other are two effects.

import { shellWord } from '../../../core/visible.ts';
import { rootsNamespace, suggestNamespace } from '../../../semel/index.ts';
import { type Check, count } from './finding.ts';
import type { ContractsIn, Seen } from './seen.ts';

export const twoLedgers: Check<'TWO_LEDGERS'> = {
  id: 'TWO_LEDGERS',
  finds({ other, contracts, facts, files }) {
    if (other === undefined) return [];
    const here = facts?.location ?? files?.path ?? 'this ledger';
    const next = `Let all programs and cron jobs name the same one (SEMEL_STORE), or none.`;
    if (contracts.every((each) => each.contracts.length === 0) && other.contracts.some(isUsed))
      return [{ found: `${here} has no records, but ${other.path}, the ledger of this user, has.`, next }];
    return other.contracts.flatMap(({ namespace, contracts: names }) => {
      const ours = contracts.find((each) => each.namespace === namespace)?.contracts ?? [];
      const both = names.filter((name) => ours.includes(name));
      if (both.length === 0) return [];
      const found = `${listed(both)} ${both.length === 1 ? 'has' : 'have'} records here (${here}) and in ${other.path}, your default ledger: neither knows what was done in the other.`;
      return [{ namespace, found, next }];
    });
  },
};

/** The library names a namespace by the program's package, the command by `default`: one may have been meant. */
export const namespaceSplit: Check<'NAMESPACE_SPLIT'> = {
  id: 'NAMESPACE_SPLIT',
  finds({ contracts }: Seen) {
    const unnamed = contracts.find(({ namespace }) => namespace === 'default')?.contracts ?? [];
    return contracts.flatMap(({ namespace, contracts: names }) => {
      if (namespace === 'default') return [];
      const both = names.filter((name) => unnamed.includes(name));
      if (both.length === 0) return [];
      return [
        {
          namespace,
          found: `${listed(both)} ${both.length === 1 ? 'has' : 'have'} records in ${namespace} and in default: under two namespaces one intent has two keys.`,
          next: `Set SEMEL_NAMESPACE=${shellWord(namespace)} for the programs that write to default, or name the namespace in the code.`,
        },
      ];
    });
  },
};

/** Two projects of one package name, or one that moved: only its people know. */
export const namespaceShared: Check<'NAMESPACE_SHARED'> = {
  id: 'NAMESPACE_SHARED',
  finds({ contracts, optionsFor }: Seen) {
    return contracts.flatMap(({ namespace, roots }) => {
      const last = roots?.at(-1);
      if (roots === undefined || last === undefined || roots.length === 1) return [];
      const since = roots.map(({ root, since }) => `${root} since ${since.toISOString().slice(0, 10)}`);
      return [
        {
          namespace,
          found: `${listed(since)} use ${namespace} because nothing else is named: different applications get each other's results.`,
          next: `In one of them: createSemel({ namespace: '${suggestNamespace(namespace, last.root)}' }), or '${namespace}' if they are one. Then: semel forget ${last.ref} ${optionsFor(rootsNamespace(namespace))}`,
        },
      ];
    });
  },
};

function isUsed({ contracts }: ContractsIn): boolean {
  return contracts.length > 0;
}

function listed(names: readonly string[]): string {
  return names.length <= 3
    ? names.join(', ')
    : `${names.slice(0, 3).join(', ')} and ${count(names.length - 3, 'other')}`;
}
