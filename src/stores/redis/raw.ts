// The raw side of the Redis store, for `semel store copy`. It connects to one server by URL, so the ledger is one bucket.

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
import { describeLedger, judge } from './failure.ts';
import {
  type BucketMeta,
  changeStanding,
  type InspectedLedger,
  inspect,
  inspectIfAny,
  type KnownLedger,
  type LedgerOptions,
  parseStanding,
  type Run,
} from './meta.ts';
import { createNames, joinName, type Names, scan, splitName } from './names.ts';
import { pack, packNoted, parseStatus, unpack, unpackEvent } from './rows.ts';

interface RedisRawOptions {
  readonly run: Run;
  readonly send: (key: string, command: readonly string[]) => Promise<Reply>;
  nodes(): Promise<readonly Node[]>;
  /** Checks the server; refuses a cluster. */
  open(): Promise<void>;
  readonly prefix: string;
  readonly where: string;
  readonly address: string;
  readonly random: Random;
}

/** Records per status query. */
const chunk = 1_000;
/** Maximum number of attempts to change the ledger's state against other processes. */
const mostTries = 10;

const openCodes = (['running', 'unknown'] as const).map(statusCode);

export function redisRaw(options: RedisRawOptions): Raw {
  const { run, send, prefix, random } = options;
  const where = describeLedger(options.where);
  let opening: Promise<void> | undefined;
  let ledger: InspectedLedger | undefined;
  /** By page token: the names that are listed, and where the page starts. */
  const begun = new Map<string, { readonly all: readonly string[]; readonly start: number }>();

  return {
    about: () => withOpenLedger(async (as) => about(await inspectIfAny(run, as, ledger?.known))),
    page: ({ openOnly, after, limit }) =>
      inLedger(({ known: { names } }) => readPage(names, openOnly, after, limit)),
    find: (wanted) =>
      inLedger(({ known: { names } }) =>
        readRecords(
          names,
          wanted.map(({ namespace, key }) => joinName(namespace, key)),
        ),
      ),
    // Written to the AOF like any other write, without changing anything.
    probe: () =>
      inLedger(async ({ known: { names } }) => {
        await send(names.meta(0), ['hincrby', names.meta(0), 'seq', '0']);
      }),

    seal: (to) => updateStanding((standing) => seal(standing, to, where)),
    unseal: () => updateStanding(unseal),
    fill: (from) => updateStanding((standing, inspected) => closeForFilling(from, standing, inspected)),
    finish: (from) => updateStanding((standing) => finishFilling(standing, from, where)),
    abandon: (from) => updateStanding((standing) => abandonFilling(standing, from)),

    write: (from, { put = [], remove = [], floor = 0 }) =>
      inLedger(({ known }) => writeRecords(known, from, floor, put, remove)),
  };

  async function withOpenLedger<T>(question: (as: LedgerOptions) => Promise<T>): Promise<T> {
    opening ??= options.open();
    try {
      await opening;
      return await question({ prefix, isCluster: false, random });
    } catch (error) {
      opening = undefined;
      throw judge(error, options.where).error;
    }
  }

  function inLedger<T>(question: (ledger: InspectedLedger) => Promise<T>): Promise<T> {
    return withOpenLedger(async (as) => {
      ledger ??= await inspect(run, as, undefined, 'mover');
      return question(ledger);
    });
  }

  /** Compare-and-set, retried while others change it or write. */
  function updateStanding(
    becomes: (standing: Standing, inspected: InspectedLedger) => Standing | Promise<Standing>,
  ): Promise<void> {
    return withOpenLedger(async (as) => {
      for (let tries = 1; ; tries += 1) {
        ledger = await inspect(run, as, ledger?.known, 'mover');
        const meta = firstMeta(ledger);
        if (await changeStanding(run, ledger.known, meta, await becomes(parseStanding(meta), ledger))) return;
        if (tries >= mostTries) throw new Error('the ledger is being written to without pause');
      }
    });
  }

  async function closeForFilling(
    from: string,
    standing: Standing,
    { known }: InspectedLedger,
  ): Promise<Standing> {
    const isEmpty = !standing.filling && (await listNames(known.names)).length === 0;
    return startFilling(standing, from, isEmpty, where);
  }

  async function about(inspected: InspectedLedger | undefined): Promise<About> {
    const names = inspected?.known.names ?? createNames(prefix, 1);
    const all = inspected === undefined ? [] : await listNames(names);
    const meta = inspected && firstMeta(inspected);
    ledger = inspected;
    return {
      ...(meta === undefined ? nothingThere : parseStanding(meta)),
      address: options.address,
      schema: meta?.writer ?? 0,
      known: layoutVersion,
      floor: meta?.floor ?? 0,
      records: all.length,
      open: (await filterOpen(names, all)).length,
      bytes: undefined,
      now: await readTime(names),
      lossAccepted: parseAcceptedLoss(meta),
    };
  }

  async function readPage(
    names: Names,
    openOnly: boolean,
    after: string | undefined,
    limit: number,
  ): Promise<RawPage> {
    const { all, start } = after === undefined ? await readFirstNames(names, openOnly) : resumePage(after);
    const end = start + limit;
    const next = end < all.length ? random.token() : undefined;
    if (next !== undefined) begun.set(next, { all, start: end });
    const records = await readRecords(names, all.slice(start, end));
    return { records: records.filter((record) => record !== undefined), next };
  }

  async function readFirstNames(names: Names, openOnly: boolean) {
    const all = await listNames(names);
    return { all: openOnly ? await filterOpen(names, all) : all, start: 0 };
  }

  function resumePage(after: string) {
    const page = begun.get(after);
    if (page === undefined) throw new Error('this page was read before');
    begun.delete(after);
    return page;
  }

  async function listNames(names: Names): Promise<readonly string[]> {
    const all = new Set<string>();
    for await (const some of scan(await options.nodes(), names)) for (const name of some) all.add(name);
    return [...all];
  }

  async function filterOpen(names: Names, all: readonly string[]): Promise<readonly string[]> {
    const open: string[] = [];
    for (let start = 0; start < all.length; start += chunk) {
      const part = all.slice(start, start + chunk);
      const records = part.map((name) => names.record(0, name));
      const codes = String(await run(statuses, records, []));
      open.push(
        ...part.filter(
          (_, index) => codes[index] !== gone && openCodes.includes(parseStatus(codes.charCodeAt(index))),
        ),
      );
    }
    return open;
  }

  async function readRecords(
    names: Names,
    all: readonly string[],
  ): Promise<readonly (RawRecord | undefined)[]> {
    if (all.length === 0) return [];
    const keys = all.flatMap((name) => [names.record(0, name), names.events(0, name)]);
    const [now, ...values] = (await run(read, keys, [])) as [number, ...(string | null | string[])[]];
    const time = { ...clockAt(now), wall: now, steady: true };
    return all.map((name, index) => {
      const value = values[2 * index];
      if (typeof value !== 'string') return undefined;
      const parts = splitName(name);
      const events = (values[2 * index + 1] as string[]).map((event) => unpackEvent(...parts, event));
      return toRawRecord(unpack(...parts, value).row, events, time);
    });
  }

  async function writeRecords(
    { names, of, markSeen }: KnownLedger,
    from: string,
    floor: number,
    come: readonly RawRecord[],
    go: readonly Name[],
  ): Promise<void> {
    if (come.length === 0 && go.length === 0 && floor === 0) return;
    const clock = clockAt(await readTime(names));
    const { id, seq } = of(0);
    const keys = [names.slots(0), names.meta(0), names.namespaces(0)];
    const args = [id, seq, layoutVersion, from, floor, names.nameStart(0), come.length].map(String);
    for (const record of come) {
      const row = fromRawRecord(record, clock);
      const name = joinName(row.namespace, row.key);
      const key = names.record(0, name);
      const slot = dueSlot(row);
      const revision = newRevision(random);
      keys.push(key, slot === undefined ? key : names.due(0, String(slot)), names.events(0, name));
      args.push(slot === undefined ? '' : String(slot), row.namespace, pack(row, revision));
      args.push(String(record.events.length), ...record.events.map(packNoted));
    }
    for (const { namespace, key } of go) {
      const name = joinName(namespace, key);
      keys.push(names.record(0, name), names.events(0, name));
    }
    markSeen(0, Number(await run(refill, keys, args)));
  }

  async function readTime(names: Names): Promise<number> {
    const [now] = (await run(look, [names.record(0, '')], [])) as [number];
    return now;
  }
}

const nothingThere: Standing = { incarnation: '', movedTo: null, cameFrom: null, filling: false };

/** Remote stores count leases in the server's milliseconds. */
function clockAt(now: number): { mono: number; boot: string } {
  return { mono: now, boot: 'store' };
}

function firstMeta({ metas }: InspectedLedger): BucketMeta {
  return metas[0] as BucketMeta;
}

function parseAcceptedLoss(meta: BucketMeta | undefined): About['lossAccepted'] {
  if (meta === undefined || meta.accepted === null) return undefined;
  return { at: Number(meta.accepted), by: meta.acceptedBy || undefined, note: meta.acceptedWhy || undefined };
}
