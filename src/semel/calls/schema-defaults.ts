// Finds the fields that hold a constant of the schema: those are left out of the identity, so that adding an optional
// arg changes no key. A field counts only if the schema fills in the same value when every other arg is left out or
// replaced by a constant. So two calls that leave a field out hold the same value there, and never share a key by it:
// as long as the trial is the same for both, whatever their args are.

import type { FieldLists } from '../../core/contract/fields.ts';
import type { SchemaResult } from '../../core/contract/standard-schema.ts';
import { findSteps, type Steps } from '../../core/key/identity.ts';
import {
  attempt,
  type Inside,
  type Moving,
  type Reduced,
  reduce,
  TooManyTrials,
  type Try,
  valueIn,
} from './schema-reduce.ts';
import { at, type Fields, isFields, isSame, isWithin, maxDepth, setAt } from './schema-trials.ts';

export interface SchemaDefaults {
  /** Each holds what the schema would fill in, whatever the other args are. */
  readonly constant: readonly Steps[];
  /** Not given, and filled in with something else each time. */
  readonly fresh: readonly Steps[];
  /** Args that decide how others are tried, or that no trial could replace: all that is filled in is identity. */
  readonly stuck: readonly Steps[];
  /** Objects in which all that is filled in is identity: their members are not examined. */
  readonly whole: readonly Steps[];
  /** The args have too many members to test one by one: every default counts as identity. */
  readonly isTooMuch?: true;
}

/** From trials of this call alone: every process must derive the same key. */
export function schemaDefaults(
  validate: Try,
  input: unknown,
  output: unknown,
): (lists: FieldLists) => Promise<SchemaDefaults> {
  if (!isFields(input) || !isFields(output)) return async () => nothing;
  let reducing: Promise<Reduced> | undefined;
  let again: Promise<unknown> | undefined;

  /** Most calls hold no default at all: every arg is required, and one trial for each shows it. */
  let needing: Promise<boolean> | undefined;
  async function isAllNeeded(steps: Steps, value: unknown): Promise<boolean> {
    const without = await attempt(validate, setAt(input, steps, undefined));
    if (without.issues === undefined) return false;
    if (!isFields(value) || steps.length >= maxDepth) return true;
    for (const name of Object.keys(value))
      if (!(await isAllNeeded([...steps, name], value[name]))) return false;
    return true;
  }

  async function areAllNeeded(args: Fields): Promise<boolean> {
    for (const name of Object.keys(args)) if (!(await isAllNeeded([name], args[name]))) return false;
    return true;
  }

  /** Those that change each time. */
  async function freshAmong(made: readonly Steps[]): Promise<readonly Steps[]> {
    again ??= attempt(validate, input).then(valueIn);
    const second = await again;
    if (second === undefined) return [];
    return made.filter((steps) => isSame(at(second, steps), at(output, steps)) === false);
  }

  async function trial(fields: readonly Steps[]): Promise<Reduced | undefined> {
    const areAllGiven = fields.every((steps) => isGiven(at(output, steps), at(input, steps)));
    if (areAllGiven) needing ??= areAllNeeded(input as Fields);
    if (areAllGiven && (await needing)) return undefined;
    reducing ??= reduce(validate, input as Fields, output as Fields);
    return reducing;
  }

  async function defaultsBy(
    reduced: Reduced,
    fields: readonly Steps[],
    lists: FieldLists,
  ): Promise<SchemaDefaults> {
    const { constant, made, whole } = judgeFields(input, output, fields, lists, reduced);
    const fresh = made.length === 0 ? [] : await freshAmong(made);
    // Args that are in the key as given distinguish two calls by themselves.
    const isInKey = (steps: Steps) =>
      isIdentity(steps, lists) && isSame(at(output, steps), at(input, steps)) === true;
    const isSeen = ({ steps, moves }: Moving) =>
      isInKey(steps) || moves.some((each) => isIdentity(each, lists));
    const stuckIn = (by: Reduced) => [
      ...by.stuck.filter((steps) => !isInKey(steps)),
      ...by.moving.filter((each) => each.isTied && !isSeen(each)).map(({ steps }) => steps),
    ];
    return {
      constant: constant.filter(({ by }) => stuckIn(by).length === 0).map(({ steps }) => steps),
      fresh,
      stuck: constant.flatMap(({ by }) => stuckIn(by)),
      whole,
    };
  }

  return async (lists) => {
    const fields = identityFields(output, lists);
    try {
      const reduced = await trial(fields);
      return reduced === undefined ? nothing : await defaultsBy(reduced, fields, lists);
    } catch (error) {
      if (error instanceof TooManyTrials) return { ...nothing, isTooMuch: true };
      throw error;
    }
  };
}

