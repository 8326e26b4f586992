// `semel store check`: a store's settings, contents and speed. Changes nothing.

import { type From, items } from '../../../core/paging.ts';
import { redactAddress } from '../../../store/address.ts';
import type { About } from '../../../store/move/raw.ts';
import type { Store } from '../../../store/store.ts';
import { storeFor } from '../../ledger.ts';
import { print, printable, printJson } from '../../render/print.ts';
import type { StoreValues } from './values.ts';

interface Counts {
  records: number;
  running: number;
  inDoubt: number;
  expired: number;
  namespaces: number;
}

const pageSize = 500;
const times = 15;

export async function check(values: StoreValues): Promise<number> {
  const store = await storeFor(values);
  try {
    const found = await factsOf(store);
    if (values.json) printJson(found);
    else print(...linesOf(found).map(printable));
    return found.damage === undefined || found.damage.length === 0 ? 0 : 1;
  } finally {
    await store.close();
  }
}

async function factsOf(store: Store) {
  const facts = await store.open();
  const about = await store.raw?.about();
  const address = about?.address ?? facts.address;
  return {
    kind: facts.kind,
    location: facts.location,
    address: address === undefined ? undefined : redactAddress(address),
    server: facts.server,
    schema: facts.schema,
    durable: facts.forgets === undefined,
    forgets: facts.forgets,
    clockProblem: facts.clockProblem,
    warning: facts.warning,
    ...(await countsIn(store)),
    bytes: about?.bytes,
    floor: about?.floor,
    lossAccepted: about?.lossAccepted,
    damage: await store.verify?.(),
    roundTripMs: await median(() => store.read('default', 'semel.check/=none')),
    durableWriteMs: store.raw && (await median(store.raw.probe)),
  };
}

async function countsIn(store: Store): Promise<Counts> {
  const names = await store.namespaces();
  const counts: Counts = { records: 0, running: 0, inDoubt: 0, expired: 0, namespaces: names.length };
  for (const namespace of names) {
    const list = (from: From) => store.list({ namespace, limit: pageSize, ...from });
    for await (const { status, lapsed, inDoubt, expired } of items(list)) {
      counts.records += 1;
      if (status === 'running' && !lapsed) counts.running += 1;
      if (inDoubt) counts.inDoubt += 1;
      if (expired) counts.expired += 1;
    }
  }
  return counts;
}

async function median(ask: () => Promise<unknown>): Promise<number> {
  const took: number[] = [];
  for (let time = 0; time < times; time += 1) {
    const askedAt = performance.now();
    await ask();
    took.push(performance.now() - askedAt);
  }
  took.sort((a, b) => a - b);
  return Number((took[Math.floor(times / 2)] as number).toFixed(3));
}

function linesOf(found: Awaited<ReturnType<typeof factsOf>>): readonly string[] {
  const size = found.bytes === undefined ? '' : `, ${sizeText(found.bytes)}`;
  const lines: [string, string | undefined][] = [
    ['kind', found.server === undefined ? found.kind : `${found.kind} (${found.server})`],
    ['where', found.location],
    ['schema', found.schema === undefined ? undefined : `version ${found.schema}`],
    ['durable', found.durable ? 'yes' : `no: ${found.forgets}`],
    ['loss', found.lossAccepted && acceptedText(found.lossAccepted)],
    ...damageLines(found.damage),
    ['clock', found.clockProblem ?? 'no problem'],
    ['access', found.warning],
    [
      'records',
      `${found.records} in ${found.namespaces === 1 ? '1 namespace' : `${found.namespaces} namespaces`}${size}`,
    ],
    ['', `${found.running} running, ${found.inDoubt} in doubt, ${found.expired} expired`],
    ['round trip', `${found.roundTripMs} ms`],
    ['durable write', found.durableWriteMs === undefined ? undefined : `${found.durableWriteMs} ms`],
  ];
  const shown = lines.filter((line): line is [string, string] => line[1] !== undefined);
  const width = Math.max(...shown.map(([name]) => name.length));
  return shown.map(([name, text]) => `${name.padEnd(width)}  ${text}`);
}

function damageLines(damage: readonly string[] | undefined): [string, string | undefined][] {
  if (damage === undefined || damage.length === 0)
    return [['intact', damage && 'yes: every record was verified']];
  return damage.map((problem, nth) => [nth === 0 ? 'damaged' : '', problem]);
}

function acceptedText({ at, by, note }: NonNullable<About['lossAccepted']>): string {
  const who = by === undefined ? '' : ` by ${by}`;
  return `accepted ${new Date(at).toISOString()}${who}${note === undefined ? '' : `: ${note}`}`;
}

function sizeText(bytes: number): string {
  return bytes < 1024 * 1024 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
