// What a run sends, by which way: an SDK of its own that semel never sees, or `ctx.fetch`, with SDKs on top of it that
// make keys up and send again by themselves. The network below `ctx.fetch` is the simulated world.

import type { AttemptContext } from '../../src/call/index.ts';
import type { Contract } from '../../src/core/contract/contract.ts';
import { isRepeatable } from '../../src/core/contract/words.ts';
import { markText } from '../../src/core/key/key.ts';
import { MaybeLanded, NotLanded, PartialSuccess, Rejected } from '../../src/core/signals.ts';
import type { Chance } from './chance.ts';
import type { Plan } from './contracts.ts';
import { meaningOf, readMeaning } from './fields.ts';
import type { Attempt, CallLog } from './log.ts';
import { passNotes } from './notes.ts';
import type { Sim } from './sim.ts';
import { namespace } from './store-host.ts';
import { host, type Part } from './targets.ts';
import { identityOf } from './wishes.ts';
import type { Worker } from './worker.ts';
import type { Answer } from './world.ts';

/** What an effect returns: enough to tell which one it was. */
export interface Value {
  readonly effect: number;
}

/** One run of a tool. */
export interface Run {
  readonly sim: Sim;
  readonly plan: Plan;
  readonly contract: Contract;
  readonly worker: Worker;
  readonly call: CallLog;
  readonly args: unknown;
  readonly ctx: Pick<AttemptContext, 'key' | 'keyFor' | 'fetch' | 'fence' | 'signal' | 'step'>;
  readonly prepared: unknown;
  /** Nothing else ends it. */
  readonly mustAnswer?: boolean;
  /** Something of it is out. */
  hasSent: boolean;
}

/** All parts in their order; throws as real clients do, and never says more than the tool can know. */
export async function sendAll(run: Run): Promise<Value> {
  const { plan, sim } = run;
  if (plan.steps.length > 0) return sim.takeSteps(run);
  let isOpen = false;
  let value: Value | undefined;
  for (const [nth, part] of plan.parts.entries()) {
    if (plan.polite) run.ctx.signal.throwIfAborted();
    const answer = part.way === 'sdk' ? await bySdk(run, nth, part) : await byFetch(run, nth, part);
    if (answer.kind === 'landed') value = { effect: answer.effect };
    else if (!part.optional)
      throw part.way === 'sdk' ? sdkError(run, answer, isOpen) : httpError(run, answer);
    isOpen ||= answer.kind === 'landed' || answer.kind === 'ambiguous';
  }
  const { faults } = sim;
  if (faults.strike('effect landed, then another call failed', 0.05 * (1 + 2 * faults.profile.effect)))
    // Who says that there is one request has no other that could fail so.
    throw plan.isOneRequest ? new TypeError('a mistake after it landed') : noConnection();
  return value as Value;
}

/** Of a key that semel cannot see and that no re-run has. */
export const ownKeyMark = 'own-';

function bySdk(run: Run, nth: number, { madeUpKey }: Part): Promise<Answer> {
  const { plan, contract, ctx, sim } = run;
  if (madeUpKey) return send(run, nth, `${ownKeyMark}${sim.chance.below(0xffffffff)}`);
  const { provider } = contract;
  const isKeyed = provider !== undefined && provider.sentBy !== 'nobody';
  const key = plan.parts.length === 1 ? ctx.key : ctx.keyFor(`part ${nth}`);
  return send(run, nth, isKeyed ? key : undefined);
}

/** A request that is out, by its address: what `fetch` gets of a run is the request alone. */
export interface OnTheWire {
  readonly run: Run;
  readonly part: number;
}

async function byFetch(run: Run, nth: number, part: Part): Promise<Answer> {
  const { sim, contract, call, ctx, args, worker } = run;
  const { chance, scheduler, onTheWire } = sim;
  const header = contract.provider?.header ?? 'Idempotency-Key';
  const url = `https://${host}/${call.id}/${ctx.fence}/${nth}`;
  onTheWire.set(url, { run, part: nth });
  const init: RequestInit = {
    method: 'POST',
    body: JSON.stringify({ args, nth }),
    headers: part.madeUpKey ? { [header]: `sdk-${chance.below(0xffffffff)}` } : {},
  };
  let isOpen = false;
  for (let tries = part.retries ? 2 : 1; ; tries -= 1) {
    const answer = await fetched(run, url, init);
    const mayPass = answer.kind === 'ambiguous' || answer.kind === 'denied';
    // What may have landed before is not undone by what a later one is told.
    if (answer.kind === 'landed' || !isOpen) isOpen = answer.kind === 'ambiguous';
    if (tries === 1 || !mayPass) return isOpen ? { kind: 'ambiguous' } : answer;
    await scheduler.pause(chance.between(50, 1_000), worker, 'an SDK sends it again');
  }
}

