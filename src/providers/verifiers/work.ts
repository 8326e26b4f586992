// Where work is tracked: Linear by an id that the tool chooses, Jira by a label, Notion by a property.

import { type Asking, createRequest, type Request, RequestError, type TokenAccess } from './request.ts';
import {
  type AsFound,
  type AsValue,
  type Found,
  type FromArgs,
  fromArgs,
  nextPage,
  type SearchOptions,
  search,
  type Verifier,
} from './search.ts';

export interface LinearItem {
  readonly id: string;
  readonly url: string;
  /** An issue's name: `ENG-12`. */
  readonly identifier?: string;
}

interface LinearLike {
  readonly client: {
    rawRequest(query: string, variables: never): Promise<{ readonly data?: unknown }>;
  };
}

type LinearOptions = ({ readonly client: LinearLike } | TokenAccess) & Pick<SearchOptions, 'part'>;

/** Finds an issue that was created with `id: ctx.key`. Cannot see one that was deleted for good. */
export function verifyLinearIssue<Value>(
  options: LinearOptions & AsValue<LinearItem, Value>,
): Verifier<unknown, Value>;
export function verifyLinearIssue(options: LinearOptions & AsFound): Verifier<unknown, Found>;
export function verifyLinearIssue(options: LinearOptions): Verifier<unknown, never> {
  return verifyLinear('issues', 'id url identifier', options);
}

/** Finds a comment that was created with `id: ctx.key`. Cannot see one that was deleted for good. */
export function verifyLinearComment<Value>(
  options: LinearOptions & AsValue<LinearItem, Value>,
): Verifier<unknown, Value>;
export function verifyLinearComment(options: LinearOptions & AsFound): Verifier<unknown, Found>;
export function verifyLinearComment(options: LinearOptions): Verifier<unknown, never> {
  return verifyLinear('comments', 'id url', options);
}

function verifyLinear(
  list: 'issues' | 'comments',
  fields: string,
  options: LinearOptions,
): Verifier<unknown, never> {
  // A list with a filter: a single object that is missing is an error there, which looks like any other.
  const query = `query($id: ID!) { ${list}(filter: { id: { eq: $id } }, includeArchived: true) { nodes { ${fields} } } }`;
  return (_, ctx) => {
    const key = options.part === undefined ? ctx.key : ctx.keyFor(options.part);
    const { client } =
      options.client === undefined ? linearWithToken(options as TokenAccess, ctx.signal) : options.client;
    const ask = async (id: string) => {
      const { data } = await client.rawRequest(query, { id } as never);
      return (data as Partial<Record<string, { nodes?: readonly LinearItem[] }>>)[list]?.nodes;
    };
    return search<LinearItem, never>(
      {
        service: 'Linear',
        get: async (id) => (id === key ? undefined : (await ask(id))?.[0]),
        page: async () => ({ items: await ask(key), next: undefined }),
        isFiltered: true,
        isOurs: ({ id }) => id === key,
        idOf: ({ id }) => id,
        // By id, it is read from where it was written.
        lag: 0,
      },
      options,
      // A tool may note the id that it chose before it sends: that proves nothing.
      ctx.remoteRef === key ? { ...ctx, remoteRef: undefined } : ctx,
    );
  };
}

function linearWithToken({ token, baseUrl, fetch }: TokenAccess, signal: AbortSignal): LinearLike {
  const headers = { authorization: token };
  const request = createRequest({ baseUrl: baseUrl ?? 'https://api.linear.app', headers, fetch }, signal);
  return {
    client: {
      async rawRequest(query, variables) {
        const { body, hide } = await request<GraphReply>('/graphql', { body: { query, variables } });
        const [error] = body.errors ?? [];
        if (error !== undefined) throw new RequestError(400, hide(`${error.message}`));
        return body;
      },
    },
  };
}

interface GraphReply {
  readonly data?: unknown;
  readonly errors?: readonly { readonly message: string }[];
}

export interface JiraIssue {
  readonly id: string;
  readonly key: string;
  readonly fields?: Readonly<Record<string, unknown>>;
}

interface JiraOptions extends SearchOptions {
  /** `'https://your-site.atlassian.net'` */
  readonly site: string;
  /** The account of the API token; without it, the token is sent as a bearer token. */
  readonly email?: string;
  readonly token: string;
  readonly fetch?: typeof globalThis.fetch;
}

/**
 * Finds an issue by the label `ctx.mark()`; `ctx.note(key)`. Jira's search lags for seconds to minutes, so "not landed" waits
 * ten minutes longer. Cannot see an issue that was deleted or lost its label, nor one in a project that it may not browse.
 */
