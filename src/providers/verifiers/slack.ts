// Slack: by `metadata: { event_type: 'semel', event_payload: { semel: ctx.mark() } }` of the message.

import { createRequest, RequestError, type TokenAccess } from './request.ts';
import {
  type AsFound,
  type AsValue,
  earliest,
  type Found,
  type FromArgs,
  fromArgs,
  nextPage,
  type SearchOptions,
  search,
  type Verifier,
} from './search.ts';

export interface SlackMessage {
  readonly ts?: string;
  readonly text?: string;
  readonly metadata?: { readonly event_payload?: object };
}

interface SlackReply {
  readonly messages?: readonly SlackMessage[];
  readonly has_more?: boolean;
  readonly response_metadata?: { readonly next_cursor?: string };
}

interface WebClientLike {
  readonly conversations: {
    history(params: never): Promise<SlackReply>;
    replies(params: never): Promise<SlackReply>;
  };
}

type SlackOptions<Args> = ({ readonly client: WebClientLike } | TokenAccess) &
  SearchOptions & {
    /** The id of the channel, not its name. */
    readonly channel: FromArgs<Args, string>;
    /** The `ts` of the parent message, if it was sent into a thread: the channel's history does not show replies. */
    readonly thread?: (args: Args) => string | undefined;
  };

/**
 * Finds a message; `ctx.note(ts)`. Needs a `*:history` scope. Cannot see deleted messages, scheduled ones before their time,
 * ephemeral ones, nor what an incoming webhook sent. Apps outside the Marketplace get one request of 15 messages per minute.
 */
export function verifySlackMessage<Args, Value>(
  options: SlackOptions<Args> & AsValue<SlackMessage, Value>,
): Verifier<Args, Value>;
export function verifySlackMessage<Args>(options: SlackOptions<Args> & AsFound): Verifier<Args, Found>;
export function verifySlackMessage<Args>(options: SlackOptions<Args>): Verifier<Args, never> {
  return (args, ctx) => {
    const mark = ctx.mark(options.part);
    const { conversations } =
      options.client === undefined ? withToken(options as TokenAccess, ctx.signal) : options.client;
    const channel = fromArgs(options.channel, args);
    const thread = options.thread?.(args);
    const since = earliest(ctx);
    const ask = (params: object) => {
      const all = { channel, include_all_metadata: true, ...params };
      return thread === undefined
        ? conversations.history(all as never)
        : conversations.replies({ ts: thread, ...all } as never);
    };
    return search<SlackMessage, never>(
      {
        service: 'Slack',
        get: async (ts) => {
          const { messages = [] } = await ask({ oldest: ts, latest: ts, inclusive: true, limit: 2 });
          return messages.find((message) => message.ts === ts);
        },
        page: async (cursor) => {
          const {
            messages,
            response_metadata,
            has_more = false,
          } = await ask({
            limit: 200,
            ...(since === undefined ? {} : { oldest: String(since.getTime() / 1000) }),
            ...(cursor === undefined ? {} : { cursor }),
          });
          const { next_cursor = '' } = response_metadata ?? {};
          return { items: messages, next: nextPage(has_more || next_cursor !== '', next_cursor) };
        },
        isOurs: ({ metadata }) =>
          (metadata?.event_payload as { semel?: unknown } | undefined)?.semel === mark,
        idOf: ({ ts }) => String(ts),
        // Not documented.
        lag: '1m',
      },
      options,
      ctx,
    );
  };
}

function withToken({ token, baseUrl, fetch }: TokenAccess, signal: AbortSignal): WebClientLike {
  const headers = { authorization: `Bearer ${token}` };
  const request = createRequest({ baseUrl: baseUrl ?? 'https://slack.com/api', headers, fetch }, signal);
  const ask = (method: string) => async (query: Record<string, string>) => {
    const asked = request<SlackReply & { ok: boolean; error?: string }>(`/${method}`, { query });
    const { body, hide } = await asked;
    // Errors come with the status 200.
    if (!body.ok) throw new RequestError(body.error?.includes('auth') ? 401 : 400, hide(`${body.error}`));
    return body;
  };
  return {
    conversations: { history: ask('conversations.history'), replies: ask('conversations.replies') },
  };
}
