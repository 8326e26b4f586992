// Group commit: all waiting jobs share one transaction. When idle, one starts at the end of the current event loop turn;
// there is no timer. Jobs are answered after the commit. A failing group is bisected until the bad job is alone.

import { deferred } from '../../../core/older-node.ts';
import type { Backend, Rule, Transaction, Urgency } from '../../../store/local/local-store.ts';
import type { Ledger } from './ledger.ts';

interface Job {
  readonly rule: (tx: Transaction, request: never) => unknown;
  readonly request: unknown;
  readonly resolve: (answer: never) => void;
  readonly reject: (error: unknown) => void;
  /** Set by its rule; not valid before the commit. */
  answer: unknown;
}

type LedgerPart = 'lockWait' | 'open' | 'isOpen' | 'shouldYield' | 'lock' | 'begin' | 'commit' | 'undo';

interface GroupCommitOptions extends Pick<Ledger, LedgerPart> {
  /** The error for the caller, and whether it would fail every job of the group. */
  readonly judge: (error: unknown) => { readonly error: unknown; readonly failsAll: boolean };
  /** Why no more jobs are accepted. */
  readonly refusal: () => Error | undefined;
}

interface GroupCommit extends Pick<Backend, 'transact'> {
  /** Resolves when nothing is queued or under way. */
  drained(): Promise<void>;
}

/** Maximum number of jobs in one transaction. */
const maxJobs = 256;

/** Captured at load time: a user's test may replace the timers with fake ones that never fire. */
const soon: (run: () => void) => void = setImmediate;

export function createGroupCommit(options: GroupCommitOptions): GroupCommit {
  const { lockWait, open, isOpen, shouldYield, lock, begin, commit, undo, judge, refusal } = options;
  const queues: Record<Urgency, Job[]> = { holding: [], claiming: [], settling: [] };
  /** Halves of groups that failed. Each gets its own transaction, before anything new. */
  const halves: Job[][] = [];
  let waiters: (() => void)[] = [];
  /** A transaction is open or scheduled. */
  let isBusy = false;

  return {
    transact:
      <Request, Answer>(urgency: Urgency, rule: Rule<Request, Answer>) =>
      (request: Request) => {
        const refused = refusal();
        if (refused !== undefined) return Promise.reject(refused);
        const { promise, resolve, reject } = deferred<Answer>();
        queues[urgency].push({ rule, request, resolve, reject, answer: undefined });
        if (!isBusy) {
          isBusy = true;
          soon(runGroup);
        }
        return promise;
      },
    async drained() {
      if (isBusy) await new Promise<void>((resolve) => waiters.push(resolve));
    },
  };

  /** Runs one transaction with all jobs that arrived before it got the lock. */
  function runGroup(isLocked = false): void {
    if (!isLocked && !hasLock()) return;
    const jobs = halves.shift() ?? takeJobs();
    try {
      const transaction = begin();
      for (const job of jobs) job.answer = job.rule(transaction, job.request as never);
      commit();
      for (const job of jobs) job.resolve(job.answer as never);
    } catch (error) {
      undo(error);
      bisect(jobs, error);
    }
    continueOrRest();
  }

  /** If false, `runGroup` is called again once the lock is held. */
  function hasLock(): boolean {
    if (!isOpen()) open().then(waitForLock, failAll);
    else if (shouldYield()) lockWait.yieldLock(waitForLock);
    else {
      try {
        lock();
        return true;
      } catch {
        waitForLock();
      }
    }
    return false;
  }

  function waitForLock(): void {
    lockWait.locked(lock, () => runGroup(true), failAll);
  }

  function continueOrRest(): void {
    if (halves.length + countWaiting() > 0) {
      soon(runGroup);
      return;
    }
    isBusy = false;
    const notified = waiters;
    waiters = [];
    for (const notify of notified) notify();
  }

  function bisect(jobs: Job[], error: unknown): void {
    const judged = judge(error);
    if (jobs.length === 1 || judged.failsAll) {
      for (const { reject } of jobs) reject(judged.error);
      return;
    }
    const middle = jobs.length >> 1;
    halves.unshift(jobs.slice(0, middle), jobs.slice(middle));
  }

  /** For a ledger that cannot be opened or stays locked. */
  function failAll(error: unknown): void {
    const judged = judge(error);
    const { holding, claiming, settling } = queues;
    const all = [halves.splice(0).flat(), holding.splice(0), claiming.splice(0), settling.splice(0)];
    for (const { reject } of all.flat()) reject(judged.error);
    continueOrRest();
  }

  function countWaiting(): number {
    return queues.holding.length + queues.claiming.length + queues.settling.length;
  }

  /** Most urgent first, but a flood of claims leaves a quarter of each group to settlements. */
  function takeJobs(): Job[] {
    const { holding, claiming, settling } = queues;
    if (countWaiting() <= maxJobs) {
      const all =
        holding.length === 0 && settling.length === 0 ? claiming : [...holding, ...claiming, ...settling];
      queues.holding = [];
      queues.claiming = [];
      queues.settling = [];
      return all;
    }
    const jobs = holding.splice(0, maxJobs);
    const reserved = Math.min(settling.length, maxJobs >> 2);
    jobs.push(...claiming.splice(0, Math.max(0, maxJobs - jobs.length - reserved)));
    jobs.push(...settling.splice(0, maxJobs - jobs.length));
    return jobs;
  }
}
