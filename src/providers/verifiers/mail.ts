// Mail: Resend by a tag, Postmark by metadata, SendGrid by a custom argument; each is called `semel` and holds the mark.
// `landed` means that the service took the mail, not that it arrived.

import { createRequest, RequestError, type TokenAccess } from './request.ts';
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

export interface ResendEmail {
  readonly id: string;
  readonly to: readonly string[] | string;
  readonly created_at: string;
  readonly tags?: readonly { readonly name: string; readonly value: string }[];
}

interface ResendReply<Data> {
  readonly data: Data | null;
  readonly error: { readonly message: string; readonly statusCode?: number | null } | null;
  readonly headers?: Readonly<Record<string, string>> | null;
}

interface ResendLike {
  readonly emails: {
    list(
      options: never,
    ): Promise<ResendReply<{ readonly data: readonly ResendEmail[]; readonly has_more: boolean }>>;
    get(id: string): Promise<ResendReply<ResendEmail>>;
  };
}

type ResendOptions<Args> = ({ readonly client: ResendLike } | TokenAccess) &
  SearchOptions & {
    /** The recipient. The list has no tags, so each mail to this address is looked at one by one. */
    readonly to: (args: Args) => string;
  };

/**
 * Finds a mail by `tags: [{ name: 'semel', value: ctx.mark() }]`; `ctx.note(id)`. Needs a key with full access. Cannot see
 * mails of a batch, which take no tags.
 */
export function verifyResendEmail<Args, Value>(
  options: ResendOptions<Args> & AsValue<ResendEmail, Value>,
): Verifier<Args, Value>;
export function verifyResendEmail<Args>(options: ResendOptions<Args> & AsFound): Verifier<Args, Found>;
export function verifyResendEmail<Args>(options: ResendOptions<Args>): Verifier<Args, never> {
  return (args, ctx) => {
    const mark = ctx.mark(options.part);
    const { emails } =
      options.client === undefined ? resendWithToken(options as TokenAccess, ctx.signal) : options.client;
    const to = bareAddress(options.to(args));
    const since = earliest(ctx)?.getTime() ?? 0;
    const get = async (id: string) => unwrap(await emails.get(id));
    return search<ResendEmail, never>(
      {
        service: 'Resend',
        get,
        page: async (cursor) => {
          const params = { limit: 100, ...(cursor === undefined ? {} : { after: cursor }) };
          const { data, has_more } = unwrap(await emails.list(params as never));
          const last = data.at(-1);
          // Newest first.
          const isPast = last !== undefined && Date.parse(last.created_at) < since;
          return { items: data, next: nextPage(has_more && !isPast, last?.id) };
        },
        isOurs: async (email) => {
          if (Date.parse(email.created_at) < since || !isTo(email, to)) return false;
          const { tags = [] } = await get(email.id);
          return tags.some(({ name, value }) => name === 'semel' && value === mark);
        },
        idOf: ({ id }) => id,
        // Not documented.
        lag: '1m',
      },
      options,
      ctx,
    );
  };
}

/** `Ann <ann@example.com>` may be listed without the name. */
function bareAddress(recipient: string): string {
  return (/<([^<>]+)>/.exec(recipient)?.[1] ?? recipient).trim().toLowerCase();
}

/** `bücher.example` may be listed as `xn--bcher-kva.example`, or the other way round. */
function isAscii(address: string): boolean {
  return /^[\x20-\x7e]*$/.test(address) && !address.includes('xn--');
}

function isTo({ to }: ResendEmail, address: string): boolean {
  const isListed = (each: string) => each.toLowerCase().includes(address) || !isAscii(each);
  return !isAscii(address) || [to].flat().some(isListed);
}

/** The SDK throws nothing. */
function unwrap<Data>({ data, error, headers }: ResendReply<Data>): Data {
  if (data !== null && error === null) return data;
  const received = headers == null ? undefined : new Headers(headers);
  throw new RequestError(error?.statusCode ?? 500, error?.message ?? 'it answered nothing', received);
}

function resendWithToken({ token, baseUrl, fetch }: TokenAccess, signal: AbortSignal): ResendLike {
  const headers = { authorization: `Bearer ${token}` };
  const request = createRequest({ baseUrl: baseUrl ?? 'https://api.resend.com', headers, fetch }, signal);
  const ask = async <Data>(path: string, query?: Record<string, string>) => {
    const { body } = await request<Data>(path, query === undefined ? {} : { query });
    return { data: body, error: null };
  };
  return {
    emails: {
      list: (query: Record<string, string>) => ask('/emails', query),
      get: (id) => ask(`/emails/${encodeURIComponent(id)}`),
    },
  };
}

export interface PostmarkMessage {
  readonly MessageID: string;
  readonly Metadata?: Readonly<Record<string, string>>;
}

interface PostmarkLike {
  getOutboundMessages(filter: never): Promise<{ readonly Messages: readonly PostmarkMessage[] }>;
  getOutboundMessageDetails(id: string): Promise<PostmarkMessage>;
}

type PostmarkOptions = ({ readonly client: PostmarkLike } | TokenAccess) &
  SearchOptions & {
    /** The message stream that it was sent in. @default 'outbound' */
    readonly stream?: string;
  };

/**
 * Finds a message by `Metadata: { semel: ctx.mark() }`; `ctx.note(MessageID)`. Cannot see messages past the retention of
 * the server (45 days unless changed), nor those of another server or stream.
 */