async function fetched({ ctx }: Run, url: string, init: RequestInit): Promise<Answer> {
  try {
    const response = await ctx.fetch(url, init);
    if (response.ok) return { kind: 'landed', effect: Number(response.headers.get('x-effect')) };
    if (response.status >= 500 || [408, 409, 425, 499].includes(response.status))
      return { kind: 'ambiguous' };
    return { kind: [401, 403, 407, 429].includes(response.status) ? 'denied' : 'refused' };
  } catch (error) {
    // Only what the network says may be ignored or tried again by an SDK.
    if (!(error instanceof TypeError)) throw error;
    return { kind: (error.cause as { syscall?: string })?.syscall === 'connect' ? 'not sent' : 'ambiguous' };
  }
}

/** In place of the global `fetch` while a history is played. */
export function simulatedFetch(sim: Sim): typeof fetch {
  return async (input, init) => {
    const request = input as Request;
    const { chance } = sim;
    const found = sim.onTheWire.get(request.url.replace(/\?.*$/, ''));
    if (found === undefined) throw new Error(`Nobody knows ${request.url}.`);
    const { run, part } = found;
    const key = await keyOf(run.contract, request);
    const answer = await Promise.race([send(run, part, key), untilAborted(init?.signal)]);
    switch (answer.kind) {
      case 'landed':
        return new Response(null, { status: 201, headers: { 'x-effect': String(answer.effect) } });
      case 'refused':
        return new Response(null, { status: chance.pick([400, 404, 422]) });
      case 'denied':
        return new Response(null, { status: chance.pick([401, 403, 407, 429]) });
      case 'not sent':
        throw networkError('ECONNREFUSED', 'connect');
      case 'ambiguous':
        if (chance.happens(0.5)) throw networkError('ECONNRESET', 'read');
        return new Response(null, { status: chance.pick([408, 409, 425, 500, 503]) });
    }
  };
}

async function keyOf({ provider }: Contract, request: Request): Promise<string | undefined> {
  if (provider?.bodyField !== undefined)
    return (JSON.parse(await request.text()) as Record<string, string>)[provider.bodyField];
  if (provider?.queryField !== undefined)
    return new URL(request.url).searchParams.get(provider.queryField) ?? undefined;
  return request.headers.get(provider?.header ?? 'Idempotency-Key') ?? undefined;
}

function networkError(code: string, syscall: string): TypeError {
  return new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code, syscall }) });
}

