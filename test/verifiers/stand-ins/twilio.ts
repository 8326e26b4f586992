// Twilio's messages: form-encoded in, pages by `next_page_uri`, dates as in mails.

import { verifyTwilioMessage } from '../../../src/providers/verifiers/index.ts';
import { goodToken, notFound, type Order, type Shape, type VerifierCase } from './stand-in.ts';

const path = '/2010-04-01/Accounts/AC1/Messages';

const twilio: Shape = {
  isAllowed: (headers) =>
    headers.authorization === `Basic ${Buffer.from(`AC1:${goodToken}`).toString('base64')}`,
  refused: { status: 401, body: { code: 20003, message: 'Authenticate', status: 401 } },
  isCreate: ({ method }) => method === 'POST',
  create: ({ body }, nth, at) => {
    const form = new URLSearchParams(body);
    return {
      sid: `SM${nth}`,
      to: form.get('To'),
      body: form.get('Body'),
      status: 'queued',
      direction: 'outbound-api',
      date_created: new Date(at).toUTCString(),
      date_sent: null,
    };
  },
  idOf: ({ sid }) => String(sid),
  read(asked, things, all) {
    if (asked.path !== `${path}.json`) {
      const one = all.find(({ id }) => asked.path === `${path}/${id}.json`);
      return one === undefined ? notFound : { body: one.shown };
    }
    const found = things.map(({ shown }) => shown).filter(({ to }) => to === asked.query.get('To'));
    const size = Number(asked.query.get('PageSize') ?? 50);
    const page = Number(asked.query.get('Page') ?? 0);
    const next = new URLSearchParams(asked.query);
    next.set('Page', String(page + 1));
    const hasMore = found.length > (page + 1) * size;
    return {
      body: {
        messages: found.reverse().slice(page * size, (page + 1) * size),
        next_page_uri: hasMore ? `${path}.json?${next}` : null,
      },
    };
  },
};

const text = (mark: string, { order }: Order) => `Order ${order} is on its way. ${mark}`;

/** Others get other texts, to other numbers: to the same one, Twilio may have rewritten ours. */
export const twilioCases: readonly VerifierCase[] = [
  {
    name: 'Twilio message',
    shape: twilio,
    lagMs: 60_000,
    isPaged: false,
    request: (mark, order) => ({
      path: `${path}.json`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: String(
        new URLSearchParams({
          To: /^semel-0{10}/.test(mark) ? '+15550002' : '+15550001',
          Body: text(mark, order),
        }),
      ),
    }),
    verifier: ({ url }, { token = '', ...more }) =>
      verifyTwilioMessage({
        accountSid: 'AC1',
        token,
        baseUrl: url,
        message: (order: Order, mark) => ({ to: '+15550001', text: text(mark, order) }),
        ...more,
      }),
  },
];
