// What every verifier must do, against a stand-in of its service: close a doubt without a person, and never say "not landed"
// of what it may only not have seen.

import type { VerifyContext } from 'semel';
import { describe, expect, test } from 'vitest';
import { type Rig, rig } from '../library/support.ts';
import { cases } from './cases.ts';
import {
  goodToken,
  type Order,
  retryAfterSeconds,
  type StandIn,
  send,
  startStandIn,
  type VerifierCase,
} from './stand-ins/stand-in.ts';

const quietMs = 61_000;
const order: Order = { order: 7 };
const contract = { name: 'order.tell', effect: 'irreversible', per: 'ever' } as const;

interface Stage {
  readonly made: Rig;
  readonly at: StandIn;
  /** Sends in a process that ends with the doubt, and has no verifier. */
  doubt(): Promise<void>;
  /** Another process, which verifies. */
  verifying(terms?: { token?: string; maxPages?: number }): {
    sweep(): ReturnType<Rig['semel']['doubts']['sweep']>;
    call(): Promise<unknown>;
    /** Why the sweep left it in doubt. */
    because(): string;
  };
}

async function stage(each: VerifierCase): Promise<Stage> {
  const made = rig();
  const at = await startStandIn(each.shape, made.clock.now);
  const run = async (args: Order, ctx: { mark(): string; key: string }) => {
    await send(at, each, ctx.mark(), args, ctx.key);
    return { id: String(at.things.at(-1)?.id) };
  };
  return {
    made,
    at,
    async doubt() {
      const tool = made.semel.tool({ ...contract, run });
      expect(await tool.try(order)).toMatchObject({ ok: false, error: { code: 'IN_DOUBT' } });
    },
    verifying({ token = goodToken, ...more } = {}) {
      const semel = made.another();
      const reasons: string[] = [];
      const tool = semel.tool({ ...contract, run, verify: each.verifier(at, { token, ...more }) });
      return {
        sweep: () => semel.doubts.sweep({ onOpen: ({ error }) => reasons.push(error?.message ?? '') }),
        call: () => tool(order),
        because: () => reasons.at(-1) ?? '',
      };
    },
  };
}

/** Adds what others created at the same time: the same requests under other marks. */
function addOthers({ at }: Stage, each: VerifierCase, count: number): void {
  for (let nth = 0; nth < count; nth += 1) {
    const [mark, key] = [`semel-${String(nth).padStart(20, '0')}`, `key-${nth}`];
    at.add(each.request(mark, order, key));
  }
}

const landedOne = { landed: 1, notLanded: 0, open: 0 };
const openOne = { landed: 0, notLanded: 0, open: 1 };
const paged = cases.filter(({ isPaged }) => isPaged);
const lagging = cases.filter(({ lagMs }) => lagMs > 0);