export function untilAborted(signal: AbortSignal | null | undefined): Promise<never> {
  return new Promise((_, reject) => {
    if (signal?.aborted) reject(signal.reason as Error);
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

/** One request leaves. */
function send(run: Run, part: number, key: string | undefined): Promise<Answer> {
  const { sim, plan, contract, worker, call, args, ctx, prepared } = run;
  const { world, log } = sim;
  const attempt = log.attemptOf(call, ctx.fence);
  const generation = attempt?.generation ?? 0;
  const { home } = call;
  const sends = (sender: CallLog, fence: number) => {
    sender.sent.push(fence);
    sender.sentAt = sim.scheduler.now;
  };
  sends(call, ctx.fence);
  if (home !== undefined) sends(home.call, home.fence);
  sendsItsOwn(run);
  if (attempt !== undefined) maySend(run, attempt);
  run.hasSent = true;
  if (call.waitsFor !== undefined && generation > call.waitsFor)
    log.violated(
      'a waiter never runs a newer generation',
      `${call.id} waited for g${call.waitsFor}, runs g${generation}`,
    );
  const intent = identityOf(call.scope, meaningOf(readMeaning(args), plan.identity));
  return world.send(worker, {
    target: plan.target,
    // Without a claim it belongs to no record but its own.
    key: attempt?.key ?? call.keys[0] ?? call.key,
    generation,
    fence: ctx.fence,
    part,
    caller: call.asked.caller,
    identity: home === undefined ? intent : call.identity,
    of: home && { ...home, identity: intent },
    body: JSON.stringify([args, prepared ?? null, part]),
    providerKey: key,
    note: noteIn(args),
    contract,
    mayBeReworded: () =>
      mayBeReworded(run, [attempt?.key ?? call.key, ...(home === undefined ? [] : [home.key])]),
    bound: contract.inFlightForMs,
    mustAnswer: run.mustAnswer === true || !Number.isFinite(contract.timeoutMs),
    call: call.id,
  });
}

export const noteIn = (args: unknown) => (args as { note?: string }).note;

/** A repeatable write is made as it was asked for; and whatever was prepared, was prepared from these args. */
export function sendsItsOwn({ sim: { log }, contract, call, args, prepared }: Run): void {
  if (isRepeatable(contract.effect) && noteIn(args) !== call.note)
    log.violated(
      'a repeatable write is sent as it was asked for',
      `${call.id} asks for ${call.note} and sends ${noteIn(args)}`,
    );
  // Args that were not stored cannot be sent again with what was prepared from them.
  if (
    prepared !== undefined &&
    contract.redact.length === 0 &&
    !String(prepared).startsWith(`${JSON.stringify(args)} #`)
  )
    log.violated(
      'what is sent was prepared from its own args',
      `${call.id} sends ${prepared} for ${JSON.stringify(args)}`,
    );
}

/** Where no key of a record is trusted, it keeps no words for one: redacted, an unverified row, a key that is not ours. */
function mayBeReworded({ sim: { log }, plan, contract, call }: Run, keys: readonly string[]): boolean {
  const { parts, versions } = plan;
  const { rerunWithinMs, provider, effect } = contract;
  const { onDoubt } = call.home?.call.contract ?? contract;
  const isRedacted = versions.some(({ definition }) => definition.redact !== undefined);
  const isForeign = provider?.sdkKey === undefined && parts.some(({ madeUpKey }) => madeUpKey);
  // Known, and harmless: where a repeat is accepted, code of another major version sends its own words under the old key.
  // "Not landed" about a call of steps lets it go on like "run again".
  const isAccepted = keys.some((key) =>
    log
      .keyLog(key)
      .verdicts.some(({ act }) => act === 'runAgain' || (act === 'notLanded' && call.home !== undefined)),
  );
  const isRepeated = isRepeatable(effect) || onDoubt === 'rerun' || isAccepted;
  const isOtherCode = isRepeated && versions.some(({ definition }) => definition.version === '2');
  // A release without a provider may have begun it: no key covers the record from then on, and no words are kept for one.
  const isMixed = versions.some(
    ({ definition: { via, provider: row } }) => row === undefined && via !== 'steps',
  );
  return isRedacted || rerunWithinMs === null || isForeign || isOtherCode || isMixed;
}

/** What is true of an attempt that sends its effect now. */
function maySend({ sim: { log, scheduler }, plan, contract, call, hasSent }: Run, attempt: Attempt): void {
  const { key, fence, crossedAt, sentAt } = attempt;
  const detail = `${call.id} sends ${key} f${fence}`;
  if (crossedAt === undefined) log.violated('nothing is sent before the line', detail);
  if (plan.polite && log.lost.has(attempt.token))
    log.violated('who was told that the lease is lost sends nothing', detail);
  const isJudged = contract.rerunWithinMs !== null && !isRepeatable(contract.effect);
  if (isJudged && !hasSent && sentAt !== undefined && (crossedAt ?? 0) < sentAt)
    log.violated("before every further try the provider's window is judged", detail);
  attempt.sentAt = scheduler.now;
  passNotes(attempt);
}

/** An SDK knows its own request; where something else is out, the tool knows that it cannot speak for the whole. */
function sdkError({ sim: { chance }, plan }: Run, { kind }: Answer, isOpen: boolean): Error {
  if (isOpen)
    return chance.happens(0.2) ? new PartialSuccess('the first part') : new Error(`${kind}, and more is out`);
  if (kind === 'ambiguous' && plan.isOneRequest && chance.happens(0.5)) return clientError(chance, kind);
  if (kind === 'ambiguous')
    return chance.happens(0.3) ? new MaybeLanded('no answer') : new Error('no answer');
  if (plan.isOneRequest && chance.happens(0.5)) return clientError(chance, kind);
  if (plan.hasCodes) return coded(kind);
  return kind === 'refused' ? new Rejected('refused') : new NotLanded('not sent');
}

/** As HTTP clients throw it: with the status of the answer, or with the syscall that failed. */
function clientError(chance: Chance, kind: Answer['kind']): Error {
  const status = { refused: [400, 404, 422], denied: [401, 403, 407, 429], ambiguous: [408, 409, 425, 500] };
  if (kind === 'not sent') return noConnection();
  if (kind === 'ambiguous' && chance.happens(0.5)) return networkError('ECONNRESET', 'read');
  const answered = chance.pick(status[kind as 'refused' | 'denied' | 'ambiguous']);
  const fields = chance.pick([
    { status: answered },
    { statusCode: answered },
    { response: { status: answered } },
  ]);
  return Object.assign(new Error(`HTTP ${answered}`), fields);
}

/** What was said of a request through `ctx.fetch`, semel has seen itself. */
function httpError({ plan }: Run, { kind }: Answer): Error {
  return plan.hasCodes && kind !== 'ambiguous' ? coded(kind) : new Error(`the request was ${kind}`);
}

const coded = (kind: Answer['kind']) =>
  Object.assign(new Error(kind), { code: kind === 'refused' ? 'EREFUSED' : 'ENOTSENT' });

const noConnection = () =>
  Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', syscall: 'connect' });

/** Which record a run of a sweep belongs to, by its mark: whoever reads its key counts as sending it. */
export async function recordKeyOf({ log, host: store }: Sim, mark: string): Promise<string> {
  for (const known of log.keys.keys()) {
    const record = await store.look(known);
    if (record !== undefined && markText(namespace, known, record.providerKeyFence) === mark) return known;
  }
  throw new Error('A run of a sweep has no record.');
}
