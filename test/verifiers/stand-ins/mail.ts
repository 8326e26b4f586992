// Three mail services: Resend lists without tags, Postmark filters by metadata, SendGrid by a query.

import {
  verifyPostmarkEmail,
  verifyResendEmail,
  verifySendGridEmail,
} from '../../../src/providers/verifiers/index.ts';
import { after, bearer, goodToken, notFound, post, type Shape, type VerifierCase } from './stand-in.ts';

const json = (body: string) => JSON.parse(body || '{}') as Record<string, unknown>;

const resend: Shape = {
  isAllowed: bearer,
  refused: { status: 401, body: { statusCode: 401, name: 'invalid_api_key', message: 'API key is invalid' } },
  isCreate: ({ method }) => method === 'POST',
  create: ({ body }, nth, at) => ({
    object: 'email',
    id: `4ef9a417-${nth}`,
    created_at: new Date(at).toISOString(),
    last_event: 'sent',
    ...json(body),
  }),
  idOf: ({ id }) => String(id),
  created: ({ id }) => ({ body: { id } }),
  read({ path, query }, things, all) {
    if (path !== '/emails') {
      const one = all.find(({ id }) => path === `/emails/${id}`);
      return one === undefined ? notFound : { body: one.shown };
    }
    const { page, hasMore } = after(things, query.get('after'), Number(query.get('limit') ?? 20));
    const withoutTags = page.map(({ tags, ...email }) => email);
    return { body: { object: 'list', has_more: hasMore, data: withoutTags } };
  },
};

const postmark: Shape = {
  isAllowed: (headers) => headers['x-postmark-server-token'] === goodToken,
  refused: { status: 401, body: { ErrorCode: 10, Message: 'Bad or missing Server API token.' } },
  isCreate: ({ method }) => method === 'POST',
  create: ({ body }, nth, at) => ({
    MessageID: `0ac29aee-${nth}`,
    ReceivedAt: new Date(at).toISOString(),
    Status: 'Sent',
    MessageStream: 'outbound',
    ...json(body),
  }),
  idOf: ({ MessageID }) => String(MessageID),
  read({ path, query }, things, all) {
    if (path !== '/messages/outbound') {
      const one = all.find(({ id }) => path === `/messages/outbound/${id}/details`);
      const missing = { status: 422, body: { ErrorCode: 701, Message: 'This message does not exist' } };
      return one === undefined ? missing : { body: one.shown };
    }
    if (query.get('count') === null || query.get('offset') === null)
      return { status: 422, body: { ErrorCode: 700, Message: 'count and offset are required' } };
    const found = things
      .map(({ shown }) => shown)
      .filter(({ Metadata }) => (Metadata as { semel?: string }).semel === query.get('metadata_semel'))
      .filter(({ MessageStream }) => MessageStream === (query.get('messagestream') ?? 'outbound'));
    return { body: { TotalCount: found.length, Messages: found.slice(0, Number(query.get('count'))) } };
  },
};

const sendGrid: Shape = {
  isAllowed: bearer,
  refused: { status: 403, body: { errors: [{ message: 'access forbidden' }] } },
  isCreate: ({ method }) => method === 'POST',
  create: ({ body }, nth) => ({
    msg_id: `X-${nth}.filter0307p1las1-16816-5A023E36-1.0`,
    status: 'delivered',
    args: json(body).custom_args,
  }),
  idOf: ({ msg_id }) => String(msg_id).split('.')[0] as string,
  created: () => ({ status: 202, body: {} }),
  read({ path, query }, things, all) {
    if (path !== '/v3/messages') return notFound;
    const asked = query.get('query') ?? '';
    const [, mark] = /^unique_args\['semel'\]="(.+)"$/.exec(asked) ?? [];
    const [, id] = /^msg_id LIKE '(.+)%'$/.exec(asked) ?? [];
    const found =
      mark === undefined
        ? all.filter(({ shown }) => String(shown.msg_id).startsWith(`${id}`))
        : things.filter(({ shown }) => (shown.args as { semel?: string }).semel === mark);
    // One message for each recipient, under the same beginning of its id.
    const messages = found.flatMap(({ shown: { args, ...shown } }) => [
      shown,
      { ...shown, msg_id: `${shown.msg_id}1` },
    ]);
    return { body: { messages } };
  },
};

const to = 'ann@example.com';

export const mailCases: readonly VerifierCase[] = [
  {
    name: 'Resend email',
    shape: resend,
    lagMs: 60_000,
    isPaged: true,
    request: (mark) => post('/emails', { to: [to], tags: [{ name: 'semel', value: mark }] }),
    verifier: ({ url }, { token = '', ...more }) =>
      verifyResendEmail({ token, baseUrl: url, to: () => to, ...more }),
  },
  {
    name: 'Postmark email',
    shape: postmark,
    lagMs: 300_000,
    isPaged: false,
    request: (mark) => post('/email', { To: to, Metadata: { semel: mark } }),
    verifier: ({ url }, { token = '', ...more }) => verifyPostmarkEmail({ token, baseUrl: url, ...more }),
  },
  {
    name: 'SendGrid email',
    shape: sendGrid,
    lagMs: 1_800_000,
    isPaged: false,
    request: (mark) => post('/v3/mail/send', { custom_args: { semel: mark } }),
    verifier: ({ url }, { token = '', ...more }) => verifySendGridEmail({ token, baseUrl: url, ...more }),
  },
];
