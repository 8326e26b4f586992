// Records which applications use an unnamed namespace, one record per folder, in the ledger itself. Two projects with the same
// package name would get each other's results; the second is warned before its first call.

import { hostname } from 'node:os';
import { basename, dirname } from 'node:path';
import { isSemelError } from '../../core/errors.ts';
import { type From, items } from '../../core/paging.ts';
import { shellWord } from '../../core/visible.ts';
import type { Semel } from '../semel.ts';
import { isSameFolder } from './application.ts';

/** Where they are kept, apart from effects. */
export const rootsNamespace = (namespace: string) => `${namespace}${suffix}`;
export const isRootsNamespace = (namespace: string) => namespace.endsWith(suffix);
const suffix = ' (roots)';

export interface Root {
  readonly root: string;
  readonly since: Date;
  readonly ref: string;
}

type Book = Pick<Semel, 'records' | 'once'>;

/** Oldest first. `book` is a Semel in `rootsIn(namespace)`. */
export async function listRoots(book: Pick<Book, 'records'>): Promise<readonly Root[]> {
  const roots: Root[] = [];
  const list = (from: From) => book.records.list({ limit: 500, ...from });
  for await (const { args, createdAt, ref, expired } of items(list))
    if (typeof args === 'string' && !expired) roots.push({ root: args, since: createdAt, ref });
  return roots.sort((a, b) => a.since.getTime() - b.since.getTime());
}

/** Records this folder and returns those of other applications. */
export async function recordRoot(book: Book, root: string): Promise<readonly Root[]> {
  const isOwn = (other: Root) => isSameFolder(other.root, root);
  const before = await listRoots(book);
  const isNew = !before.some(isOwn);
  if (isNew) await note(book, root);
  // Read again: of two that start at the same time, at least one sees the other.
  const known = isNew ? await listRoots(book) : before;
  return known.filter((other) => !isOwn(other));
}

/** As long as a record may answer: what was done "ever" does so for good. */
const window = '5000w';

async function note(book: Book, root: string): Promise<void> {
  try {
    await book.once('semel.root', root, { window, ifBusy: 'fail', share: true }, () => hostname());
  } catch (error) {
    // Another process of the same application is noting it, or died while it did: its record is there.
    if (!isSemelError(error, 'IN_FLIGHT') && !isSemelError(error, 'IN_DOUBT')) throw error;
  }
}

export function sharedWarning(namespace: string, root: string, others: readonly Root[]): string {
  const [first] = others as readonly [Root, ...Root[]];
  const more = others.length === 1 ? '' : ` and ${others.length - 1} more`;
  const own = shellWord(suggestNamespace(namespace, root));
  return `${root} and ${first.root}${more} use the namespace ${JSON.stringify(namespace)} of one ledger, each because nothing else is named: they get each other's results. If they are different applications, give this one its own name: createSemel({ namespace: '${own}' }), or SEMEL_NAMESPACE=${own}. If they are the same one, name it: createSemel({ namespace: '${namespace}' }). Then \`semel doctor\` has the line that ends this warning for the other.`;
}

/** A suggestion. */
export function suggestNamespace(namespace: string, root: string): string {
  const folder = basename(root);
  return folder === namespace || folder === '' ? `${basename(dirname(root)) || 'my'}-${namespace}` : folder;
}
