// The raw side of the Redis store. What concerns many buckets is one step in each of them: a record and its history lie in
// one, and a copy asks again for whatever was not done.

import type { Random } from '../../core/clock.ts';
import {
  type About,
  type Name,
  type Raw,
  type RawPage,
  type RawRecord,
  rawOf,
  rowFrom,
} from '../../store/raw.ts';
import { statusCode } from '../../store/row-columns.ts';
import { beginFilling, filled, givenUp, type Standing, sealed, unsealed } from '../../store/standing.ts';
import type { Node, Reply } from './client.ts';
import { dueSlot } from './due.ts';
import { judge, ledgerAt } from './failure.ts';
import {
  type BucketMeta,
  type Inspected,
  inspect,
  inspectIfAny,
  type LedgerOptions,
  type Run,
} from './incarnation.ts';
import { type Names, nameOf, namesOf, partsOf } from './names.ts';
import { pack, packNoted, short, unpack, unpackEvent } from './rows.ts';
import { scan } from './scan.ts';
import { layoutVersion, look, read, refill, statuses } from './scripts.ts';
import { change, isFillingWord, standingOf } from './standing.ts';

export interface RedisRawOptions {
  readonly run: Run;
  readonly send: (key: string, command: readonly string[]) => Promise<Reply>;
  nodes(): Promise<readonly Node[]>;
  /** The checks of opening. Answers whether it is a cluster. */
  open(): Promise<boolean>;
  readonly prefix: string;
  readonly where: string;
  readonly address: string;
  readonly random: Random;
}

/** Records whose status is asked for at once. */
const chunk = 1_000;
/** A change of the standing is tried again where somebody else was faster. */
const mostTries = 10;

const openCodes = (['running', 'unknown'] as const).map((status) => short(statusCode(status)));

