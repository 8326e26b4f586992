// A store whose backend reads and writes rows synchronously inside one transaction: memory and SQLite. It applies the
// rules and adds nothing to them.

import { keyMap } from '../../core/key-map.ts';
import { claim, findLoss } from '../../rules/claim.ts';
import { isLink, listForms, makeLink, nextStep } from '../../rules/forms.ts';
import { clear, dispatch, renew } from '../../rules/holder.ts';
import { isDue, isRemovable, isTombstoneDue, makeTombstone, usageEvents } from '../../rules/prune.ts';
import { resolve } from '../../rules/resolve.ts';
import { settle } from '../../rules/settle.ts';
import { type Step, type Time, view } from '../../rules/state.ts';
import type {
  Asking,
  ClaimAnswer,
  ClaimRequest,
  DamagedRecord,
  EventType,
  ListQuery,
  Loss,
  Page,
  Row,
  Store,
  StoreEvent,
  StoreFacts,
} from '../store.ts';

/** What a rule can do while the backend holds its lock. */
export interface Transaction {
  readonly time: Time;
  readonly floor: number;
  get(namespace: string, key: string): Row | undefined;
  /** False: the key may exist already, and nothing was changed. */
  insert(row: Row): boolean;
  /** Replaces what `get` returned. False: that has changed since, and nothing was written. */
  put(row: Row): boolean;
  remove(row: Row): void;
  raiseFloor(fence: number): void;
  note(event: StoreEvent): void;
  /** Drops what `dropOldEvents` would. */
  dropOldEvents(namespace: string, key: string): void;
  /** Drops the record's events, of these types or all. */
  dropEvents(row: Row, types?: readonly EventType[]): void;
  /** Rows that pruning might remove, at most `limit`, oldest expiry first. */
  due(limit: number): readonly Row[];
}

export type Rule<Request, Answer> = (tx: Transaction, request: Request) => Answer;

/** Renewals and dispatches go before new claims, so that a full queue never costs a lease. */
export type Urgency = 'holding' | 'claiming' | 'settling';

export interface Backend {
  open(): Promise<StoreFacts>;
  /**
   * Makes a rule callable. A call opens the store if necessary, applies the rule in one atomic step, which it may share
   * with other calls, and answers once the step is durable.
   */
  transact<Request, Answer>(
    urgency: Urgency,
    rule: Rule<Request, Answer>,
  ): (request: Request) => Promise<Answer>;
  /** Reads what is committed, without a lock. `glance`: may find nothing, since a claim follows then. */
  peek(namespace: string, key: string, how?: 'glance'): { row: Row | undefined; time: Time };
  /** One step of a scan: it may end before the limit, with a `next`. */
  list(query: ListQuery): {
    rows: readonly Row[];
    next: string | undefined;
    time: Time;
    damaged?: readonly DamagedRecord[];
    looked?: number;
  };
  history(namespace: string, key: string): readonly StoreEvent[];
  namespaces(): readonly string[];
  close(): Promise<void>;
}

const pageSize = 500;

/** Lets all other work of this process run. Captured now: a user's test may fake the timers later and never advance them. */
export const nextTurn: (run: () => void) => void = setImmediate;

export function localStore(backend: Backend): Store {
  const { transact } = backend;
  return {
    open: () => backend.open(),

    claim: Object.assign(transact('claiming', claimIn), {
      glance: (asking: Asking) => peekLoss(backend, asking),
    }),
    renew: transact('holding', renewIn),
    dispatch: transact('holding', dispatchIn),
    clear: transact('holding', clearIn),
    settle: transact('settling', settleIn),
    resolve: transact('settling', resolveIn),

    async read(namespace, key) {
      await backend.open();
      const { row, time } = backend.peek(namespace, key);
      return row && view(row, time);
    },
    async list(query): Promise<Page<ReturnType<typeof view>>> {
      await backend.open();
      const { signal, rows: maxRows = Number.POSITIVE_INFINITY, limit } = query;
      const items: ReturnType<typeof view>[] = [];
      const damaged: DamagedRecord[] = [];
      let looked = 0;
      for (let from = query; ; ) {
        const page = backend.list({ ...from, limit: limit - items.length });
        looked += page.looked ?? page.rows.length;
        items.push(...page.rows.map((row) => view(row, page.time)));
        damaged.push(...(page.damaged ?? []));
        const { next } = page;
        const isOver = items.length >= limit || looked >= maxRows || signal?.aborted;
        if (next === undefined || isOver) {
          const counted = query.rows === undefined ? {} : { looked };
          return { items, next, ...counted, ...(damaged.length === 0 ? {} : { damaged }) };
        }
        await new Promise<void>((resolve) => nextTurn(resolve));
        from = { ...query, after: next };
      }
    },
    append: transact('settling', appendIn),
    async history(namespace, key) {
      await backend.open();
      return backend.history(namespace, key);
    },
    async namespaces() {
      await backend.open();
      return backend.namespaces();
    },
    prune: transact('settling', prune),
    async countExpired() {
      await backend.open();
      let count = 0;
      for (const namespace of backend.namespaces()) count += await countIn(namespace);
      return count;
    },
    close: () => backend.close(),
  };

  async function countIn(namespace: string): Promise<number> {
    let count = 0;
    for (let after: string | undefined; ; ) {
      const page = backend.list({ namespace, limit: pageSize, ...(after === undefined ? {} : { after }) });
      for (const row of page.rows) if (isDue(row, page.time)) count += 1;
      if (page.next === undefined) return count;
      after = page.next;
      await new Promise<void>((resolve) => nextTurn(resolve));
    }
  }
}

