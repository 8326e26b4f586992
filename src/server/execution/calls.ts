// Calls over HTTP: a client asks whether to execute, executes, and reports. What it holds is a claim with a lease, as every
// worker's; the server renews nothing by itself.

import {
  type DetachedAttempt,
  noStepsError,
  type Receipt,
  type Report,
  type Result,
} from '../../call/index.ts';
import { decodeResult } from '../../core/codec/codec.ts';
import type { Contract } from '../../core/contract/contract.ts';
import { isRepeatable } from '../../core/contract/words.ts';
import { SemelError } from '../../core/errors.ts';
import { recordId } from '../../core/key/key.ts';
import { limits } from '../../core/limits.ts';
import { type DetachedWait, findJobTool } from '../../jobs/library/index.ts';
import type { FilePolicy } from '../../mcp/index.ts';
import {
  type CallOptions,
  nobody,
  noOptions,
  type Records,
  runAs,
  toRecordedCall,
} from '../../semel/index.ts';
import { findTraceparent, noteField } from '../../signals/index.ts';
import type { StoredRecord } from '../../store/store.ts';
import type { Context } from '../endpoint.ts';
import {
  anything,
  document,
  flag,
  instant,
  integer,
  object,
  oneOf,
  type Read,
  text,
} from '../exchange/schema.ts';
import { createPlaces } from '../places.ts';
import type { OpenTicket } from './ticket.ts';
import type { ServedTool } from './tools.ts';

const id = (about: string) => text({ max: 500, about });
const targetsId = (about: string) => text({ max: 500, about, isForeign: true });

const attempt = text({ max: 100_000, about: 'The `attempt` of the answer to /v1/begin.' });

const policy = document(
  {
    type: 'object',
    description: 'What the tool may do, as in semel.policy.json. Must equal the registered policy.',
  },
  (value, path) => {
    // It comes back with each report of an attempt, and is kept for each tool.
    if (JSON.stringify(value).length <= limits.policyCharacters) return value as never;
    throw new SemelError('INVALID_ARGS', `\`${path}\` has more than ${limits.policyCharacters} characters.`, {
      path,
      next: 'Shorten it, or put it into the policy file of the server.',
    });
  },
);

export const beginBody = object(
  {
    tool: text({
      max: 64,
      pattern: /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
      example: 'email.send',
      about: 'The name of the tool.',
    }),
  },
  {
    args: anything({ about: 'The arguments: the key is derived from them, by the tool’s policy.' }),
    policy,
    conversation: id('The conversation that the call belongs to.'),
    turn: id('The turn of the conversation.'),
    run: id('The run of a job that the call belongs to.'),
    toolCallId: id('The id that the model gave the call.'),
    caller: id('Whose call it is, where the program serves several users.'),
    handoff: text({ max: 10_000, about: 'The identity that another process handed over.' }),
    key: id('Your own idempotency key, instead of a derived one.'),
    again: id('Why it is done once more on purpose.'),
    at: instant({ about: 'The instant that a calendar period is taken from. Default: now.' }),
    notAfter: instant({ about: 'An attempt that would start later is refused.' }),
    version: text({ max: 100, about: 'Refused where the tool has another major version.' }),
    token: text({
      max: 100,
      pattern: /^[\w-]{22,100}$/,
      about:
        'Random, at least 22 characters, new for each attempt: a begin whose answer was lost can be sent again with it.',
    }),
    worker: text({ max: 200, about: 'Who executes it, for people.' }),
    dispatch: oneOf(['claim', 'explicit'], {
      about: 'explicit: nothing counts as sent before /v1/dispatch. Default: claim.',
    }),
    waitMs: integer({
      min: 0,
      max: 60_000,
      about: 'How long to wait while another worker executes it. Default: 0.',
    }),
  },
);

/** As in the library, so that `<tool>.<step>` names one step only. */
const stepName = /^[A-Za-z0-9][A-Za-z0-9_-]*$/;

const { token, worker, waitMs, conversation, turn, run, caller, handoff, at } = beginBody.fields;

export const stepBody = object(
  { attempt, step: text({ max: 64, pattern: stepName, example: 'charge', about: 'The name of the step.' }) },
  {
    token,
    worker,
    waitMs,
    lease: integer({ min: 1_000, max: 86_400_000, about: 'In milliseconds. Default: 60 s.' }),
    timeout: integer({ min: 1_000, max: 2_147_483_647, about: 'In milliseconds. Default: 10 min.' }),
  },
);

