// What the generated contracts of a run had: a field that no contract sets is a field that was not explored.

import { durationMs } from '../../src/core/contract/duration.ts';
import type { Plan, Version } from './contracts.ts';

type Has = (version: Version, plan: Plan) => boolean;

const unitOf = ({ period }: Plan) => period.kind;
const ms = (duration: Parameters<typeof durationMs>[0] | undefined) =>
  durationMs(duration ?? 0, 'a duration');
const timeoutOf = ({ definition: { timeout } }: Version) =>
  timeout === 'none' ? Number.POSITIVE_INFINITY : ms(timeout);
const by =
  (...ways: readonly string[]): Has =>
  (_, { parts }) =>
    parts.map(({ way }) => way).join() === ways.join();

const features: Readonly<Record<string, Has>> = {
  'effect: write-idempotent': ({ definition }) => definition.effect === 'write-idempotent',
  'effect: write-non-idempotent': ({ definition }) => definition.effect === 'write-non-idempotent',
  'effect: irreversible': ({ definition }) => definition.effect === 'irreversible',
  'stakes: high': ({ definition }) => definition.stakes === 'high',
  'per: turn': (_, plan) => unitOf(plan) === 'turn',
  'per: conversation': (_, plan) => unitOf(plan) === 'conversation',
  'per: run': (_, plan) => unitOf(plan) === 'run',
  'per: ever': (_, plan) => unitOf(plan) === 'ever',
  'per: a TTL': (_, plan) => unitOf(plan) === 'ttl',
  'per: minute or hour': (_, plan) => ['minute', 'hour'].includes(unitOf(plan)),
  'per: day, week or month': (_, plan) => ['day', 'week', 'month'].includes(unitOf(plan)),
  'per: a zone in several spellings': ({ contracts }) => contracts.length > 1,
  'identity: named fields': ({ definition }) => definition.identity !== undefined,
  'identity: all but content and volatile': ({ definition: { identity, content } }) =>
    identity === undefined && content !== undefined,
  'identity: all args': ({ definition: { identity, content } }) =>
    identity === undefined && content === undefined,
  'identity: normalised': ({ definition }) => Object.keys(definition.normalize ?? {}).length > 0,
  'identity: a caller’s own key': (_, { callerKey }) => callerKey !== undefined,
  'schema: none': ({ schema }) => schema === undefined,
  'schema: constant defaults': ({ spelling }) => spelling.rules?.defaults === true,
  'schema: derived values': ({ spelling }) => spelling.rules?.derives === true,
  'schema: aliases': ({ spelling }) => spelling.rules?.aliases === true,
  'schema: transforms': ({ spelling: { rules } }) => rules?.coerces === true || rules?.lowers === true,
  'schema: values made anew': ({ spelling }) => spelling.rules?.freshens === true,
  'window: the default': ({ definition }) => definition.window === undefined,
  'timeout: none': ({ definition }) => definition.timeout === 'none',
  'verifyAfter: the default': ({ definition }) => definition.verifyAfter === undefined,
  'verifyAfter: shorter than timeout': (version) =>
    version.definition.verifyAfter !== undefined && ms(version.definition.verifyAfter) < timeoutOf(version),
  'verifyAfter: longer than timeout': (version) => ms(version.definition.verifyAfter) > timeoutOf(version),
  'lease: a second': ({ definition }) => ms(definition.lease) === 1_000,
  retry: ({ definition }) => definition.retry !== undefined,
  'ifBusy: fail': ({ definition }) => definition.ifBusy === 'fail',
  'ifBusy: skip': ({ definition }) => definition.ifBusy === 'skip',
  'maxAttempts: 2': ({ definition }) => definition.maxAttempts === 2,
  'dispatch: explicit': ({ definition }) => definition.dispatch === 'explicit',
  prepare: (_, { hasPrepare }) => hasPrepare,
  verify: (_, { hasVerify }) => hasVerify,
  'verify: of a list that lags': (_, { hasVerify, target }) => hasVerify && target.listLagMs > 0,
  'via: fetch': ({ definition }) => definition.via === 'fetch',
  'via: steps': ({ definition }) => definition.via === 'steps',
  'steps: all at once': (_, { steps, takesAtOnce }) => steps.length > 0 && takesAtOnce,
  'steps: one with verify': (_, { steps }) => steps.some(({ hasVerify }) => hasVerify),
  'steps: one with a provider': (_, { steps }) => steps.some(({ options }) => options.provider !== undefined),
  'steps: one with neither': (_, { steps }) =>
    steps.some(({ hasVerify, options }) => !hasVerify && options.provider === undefined),
  'classify: oneRequest': (_, { isOneRequest }) => isOneRequest,
  classify: (_, { classifies }) => classifies,
  'provider: with classify': ({ definition }) => definition.provider?.classify !== undefined,
  'onDoubt: rerun': ({ definition }) => definition.onDoubt === 'rerun',
  'result: reference': ({ definition }) => definition.result === 'reference',
  redact: ({ definition }) => definition.redact !== undefined,
  'callers: several': (_, { callers }) => callers.length > 1,
  'callers: several, and share': ({ definition }, { callers }) =>
    callers.length > 1 && definition.share === true,
  'provider: key in a header': ({ definition: { provider } }) =>
    provider !== undefined && provider.bodyField === undefined && provider.queryField === undefined,
  'provider: key in body or query': ({ definition: { provider } }) =>
    provider?.bodyField !== undefined || provider?.queryField !== undefined,
  'provider: key sent by the tool': ({ definition }) => definition.provider?.sentBy === 'tool',
  'provider: not verified, or no key': ({ definition: { provider } }) =>
    provider?.verified === false || provider?.sentBy === 'nobody',
  'provider: with sdkKey': ({ definition }) => definition.provider?.sdkKey !== undefined,
  'provider: a made-up key and no sdkKey': ({ definition: { provider } }, { parts }) =>
    provider !== undefined && provider.sdkKey === undefined && parts.some(({ madeUpKey }) => madeUpKey),
  'provider: an SDK of its own that makes keys up': ({ definition: { provider } }, { parts }) =>
    provider !== undefined && parts.some(({ way, madeUpKey }) => way === 'sdk' && madeUpKey),
  'run: an SDK of its own': by('sdk'),
  'run: ctx.fetch': by('fetch'),
  'run: an SDK, then ctx.fetch': by('sdk', 'fetch'),
  'run: ctx.fetch, then an SDK': by('fetch', 'sdk'),
  'run: two by the same way': (version, plan) =>
    by('sdk', 'sdk')(version, plan) || by('fetch', 'fetch')(version, plan),
  'run: goes on where a part fails': (_, { parts }) => parts.some(({ optional }) => optional),
  'run: an SDK that sends again by itself': (_, { parts }) => parts.some(({ retries }) => retries),
  'run: notes an id': (_, { hasNotes }) => hasNotes,
  'run: returns a generator': (_, { isLazy }) => isLazy,
  'run: calls another tool, or sweeps': (_, { nests }) => nests,
  'versions: two side by side': (_, { versions }) => versions.length > 1,
  'versions: one may be repeated, one may not': (_, { versions }) =>
    versions.some(({ definition }) => definition.effect === 'write-idempotent') &&
    versions.some(({ definition }) => definition.effect !== 'write-idempotent'),
  'versions: one with a provider, one without': (_, { versions }) =>
    versions.some(({ definition }) => definition.provider !== undefined) &&
    versions.some(({ definition }) => definition.provider === undefined),
  'versions: was, under another name': ({ definition }) =>
    definition.was?.some(({ name }) => name !== undefined) === true,
  'versions: was, with other fields or periods': ({ definition }) =>
    definition.was?.some(({ identity, per }) => identity !== undefined || per !== undefined) === true,
};

export const featureNames: readonly string[] = Object.keys(features);

const has = Object.values(features);

/** Adds what each version of a tool has. */
export function countFeatures(counts: Float64Array, plan: Plan): void {
  for (const version of plan.versions)
    for (let at = 0; at < has.length; at += 1)
      if ((has[at] as Has)(version, plan)) counts[at] = (counts[at] as number) + 1;
}
