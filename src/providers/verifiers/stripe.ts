// Stripe: by `metadata: { semel: ctx.mark() }`. Lists, never search: search may show an object a minute late, an hour in an
// outage, while lists show it at once. Within 24 hours a re-run with the key needs no verifier; this is for later.

import type { VerifyContext } from '../../core/verification.ts';
import { createRequest, type TokenAccess } from './request.ts';
import {
  type AsFound,
  type AsValue,
  earliest,
  type Found,
  nextPage,
  type SearchOptions,
  search,
  type Verifier,
} from './search.ts';

export interface StripeObject {
  readonly id: string;
  readonly metadata?: Readonly<Record<string, string>> | null;
}

interface StripeResource<Item> {
  list(params: never): PromiseLike<{ readonly data: readonly Item[]; readonly has_more: boolean }>;
  retrieve(id: string): PromiseLike<Item>;
}

type Resource = 'refunds' | 'paymentIntents' | 'invoices';

/** The official client (`new Stripe(key)`), or an API key. */
type StripeAccess<Name extends Resource, Item> =
  | { readonly client: { readonly [Each in Name]: StripeResource<Item> } }
  | TokenAccess;

type StripeOptions<Name extends Resource, Args, Item> = StripeAccess<Name, Item> &
  SearchOptions & {
    /** Narrows the list: `({ charge }) => ({ charge })`. Without it, everything since the first dispatch is read. */
    readonly list?: (args: Args) => Readonly<Record<string, string>>;
  };

/** Finds a refund. Cannot see refunds that were created without the mark, such as in the dashboard. */
export function verifyStripeRefund<Args, Value, Item extends StripeObject = StripeObject>(
  options: StripeOptions<'refunds', Args, Item> & AsValue<Item, Value>,
): Verifier<Args, Value>;
export function verifyStripeRefund<Args, Item extends StripeObject = StripeObject>(
  options: StripeOptions<'refunds', Args, Item> & AsFound,
): Verifier<Args, Found>;
export function verifyStripeRefund(options: StripeOptions<'refunds', unknown, StripeObject>) {
  return verifyStripe('refunds', '/v1/refunds', options);
}

/** Finds a payment intent, whatever became of it: `landed` means created, not paid. */
export function verifyStripePaymentIntent<Args, Value, Item extends StripeObject = StripeObject>(
  options: StripeOptions<'paymentIntents', Args, Item> & AsValue<Item, Value>,
): Verifier<Args, Value>;
export function verifyStripePaymentIntent<Args, Item extends StripeObject = StripeObject>(
  options: StripeOptions<'paymentIntents', Args, Item> & AsFound,
): Verifier<Args, Found>;
export function verifyStripePaymentIntent(options: StripeOptions<'paymentIntents', unknown, StripeObject>) {
  return verifyStripe('paymentIntents', '/v1/payment_intents', options);
}

/** Finds an invoice, whatever became of it. Cannot see a draft that was deleted. */
export function verifyStripeInvoice<Args, Value, Item extends StripeObject = StripeObject>(
  options: StripeOptions<'invoices', Args, Item> & AsValue<Item, Value>,
): Verifier<Args, Value>;
export function verifyStripeInvoice<Args, Item extends StripeObject = StripeObject>(
  options: StripeOptions<'invoices', Args, Item> & AsFound,
): Verifier<Args, Found>;
export function verifyStripeInvoice(options: StripeOptions<'invoices', unknown, StripeObject>) {
  return verifyStripe('invoices', '/v1/invoices', options);
}

function verifyStripe<Name extends Resource, Item extends StripeObject>(
  name: Name,
  path: string,
  options: StripeOptions<Name, unknown, Item>,
) {
  return (args: unknown, ctx: VerifyContext) => {
    const mark = ctx.mark(options.part);
    const resource: StripeResource<Item> =
      options.client === undefined
        ? withToken(path, options as TokenAccess, ctx.signal)
        : options.client[name];
    const since = earliest(ctx);
    return search<Item, never>(
      {
        service: 'Stripe',
        get: async (id) => resource.retrieve(id),
        page: async (cursor) => {
          const params = {
            ...options.list?.(args),
            limit: 100,
            ...(since === undefined ? {} : { created: { gte: Math.floor(since.getTime() / 1000) } }),
            ...(cursor === undefined ? {} : { starting_after: cursor }),
          };
          const { data, has_more } = await resource.list(params as never);
          return { items: data, next: nextPage(has_more, data.at(-1)?.id) };
        },
        isOurs: ({ metadata }) => metadata?.semel === mark,
        idOf: ({ id }) => id,
        lag: 0,
      },
      options,
      ctx,
    );
  };
}

function withToken<Item>(path: string, { token, baseUrl, fetch }: TokenAccess, signal: AbortSignal) {
  const headers = { authorization: `Bearer ${token}` };
  const request = createRequest({ baseUrl: baseUrl ?? 'https://api.stripe.com', headers, fetch }, signal);
  return {
    async list({ created, ...params }: Record<string, string | number> & { created?: { gte: number } }) {
      const query = { ...params, 'created[gte]': created?.gte };
      return (await request<{ data: Item[]; has_more: boolean }>(path, { query })).body;
    },
    retrieve: async (id: string) => (await request<Item>(`${path}/${encodeURIComponent(id)}`)).body,
  } as StripeResource<Item>;
}
