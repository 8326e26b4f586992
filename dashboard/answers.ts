// What the API answers, as far as the page shows it.

export type Role = 'read' | 'execute' | 'admin';

export interface Session {
  readonly session: string;
  readonly name: string;
  readonly role: Role;
  readonly namespace: string;
}

export interface OpenCounts {
  readonly inDoubt: number;
  readonly inFlight: number;
  readonly oldestDoubtAt?: string;
  readonly isCut?: true;
}

export interface Me {
  readonly name: string;
  readonly role: Role;
  readonly namespace: string;
  readonly namespaces: readonly (OpenCounts & { readonly name: string })[];
  readonly store: string;
  readonly hasOutbox: boolean;
}

export interface RecordInfo {
  readonly id: string;
  readonly ref: string;
  readonly namespace: string;
  readonly contract: string;
  readonly key: string;
  readonly version: string;
  readonly effect: string;
  readonly status: 'running' | 'succeeded' | 'failed' | 'released' | 'unknown';
  readonly inDoubt: boolean;
  readonly lapsed: boolean;
  readonly leaseLeftMs: number;
  readonly expired: boolean;
  readonly kept: boolean;
  readonly abandoned: boolean;
  readonly doubt: boolean;
  readonly attempts: number;
  readonly fence: number;
  readonly generation: number;
  readonly owner: string;
  readonly args?: unknown;
  readonly value?: unknown;
  readonly omitted?: string;
  readonly remoteRef?: string;
  readonly providerKey?: string;
  readonly error?: { readonly code: string; readonly message: string; readonly retriable: boolean };
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly settledAt?: string;
  readonly expiresAt?: string;
  readonly firstDispatchedAt?: string;
  readonly lastDispatchedAt?: string;
  readonly inFlightUntil?: string | null;
  readonly caller?: string;
  readonly conversation?: string;
  readonly turn?: string;
  readonly toolCallId?: string;
  readonly run?: string;
  readonly again?: string;
}

export interface HistoryEvent {
  readonly at: number;
  readonly type: string;
  readonly fence: number;
  readonly generation: number;
  readonly detail: Readonly<Record<string, unknown>>;
}

export interface ProblemBody {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly correctiveAction: string;
}

export interface Counts {
  readonly executed: number;
  readonly replayed: number;
  readonly saved: number;
  readonly inDoubt: number;
  readonly conflicts: number;
  readonly duplicates: number;
}

export interface Stats {
  readonly since: string;
  readonly until: string;
  readonly by: 'hour' | 'day';
  readonly totals: Counts;
  readonly slots: readonly (Counts & { readonly slot: string; readonly startsAt: string })[];
  readonly contracts: readonly (Counts & { readonly contract: string })[];
  readonly inFlight: readonly number[];
  readonly coverage: {
    readonly looked: number;
    readonly since?: string;
    readonly isCounting: boolean;
    readonly isNewest: boolean;
  };
}

export interface SearchAnswer {
  readonly matches: readonly { readonly record: RecordInfo; readonly found: readonly string[] }[];
  readonly looked: number;
  readonly next?: string;
  readonly isNewest: boolean;
  readonly isCut?: true;
}

export interface JobSlot {
  readonly key: string;
  readonly slot: string;
  readonly state: string;
  readonly startedAt: string;
  readonly settledAt?: string;
  readonly attempts: number;
  readonly isLate: boolean;
}

export interface Jobs {
  readonly dates: readonly string[];
  readonly jobs: readonly {
    readonly contract: string;
    readonly job: string;
    readonly per?: string;
    readonly days: readonly {
      readonly date: string;
      readonly slots: readonly JobSlot[];
      /** Slots that are over, and that no run began. */
      readonly missed: number;
      readonly isCut?: true;
    }[];
  }[];
  readonly isCut?: true;
}

export interface OutboxAnswer {
  readonly isAvailable: boolean;
  readonly rows: readonly {
    readonly n: number;
    readonly key: string;
    readonly contract: string;
    readonly group: string | null;
    readonly state: 'waiting' | 'in doubt' | 'dead';
    readonly tries: number;
    readonly reason: string | null;
    readonly stagedAt: string;
    readonly dueAt: string;
    readonly args?: unknown;
    readonly isDamaged?: true;
  }[];
  readonly next?: string;
}
