// Delivers what is staged, in any number of processes. Taking rows is one short statement; no lock is held while an effect
// runs. Polls often after something was staged in this process, and rarely when idle.

import { Moment } from '../core/clock.ts';
import { describeThrown } from '../core/contract/classify.ts';
import { type Duration, durationMs } from '../core/contract/duration.ts';
import { checkKnown, fieldNames } from '../core/contract/known-fields.ts';
import { SemelError } from '../core/errors.ts';
import { sleep } from '../ledger/index.ts';
import { type Engine, engineOf, type ToolFunction } from '../semel/index.ts';
import type { Outbox } from '../store/outbox.ts';
import { type Delivery, type DeliveryOptions, deliver, holdMs, type LentRow } from './delivery.ts';
import { onStaged } from './wake.ts';

export interface RelayOptions {
  /** Only rows of these tools. @default every tool of this Semel instance */
  readonly tools?: readonly Pick<ToolFunction<never, unknown>, 'contract'>[];
  /** Maximum number of effects at once. @default 16 */
  readonly concurrency?: number;
  /** Stops taking rows, and resolves when those it has are done. */
  readonly signal?: AbortSignal;
  /** What a group does after a row that is in doubt or dead. @default 'stop' */
  readonly onBlocked?: 'stop' | 'skip';
  /** Attempts that definitely did not land, or failed and are harmless to repeat, until the row is dead. @default 10 */
  readonly maxTries?: number;
  /** The pause after the first such attempt; it doubles. @default '1s' */
  readonly backoff?: Duration;
  /** @default '5m' */
  readonly maxBackoff?: Duration;
  /** The longest pause between two polls of an idle outbox. @default '1s' */
  readonly idle?: Duration;
  readonly onDelivery?: (delivery: Delivery) => void;
}

export interface RelayReport {
  readonly delivered: number;
  /** Attempts that are made again later. */
  readonly retried: number;
  readonly inDoubt: number;
  readonly dead: number;
}

const shortestPauseMs = 5;
/** After a poll that took some rows, but not all it may: those staged meanwhile share the commits of the next ones. */
const gatherMs = 40;
/** How long to poll often after something was staged in this process. */
const alertMs = 2_000;
const longestAlertPauseMs = 40;

/** How long a row of an unknown tool may wait: the tool may be defined later, or another relay may know it. */
const strangerMs = 60_000;
const maxStrangers = 100;

export function relay(semel: object, options: RelayOptions = {}): Promise<RelayReport> {
  return run(semel, options, false);
}

/** The same until nothing is due. */
export function drain(semel: object, options: RelayOptions = {}): Promise<RelayReport> {
  return run(semel, options, true);
}