export function verifyPostmarkEmail<Value>(
  options: PostmarkOptions & AsValue<PostmarkMessage, Value>,
): Verifier<unknown, Value>;
export function verifyPostmarkEmail(options: PostmarkOptions & AsFound): Verifier<unknown, Found>;
export function verifyPostmarkEmail(options: PostmarkOptions): Verifier<unknown, never> {
  return (_, ctx) => {
    const mark = ctx.mark(options.part);
    const client =
      options.client === undefined ? postmarkWithToken(options as TokenAccess, ctx.signal) : options.client;
    return search<PostmarkMessage, never>(
      {
        service: 'Postmark',
        get: async (id) => {
          try {
            return await client.getOutboundMessageDetails(id);
          } catch (error) {
            // Postmark's own "this message does not exist" has the status 422.
            if ((error as { code?: unknown }).code === 701) return undefined;
            throw error;
          }
        },
        page: async () => {
          const filter = { count: 50, offset: 0, messageStream: options.stream, metadata_semel: mark };
          const { Messages } = await client.getOutboundMessages(filter as never);
          return { items: Messages, next: undefined };
        },
        // A server that ignores the filter must pass neither for one that found it nor for one that has none.
        isFiltered: true,
        isOurs: ({ Metadata }) => Metadata?.semel === mark,
        idOf: ({ MessageID }) => MessageID,
        // Not documented; its own activity page shows mail after a few minutes at worst.
        lag: '5m',
      },
      options,
      ctx,
    );
  };
}

function postmarkWithToken({ token, baseUrl, fetch }: TokenAccess, signal: AbortSignal): PostmarkLike {
  const headers = { 'x-postmark-server-token': token };
  const request = createRequest(
    { baseUrl: baseUrl ?? 'https://api.postmarkapp.com', headers, fetch },
    signal,
  );
  return {
    async getOutboundMessages({ messageStream, ...filter }: Record<string, string>) {
      const query = { ...filter, messagestream: messageStream };
      return (await request<{ Messages: PostmarkMessage[] }>('/messages/outbound', { query })).body;
    },
    async getOutboundMessageDetails(id) {
      return (await request<PostmarkMessage>(`/messages/outbound/${encodeURIComponent(id)}/details`)).body;
    },
  };
}

export interface SendGridMessage {
  /** Starts with the `X-Message-Id` of the response that took the mail. */
  readonly msg_id: string;
  readonly to_email?: string;
  readonly subject?: string;
  readonly status?: string;
}

interface SendGridLike {
  request(asking: {
    method: 'GET';
    url: string;
    qs: Record<string, string | number>;
  }): PromiseLike<readonly [unknown, unknown]>;
}

type SendGridOptions = ({ readonly client: SendGridLike } | TokenAccess) & SearchOptions;

/**
 * Finds a mail by `custom_args: { semel: ctx.mark() }`; `ctx.note(x-message-id)`. Needs the Email Activity add-on and a key
 * with access to it. Cannot see mails past its history, nor more than 6 times a minute; a mail to several is one match.
 */
export function verifySendGridEmail<Value>(
  options: SendGridOptions & AsValue<SendGridMessage, Value>,
): Verifier<unknown, Value>;
export function verifySendGridEmail(options: SendGridOptions & AsFound): Verifier<unknown, Found>;
export function verifySendGridEmail(options: SendGridOptions): Verifier<unknown, never> {
  return (_, ctx) => {
    const mark = ctx.mark(options.part);
    const client =
      options.client === undefined ? sendGridWithToken(options as TokenAccess, ctx.signal) : options.client;
    const ask = async (query: string) => {
      const [, body] = await client.request({
        method: 'GET',
        url: '/v3/messages',
        qs: { query, limit: 1000 },
      });
      return (body as { messages?: SendGridMessage[] }).messages;
    };
    const idOf = ({ msg_id }: SendGridMessage) => String(msg_id.split('.')[0]);
    const askByMark = (each: string) => ask(`unique_args['semel']="${each}"`);
    return search<SendGridMessage, never>(
      {
        service: 'SendGrid',
        get: async (id) => {
          // Others may begin with the same characters, and `_` stands for any.
          const found = /^[\w.-]+$/.test(id) ? await ask(`msg_id LIKE '${id}%'`) : undefined;
          return found?.find((message) => idOf(message) === id);
        },
        page: async () => {
          const items = await askByMark(mark);
          // Its list has no arguments. If it ignores the query, it has messages with a mark that does not exist, too.
          if (items?.length !== 0 && (await askByMark(`${mark}-none`))?.length !== 0)
            throw new Error('it answered something that it was not asked for');
          return { items, next: undefined };
        },
        isOurs: () => true,
        idOf,
        // Not documented: mail shows up with its first event, which may take a while.
        lag: '30m',
      },
      options,
      ctx,
    );
  };
}

function sendGridWithToken({ token, baseUrl, fetch }: TokenAccess, signal: AbortSignal): SendGridLike {
  const headers = { authorization: `Bearer ${token}` };
  const request = createRequest({ baseUrl: baseUrl ?? 'https://api.sendgrid.com', headers, fetch }, signal);
  return {
    async request({ url, qs }) {
      const { body } = await request(url, { query: qs });
      return [undefined, body];
    },
  };
}
