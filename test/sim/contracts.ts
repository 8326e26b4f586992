// Tools by chance: every field of a contract, schemas, what one run sends and how, and a second version of the tool that
// is deployed beside the first. Short enough for a history of minutes.

import type { StepOptions } from '../../src/call/index.ts';
import {
  type Contract,
  type ContractDefinition,
  defineContract,
  type EarlierForm,
  type Traits,
} from '../../src/core/contract/contract.ts';
import type { StandardSchema } from '../../src/core/contract/standard-schema.ts';
import { makeWords, type Words } from './arguments.ts';
import type { Chance } from './chance.ts';
import type { Profile } from './faults.ts';
import { type Field, type SchemaRules, type Spelling, schemaOf } from './fields.ts';
import { isCalendar, makePeriod, type Period, perOf } from './periods.ts';
import { makePart, makeParts, makeTarget, makeVia, type Part, type TargetPlan } from './targets.ts';
import { makeWishes, type Wish } from './wishes.ts';
import type { Target } from './world.ts';

/** One tool of a history, as its author wrote it. */
export interface Plan {
  readonly name: string;
  /** The first, and perhaps one that is deployed while the first still runs. */
  readonly versions: readonly Version[];
  /** Which fields make the intent; all versions agree on that, however they say it. */
  readonly identity: readonly Field[];
  readonly period: Period;
  readonly wishes: readonly Wish[];
  readonly target: Target;
  /** What one run sends, in this order. */
  readonly parts: readonly Part[];
  /** Or the steps that it takes, each with one request. */
  readonly steps: readonly StepPlan[];
  /** It takes all of them at once. */
  readonly takesAtOnce: boolean;
  readonly hasVerify: boolean;
  readonly hasPrepare: boolean;
  /** `run` may call another tool, or sweep, before it sends. */
  readonly nests: boolean;
  /** Whose calls there are; the first makes most of them. */
  readonly callers: readonly (string | undefined)[];
  /** The caller's own key, which other args can meet. */
  readonly callerKey: string | undefined;
  /** The contract has a table of what its errors mean. */
  readonly classifies: boolean;
  /** Its errors say what they mean by a code, which the contract or its provider row knows, and not by a word. */
  readonly hasCodes: boolean;
  /** `classify: oneRequest`. */
  readonly isOneRequest: boolean;
  /** `run` returns a generator, whose body would send. */
  readonly isLazy: boolean;
  /** `run` notes an id for what it sends. */
  readonly hasNotes: boolean;
  /** `run` looks at its signal before it sends. */
  readonly polite: boolean;
}

export const stepName = (nth: number) => `s${nth + 1}`;

/** A step of a tool. */
export interface StepPlan extends Plan {
  readonly options: Pick<StepOptions, 'provider' | 'via' | 'timeout' | 'lease'>;
}

export interface Version {
  readonly definition: ContractDefinition;
  /** One contract per spelling of its time zone. */
  readonly contracts: readonly Contract[];
  readonly spelling: Spelling;
  readonly schema: StandardSchema | undefined;
  /** Which free text the tool takes besides. */
  readonly extras: readonly ('note' | 'trace')[];
}

const minute = 60_000;

const failureWindows = {
  none: [10_000, minute],
  keyed: [10_000],
  brief: [8_000, 40_000],
  fleeting: [300, 1_500],
};
/** With none among them too: that is a caller of its own. */
const severalCallers = [
  ['ann', 'bob'],
  ['ann', undefined],
  [undefined, 'bob'],
];
const leases = [1_000, 3_000, 6_000, 10_000];