/** What is known for all calls of a shape, applied to this one. */
export interface SharedDefaults {
  readonly defaults: SchemaDefaults;
  /** Given although the schema has a default for it: counts only if that is still the default. */
  readonly overridden: readonly Found[];
}

/** A field, and the trial that tells of it. */
export interface Found {
  readonly steps: Steps;
  readonly by: Reduced;
}

/** Undefined: something was made for this call alone, or was not tried out. */
export function sharedDefaults(
  input: unknown,
  output: unknown,
  lists: FieldLists,
  shared: Reduced,
): SharedDefaults | undefined {
  if (!isFields(output)) return { defaults: nothing, overridden: [] };
  const judged = judgeFields(input, output, identityFields(output, lists), lists, shared);
  if (judged.made.length > 0 || judged.isUntried) return undefined;
  const constant = judged.constant.map(({ steps }) => steps);
  return { defaults: { ...nothing, constant, whole: judged.whole }, overridden: judged.overridden };
}

/** The schema still fills in the same: a default may be a function of the time, or of a setting. */
export function isCurrent({ steps, by }: Found, now: SchemaResult<unknown>): boolean {
  return isSame(at(valueIn(now), steps), at(by.filledIn, steps)) === true;
}

function identityFields(output: Fields, { identity }: FieldLists): readonly Steps[] {
  if (identity === undefined) return Object.keys(output).map((name) => [name]);
  return identity.map((path) => findSteps(output, path)).filter((steps) => steps !== undefined);
}

interface Judged {
  readonly constant: readonly Found[];
  /** Not given, and not a constant either. */
  readonly made: readonly Steps[];
  /** Given, and the schema has a default for it. */
  readonly overridden: readonly Found[];
  readonly whole: readonly Steps[];
  /** The call has an object that the trial did not have. */
  readonly isUntried: boolean;
}

function judgeFields(
  input: unknown,
  output: unknown,
  fields: readonly Steps[],
  lists: FieldLists,
  reduced: Reduced,
): Judged {
  const constant: Found[] = [];
  const made: Steps[] = [];
  const overridden: Found[] = [];
  const whole: Steps[] = [];
  let isUntried = false;
  const look = (steps: Steps, by: Reduced): void => {
    const value = at(output, steps);
    if (value === undefined || isIgnored(steps, lists)) return;
    const isLeftOut = at(by.base, steps) === undefined;
    const isConstant = isLeftOut && !isMoved(steps, by) && !isDateLike(value);
    if (isConstant && at(input, steps) !== undefined && at(by.filledIn, steps) !== undefined)
      overridden.push({ steps, by });
    if (isConstant && isSame(at(by.filledIn, steps), value) === true) {
      constant.push({ steps, by });
    } else if (at(input, steps) === undefined) {
      made.push(steps);
    } else if (isFields(value) && isFields(at(input, steps)) && steps.length < maxDepth) {
      const inner = findInside(steps, by);
      if (inner === undefined) isUntried = true;
      else if (inner.reduced !== undefined)
        for (const name of Object.keys(value)) look([...steps, name], inner.reduced);
      else if (isSame(value, at(input, steps)) !== true) whole.push(steps);
    }
  };
  for (const steps of fields) {
    const by = findTrial(steps, reduced);
    if (by !== undefined) look(steps, by);
  }
  return { constant, made, overridden, whole, isUntried };
}

