// The raw side of the Redis store, for `semel store copy`, which reaches one server by its URL: the ledger is one bucket.

import type { Random } from '../../core/clock.ts';
import { statusCode } from '../../store/columns.ts';
import {
  abandonFilling,
  finishFilling,
  type Standing,
  seal,
  startFilling,
  unseal,
} from '../../store/move/ledger-state.ts';
import {
  type About,
  fromRawRecord,
  type Name,
  type Raw,
  type RawPage,
  type RawRecord,
  toRawRecord,
} from '../../store/move/raw.ts';
import { newRevision } from '../../store/remote/plan.ts';
import type { Node, Reply } from './client.ts';
import { dueSlot } from './exchange/due.ts';
import { gone, layoutVersion, look, read, refill, statuses } from './exchange/scripts.ts';
import { judge, ledgerAt } from './failure.ts';
import {
  type BucketMeta,
  change,
  type Incarnation,
  type Inspected,
  inspect,
  inspectIfAny,
  type LedgerOptions,
  type Run,
  standingOf,
} from './meta.ts';
import { type Names, nameOf, namesOf, partsOf, scan } from './names.ts';
import { pack, packNoted, statusIn, unpack, unpackEvent } from './rows.ts';

export interface RedisRawOptions {
  readonly run: Run;
  readonly send: (key: string, command: readonly string[]) => Promise<Reply>;
  nodes(): Promise<readonly Node[]>;
  /** The checks of opening; refuses a cluster. */
  open(): Promise<void>;
  readonly prefix: string;
  readonly where: string;
  readonly address: string;
  readonly random: Random;
}

/** Records whose status is asked for at once. */
const chunk = 1_000;
/** A change of the standing is tried again where somebody else was faster. */
const mostTries = 10;

const openCodes = (['running', 'unknown'] as const).map(statusCode);

export function redisRaw(options: RedisRawOptions): Raw {
  const { run, send, prefix, random } = options;
  const where = ledgerAt(options.where);
  let opening: Promise<void> | undefined;
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

    seal: (to) => stand((standing) => seal(standing, to, where)),
    unseal: () => stand(unseal),
    fill: (from) => stand((standing, inspected) => closedFor(from, standing, inspected)),
    finish: (from) => stand((standing) => finishFilling(standing, from, where)),
    abandon: (from) => stand((standing) => abandonFilling(standing, from)),

    write: (from, { put = [], remove = [], floor = 0 }) =>
      inLedger(({ known }) => fillIn(known, from, floor, put, remove)),
  };

  async function asked<T>(question: (as: LedgerOptions) => Promise<T>): Promise<T> {
    opening ??= options.open();
    try {
      await opening;
      return await question({ prefix, isCluster: false, random });
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
        const meta = metaOf(ledger);
        if (await change(run, ledger.known, meta, await becomes(standingOf(meta), ledger))) return;
        if (tries >= mostTries) throw new Error('the ledger is being written to without a pause');
      }
    });
  }

  async function closedFor(from: string, standing: Standing, { known }: Inspected): Promise<Standing> {
    const isEmpty = !standing.filling && (await namesIn(known.names)).length === 0;
    return startFilling(standing, from, isEmpty, where);
  }

  async function about(inspected: Inspected | undefined): Promise<About> {
    const names = inspected?.known.names ?? namesOf(prefix, 1);
    const all = inspected === undefined ? [] : await namesIn(names);
    const meta = inspected && metaOf(inspected);
    ledger = inspected;
    return {
      ...(meta === undefined ? nothingThere : standingOf(meta)),
      address: options.address,
      schema: meta?.writer ?? 0,
      known: layoutVersion,
      floor: meta?.floor ?? 0,
      records: all.length,
      open: (await openAmong(names, all)).length,
      bytes: undefined,
      now: await nowOf(names),
      lossAccepted: acceptedIn(meta),
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

  async function namesIn(names: Names): Promise<readonly string[]> {
    const all = new Set<string>();
    for await (const some of scan(await options.nodes(), names)) for (const name of some) all.add(name);
    return [...all];
  }

  async function openAmong(names: Names, all: readonly string[]): Promise<readonly string[]> {
    const open: string[] = [];
    for (let start = 0; start < all.length; start += chunk) {
      const part = all.slice(start, start + chunk);
      const records = part.map((name) => names.record(0, name));
      const codes = String(await run(statuses, records, []));
      open.push(
        ...part.filter(
          (_, index) => codes[index] !== gone && openCodes.includes(statusIn(codes.charCodeAt(index))),
        ),
      );
    }
    return open;
  }

  async function found(names: Names, all: readonly string[]): Promise<readonly (RawRecord | undefined)[]> {
    if (all.length === 0) return [];
    const keys = all.flatMap((name) => [names.record(0, name), names.events(0, name)]);
    const [now, ...values] = (await run(read, keys, [])) as [number, ...(string | null | string[])[]];
    const time = { ...clockAt(now), wall: now, steady: true };
    return all.map((name, index) => {
      const value = values[2 * index];
      if (typeof value !== 'string') return undefined;
      const parts = partsOf(name);
      const events = (values[2 * index + 1] as string[]).map((event) => unpackEvent(...parts, event));
      return toRawRecord(unpack(...parts, value).row, events, time);
    });
  }

  async function fillIn(
    { names, of, saw }: Incarnation,
    from: string,
    floor: number,
    come: readonly RawRecord[],
    go: readonly Name[],
  ): Promise<void> {
    if (come.length === 0 && go.length === 0 && floor === 0) return;
    const clock = clockAt(await nowOf(names));
    const { id, seq } = of(0);
    const keys = [names.slots(0), names.meta(0), names.namespaces(0)];
    const args = [id, seq, layoutVersion, from, floor, names.nameStart(0), come.length].map(String);
    for (const record of come) {
      const row = fromRawRecord(record, clock);
      const name = nameOf(row.namespace, row.key);
      const key = names.record(0, name);
      const slot = dueSlot(row);
      const revision = newRevision(random);
      keys.push(key, slot === undefined ? key : names.due(0, String(slot)), names.events(0, name));
      args.push(slot === undefined ? '' : String(slot), row.namespace, pack(row, revision));
      args.push(String(record.events.length), ...record.events.map(packNoted));
    }
    for (const { namespace, key } of go) {
      const name = nameOf(namespace, key);
      keys.push(names.record(0, name), names.events(0, name));
    }
    saw(0, Number(await run(refill, keys, args)));
  }

  async function nowOf(names: Names): Promise<number> {
    const [now] = (await run(look, [names.record(0, '')], [])) as [number];
    return now;
  }
}

const nothingThere: Standing = { incarnation: '', movedTo: null, cameFrom: null, filling: false };

/** As the remote store reads it: leases count in the server's milliseconds. */
function clockAt(now: number): { mono: number; boot: string } {
  return { mono: now, boot: 'store' };
}

function metaOf({ metas }: Inspected): BucketMeta {
  return metas[0] as BucketMeta;
}

function acceptedIn(meta: BucketMeta | undefined): About['lossAccepted'] {
  if (meta === undefined || meta.accepted === null) return undefined;
  return { at: Number(meta.accepted), by: meta.acceptedBy || undefined, note: meta.acceptedWhy || undefined };
}
