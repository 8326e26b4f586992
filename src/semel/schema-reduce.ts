// The least that a schema takes instead of the args of a call, and what it makes of that: optional args are left out,
// required ones are constants, and what changes with another constant is noted.

import type { Steps } from '../core/identity.ts';
import type { SchemaIssue, SchemaResult } from '../core/standard-schema.ts';
import { at, constantsFor, deepest, type Fields, isFields, placed, same } from './schema-trials.ts';

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
    return alternativesIn(issues);
  }

  // In one order, whatever the order of the args.
  for (const name of Object.keys(input).sort()) await reduceAt([name]);
  // What is made up for each call shows only in a second trial.
  if (base === input) filledIn = valueIn(await attempt(validate, input));
  const moving = await Promise.all(replaced.map(async (each) => ({ ...each, moves: await movesOf(each) })));
  return { base, filledIn, stuck, moving };
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
  } catch {
    return { issues: [] };
  }
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
