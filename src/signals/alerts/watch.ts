// Sends each doubt to each target, once, and its end too: by guarded tools on the same ledger, so that two watchers, or one that
// was killed and started again, alert once. An alert that may have been sent is sent again under the same id: a lost alert is worse
// than a second one.

import { systemClock, systemRandom } from '../../core/clock.ts';
import { describeThrown } from '../../core/contract/classify.ts';
import { isSemelError } from '../../core/errors.ts';
import { callerKey } from '../../core/key/key.ts';
import { items } from '../../core/paging.ts';
import { NotLanded } from '../../core/signals.ts';
import { createLedger } from '../../ledger/index.ts';
import { alertsNamespace, createSemel, overrideStore } from '../../semel/index.ts';
import type { Store, StoredRecord } from '../../store/store.ts';
import { findDecision, findDoubts, type Looking } from './doubts.ts';
import { type Decision, type Doubt, describeEvent, type EventKind, type Wording } from './event.ts';
import { delayAfter } from './schedule.ts';
import type { Target } from './target.ts';

export interface WatchOptions extends Looking, Wording {
  /** Shared: closing the watch leaves it open. */
  readonly store: Store;
  readonly targets: readonly Target[];
  /** Every alert that was sent, and every attempt that failed. */
  readonly onAlert: (alert: Alert) => void;
  readonly onWarning: (message: string) => void;
}

export interface Alert {
  readonly kind: EventKind;
  readonly doubt: Doubt;
  readonly target: string;
  /** Undefined: it was sent. */
  readonly error: string | undefined;
  /** When it is tried again; undefined: it is not. */
  readonly again: Date | undefined;
}

export interface PassReport {
  readonly sent: number;
  /** Not sent yet, or given up. */
  readonly unsent: number;
}

export interface Watch {
  /** Looks once, and sends what is due. */
  pass(): Promise<PassReport>;
  /** Passes until the signal aborts, with this pause in between. A pass that fails is reported; the next one tries again. */
  run(everyMs: number, signal: AbortSignal): Promise<void>;
  /** Sends again to targets that answered 410. */
  enable(): Promise<void>;
  close(): Promise<void>;
}

/** What the ledger keeps of an alert. */
interface AlertArgs {
  readonly target: string;
  readonly id: string;
  readonly doubt: Doubt;
}

interface Opened {
  readonly doubt: Doubt;
  readonly ref: string;
  /** False: it may have been. */
  readonly isSent: boolean;
}

const disabledTool = 'alerts.disabled';