const renewIn = stepIn(renew);
const dispatchIn = stepIn(dispatch);
const clearIn = stepIn(clear);
const settleIn = stepIn(settle);
const resolveIn = stepIn(resolve);

/** Decides again if the row has changed since it was read. */
function stepIn<Request extends { readonly namespace: string; readonly key: string }, Answer>(
  decide: (row: Row | undefined, request: Request, time: Time) => Step<Answer>,
): Rule<Request, Answer> {
  return (tx, request) => {
    for (;;) {
      const step = decide(tx.get(request.namespace, request.key), request, tx.time);
      if (tryWrite(tx, step)) return step.answer;
    }
  };
}

function appendIn(tx: Transaction, events: readonly Omit<StoreEvent, 'at'>[]): void {
  for (const event of events) {
    // Nobody would ever remove the events of a record that has been pruned.
    if (tx.get(event.namespace, event.key) !== undefined) tx.note({ ...event, at: tx.time.wall });
  }
  const noted = keyMap<true>();
  for (const { namespace, key } of events) {
    if (noted.get(namespace, key) !== undefined) continue;
    noted.set(namespace, key, true);
    tx.dropOldEvents(namespace, key);
  }
}

function claimIn(tx: Transaction, request: ClaimRequest): ClaimAnswer {
  const { namespace, key, olderKeys } = request;
  if (olderKeys.length > 0) return claimForms(tx, request);
  // Usually the key is new: then the insert decides, without a read.
  const first = claim(undefined, request, tx.time, tx.floor);
  if (first.row !== null && tx.insert(first.row)) return first.answer;
  for (;;) {
    const row = tx.get(namespace, key);
    if (isLink(row)) return claimForms(tx, request);
    const step = claim(row, request, tx.time, tx.floor);
    if (tryWrite(tx, step)) return step.answer;
  }
}

function claimForms(tx: Transaction, request: ClaimRequest): ClaimAnswer {
  const { namespace } = request;
  for (let forms = listForms(request); ; ) {
    const rows = forms.keys.map((key) => tx.get(namespace, key));
    const step = nextStep(forms, rows, request, tx.time);
    if (step.kind === 'look') forms = listForms(request, step.newer);
    else if (step.kind === 'link') {
      const key = forms.keys[step.form] as string;
      tx.put(makeLink(rows[step.form], key, step.to, request, tx.time, tx.floor));
    } else {
      const key = forms.keys[step.form] as string;
      const floor = Math.max(tx.floor, rows[step.form]?.fence ?? 0);
      const claimed = claim(
        step.row,
        { ...request, key },
        tx.time,
        step.row === undefined ? floor : tx.floor,
      );
      if (tryWrite(tx, claimed)) return claimed.answer;
    }
  }
}

/** A losing claim changes nothing, so it needs no lock. */
function peekLoss(backend: Backend, asking: Asking): Loss | undefined {
  const { namespace, key, olderKeys } = asking;
  const { row, time } = backend.peek(namespace, key, 'glance');
  if (olderKeys.length === 0 && !isLink(row)) return findLoss(row, asking, time);
  for (let forms = listForms(asking); ; ) {
    const rows = forms.keys.map((each, index) => (index === 0 ? row : backend.peek(namespace, each).row));
    const step = nextStep(forms, rows, asking, time);
    if (step.kind === 'claim') return findLoss(step.row, asking, time);
    if (step.kind === 'link') return undefined;
    forms = listForms(asking, step.newer);
  }
}

function tryWrite(tx: Transaction, { row, events }: Step<unknown>): boolean {
  if (row !== null && !tx.put(row)) return false;
  for (const event of events) {
    tx.note(event);
    tx.dropOldEvents(event.namespace, event.key);
  }
  return true;
}

function prune(tx: Transaction, limit: number): number {
  let pruned = 0;
  for (const row of tx.due(limit)) {
    if (isTombstoneDue(row, tx.time)) {
      if (!tx.put(makeTombstone(row))) continue;
      tx.dropEvents(row, usageEvents);
    } else if (isRemovable(row, tx.time)) {
      tx.raiseFloor(row.fence);
      tx.remove(row);
      tx.dropEvents(row);
    } else continue;
    pruned += 1;
  }
  return pruned;
}
