// Twilio: its messages take neither a key nor metadata, so recipient and text must do.

import { unsure } from '../../core/verification.ts';
import { createRequest, type TokenAccess } from './request.ts';
import {
  type AsFound,
  type AsValue,
  earliest,
  type Found,
  type SearchOptions,
  search,
  type Verifier,
} from './search.ts';

export interface TwilioMessage {
  readonly sid: string;
  readonly to: string;
  readonly body: string;
  readonly status?: string;
  readonly direction: string;
  readonly dateCreated: Date | null;
}

interface TwilioLike {
  readonly messages: ((sid: string) => { fetch(): PromiseLike<TwilioMessage> }) & {
    list(params: never): PromiseLike<readonly TwilioMessage[]>;
  };
}

type TwilioAccess =
  | { readonly client: TwilioLike }
  | (TokenAccess & {
      /** The account's SID; `token` is its auth token. */
      readonly accountSid: string;
    });

interface Sent {
  /** As it was sent, in E.164. */
  readonly to: string;
  /** The text, or a part of it that no other message has: a code, an order number, the mark. */
  readonly text: string;
}

type TwilioOptions<Args> = TwilioAccess &
  SearchOptions & { readonly message: (args: Args, mark: string) => Sent };

/**
 * Finds an SMS or WhatsApp message by recipient and text; `ctx.note(sid)`. Twilio rewrites some texts (trial accounts, short
 * links, smart encoding): if there are other messages to the same recipient, and none has the text, the answer is "unsure".
 * Cannot tell apart two messages with the same text to the same recipient, nor see deleted or redacted ones.
 */
export function verifyTwilioMessage<Args, Value>(
  options: TwilioOptions<Args> & AsValue<TwilioMessage, Value>,
): Verifier<Args, Value>;
export function verifyTwilioMessage<Args>(options: TwilioOptions<Args> & AsFound): Verifier<Args, Found>;
export function verifyTwilioMessage<Args>(options: TwilioOptions<Args>): Verifier<Args, never> {
  return async (args, ctx) => {
    const { messages } =
      options.client === undefined ? withToken(options as TokenAndSid, ctx.signal) : options.client;
    const { to, text } = options.message(args, ctx.mark(options.part));
    if (!isAddress(to)) return unsure(`${to} is not a recipient as Twilio lists it, such as +15550001`);
    if (text === '' || typeof text !== 'string') return unsure('the message has no text to look for');
    const since = earliest(ctx)?.getTime() ?? 0;
    const others: string[] = [];
    const limit = 100 * (options.maxPages ?? 10);
    const answer = await search<TwilioMessage, never>(
      {
        service: 'Twilio',
        get: async (sid) => messages(sid).fetch(),
        page: async () => {
          const items = await messages.list({ to, limit, pageSize: 100 } as never);
          const last = items.at(-1);
          const isPast = last?.dateCreated != null && last.dateCreated.getTime() < since;
          // The client reads the pages itself, and stops at the limit.
          return { items, next: items.length < limit || isPast ? undefined : 'more' };
        },
        isOurs: ({ sid, to: recipient, body, direction, dateCreated }) => {
          if (recipient !== to) throw new Error('it answered something that it was not asked for');
          const isTooOld = dateCreated !== null && dateCreated.getTime() < since;
          if (isTooOld || !direction.startsWith('outbound')) return false;
          if (hasText(body, text)) return true;
          others.push(sid);
          return false;
        },
        idOf: ({ sid }) => sid,
        // Not documented.
        lag: '1m',
      },
      { ...options, maxPages: 1 },
      ctx,
    );
    return answer.verdict === 'notLanded' && others.length > 0
      ? unsure(
          `none of Twilio's messages to ${to} has the text, but it may have been rewritten: ${others.join(', ')}`,
        )
      : answer;
  };
}

/** In any other form, Twilio stores another one, and its list shows nothing. */
function isAddress(to: string): boolean {
  return /^(\+\d+$|[a-z]+:.)/.test(to);
}

/** Not in the middle of a word: "Order 12" is not in "Order 123". */
function hasText(body: string, text: string): boolean {
  for (let at = body.indexOf(text); at !== -1; at = body.indexOf(text, at + 1)) {
    const isCut = [at, at + text.length].some((edge) => isInsideWord(body.slice(0, edge), body.slice(edge)));
    if (!isCut) return true;
  }
  return false;
}

function isInsideWord(before: string, after: string): boolean {
  return /[\p{L}\p{N}]$/u.test(before) && /^[\p{L}\p{N}]/u.test(after);
}

type TokenAndSid = TokenAccess & { readonly accountSid: string };

interface RawMessage {
  readonly sid: string;
  readonly to: string;
  readonly body: string;
  readonly status: string;
  readonly direction: string;
  /** RFC 2822. */
  readonly date_created: string | null;
}

function withToken({ accountSid, token, baseUrl, fetch }: TokenAndSid, signal: AbortSignal): TwilioLike {
  const authorization = `Basic ${Buffer.from(`${accountSid}:${token}`).toString('base64')}`;
  const request = createRequest(
    { baseUrl: baseUrl ?? 'https://api.twilio.com', headers: { authorization }, fetch },
    signal,
  );
  const path = `/2010-04-01/Accounts/${accountSid}/Messages`;
  const list = async ({ to, limit }: { to: string; limit: number }) => {
    const all: TwilioMessage[] = [];
    let next: string | null = `${path}.json?${new URLSearchParams({ To: to, PageSize: '100' })}`;
    for (let page = 0; next !== null && all.length < limit && page < limit / 100; page += 1) {
      const { body }: { body: { messages: RawMessage[]; next_page_uri: string | null } } =
        await request(next);
      for (const message of body.messages) all.push(toMessage(message));
      next = body.next_page_uri;
    }
    // Pages without messages, one after the other.
    if (next !== null && all.length < limit) throw new Error('its list does not end');
    return all;
  };
  const one = (sid: string) => ({
    fetch: async () => toMessage((await request<RawMessage>(`${path}/${encodeURIComponent(sid)}.json`)).body),
  });
  return { messages: Object.assign(one, { list }) };
}

function toMessage({ date_created, ...message }: RawMessage): TwilioMessage {
  return { ...message, dateCreated: date_created === null ? null : new Date(date_created) };
}
