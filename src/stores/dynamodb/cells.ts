// Cells in a DynamoDB table: one item each. A cell larger than an item may be is kept in parts, which are written before it
// and deleted after it.

import { createHash } from 'node:crypto';
import type { Clock, Random } from '../../core/clock.ts';
import { AwsError } from '../../store/aws/client.ts';
import {
  type CellName,
  type CellPage,
  type Cells,
  metaName,
  type StoredCell,
  shortenKey,
} from '../../store/cells/cells.ts';
import { type Ask, type Item, isDone, type Value } from './requests.ts';

/** An item may have 400 KB, names included. */
const maxItemBytes = 380_000;
/** A sort key may have 1,024 bytes. */
const maxKeyBytes = 1_000;
/** Keys of one BatchGetItem. A read returns at most 16 MB, which is fewer of the largest. */
const maxBatch = 100;
/** Consecutive reads that returned none of the requested items. */
const maxSlowRounds = 5;
const slowPauseMs = 25;

export function createDynamodbCells({
  ask,
  table,
  clock,
  random,
}: {
  readonly ask: Ask;
  readonly table: string;
  readonly clock: Clock;
  readonly random: Random;
}): Omit<Cells, 'open' | 'close'> {
  /** Namespaces that this process has noted in the table. */
  const noted = new Set<string>();

  return {
    read,
    swap,
    async remove(name, tag) {
      const isGone = await isDone(ask('DeleteItem', { TableName: table, Key: keyOf(name), ...hasTag(tag) }));
      if (isGone) await removeParts(keyOf(name), tag);
      return isGone;
    },
    list,
    async namespaces() {
      const found: string[] = [];
      for (let from: Item | undefined; ; ) {
        const { Items = [], LastEvaluatedKey } = await ask('Query', {
          TableName: table,
          ConsistentRead: true,
          KeyConditionExpression: 'p = :p',
          ExpressionAttributeValues: { ':p': { S: namespacesPartition } },
          ...(from === undefined ? {} : { ExclusiveStartKey: from }),
        });
        found.push(...(Items as Item[]).map(placeOf));
        if (LastEvaluatedKey === undefined) return found;
        from = continueAfter(from, LastEvaluatedKey as Item);
      }
    },
  };

  async function read(names: readonly CellName[]): Promise<readonly (StoredCell | undefined)[]> {
    const items = await readItems(names.map(keyOf));
    return Promise.all(
      items.map((item, n) => (item === undefined ? undefined : toCell(names[n] as CellName, item))),
    );
  }

  async function swap(name: CellName, text: string, before: string | undefined): Promise<string | undefined> {
    await noteNamespace(name.namespace);
    const place = keyOf(name);
    const parts = splitBytes(text);
    const tag = `${random.token()}.${parts.length}`;
    await Promise.all(
      parts.map((part, n) =>
        ask('PutItem', {
          TableName: table,
          Item: { ...partKey(place, tag, n), part: { B: part.toString('base64') } },
        }),
      ),
    );
    const isWritten = await isDone(
      ask('PutItem', {
        TableName: table,
        Item: { ...place, tag: { S: tag }, ...(parts.length === 0 ? { text: { S: text } } : {}) },
        ...(before === undefined ? { ConditionExpression: 'attribute_not_exists(p)' } : hasTag(before)),
      }),
    );
    // If an earlier try of this request wrote it, these are in use: its reply was lost.
    if (!isWritten) {
      if (parts.length > 0 && (await readItems([place]))[0]?.tag?.S === tag) return tag;
      await removeParts(place, tag);
      return undefined;
    }
    if (before !== undefined) await removeParts(place, before);
    return tag;
  }

  /** Before the first cell of a namespace: a listing must not miss it. */
  async function noteNamespace(namespace: string): Promise<void> {
    if (noted.has(namespace) || namespace === metaName.namespace) return;
    await ask('PutItem', {
      TableName: table,
      Item: { p: { S: namespacesPartition }, k: { S: `=${namespace}` } },
    });
    noted.add(namespace);
  }

  /** Null: the cell was replaced while its parts were read. */
  async function readText(item: Item): Promise<string | null> {
    if (item.text?.S !== undefined) return item.text.S;
    const tag = item.tag?.S ?? '';
    const count = countParts(tag);
    const keys = Array.from({ length: count }, (_, n) => partKey(item, tag, n));
    const parts = await readItems(keys);
    if (parts.some((part) => part?.part?.B === undefined)) return null;
    return Buffer.concat(parts.map((part) => Buffer.from(part?.part?.B ?? '', 'base64'))).toString();
  }

  async function toCell(name: CellName, item: Item): Promise<StoredCell | undefined> {
    const text = await readText(item);
    if (text !== null) return { text, tag: item.tag?.S ?? '' };
    const [again] = await readItems([keyOf(name)]);
    if (again === undefined) return undefined;
    // A part that is missing while its cell has not changed is damage, which the text shows.
    return again.tag?.S === item.tag?.S ? { text: '', tag: item.tag?.S ?? '' } : toCell(name, again);
  }

  async function readItems(keys: readonly Item[]): Promise<readonly (Item | undefined)[]> {
    const found = new Map<string, Item>();
    let open = [...new Map(keys.map((key) => [idOf(key), key])).values()];
    for (let rounds = 0; open.length > 0; ) {
      const { Responses, UnprocessedKeys } = await ask('BatchGetItem', {
        RequestItems: { [table]: { Keys: open.slice(0, maxBatch), ConsistentRead: true } },
      });
      const items = ((Responses as Record<string, Item[]> | undefined)?.[table] ?? []) as Item[];
      for (const item of items) found.set(idOf(item), item);
      const left = (UnprocessedKeys as Record<string, { Keys: Item[] }> | undefined)?.[table]?.Keys ?? [];
      const isSlow = left.length >= Math.min(open.length, maxBatch);
      open = [...left.slice(0, maxBatch), ...open.slice(maxBatch)];
      rounds = isSlow ? rounds + 1 : 0;
      if (rounds > maxSlowRounds)
        throw new AwsError('ThrottlingException', 400, 'it returned none of the requested items');
      if (isSlow)
        await new Promise<void>((resolve) =>
          clock.setTimeout(resolve, slowPauseMs * 2 ** rounds * (0.5 + random.fraction())),
        );
    }
    return keys.map((key) => found.get(idOf(key)));
  }

  async function removeParts(place: Item, tag: string): Promise<void> {
    await Promise.all(
      Array.from({ length: countParts(tag) }, (_, n) =>
        ask('DeleteItem', { TableName: table, Key: partKey(place, tag, n) }),
      ),
    );
  }

  async function list(
    namespace: string,
    {
      prefix,
      after,
      limit,
    }: { readonly prefix: string; readonly after: string | undefined; readonly limit: number },
  ): Promise<CellPage> {
    const start = keyStart(prefix);
    const partition = { S: recordsPartition(namespace) };
    const { Items = [], LastEvaluatedKey } = await ask('Query', {
      TableName: table,
      ConsistentRead: true,
      Limit: limit,
      KeyConditionExpression: 'p = :p AND begins_with(k, :k)',
      ExpressionAttributeValues: { ':p': partition, ':k': { S: start } },
      ...(after === undefined ? {} : { ExclusiveStartKey: { p: partition, k: { S: `=${after}` } } }),
    });
    const cells = await Promise.all(
      (Items as Item[]).map(async (item) => {
        const place = placeOf(item);
        const text = await readText(item);
        return text === null ? undefined : { text, tag: item.tag?.S ?? '', place };
      }),
    );
    const from = after === undefined ? undefined : { p: partition, k: { S: `=${after}` } };
    return {
      cells: cells.filter((cell) => cell !== undefined),
      next:
        LastEvaluatedKey === undefined ? undefined : placeOf(continueAfter(from, LastEvaluatedKey as Item)),
    };
  }
}

