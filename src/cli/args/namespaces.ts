// What an operator looks at: the namespace that was named, otherwise every namespace of the ledger. The library writes
// into the application's own, so a look into one that nobody named would say that all is well.

import {
  commandOptions,
  createSemel,
  playedBy,
  type Semel,
  type SemelOptions,
  storeUnder,
} from '../../semel/index.ts';
import type { Store, StoreFacts } from '../../store/store.ts';
import { checkedUrl, chosenNamespace, type LedgerChoice } from '../ledger.ts';
import { complain } from '../render/print.ts';

export interface Namespaces extends AsyncDisposable {
  /** Undefined: none was named, and all are meant. */
  readonly chosen: string | undefined;
  /** Those that are meant. */
  names(): Promise<readonly string[]>;
  /** One after the other. */
  each(): AsyncGenerator<Semel>;
  /** One of them, for as long as this is open. */
  in(namespace: string): Semel;
  open(): Promise<StoreFacts>;
  /** What reaches the records of a namespace, or of all that are meant, after a command. */
  optionsFor(namespace?: string): Promise<string>;
}

type Options = Pick<SemelOptions, 'cache' | 'onWarning'>;

/** `make`: a ledger that is not there yet is made. */
export function namespacesFor(
  choice: LedgerChoice,
  { make = false, ...options }: Options & { readonly make?: boolean } = {},
): Namespaces {
  const store = storeUnder(checkedUrl(choice, make), make ? {} : { migrate: false });
  return namespacesOf(store, chosenNamespace(choice), options);
}

/** Over one connection, however many namespaces there are. */
export function namespacesOf(store: Store, chosen: string | undefined, options: Options = {}): Namespaces {
  const shared = playedBy(store, { close: async () => undefined });
  const opened = new Map<string, Semel>();
  const make = (namespace: string, onWarning: (message: string) => void) =>
    createSemel({ store: shared, namespace, prune: false, ...options, onWarning });
  // What is wrong with the ledger is said once, not once per namespace.
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
    async optionsFor(namespace) {
      const [only, ...others] = namespace === undefined ? await names() : [namespace];
      return commandOptions(others.length === 0 ? only : undefined, await first.open()) ?? '';
    },
    async [Symbol.asyncDispose]() {
      for (const semel of [...opened.values(), first]) await semel.close();
      await store.close();
    },
  };
}

/** For a sentence: the name of the only one, some of the names, or how many there are. */
export function namesInWords(names: readonly string[]): string {
  if (names.length > 3) return `${names.length} namespaces`;
  return names.length === 1 ? (names[0] as string) : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
