// The namespaces that an operator looks at: the chosen one, otherwise every namespace of the ledger. The library writes
// to the application's own, so looking only at `default` would report that all is well.

import { createSemel, lazyStoreAt, overrideStore, type Semel, type SemelOptions } from '../../semel/index.ts';
import type { Store, StoredRecord, StoreFacts } from '../../store/store.ts';
import { checkedUrl, chosenNamespace, type LedgerChoice, ledgerOptions } from '../ledger.ts';
import { complain } from '../render/print.ts';

export interface Namespaces extends AsyncDisposable {
  /** Undefined: all namespaces. */
  readonly chosen: string | undefined;
  names(): Promise<readonly string[]>;
  each(): AsyncGenerator<Semel>;
  /** Stays open as long as this is. */
  in(namespace: string): Semel;
  open(): Promise<StoreFacts>;
  /** As it is stored: with what programs are not shown. */
  read(namespace: string, key: string): Promise<StoredRecord | undefined>;
  /** The command-line options that select a namespace, or the ones selected here, in this ledger. */
  optionsFor(namespace?: string): Promise<string>;
}

type Options = Pick<SemelOptions, 'cache' | 'onWarning'>;

/** `make` creates a missing ledger. */
export function namespacesFor(
  choice: LedgerChoice,
  { make = false, ...options }: Options & { readonly make?: boolean } = {},
): Namespaces {
  const store = lazyStoreAt(checkedUrl(choice, make), make ? {} : { migrate: false });
  return namespacesOf(store, chosenNamespace(choice), options);
}

/** All namespaces share one connection. */
export function namespacesOf(store: Store, chosen: string | undefined, options: Options = {}): Namespaces {
  const shared = overrideStore(store, { close: async () => undefined });
  const opened = new Map<string, Semel>();
  const make = (namespace: string, onWarning: (message: string) => void) =>
    createSemel({ store: shared, namespace, prune: false, mode: 'enforce', ...options, onWarning });
  // Warnings about the ledger are printed once, not per namespace.
  const first = make(chosen ?? 'default', options.onWarning ?? complain);

  async function names(): Promise<readonly string[]> {
    if (chosen !== undefined) return [chosen];
    const found = await first.records.namespaces();
    return found.length === 0 ? ['default'] : found;
  }

  return {
    chosen,
    names,
    async *each() {
      await first.open();
      for (const namespace of await names()) {
        await using semel = make(namespace, () => undefined);
        yield semel;
      }
    },
    in(namespace) {
      if (namespace === first.namespace) return first;
      const semel = opened.get(namespace) ?? make(namespace, () => undefined);
      opened.set(namespace, semel);
      return semel;
    },
    open: () => first.open(),
    async read(namespace, key) {
      await first.open();
      return store.read(namespace, key);
    },
    async optionsFor(namespace) {
      const [only, ...others] = namespace === undefined ? await names() : [namespace];
      return ledgerOptions(others.length === 0 ? only : undefined, await first.open());
    },
    async [Symbol.asyncDispose]() {
      for (const semel of [...opened.values(), first]) await semel.close();
      await store.close();
    },
  };
}

/** For a sentence: up to three names, otherwise how many there are. */
export function joinNames(names: readonly string[]): string {
  if (names.length > 3) return `${names.length} namespaces`;
  return names.length === 1 ? (names[0] as string) : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
