// Linear's GraphQL, Jira's search with page tokens, Notion's data sources.

import {
  verifyJiraIssue,
  verifyLinearComment,
  verifyLinearIssue,
  verifyNotionPage,
} from '../../../src/providers/verifiers/index.ts';
import { bearer, goodToken, notFound, post, type Shape, type Thing, type VerifierCase } from './stand-in.ts';

const json = (body: string) => JSON.parse(body || '{}') as Record<string, unknown>;

interface GraphRequest {
  readonly query: string;
  readonly variables: { readonly id: string; readonly input?: Record<string, unknown> };
}

function linear(list: 'issues' | 'comments'): Shape {
  const parsed = (body: string) => JSON.parse(body) as GraphRequest;
  return {
    isAllowed: (headers) => headers.authorization === goodToken,
    refused: { status: 401, body: { errors: [{ message: 'Authentication required, not authenticated' }] } },
    isCreate: ({ body }) => parsed(body).query.startsWith('mutation'),
    create: ({ body }, nth) => ({
      url: `https://linear.app/${nth}`,
      identifier: `ENG-${nth}`,
      ...parsed(body).variables.input,
    }),
    idOf: ({ id }) => String(id),
    created: (shown) => ({ body: { data: { issueCreate: { success: true, issue: shown } } } }),
    read({ body }, _, all) {
      const { query, variables } = parsed(body);
      if (!query.includes(`${list}(filter: { id: { eq: $id } }`))
        return { status: 400, body: { errors: [{ message: 'Syntax error' }] } };
      const nodes = all.filter(({ id }) => id === variables.id).map(({ shown }) => shown);
      return { body: { data: { [list]: { nodes } } } };
    },
  };
}

const pageOf = (things: readonly Thing[], from: unknown, size: number) => {
  const start = Number(from ?? 0);
  const hasMore = things.length > start + size;
  return {
    items: things.slice(start, start + size).map(({ shown }) => shown),
    next: hasMore ? String(start + size) : null,
  };
};

const jira: Shape = {
  isAllowed: (headers) =>
    headers.authorization === `Basic ${Buffer.from(`ann@example.com:${goodToken}`).toString('base64')}`,
  refused: { status: 401, body: { errorMessages: ['Client must be authenticated'] } },
  isCreate: ({ path, method }) => path === '/rest/api/3/issue' && method === 'POST',
  create: ({ body }, nth) => ({ id: String(10_000 + nth), key: `SHOP-${nth}`, ...json(body) }),
  idOf: ({ key }) => String(key),
  read({ path, body }, things, all) {
    if (path !== '/rest/api/3/search/jql') {
      const one = all.find(({ id }) => path === `/rest/api/3/issue/${id}`);
      return one === undefined ? notFound : { body: one.shown };
    }
    const { jql, maxResults, nextPageToken } = json(body);
    const [, label] = /^labels = "(.+)"$/.exec(String(jql)) ?? [];
    const found = things.filter(({ shown }) =>
      (shown.fields as { labels: string[] }).labels.includes(String(label)),
    );
    const { items, next } = pageOf(found, nextPageToken, Number(maxResults));
    return {
      body: { issues: items, isLast: next === null, ...(next === null ? {} : { nextPageToken: next }) },
    };
  },
};

interface NotionText {
  readonly rich_text: readonly { readonly plain_text: string }[];
}

function textOf(property: NotionText | undefined): string | undefined {
  return property?.rich_text.map(({ plain_text }) => plain_text).join('');
}

const notion: Shape = {
  isAllowed: (headers) => bearer(headers) && headers['notion-version'] === '2025-09-03',
  refused: { status: 401, body: { object: 'error', status: 401, message: 'API token is invalid.' } },
  isCreate: ({ path }) => path === '/v1/pages',
  create({ body }, nth) {
    const { properties } = json(body) as { properties: { semel: string } };
    // In two pieces, as a text with a style in it.
    const pieces = [properties.semel.slice(0, 3), properties.semel.slice(3)];
    const rich_text = pieces.map((plain_text) => ({ type: 'text', plain_text }));
    return {
      object: 'page',
      id: `be633bf1-${nth}`,
      properties: { Name: { type: 'title', title: [] }, semel: { type: 'rich_text', rich_text } },
    };
  },
  idOf: ({ id }) => String(id),
  read({ path, body }, things, all) {
    if (path !== '/v1/data_sources/ds-1/query') {
      const one = all.find(({ id }) => path === `/v1/pages/${id}`);
      return one === undefined ? notFound : { body: one.shown };
    }
    const { filter, start_cursor, page_size } = json(body) as {
      filter: { property: string; rich_text: { equals: string } };
      start_cursor?: string;
      page_size: number;
    };
    const found = things.filter(
      ({ shown }) =>
        textOf((shown.properties as Record<string, NotionText>)[filter.property]) === filter.rich_text.equals,
    );
    const { items, next } = pageOf(found, start_cursor, page_size);
    return { body: { object: 'list', results: items, has_more: next !== null, next_cursor: next } };
  },
};

const linearRequest = (_: string, __: unknown, key: string) =>
  post('/graphql', { query: 'mutation …', variables: { input: { id: key } } });

export const workCases: readonly VerifierCase[] = [
  {
    name: 'Linear issue',
    shape: linear('issues'),
    lagMs: 0,
    isPaged: false,
    request: linearRequest,
    verifier: ({ url }, { token = '' }) => verifyLinearIssue({ token, baseUrl: url }),
  },
  {
    name: 'Linear comment',
    shape: linear('comments'),
    lagMs: 0,
    isPaged: false,
    request: linearRequest,
    verifier: ({ url }, { token = '' }) => verifyLinearComment({ token, baseUrl: url }),
  },
  {
    name: 'Jira issue',
    shape: jira,
    lagMs: 600_000,
    isPaged: false,
    request: (mark) => post('/rest/api/3/issue', { fields: { summary: 'It', labels: [mark] } }),
    verifier: ({ url }, { token = '', ...more }) =>
      verifyJiraIssue({ site: url, email: 'ann@example.com', token, ...more }),
  },
  {
    name: 'Notion page',
    shape: notion,
    lagMs: 60_000,
    isPaged: false,
    request: (mark) => post('/v1/pages', { properties: { semel: mark } }),
    verifier: ({ url }, { token = '', ...more }) =>
      verifyNotionPage({ token, baseUrl: url, dataSource: 'ds-1', ...more }),
  },
];