export function createWatch(options: WatchOptions): Watch {
  const { targets, onAlert, onWarning } = options;
  const store = overrideStore(options.store, { close: async () => undefined });
  const ledger = createLedger({
    store,
    clock: systemClock,
    random: systemRandom,
    cache: { maxBytes: 0, maxAgeMs: 0 },
  });
  const semel = createSemel({
    store,
    namespace: alertsNamespace,
    mode: 'enforce',
    cache: false,
    unguarded: false,
    onWarning,
  });
  const closing = new AbortController();
  /** What is being sent is still sent; nothing else is begun. */
  let isEnding = false;
  const byId = new Map(targets.map((target) => [target.id, target]));
  /** Known to be sent: the ledger need not be asked at every pass. */
  let sentKeys = new Set<string>();

  const opened = defineAlert('opened', '5000w');
  const resolved = defineAlert('resolved', '90d');

  function defineAlert(kind: EventKind, per: '5000w' | '90d') {
    return semel.tool({
      name: `doubt.${kind}`,
      effect: 'write-non-idempotent',
      per,
      identity: ['target', 'id'],
      // As long as the schedule: the record of a failed attempt has the number of attempts.
      failureWindow: '30d',
      onDoubt: 'rerun',
      ifBusy: 'fail',
      share: true,
      timeout: '2m',
      async run(args: AlertArgs, { signal }) {
        const decision = await decide(args.doubt);
        // Looked at after the claim: what another watcher has closed meanwhile is not opened again.
        if (kind === 'opened' && decision !== undefined) throw new NotLanded(decidedMeanwhile);
        const target = byId.get(args.target) as Target;
        const event = describeEvent(kind, args.doubt, options, kind === 'opened' ? undefined : decision);
        await target.send(event, AbortSignal.any([signal, closing.signal]));
      },
    });
  }

  async function decide(doubt: Doubt): Promise<Decision | undefined> {
    const decision = findDecision(await ledger.read(doubt.namespace, doubt.key), doubt);
    if (decision === undefined) return undefined;
    const history = decision.outcome === 'gone' ? [] : await ledger.history(doubt.namespace, doubt.key);
    const verdict = history.findLast(({ type }) => type === 'resolved');
    const by = verdict?.detail.by;
    return typeof by === 'string' ? { ...decision, by } : decision;
  }

  async function pass(): Promise<PassReport> {
    const report = { sent: 0, unsent: 0 };
    const doubts = await findDoubts(ledger, options);
    const keys = new Set<string>();
    for (const target of targets) {
      if (isEnding) break;
      if (await isDisabled(target)) continue;
      const outcomes = passTarget(target, doubts, keys);
      for await (const outcome of outcomes) {
        if (outcome === 'sent') report.sent += 1;
        if (outcome === 'unsent') report.unsent += 1;
      }
    }
    sentKeys = new Set([...sentKeys].filter((key) => keys.has(key)));
    return report;
  }

  /** After a failure the target is left alone until the next pass: it may be down, and each attempt may take long. */
  async function* passTarget(
    target: Target,
    doubts: readonly Doubt[],
    keys: Set<string>,
  ): AsyncGenerator<Outcome> {
    let isDown = false;
    const attend = async (kind: EventKind, doubt: Doubt) => {
      keys.add(keyOf(kind, target, doubt));
      const outcome = await deliver(kind, target, doubt, isDown);
      if (outcome === 'unsent') isDown = true;
      return outcome === 'later' ? 'unsent' : outcome;
    };
    for (const doubt of doubts) {
      if (isEnding) return;
      yield attend('opened', doubt);
    }
    const open = new Set(doubts.map(({ id }) => id));
    for await (const alert of listOpened(target)) {
      if (isEnding) return;
      const { doubt } = alert;
      if (open.has(doubt.id) || (await decide(doubt)) === undefined) continue;
      const outcome = await attend('resolved', doubt);
      // Its end was announced, or never will be: it need not be looked at again.
      if (outcome === 'sent' || outcome === 'done' || outcome === 'given up')
        await forgetOpened(alert, target);
      yield outcome;
    }
  }

  /** Also those that may have been sent: a target that got one waits for its end. */
  async function* listOpened(target: Target): AsyncGenerator<Opened> {
    const prefix = keyOf('opened', target, { id: '' });
    for (const status of ['succeeded', 'unknown', 'running'] as const) {
      const query = { contract: opened.contract.name, prefix, status, limit: 200 };
      for await (const { args, expired, inDoubt, ref } of items((from) =>
        semel.records.list({ ...query, ...from }),
      ))
        if (!expired && args !== undefined && (inDoubt || status === 'succeeded'))
          yield { doubt: (args as AlertArgs).doubt, ref, isSent: !inDoubt };
    }
  }

  async function forgetOpened({ doubt, ref, isSent }: Opened, target: Target): Promise<void> {
    sentKeys.delete(keyOf('opened', target, doubt));
    const act = { by: 'semel watch', note: 'its end was announced' };
    try {
      const settled = isSent ? ref : (await semel.doubts.resolve(ref, 'landed', act)).ref;
      await semel.records.forget(settled, act);
    } catch (error) {
      // Another watcher was faster.
      if (!isSemelError(error, 'RESOLVE_STALE') && !isSemelError(error, 'INVALID_ARGS')) throw error;
    }
  }

  /** `later`: its time has not come, or another watcher is sending it. */
  async function deliver(
    kind: EventKind,
    target: Target,
    doubt: Doubt,
    isDown: boolean,
  ): Promise<Outcome | 'later'> {
    const key = keyOf(kind, target, doubt);
    if (sentKeys.has(key)) return 'done';
    const before = await ledger.read(alertsNamespace, key);
    if (before?.status === 'succeeded' && !before.expired) {
      sentKeys.add(key);
      return 'done';
    }
    const state = stateOf(before, key);
    if (state === 'given up') return state;
    if (state === 'later' || isDown) return 'later';
    const args: AlertArgs = { target: target.id, id: doubt.id, doubt };
    const tool = kind === 'opened' ? opened : resolved;
    const result = await tool.try(args, { key: `${target.id}.${doubt.id}` });
    if (result.ok) {
      sentKeys.add(key);
      if (!result.receipt.executed) return 'done';
      onAlert({ kind, doubt, target: target.shown, error: undefined, again: undefined });
      return 'sent';
    }
    const { code, happened } = result.error;
    if (code === 'IN_FLIGHT') return 'later';
    if (code.startsWith('STORE_')) throw result.error;
    if (happened.includes(decidedMeanwhile)) return 'done';
    if (code === 'FAILED') await disable(target);
    const delayMs = delayAfter((before?.attempts ?? 0) + 1, key);
    const again = code === 'FAILED' || delayMs === undefined ? undefined : new Date(Date.now() + delayMs);
    onAlert({ kind, doubt, target: target.shown, error: happened, again });
    return 'unsent';
  }

  async function isDisabled(target: Target): Promise<boolean> {
    const record = await ledger.read(alertsNamespace, callerKey(disabledTool, target.id));
    return record?.status === 'succeeded' && !record.expired;
  }

  async function disable(target: Target): Promise<void> {
    const terms = { key: target.id, per: '5000w', ifBusy: 'fail', share: true } as const;
    await semel.once(disabledTool, target.id, terms, () => new Date().toISOString());
    onWarning(
      `${target.shown} answered 410, and gets no more alerts. To send to it again: semel watch --enable.`,
    );
  }

  return {
    pass,
    async run(everyMs, signal) {
      signal.addEventListener('abort', () => {
        isEnding = true;
      });
      while (!signal.aborted) {
        try {
          await pass();
        } catch (error) {
          onWarning(`The check for doubts failed and will be retried: ${describeThrown(error)}`);
        }
        await pause(everyMs, signal);
      }
    },
    async enable() {
      for (const target of targets) {
        if (!(await isDisabled(target))) continue;
        await semel.records.forget(callerKey(disabledTool, target.id));
        for (const kind of ['opened', 'resolved'] as const) {
          const query = { prefix: keyOf(kind, target, { id: '' }), status: 'failed', limit: 200 } as const;
          for await (const { ref } of items((from) => semel.records.list({ ...query, ...from })))
            await semel.records.reopen(ref);
        }
      }
    },
    async close() {
      isEnding = true;
      closing.abort(new Error('the watcher is ending'));
      await semel.close({ grace: '5s' });
      await ledger.close();
    },
  };
}

type Outcome = 'sent' | 'done' | 'unsent' | 'given up';

const decidedMeanwhile = 'decided meanwhile';

function keyOf(kind: EventKind, target: Target, { id }: Pick<Doubt, 'id'>): string {
  return callerKey(`doubt.${kind}`, `${target.id}.${id}`);
}

function stateOf(record: StoredRecord | undefined, key: string): 'due' | 'later' | 'given up' {
  // One that is running may be of a watcher that died: its claim tells.
  if (record === undefined || record.expired || record.status === 'running') return 'due';
  if (record.status === 'failed') return 'given up';
  const delayMs = delayAfter(record.attempts, key);
  if (delayMs === undefined) return 'given up';
  return (record.readAt || Date.now()) < record.updatedAt + delayMs ? 'later' : 'due';
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
