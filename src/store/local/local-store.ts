// A store whose backend can load and save rows synchronously inside one transaction: memory and SQLite. It adds
// nothing to the rules; it applies them.

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

/** What the rules see of a backend, while it holds its lock. */
export interface Transaction {
  readonly time: Time;
  readonly floor: number;
  get(namespace: string, key: string): Row | undefined;
  /** False: there may be one with this key, and nothing was changed. */
  insert(row: Row): boolean;
  /** In the place of what `get` said. False: that is no longer so, and nothing was changed. */
  put(row: Row): boolean;
  remove(row: Row): void;
  raiseFloor(fence: number): void;
  note(event: StoreEvent): void;
  /** Drops the record's events: those of these types, or all. */
  dropEvents(row: Row, types?: readonly EventType[]): void;
  /** Rows that retention might take, at most `limit`, oldest expiry first. */
  due(limit: number): readonly Row[];
}

export type Rule<Request, Answer> = (tx: Transaction, request: Request) => Answer;

/** News about what is under way goes before new work, so that a full queue never costs a lease. */
export type Urgency = 'holding' | 'claiming' | 'settling';

export interface Backend {
  open(): Promise<StoreFacts>;
  /**
   * Makes a rule callable: opens if need be, applies the rule to the request in one atomic step, and answers once it is
   * durable; may share the step with others.
   */
  transact<Request, Answer>(
    urgency: Urgency,
    rule: Rule<Request, Answer>,
  ): (request: Request) => Promise<Answer>;
  /** Reads what is committed, without a lock. At a glance: whoever finds nothing claims next, and learns more. */
  peek(namespace: string, key: string, how?: 'glance'): { row: Row | undefined; time: Time };
  list(query: ListQuery): {
    rows: readonly Row[];
    next: string | undefined;
    time: Time;
    damaged?: readonly DamagedRecord[];
  };
  history(namespace: string, key: string): readonly StoreEvent[];
  namespaces(): readonly string[];
  close(): Promise<void>;
}

/** Read at once where all are counted. */
const pageSize = 500;

export function localStore(backend: Backend): Store {
  const { transact } = backend;
  return {
    open: () => backend.open(),

    claim: Object.assign(transact('claiming', claimIn), {
      glance: (asking: Asking) => lostAlready(backend, asking),
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
      const { rows, next, time, damaged = [] } = backend.list(query);
      const items = rows.map((row) => view(row, time));
      return damaged.length === 0 ? { items, next } : { items, next, damaged };
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
      // A ledger can be long: whoever else has work in this process gets a turn.
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

const renewIn = stepIn(renew);
const dispatchIn = stepIn(dispatch);
const clearIn = stepIn(clear);
const settleIn = stepIn(settle);
const resolveIn = stepIn(resolve);

/** Decides again where what was decided by is no longer so. */
function stepIn<Request extends { readonly namespace: string; readonly key: string }, Answer>(
  decide: (row: Row | undefined, request: Request, time: Time) => Step<Answer>,
): Rule<Request, Answer> {
  return (tx, request) => {
    for (;;) {
      const step = decide(tx.get(request.namespace, request.key), request, tx.time);
      if (isPut(tx, step)) return step.answer;
    }
  };
}

function appendIn(tx: Transaction, events: readonly Omit<StoreEvent, 'at'>[]): void {
  for (const event of events) {
    // Of a record that was pruned meanwhile nothing is kept, and nobody would ever remove it.
    if (tx.get(event.namespace, event.key) !== undefined) tx.note({ ...event, at: tx.time.wall });
  }
}

/** The request for an earlier form of its key. */
function under(request: ClaimRequest, key: string): ClaimRequest {
  return key === request.key ? request : { ...request, key };
}

function claimIn(tx: Transaction, request: ClaimRequest): ClaimAnswer {
  const { namespace, key, olderKeys } = request;
  if (olderKeys.length > 0) return claimForms(tx, request);
  // Usually nobody has been there: then no look is needed, and the first try decides.
  const first = claim(undefined, request, tx.time, tx.floor);
  if (first.row !== null && tx.insert(first.row)) return first.answer;
  for (;;) {
    const row = tx.get(namespace, key);
    if (isLink(row)) return claimForms(tx, request);
    const step = claim(row, request, tx.time, tx.floor);
    if (isPut(tx, step)) return step.answer;
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
      const asked = under(request, forms.keys[step.form] as string);
      const floor = Math.max(tx.floor, rows[step.form]?.fence ?? 0);
      const made = claim(step.row, asked, tx.time, step.row === undefined ? floor : tx.floor);
      if (isPut(tx, made)) return made.answer;
    }
  }
}

/** A claim that changes nothing needs no lock: what it lost to is committed. */
function lostAlready(backend: Backend, asking: Asking): Loss | undefined {
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

function isPut(tx: Transaction, { row, events }: Step<unknown>): boolean {
  if (row !== null && !tx.put(row)) return false;
  for (const event of events) tx.note(event);
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
