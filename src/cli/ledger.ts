// Which ledger a command works on: the one that it was told, never by the folder it was started in.

import { existsSync } from 'node:fs';
import { SemelError } from '../core/errors.ts';
import {
  createSemel,
  environmentText,
  type Semel,
  type SemelOptions,
  storeAt,
  storeUnder,
} from '../semel/index.ts';
import { looksLikeServer } from '../store/address.ts';
import type { Store } from '../store/store.ts';
import { defaultPath } from '../stores/sqlite/index.ts';
import { isAgent } from './caller.ts';
import { complain } from './render/print.ts';

export interface LedgerChoice {
  readonly store: string | undefined;
  readonly namespace: string | undefined;
}

/**
 * To look at a ledger that is not there would make an empty one, and say that all is well: only whoever has something
 * to write makes one. Nor does whoever looks tidy up.
 */
export function ledgerFor(
  choice: LedgerChoice,
  options: SemelOptions & { readonly make?: true } = {},
): Semel {
  const { make, ...rest } = options;
  return createSemel({
    store: storeUnder(checkedUrl(choice, make ?? false), make === true ? {} : { migrate: false }),
    namespace: namespaceOf(choice),
    // Warnings name the place of the ledger.
    onWarning: make === true && isAgent() ? () => undefined : complain,
    prune: make ?? false,
    ...rest,
  });
}

/** The store itself, for what is asked of it and not of its records. */
export function storeFor(
  choice: Pick<LedgerChoice, 'store'>,
  { make = false, migrate }: { make?: boolean; migrate?: boolean } = {},
): Promise<Store> {
  return storeAt(checkedUrl(choice, make), { migrate: migrate ?? make });
}

export function checkedUrl(choice: Pick<LedgerChoice, 'store'>, make: boolean): string {
  const url = urlOf(choice);
  if (url === 'memory:')
    throw new SemelError('INVALID_ARGS', 'A ledger in memory is gone when the command ends.', {
      next: 'Name a file: --store sqlite:<path>.',
    });
  const path = ledgerPath(choice);
  if (!make && path !== undefined && !existsSync(path)) {
    throw new SemelError('STORE_UNAVAILABLE', `There is no ledger at ${path}.`, {
      next: 'Name it by --store sqlite:<path>, or by SEMEL_STORE. `semel run` and `semel once` make one.',
    });
  }
  return url;
}

/** Undefined: nobody chose one. */
export function chosenNamespace({ namespace }: Pick<LedgerChoice, 'namespace'>): string | undefined {
  return namespace ?? environmentText('SEMEL_NAMESPACE');
}

export function namespaceOf(choice: Pick<LedgerChoice, 'namespace'>): string {
  return chosenNamespace(choice) ?? 'default';
}

function urlOf({ store }: Pick<LedgerChoice, 'store'>): string {
  return store ?? environmentText('SEMEL_STORE') ?? 'sqlite:';
}

/** The file that is meant; undefined where the ledger is no file. */
export function ledgerPath(choice: Pick<LedgerChoice, 'store'>): string | undefined {
  const url = urlOf(choice);
  const path = url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : undefined;
  // What was meant for a server is refused when it is opened, without being repeated.
  return path === undefined || looksLikeServer(path) ? undefined : path || defaultPath();
}
