// The input of the checks, read once. The checks are pure functions of it.

import type { RecordInfo, Root } from '../../../semel/index.ts';
import type { StoreEvent, StoreFacts } from '../../../store/store.ts';

/** A record without its result, and its recent history. */
export interface RecordSeen
  extends Pick<
    RecordInfo,
    | 'id'
    | 'namespace'
    | 'contract'
    | 'key'
    | 'version'
    | 'inDoubt'
    | 'again'
    | 'args'
    | 'conversation'
    | 'turn'
    | 'run'
    | 'createdAt'
    | 'updatedAt'
    | 'lastDispatchedAt'
  > {
  /** The process that held it, for people, if it is known to be gone before its lease. */
  readonly deadHolder: string | undefined;
  readonly events: readonly Pick<StoreEvent, 'at' | 'generation' | 'type' | 'detail'>[];
}

/** The ledger's files before it was opened. */
export interface FilesSeen {
  readonly path: string;
  /** Size of the write-ahead log; it grows while it cannot be checkpointed. */
  readonly logBytes: number;
  /** Undefined if unknown. */
  readonly freeBytes: number | undefined;
  /** The journal mode in the file's header. */
  readonly journal: 'wal' | 'rollback' | undefined;
}

/** Why a ledger was not opened. */
export interface Refused {
  readonly happened: string;
  readonly next: string;
  readonly evidence: Readonly<Record<string, unknown>>;
}

export interface ContractsIn {
  readonly namespace: string;
  readonly contracts: readonly string[];
  /** Folders of the applications that use it by default, oldest first. */
  readonly roots?: readonly Root[];
}

export interface Seen {
  readonly now: number;
  readonly since: number;
  readonly facts: Pick<StoreFacts, 'location' | 'forgets' | 'clockProblem' | 'warning'> | undefined;
  readonly refused: Refused | undefined;
  readonly files: FilesSeen | undefined;
  /** Damage that the store found. */
  readonly damage: readonly string[];
  /** Why the pipes that show which runs are alive cannot be trusted. */
  readonly livenessProblem: string | undefined;
  readonly records: readonly RecordSeen[];
  /** Contracts per namespace, also of namespaces whose records were not read. */
  readonly contracts: readonly ContractsIn[];
  /** The user's default ledger, if it is another one. */
  readonly other: { readonly path: string; readonly contracts: readonly ContractsIn[] } | undefined;
  /** Command-line options that select a namespace of this ledger. */
  readonly optionsFor: (namespace: string) => string;
}

export interface ContractSeen {
  readonly namespace: string;
  readonly contract: string;
  readonly records: readonly RecordSeen[];
}

export function byContract(records: readonly RecordSeen[]): readonly ContractSeen[] {
  const groups = Map.groupBy(records, ({ namespace, contract }) => `${namespace}\0${contract}`);
  return [...groups.values()].flatMap((members) => {
    const [first] = members;
    return first === undefined
      ? []
      : [{ namespace: first.namespace, contract: first.contract, records: members }];
  });
}
