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
  /** The service's own lag, if the options name none. */
  readonly lag: Duration;
}

type SearchTerms<Item> = SearchOptions & { readonly value?: ((item: Item) => unknown) | undefined };

export function search<Item, Value>(
  { service, get, page, isOurs, idOf, lag }: Search<Item>,
  options: SearchTerms<Item>,
  { remoteRef }: VerifyContext,
): Promise<Verification<Value>> {
  const { maxPages = 10 } = options;
  return answer(service, async () => {
    const noted = remoteRef === undefined ? undefined : await orUndefined(get(remoteRef));
    if (noted !== undefined && idOf(noted) === remoteRef) return found(noted);
    const matches = new Map<string, Item>();
    let cursor: string | undefined;
    let pages = 0;
    do {
      const { items, next } = await page(cursor);
      // An error page or a changed API must not pass for an empty list.
      if (!Array.isArray(items)) throw new Error('it answered something that is not a list');
      for (const item of items as readonly Item[]) if (await isOurs(item)) matches.set(idOf(item), item);
      cursor = next;
      pages += 1;
    } while (cursor !== undefined && pages < maxPages);
    const [only, ...others] = matches.values();
    if (others.length > 0)
      return unsure(`ambiguous: ${service} has ${matches.size} of it: ${[...matches.keys()].join(', ')}`);
    if (only !== undefined) return found(only);
    if (cursor !== undefined)
      return unsure(`${service} has more pages than the verifier reads, and it is not on those`);
    if (remoteRef !== undefined)
      return unsure(`the effect noted the id ${remoteRef}, but ${service} does not have it, or no longer`);
    return notLanded({ lag: options.lag ?? lag });
  });

  async function found(item: Item): Promise<Verification<Value>> {
    const id = idOf(item);
    const value = options.value === undefined ? ({ id } satisfies Found) : await options.value(item);
    return landed(value as Value, id);
  }
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
