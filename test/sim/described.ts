// A generated tool in words: for a person who reads a failing history, for the count of different contracts, and for the
// checker, which takes an author at their word.

import type { Contract } from '../../src/core/contract/contract.ts';
import { durationMs } from '../../src/core/contract/duration.ts';
import { recordVersion, shownVersion } from '../../src/core/contract/version.ts';
import type { ClaimRequest } from '../../src/store/store.ts';
import { type Plan, type StepPlan, stepName, type Version } from './contracts.ts';
import { overrunMs, type QuietTerms } from './log.ts';
import type { Wish } from './wishes.ts';

const shown = (value: unknown) =>
  JSON.stringify(value, (_, each: unknown) =>
    each instanceof RegExp || typeof each === 'function' ? String(each) : each,
  );

function words(version: Version): string {
  const { definition, spelling, extras } = version;
  return shown({ ...definition, name: '', per: pers(version), spelling, extras });
}

const pers = ({ contracts }: Version) =>
  contracts.map(({ per }) => (typeof per === 'object' ? `${per.unit} ${per.zone}` : String(per)));

/** The tools of a history, as a reader of a failing one needs them: what was defined, what a run does, what is asked for. */
export function describe(plan: Plan): readonly string[] {
  const {
    name,
    versions,
    wishes,
    identity,
    parts,
    steps,
    target,
    hasVerify,
    hasPrepare,
    classifies,
    hasCodes,
    polite,
    nests,
  } = plan;
  const runs = parts.map(({ way, madeUpKey, retries, optional }) =>
    [way, madeUpKey && 'with a made-up key', retries && 'sends again', optional && 'may fail']
      .filter(Boolean)
      .join(' '),
  );
  const first = wishes[0] as Wish;
  return [
    ...versions.flatMap((version) => [
      `${name}, version ${version.definition.version}:`,
      ...Object.entries({ ...version.definition, per: pers(version) }).map(
        ([field, value]) => `  ${field}: ${shown(value)}`,
      ),
      `  input: ${shown(version.spelling.rules)} for ${shown([...version.spelling.fields, ...version.extras])}`,
    ]),
    `${name}: an intent is made of ${identity.join(', ')}; a run sends by ${runs.join(', then by ')}`,
    ...steps.map((step, nth) => `${name}: its step ${stepName(nth)} is ${shown(stepWords(step))}`),
    `${name}: the target is ${shown(target)}; ${shown({ hasVerify, hasPrepare, classifies, hasCodes, polite, nests })}`,
    ...wishes.map(
      (wish, nth) => `${name} is wanted (${nth + 1}): ${shown(nth === 0 ? wish : differences(first, wish))}`,
    ),
    '',
  ];
}

/** What tells a wish from the first one. */
function differences(first: Wish, wish: Wish): object {
  const changed = (a: object, b: object) =>
    Object.fromEntries(
      Object.entries(b).filter(([field, value]) => (a as Record<string, unknown>)[field] !== value),
    );
  return { ...changed(first, wish), meaning: changed(first.meaning, wish.meaning) };
}

/** One number per version of a tool: equal contracts have equal numbers, others practically never. */
export function contractNumbers({
  versions,
  parts,
  steps,
  target,
  hasVerify,
  hasPrepare,
  classifies,
}: Plan): readonly number[] {
  return versions.map((version) =>
    numberOf(
      words(version) +
        shown({ parts, steps: steps.map(stepWords), target, hasVerify, hasPrepare, classifies }),
    ),
  );
}

const stepWords = ({ parts, target, hasVerify, classifies, options }: StepPlan) => ({
  parts,
  target,
  hasVerify,
  classifies,
  options,
});

/** 53 bits of two mixed sums. */
function numberOf(text: string): number {
  let low = 0x9e3779b9;
  let high = 0x85ebca6b;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    low = Math.imul(low ^ code, 0x01000193);
    high = Math.imul(high ^ code, 0x5bd1e995);
  }
  low ^= high >>> 15;
  high ^= low >>> 13;
  return (high >>> 0) * 0x200000 + ((low >>> 0) & 0x1fffff);
}

const inTheNetworkMs = 60_000;

/** What the documentation promises of `verifyAfter`, from what the author wrote. */
export function quietTermsIn(plans: readonly Plan[]): (request: ClaimRequest) => QuietTerms {
  const known = new Map<string, QuietTerms>();
  // A sweep of one version claims records of the other, whose keys carry another name.
  for (const { versions, steps } of plans)
    for (const { definition, contracts } of versions)
      for (const { definition: named } of versions) {
        known.set(
          `${named.name} ${shownVersion(recordVersion(contracts[0] as Contract))}`,
          quietTerms(definition),
        );
        for (const [nth, { options }] of steps.entries())
          known.set(`${named.name}.${stepName(nth)} 1`, quietTerms(options));
      }
  return ({ key, version }) =>
    known.get(`${key.slice(0, key.indexOf('/'))} ${shownVersion(version)}`) as QuietTerms;
}

type Terms = Partial<Pick<Version['definition'], 'timeout' | 'lease' | 'verifyAfter' | 'via'>>;

function quietTerms({ timeout, lease, verifyAfter, via }: Terms): QuietTerms {
  const ms = (duration: Parameters<typeof durationMs>[0]) => durationMs(duration, 'a duration');
  const leaseMs = ms(lease ?? '60s');
  const runsMs = timeout === 'none' ? leaseMs : Math.max(ms(timeout ?? '10m'), leaseMs);
  const networkMs = verifyAfter === undefined ? inTheNetworkMs : ms(verifyAfter);
  const timeoutMs = timeout === 'none' ? Number.POSITIVE_INFINITY : ms(timeout ?? '10m');
  return {
    inFlightForMs: runsMs + networkMs,
    renewedMs: leaseMs + networkMs,
    networkMs,
    overrunMs: overrunMs(timeoutMs),
    endsWithProcess: via === 'fetch',
  };
}
