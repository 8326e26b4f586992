// The figures of a process: counted from events while it runs, and read from the ledger when somebody asks. Labels are namespaces,
// tools and outcomes: never keys, ids or conversations.

import { systemClock, systemRandom } from '../../core/clock.ts';
import { createLedger, type SemelEvents } from '../../ledger/index.ts';
import { isInternalNamespace, overrideStore, type Semel } from '../../semel/index.ts';
import type { Store } from '../../store/store.ts';
import { counter, expose, type Family, gauge, histogram, type Observed, type Sample } from './exposition.ts';
import { createScopes, otherNamespaces, type Scope } from './labels.ts';
import { countOpen, type OpenRecords } from './open-records.ts';
import { countStaged, type StagedRows } from './staged-rows.ts';

export interface MetricsOptions {
  /** Where the open records are. */
  readonly store: Store;
  readonly version: string;
  /** Undefined: all of the store. */
  readonly namespaces?: readonly string[];
}

export interface Metrics {
  /** Counts the calls of this instance from now on. Returns what ends it. */
  listen(semel: Pick<Semel, 'on'>): () => void;
  /** The same store, with its requests timed. */
  timed(store: Store): Store;
  /** In Prometheus's text format. `namespace`: only what belongs to it. */
  text(namespace?: string): Promise<string>;
}

interface Open extends OpenRecords {
  /** Undefined: the store has no outbox. */
  readonly staged: StagedRows | undefined;
}

type Ref = Pick<SemelEvents['claimed'], 'namespace' | 'contract' | 'key' | 'fence'>;

/** Scraping often must not read the ledger often. */
const keptMs = 5_000;
/** Effects whose start was seen and whose end was not. */
const maxStarted = 10_000;
const timedOps = ['claim', 'renew', 'dispatch', 'settle', 'resolve', 'read', 'list'] as const;