export function makePlan(chance: Chance, index: number, bias: Profile['bias']): Plan {
  const hasSteps = chance.happens(0.15);
  const parts = hasSteps ? [] : makeParts(chance);
  const traits = { hasVerify: !hasSteps && chance.happens(0.45), hasPrepare: chance.happens(0.25) };
  const period = makePeriod(chance, bias === 'brief' ? 0.4 : 0.2);
  const words = makeWords(chance);
  const target = makeTarget(chance, bias, parts, traits.hasVerify);
  const via = hasSteps ? 'steps' : makeVia(chance, parts);
  const terms = makeDefinition(chance, `tool${index}`, bias, traits.hasPrepare, target);
  const definition = {
    ...(hasSteps ? withSteps(terms) : terms),
    ...(via === 'fetch' || via === 'steps' ? { via } : {}),
  };
  const first: Draft = { ...words, definition: { ...definition, ...words.lists }, period };
  const drafts = chance.happens(0.3) ? [first, nextVersion(chance, first)] : [first];
  const callers = chance.happens(0.2) ? chance.pick(severalCallers) : [undefined];
  const callerKey = chance.happens(0.3) ? 'order-17' : undefined;
  const classifies = parts.length === 1 && parts[0]?.way === 'sdk' && chance.happens(0.4);
  const hasCodes = classifies || definition.provider?.classify !== undefined;
  const { identity, rules } = words;
  const isScopeFixed = drafts.some((each) => each.period !== period);
  const plan: Plan = {
    name: definition.name,
    versions: drafts.map((draft) => versionOf(draft, traits)),
    identity,
    period,
    wishes: makeWishes(chance, { identity, rules, period, callerKey, isScopeFixed }),
    target: target.target,
    parts,
    steps: [],
    takesAtOnce: chance.happens(0.2),
    ...traits,
    nests: chance.happens(0.1),
    callers,
    callerKey,
    classifies,
    hasCodes,
    isOneRequest: via === 'one request',
    isLazy: chance.happens(0.015),
    hasNotes: chance.happens(0.4),
    polite: chance.happens(0.5),
  };
  const count = hasSteps ? chance.pick([2, 2, 3]) : 0;
  return { ...plan, steps: Array.from({ length: count }, () => makeStep(chance, bias, plan)) };
}

/** All that it does is in its steps: they have the providers, and it is remembered which of them landed. */
function withSteps({ provider, dispatch, effect, ...terms }: ContractDefinition): ContractDefinition {
  return { ...terms, effect: effect === 'write-idempotent' ? 'write-non-idempotent' : effect };
}

function makeStep(chance: Chance, bias: Profile['bias'], plan: Plan): StepPlan {
  const parts = [makePart(chance, chance.pick(['sdk', 'fetch']), false)];
  const hasVerify = chance.happens(0.4);
  const { provider: row, target, timeout } = makeTarget(chance, bias, parts, hasVerify);
  const via = makeVia(chance, parts);
  const classifies = parts[0]?.way === 'sdk' && chance.happens(0.4);
  // Steps are kept for good: without `verify`, a provider has to remember for long.
  const isLong = row !== undefined && !hasVerify;
  const provider = isLong ? { ...row, window: longMs } : row;
  return {
    ...plan,
    parts,
    target: isLong ? { ...target, remembersMs: longMs } : target,
    hasVerify,
    hasPrepare: false,
    nests: false,
    classifies,
    hasCodes: classifies || provider?.classify !== undefined,
    isOneRequest: via === 'one request',
    isLazy: false,
    options: {
      timeout,
      lease: chance.pick(leases),
      ...(via === 'fetch' ? { via } : {}),
      ...(provider === undefined ? {} : { provider }),
    },
  };
}

const longMs = 400 * 24 * 60 * minute;

/** A version before its contracts are made. */
interface Draft extends Words {
  readonly definition: ContractDefinition;
  readonly period: Period;
}

function versionOf({ definition, period, fields, rules, normalize, extras }: Draft, traits: Traits): Version {
  // A TTL stands in place of the window.
  const { window: ttl = '1d', ...others } = definition;
  const terms = period.kind === 'ttl' ? others : definition;
  const spellings = isCalendar(period) ? period.zone.names : ['as it is'];
  return {
    definition,
    contracts: spellings.map((_, at) => defineContract({ ...terms, per: perOf(period, at, ttl) }, traits)),
    spelling: { fields, rules, normalize },
    schema: rules === undefined ? undefined : schemaOf(rules, fields),
    extras,
  };
}