export function verifyJiraIssue<Value>(
  options: JiraOptions & AsValue<JiraIssue, Value>,
): Verifier<unknown, Value>;
export function verifyJiraIssue(options: JiraOptions & AsFound): Verifier<unknown, Found>;
export function verifyJiraIssue(options: JiraOptions): Verifier<unknown, never> {
  const { site, email, token, fetch } = options;
  const authorization =
    email === undefined ? `Bearer ${token}` : `Basic ${Buffer.from(`${email}:${token}`).toString('base64')}`;
  return (_, ctx) => {
    const mark = ctx.mark(options.part);
    const ask = createRequest({ baseUrl: site, headers: { authorization }, fetch }, ctx.signal);
    const request: Request = async <Body>(path: string, asking?: Asking) => {
      const reply = await ask<Body>(path, asking);
      // With a token that expired, Jira answers 200 with what anybody may see: mostly nothing.
      const login = reply.headers.get('x-seraph-loginreason') ?? 'OK';
      if (login !== 'OK') throw new RequestError(401, login);
      return reply;
    };
    return search<JiraIssue, never>(
      {
        service: 'Jira',
        get: async (key) => (await request<JiraIssue>(`/rest/api/3/issue/${encodeURIComponent(key)}`)).body,
        page: async (cursor) => {
          const { body } = await request<{ issues?: JiraIssue[]; nextPageToken?: string | null }>(
            '/rest/api/3/search/jql',
            {
              body: {
                jql: `labels = "${mark}"`,
                maxResults: 50,
                fields: ['labels', 'summary'],
                ...(cursor === undefined ? {} : { nextPageToken: cursor }),
              },
            },
          );
          return { items: body.issues, next: body.nextPageToken ?? undefined };
        },
        // Also if the index still has a label that the issue has lost.
        isFiltered: true,
        isOurs: ({ fields }) => (fields?.labels as readonly string[] | undefined)?.includes(mark) === true,
        idOf: ({ key }) => key,
        lag: '10m',
      },
      options,
      ctx,
    );
  };
}

export interface NotionPage {
  readonly id: string;
  readonly url?: string;
  readonly properties?: Readonly<Record<string, unknown>>;
}

interface NotionLike {
  readonly dataSources: {
    query(params: never): Promise<{
      readonly results: readonly NotionPage[];
      readonly has_more: boolean;
      readonly next_cursor: string | null;
    }>;
  };
  readonly pages: { retrieve(params: never): Promise<NotionPage> };
}

type NotionOptions<Args> = ({ readonly client: NotionLike } | TokenAccess) &
  SearchOptions & {
    /** The id of the data source that the page was created in. */
    readonly dataSource: FromArgs<Args, string>;
    /** The text property that holds the mark. @default 'semel' */
    readonly property?: string;
  };

/**
 * Finds a page by a text property with `ctx.mark()`; `ctx.note(id)`. Cannot see a page in the trash, one whose property was
 * changed, nor one that is not shared with the integration.
 */
export function verifyNotionPage<Args, Value>(
  options: NotionOptions<Args> & AsValue<NotionPage, Value>,
): Verifier<Args, Value>;
export function verifyNotionPage<Args>(options: NotionOptions<Args> & AsFound): Verifier<Args, Found>;
export function verifyNotionPage<Args>(options: NotionOptions<Args>): Verifier<Args, never> {
  return (args, ctx) => {
    const { property = 'semel' } = options;
    const mark = ctx.mark(options.part);
    const client =
      options.client === undefined ? notionWithToken(options as TokenAccess, ctx.signal) : options.client;
    return search<NotionPage, never>(
      {
        service: 'Notion',
        get: (id) => client.pages.retrieve({ page_id: id } as never),
        page: async (cursor) => {
          const { results, has_more, next_cursor } = await client.dataSources.query({
            data_source_id: fromArgs(options.dataSource, args),
            filter: { property, rich_text: { equals: mark } },
            page_size: 100,
            ...(cursor === undefined ? {} : { start_cursor: cursor }),
          } as never);
          return { items: results, next: nextPage(has_more, next_cursor) };
        },
        // A service that ignores the filter must not pass for one that found it.
        isFiltered: true,
        isOurs: ({ properties = {} }) =>
          Object.values(properties).some((each) => readNotionText(each) === mark),
        idOf: ({ id }) => id,
        // Not documented.
        lag: '1m',
      },
      options,
      ctx,
    );
  };
}

/** The text of a property, which may be in several pieces. */
function readNotionText(property: unknown): string | undefined {
  const pieces = (property as { rich_text?: unknown } | null)?.rich_text;
  if (!Array.isArray(pieces)) return undefined;
  return pieces.map((piece: { plain_text?: unknown } | null) => piece?.plain_text).join('');
}

function notionWithToken({ token, baseUrl, fetch }: TokenAccess, signal: AbortSignal): NotionLike {
  const headers = { authorization: `Bearer ${token}`, 'notion-version': '2025-09-03' };
  const request = createRequest({ baseUrl: baseUrl ?? 'https://api.notion.com', headers, fetch }, signal);
  return {
    dataSources: {
      async query({ data_source_id, ...body }: Record<string, unknown>) {
        const path = `/v1/data_sources/${encodeURIComponent(String(data_source_id))}/query`;
        return (await request<Awaited<ReturnType<NotionLike['dataSources']['query']>>>(path, { body })).body;
      },
    },
    pages: {
      async retrieve({ page_id }: { page_id: string }) {
        return (await request<NotionPage>(`/v1/pages/${encodeURIComponent(page_id)}`)).body;
      },
    },
  };
}