async function run(semel: object, options: RelayOptions, untilEmpty: boolean): Promise<RelayReport> {
  checkOptions(options);
  const engine = engineOf(semel);
  await engine.open();
  const outbox = outboxOf(engine);
  const { clock, pipeline, namespace } = engine;
  const { concurrency = 16, signal } = options;
  const idleMs = durationMs(options.idle ?? '1s', 'idle');
  const delivery: DeliveryOptions = {
    maxTries: options.maxTries ?? 10,
    backoffMs: durationMs(options.backoff ?? '1s', 'backoff'),
    maxBackoffMs: durationMs(options.maxBackoff ?? '5m', 'maxBackoff'),
  };
  const report = { delivered: 0, retried: 0, inDoubt: 0, dead: 0 };
  const running = new Map<LentRow, Promise<void>>();
  const over = new AbortController();
  let woken = new AbortController();
  let alertUntil = 0;
  let pauseMs = shortestPauseMs;
  let lookForStrangersAt = clock.mono();
  const wake = () => woken.abort();
  const unlisten = onStaged(engine.store, () => {
    alertUntil = clock.mono() + alertMs;
    if (pauseMs > longestAlertPauseMs) wake();
  });

  const keeping = keepHeld();
  try {
    while (signal?.aborted !== true && !pipeline.closing.aborted) {
      // Takes only as many rows per poll as it can start.
      if (running.size > concurrency / 2) {
        await Promise.race(running.values());
        continue;
      }
      // A delivery that ends during the poll may free the next row of its group.
      const isLast = running.size === 0;
      const limit = concurrency - running.size;
      const rows = await takeRows(limit);
      for (const lent of rows) start(lent);
      if (rows.length > 0) pauseMs = shortestPauseMs;
      if (rows.length === limit) continue;
      if (rows.length > 0) {
        await rest(gatherMs);
        continue;
      }
      if (untilEmpty && isLast) break;
      if (clock.mono() >= lookForStrangersAt) await warnOfStrangers(strangerMs);
      await pause();
    }
    await Promise.all(running.values());
    if (untilEmpty) await warnOfStrangers(0);
    return report;
  } finally {
    over.abort();
    await keeping;
    unlisten();
  }

  /** Long effects keep their rows; a stalled relay loses them. */
  async function keepHeld(): Promise<void> {
    for (;;) {
      await sleep(clock, holdMs / 3, [over.signal], 'background');
      if (over.signal.aborted) return;
      const held = [...running.keys()].filter(({ lentAt }) => lentAt.passedMs(clock) > holdMs / 2);
      if (held.length === 0) continue;
      const lentAt = new Moment(clock);
      const asked = held.map(({ row, dueAt }) => ({ n: row.n, dueAt }));
      // A store that does not answer now may answer next time.
      const answer = await outbox.keep(asked, holdMs).catch(() => undefined);
      for (const lent of held) {
        if (answer?.kept.includes(lent.row.n)) Object.assign(lent, { dueAt: answer.dueAt, lentAt });
      }
    }
  }

  async function takeRows(limit: number): Promise<readonly LentRow[]> {
    const contracts = listRunnable(
      engine,
      options.tools?.map(({ contract }) => contract.name),
    );
    const skipBlocked = options.onBlocked === 'skip';
    const lentAt = new Moment(clock);
    try {
      const rows = await outbox.take({ namespace, contracts, limit, holdMs, skipBlocked });
      return rows.map((row) => ({ row, dueAt: row.dueAt, lentAt }));
    } catch (error) {
      if (!(error instanceof SemelError) || !error.retriable || untilEmpty) throw error;
      pauseMs = Math.max(pauseMs, idleMs);
      return [];
    }
  }

  /** Rows of a tool that no relay knows would wait for good, and nobody would hear of it. */
  async function warnOfStrangers(minAgeMs: number): Promise<void> {
    lookForStrangersAt = clock.mono() + strangerMs;
    if (options.tools !== undefined) return;
    const known = new Set(engine.listTools().concat(listRunnable(engine)));
    const query = { namespace, state: 'waiting', limit: maxStrangers } as const;
    const rows = await outbox.list(query).catch(() => []);
    const isStranger = ({ contract, stagedAt }: (typeof rows)[number]) =>
      !known.has(contract) && clock.now() - stagedAt >= minAgeMs;
    for (const contract of new Set(rows.filter(isStranger).map((row) => row.contract)))
      engine.warn(
        `${contract} is staged, and this relay does not deliver it: its process has no tool of that name. Import the module that defines it, unless another relay does.`,
      );
  }

  function start(lent: LentRow): void {
    const { row } = lent;
    const work = deliver(engine, outbox, lent, delivery)
      .then(
        (done) => {
          report[counters[done.outcome]] += 1;
          tell(done);
        },
        // The store does not answer: the row is lent again when its time is over.
        (error: unknown) =>
          engine.warn(`A relay could not finish ${row.contract}: ${(error as Error).message}`),
      )
      .finally(() => {
        running.delete(lent);
        // The next row of its group is free now.
        if (row.group !== null) wake();
      });
    running.set(lent, work);
  }

  /** A bug in the caller's callback must not stop the relay or the process. */
  function tell(done: Delivery): void {
    try {
      options.onDelivery?.(done);
    } catch (error) {
      engine.warn(`\`onDelivery\` of a relay threw: ${describeThrown(error)}`);
    }
  }

  async function pause(): Promise<void> {
    const isAlert = clock.mono() < alertUntil;
    const longest = isAlert ? Math.min(longestAlertPauseMs, idleMs) : idleMs;
    const isWoken = await rest(Math.min(pauseMs, longest));
    pauseMs = isWoken ? shortestPauseMs : Math.min(longest, pauseMs * 2);
  }

  /** True: it was woken before. */
  async function rest(ms: number): Promise<boolean> {
    await sleep(clock, ms * (0.75 + engine.random.fraction() / 2), [woken.signal, signal, pipeline.closing]);
    if (!woken.signal.aborted) return false;
    woken = new AbortController();
    return true;
  }
}

const optionNames = fieldNames<RelayOptions>({
  tools: true,
  concurrency: true,
  signal: true,
  onBlocked: true,
  maxTries: true,
  backoff: true,
  maxBackoff: true,
  idle: true,
  onDelivery: true,
});

function checkOptions(options: RelayOptions): void {
  checkKnown('A relay', options, optionNames, 'INVALID_ARGS');
  for (const path of ['concurrency', 'maxTries'] as const) {
    const value = options[path];
    if (value === undefined || (Number.isSafeInteger(value) && value >= 1)) continue;
    throw new SemelError('INVALID_ARGS', `A relay: \`${path}\` is not a whole number from 1.`, {
      path,
      next: `Write ${path}: 10, or leave it out.`,
    });
  }
}

const counters = {
  delivered: 'delivered',
  'retried later': 'retried',
  'in doubt': 'inDoubt',
  dead: 'dead',
} as const satisfies Record<Delivery['outcome'], keyof RelayReport>;

/** By their current and earlier names, which rows may still have. A relay cannot run tools that a framework executes. */
function listRunnable(engine: Engine, names = engine.listTools()): readonly string[] {
  return names.flatMap((name) => {
    const known = engine.find(name);
    if (known?.isExternal !== false) return [];
    return [name, ...known.tool.contract.was.flatMap((form) => form.name ?? [])];
  });
}

export function outboxOf({ store }: Engine): Outbox {
  if (store.outbox !== undefined) return store.outbox;
  throw new SemelError('STORE_UNSAFE', 'The store of this Semel instance has no outbox.', {
    next: 'Use a SQLite or Postgres store, in the database of your data.',
  });
}
