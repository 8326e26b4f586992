// Group commit: all that waits shares one transaction. No timer: from idle, a transaction starts at the end of this turn
// of the loop. Every answer is given after the commit, and a group that fails is halved until the guilty job stands alone.

import type { Backend, Rule, Transaction, Urgency } from '../../../store/local/local-store.ts';
import type { Patience } from './lock-wait.ts';

interface Job {
  readonly rule: (tx: Transaction, request: never) => unknown;
  readonly request: unknown;
  readonly resolve: (answer: never) => void;
  readonly reject: (error: unknown) => void;
  /** Once its rule was applied; worth nothing before the commit. */
  answer: unknown;
}

export interface GroupCommitOptions {
  readonly patience: Patience;
  readonly open: () => Promise<unknown>;
  readonly isOpen: () => boolean;
  /** Others wait for the lock, and this process has had it. */
  readonly isHurried: () => boolean;
  /** Throws where another process has the lock. */
  readonly lock: () => void;
  /** Under the lock: what the rules see. */
  readonly begin: () => Transaction;
  /** Makes what the rules did durable. */
  readonly commit: () => void;
  /** Undoes all of it. */
  readonly undo: (error: unknown) => void;
  /** What the caller is told of a failure, and whether the failure says nothing of a single job. */
  readonly judge: (error: unknown) => { readonly error: unknown; readonly failsAll: boolean };
  /** Why nothing is taken any more. */
  readonly refusal: () => Error | undefined;
}

export interface GroupCommit extends Pick<Backend, 'transact'> {
  /** Resolves when nothing is queued or under way. */
  drained(): Promise<void>;
}

/** Jobs of one transaction. */
const most = 256;

/** Taken now: a user's test may fake the timers later, and nobody would turn them. */
const soon: (run: () => void) => void = setImmediate;

export function groupCommit(options: GroupCommitOptions): GroupCommit {
  const { patience, open, isOpen, isHurried, lock, begin, commit, undo, judge, refusal } = options;
  const queues: Record<Urgency, Job[]> = { holding: [], claiming: [], settling: [] };
  /** Of groups that failed. They go first, each by itself. */
  const halves: Job[][] = [];
  let waiters: (() => void)[] = [];
  /** A transaction is under way, or will start. */
  let isBusy = false;

  return {
    transact:
      <Request, Answer>(urgency: Urgency, rule: Rule<Request, Answer>) =>
      (request: Request) => {
        const refused = refusal();
        if (refused !== undefined) return Promise.reject(refused);
        const { promise, resolve, reject } = Promise.withResolvers<Answer>();
        queues[urgency].push({ rule, request, resolve, reject, answer: undefined });
        if (!isBusy) {
          isBusy = true;
          soon(turn);
        }
        return promise;
      },
    async drained() {
      if (isBusy) await new Promise<void>((resolve) => waiters.push(resolve));
    },
  };

  /** One transaction, with all that has come until the lock was had. */
  function turn(isLocked = false): void {
    if (!isLocked && !hasLock()) return;
    const jobs = halves.shift() ?? take();
    try {
      const transaction = begin();
      for (const job of jobs) job.answer = job.rule(transaction, job.request as never);
      commit();
      for (const job of jobs) job.resolve(job.answer as never);
    } catch (error) {
      undo(error);
      divide(jobs, error);
    }
    goOn();
  }

  /** False: the turn comes again once there is one. */
  function hasLock(): boolean {
    if (!isOpen()) open().then(waitForLock, failAll);
    else if (isHurried()) patience.courtesy(waitForLock);
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
    patience.locked(lock, () => turn(true), failAll);
  }

  function goOn(): void {
    if (halves.length + waiting() > 0) {
      soon(turn);
      return;
    }
    isBusy = false;
    const told = waiters;
    waiters = [];
    for (const tell of told) tell();
  }

  function divide(jobs: Job[], error: unknown): void {
    const judged = judge(error);
    if (jobs.length === 1 || judged.failsAll) {
      for (const { reject } of jobs) reject(judged.error);
      return;
    }
    const middle = jobs.length >> 1;
    halves.unshift(jobs.slice(0, middle), jobs.slice(middle));
  }

  /** The ledger cannot be opened, or stays locked. */
  function failAll(error: unknown): void {
    const judged = judge(error);
    const { holding, claiming, settling } = queues;
    const all = [halves.splice(0).flat(), holding.splice(0), claiming.splice(0), settling.splice(0)];
    for (const { reject } of all.flat()) reject(judged.error);
    goOn();
  }

  function waiting(): number {
    return queues.holding.length + queues.claiming.length + queues.settling.length;
  }

  /** In the order of urgency; but a flood of claims leaves a quarter of each group to those who want to settle. */
  function take(): Job[] {
    const { holding, claiming, settling } = queues;
    if (waiting() <= most) {
      const all =
        holding.length === 0 && settling.length === 0 ? claiming : [...holding, ...claiming, ...settling];
      queues.holding = [];
      queues.claiming = [];
      queues.settling = [];
      return all;
    }
    const jobs = holding.splice(0, most);
    const reserved = Math.min(settling.length, most >> 2);
    jobs.push(...claiming.splice(0, Math.max(0, most - jobs.length - reserved)));
    jobs.push(...settling.splice(0, most - jobs.length));
    return jobs;
  }
}
