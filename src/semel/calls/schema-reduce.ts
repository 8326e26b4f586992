// The minimal input that a schema accepts instead of a call's args, and its output: optional args are left out,
// required ones are constants, and what changes with another constant is noted.

import type { SchemaIssue, SchemaResult } from '../../core/contract/standard-schema.ts';
import type { Steps } from '../../core/key/identity.ts';
import { limits } from '../../core/limits.ts';
import {
  at,
  constants,
  constantsLike,
  type Fields,
  isFields,
  isSame,
  isWithin,
  maxDepth,
  notObjects,
  setAt,
  without,
} from './schema-trials.ts';

export type Try = (input: unknown) => Promise<SchemaResult<unknown>>;

export interface Reduced {
  /** The minimal input that the schema accepts: optional args are left out, required ones are constants. */
  readonly base: unknown;
  readonly filledIn: unknown;
  /** Args for which the schema accepted no constant, and those that select which others it requires. */
  readonly stuck: readonly Steps[];
  readonly moving: readonly Moving[];
  /** Objects that `base` does without. */
  readonly inside: readonly Inside[];
}

export interface Inside {
  readonly steps: Steps;
  /** The least that the schema takes where it is given; undefined: its members are not looked at. */
  readonly reduced: Reduced | undefined;
}

/** Further values for an arg, and how many of those that the schema takes are tried. */
interface Others {
  readonly others: readonly unknown[];
  readonly most: number;
}

interface Replaced extends Others {
  readonly steps: Steps;
}

export interface Moving extends Replaced {
  /** It can be left out if another one is given: an alias, or what only one branch of a union has. */
  readonly isTied: boolean;
  /** The fields that another value of this arg changes: those are made of it. */
  readonly moves: readonly Steps[];
}

/** The minimal input is the same for all calls: otherwise equal args would be judged by different trials. */
export async function reduce(validate: Try, input: Fields, output: Fields): Promise<Reduced> {
  const reduced = await reduceWithin([], validate, input, output, { stuck: [], moving: [] });
  // What is made up for each call shows only in a second trial.
  if (reduced.base !== input) return reduced;
  return { ...reduced, filledIn: valueIn(await attempt(validate, input)) };
}

