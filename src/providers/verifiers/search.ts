// What every verifier does: looks up the id that the effect noted, then searches for its mark, and answers. Answers
// "unsure" to whatever it does not understand: an error, several matches, a list without an end.

import type { Duration } from '../../core/contract/duration.ts';
import { landed, notLanded, unsure, type Verification, type VerifyContext } from '../../core/verification.ts';
import { describeFailure, statusOf } from './failure.ts';

/** A `verify` for a contract. */
export type Verifier<Args, Value> = (args: Args, ctx: VerifyContext) => Promise<Verification<Value>>;

/** What a verifier returns as the tool's value, unless `value` makes another one. */
export interface Found {
  /** The service's own id; also the `remoteRef`, and what `ctx.note` should store. */
  readonly id: string;
}

export interface SearchOptions {
  /** Which effect of the run: as in `ctx.mark(part)`. */
  readonly part?: string;
  /** How late the service may show what it has. Each verifier names its own default. */
  readonly lag?: Duration;
  /** How many pages are read at most; then the answer is "unsure". @default 10 */
  readonly maxPages?: number;
}

/** Without `value`, the tool's value is `{ id }`. */
export interface AsFound {
  readonly value?: undefined;
}

export interface AsValue<Item, Value> {
  /** Makes the value that `run` would have returned. */
  readonly value: (item: Item) => Value | Promise<Value>;
}

export interface Page<Item> {
  readonly items: readonly Item[] | undefined;
  /** Where the next page starts; undefined: this was the last. */
  readonly next: string | undefined;
}

/** How one service is asked about one kind of thing. */
export interface Search<Item> {
  readonly service: string;
  /** By the id that `ctx.note` stored. A 404 is "there is none". */
  readonly get: (id: string) => Promise<Item | undefined>;
  readonly page: (cursor: string | undefined) => Promise<Page<Item>>;
  readonly isOurs: (item: Item) => boolean | Promise<boolean>;
  readonly idOf: (item: Item) => string;
  /** The query asks for ours only: if the service returns others too, it ignored the query. */
  readonly isFiltered?: true;
  /** Pages have numbers: if something is deleted meanwhile, the rest moves up, and one of it is on no page that was read. */
  readonly isNumbered?: true;
  /** The service's own lag, if the options name none. */
  readonly lag: Duration;
}

type SearchTerms<Item> = SearchOptions & { readonly value?: ((item: Item) => unknown) | undefined };

export function search<Item, Value>(
  { service, get, page, isOurs, idOf, isFiltered, isNumbered, lag }: Search<Item>,
  options: SearchTerms<Item>,
  { remoteRef }: VerifyContext,
): Promise<Verification<Value>> {
  const { maxPages = 10 } = options;
  return answer(service, async () => {
    const noted = remoteRef === undefined ? undefined : await orUndefined(get(remoteRef));
    if (noted !== undefined && idOf(noted) === remoteRef) return found(noted);
    const first = await readList();
    const isComplete = first.matches.size > 0 || !isNumbered || first.pages === 1 || first.hasMore;
    const { matches, hasMore, ids } = isComplete ? first : await readList();
    const [only, ...others] = matches.values();
    if (others.length > 0)
      return unsure(`ambiguous: ${service} has ${matches.size} of it: ${[...matches.keys()].join(', ')}`);
    if (only !== undefined) return found(only);
    if (hasMore) return unsure(`${service} has more pages than the verifier reads, and it is not on those`);
    if ([...first.ids].some((id) => !ids.has(id)))
      return unsure(`${service} deleted something while its list was read, so it may have been missed`);
    if (remoteRef !== undefined)
      return unsure(`the effect noted the id ${remoteRef}, but ${service} does not have it, or no longer`);
    return notLanded({ lag: options.lag ?? lag });
  });

  async function readList() {
    const matches = new Map<string, Item>();
    const ids = new Set<string>();
    let cursor: string | undefined;
    let pages = 0;
    do {
      const { items, next } = await page(cursor);
      // An error page or a changed API must not pass for an empty list.
      if (!Array.isArray(items)) throw new Error('it answered something that is not a list');
      for (const item of items as readonly Item[]) {
        ids.add(idOf(item));
        if (await isOurs(item)) matches.set(idOf(item), item);
        else if (isFiltered) throw new Error('it answered something that it was not asked for');
      }
      cursor = next;
      pages += 1;
    } while (cursor !== undefined && pages < maxPages);
    return { matches, ids, pages, hasMore: cursor !== undefined };
  }

  async function found(item: Item): Promise<Verification<Value>> {
    const id = idOf(item);
    const value = options.value === undefined ? ({ id } satisfies Found) : await options.value(item);
    return landed(value as Value, id);
  }
}

/** Where the next page starts. A list that has more, and does not say where, has no end that can be trusted. */
export function nextPage(hasMore: boolean, cursor: string | null | undefined): string | undefined {
  if (!hasMore) return undefined;
  if (cursor == null || cursor === '') throw new Error('its list has more, but does not say where');
  return cursor;
}

/** An error on the way decides nothing, and is reported. */
export async function answer<Value>(
  service: string,
  ask: () => Promise<Verification<Value>>,
): Promise<Verification<Value>> {
  try {
    return await ask();
  } catch (error) {
    return unsure(describeFailure(service, error));
  }
}

/** Only "there is none" is an answer; a refusal is not. */
export async function orUndefined<Item>(asking: PromiseLike<Item>): Promise<Item | undefined> {
  try {
    return await asking;
  } catch (error) {
    if (statusOf(error) === 404) return undefined;
    throw error;
  }
}

/** Clocks of service and ledger may differ by this much. */
const clockMarginMs = 10 * 60_000;

/** Nothing of it can be older; undefined if nobody knows. */
export function earliest({ firstDispatchedAt }: VerifyContext): Date | undefined {
  const ms = firstDispatchedAt?.getTime() ?? 0;
  return ms <= clockMarginMs ? undefined : new Date(ms - clockMarginMs);
}

/** A fixed value, or one made from the args. */
export type FromArgs<Args, Value> = Value | ((args: Args) => Value);

export function fromArgs<Args, Value>(given: FromArgs<Args, Value>, args: Args): Value {
  return typeof given === 'function' ? (given as (args: Args) => Value)(args) : given;
}