export function redisRaw(options: RedisRawOptions): Raw {
  const { run, send, prefix, random } = options;
  const where = ledgerAt(options.where);
  let opening: Promise<boolean> | undefined;
  let ledger: Inspected | undefined;
  /** The names of the pages that follow, and where they start. */
  const begun = new Map<string, { readonly all: readonly string[]; readonly start: number }>();

  return {
    about: () => asked(async (as) => about(await inspectIfAny(run, as, ledger?.known))),
    page: ({ openOnly, after, limit }) =>
      inLedger(({ known: { names } }) => pageOf(names, openOnly, after, limit)),
    find: (asked) =>
      inLedger(({ known: { names } }) =>
        found(
          names,
          asked.map(({ namespace, key }) => nameOf(namespace, key)),
        ),
      ),
    // Written to the log and awaited like any other write.
    probe: () =>
      inLedger(async ({ known: { names } }) => {
        await send(names.meta(0), ['hincrby', names.meta(0), 'seq', '0']);
      }),

    seal: (to) => stand((standing) => sealed(standing, to, where)),
    unseal: () => stand(unsealed),
    fill: (from) => stand((standing, inspected) => closedFor(from, standing, inspected)),
    finish: (from) => stand((standing) => filled(standing, from, where)),
    abandon: (from) => stand((standing) => givenUp(standing, from)),

    write: (from, { put = [], remove = [], floor = 0 }) =>
      inLedger(async (inspected) => {
        const { names } = inspected.known;
        const come = Map.groupBy(put, ({ row }) => names.bucketOf(row.namespace, row.key));
        const go = Map.groupBy(remove, ({ namespace, key }) => names.bucketOf(namespace, key));
        const buckets = floor > 0 ? inspected.metas.keys() : new Set([...come.keys(), ...go.keys()]);
        await Promise.all(
          [...buckets].map((bucket) =>
            fillBucket(inspected, bucket, from, floor, come.get(bucket) ?? [], go.get(bucket) ?? []),
          ),
        );
      }),
  };

  async function asked<T>(question: (as: LedgerOptions) => Promise<T>): Promise<T> {
    opening ??= options.open();
    try {
      const isCluster = await opening;
      return await question({ prefix, isCluster, random });
    } catch (error) {
      opening = undefined;
      throw judge(error, options.where).error;
    }
  }

  function inLedger<T>(question: (ledger: Inspected) => Promise<T>): Promise<T> {
    return asked(async (as) => {
      ledger ??= await inspect(run, as, undefined, 'whoever');
      return question(ledger);
    });
  }

  /** By what is there, as long as it is. */
  function stand(
    becomes: (standing: Standing, inspected: Inspected) => Standing | Promise<Standing>,
  ): Promise<void> {
    return asked(async (as) => {
      for (let tries = 1; ; tries += 1) {
        ledger = await inspect(run, as, ledger?.known, 'whoever');
        if (await change(run, ledger, await becomes(standingOf(ledger.metas), ledger))) return;
        if (tries >= mostTries) throw new Error('the ledger is being written to without a pause');
      }
    });
  }

  async function closedFor(from: string, standing: Standing, inspected: Inspected): Promise<Standing> {
    if (inspected.metas.every(({ closed }) => isFillingWord(closed)))
      return beginFilling(standing, from, false, where);
    const isEmpty = (await namesIn(inspected.known.names)).length === 0;
    const open = { ...standing, filling: false };
    // A program that knew it before made a record in a bucket that was not closed yet. That is no record of a copy.
    if (standing.filling && !isEmpty) await change(run, inspected, { ...open, cameFrom: null });
    return beginFilling(open, from, isEmpty, where);
  }

  async function about(inspected: Inspected | undefined): Promise<About> {
    const names = inspected?.known.names ?? namesOf(prefix, 1);
    const all = inspected === undefined ? [] : await namesIn(names);
    const metas = inspected?.metas ?? [];
    ledger = inspected;
    return {
      ...(inspected === undefined ? nothingThere : standingOf(metas)),
      address: options.address,
      schema: metas[0]?.writer ?? 0,
      known: layoutVersion,
      floor: Math.max(0, ...metas.map(({ floor }) => floor)),
      records: all.length,
      open: (await openAmong(names, all)).length,
      bytes: undefined,
      now: await nowOf(names, 0),
      lossAccepted: acceptedIn(metas[0]),
    };
  }

  async function pageOf(
    names: Names,
    openOnly: boolean,
    after: string | undefined,
    limit: number,
  ): Promise<RawPage> {
    const { all, start } = after === undefined ? await firstOf(names, openOnly) : going(after);
    const end = start + limit;
    const next = end < all.length ? random.token() : undefined;
    if (next !== undefined) begun.set(next, { all, start: end });
    const records = await found(names, all.slice(start, end));
    return { records: records.filter((record) => record !== undefined), next };
  }

  async function firstOf(names: Names, openOnly: boolean) {
    const all = await namesIn(names);
    return { all: openOnly ? await openAmong(names, all) : all, start: 0 };
  }

  function going(after: string) {
    const going = begun.get(after);
    if (going === undefined) throw new Error('this page was read before');
    begun.delete(after);
    return going;
  }

  /** By bucket, so that a page is of few of them. */
  async function namesIn(names: Names): Promise<readonly string[]> {
    const all = new Set<string>();
    for await (const some of scan(await options.nodes(), names)) for (const name of some) all.add(name);
    return [...byBucket(names, [...all])].sort(([a], [b]) => a - b).flatMap(([, some]) => some);
  }

  async function openAmong(names: Names, all: readonly string[]): Promise<readonly string[]> {
    const open: string[] = [];
    for (const [bucket, some] of byBucket(names, all)) {
      for (let start = 0; start < some.length; start += chunk) {
        const part = some.slice(start, start + chunk);
        const codes = await run(
          statuses,
          part.map((name) => names.record(bucket, name)),
          [],
        );
        open.push(...part.filter((_, index) => openCodes.includes(String(codes)[index] as string)));
      }
    }
    return open;
  }

  async function found(names: Names, all: readonly string[]): Promise<readonly (RawRecord | undefined)[]> {
    const records = new Map<string, RawRecord>();
    await Promise.all(
      [...byBucket(names, all)].map(async ([bucket, some]) => {
        const keys = some.flatMap((name) => [names.record(bucket, name), names.events(bucket, name)]);
        const [now, ...values] = (await run(read, keys, [])) as [number, ...(string | null | string[])[]];
        const time = { ...clockAt(now), wall: now, steady: true };
        for (const [index, name] of some.entries()) {
          const value = values[2 * index];
          if (typeof value !== 'string') continue;
          const parts = partsOf(name);
          const events = (values[2 * index + 1] as string[]).map((event) => unpackEvent(...parts, event));
          records.set(name, rawOf(unpack(...parts, value).row, events, time));
        }
      }),
    );
    return all.map((name) => records.get(name));
  }

  async function fillBucket(
    { known: { names, of, saw } }: Inspected,
    bucket: number,
    from: string,
    floor: number,
    come: readonly RawRecord[],
    go: readonly Name[],
  ): Promise<void> {
    const clock = clockAt(await nowOf(names, bucket));
    const { id, seq } = of(bucket);
    const keys = [names.slots(bucket), names.meta(bucket), names.namespaces(bucket)];
    const args = [id, seq, layoutVersion, from, floor, names.nameStart(bucket), come.length].map(String);
    for (const record of come) {
      const row = rowFrom(record, clock);
      const name = nameOf(row.namespace, row.key);
      const key = names.record(bucket, name);
      const slot = dueSlot(row);
      const revision = Math.floor(random.fraction() * Number.MAX_SAFE_INTEGER);
      keys.push(key, slot === undefined ? key : names.due(bucket, String(slot)), names.events(bucket, name));
      args.push(slot === undefined ? '' : String(slot), row.namespace, pack(row, revision));
      args.push(String(record.events.length), ...record.events.map(packNoted));
    }
    for (const { namespace, key } of go) {
      const name = nameOf(namespace, key);
      keys.push(names.record(bucket, name), names.events(bucket, name));
    }
    saw(bucket, Number(await run(refill, keys, args)));
  }

  async function nowOf(names: Names, bucket: number): Promise<number> {
    const [now] = (await run(look, [names.record(bucket, '')], [])) as [number];
    return now;
  }
}

const nothingThere: Standing = { incarnation: '', movedTo: null, cameFrom: null, filling: false };

/** As the far store reads it: leases count in the server's milliseconds. */
function clockAt(now: number): { mono: number; boot: string } {
  return { mono: now, boot: 'store' };
}

function byBucket(names: Names, all: readonly string[]): ReadonlyMap<number, readonly string[]> {
  return Map.groupBy(all, (name) => names.bucketOf(...partsOf(name)));
}

function acceptedIn(meta: BucketMeta | undefined): About['lossAccepted'] {
  if (meta === undefined || meta.accepted === null) return undefined;
  return { at: Number(meta.accepted), by: meta.acceptedBy || undefined, note: meta.acceptedWhy || undefined };
}