/** Only what is inside of `within` is reduced. `outer`: what was found outside of it. */
async function reduceWithin(
  within: Steps,
  validate: Try,
  input: unknown,
  output: unknown,
  outer: Pick<Reduced, 'stuck' | 'moving'>,
): Promise<Reduced> {
  let base: unknown = input;
  let filledIn: unknown = output;
  const stuck: Steps[] = [...outer.stuck];
  const replaced: Replaced[] = [];

  async function isTaken(changed: unknown): Promise<boolean> {
    const result = await attempt(validate, changed);
    if (result.issues !== undefined) return false;
    base = changed;
    filledIn = result.value;
    return true;
  }

  /** What is inside can be compared. */
  function isContainer(steps: Steps): boolean {
    return isFields(at(input, steps)) && isFields(at(output, steps)) && steps.length < maxDepth;
  }

  const isReplaced = (steps: Steps) => replaced.some((each) => isSamePath(each.steps, steps));

  /** Until nothing more can go: an arg may be required only as long as another one is there. */
  async function leaveOut(): Promise<void> {
    for (let before: unknown; before !== base; ) {
      before = base;
      await leaveOutMembers(within);
    }
  }

  /** In one order, whatever the order of the args. */
  async function leaveOutMembers(steps: Steps): Promise<void> {
    const members = at(base, steps);
    if (!isFields(members) || isReplaced(steps)) return;
    const isTakenWithout = (names: readonly string[]) => isTaken(without(base, steps, names));
    for (const name of await findRequired(Object.keys(members).sort(), isTakenWithout)) {
      const inner = [...steps, name];
      if (at(base, inner) === undefined || (await isTaken(setAt(base, inner, undefined)))) continue;
      if (isContainer(inner)) await leaveOutMembers(inner);
    }
  }

  async function replaceMembers(steps: Steps): Promise<void> {
    const members = at(base, steps);
    if (!isFields(members)) return;
    for (const name of Object.keys(members).sort()) {
      const inner = [...steps, name];
      if (members[name] !== undefined) await replaceAt(inner, members[name]);
    }
  }

  async function replaceAt(steps: Steps, value: unknown): Promise<void> {
    const others =
      (await replace(steps, constants)) ??
      (isContainer(steps) ? undefined : ((await choose(steps)) ?? (await replaceByKind(steps, value))));
    if (others !== undefined) replaced.push({ steps, ...others });
    else if (isContainer(steps)) await replaceMembers(steps);
    else stuck.push(steps);
  }

  async function replace(steps: Steps, by: readonly unknown[]): Promise<Others | undefined> {
    for (const [index, constant] of by.entries())
      if (await isTaken(setAt(base, steps, constant))) return { others: by.slice(index + 1), most: 1 };
    return undefined;
  }

  /** Replacements of the shape that was given. Where the schema makes another kind of it, another shape might come out equal. */
  async function replaceByKind(steps: Steps, value: unknown): Promise<Others | undefined> {
    const others = await replace(steps, constantsLike(value, await leanest(steps, value)));
    const [given, made] = [at(base, steps), at(filledIn, steps)];
    const isSameKind = Array.isArray(given) ? Array.isArray(made) : !isFields(given) || isFields(made);
    return isSameKind ? others : undefined;
  }

  async function choose(steps: Steps): Promise<Others | undefined> {
    const from = base;
    const others: unknown[] = [];
    for (const word of await alternativesAt(steps)) {
      const result = await attempt(validate, setAt(from, steps, word));
      // With this value the schema expects other args: it selects a branch.
      if (result.issues !== undefined && !isAbout(result, steps)) return undefined;
      if (result.issues === undefined) others.push(word);
    }
    const [first, ...rest] = others;
    if (first === undefined || !(await isTaken(setAt(from, steps, first)))) return undefined;
    return { others: rest, most: rest.length };
  }

  /** A list or an object with the fewest members that the schema takes, so that equal ones are tried alike. */
  async function leanest(steps: Steps, value: unknown): Promise<unknown> {
    const isList = Array.isArray(value);
    let lean = isList ? value[0] : value;
    if (!isFields(lean)) return lean;
    const isLeaner = async (names: readonly string[]) => {
      const less = without(lean, [], names);
      const result = await attempt(validate, setAt(base, steps, isList ? [less] : less));
      if (result.issues === undefined) lean = less;
      return result.issues === undefined;
    };
    for (const name of await findRequired(Object.keys(lean).sort(), isLeaner)) await isLeaner([name]);
    return lean;
  }

  /** Compared with the least that the schema takes, so that it is the same for all calls that have this arg. */
  async function findMoves({ steps, others, most }: Replaced): Promise<readonly Steps[]> {
    const moves: Steps[] = [];
    let taken = 0;
    for (const other of others) {
      if (taken === most) break;
      const result = await attempt(validate, setAt(base, steps, other));
      if (result.issues !== undefined) continue;
      taken += 1;
      moves.push(...findDifferences(filledIn, result.value));
    }
    return moves;
  }

  /** Schemas name the members of an enum when they refuse another value. */
  async function alternativesAt(steps: Steps): Promise<readonly unknown[]> {
    const { issues = [] } = await attempt(validate, setAt(base, steps, 'semel?'));
    return findAlternatives(issues);
  }

  async function isTied({ steps }: Replaced): Promise<boolean> {
    return !isAbout(await attempt(validate, setAt(base, steps, undefined)), steps);
  }

  /** The outermost objects that were left out or replaced. */
  function findObjects(steps: Steps): readonly Steps[] {
    const members = at(input, steps);
    return Object.keys(isFields(members) ? members : {}).flatMap((name) => {
      const inner = [...steps, name];
      if (!isContainer(inner)) return [];
      return at(base, inner) === undefined || isReplaced(inner) ? [inner] : findObjects(inner);
    });
  }

  async function reduceInside(steps: Steps, moving: readonly Moving[]): Promise<Inside> {
    const given = setAt(base, steps, at(input, steps));
    const result = await attempt(validate, given);
    // Not given alone, or not only as an object: a text that is made the same object has no members to compare.
    if (result.issues !== undefined || !(await isOnlyObject(steps))) return { steps, reduced: undefined };
    const beside = { stuck, moving: moving.filter((each) => !isWithin(steps, each.steps)) };
    return { steps, reduced: await reduceWithin(steps, validate, given, result.value, beside) };
  }

  async function isOnlyObject(steps: Steps): Promise<boolean> {
    for (const other of notObjects) {
      const { issues } = await attempt(validate, setAt(base, steps, other));
      const isLookedInto = issues?.some(({ path = [] }) => path.length > steps.length);
      if (issues === undefined || isLookedInto) return false;
    }
    return true;
  }

  await leaveOut();
  await replaceMembers(within);
  await leaveOut();
  const moving: Moving[] = [];
  for (const each of outer.moving) moving.push({ ...each, moves: await findMoves(each) });
  for (const each of replaced)
    if (at(base, each.steps) !== undefined)
      moving.push({ ...each, isTied: await isTied(each), moves: await findMoves(each) });
  const inside: Inside[] = [];
  for (const steps of findObjects(within)) inside.push(await reduceInside(steps, moving));
  return { base, filledIn, stuck, moving, inside };
}

const isSamePath = (a: Steps, b: Steps) => a.length === b.length && isWithin(a, b);

/** Up to this many members are left out one by one; beyond that, as many at once as the schema allows. */
const maxOneByOne = 100;

/** Those that cannot be left out in bulk. A client can send thousands of members that the schema does not even name. */
async function findRequired(
  names: readonly string[],
  isTaken: (names: readonly string[]) => Promise<boolean>,
): Promise<readonly string[]> {
  if (names.length <= maxOneByOne) return names;
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
export function findAlternatives(issues: readonly SchemaIssue[]): readonly string[] {
  const quoted = issues.flatMap(({ message }) => [...String(message).matchAll(/(["'])([^"']+)\1/g)]);
  return quoted.slice(0, 16).map(([, , word]) => word as string);
}

/** A schema may throw, or look up something that does not exist: then it does not accept this input. */
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
export function limitTrials(validate: Try, input: unknown): Try {
  const cost = 10 + countMembers(input, 0);
  let left = limits.trialMembers;
  return (trial) => {
    left -= cost;
    if (left < 0) throw new TooManyTrials();
    return validate(trial);
  };
}

function countMembers(value: unknown, depth: number): number {
  if (typeof value !== 'object' || value === null || depth > maxDepth) return 0;
  const members = Object.values(value);
  return members.reduce((sum: number, member) => sum + countMembers(member, depth + 1), members.length);
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

function findDifferences(a: unknown, b: unknown, steps: Steps = []): readonly Steps[] {
  if (!isFields(a) || !isFields(b) || steps.length === maxDepth) return isSame(a, b) === true ? [] : [steps];
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].flatMap((name) => findDifferences(at(a, [name]), at(b, [name]), [...steps, name]));
}
