// Slack's history: cursors, timestamps as ids, metadata only if asked for, errors with the status 200.

import { verifySlackMessage } from '../../../src/providers/verifiers/index.ts';
import { bearer, post, type Shape, type VerifierCase } from './stand-in.ts';

function shape(method: string): Shape {
  return {
    isAllowed: bearer,
    refused: { body: { ok: false, error: 'invalid_auth' } },
    limited: { status: 429, headers: { 'retry-after': '17' }, body: { ok: false, error: 'ratelimited' } },
    isCreate: ({ path }) => path === '/chat.postMessage',
    create: ({ body }, nth, at) => ({
      type: 'message',
      ts: `${Math.floor(at / 1000)}.${String(nth).padStart(6, '0')}`,
      ...(JSON.parse(body || '{}') as object),
    }),
    idOf: ({ ts }) => String(ts),
    created: (shown) => ({ body: { ok: true, ts: shown.ts } }),
    read({ path, query }, things, all) {
      if (path !== `/${method}`) return { body: { ok: false, error: 'unknown_method' } };
      const oldest = query.get('oldest') ?? '0';
      const latest = query.get('latest') ?? '9999999999';
      const isOne = query.get('inclusive') === 'true';
      const listed = (isOne ? all : things)
        .filter(({ id }) => (isOne ? id >= oldest && id <= latest : id > oldest && id < latest))
        .map(({ shown: { metadata, ...shown } }) =>
          query.get('include_all_metadata') === 'true' ? { ...shown, metadata } : shown,
        )
        .reverse();
      const start = Number(query.get('cursor') ?? 0);
      const end = start + Number(query.get('limit') ?? 100);
      const more = end < listed.length;
      return {
        body: {
          ok: true,
          messages: listed.slice(start, end),
          has_more: more,
          response_metadata: { next_cursor: more ? String(end) : '' },
        },
      };
    },
  };
}

const common = { lagMs: 60_000, isPaged: true } as const;
const message = (mark: string) => ({
  channel: 'C1',
  text: 'It is done.',
  metadata: { event_type: 'semel', event_payload: { semel: mark } },
});

export const slackCases: readonly VerifierCase[] = [
  {
    ...common,
    name: 'Slack message',
    shape: shape('conversations.history'),
    request: (mark) => post('/chat.postMessage', message(mark)),
    verifier: ({ url }, { token = '', ...more }) =>
      verifySlackMessage({ token, baseUrl: url, channel: 'C1', ...more }),
  },
  {
    ...common,
    name: 'Slack reply in a thread',
    shape: shape('conversations.replies'),
    request: (mark) => post('/chat.postMessage', { ...message(mark), thread_ts: '1.0' }),
    verifier: ({ url }, { token = '', ...more }) =>
      verifySlackMessage({ token, baseUrl: url, channel: () => 'C1', thread: () => '1.0', ...more }),
  },
];