export const handoffBody = object({}, { conversation, turn, run, caller, at, handoff });

export const renewBody = object(
  { attempt },
  { remoteRef: targetsId('The id that the target gave it, kept in case this worker dies.') },
);

export const dispatchBody = object(
  { attempt },
  {
    keyed: flag({ about: 'False: the request does not carry the key. Default: true.' }),
    prepared: anything({ about: 'What is about to be sent: a later attempt gets the same.' }),
  },
);

export const settleBody = object(
  {
    attempt,
    outcome: oneOf(['succeeded', 'failed', 'notLanded', 'unknown'], {
      about: 'failed: the target refused it. notLanded: it had no effect. unknown: it may have landed.',
    }),
  },
  {
    value: anything({ about: 'What it returned: repeated calls get the same.' }),
    omitted: text({
      max: 500,
      about: 'Why what it returned cannot be sent. Repeated calls get RESULT_OMITTED.',
    }),
    error: object(
      {},
      { message: text({ max: 10_000, isForeign: true }), code: text({ max: 200, isForeign: true }) },
      { about: 'What went wrong.' },
    ),
    remoteRef: targetsId('The id that the target gave it.'),
  },
);

export async function begin(body: Read<typeof beginBody>, context: Context): Promise<object> {
  const answer = await beginAs(body, context, false);
  const { traceparent, space } = context;
  return traceparent === undefined ? answer : trace(answer, traceparent, space.semel.records);
}

/** Notes which span executes it; a replay is told which one did. */
async function trace(answer: object, traceparent: string, records: Records): Promise<object> {
  const { recordKey, receipt } = answer as { readonly recordKey?: string; readonly receipt?: Receipt };
  // The client does not wait for what is noted about its trace.
  if (recordKey !== undefined)
    records.annotate(recordKey, { [noteField]: traceparent }).catch(() => undefined);
  if (receipt === undefined) return answer;
  const found = await findTraceparent(records, receipt.key, receipt.generation).catch(() => undefined);
  return found === undefined ? answer : { ...answer, traceparent: found };
}

/** A step of an attempt: a call with a record of its own, named by the outer one as `ctx.step` of the library does. */
export async function step(body: Read<typeof stepBody>, context: Context): Promise<object> {
  const { attempt: text, step: name, lease, timeout, ...rest } = body;
  const { space } = context;
  const { tool, ticket } = await openTicket(text, space);
  const { name: contract, effect } = tool.contract;
  if (ticket === undefined || isRepeatable(effect)) throw noStepsError(contract);
  const of = await space.engine.pipeline.tickets.enter(callOf(tool), space.semel.namespace, ticket);
  if (of === undefined) throw lost(tool);
  const terms = withoutMissing({ lease, timeout }) as Pick<FilePolicy, 'lease' | 'timeout'>;
  const policy: FilePolicy = { effect: 'write-non-idempotent', per: 'ever', share: true, ...terms };
  return beginAs(
    { ...rest, tool: `${contract}.${name}`, policy: policy as never, args: { of } },
    context,
    true,
  );
}

/** The identity as a text for another process. */
export async function handOff(body: Read<typeof handoffBody>, { space }: Context): Promise<object> {
  const { handoff: from, caller, at } = body;
  const { semel } = space;
  const own = withoutMissing({ ...identityOf(body), caller, at });
  const text = runAs(nobody, () =>
    from === undefined
      ? semel.within(own, semel.handoff)
      : semel.within(from, () => semel.within(own, semel.handoff)),
  );
  return { handoff: text };
}

async function beginAs(body: Read<typeof beginBody>, context: Context, isStep: boolean): Promise<object> {
  const { space } = context;
  const tool = space.tools.find(body.tool, body.policy, isStep);
  const open = { tool: body.tool, policy: body.policy };
  const { args, handoff } = body;
  // Nothing is recorded of a read.
  if (tool.contract.effect === 'read')
    return executeAnswer(space, { ...open, ticket: undefined }, tool, { args });
  // Starts pruning, and tells the errors below which command decides. A store that does not answer fails the claim itself.
  await space.engine.open().catch(() => undefined);
  const start = async () => {
    const { makeCall, pipeline } = space.engine;
    const claimant = { owner: ownerOf(body, context), token: body.token, hasLeft: () => context.hasLeft };
    const { waitMs, dispatch } = body;
    return whileWaiting(waitMs, context, async (wait) => {
      if (wait === undefined)
        return pipeline.detach(await makeCall(tool, args, callOptions(body), hurry(dispatch)), claimant);
      const made = await makeCall(tool, args, callOptions(body));
      const terms = { ifBusy: 'wait', waitMs: wait.waitMs } as const;
      const waiting = { tool: onTerms(made.tool, dispatch, terms), signal: wait.signal };
      return pipeline.detach(made.with(waiting), claimant);
    });
  };
  const begun = await runAs(nobody, () =>
    handoff === undefined
      ? start()
      : space.semel.within(handoff, () => space.semel.within(identityOf(body), start)),
  );
  if (!begun.execute) return toAnswer(begun.result);
  return executeAnswer(space, { ...open, ticket: begun.attempt.ticket }, tool, begun.attempt);
}