/** Where the next page starts. The same page again and again would never end. */
function continueAfter(before: Item | undefined, last: Item): Item {
  if (before !== undefined && Buffer.compare(Buffer.from(placeOf(last)), Buffer.from(placeOf(before))) <= 0)
    throw new Error('its list of items does not continue');
  return last;
}

const namespacesPartition = 'namespaces';

function recordsPartition(namespace: string): string {
  return `records/${namespace}`;
}

function keyOf({ namespace, key }: CellName): Item {
  return { p: { S: recordsPartition(namespace) }, k: { S: sortKey(key) } };
}

/** The key, unless it was too long. */
function placeOf({ k }: Item): string {
  return (k?.S ?? '=').slice(1);
}

/** Never empty, as DynamoDB demands. */
function sortKey(key: string): string {
  return `=${shortenKey(key, maxKeyBytes, same, digest)}`;
}

/** The common start of the sort keys of all keys with this prefix; others may share it. */
function keyStart(prefix: string): string {
  return `=${prefix.slice(0, startCharacters)}`.replace(/[\ud800-\udbff]$/, '');
}

/** In fewer bytes than a long key keeps, whatever its characters. */
const startCharacters = 200;

/** Parts belong to a cell, and to one text of it. */
function partKey(cell: Item, tag: string, n: number): Item {
  return { p: { S: `parts/${digest(idOf(cell))}` }, k: { S: `${tag}/${n}` } };
}

function countParts(tag: string): number {
  return Number(/\.(\d{1,4})$/.exec(tag)?.[1] ?? 0);
}

/** None if it fits one item. */
function splitBytes(text: string): readonly Buffer[] {
  if (text.length * 3 <= maxItemBytes) return [];
  const bytes = Buffer.from(text);
  if (bytes.length <= maxItemBytes) return [];
  const parts: Buffer[] = [];
  for (let start = 0; start < bytes.length; start += maxItemBytes)
    parts.push(bytes.subarray(start, start + maxItemBytes));
  return parts;
}

function hasTag(tag: string) {
  return {
    ConditionExpression: '#tag = :tag',
    ExpressionAttributeNames: { '#tag': 'tag' },
    ExpressionAttributeValues: { ':tag': { S: tag } satisfies Value },
  };
}

function idOf({ p, k }: Item): string {
  return `${p?.S}\0${k?.S}`;
}

function same(text: string): string {
  return text;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
