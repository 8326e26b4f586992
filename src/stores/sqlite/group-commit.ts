// Group commit: all that waits shares one transaction. No timer: from idle, a transaction starts at the end of this turn
// of the loop. Every answer is given after the commit, and a group that fails is halved until the guilty job stands alone.

import type { Rule, Transaction, Urgency } from '../../store/local/local-store.ts';
import type { Patience } from './patience.ts';

export interface Job {
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
  /** Applies the rules and makes what they did durable, or undoes all of it and throws. */
  readonly commit: (jobs: readonly Job[]) => void;
  /** What the caller is told of a failure, and whether the failure says nothing of a single job. */
  readonly judge: (error: unknown) => { readonly error: unknown; readonly failsAll: boolean };
}

export interface GroupCommit {
  add<Request, Answer>(urgency: Urgency, rule: Rule<Request, Answer>, request: Request): Promise<Answer>;
  /** Resolves when nothing is queued or under way. */
  drained(): Promise<void>;
}

/** Jobs of one transaction. */
const most = 256;

/** Taken now: a user's test may fake the timers later, and nobody would turn them. */
const soon: (run: () => void) => void = setImmediate;

export function groupCommit(options: GroupCommitOptions): GroupCommit {
  const { patience, open, isOpen, isHurried, lock, commit, judge } = options;
  const queues: Record<Urgency, Job[]> = { holding: [], claiming: [], settling: [] };
  let waiters: (() => void)[] = [];
  /** A transaction is under way, or will start. */
  let isBusy = false;

  return {
    add<Request, Answer>(urgency: Urgency, rule: Rule<Request, Answer>, request: Request): Promise<Answer> {
      const { promise, resolve, reject } = Promise.withResolvers<Answer>();
      queues[urgency].push({ rule, request, resolve, reject, answer: undefined });
      if (!isBusy) {
        isBusy = true;
        soon(start);
      }
      return promise;
    },
    async drained() {
      if (isBusy) await new Promise<void>((resolve) => waiters.push(resolve));
    },
  };

  function start(): void {
    if (!isOpen()) open().then(begin, failAll);
    else if (isHurried()) patience.courtesy(begin);
    else {
      try {
        lock();
      } catch {
        begin();
        return;
      }
      work();
    }
  }

  function begin(): void {
    patience.locked(lock, work, failAll);
  }

  /** With the lock, so that what came while it was waited for joins. */
  function work(): void {
    const jobs = take();
    try {
      commit(jobs);
    } catch (error) {
      void divide(jobs, error).then(goOn);
      return;
    }
    for (const job of jobs) job.resolve(job.answer as never);
    goOn();
  }

  function goOn(): void {
    if (waiting() > 0) {
      soon(start);
      return;
    }
    isBusy = false;
    const told = waiters;
    waiters = [];
    for (const tell of told) tell();
  }

  async function divide(jobs: readonly Job[], error: unknown): Promise<void> {
    const judged = judge(error);
    if (jobs.length === 1 || judged.failsAll) {
      for (const { reject } of jobs) reject(judged.error);
      return;
    }
    const middle = jobs.length >> 1;
    for (const half of [jobs.slice(0, middle), jobs.slice(middle)]) {
      try {
        await open();
        await patience.unlocked(() => {
          lock();
          commit(half);
        });
        for (const job of half) job.resolve(job.answer as never);
      } catch (again) {
        await divide(half, again);
      }
    }
  }

  /** The ledger cannot be opened, or stays locked. */
  function failAll(error: unknown): void {
    const judged = judge(error);
    const { holding, claiming, settling } = queues;
    for (const { reject } of [...holding.splice(0), ...claiming.splice(0), ...settling.splice(0)])
      reject(judged.error);
    goOn();
  }

  function waiting(): number {
    return queues.holding.length + queues.claiming.length + queues.settling.length;
  }

  /** In the order of urgency; but a flood of claims leaves a quarter of each group to those who want to settle. */
  function take(): readonly Job[] {
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