describe.each(cases)('$name', (each) => {
  test('a lost reply: the sweep finds it, and nothing is sent again', async () => {
    const s = await stage(each);
    addOthers(s, each, 3);
    s.at.lose();
    await s.doubt();
    const ours = s.at.things.at(-1)?.id;
    addOthers(s, each, 3);
    const { sweep, call } = s.verifying();
    expect(await sweep()).toEqual(landedOne);
    expect(await call()).toEqual({ id: ours });
    expect(s.at.things).toHaveLength(7);
    const [record] = (await s.made.semel.records.list({})).items;
    expect(record).toMatchObject({ status: 'succeeded', remoteRef: ours });
  });

  test('nothing was sent: once nothing can be on its way, it is run again, exactly once', async () => {
    const s = await stage(each);
    s.at.drop();
    await s.doubt();
    addOthers(s, each, 3);
    const { sweep, call } = s.verifying();
    expect(await sweep()).toEqual(openOne);
    await s.made.clock.advance(quietMs + each.lagMs);
    expect(await sweep()).toEqual(landedOne);
    expect(await sweep()).toEqual({ landed: 0, notLanded: 0, open: 0 });
    expect(s.at.things).toHaveLength(4);
    expect(await call()).toEqual({ id: s.at.things.at(-1)?.id });
    expect(s.at.things).toHaveLength(4);
  });

  test('several of it: ambiguous, by name, and nothing is run', async () => {
    const s = await stage(each);
    s.at.lose();
    await s.doubt();
    const [first] = s.at.things;
    // As the service would have made it from the same request.
    const { mark, key } = await marked(s);
    const second = s.at.add(each.request(mark, order, key));
    if (second.id === first?.id) return; // An id that the client chose exists once.
    await s.made.clock.advance(quietMs + each.lagMs);
    const { sweep, because } = s.verifying();
    expect(await sweep()).toEqual(openOne);
    const reason = because();
    expect(reason).toMatch(/ambiguous/);
    for (const thing of s.at.things) expect(reason).toContain(thing.id);
    expect(s.at.things).toHaveLength(2);
  });

  test('a rate limit: unsure, and it says when to ask again', async () => {
    const s = await stage(each);
    s.at.drop();
    await s.doubt();
    await s.made.clock.advance(quietMs + each.lagMs);
    const limited = each.shape.limited ?? {
      status: 429,
      headers: { 'retry-after': String(retryAfterSeconds) },
      body: { message: 'Too many requests' },
    };
    s.at.answer(limited);
    const { sweep, because } = s.verifying();
    expect(await sweep()).toEqual(openOne);
    expect(because()).toMatch(new RegExp(`limits the rate.*in ${retryAfterSeconds} s`));
    expect(s.at.things).toEqual([]);
  });

  test('wrong credentials: unsure, and it says so', async () => {
    const s = await stage(each);
    s.at.drop();
    await s.doubt();
    await s.made.clock.advance(quietMs + each.lagMs);
    const { sweep, because } = s.verifying({ token: 'wrong' });
    expect(await sweep()).toEqual(openOne);
    expect(because()).toMatch(/answered 40[13] \(.*check what the verifier may read/);
    expect(s.at.things).toEqual([]);
  });

  test.each([
    ['a server error', { status: 500, body: { message: 'oops' } }, /answered 500 \(.*oops/],
    [
      'a list that is not found, as without permission',
      { status: 404, body: { message: 'gone' } },
      /answered 404/,
    ],
    ['a body of another shape', { body: 'maintenance' }, /./],
  ])('%s: unsure', async (_, reply, because) => {
    const s = await stage(each);
    s.at.drop();
    await s.doubt();
    await s.made.clock.advance(quietMs + each.lagMs);
    s.at.answer(reply);
    const verifying = s.verifying();
    expect(await verifying.sweep()).toEqual(openOne);
    expect(verifying.because()).toMatch(because);
    expect(s.at.things).toEqual([]);
  });

  test('an id that the effect noted is looked up first, and trusted', async () => {
    const s = await stage(each);
    const { id } = s.at.add(each.request('semel-of-nobody', order, 'k'));
    const verdict = await each.verifier(s.at, { token: goodToken })(order, context({ remoteRef: id }));
    expect(verdict).toEqual({ verdict: 'landed', value: { id }, remoteRef: id });
    expect(s.at.reads).toHaveLength(1);
  });

  test('a noted id that is gone: unsure, because something landed once', async () => {
    const s = await stage(each);
    const { id } = s.at.add(each.request('semel-of-nobody', order, 'k'));
    s.at.things.length = 0;
    const verdict = await each.verifier(s.at, { token: goodToken })(order, context({ remoteRef: id }));
    expect(verdict).toMatchObject({ verdict: 'unsure', because: expect.stringContaining(id) });
  });
});

test.each(paged)('$name: what is far down the list is found, up to the bound', async (each) => {
  const s = await stage(each);
  addOthers(s, each, 260);
  s.at.lose();
  await s.doubt();
  addOthers(s, each, 260);
  await s.made.clock.advance(quietMs + each.lagMs);
  const { sweep, because } = s.verifying({ maxPages: 1 });
  expect(await sweep()).toEqual(openOne);
  expect(because()).toMatch(/has more pages than the verifier reads/);
  expect(await s.verifying().sweep()).toEqual(landedOne);
  expect(s.at.things).toHaveLength(521);
});

test.each(lagging)('$name: what the list does not show yet does not count as missing', async (each) => {
  const s = await stage(each);
  s.at.lagMs = quietMs + each.lagMs - 1_000;
  s.at.lose();
  await s.doubt();
  const { sweep, because } = s.verifying();
  expect(await sweep()).toEqual(openOne);
  await s.made.clock.advance(quietMs);
  expect(await sweep()).toEqual(openOne);
  expect(because()).toMatch(/what it looked at may be/);
  await s.made.clock.advance(each.lagMs);
  expect(await sweep()).toEqual(landedOne);
  expect(s.at.things).toHaveLength(1);
});

/** Mark and key of the record in doubt, as a verifier is told. */
async function marked({ made }: Stage): Promise<{ mark: string; key: string }> {
  const semel = made.another();
  const told = Promise.withResolvers<{ mark: string; key: string }>();
  semel.tool({
    ...contract,
    run: () => expect.fail('it ran'),
    verify: (_: Order, ctx) => {
      told.resolve({ mark: ctx.mark(), key: ctx.key });
      throw new Error('only asked');
    },
  });
  await semel.doubts.sweep();
  return told.promise;
}

function context(more: Partial<VerifyContext>): VerifyContext {
  return {
    key: 'own-key',
    keyFor: (part) => `k-${part}`,
    mark: () => 'semel-mark',
    remoteRef: undefined,
    firstDispatchedAt: undefined,
    lastDispatchedAt: undefined,
    attempts: 1,
    signal: new AbortController().signal,
    ...more,
  };
}
