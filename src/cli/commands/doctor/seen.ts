// What a doctor looks at, read once: the checks are pure over it.

import type { RecordInfo, Root } from '../../../semel/index.ts';
import type { StoreEvent, StoreFacts } from '../../../store/store.ts';

/** A record without its result, and what history says of it since the doctor looks. */
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
  readonly events: readonly Pick<StoreEvent, 'at' | 'generation' | 'type' | 'detail'>[];
}

/** The ledger's files as they lay there before it was opened. */
export interface FilesSeen {
  readonly path: string;
  /** Of the write-ahead log; it grows where nobody can fold it into the ledger. */
  readonly logBytes: number;
  /** Undefined where the platform does not tell. */
  readonly freeBytes: number | undefined;
  /** How the file says that it is written; undefined where it says nothing. */
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
  /** The folders of the applications that use it without naming it, oldest first. */
  readonly roots?: readonly Root[];
}

export interface Seen {
  readonly now: number;
  readonly since: number;
  readonly facts: Pick<StoreFacts, 'location' | 'forgets' | 'clockProblem' | 'warning'> | undefined;
  readonly refused: Refused | undefined;
  readonly files: FilesSeen | undefined;
  /** What the store found wrong with what it keeps. */
  readonly damage: readonly string[];
  /** Why the pipes that tell which runs are alive are not believed. */
  readonly livenessProblem: string | undefined;
  readonly records: readonly RecordSeen[];
  /** Which contracts have records where, also in namespaces whose records were not looked at. */
  readonly contracts: readonly ContractsIn[];
  /** The ledger of this user, where it is not the one that was looked at. */
  readonly other: { readonly path: string; readonly contracts: readonly ContractsIn[] } | undefined;
  /** What leads a command to a namespace of this ledger. */
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