function makeDefinition(
  chance: Chance,
  name: string,
  bias: Profile['bias'],
  hasPrepare: boolean,
  { provider, timeout, window, verifyAfter }: TargetPlan,
): ContractDefinition {
  const effect = chance.happens(0.14)
    ? 'write-idempotent'
    : chance.happens(0.3)
      ? 'irreversible'
      : 'write-non-idempotent';
  const retry = {
    tries: chance.between(2, 3),
    backoff: chance.pick([200, 5_000, 40_000]),
    maxBackoff: '60s' as const,
  };
  return {
    name,
    version: '1',
    effect,
    ...(chance.happens(0.1) ? { stakes: 'high' as const } : {}),
    ...(window === undefined ? {} : { window }),
    failureWindow: chance.pick(failureWindows[bias ?? 'none']),
    lease: chance.pick(leases),
    timeout,
    ifBusy: bias === 'fleeting' ? 'wait' : chance.pick(['wait', 'wait', 'wait', 'fail', 'skip']),
    wait: chance.pick([8_000, 30_000]),
    ...(chance.happens(0.35) ? { retry } : {}),
    maxAttempts: chance.pick([2, 3, 10]),
    ...(provider === undefined ? {} : { provider }),
    ...(verifyAfter === undefined ? {} : { verifyAfter }),
    ...(!hasPrepare && chance.happens(bias === 'fleeting' ? 0.7 : 0.35)
      ? { dispatch: 'explicit' as const }
      : {}),
    // Nobody can send again what was not stored; where nothing forbids it, the target sees other words.
    ...(chance.happens(0.05) ? { redact: ['note'] } : {}),
    ...(chance.happens(0.04) ? { result: 'reference' as const } : {}),
    ...(chance.happens(0.2) ? { share: true } : {}),
    onDoubt: chance.happens(0.06) ? 'rerun' : 'hold',
  };
}

/** The same tool a release later: another name, other words for the same intent, a schema that it did not have. */
function nextVersion(chance: Chance, first: Draft): Draft {
  const { definition, identity, period } = first;
  const isRenamed = chance.happens(0.5);
  // A field that says the same as those that are there: no intent changes, and every key does.
  const isWider = definition.identity !== undefined && !identity.includes('order') && chance.happens(0.5);
  // Conversations into one for ever, or the other way round: the calls of a history are all of one conversation then.
  const other = ({ conversation: 'ever', ever: 'conversation' } as const)[period.kind as string];
  const isOtherPeriod = other !== undefined && chance.happens(0.3);
  const form: EarlierForm = {
    ...(isRenamed ? { name: definition.name } : {}),
    ...(isWider ? { identity, volatile: definition.volatile ?? [] } : {}),
    ...(isOtherPeriod ? { per: period.kind as 'conversation' | 'ever' } : {}),
  };
  const { provider, ...unkeyed } = definition;
  const terms = chance.happens(0.2) ? unkeyed : definition;
  const rules = first.rules ?? (chance.happens(0.5) ? plainRules : undefined);
  // Where nobody can tell what is a default, a new one changes the keys: that is documented.
  const isNewField = rules?.defaults === true && !rules.isStrict && !first.fields.includes('priority');
  return {
    ...first,
    period: isOtherPeriod ? { ...period, kind: other } : period,
    rules,
    fields: isNewField ? [...first.fields, 'priority'] : first.fields,
    definition: {
      ...terms,
      ...(definition.via !== 'steps' && chance.happens(0.3)
        ? { effect: otherEffect(definition.effect) }
        : {}),
      version: chance.happens(0.5) ? '1.1' : '2',
      ...(isRenamed ? { name: `${definition.name}.renamed` } : {}),
      ...(isWider ? { identity: ['order', ...identity] } : {}),
      ...(Object.keys(form).length > 0 ? { was: [form] } : {}),
      lease: chance.pick(leases),
    },
  };
}

/** What one release remembers, the other may repeat. */
const otherEffect = (effect: ContractDefinition['effect']) =>
  effect === 'write-idempotent' ? 'write-non-idempotent' : 'write-idempotent';

/** What a schema of a later release may add without changing an intent. */
const plainRules: SchemaRules = {
  aliases: true,
  derives: false,
  defaults: true,
  coerces: false,
  lowers: false,
  freshens: false,
  isStrict: false,
};
