// `receive(semel, source, handler)`: a web-standard handler that is executed once per event, however often it is delivered. Answers 2xx only
// after the outcome is durable; records nothing of what is not genuine.

import type { AttemptContext } from '../../call/index.ts';
import type { ContractDefinition } from '../../core/contract/contract.ts';
import { type Duration, durationMs } from '../../core/contract/duration.ts';
import { checkKnown, fieldNames } from '../../core/contract/known-fields.ts';
import { isSemelError, SemelError } from '../../core/errors.ts';
import { isLazy } from '../../core/plain.ts';
import type { Verification, VerifyContext } from '../../core/verification.ts';
import { engineOf, type Semel } from '../../semel/index.ts';
import { BodyRefused, readBody } from '../body.ts';
import { outcomes } from '../outcomes.ts';
import { type ProblemOptions, toProblem, toResponse } from '../problem.ts';
import { checkBytes, createReceiver, keepLongEnough, type ReceiverTerms, refuse } from '../receiver.ts';
import { createDelivery, type WebhookSource } from './source.ts';

export interface ReceiveOptions<Event> extends ReceiverTerms, Pick<ContractDefinition, 'retry'> {
  /** Two receivers of one source need two names. @default `webhook.<source>` */
  readonly name?: string;
  /** How long an event is known; as long as its sender may repeat it. @default '30d' */
  readonly keepFor?: Duration;
  /** Finds out whether the handler's effect landed, for an event in doubt. */
  readonly verify?: (event: Event, ctx: VerifyContext) => Verification | Promise<Verification>;
  /** Keeps events out of the ledger; then only a further delivery can run one again, not a sweep. @default false */
  readonly redact?: boolean;
  readonly maxBytes?: number;
  /** How long the sender may take to send the body. @default '30s' */
  readonly bodyTimeout?: Duration;
}

interface Args<Event> {
  readonly id: string;
  readonly event: Event;
}

/** What the handler returns is not kept. */
export function receive<Event>(
  semel: Semel,
  source: WebhookSource<Event>,
  handler: (event: Event, ctx: AttemptContext) => unknown,
  options: ReceiveOptions<NoInfer<Event>> = {},
): (request: Request) => Promise<Response> {
  checkKnown('receive', options, optionNames);
  checkSource(source, handler);
  const {
    name = `webhook.${source.name}`,
    keepFor = '30d',
    verify,
    redact = false,
    maxBytes: most = source.maxBytes ?? 1024 * 1024,
    bodyTimeout = '30s',
    ...terms
  } = options;
  const receiver = createReceiver<Args<Event>>(
    semel,
    {
      name,
      identity: ['id'],
      // Not even differences between deliveries: Stripe counts deliveries inside the event.
      volatile: ['event'],
      redact: redact ? ['event'] : [],
      keepMs: keepLongEnough(name, keepFor, source.retriesFor, source.name),
      run: async ({ event }, ctx) => {
        // What it returns is not kept, so the call itself cannot see that nothing has run.
        if (isLazy(await handler(event, ctx))) throw lazyHandler(name);
      },
      verify: verify && (async ({ event }, ctx) => verify(event, ctx)),
    },
    terms,
  );
  const maxBytes = checkBytes(name, 'maxBytes', most);
  const timeoutMs = durationMs(bodyTimeout, 'bodyTimeout');
  const { clock } = engineOf(semel);

  async function answer(request: Request): Promise<Response> {
    if (request.method !== 'POST') return refuseMethod();
    const body = await readBody(request, { maxBytes, timeoutMs });
    const delivery = createDelivery(request.headers, body, clock.now());
    const verdict = await source.verify(delivery);
    if (verdict !== true) return refuseSignature(typeof verdict === 'string' ? verdict : undefined);
    const reply = source.reply?.(delivery);
    if (reply !== undefined) return reply;
    const id = checkId(source.id(delivery));
    const event = source.event === undefined ? (delivery.json as Event) : source.event(delivery);
    const result = await receiver.call({ id, event });
    if (result.ok) return accept(result.receipt.replayed);
    return answerError(result.error);
  }

  function answerError(error: SemelError, options: Partial<ProblemOptions> = {}): Response {
    const { webhook } = outcomes[error.code];
    if (webhook === 200) return accept(true);
    const isOwn = error.code !== 'IN_FLIGHT' && !(error instanceof BodyRefused);
    if (webhook >= 500 && isOwn) receiver.report(error);
    return toResponse(toProblem(error, { to: 'webhook', ...options }));
  }

  return async (request) => {
    try {
      return await answer(request);
    } catch (error) {
      if (error instanceof BodyRefused)
        return answerError(error, { status: error.status, detail: error.happened });
      if (isSemelError(error)) return answerError(error);
      return answerError(new SemelError('CONTRACT_INVALID', `${name}: the source threw.`, { cause: error }));
    }
  };
}

const optionNames = fieldNames<ReceiveOptions<unknown>>({
  name: true,
  keepFor: true,
  verify: true,
  redact: true,
  maxBytes: true,
  bodyTimeout: true,
  effect: true,
  version: true,
  lease: true,
  timeout: true,
  retry: true,
  maxAttempts: true,
  failureWindow: true,
  provider: true,
  verifyAfter: true,
  via: true,
  dispatch: true,
  mode: true,
  onDoubt: true,
  classify: true,
  transaction: true,
  onError: true,
});

/** For programs without types. */
function checkSource(source: WebhookSource, handler: unknown): void {
  const { name, verify, id } = (source ?? {}) as Partial<WebhookSource>;
  if (typeof name !== 'string' || typeof verify !== 'function' || typeof id !== 'function')
    refuse(
      'source',
      'receive() expects a source second.',
      "Pass stripeEvents({ secret }), or { name, retriesFor: '3d', verify, id } of your own.",
    );
  if (typeof handler !== 'function')
    refuse(
      'handler',
      `${name}: the handler is missing.`,
      'Write receive(semel, source, async (event) => …).',
    );
}

function lazyHandler(name: string): Error {
  return new Error(
    `The handler of ${name} returned a generator or promises, which have not run or not ended: await them inside the handler`,
  );
}

function accept(isReplay: boolean): Response {
  return Response.json({ status: isReplay ? 'replayed' : 'executed' });
}

function refuseMethod(): Response {
  const error = new SemelError('INVALID_ARGS', 'A webhook is sent with POST.');
  const { headers, ...problem } = toProblem(error, { to: 'webhook', status: 405, detail: error.happened });
  return toResponse({ ...problem, headers: [...headers, ['allow', 'POST']] });
}

function refuseSignature(why = 'The signature does not match.'): Response {
  return toResponse(toProblem(new SemelError('NOT_PERMITTED', why), { to: 'webhook', detail: why }));
}

/** Repeated headers are joined with a comma, so it would be undefined which one counts. */
function checkId(id: unknown): string {
  if (
    typeof id === 'string' &&
    /^[\x21-\x2b\x2d-\x7e](?:[\x20-\x2b\x2d-\x7e]{0,398}[\x21-\x2b\x2d-\x7e])?$/.test(id)
  )
    return id;
  throw new BodyRefused(400, 'The id of the event is missing, or is not one.', 'Send the id of the event.');
}