export function createMetrics({ store, version, namespaces }: MetricsOptions): Metrics {
  const scopes = createScopes();
  const calls = counter(
    'semel_calls_total',
    'Calls by outcome: executed, replayed, in_doubt, busy, refused.',
  );
  const duplicates = counter(
    'semel_duplicates_total',
    'Effects that landed a second time, at a target that does not honour keys.',
  );
  const effects = histogram(
    'semel_effect_duration_seconds',
    'From the dispatch of an effect to its settlement.',
  );
  const requests = histogram('semel_store_duration_seconds', 'Requests to the store.');
  const started = new Map<string, number>();
  let isDown = false;
  let reading: { readonly at: number; readonly open: Promise<Open | undefined> } | undefined;
  const ledger = createLedger({
    store: overrideStore(store, { close: async () => undefined }),
    clock: systemClock,
    random: systemRandom,
    cache: { maxBytes: 0, maxAgeMs: 0 },
  });

  const count = (outcome: string) => {
    const find = perScope((scope) => calls.of({ ...scope, outcome }));
    return (ref: Ref) => {
      find(ref).value += 1;
    };
  };
  const countExecuted = count('executed');
  const findEffect = perScope((scope) => effects.of({ ...scope }));
  const findDuplicates = perScope((scope) => duplicates.of({ ...scope }));
  const nameOf = ({ namespace, key, fence }: Ref) => `${namespace}\0${key}\0${fence}`;

  function perScope<Series>(make: (scope: Scope) => Series): (ref: Ref) => Series {
    const known = new Map<Scope, Series>();
    return ({ namespace, contract }) => {
      const scope = scopes.of(namespace, contract);
      const found = known.get(scope);
      if (found !== undefined) return found;
      const series = make(scope);
      known.set(scope, series);
      return series;
    };
  }

  function onDispatched(ref: Ref): void {
    if (started.size >= maxStarted) started.delete(started.keys().next().value as string);
    started.set(nameOf(ref), systemClock.mono());
  }

  function onSettled(event: SemelEvents['settled']): void {
    const name = nameOf(event);
    const startedAt = started.get(name);
    started.delete(name);
    if (startedAt !== undefined) findEffect(event).observe((systemClock.mono() - startedAt) / 1_000);
    if (event.outcome !== 'unknown') countExecuted(event);
  }

  async function readOpen(): Promise<Open | undefined> {
    try {
      const names = namespaces ?? (await ledger.namespaces()).filter((name) => !isInternalNamespace(name));
      const open = await countOpen(ledger, names, scopes);
      const staged = store.outbox && (await countStaged(store.outbox, namespaces, scopes));
      return { ...open, staged };
    } catch {
      // `semel_store_up` says so.
      return undefined;
    }
  }

  function currentOpen(): Promise<Open | undefined> {
    const now = systemClock.mono();
    if (reading === undefined || now - reading.at > keptMs) reading = { at: now, open: readOpen() };
    return reading.open;
  }

  return {
    listen(semel) {
      const ends = [
        semel.on('dispatched', onDispatched),
        semel.on('settled', onSettled),
        semel.on('leaseLost', (ref) => void started.delete(nameOf(ref))),
        semel.on('replayed', count('replayed')),
        semel.on('busy', count('busy')),
        semel.on('conflict', count('refused')),
        semel.on('doubt', count('in_doubt')),
        semel.on('duplicate', (ref) => {
          findDuplicates(ref).value += 1;
        }),
        semel.on('storeDown', () => {
          isDown = true;
        }),
        semel.on('storeUp', () => {
          isDown = false;
        }),
      ];
      return () => {
        for (const end of ends) end();
      };
    },
    timed(other) {
      const timedMethod = (op: (typeof timedOps)[number]) => {
        let series: Observed | undefined;
        return (params: never, more: never) => {
          const startedAt = systemClock.mono();
          const end = () => {
            series ??= requests.of({ op });
            series.observe((systemClock.mono() - startedAt) / 1_000);
          };
          const reply = (other[op] as (params: never, more: never) => Promise<unknown>)(params, more);
          reply.then(end, end);
          return reply;
        };
      };
      const methods = Object.fromEntries(timedOps.map((op) => [op, timedMethod(op)]));
      return overrideStore(other, methods as Partial<Store>);
    },
    async text(namespace) {
      const open = await currentOpen();
      const byScope = (counts: ReadonlyMap<Scope, number>) =>
        [...counts].map(([scope, value]): Sample => ({ labels: { ...scope }, value }));
      const ages = [...(open?.oldestDoubt ?? [])].map(
        ([name, value]): Sample => ({ labels: { namespace: name }, value }),
      );
      const families: readonly Family[] = [
        gauge('semel_build_info', 'The version of semel.', [{ labels: { version }, value: 1 }]),
        gauge('semel_store_up', 'Whether the store answers.', [
          { labels: {}, value: open === undefined || isDown ? 0 : 1 },
        ]),
        calls,
        duplicates,
        effects,
        requests,
        ...(open === undefined
          ? []
          : [
              gauge('semel_in_doubt', 'Records that may or may not have landed.', byScope(open.inDoubt)),
              gauge('semel_oldest_doubt_age_seconds', 'How long the oldest of them has been open.', ages),
              gauge('semel_in_flight', 'Calls that are being executed.', byScope(open.inFlight)),
            ]),
        ...(open?.staged === undefined
          ? []
          : [
              gauge(
                'semel_outbox_rows',
                'Staged and not delivered, by state: waiting, behind a row of the group that is in doubt or dead, in_doubt, dead.',
                open.staged.counts,
              ),
              gauge(
                'semel_outbox_oldest_age_seconds',
                'How long ago the oldest was staged that is not dead.',
                open.staged.ages,
              ),
            ]),
      ];
      return expose(
        families,
        ({ namespace: of }) =>
          namespace === undefined || of === undefined || (of === namespace && of !== otherNamespaces),
      );
    },
  };
}
