// Finds the fields that hold a constant of the schema: those are left out of the identity, so that adding an optional
// arg changes no key. A field is one only if the schema fills in the same value when every other arg is left out or
// replaced by a constant. So two calls that leave a field out hold the same value there, and never share a key by it:
// as long as the trial is the same for both, whatever their args are.

import { canonicalJson } from '../core/canonical-json.ts';
import { encodeResult } from '../core/codec.ts';
import type { FieldLists } from '../core/contract.ts';
import { type Steps, stepsTo } from '../core/identity.ts';
import type { SchemaIssue, SchemaResult } from '../core/standard-schema.ts';
import { constantsFor, deepest, type Fields, isFields } from './schema-trials.ts';

export interface SchemaDefaults {
  /** Each holds what the schema would fill in, whatever the other args are. */
  readonly constant: readonly Steps[];
  /** Not given, and filled in with something else each time. */
  readonly fresh: readonly Steps[];
  /** Args that decide how others are tried, or that no trial could replace: all that is filled in is identity. */
  readonly stuck: readonly Steps[];
}

export type Try = (input: unknown) => Promise<SchemaResult<unknown>>;

/** Judged anew for each call, from this call and the schema alone: every process must come to the same key. */
export function schemaDefaults(
  validate: Try,
  input: unknown,
  output: unknown,
): (lists: FieldLists) => Promise<SchemaDefaults> {
  if (!isFields(input) || !isFields(output)) return async () => ({ constant: [], fresh: [], stuck: [] });
  let reducing: Promise<Reduced> | undefined;
  let again: unknown;

  /** Most calls hold no default at all: every arg is required, and one trial for each shows it. */
  let needing: Promise<boolean> | undefined;
  async function isAllNeeded(steps: Steps, value: unknown): Promise<boolean> {
    const without = await attempt(validate, placed(input, steps, undefined));
    if (without.issues === undefined) return false;
    if (!isFields(value) || steps.length >= deepest) return true;
    for (const name of Object.keys(value))
      if (!(await isAllNeeded([...steps, name], value[name]))) return false;
    return true;
  }

  async function areAllNeeded(args: Fields): Promise<boolean> {
    for (const name of Object.keys(args)) if (!(await isAllNeeded([name], args[name]))) return false;
    return true;
  }

  return async (lists) => {
    const named = lists.identity?.map((path) => stepsTo(output, path));
    const fields = (named ?? Object.keys(output).map((name) => [name])).filter(
      (steps) => steps !== undefined,
    );
    const areAllGiven = fields.every((steps) => isGiven(at(output, steps), at(input, steps)));
    if (areAllGiven) needing ??= areAllNeeded(input);
    if (areAllGiven && (await needing)) return { constant: [], fresh: [], stuck: [] };

    reducing ??= reduce(validate, input, output);
    const reduced = await reducing;
    const isMoved = (steps: Steps) =>
      reduced.moving.some(({ moves }) =>
        moves.some((each) => isWithin(each, steps) || isWithin(steps, each)),
      );
    const constant: Steps[] = [];
    const fresh: Steps[] = [];

    async function judge(steps: Steps): Promise<void> {
      const value = at(output, steps);
      if (value === undefined || isIgnored(steps, lists)) return;
      const isLeftOut = at(reduced.base, steps) === undefined;
      const isConstant = isLeftOut && !isMoved(steps) && !isDay(value);
      if (isConstant && same(at(reduced.filledIn, steps), value) === true) {
        constant.push(steps);
      } else if (at(input, steps) === undefined) {
        again ??= valueIn(await attempt(validate, input));
        if (again !== undefined && same(at(again, steps), value) === false) fresh.push(steps);
      } else if (isFields(value) && isFields(at(input, steps)) && steps.length < deepest) {
        for (const name of Object.keys(value)) await judge([...steps, name]);
      }
    }

    for (const steps of fields) await judge(steps);
    // What is in the key as it was given tells two calls apart by itself.
    const isInKey = (steps: Steps) =>
      isIdentity(steps, lists) && same(at(output, steps), at(input, steps)) === true;
    const isSeen = ({ steps, moves }: Moving) =>
      isInKey(steps) || moves.some((each) => isIdentity(each, lists));
    const tied = reduced.moving.filter((each) => each.isTied && !isSeen(each));
    const stuck = [...reduced.stuck.filter((steps) => !isInKey(steps)), ...tied.map(({ steps }) => steps)];
    if (stuck.length === 0) return { constant, fresh, stuck };
    return { constant: [], fresh, stuck: constant.length > 0 ? stuck : [] };
  };
}

