// Which ledger a command uses: the one named by option or environment, never by the working directory.

import { existsSync } from 'node:fs';
import { SemelError } from '../core/errors.ts';
import {
  commandOptions,
  createSemel,
  lazyStoreAt,
  readEnvironment,
  type Semel,
  type SemelOptions,
  storeAt,
} from '../semel/index.ts';
import { looksLikeServer, redactAddress } from '../store/address.ts';
import type { Store, StoreFacts } from '../store/store.ts';
import { defaultPath } from '../stores/sqlite/index.ts';
import { isAgent } from './caller.ts';
import { complain } from './render/print.ts';

export interface LedgerChoice {
  readonly store: string | undefined;
  readonly namespace: string | undefined;
}

/**
 * Only commands that write may create a ledger (`make`). A command that only looks would create an empty one and report
 * that all is well; it does not prune either.
 */
export function ledgerFor(
  choice: LedgerChoice,
  options: SemelOptions & { readonly make?: true } = {},
): Semel {
  const { make, ...rest } = options;
  return createSemel({
    store: lazyStoreAt(checkedUrl(choice, make ?? false), make === true ? {} : { migrate: false }),
    namespace: namespaceOf(choice),
    // Warnings name the ledger's location, which agents must not see.
    onWarning: make === true && isAgent() ? () => undefined : complain,
    prune: make ?? false,
    // SEMEL_MODE is for programs: what a shell or cron guards is always guarded.
    mode: 'enforce',
    ...rest,
  });
}

/** The store itself, rather than its records. */
export function storeFor(
  choice: Pick<LedgerChoice, 'store'>,
  { make = false, migrate }: { make?: boolean; migrate?: boolean } = {},
): Promise<Store> {
  return storeAt(checkedUrl(choice, make), { migrate: migrate ?? make });
}

export function checkedUrl(choice: Pick<LedgerChoice, 'store'>, make: boolean): string {
  const url = urlOf(choice);
  if (url === 'memory:')
    throw new SemelError('INVALID_ARGS', 'A ledger in memory would be lost when the command ends.', {
      next: 'Use a file: --store sqlite:<path>.',
    });
  // Otherwise an agent that may only list records could run any code. What its operator set in SEMEL_STORE is the operator's.
  if (choice.store?.startsWith('module:') && isAgent())
    throw new SemelError('NOT_PERMITTED', 'An agent may not name a module to load as the store.', {
      next: 'Let the operator set SEMEL_STORE.',
    });
  const path = ledgerPath(choice);
  if (!make && path !== undefined && !existsSync(path)) {
    throw new SemelError('STORE_UNAVAILABLE', `Nothing is recorded yet: there is no ledger at ${path}.`, {
      next: '`semel run`, `semel once` or your program creates it on first use. If you keep one elsewhere, set --store sqlite:<path> or SEMEL_STORE.',
    });
  }
  return url;
}

/**
 * The options with which a printed command reaches this ledger. An address is printed without its password, and would override
 * SEMEL_STORE, which has it: then the environment names the ledger.
 */
export function ledgerOptions(namespace: string | undefined, { address }: StoreFacts): string {
  const hasSecret = address !== undefined && redactAddress(address) !== address;
  const isInEnvironment = hasSecret && readEnvironment('SEMEL_STORE') === address;
  return commandOptions(namespace, { address: isInEnvironment ? '' : address }) ?? '';
}

/** Undefined if neither the option nor the environment names one. */
export function chosenNamespace({ namespace }: Pick<LedgerChoice, 'namespace'>): string | undefined {
  return namespace ?? readEnvironment('SEMEL_NAMESPACE');
}

export function namespaceOf(choice: Pick<LedgerChoice, 'namespace'>): string {
  return chosenNamespace(choice) ?? 'default';
}

function urlOf({ store }: Pick<LedgerChoice, 'store'>): string {
  return store ?? readEnvironment('SEMEL_STORE') ?? 'sqlite:';
}

/** The ledger's file; undefined if it is on a server. */
export function ledgerPath(choice: Pick<LedgerChoice, 'store'>): string | undefined {
  const url = urlOf(choice);
  const path = url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : undefined;
  // A mistyped server address is refused on opening, without repeating it here.
  return path === undefined || looksLikeServer(path) ? undefined : path || defaultPath();
}