/** Another value of another arg changes it. */
function isMoved(steps: Steps, { moving }: Reduced): boolean {
  return moving.some(({ moves }) => moves.some((each) => isWithin(each, steps) || isWithin(steps, each)));
}

/** What is known of the members of this object; undefined: it was not tried. */
function findInside(steps: Steps, by: Reduced): Inside | undefined {
  const found = by.inside.find((each) => each.steps.length === steps.length && isWithin(each.steps, steps));
  return found === undefined && isFields(at(by.base, steps)) ? { steps, reduced: by } : found;
}

/** The trial that tells of a field named by its path; undefined: it is not looked at. */
function findTrial(steps: Steps, by: Reduced): Reduced | undefined {
  const outer = by.inside.find((each) => each.steps.length < steps.length && isWithin(steps, each.steps));
  return outer === undefined ? by : outer.reduced && findTrial(steps, outer.reduced);
}

const nothing: SchemaDefaults = { constant: [], fresh: [], stuck: [], whole: [] };

/**
 * A date is filled in by the clock: by tomorrow the default is another, and the key must not be. An instant counts as one
 * only at a quarter of an hour: any other is fresh at each call, which two calls in the same millisecond do not show.
 */
function isDateLike(value: unknown): boolean {
  if (typeof value === 'string')
    return (
      value.length <= 40 && (days.some((form) => form.test(value)) || isOnTheQuarter(parseInstant(value)))
    );
  // Identity refuses a Date, and says so: better than to answer tomorrow's call by today's.
  const ms = value instanceof Date ? value.getTime() : value;
  return typeof ms === 'number' && ms > firstMs && ms < lastMs && isOnTheQuarter(ms);
}

const months = 'jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec';
/** Whole names: `monthly` is none. */
const weekdays = '(?:sun|mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?)(?:day)?';
const monthNames = `${months}|january|february|march|april|june|july|august|september|october|november|december`;
const days: readonly RegExp[] = [
  /^\d{4}-?(?:\d{2}(?:-?\d{2})?|W\d{2}|Q[1-4])$/,
  /^\d{1,2}([./-])\d{1,2}\1(?:\d{4}|\d{2})$/,
  /^\d{4}([./])\d{1,2}\1\d{1,2}$/,
  // Tue Nov 17 2026, Tuesday, November 17, 2026, 17 Nov 2026, November 2026
  new RegExp(`^(?:[a-z]{3,9},? )?(?:\\d{1,2}\\.? )?(?:${months})[a-z]{0,6}\\.?(?: \\d{1,2})?,? \\d{4}$`, 'i'),
  new RegExp(`^(?:${weekdays}|${monthNames})$`, 'i'),
];

/** Limits of the years 2001 to 2100. */
const firstMs = 978_307_200_000;
const lastMs = 4_102_444_800_000;
const quarterMs = 15 * 60_000;

/** As `toISOString` writes it: in a text without milliseconds a fresh instant would be on the quarter too often. */
function parseInstant(text: string): number {
  return /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}(?:Z|[+-]\d{2}:?\d{2})$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
}

function isOnTheQuarter(ms: number): boolean {
  return ms % quarterMs === 0;
}

/** Nothing of it was filled in. */
function isGiven(value: unknown, given: unknown): boolean {
  if (given === undefined) return value === undefined;
  if (!isFields(value) || !isFields(given)) return true;
  return Object.keys(value).every((name) => isGiven(at(value, [name]), at(given, [name])));
}

function isIgnored(steps: Steps, { content, volatile }: FieldLists): boolean {
  if (content.length === 0 && volatile.length === 0) return false;
  const path = steps.join('.');
  return content.includes(path) || volatile.includes(path);
}

function isIdentity(steps: Steps, { identity, content, volatile }: FieldLists): boolean {
  const path = steps.join('.');
  const isWithin = (list: readonly string[]) => list.some((each) => `${path}.`.startsWith(`${each}.`));
  return identity === undefined ? !isWithin([...content, ...volatile]) : isWithin(identity);
}