const waiters = createPlaces(limits.waitingCalls);

/** Without a wait where the request asks for none, and where all places are taken. */
export async function whileWaiting<Answer>(
  waitMs = 0,
  context: Context,
  ask: (wait: DetachedWait | undefined) => Promise<Answer>,
): Promise<Answer> {
  const { namespace } = context.space.engine;
  if (waitMs === 0 || !waiters.take(namespace)) return ask(undefined);
  try {
    // Only a call that waits is ended by its signal: any other asks once whether somebody still wants its answer.
    return await ask({ waitMs, signal: context.signal });
  } finally {
    waiters.leave(namespace);
  }
}

type Terms = Pick<Contract, 'ifBusy' | 'waitMs'>;

/** The tool as this request wants it: whether it waits, and when its effect counts as sent. */
function onTerms(tool: PipelineTool, dispatch: Contract['dispatch'] | undefined, terms: Terms): PipelineTool {
  const { contract } = tool;
  return { ...tool, contract: { ...contract, dispatch: dispatch ?? contract.dispatch, ...terms } };
}

/** For calls that do not wait. Those that do are made anew each time: clients choose how long, and there would be as many tools. */
function hurry(dispatch: Contract['dispatch'] | undefined): (tool: PipelineTool) => PipelineTool {
  return (tool) => {
    const known = hurried[dispatch ?? tool.contract.dispatch];
    let made = known.get(tool);
    if (made === undefined) {
      made = onTerms(tool, dispatch, { ifBusy: 'fail', waitMs: 0 });
      known.set(tool, made);
    }
    return made;
  };
}

const hurried: Readonly<Record<Contract['dispatch'], WeakMap<PipelineTool, PipelineTool>>> = {
  claim: new WeakMap(),
  explicit: new WeakMap(),
  prepared: new WeakMap(),
};

async function executeAnswer(
  { tickets }: Context['space'],
  open: OpenTicket,
  { contract }: ServedTool,
  { args, key, prepared, record }: Partial<DetachedAttempt>,
): Promise<object> {
  return {
    outcome: 'execute',
    attempt: await tickets.write(open),
    args,
    ...(key === undefined ? {} : { key }),
    ...(prepared === undefined ? {} : { prepared }),
    ...(record === undefined
      ? { claimed: false }
      : { claimed: true, ...aboutAttempt(record), leaseMs: contract.leaseMs }),
    ...(Number.isFinite(contract.timeoutMs) ? { timeoutMs: contract.timeoutMs } : {}),
  };
}

function aboutAttempt({ attempts, fence, key, namespace }: StoredRecord): object {
  return { number: attempts, fence, recordKey: key, recordId: recordId(namespace, key) };
}

export async function renew(body: Read<typeof renewBody>, { space }: Context): Promise<object> {
  const { tool, ticket } = await openTicket(body.attempt, space);
  if (ticket === undefined) return { held: true, leaseMs: tool.contract.leaseMs };
  const { semel, engine } = space;
  const record = await engine.pipeline.tickets.renew(tool, semel.namespace, ticket, body.remoteRef);
  if (record === undefined) throw lost(tool);
  return { held: true, leaseMs: tool.contract.leaseMs };
}

export async function dispatch(body: Read<typeof dispatchBody>, { space }: Context): Promise<object> {
  const { tool, ticket } = await openTicket(body.attempt, space);
  if (ticket === undefined) return { dispatched: true };
  const { keyed = true, prepared } = body;
  const { pipeline } = space.engine;
  await pipeline.tickets.dispatch(callOf(tool), space.semel.namespace, ticket, { keyed, prepared });
  return { dispatched: true };
}