interface Reduced {
  /** The least that the schema takes: optional args are left out, required ones are constants. */
  readonly base: unknown;
  readonly filledIn: unknown;
  /** Args for which the schema took none of the constants, and those that choose which others it wants. */
  readonly stuck: readonly Steps[];
  readonly moving: readonly Moving[];
}

/** Further values for an arg, and how many of those that the schema takes are tried. */
interface Others {
  readonly others: readonly unknown[];
  readonly most: number;
}

interface Replaced extends Others {
  readonly steps: Steps;
  /** It can be left out if another one is given: an alias, or what only one branch of a union has. */
  readonly isTied: boolean;
}

interface Moving extends Replaced {
  /** The fields that another value of this arg changes: those are made of it. */
  readonly moves: readonly Steps[];
}

async function reduce(validate: Try, input: Fields, output: Fields): Promise<Reduced> {
  let base: unknown = input;
  let filledIn: unknown = output;
  const stuck: Steps[] = [];
  const replaced: Replaced[] = [];

  async function takes(changed: unknown, mayTake: (filled: unknown) => boolean = () => true) {
    const result = await attempt(validate, changed);
    if (result.issues !== undefined || !mayTake(result.value)) return result;
    base = changed;
    filledIn = result.value;
    return undefined;
  }

  async function reduceAt(steps: Steps): Promise<void> {
    const value = at(base, steps);
    if (value === undefined) return;
    const made = at(output, steps);
    // An object keeps its place, so that what is inside can be compared, unless the schema makes it of nothing.
    const isContainer = isFields(value) && isFields(made) && steps.length < deepest;
    const refusal = await takes(
      placed(base, steps, undefined),
      (filled) => !isContainer || same(at(filled, steps), made) === true,
    );
    if (refusal === undefined) return;
    if (isContainer) {
      for (const name of Object.keys(value).sort()) await reduceAt([...steps, name]);
      return;
    }
    const others = await replace(steps, value);
    if (others === undefined) stuck.push(steps);
    else replaced.push({ steps, isTied: !isAbout(refusal, steps), ...others });
  }

  /** The constants are tried in one order, whatever was given: else equal outputs would be judged by unequal trials. */
  async function replace(steps: Steps, value: unknown): Promise<Others | undefined> {
    const constants = constantsFor(value, await leanest(steps, value));
    for (const [index, constant] of constants.entries())
      if ((await takes(placed(base, steps, constant))) === undefined)
        return { others: constants.slice(index + 1), most: 1 };
    const from = base;
    const others: unknown[] = [];
    for (const word of await alternativesAt(steps)) {
      const changed = placed(from, steps, word);
      const refusal = await (base === from ? takes(changed) : attempt(validate, changed));
      // Under this word the schema wants other args: it chooses a branch.
      if (refusal?.issues !== undefined && !isAbout(refusal, steps)) return undefined;
      if (refusal?.issues === undefined) others.push(word);
    }
    return base === from ? undefined : { others, most: others.length };
  }

  /** A list or an object with the fewest members that the schema takes, so that equal ones are tried alike. */
  async function leanest(steps: Steps, value: unknown): Promise<unknown> {
    const isList = Array.isArray(value);
    let lean = isList ? value[0] : value;
    if (!isFields(lean)) return lean;
    for (const name of Object.keys(lean).sort()) {
      const less = placed(lean, [name], undefined);
      const result = await attempt(validate, placed(base, steps, isList ? [less] : less));
      if (result.issues === undefined) lean = less;
    }
    return lean;
  }

  /** Compared with the least that the schema takes, so that it is the same for all calls that have this arg. */
  async function movesOf({ steps, others, most }: Replaced): Promise<readonly Steps[]> {
    const moves: Steps[] = [];
    let taken = 0;
    for (const other of others) {
      if (taken === most) break;
      const result = await attempt(validate, placed(base, steps, other));
      if (result.issues !== undefined) continue;
      taken += 1;
      moves.push(...differing(filledIn, result.value));
    }
    return moves;
  }

  /** Schemas name the members of an enum when they refuse another value. */
  async function alternativesAt(steps: Steps): Promise<readonly unknown[]> {
    const { issues = [] } = await attempt(validate, placed(base, steps, 'semel?'));
    const quoted = issues.flatMap(({ message }) => [...String(message).matchAll(/(["'])([^"']+)\1/g)]);
    return quoted.slice(0, 16).map(([, , word]) => word);
  }

  // In one order, whatever the order of the args.
  for (const name of Object.keys(input).sort()) await reduceAt([name]);
  // What is made up for each call shows only in a second trial.
  if (base === input) filledIn = valueIn(await attempt(validate, input));
  const moving = await Promise.all(replaced.map(async (each) => ({ ...each, moves: await movesOf(each) })));
  return { base, filledIn, stuck, moving };
}

/** A schema may throw, or look something up that is not there: then it does not take this input. */
async function attempt(validate: Try, input: unknown): Promise<SchemaResult<unknown>> {
  try {
    return await validate(input);
  } catch {
    return { issues: [] };
  }
}

function valueIn(result: SchemaResult<unknown>): unknown {
  return result.issues === undefined ? result.value : undefined;
}

/** A calendar date is filled in by the clock: by tomorrow the default is another, and the key must not be. */
function isDay(value: unknown): boolean {
  return typeof value === 'string' && /^\d{4}-?(?:\d{2}(?:-?\d{2})?|W\d{2}|Q[1-4])$/.test(value);
}

/** Nothing of it was filled in. */
function isGiven(value: unknown, given: unknown): boolean {
  if (given === undefined) return value === undefined;
  if (!isFields(value) || !isFields(given)) return true;
  return Object.keys(value).every((name) => isGiven(at(value, [name]), at(given, [name])));
}

function isWithin(steps: Steps, outer: Steps): boolean {
  return outer.every((name, index) => steps[index] === name);
}

/** The schema says that it is this arg which is wrong or missing, and no other. */
function isAbout({ issues = [] }: { issues?: readonly SchemaIssue[] | undefined }, steps: Steps): boolean {
  const nameOf = (part: NonNullable<SchemaIssue['path']>[number] | undefined) =>
    typeof part === 'object' ? part.key : part;
  return (
    issues.length > 0 &&
    issues.every(({ path = [] }) => steps.every((name, index) => nameOf(path[index]) === name))
  );
}

function differing(a: unknown, b: unknown, steps: Steps = []): readonly Steps[] {
  if (!isFields(a) || !isFields(b) || steps.length === deepest) return same(a, b) === true ? [] : [steps];
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].flatMap((name) => differing(at(a, [name]), at(b, [name]), [...steps, name]));
}

function isIgnored(steps: Steps, { content, volatile }: FieldLists): boolean {
  const path = steps.join('.');
  return content.includes(path) || volatile.includes(path);
}

function isIdentity(steps: Steps, { identity, content, volatile }: FieldLists): boolean {
  const path = steps.join('.');
  const isWithin = (list: readonly string[]) => list.some((each) => `${path}.`.startsWith(`${each}.`));
  return identity === undefined ? !isWithin([...content, ...volatile]) : isWithin(identity);
}

function at(value: unknown, steps: Steps): unknown {
  let found = value;
  for (const name of steps) found = isFields(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  return found;
}

/** `undefined` leaves it out. */
function placed(value: unknown, [name, ...rest]: Steps, member: unknown): unknown {
  if (name === undefined || !isFields(value)) return value;
  const { [name]: inner, ...others } = value;
  const next = rest.length === 0 ? member : placed(inner, rest, member);
  return next === undefined ? others : { ...others, [name]: next };
}

/** Undefined: they cannot be compared. */
function same(a: unknown, b: unknown): boolean | undefined {
  if (a === undefined || b === undefined) return a === b;
  const [one, other] = [textOf(a), textOf(b)];
  return one === undefined || other === undefined ? undefined : one === other;
}

function textOf(value: unknown): string | undefined {
  try {
    return canonicalJson(value);
  } catch {
    const encoded = encodeResult(value, { maxBytes: 1_048_576 });
    return encoded.ok ? encoded.text : undefined;
  }
}
