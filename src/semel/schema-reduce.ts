// The least that a schema takes instead of the args of a call, and what it makes of that: optional args are left out,
// required ones are constants, and what changes with another constant is noted.

import type { Steps } from '../core/identity.ts';
import { limits } from '../core/limits.ts';
import type { SchemaIssue, SchemaResult } from '../core/standard-schema.ts';
import { at, constantsFor, deepest, type Fields, isFields, placed, same, without } from './schema-trials.ts';

export type Try = (input: unknown) => Promise<SchemaResult<unknown>>;

export interface Reduced {
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

export interface Moving extends Replaced {
  /** The fields that another value of this arg changes: those are made of it. */
  readonly moves: readonly Steps[];
}

export async function reduce(validate: Try, input: Fields, output: Fields): Promise<Reduced> {
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

  /** An object keeps its place, so that what is inside can be compared, unless the schema makes it of nothing. */
  function isContainer(steps: Steps): boolean {
    return isFields(at(base, steps)) && isFields(at(output, steps)) && steps.length < deepest;
  }

  function mayLeaveOut(steps: Steps, filled: unknown): boolean {
    return !isContainer(steps) || same(at(filled, steps), at(output, steps)) === true;
  }

  /** In one order, whatever the order of the args. */
  async function reduceMembers(steps: Steps, members: Fields): Promise<void> {
    const isTaken = async (names: readonly string[]) => {
      const mayTake = (filled: unknown) => names.every((name) => mayLeaveOut([...steps, name], filled));
      return (await takes(without(base, steps, names), mayTake)) === undefined;
    };
    for (const name of await leftOf(Object.keys(members).sort(), isTaken)) await reduceAt([...steps, name]);
  }

  async function reduceAt(steps: Steps): Promise<void> {
    const value = at(base, steps);
    if (value === undefined) return;
    const refusal = await takes(placed(base, steps, undefined), (filled) => mayLeaveOut(steps, filled));
    if (refusal === undefined) return;
    if (isContainer(steps)) return reduceMembers(steps, value as Fields);
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
    const isTaken = async (names: readonly string[]) => {
      const less = without(lean, [], names);
      const result = await attempt(validate, placed(base, steps, isList ? [less] : less));
      if (result.issues === undefined) lean = less;
      return result.issues === undefined;
    };
    for (const name of await leftOf(Object.keys(lean).sort(), isTaken)) await isTaken([name]);
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
    return alternativesIn(issues);
  }

  await reduceMembers([], input);
  // What is made up for each call shows only in a second trial.
  if (base === input) filledIn = valueIn(await attempt(validate, input));
  const moving = await Promise.all(replaced.map(async (each) => ({ ...each, moves: await movesOf(each) })));
  return { base, filledIn, stuck, moving };
}

/** So many members are left out one by one; of more, as many at once as the schema lets go. */
const mostOneByOne = 100;

/** Those that cannot be left out in bulk. A client can send thousands of members that the schema does not even name. */
async function leftOf(
  names: readonly string[],
  isTaken: (names: readonly string[]) => Promise<boolean>,
): Promise<readonly string[]> {
  if (names.length <= mostOneByOne) return names;
  const left: string[] = [];
  const drop = async (some: readonly string[]): Promise<void> => {
    if (await isTaken(some)) return;
    if (some.length === 1) return void left.push(some[0] as string);
    const half = some.length >> 1;
    await drop(some.slice(0, half));
    await drop(some.slice(half));
  };
  await drop(names);
  return left;
}

/** The words in quotation marks. */
export function alternativesIn(issues: readonly SchemaIssue[]): readonly string[] {
  const quoted = issues.flatMap(({ message }) => [...String(message).matchAll(/(["'])([^"']+)\1/g)]);
  return quoted.slice(0, 16).map(([, , word]) => word as string);
}

/** A schema may throw, or look something up that is not there: then it does not take this input. */
export async function attempt(validate: Try, input: unknown): Promise<SchemaResult<unknown>> {
  try {
    return await validate(input);
  } catch (error) {
    if (error instanceof TooManyTrials) throw error;
    return { issues: [] };
  }
}

/** These args cannot be tried out in a reasonable time. */
export class TooManyTrials extends Error {
  override readonly name = 'TooManyTrials';
}

/** The trials for one call. Each costs as much as the call has members, and a client chooses how many it has. */
export function bounded(validate: Try, input: unknown): Try {
  const cost = 10 + membersIn(input, 0);
  let left = limits.trialMembers;
  return (trial) => {
    left -= cost;
    if (left < 0) throw new TooManyTrials();
    return validate(trial);
  };
}

function membersIn(value: unknown, depth: number): number {
  if (typeof value !== 'object' || value === null || depth > deepest) return 0;
  const members = Object.values(value);
  return members.reduce((sum: number, member) => sum + membersIn(member, depth + 1), members.length);
}

export function valueIn(result: SchemaResult<unknown>): unknown {
  return result.issues === undefined ? result.value : undefined;
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