export async function settle(body: Read<typeof settleBody>, { space }: Context): Promise<object> {
  const { tool, job, ticket } = await openTicket(body.attempt, space);
  const { outcome, value, omitted, error, remoteRef } = body;
  // No other outcome ends it: the job would never run again.
  if (job?.kind === 'lock' && outcome !== 'notLanded')
    throw new SemelError('INVALID_ARGS', '`attempt` is the lock of a job, which is only given back.', {
      path: 'outcome',
      next: 'Send `notLanded`. How the run ended belongs to its `attempt`.',
    });
  if (ticket === undefined) return { outcome: 'settled', recorded: false };
  const report: Report = {
    outcome: outcome === 'notLanded' ? 'released' : outcome,
    value,
    omitted,
    error: outcome === 'succeeded' ? undefined : toError(error),
    remoteRef,
  };
  const { pipeline } = space.engine;
  const result = await pipeline.tickets.settle(tool, callOf(tool), space.semel.namespace, ticket, report);
  if (!result.ok && isAsReported(outcome, result))
    return { outcome: 'settled', recorded: true, receipt: result.receipt };
  const recorded = outcome === 'succeeded' && result.receipt.settledAt !== undefined;
  return { ...toAnswer(result), outcome: 'settled', recorded };
}

/** Without its value. */
export function shortenSettled(answer: object): object {
  const { value: _, ...rest } = answer as { readonly value?: unknown };
  return rest;
}

/** The error of the call is what its executor reported: no news for it. */
function isAsReported(
  outcome: Read<typeof settleBody>['outcome'],
  { error }: Extract<Result, { ok: false }>,
): boolean {
  const expected = {
    succeeded: undefined,
    failed: 'FAILED',
    notLanded: 'NOT_LANDED',
    unknown: 'IN_DOUBT',
  } as const;
  return error.code === expected[outcome];
}

function toError(given: Read<typeof settleBody>['error'] = {}): Error {
  const { message = 'its executor did not say why', code } = given;
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}

/** A refusal is thrown, and becomes a problem. */
export function toAnswer(result: Result): object {
  if (!result.ok) throw withReceiptOf(result);
  return { outcome: 'replay', value: result.value, receipt: result.receipt };
}

function withReceiptOf({ error, receipt }: Extract<Result, { ok: false }>): SemelError {
  const { code, happened, correctiveAction, retriable, retryAfterMs, path, evidence, value } = error;
  return new SemelError(code, happened, {
    next: correctiveAction,
    retriable,
    receipt,
    value,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(path === undefined ? {} : { path }),
    ...(evidence === undefined ? {} : { evidence }),
  });
}

async function openTicket(text: string, { tools, tickets, semel }: Context['space']) {
  const { tool: name, policy, job, ticket } = await tickets.read(text);
  const tool = job === undefined ? tools.findUnder(name, policy) : findJobTool(semel, job);
  return { tool, job, ticket };
}

type PipelineTool = Awaited<ReturnType<typeof openTicket>>['tool'];

function callOf(tool: PipelineTool) {
  return (record: StoredRecord) =>
    toRecordedCall(tool, record, record.args === null ? undefined : decodeResult(record.args));
}

/** Inside a hand-off, as nested `within`: a new conversation does not inherit the turn. */
function identityOf({ conversation, turn, run }: Read<typeof handoffBody>) {
  return withoutMissing({ conversation, turn, run });
}

function withoutMissing<Given extends object>(given: Given): Partial<Given> {
  return Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  ) as Partial<Given>;
}

/** The very object that stands for no options where the body names none: then nothing needs to be resolved. */
function callOptions(body: Read<typeof beginBody>): CallOptions {
  let options: Record<string, unknown> | undefined;
  for (const name of callOptionNames) {
    const given = body[name];
    if (given === undefined) continue;
    options ??= {};
    options[name] = given;
  }
  return options ?? noOptions;
}

const callOptionNames = [
  'conversation',
  'turn',
  'run',
  'toolCallId',
  'caller',
  'key',
  'again',
  'at',
  'notAfter',
  'version',
] as const;

/** What a process could prove about itself must not be claimed by others, so it never looks like a process of this machine. */
export function ownerOf({ worker }: { readonly worker?: string }, { credential }: Context): string {
  return `${worker ?? 'a client'} (${credential.name}, over HTTP)`;
}

function lost({ contract }: PipelineTool): SemelError {
  return new SemelError('LEASE_LOST', `${contract.name}: another worker has taken this call over.`, {
    next: 'Stop it, and report how it ended.',
  });
}
